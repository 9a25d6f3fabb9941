//! The devices over the measured interval, and the price of a million tokens: energy of the
//! devices, energy of their host, cost. `devices` makes figures of samples; this module chooses the
//! interval and the tokens.
//!
//! The host's energy is never added to the devices': it is of the machine that this program runs
//! on, and lacks the draw of fans, disks and power supplies.

use devices::{Devices, Recording, SteadyEnergy};

use super::facts::Price;
use super::steady::{SteadyState, Window};
use super::tokens::Tokens;
use model::units::Nanos;

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// The cost of the measured interval, in the currency of the price.
#[model::apply(model::document!)]
pub struct Cost {
    /// The price of an hour.
    pub per_hour: f64,
    /// The currency, where the scenario says it.
    pub currency: Option<String>,
    /// The cost of the interval: its length times the price.
    pub total: Option<f64>,
    /// The cost of a million output tokens of answered requests.
    pub per_million_output_tokens: Option<f64>,
    /// The cost of a million input and output tokens together.
    pub per_million_total_tokens: Option<f64>,
}

/// Tokens of answered requests: output, and input and output together.
#[derive(Clone, Copy)]
pub(super) struct AnswerTokens {
    output: Option<u64>,
    total: Option<u64>,
}

impl AnswerTokens {
    pub(super) fn new(tokens: &Tokens) -> Self {
        let both = tokens.input.total.zip(tokens.output.total);
        AnswerTokens {
            output: tokens.output.total,
            total: both.map(|(input, output)| input.saturating_add(output)),
        }
    }
}

/// Returns the devices' figures over a measurement, with the figures of its tokens and its steady
/// window.
pub(super) fn devices(
    recording: &Recording,
    (from, to): (Nanos, Nanos),
    tokens: AnswerTokens,
    steady: Option<&SteadyState>,
) -> Devices {
    Devices {
        steady: match steady {
            Some(SteadyState::Window(window)) => steady_energy(recording, from, window),
            _ => None,
        },
        ..recording.over(from, to).for_tokens(tokens.output, tokens.total)
    }
}

fn steady_energy(recording: &Recording, origin: Nanos, window: &Window) -> Option<SteadyEnergy> {
    let at = |seconds: f64| origin + Nanos::from_secs_f64(seconds);
    let devices = recording.over(at(window.from_s), at(window.to_s));
    let energy = devices.energy_j?;
    let tokens = window.output_tokens_per_s.filter(|rate| *rate > 0.0);
    Some(SteadyEnergy {
        energy_j: Some(energy),
        mean_power_w: devices.mean_power_w,
        energy_per_million_output_tokens: tokens
            .map(|rate| energy / (rate * window.duration_s) * 1e6),
    })
}

impl Cost {
    /// Computes the cost of a measurement of this many seconds.
    pub(super) fn new(price: &Price, duration_s: Option<f64>, tokens: AnswerTokens) -> Self {
        let total = duration_s.map(|seconds| price.per_hour * seconds / SECONDS_PER_HOUR);
        let each = |tokens: Option<u64>| {
            let tokens = tokens.filter(|tokens| *tokens > 0)?;
            Some(total? / tokens as f64 * 1e6)
        };
        Cost {
            per_hour: price.per_hour,
            currency: price.currency.clone(),
            total,
            per_million_output_tokens: each(tokens.output),
            per_million_total_tokens: each(tokens.total),
        }
    }
}
