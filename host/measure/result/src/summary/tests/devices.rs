//! Devices and cost, with exact figures.

use super::*;
use crate::figure::Figure;
use crate::summary::Price;
use ::devices::{Device, EnergyFrom, Facts, Reading, Reason, Recording, Sample};

/// Two answers of 10 tokens in and 4 out, from 1 s to 11 s.
fn run() -> Vec<Exchange> {
    vec![answer(0, 1_000, 2_000, 3_000), answer(1, 1_000, 2_000, 11_000)]
}

/// A sample in each half second from zero to 12 s.
fn recorded(
    devices: usize,
    reading: impl Fn(usize, f64) -> Option<Reading>,
    host: impl Fn(f64) -> Option<f64>,
) -> Recording {
    let samples = (0..=24).map(|half| {
        let second = f64::from(half) / 2.0;
        Sample {
            at_ns: Nanos::from_secs_f64(second),
            devices: (0..devices).map(|device| reading(device, second)).collect(),
            host_j: host(second),
        }
    });
    Recording {
        facts: Some(Facts {
            source: "nvml".into(),
            driver: Some("575".into()),
            devices: vec![Device::default(); devices],
        }),
        host: vec!["package-0".into()],
        every_ns: Nanos(500_000_000),
        samples: samples.collect(),
        ..Recording::default()
    }
}

fn figure(summary: &Summary, name: &str) -> Option<f64> {
    name.parse::<Figure>().unwrap().read(summary)
}

#[test]
fn energy_by_tokens_over_the_measured_interval() {
    let mut facts = facts();
    facts.devices = Some(recorded(
        2,
        |device, second| {
            // Before the measurement the first drew ten times as much: it does not count.
            let energy = match (device, second < 1.0) {
                (0, true) => Some(3_000.0 * second),
                (0, false) => Some(3_000.0 + 300.0 * (second - 1.0)),
                _ => None,
            };
            Some(Reading {
                power_w: Some([310.0, 200.0][device]),
                energy_j: energy,
                temperature_c: Some([70.0, 55.0][device]),
                memory_used: Some([60, 40][device]),
                utilization: Some([1.0, 0.5][device]),
                throttle: Some(if second < 6.0 { 0x20 } else { 0 }),
                ..Reading::default()
            })
        },
        |second| Some(50.0 * second),
    ));
    let summary = Summary::new(&facts, &run());
    let devices = summary.devices.as_ref().unwrap();
    assert_eq!(devices.duration_s, 10.0);
    assert_eq!(devices.each[0].energy_from, Some(EnergyFrom::Counter));
    assert_eq!(devices.each[1].energy_from, Some(EnergyFrom::Power));
    assert_eq!(devices.each[0].throttled.as_ref().unwrap()[&Reason::Thermal], 0.5);
    for (name, expected) in [
        // 300 W by the counter, which has precedence over the power, and 200 W.
        ("devices.energy-j", 5_000.0),
        ("devices.mean-power-w", 500.0),
        ("devices.max-power-w", 510.0),
        ("devices.mean-utilization", 0.75),
        ("devices.max-temperature-c", 70.0),
        ("devices.peak-memory-bytes", 100.0),
        ("devices.throttled-share", 0.5),
        // 8 tokens out, and 20 in.
        ("devices.energy-per-million-output-tokens", 5_000.0 / 8e-6),
        ("devices.energy-per-million-total-tokens", 5_000.0 / 28e-6),
        ("devices.host.energy-j", 500.0),
        ("devices.host.energy-per-million-output-tokens", 500.0 / 8e-6),
        ("devices.host.energy-per-million-total-tokens", 500.0 / 28e-6),
    ] {
        let found = figure(&summary, name).unwrap();
        assert!((found / expected - 1.0).abs() < 1e-12, "{name}: {found}");
    }
    assert_eq!(figure(&summary, "cost.total"), None);
}

#[test]
fn unreported_device_values_are_absent() {
    let mut facts = facts();
    let silent = |_: usize, _: f64| Some(Reading::default());
    facts.devices = Some(recorded(1, silent, |_| None));
    let summary = Summary::new(&facts, &run());
    let devices = summary.devices.as_ref().unwrap();
    assert_eq!(devices.each[0].samples, 21);
    let whole = crate::figure::WHOLE.iter();
    for whole in whole.filter(|whole| whole.name.starts_with("devices.")) {
        assert_eq!(figure(&summary, whole.name), None, "{}", whole.name);
    }
    let json = serde_json::to_value(devices).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["source", "driver", "duration-s", "each", "host"]);
    // Without an exchange there is no interval.
    assert_eq!(Summary::new(&facts, &[] as &[Exchange]).devices, None);
}

#[test]
fn without_tokens_there_is_no_energy_per_token() {
    let mut facts = facts();
    let drawing = |_: usize, _: f64| Some(Reading { power_w: Some(100.0), ..Reading::default() });
    facts.devices = Some(recorded(1, drawing, |_| None));
    facts.run.cost = Some(Price { per_hour: 36.0, currency: None });
    let mut failure = failed(reply(0, 1_000, &[]), Class::HttpStatus, "500");
    failure.ended = Some(ms(11_000));
    let summary = Summary::new(&facts, &[failure]);
    assert_eq!(figure(&summary, "devices.energy-j"), Some(1_000.0));
    assert_eq!(figure(&summary, "cost.total"), Some(0.1));
    for name in ["devices.energy-per-million-output-tokens", "cost.per-million-output-tokens"] {
        assert_eq!(figure(&summary, name), None, "{name}");
    }
}

#[test]
fn cost_needs_no_devices() {
    let mut facts = facts();
    facts.run.cost = Some(Price { per_hour: 7.2, currency: Some("EUR".into()) });
    let summary = Summary::new(&facts, &run());
    assert_eq!(summary.devices, None);
    let cost = summary.cost.as_ref().unwrap();
    assert_eq!(cost.currency.as_deref(), Some("EUR"));
    for (name, expected) in [
        ("cost.total", 0.02),
        ("cost.per-million-output-tokens", 2_500.0),
        ("cost.per-million-total-tokens", 0.02 / 28e-6),
    ] {
        let found = figure(&summary, name).unwrap();
        assert!((found / expected - 1.0).abs() < 1e-12, "{name}: {found}");
    }
}

/// Ten users for 40 seconds, whose answers of ten tokens take a second each: the plateau is ten.
#[test]
fn the_steady_window_has_its_own_energy() {
    let mut exchanges = Vec::new();
    for index in 0..400_u64 {
        // User by user, each a little after the user before.
        let sent = 1_000 + index / 10 * 1_000 + index % 10 * 100;
        let events = [
            (sent + 500, Text, Some(5), 3),
            (sent + 990, Text, Some(5), 3),
            (sent + 990, End, None, 0),
        ];
        let mut exchange = reply(index, sent, &events);
        exchange.usage = output_usage(10);
        exchanges.push(exchange);
    }
    let mut facts = facts();
    facts.run.max_in_flight = Some(10);
    let samples = (0..=84).map(|half| Sample {
        at_ns: Nanos(half * 500_000_000),
        devices: vec![Some(Reading { power_w: Some(250.0), ..Reading::default() })],
        host_j: None,
    });
    facts.devices =
        Some(Recording { samples: samples.collect(), ..recorded(1, |_, _| None, |_| None) });
    let summary = Summary::new(&facts, &exchanges);
    let Some(SteadyState::Window(window)) = &summary.steady_state else {
        panic!("{:?}", summary.steady_state);
    };
    let steady = summary.devices.as_ref().unwrap().steady.unwrap();
    let close = |found: Option<f64>, expected: f64| {
        assert!((found.unwrap() / expected - 1.0).abs() < 1e-9, "{found:?} {expected}");
    };
    close(steady.mean_power_w, 250.0);
    close(steady.energy_j, 250.0 * window.duration_s);
    let rate = window.output_tokens_per_s.unwrap();
    close(steady.energy_per_million_output_tokens, 250.0 / rate * 1e6);
}
