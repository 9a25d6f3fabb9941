//! The devices of a plan: the source of their telemetry, and the interval of readings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::DeviceMetrics;
use model::units::Nanos;

/// The time between two readings by NVML, in nanoseconds. Most drivers renew them as often.
const NVML: Nanos = Nanos(100_000_000);

/// The time between two readings of a page, in nanoseconds. An exporter renews it no more often.
const PAGE: Nanos = Nanos(1_000_000_000);

/// Devices that are sampled while a run goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WatchedDevices {
    /// The source of their telemetry: `nvml`, or the URL of a page of DCGM's exporter.
    pub from: DeviceMetrics,
    /// The time from one sample to the next, in nanoseconds.
    pub every: Nanos,
    /// The numbers of these devices, or the beginnings of their UUIDs; all if the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

impl WatchedDevices {
    /// Returns the interval at which devices are read if the scenario does not say.
    pub fn usual(from: &DeviceMetrics) -> Nanos {
        match from {
            DeviceMetrics::None | DeviceMetrics::Nvml => NVML,
            DeviceMetrics::Page(_) => PAGE,
        }
    }
}
