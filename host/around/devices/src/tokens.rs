//! Energy and cost of a million tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fold::Telemetry;

const MILLION: f64 = 1e6;

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// Energy and cost of a million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PerTokens {
    /// The energy of the devices, in joules for a million tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_j: Option<f64>,
    /// The energy of the host, in joules for a million tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_j: Option<f64>,
    /// The cost of a million tokens, in the currency of the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// Computes the energy and cost of a million tokens, from an interval with so many tokens, on
/// machines that cost so much an hour. Nothing where there were no tokens.
pub fn per_tokens(telemetry: &Telemetry, tokens: u64, per_hour: Option<f64>) -> PerTokens {
    let millions = tokens as f64 / MILLION;
    let each = |amount: Option<f64>| amount.filter(|_| tokens > 0).map(|it| it / millions);
    let hours = telemetry.duration_s / SECONDS_PER_HOUR;
    PerTokens {
        device_j: each(telemetry.energy_j),
        host_j: each(telemetry.host.as_ref().and_then(|host| host.energy_j)),
        cost: each(per_hour.map(|price| price * hours)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::Host;

    #[test]
    fn of_half_a_million_tokens() {
        let mut telemetry = Telemetry {
            duration_s: 1_800.0,
            energy_j: Some(600_000.0),
            host: Some(Host {
                energy_j: Some(90_000.0),
                ..Host::default()
            }),
            ..Telemetry::default()
        };
        assert_eq!(
            per_tokens(&telemetry, 500_000, Some(2.5)),
            PerTokens {
                device_j: Some(1_200_000.0),
                host_j: Some(180_000.0),
                cost: Some(2.5),
            }
        );
        assert_eq!(per_tokens(&telemetry, 0, Some(2.5)), PerTokens::default());
        telemetry.energy_j = None;
        let per = per_tokens(&telemetry, 500_000, None);
        assert_eq!(
            (per.device_j, per.host_j, per.cost),
            (None, Some(180_000.0), None)
        );
    }
}
