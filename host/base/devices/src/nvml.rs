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
use library::{Handle, Library};

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
        // A lost device does not affect the others.
        let (count, found) = library.devices()?;
        for (index, handle) in found {
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
}

impl Source for Nvml {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&mut self) -> Result<Vec<Option<Reading>>, String> {
        let readings = self.handles.iter().map(|handle| self.library.reading(*handle));
        let readings: Vec<Result<Reading, NvmlError>> = readings.collect();
        match readings.first() {
            Some(Err(error)) if readings.iter().all(Result::is_err) => Err(error.to_string()),
            _ => Ok(readings.into_iter().map(Result::ok).collect()),
        }
    }
}
