//! Findings on the devices.

use super::*;
use ::devices::{Device, Facts, Reading, Recording, Sample};

/// The findings of the sound run, which takes from 1 s to 15.92 s, with a device that says this in
/// each tenth of a second.
fn watched(reading: impl Fn(f64) -> Option<Reading>) -> Vec<Finding> {
    let (mut facts, run) = sound();
    let samples = (0..=170).filter_map(|tenth| {
        let at = f64::from(tenth) / 10.0;
        Some(Sample {
            at_ns: Nanos::from_secs_f64(at),
            devices: vec![Some(reading(at)?)],
            host_j: None,
        })
    });
    facts.devices = Some(Recording {
        facts: Some(Facts {
            source: "nvml".into(),
            driver: None,
            devices: vec![Device { index: Some(3), ..Device::default() }],
        }),
        every_ns: Nanos(100_000_000),
        samples: samples.collect(),
        failed: 2,
        error: Some("GPU is lost".into()),
        ..Recording::default()
    });
    let mut findings = Summary::new(&facts, &run).findings;
    findings.retain(|finding| finding.id != Id::FewSamples);
    findings
}

/// Throttled for this reason during this many tenths of a second.
fn throttled(bit: u64, tenths: f64) -> Vec<(Id, Severity, String)> {
    let found = watched(|at| {
        Some(Reading {
            throttle: Some(if at < 5.0 || at >= 4.99 + tenths / 10.0 { 0 } else { bit }),
            temperature_c: Some(91.0),
            power_limit_w: Some(400.0),
            ..Reading::default()
        })
    });
    found.into_iter().map(|it| (it.id, it.severity, it.seen)).collect()
}

#[test]
fn heat_and_supply_raise_doubts_a_power_limit_does_not() {
    // 0.1 % of 14.92 s is 15 ms, and 1 % is 149 ms.
    for bit in [0x08, 0x20, 0x40, 0x80] {
        assert_eq!(throttled(bit, 0.0), []);
        let found = throttled(bit, 1.0);
        assert_eq!((found[0].0, found[0].1), (Id::DeviceThrottled, Severity::Note));
        let found = throttled(bit, 2.0);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1), (Id::DeviceThrottled, Severity::Suspect));
    }
    let found = throttled(0x20, 15.0);
    let expected =
        "the clock was kept down: device 3 for 10.1 % of the time (thermal, at up to 91 °C)";
    assert_eq!(found[0].2, expected);
    assert_eq!(throttled(0x04, 7.0), []);
    let found = throttled(0x04, 15.0);
    assert_eq!((found[0].0, found[0].1), (Id::DevicePowerCapped, Severity::Note));
    let wanted = "the clock was kept down: device 3 for 10.1 % of the time (power-cap); the lowest limit is 400 W";
    assert_eq!(found[0].2, wanted);
    // Idle, or with the clock that its user set, it is not throttled.
    assert_eq!(throttled(0x03, 100.0), []);
}

#[test]
fn samples_that_are_missing() {
    let lasting_until = |end: f64| watched(|at| (at <= end).then(Reading::default));
    assert_eq!(lasting_until(17.0), []);
    assert_eq!(lasting_until(15.4), [], "3.5 % are missing");
    let found = lasting_until(12.0);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.id, finding.severity), (Id::DeviceGaps, Severity::Note));
    let wanted = "samples are missing: device 3 for 26 % of the time; 2 readings failed, the last with: GPU is lost";
    assert_eq!(finding.seen, wanted);
}
