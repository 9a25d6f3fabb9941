//! The devices of a lab's machine, and whether an engine has given their memory back.

use std::sync::Mutex;

use devices::nvml::Nvml;
use devices::{Choice, Reading, Source, held};
use launch::Memory;

/// The devices, if their driver is here.
pub(crate) struct Devices(Option<Mutex<Nvml>>);

/// The readings of the devices before an engine was started.
#[derive(Default)]
pub(crate) struct Baseline(Option<Vec<Option<Reading>>>);

impl Devices {
    /// The devices that NVML knows; none without it.
    pub(crate) fn here() -> Self {
        Devices(Nvml::open(&Choice::All).ok().map(Mutex::new))
    }

    /// The devices' names, and their driver's version.
    pub(crate) fn facts(&self) -> (Vec<String>, Option<String>) {
        self.with(|nvml| {
            let facts = nvml.facts();
            let names = facts.devices.iter().enumerate();
            let names = names.map(|(place, device)| {
                let label = device.label(place);
                device.name.clone().unwrap_or(label)
            });
            (names.collect(), facts.driver.clone())
        })
        .unwrap_or_default()
    }

    pub(crate) fn look(&self) -> Baseline {
        Baseline(self.with(|nvml| nvml.read().ok()).flatten())
    }

    /// Returns whether the devices' memory is as free as before an engine was started.
    pub(crate) fn memory(&self, before: &Baseline) -> Memory {
        let now = self.with(|nvml| Some((nvml.facts().clone(), nvml.read().ok()?)));
        let (Some(before), Some(Some((facts, now)))) = (&before.0, now) else {
            return Memory::Unknown;
        };
        match held(&facts, before, &now) {
            None => Memory::Unknown,
            Some(held) if held.is_empty() => Memory::Free,
            Some(held) => Memory::Held(held.join("; ")),
        }
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Nvml) -> T) -> Option<T> {
        let nvml = self.0.as_ref()?;
        let mut nvml = nvml.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Some(ask(&mut nvml))
    }
}
