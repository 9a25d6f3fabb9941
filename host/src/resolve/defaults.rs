//! The parts of a plan that need nothing but the scenario: what it says, and what holds where it
//! says nothing.

use super::config_json;
use crate::arrival;
use crate::drive::Timeouts;
use crate::metric::Objective;
use crate::plan::{Amount, Load, RequestOptions};
use crate::plugin::sandbox::Limits;
use crate::scenario::{Arrival, Said, Scenario};
use crate::units::Nanos;

/// Requests when nobody says how many, as `vllm bench serve` and SGLang's client have it.
const REQUESTS: u64 = 1000;

/// How many requests, and when: all at once where nobody says, after one to warm up.
pub fn load_of(scenario: &Scenario) -> Load {
    let load = &scenario.load;
    let rate = load.rate.as_ref().map_or(f64::INFINITY, |said| said.value);
    let arrival = match load.meant_arrival().unwrap_or(Arrival::Inf) {
        Arrival::Inf => arrival::Arrival::Inf,
        Arrival::Constant => arrival::Arrival::Constant { rate },
        Arrival::Poisson => arrival::Arrival::Poisson { rate },
        Arrival::Closed => arrival::Arrival::Closed {
            concurrency: load
                .concurrency
                .as_ref()
                .map_or(1, |said| narrow(said.value)),
        },
    };
    let amount = match (&load.duration, &load.requests) {
        (Some(duration), _) => Amount::Duration(duration.value.0.into()),
        (None, Some(requests)) => Amount::Requests(requests.value),
        (None, None) => Amount::Requests(REQUESTS),
    };
    Load {
        amount,
        arrival,
        max_in_flight: load.max_in_flight.as_ref().map(|said| narrow(said.value)),
        warmup: load.warmup.as_ref().map_or(1, |said| narrow(said.value)),
        seed: load.seed.as_ref().map_or(1, |said| said.value),
    }
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// What is asked of every request: streamed and as long as asked, unless said otherwise.
pub fn request_options(scenario: &Scenario) -> RequestOptions {
    let request = &scenario.request;
    RequestOptions {
        stream: request.stream.as_ref().is_none_or(|said| said.value),
        ignore_eos: request.ignore_eos.as_ref().is_none_or(|said| said.value),
        temperature: request.temperature.as_ref().map(|said| said.value),
        extra_body: (!request.extra_body.is_empty()).then(|| config_json(&request.extra_body)),
    }
}

/// When to give up.
pub fn timeouts(scenario: &Scenario) -> Timeouts {
    let said = &scenario.timeouts;
    let or = |span: &Option<Said<crate::duration::Span>>, seconds: u64| {
        span.as_ref()
            .map_or(Nanos(seconds * 1_000_000_000), |said| said.value.0.into())
    };
    Timeouts {
        connect: or(&said.connect, 10),
        first_token: said.first_token.as_ref().map(|said| said.value.0.into()),
        token_gap: or(&said.token_gap, 600),
        request: or(&said.request, 6 * 3600),
    }
}

/// The percentiles to report, in percent.
pub fn percentiles(scenario: &Scenario) -> Vec<f64> {
    match &scenario.report.percentiles {
        Some(said) => said.value.iter().map(|said| said.value).collect(),
        None => vec![90.0, 95.0, 99.0],
    }
}

/// What a request must keep to, to be good.
pub fn goodput(scenario: &Scenario) -> Vec<Objective> {
    let said = scenario.goodput.iter();
    said.map(|(metric, most)| Objective {
        metric: metric.clone(),
        at_most_ms: most.value,
    })
    .collect()
}

/// What plugins may use.
pub fn limits(scenario: &Scenario) -> Limits {
    let said = &scenario.sandbox;
    let default = Limits::default();
    let span = |span: &Option<Said<crate::duration::Span>>, default: u64| {
        span.as_ref().map_or(default, |said| {
            u64::try_from(said.value.0.as_millis()).unwrap_or(u64::MAX)
        })
    };
    Limits {
        memory_bytes: said
            .memory
            .as_ref()
            .map_or(default.memory_bytes, |s| s.value.0),
        returned_bytes: said
            .returned
            .as_ref()
            .map_or(default.returned_bytes, |s| s.value.0),
        backend_call_ms: span(&said.backend_call, default.backend_call_ms),
        dataset_call_ms: span(&said.dataset_call, default.dataset_call_ms),
        scorer_call_ms: span(&said.scorer_call, default.scorer_call_ms),
    }
}
