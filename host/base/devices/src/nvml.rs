//! NVIDIA's devices on this machine, through NVML (<https://docs.nvidia.com/deploy/nvml-api/>),
//! which comes with the driver and is loaded on first use.
//!
//! Functions and counters that a driver or a device lacks are absent: older drivers lack functions,
//! older devices the energy counter.

mod library;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::reading::{Choice, Device, Facts, Reading, Source};
use library::{Clock, Handle, Library};

pub use library::NvmlError;

/// The library's name where the driver is installed.
pub const LIBRARY: &str = "libnvidia-ml.so.1";

/// The variable with the library's path, where the driver is installed elsewhere.
pub const VARIABLE: &str = "RUNNER_NVML_LIBRARY";

/// The library that [`VARIABLE`] names, else [`LIBRARY`].
fn library() -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    PathBuf::from(named.unwrap_or_else(|| LIBRARY.into()))
}

/// NVML, initialised.
pub struct Nvml {
    library: Library,
    handles: Vec<Handle>,
    facts: Facts,
}

impl Nvml {
    /// Loads NVML and finds the devices. Fails if there is no driver, if it does not work, or if
    /// none of its devices is chosen.
    pub fn open(choice: &Choice) -> Result<Self, NvmlError> {
        Nvml::open_at(&library(), choice)
    }

    /// The same with the library at this path. Errors: as of [`Nvml::open`].
    pub fn open_at(path: &Path, choice: &Choice) -> Result<Self, NvmlError> {
        let library = Library::open(path)?;
        let mut facts = Facts {
            source: "nvml".to_owned(),
            driver: library.driver_version(),
            devices: Vec::new(),
        };
        let mut handles = Vec::new();
        let count = library.count()?;
        for index in 0..count {
            // A lost device does not affect the others.
            let Ok(handle) = library.device(index) else {
                continue;
            };
            let device = Device {
                index: Some(index),
                name: library.name(handle),
                uuid: library.uuid(handle),
                machine: None,
            };
            if choice.has(&device) {
                facts.devices.push(device);
                handles.push(handle);
            }
        }
        if handles.is_empty() {
            Err(NvmlError::NoDevice { count })
        } else {
            Ok(Nvml { library, handles, facts })
        }
    }

    fn reading(&self, device: Handle) -> Result<Reading, String> {
        let library = &self.library;
        let mut first_error = None;
        let error = &mut first_error;
        let milli = |value: u64| value as f64 / 1e3;
        let mut reading = Reading {
            power_w: known(library.power(device), error).map(milli),
            power_limit_w: known(library.power_limit(device), error).map(milli),
            energy_j: known(library.energy(device), error).map(milli),
            temperature_c: known(library.temperature(device), error).map(|it| it as f64),
            sm_clock_mhz: known(library.clock(device, Clock::Sm), error).map(|it| it as f64),
            memory_clock_mhz: known(library.clock(device, Clock::Memory), error)
                .map(|it| it as f64),
            utilization: known(library.utilization(device), error).map(|it| it as f64 / 100.0),
            throttle: known(library.throttle(device), error),
            memory_used: None,
            memory_total: None,
        };
        let memory = known(library.memory(device), error);
        (reading.memory_used, reading.memory_total) = memory.unzip();
        match first_error {
            Some(error) if reading == Reading::default() => Err(error.to_string()),
            _ => Ok(reading),
        }
    }
}

/// The value of a function, if it has any. Keeps the first error.
fn known<T>(result: Result<Option<T>, NvmlError>, first: &mut Option<NvmlError>) -> Option<T> {
    result.unwrap_or_else(|error| {
        first.get_or_insert(error);
        None
    })
}

impl Source for Nvml {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&mut self) -> Result<Vec<Option<Reading>>, String> {
        let readings = self.handles.iter().map(|handle| self.reading(*handle));
        let readings: Vec<Result<Reading, String>> = readings.collect();
        if readings.iter().all(Result::is_err) {
            let error = readings.into_iter().find_map(Result::err);
            Err(error.unwrap_or_default())
        } else {
            Ok(readings.into_iter().map(Result::ok).collect())
        }
    }
}
