//! Figures of samples that are made here, with exact numbers.

use super::*;
use crate::entry::Sample;
use crate::reading::Facts;

const SECOND: u64 = 1_000_000_000;

/// A sample in each second from zero, of devices with these readings.
fn recording(seconds: u64, readings: impl Fn(u64) -> Vec<Option<Reading>>) -> Recording {
    let samples: Vec<Sample> = (0..=seconds)
        .map(|second| Sample {
            at_ns: Nanos(second * SECOND),
            devices: readings(second),
            host_j: None,
        })
        .collect();
    let count = samples.iter().map(|sample| sample.devices.len()).max();
    Recording {
        facts: Some(Facts {
            source: "nvml".to_owned(),
            driver: Some("575".to_owned()),
            devices: vec![Device::default(); count.unwrap_or_default()],
        }),
        every_ns: Nanos(SECOND),
        samples,
        ..Recording::default()
    }
}

fn over(recording: &Recording, from: u64, to: u64) -> Devices {
    recording.over(Nanos(from * SECOND), Nanos(to * SECOND))
}

#[test]
fn figures_of_a_device() {
    let recording = recording(20, |second| {
        vec![Some(Reading {
            power_w: Some(if second == 10 { 400.0 } else { 300.0 }),
            power_limit_w: Some(700.0),
            energy_j: Some(1_000.0 + 310.0 * second as f64),
            temperature_c: Some(50.0 + second as f64),
            sm_clock_mhz: Some(if second < 10 { 2_000.0 } else { 1_000.0 }),
            memory_clock_mhz: Some(2_600.0),
            memory_used: Some(if second == 12 { 71 << 30 } else { 70 << 30 }),
            memory_total: Some(80 << 30),
            utilization: Some(0.5),
            // Thermal for the second half; idle and the clocks of an application do not count.
            throttle: Some(if second < 10 { 0x3 } else { 0x24 }),
        })]
    });
    let telemetry = over(&recording, 5, 15);
    assert_eq!(telemetry.duration_s, 10.0);
    assert_eq!(telemetry.energy_j, Some(3_100.0));
    assert_eq!(telemetry.driver.as_deref(), Some("575"));
    assert_eq!(telemetry.mean_power_w, Some(310.0));
    assert_eq!(telemetry.max_power_w, Some(400.0));
    assert_eq!(telemetry.peak_memory_bytes, Some(71 << 30));
    assert_eq!(telemetry.mean_utilization, Some(0.5));
    let figures = &telemetry.each[0];
    assert_eq!(
        *figures,
        Figures {
            device: Device::default(),
            samples: 11,
            covered: 1.0,
            energy_j: Some(3_100.0),
            energy_from: Some(EnergyFrom::Counter),
            mean_power_w: Some(310.0),
            max_power_w: Some(400.0),
            power_limit_w: Some(700.0),
            max_temperature_c: Some(65.0),
            mean_sm_clock_mhz: Some(1_450.0),
            min_sm_clock_mhz: Some(1_000.0),
            mean_memory_clock_mhz: Some(2_600.0),
            peak_memory: Some(71 << 30),
            memory_total: Some(80 << 30),
            mean_utilization: Some(0.5),
            throttled: Some(BTreeMap::from([(Reason::PowerCap, 0.5), (Reason::Thermal, 0.5)])),
            notes: Vec::new(),
        }
    );
    let throttled = telemetry.throttled(0.1);
    assert_eq!(throttled.len(), 2);
    let thermal = throttled.iter().find(|it| it.reason == Reason::Thermal).unwrap();
    assert_eq!((thermal.share, thermal.fault), (0.5, true));
    assert_eq!(thermal.max_temperature_c, Some(65.0));
    let cap = throttled.iter().find(|it| it.reason == Reason::PowerCap).unwrap();
    assert!(!cap.fault);
    assert_eq!(telemetry.throttled(0.5), []);
    let text = serde_json::to_string(&telemetry).unwrap();
    assert_eq!(serde_json::from_str::<Devices>(&text).unwrap(), telemetry);
    let text = serde_json::to_string(&recording).unwrap();
    assert_eq!(serde_json::from_str::<Recording>(&text).unwrap(), recording);
}

#[test]
fn energy_of_a_device_without_a_counter_is_from_its_power() {
    let recording = recording(10, |second| {
        vec![Some(Reading { power_w: Some(100.0 * second as f64), ..Reading::default() })]
    });
    let figures = &over(&recording, 0, 10).each[0];
    assert_eq!(figures.energy_j, Some(5_000.0));
    assert_eq!(figures.energy_from, Some(EnergyFrom::Power));
    assert_eq!(figures.mean_power_w, Some(500.0));
    assert_eq!(figures.notes, [""; 0]);
}

#[test]
fn unreported_figures_are_absent_and_not_zero() {
    let silent = recording(10, |_| vec![Some(Reading::default()), None]);
    let telemetry = over(&silent, 0, 10);
    assert_eq!(telemetry.energy_j, None);
    for (figures, (samples, covered)) in telemetry.each.iter().zip([(11, 1.0), (0, 0.0)]) {
        let expected = Figures {
            samples,
            covered,
            notes: vec!["the energy is absent: the device does not report its power".to_owned()],
            ..Figures::default()
        };
        assert_eq!(*figures, expected);
    }
    // Only one of two devices reports a figure: there is no sum.
    let one = recording(10, |second| {
        let reading =
            Reading { energy_j: Some(second as f64), throttle: Some(0), ..Reading::default() };
        vec![Some(reading), None]
    });
    let telemetry = over(&one, 0, 10);
    assert_eq!(telemetry.each[0].energy_j, Some(10.0));
    assert_eq!(telemetry.each[0].throttled, Some(BTreeMap::new()), "never");
    assert_eq!(telemetry.each[1].throttled, None, "not known");
    assert_eq!(telemetry.energy_j, None);
    let nothing = Recording::default().over(Nanos::ZERO, Nanos(SECOND));
    assert_eq!(nothing, Devices { duration_s: 1.0, ..Devices::default() });
    assert_eq!(over(&one, 5, 5).each[0].energy_j, None, "no time");
    assert_eq!(over(&one, 7, 5).duration_s, 0.0);
}

#[test]
fn readings_that_cover_too_little_give_no_figure() {
    let recording = recording(10, |second| {
        vec![Some(Reading {
            power_w: Some(100.0),
            // It went back in the middle, as when a driver is loaded again.
            energy_j: Some(if second < 5 { 500.0 + second as f64 } else { second as f64 }),
            utilization: Some(1.0),
            ..Reading::default()
        })]
    });
    let figures = &over(&recording, 0, 10).each[0];
    assert_eq!(figures.energy_j, Some(1_000.0));
    assert_eq!(figures.energy_from, Some(EnergyFrom::Power));
    assert_eq!(figures.notes, ["the energy is from readings of the power: the counter went back"]);
    // The last eleventh is assumed to be like the rest.
    let figures = &over(&recording, 0, 11).each[0];
    assert_eq!(figures.energy_j, Some(1_100.0));
    assert_eq!(figures.mean_utilization, Some(1.0));
    let figures = &over(&recording, 0, 20).each[0];
    assert_eq!((figures.energy_j, figures.mean_utilization), (None, None));
    assert_eq!(figures.notes, ["the energy is absent: readings cover 50 % of the time"]);
}

#[test]
fn the_host_is_apart_from_its_devices() {
    let mut recording = recording(10, |_| Vec::new());
    recording.host = vec!["package-0".to_owned()];
    for (second, sample) in recording.samples.iter_mut().enumerate() {
        sample.host_j = Some(150.0 * second as f64);
    }
    let telemetry = over(&recording, 2, 8);
    let host = telemetry.host.unwrap();
    assert_eq!(host.energy_j, Some(900.0));
    assert_eq!(host.mean_power_w, Some(150.0));
    assert_eq!(telemetry.energy_j, None);
    for sample in &mut recording.samples {
        sample.host_j = None;
    }
    let host = over(&recording, 2, 8).host.unwrap();
    assert_eq!(host.energy_j, None);
    let expected = "the host's energy is absent: the counter was read once at most";
    assert_eq!(host.note.unwrap(), expected);
}

#[test]
fn devices_together() {
    let reading = |power: f64, used: u64, utilization: f64| {
        Some(Reading {
            power_w: Some(power),
            memory_used: Some(used),
            utilization: Some(utilization),
            ..Reading::default()
        })
    };
    // Each has its largest power at another instant; together at the sixth second.
    let two = recording(10, |second| match second {
        4 => vec![reading(500.0, 10, 1.0), reading(100.0, 90, 0.5)],
        6 => vec![reading(350.0, 60, 1.0), reading(350.0, 70, 0.5)],
        8 => vec![reading(900.0, 99, 1.0), None],
        _ => vec![reading(300.0, 50, 1.0), reading(200.0, 50, 0.5)],
    });
    let telemetry = over(&two, 0, 10);
    assert_eq!(telemetry.max_power_w, Some(700.0));
    assert_eq!(telemetry.peak_memory_bytes, Some(130));
    assert_eq!(telemetry.mean_utilization, Some(0.75));
    let each: Vec<f64> = telemetry.each.iter().filter_map(|it| it.energy_j).collect();
    assert_eq!(telemetry.energy_j, Some(each.iter().sum()));
    assert_eq!(telemetry.mean_power_w, telemetry.energy_j.map(|it| it / 10.0));
    let spans =
        |upto: u64| (0..upto).map(|second| (Nanos(second * SECOND), Nanos((second + 1) * SECOND)));
    let power = two.power_over(spans(7)).unwrap();
    // Lines join the samples; the eighth second lacks a device.
    assert_eq!(power, [500.0, 500.0, 500.0, 550.0, 550.0, 600.0, 600.0]);
    assert_eq!(two.power_over(spans(11)), None, "the eleventh has no samples");
    // Without a figure of one device, there is none of all.
    let silent = recording(10, |_| vec![reading(300.0, 50, 1.0), Some(Reading::default())]);
    let telemetry = over(&silent, 0, 10);
    assert_eq!((telemetry.mean_power_w, telemetry.max_power_w), (None, None));
    assert_eq!((telemetry.peak_memory_bytes, telemetry.mean_utilization), (None, None));
}

#[test]
fn samples_that_are_missing_cover_nothing() {
    let read = |second: u64| (!(10..=30).contains(&second)).then(Reading::default);
    let telemetry = over(&recording(40, |second| vec![read(second)]), 0, 40);
    // From 0 to 9 and from 31 to 40.
    assert_eq!(telemetry.each[0].covered, 18.0 / 40.0);
    let whole = over(&recording(40, |_| vec![Some(Reading::default())]), 5, 35);
    assert_eq!(whole.each[0].covered, 1.0);
}

#[test]
fn the_energy_of_half_a_million_tokens() {
    let devices = Devices {
        energy_j: Some(600_000.0),
        host: Some(HostEnergy { energy_j: Some(90_000.0), ..HostEnergy::default() }),
        ..Devices::default()
    };
    let of = |devices: Devices, output, total| {
        let devices = devices.for_tokens(output, total);
        let host = devices.host.unwrap();
        (
            devices.energy_per_million_output_tokens,
            devices.energy_per_million_total_tokens,
            host.energy_per_million_output_tokens,
        )
    };
    let expected = (Some(1_200_000.0), Some(1_000_000.0), Some(180_000.0));
    assert_eq!(of(devices.clone(), Some(500_000), Some(600_000)), expected);
    assert_eq!(of(devices.clone(), Some(0), None), (None, None, None));
    let unknown = Devices { energy_j: None, ..devices };
    assert_eq!(of(unknown, Some(500_000), None), (None, None, Some(180_000.0)));
}

fn line(points: &[(f64, f64)]) -> Line {
    Line::new(points.to_vec(), 1.0)
}

#[test]
fn areas_within_an_interval() {
    let line = line(&[(0.0, 0.0), (2.0, 20.0), (4.0, 20.0)]);
    for (from, to, sum, covered_s) in [
        (0.0, 4.0, 60.0, 4.0),
        (1.0, 3.0, 35.0, 2.0),
        (0.5, 1.0, 3.75, 0.5),
        (-5.0, 1.0, 5.0, 1.0),
        (3.0, 9.0, 20.0, 1.0),
        (5.0, 9.0, 0.0, 0.0),
    ] {
        assert_eq!(line.area(from, to), Area { sum, covered_s }, "{from} {to}");
    }
    assert_eq!(line.area(1.0, 3.0).mean(), Some(17.5));
    assert_eq!(line.area(5.0, 9.0).mean(), None);
    assert_eq!(line.steps(1.0, 3.0).sum, 20.0, "0 for a second, then 20");
    assert_eq!(line.within(2.0, 4.0).collect::<Vec<_>>(), [20.0, 20.0]);
}

#[test]
fn a_long_gap_is_not_bridged() {
    let line = line(&[(0.0, 10.0), (10.0, 10.0), (30.0, 10.0), (31.0, 10.0)]);
    let area = line.area(0.0, 31.0);
    assert_eq!((area.sum, area.covered_s), (110.0, 11.0));
}

#[test]
fn counters_grow_from_change_to_change() {
    let growth = |points: &[(f64, f64)], from, to| line(points).growth(from, to);
    let area = |sum, covered_s| Ok(Area { sum, covered_s });
    let even = [(0.0, 100.0), (1.0, 110.0), (2.0, 120.0)];
    assert_eq!(growth(&even, 0.0, 2.0), area(20.0, 2.0));
    assert_eq!(growth(&even, 0.5, 1.5), area(10.0, 1.0));
    assert_eq!(growth(&even, -1.0, 9.0), area(20.0, 2.0));
    // Read anew every three seconds only.
    let seldom = [(0.0, 0.0), (1.0, 0.0), (3.0, 30.0), (4.0, 30.0), (6.0, 60.0), (7.0, 60.0)];
    assert_eq!(growth(&seldom, 0.0, 7.0), area(60.0, 6.0));
    assert_eq!(growth(&seldom, 2.0, 5.0), area(30.0, 3.0));
    assert_eq!(growth(&even, 3.0, 4.0), Err("the counter did not move in this time"));
    assert_eq!(growth(&[(0.0, 5.0), (1.0, 5.0)], 0.0, 1.0), Err("the counter does not move"));
    assert_eq!(growth(&even[..1], 0.0, 1.0), Err("the counter was read once at most"));
    let expected = Err("the counter went back");
    assert_eq!(growth(&[(0.0, 5.0), (1.0, 7.0), (2.0, 1.0)], 0.0, 1.0), expected);
}
