//! The activity and power of the devices, and the cost of the run.

use super::Part;
use crate::document::{Pair, pairs};
use model::number::{count, percent, significant};
use result::summary::Summary;

const GIB: f64 = (1u64 << 30) as f64;

/// The most devices that a page shows one by one.
const SHOWN: usize = 64;

pub(super) fn devices(summary: &Summary) -> Option<Part> {
    let devices = summary.devices.as_ref()?;
    let with = |value: Option<f64>, unit: &str| {
        value.map(|value| format!("{} {unit}", significant(value, 4)))
    };
    let host = devices.host.as_ref();
    let mut pairs = pairs([
        ("Mean power", with(devices.mean_power_w, "W")),
        ("Largest power", with(devices.max_power_w, "W")),
        ("Energy", with(devices.energy_j, "J")),
        ("Energy per million output tokens", with(devices.energy_per_million_output_tokens, "J")),
        ("Energy per million tokens", with(devices.energy_per_million_total_tokens, "J")),
        (
            "Energy per million output tokens, steady",
            with((devices.steady).and_then(|steady| steady.energy_per_million_output_tokens), "J"),
        ),
        ("Mean utilisation", devices.mean_utilization.map(percent)),
        ("Throttled by heat or supply", devices.throttled_share.map(percent)),
        ("Power of this machine's processors", with(host.and_then(|host| host.mean_power_w), "W")),
        (
            "Their energy per million output tokens",
            with(host.and_then(|host| host.energy_per_million_output_tokens), "J"),
        ),
        ("Readings that failed", devices.failed_readings.map(count)),
        ("Driver", devices.driver.clone()),
    ]);
    for (place, figures) in devices.each.iter().enumerate().take(SHOWN) {
        let known = [
            figures.device.name.clone(),
            with(figures.mean_power_w, "W"),
            with(figures.power_limit_w, "W at most"),
            with(figures.mean_sm_clock_mhz, "MHz"),
            with(figures.max_temperature_c, "°C"),
            with(figures.peak_memory.map(|bytes| bytes as f64 / GIB), "GiB"),
        ];
        let known: Vec<String> = known.into_iter().flatten().collect();
        pairs.push(Pair {
            name: format!("Device {}", figures.device.label(place)),
            value: if known.is_empty() { "no values".to_owned() } else { known.join(", ") },
        });
    }
    let notes = devices.each.iter().enumerate().flat_map(|(place, figures)| {
        let label = figures.device.label(place);
        let notes = figures.notes.iter();
        notes.map(move |note| format!("device {label}: {note}"))
    });
    let host_note = host.and_then(|host| host.note.clone());
    let notes: Vec<String> = notes.take(SHOWN).chain(host_note).collect();
    Some(Part { title: "Devices", words: (!notes.is_empty()).then(|| notes.join("; ")), pairs })
}

pub(super) fn cost(summary: &Summary) -> Option<Part> {
    let cost = summary.cost.as_ref()?;
    let amount = |amount: Option<f64>| {
        let currency = cost.currency.clone();
        let currency = currency.map_or(String::new(), |label| format!(" {label}"));
        Some(format!("{}{currency}", significant(amount?, 4)))
    };
    Some(Part {
        title: "Cost",
        words: None,
        pairs: pairs([
            ("The run", amount(cost.total)),
            ("A million output tokens", amount(cost.per_million_output_tokens)),
            ("A million tokens", amount(cost.per_million_total_tokens)),
            ("An hour", amount(Some(cost.per_hour))),
        ]),
    })
}
