//! Rules on the devices: was their clock kept down, and was their telemetry complete?

use super::{Finding, Id};
use crate::summary::{Devices, Summary};

/// Shares of the time in which heat or the power supply kept a clock down: the first is reported,
/// the second affects figures. A sound machine has none of it.
const FAULT: [f64; 2] = [0.001, 0.01];

/// The share of the time above which a finding reports that a device drew its maximum power. Full
/// use does that, so it is no reason to doubt a run; but another limit gives other figures.
const CAPPED: f64 = 0.05;

/// The share of the time without samples beyond which it is reported.
const MISSING: f64 = 0.05;

/// Devices and reasons throttled for more than this share, faults or others; and the most.
fn throttling(devices: &Devices, above: f64, faults: bool) -> Option<(f64, String)> {
    let throttled = devices.throttled(above);
    let of_kind: Vec<_> = throttled.iter().filter(|it| it.fault == faults).collect();
    let most = of_kind.first()?.share;
    let words = of_kind.iter().map(|it| {
        let hot = it.max_temperature_c.filter(|_| faults);
        let hot = hot.map_or(String::new(), |hot| format!(", at up to {hot:.0} °C"));
        let (device, share) = (&it.device, it.share * 100.0);
        format!("device {device} for {share:.1} % of the time ({}{hot})", it.reason.name())
    });
    Some((most, words.collect::<Vec<_>>().join("; ")))
}

pub(super) fn throttled(summary: &Summary) -> Option<Finding> {
    let [reported, shows] = FAULT;
    let (most, words) = throttling(summary.devices.as_ref()?, reported, true)?;
    Some(Id::DeviceThrottled.doubted(
        most > shows,
        format!("the clock was kept down: {words}"),
        "a device that is too hot, or that its power supply limits, is slower than the same device elsewhere: the figures describe this machine's cooling or supply",
        "check fans, air flow and power supply, let the devices cool down before the run, and measure again",
    ))
}

pub(super) fn power_capped(summary: &Summary) -> Option<Finding> {
    let devices = summary.devices.as_ref()?;
    let (_, words) = throttling(devices, CAPPED, false)?;
    let limits = devices.each.iter().filter_map(|device| device.power_limit_w);
    let limit = limits.reduce(f64::min);
    let limit = limit.map_or(String::new(), |watts| format!("; the lowest limit is {watts:.0} W"));
    Some(Id::DevicePowerCapped.note(
        format!("the clock was kept down: {words}{limit}"),
        "devices that are fully used draw as much as they may, and give more at a higher limit: figures of devices with other limits are not comparable",
        "publish the limit on the power together with the result; `nvidia-smi -q -d POWER` shows it, and which limits are possible",
    ))
}

pub(super) fn gaps(summary: &Summary) -> Option<Finding> {
    let devices = summary.devices.as_ref()?;
    let missing: Vec<String> = (devices.each.iter().enumerate())
        .filter(|(_, figures)| 1.0 - figures.covered > MISSING)
        .map(|(place, figures)| {
            let (device, missing) = (figures.device.label(place), 100.0 * (1.0 - figures.covered));
            format!("device {device} for {missing:.0} % of the time")
        })
        .collect();
    if missing.is_empty() {
        return None;
    }
    let failed = devices.failed_readings.zip(devices.last_error.as_ref());
    let failed = failed.map_or(String::new(), |(count, error)| {
        let readings = if count == 1 { "reading" } else { "readings" };
        format!("; {count} {readings} failed, the last with: {error}")
    });
    Some(Id::DeviceGaps.note(
        format!("samples are missing: {}{failed}", missing.join(", ")),
        "the power in these gaps is unknown: if samples cover less than 90 % of the time, energy and means are left out, and a peak may be missing",
        "check that the driver or the exporter answers throughout, and that the exporter's --collect-interval is much shorter than the run; then measure again",
    ))
}
