//! The devices over the measured interval, and what a million tokens took: energy of the devices,
//! energy of their host, cost. `devices` makes figures of samples; this module says of which
//! interval, and for which tokens.
//!
//! The host's energy is never added to the devices': it is of the machine that this program runs
//! on, and lacks what fans, disks and power supplies draw.

use devices::{Figures, Recording, Telemetry, per_tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::steady::{SteadyState, Window};
use super::tokens::Tokens;
use model::units::Nanos;

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// The devices from the start of the measurement to the end of its last exchange.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Devices {
    /// The source of the readings: `nvml` or `dcgm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The driver's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The length of the interval in seconds.
    pub duration_s: f64,
    /// Each device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Figures>,
    /// The energy of all devices in joules; absent if that of any is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The mean power of all devices together in watts: their energy over the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_power_w: Option<f64>,
    /// The largest power of all devices together in watts, of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_power_w: Option<f64>,
    /// The mean of the devices' utilisation: the share of the time in which anything ran on a
    /// device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_utilization: Option<f64>,
    /// The highest temperature of any device in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_temperature_c: Option<f64>,
    /// The most memory in use on all devices together in bytes, of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// The largest share of the time in which heat or the power supply kept a device's clock down,
    /// of any device and reason; absent if no device says why its clock is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_share: Option<f64>,
    /// The energy of all devices for a million output tokens of answered requests, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_per_million_output_tokens: Option<f64>,
    /// The same for a million input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_per_million_total_tokens: Option<f64>,
    /// The same within the steady window; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyEnergy>,
    /// The processors and memory of the machine that this program runs on; absent if they were not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostEnergy>,
    /// Readings that failed, over the whole recording; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_readings: Option<u64>,
    /// The reason why the last of these failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// The devices' energy in the steady window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SteadyEnergy {
    /// The energy of all devices in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// Their mean power together in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_power_w: Option<f64>,
    /// Their energy for a million output tokens that came within the window, in joules; absent if
    /// replies were not streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_per_million_output_tokens: Option<f64>,
}

/// The energy of the processors and memory of this machine, by their own counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostEnergy {
    /// The parts that are counted, such as `package-0`.
    pub counted: Vec<String>,
    /// The energy in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The mean power in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_power_w: Option<f64>,
    /// The energy for a million output tokens of answered requests, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_per_million_output_tokens: Option<f64>,
    /// The same for a million input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_per_million_total_tokens: Option<f64>,
    /// The reason why figures are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The price of the machines, as the scenario states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Price {
    /// Per hour.
    pub per_hour: f64,
    /// The currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

/// The cost of the measured interval, in the currency of the price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cost {
    /// The price of an hour.
    pub per_hour: f64,
    /// The currency, where the scenario says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The cost of the interval: its length times the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// The cost of a million output tokens of answered requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_million_output_tokens: Option<f64>,
    /// The cost of a million input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_million_total_tokens: Option<f64>,
}

/// Tokens of answered requests: output, and input and output together.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    output: Option<u64>,
    total: Option<u64>,
}

impl Answered {
    pub(super) fn of(tokens: &Tokens) -> Self {
        let both = tokens.input.total.zip(tokens.output.total);
        Answered {
            output: tokens.output.total,
            total: both.map(|(input, output)| input.saturating_add(output)),
        }
    }
}

impl Devices {
    /// Those of a recording, in a measurement that lasted so long.
    pub(super) fn of(
        recording: &Recording,
        (from, to): (Nanos, Nanos),
        tokens: Answered,
        steady: Option<&SteadyState>,
    ) -> Self {
        let telemetry = recording.over(from, to);
        let [by_output, by_total] = [tokens.output, tokens.total]
            .map(|tokens| per_tokens(&telemetry, tokens.unwrap_or(0), None));
        let faults = telemetry.devices.iter().filter_map(|device| {
            let throttled = device.throttled.as_ref()?;
            let faults = throttled.iter().filter(|(reason, _)| reason.is_fault());
            Some(faults.map(|(_, share)| *share).fold(0.0, f64::max))
        });
        let hottest = (telemetry.devices.iter()).filter_map(|device| device.max_temperature_c);
        Devices {
            throttled_share: faults.reduce(f64::max),
            max_temperature_c: hottest.reduce(f64::max),
            steady: match steady {
                Some(SteadyState::Window(window)) => SteadyEnergy::of(recording, from, window),
                _ => None,
            },
            host: telemetry.host.as_ref().map(|host| HostEnergy {
                counted: host.counted.clone(),
                energy_j: host.energy_j,
                mean_power_w: host.mean_power_w,
                energy_per_million_output_tokens: by_output.host_j,
                energy_per_million_total_tokens: by_total.host_j,
                note: host.note.clone(),
            }),
            failed_readings: telemetry.failed.as_ref().map(|(count, _)| *count),
            last_error: telemetry.failed.as_ref().map(|(_, error)| error.clone()),
            energy_per_million_output_tokens: by_output.device_j,
            energy_per_million_total_tokens: by_total.device_j,
            source: telemetry.source,
            driver: telemetry.driver,
            duration_s: telemetry.duration_s,
            energy_j: telemetry.energy_j,
            mean_power_w: telemetry.mean_power_w,
            max_power_w: telemetry.max_power_w,
            mean_utilization: telemetry.mean_utilization,
            peak_memory_bytes: telemetry.peak_memory,
            each: telemetry.devices,
        }
    }

    /// The same as the module `devices` has them.
    pub(crate) fn telemetry(&self) -> Telemetry {
        Telemetry {
            devices: self.each.clone(),
            duration_s: self.duration_s,
            ..Telemetry::default()
        }
    }
}

impl SteadyEnergy {
    fn of(recording: &Recording, origin: Nanos, window: &Window) -> Option<Self> {
        let at = |seconds: f64| origin + Nanos::from_secs_f64(seconds);
        let telemetry = recording.over(at(window.from_s), at(window.to_s));
        let energy = telemetry.energy_j?;
        let tokens = window.output_tokens_per_s.filter(|rate| *rate > 0.0);
        Some(SteadyEnergy {
            energy_j: Some(energy),
            mean_power_w: telemetry.mean_power_w,
            energy_per_million_output_tokens: tokens
                .map(|rate| energy / (rate * window.duration_s) * 1e6),
        })
    }
}

impl Cost {
    /// Computes the cost of a measurement of this many seconds.
    pub(super) fn of(price: &Price, duration_s: Option<f64>, tokens: Answered) -> Self {
        let total = duration_s.map(|seconds| price.per_hour * seconds / SECONDS_PER_HOUR);
        let each = |tokens: Option<u64>| {
            let tokens = tokens.filter(|tokens| *tokens > 0)?;
            Some(total? / tokens as f64 * 1e6)
        };
        Cost {
            per_hour: price.per_hour,
            currency: price.currency.clone(),
            total,
            per_million_output_tokens: each(tokens.output),
            per_million_total_tokens: each(tokens.total),
        }
    }
}
