//! `[run]`, `[cost]` and `[machines]`: the watch on devices, and the machines' figures.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Fate::{May, Silent};
use crate::field::{Maybe, Value};
use crate::key::{heading::RESULT, plan};
use crate::table::table;
use model::duration::Span;
use reader::Located;

table! {
    /// `[run]`: the watch on devices during the run.
    pub struct Run {
        /// Sample power, energy, clocks, temperature and memory of the devices: none, nvml
        /// (NVIDIA's devices of this machine), or the URL of a page of DCGM's exporter, such as
        /// http://HOST:9400/metrics.
        ///
        /// The run does not begin if they cannot be read.
        device_metrics: Maybe<DeviceMetrics> = DeviceMetrics::None
            => plan("device-metrics.from", Silent).flag("device-metrics", "SOURCE", RESULT);
        /// Time from one sample of the devices to the next, from 10ms to 1m.
        ///
        /// An exporter reads its devices every 30 seconds, unless it is started with a shorter
        /// `--collect-interval`.
        device_interval: Maybe<Span>
            => plan("device-metrics.every", Silent)
                .flag("device-interval", "TIME", RESULT)
                .otherwise("100ms from NVML, 1s from a page");
        /// The devices that serve, by their numbers or the beginnings of their UUIDs, as in 0,1.
        ///
        /// The power of other devices in the machine would count as the engine's.
        devices: Maybe<Vec<Located<String>>>
            => plan("device-metrics.only", Silent)
                .flag("devices", "LIST", RESULT)
                .delimiter(',')
                .otherwise("all of them");
    }
}

table! {
    /// `[cost]`: the cost of a million tokens.
    pub struct Cost {
        /// Cost per hour of the devices, or of the machine that they are in; the result then has
        /// the cost of a million tokens.
        per_hour: Maybe<f64>
            => plan("cost.per-hour", May).flag("cost-per-hour", "NUMBER", RESULT);
        /// The currency of the cost, such as EUR, for readers of the result.
        currency: Maybe<String>
            => plan("cost.currency", May).flag("cost-currency", "LABEL", RESULT);
    }
}

table! {
    /// `[machines]`: the machines that serve, for figures of agents.
    pub struct Machines {
        /// Number of devices that serve, for jobs and agents per device.
        devices: Maybe<u64>
            => plan("machines.devices", May)
                .flag("machine-devices", "N", RESULT)
                .otherwise("the devices that are sampled");
        /// Power in watts, such as the power of the whole rack, for agents per megawatt.
        power_w: Maybe<f64>
            => plan("machines.power-w", May)
                .flag("machine-power-w", "WATTS", RESULT)
                .otherwise("the sampled devices' mean power");
    }
}

/// The source of the devices' telemetry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub enum DeviceMetrics {
    /// Nothing is sampled.
    #[default]
    None,
    /// NVIDIA's devices of this machine, through NVML.
    Nvml,
    /// The page of DCGM's exporter at this URL.
    Page(String),
}

impl fmt::Display for DeviceMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceMetrics::None => "none",
            DeviceMetrics::Nvml => "nvml",
            DeviceMetrics::Page(url) => url,
        })
    }
}

impl From<DeviceMetrics> for String {
    fn from(from: DeviceMetrics) -> String {
        from.to_string()
    }
}

impl TryFrom<String> for DeviceMetrics {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        DeviceMetrics::parse(&text)
    }
}

impl Value for DeviceMetrics {
    fn expected() -> String {
        "\"none\", \"nvml\", or the URL of a page of DCGM's exporter, such as \"http://127.0.0.1:9400/metrics\""
            .to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(DeviceMetrics::None),
            "nvml" => Ok(DeviceMetrics::Nvml),
            url if url.starts_with("http://") || url.starts_with("https://") => {
                Ok(DeviceMetrics::Page(url.to_owned()))
            }
            _ => Err(format!("expected {}", Self::expected())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::plan::WatchedDevices;
    use model::units::Nanos;

    fn wrong(text: &str) -> String {
        let read = Scenario::parse("s.toml", text).and_then(|scenario| scenario.validate());
        read.err().map_or(String::new(), |error| error.to_string())
    }

    #[test]
    fn wrong_values_name_the_possible_values() {
        let query = "run.device-metrics = \"http://gpu:9400/metrics?x=1\"";
        let possible = "\"none\", \"nvml\", or the URL of a page";
        for (text, parts) in [
            ("run.device-metrics = \"dcgm\"", &["run.device-metrics", possible][..]),
            ("run.device-metrics = true", &["run.device-metrics", "\"none\""]),
            (query, &["run.device-metrics", "a URL without a query"]),
            ("run.device-interval = \"1ms\"", &["from 10ms to 1m"]),
            ("run.device-interval = \"61s\"", &["from 10ms to 1m"]),
            ("cost.per-hour = 0", &["cost.per-hour", "a number above zero"]),
            ("machines.devices = 0", &["machines.devices", "a whole number from 1"]),
            ("machines.power-w = 0", &["machines.power-w", "a number above zero"]),
            ("cost.per-hour = -2.5", &["a number above zero"]),
            ("cost.per-hour = inf", &["a number above zero"]),
            ("cost = { per-hour = 1, currency = \"in euros\" }", &["at most 8 letters"]),
            ("cost.currency = \"EUR\"", &["`cost.per-hour` is not", "--cost-per-hour"]),
        ] {
            let error = wrong(text);
            for part in parts {
                assert!(error.contains(part), "{text}: {error}");
            }
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = wrong("run.device-metrics = \"http://me:hunter2@gpu:9400/metrics\"");
        assert!(error.contains("user name or password"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_default_interval_follows_the_source() {
        let page = DeviceMetrics::Page("http://gpu:9400/metrics".to_owned());
        assert_eq!(WatchedDevices::usual(&DeviceMetrics::Nvml), Nanos(100_000_000));
        assert_eq!(WatchedDevices::usual(&page), Nanos(1_000_000_000));
        for from in [DeviceMetrics::None, DeviceMetrics::Nvml, page] {
            assert_eq!(DeviceMetrics::parse(&from.to_string()), Ok(from));
        }
    }
}
