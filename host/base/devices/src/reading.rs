//! Readings of a device at one instant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Device {
    /// Its number on its machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Product name, such as `NVIDIA H100 80GB HBM3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Identifier that no other device has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The machine, where the source names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

/// The devices, and the source of this list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Facts {
    /// `nvml` or `dcgm`.
    pub source: String,
    /// The driver's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The devices, in the order of every sample.
    pub devices: Vec<Device>,
}

/// Readings of a device at one instant. A quantity that it does not report is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Reading {
    /// Power that it draws, in watts. Some devices give the mean over the last second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// Power limit, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Energy drawn since some instant, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// Its temperature, in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// The clock of its processors, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<f64>,
    /// The clock of its memory, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<f64>,
    /// Memory in use, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_used: Option<u64>,
    /// Size of its memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_total: Option<u64>,
    /// The share of the time just past in which anything ran on it, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// The reasons why its clock is below its maximum, as the bits of [`Reason`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<u64>,
}

model::words! {
    /// The reason why a device's clock is below its maximum: NVML's `nvmlClocksEventReasons`, which
    /// DCGM has with the same bits. A device that is idle, or whose user set its clock, is not
    /// throttled, so these reasons are not among them.
    pub enum Reason {
        /// It draws as much as it may. A device that is fully used usually does.
        PowerCap = "power-cap",
        /// It is too hot, says its driver.
        Thermal = "thermal",
        /// It is too hot, or draws too much, say its own circuits: the clock is halved at least.
        HardwareSlowdown = "hardware-slowdown",
        /// It is too hot, say its own circuits.
        HardwareThermal = "hardware-thermal",
        /// The power supply asks for less.
        PowerBrake = "power-brake",
        /// It waits for slower devices of its group.
        SyncBoost = "sync-boost",
    }
}

impl Reason {
    /// Its bit in `nvmlClocksEventReasons`.
    pub fn bit(self) -> u64 {
        match self {
            Reason::PowerCap => 0x04,
            Reason::HardwareSlowdown => 0x08,
            Reason::SyncBoost => 0x10,
            Reason::Thermal => 0x20,
            Reason::HardwareThermal => 0x40,
            Reason::PowerBrake => 0x80,
        }
    }

    /// True if cooling or the power supply is at fault, so that a healthy machine of the same kind
    /// does not have this reason. A device's power limit is its own property.
    pub fn is_fault(self) -> bool {
        !matches!(self, Reason::PowerCap | Reason::SyncBoost)
    }
}

pub trait Source: Send {
    /// Returns the devices. Devices may be added, and keep their places.
    fn facts(&self) -> &Facts;

    /// A reading of each device, in the order of the facts; absent where the device gave none.
    /// Fails if nothing can be read. The text is the reason.
    fn read(&mut self) -> Result<Vec<Option<Reading>>, String>;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    #[default]
    All,
    /// Devices with these numbers or beginnings of UUIDs.
    Some(Vec<String>),
}

impl Choice {
    /// Reads a list as `CUDA_VISIBLE_DEVICES` has them: `0,2` or `GPU-5b4e07f6,GPU-ef6e`. Numbers
    /// are the bus's, as in CUDA with `CUDA_DEVICE_ORDER=PCI_BUS_ID` alone.
    pub fn parse(list: &str) -> Self {
        let words = list.split(',').map(str::trim);
        Choice::Some(words.filter(|word| !word.is_empty()).map(str::to_owned).collect())
    }

    pub fn has(&self, device: &Device) -> bool {
        let Choice::Some(list) = self else { return true };
        list.iter().any(|word| match word.parse::<u32>() {
            Ok(index) => device.index == Some(index),
            Err(_) => device.uuid.as_ref().is_some_and(|uuid| uuid.starts_with(word)),
        })
    }
}

/// Names the devices whose memory in use grew since before the start of an engine, by more than
/// drivers vary (256 MiB). Empty if none grew; absent if no device states its memory in use.
pub fn held(
    facts: &Facts,
    before: &[Option<Reading>],
    now: &[Option<Reading>],
) -> Option<Vec<String>> {
    const VARIES: u64 = 256 << 20;
    let used =
        |readings: &[Option<Reading>], at: usize| readings.get(at).copied().flatten()?.memory_used;
    let mut known = false;
    let mut held = Vec::new();
    for (at, device) in facts.devices.iter().enumerate() {
        let (Some(before), Some(now)) = (used(before, at), used(now, at)) else { continue };
        known = true;
        if now > before.saturating_add(VARIES) {
            let more = (now - before) as f64 / f64::from(1 << 30);
            held.push(format!(
                "device {} has {more:.1} GiB more in use than before the engine was started",
                device.label(at)
            ));
        }
    }
    known.then_some(held)
}

impl Device {
    /// Returns its name in a sentence: its number, or its place among the others.
    pub fn label(&self, place: usize) -> String {
        let index = self.index.map_or(place as u64, u64::from);
        match &self.machine {
            Some(machine) => format!("{index} of {machine}"),
            None => index.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: u32, uuid: &str) -> Device {
        Device { index: Some(index), uuid: Some(uuid.to_owned()), ..Device::default() }
    }

    #[test]
    fn devices_are_chosen_by_number_or_uuid() {
        let devices = [device(0, "GPU-aa"), device(1, "GPU-ab"), device(10, "GPU-b")];
        for (list, chosen) in [
            ("0", vec![0]),
            ("1, 10", vec![1, 10]),
            ("GPU-a", vec![0, 1]),
            ("GPU-b,0", vec![0, 10]),
            ("7", vec![]),
            ("", vec![]),
        ] {
            let choice = Choice::parse(list);
            let found = devices.iter().filter(|device| choice.has(device));
            let found: Vec<u32> = found.filter_map(|device| device.index).collect();
            assert_eq!(found, chosen, "{list}");
        }
        assert!(devices.iter().all(|device| Choice::All.has(device)));
    }

    #[test]
    fn every_reason_has_a_bit_of_its_own() {
        let bits: u64 = Reason::ALL.iter().map(|reason| reason.bit()).sum();
        assert_eq!(bits, 0xfc, "the sum of different powers of two");
    }

    #[test]
    fn names_devices_whose_memory_is_still_in_use() {
        let facts =
            Facts { devices: vec![device(0, "GPU-a"), device(3, "GPU-b")], ..Facts::default() };
        let used = |bytes: u64| Some(Reading { memory_used: Some(bytes), ..Reading::default() });
        let before = [used(1 << 30), used(0)];
        assert_eq!(held(&facts, &before, &[used(5 << 28), used(0)]), Some(vec![]));
        assert_eq!(
            held(&facts, &before, &[used(1 << 20), used(3 << 30)]),
            Some(vec![
                "device 3 has 3.0 GiB more in use than before the engine was started".to_owned()
            ])
        );
        assert_eq!(held(&facts, &before, &[None, Some(Reading::default())]), None);
        assert_eq!(held(&facts, &[], &[used(1), used(1)]), None);
    }
}
