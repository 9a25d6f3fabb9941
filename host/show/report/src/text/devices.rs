//! The activity and power of the devices, and the cost of the run.

use super::block::Block;
use crate::sections::{self, GIB};
use result::summary::Summary;

/// Power and energy of all devices together.
pub(super) fn headline(block: &mut Block, summary: &Summary) {
    let Some(devices) = &summary.devices else { return };
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
    block.section("Devices");
    block.rows(sections::devices(summary));
    if summary.devices.as_ref().is_some_and(|devices| devices.each.len() > 1) {
        each(block, summary);
    }
    let (notes, host_note) = sections::device_notes(summary);
    notes.iter().chain(&host_note).for_each(|note| block.prose(note));
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

pub(super) fn cost(block: &mut Block, summary: &Summary) {
    block.section("Cost");
    block.rows(sections::cost(summary));
}
