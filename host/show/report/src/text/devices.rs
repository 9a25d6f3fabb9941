//! The activity and power of the devices, and the cost of the run.

use super::block::Block;
use result::summary::Summary;

const GIB: f64 = (1u64 << 30) as f64;

/// Power and energy of all devices together.
pub(super) fn headline(block: &mut Block, summary: &Summary) {
    let Some(devices) = &summary.devices else {
        return;
    };
    block.section("Devices");
    block.figure("Mean device power (W):", devices.mean_power_w);
    block.figure("Device energy (J):", devices.energy_j);
    block.figure(
        "Device energy per 1M output tokens (J):",
        devices.energy_per_million_output_tokens,
    );
}

/// Each device has a line where there are several: power, clock, temperature, memory.
pub(super) fn devices(block: &mut Block, summary: &Summary) {
    let Some(devices) = &summary.devices else {
        return;
    };
    block.section("Devices");
    let names: Vec<&str> =
        (devices.each.iter()).filter_map(|figures| figures.device.name.as_deref()).collect();
    let same = names.iter().all(|name| Some(name) == names.first());
    block.line(
        "Devices:",
        match (names.first(), same) {
            (Some(name), true) => Some(format!("{} x {name}", devices.each.len())),
            _ => Some(devices.each.len().to_string()),
        },
    );
    block.figure("Mean device power (W):", devices.mean_power_w);
    block.figure("Largest device power (W):", devices.max_power_w);
    block.figure("Device energy (J):", devices.energy_j);
    block.figure(
        "Device energy per 1M output tokens (J):",
        devices.energy_per_million_output_tokens,
    );
    block.figure("Device energy per 1M tokens (J):", devices.energy_per_million_total_tokens);
    let steady = devices.steady.and_then(|steady| steady.energy_per_million_output_tokens);
    block.figure("Same, steady, output tokens (J):", steady);
    block.figure(
        "Mean device utilisation (%):",
        devices.mean_utilization.map(|share| share * 100.0),
    );
    block.figure("Highest device temperature (°C):", devices.max_temperature_c);
    block.figure(
        "Peak device memory (GiB):",
        devices.peak_memory_bytes.map(|bytes| bytes as f64 / GIB),
    );
    block.figure(
        "Throttled by heat or supply (%):",
        devices.throttled_share.map(|share| share * 100.0),
    );
    if let Some(host) = &devices.host {
        block.figure("Host processor power (W):", host.mean_power_w);
        block
            .figure("Host energy per 1M output tokens (J):", host.energy_per_million_output_tokens);
    }
    block.line("Device readings that failed:", devices.failed_readings);
    if devices.each.len() > 1 {
        each(block, summary);
    }
    for (place, figures) in devices.each.iter().enumerate() {
        for note in &figures.notes {
            block.prose(&format!("device {}: {note}", figures.device.label(place)));
        }
    }
    if let Some(note) = devices.host.as_ref().and_then(|host| host.note.as_ref()) {
        block.prose(note);
    }
}

fn each(block: &mut Block, summary: &Summary) {
    let devices = summary.devices.iter().flat_map(|devices| &devices.each);
    for (place, figures) in devices.enumerate() {
        let known = [
            figures.mean_power_w.map(|it| format!("{it:.0} W")),
            figures.mean_sm_clock_mhz.map(|it| format!("{it:.0} MHz")),
            figures.max_temperature_c.map(|it| format!("{it:.0} °C")),
            figures.peak_memory.map(|it| format!("{:.1} GiB", it as f64 / GIB)),
        ];
        let known: Vec<String> = known.into_iter().flatten().collect();
        let label = format!("Device {}:", figures.device.label(place));
        block.line(&label, (!known.is_empty()).then(|| known.join(", ")));
    }
}

/// The cost, in the currency of the price.
pub(super) fn cost(block: &mut Block, summary: &Summary) {
    let Some(cost) = &summary.cost else { return };
    let amount = |amount: Option<f64>| {
        let currency = cost.currency.as_ref().map(|label| format!(" {label}"));
        Some(format!("{:.4}{}", amount?, currency.unwrap_or_default()))
    };
    block.section("Cost");
    block.line("Cost of the run:", amount(cost.total));
    block.line("Cost per 1M output tokens:", amount(cost.per_million_output_tokens));
    block.line("Cost per 1M tokens:", amount(cost.per_million_total_tokens));
}
