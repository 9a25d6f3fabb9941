//! The parts of a plan that need only the scenario: its values, and defaults for other keys.

use std::num::NonZeroU32;

use super::config_json;
use model::arrival::{self, Spread, Think, Trace, length_for};
use model::connection::Timeouts;
use model::duration::Span;
use model::file::PlannedFile;
use model::identity::{OFF, RequestIds};
use model::plugin::Limits;
use model::session::{AfterFailure, Cache, Warming};
use model::units::Nanos;
use reader::Located;
use result::metric::Objective;
use result::summary::{Machines, Price};
use result::threshold::Threshold;
use scenario::plan::{Amount, Cancel, Controls, Lanes, Load, RequestOptions, WatchedDevices};
use scenario::{Arrival, DeviceMetrics, Ramp, Scenario, ServerSeries, Stage};

/// Returns the number of requests and their due times: by default all at once, after one to warm
/// up. Stages and traces determine their own length.
pub(crate) fn load_of(scenario: &Scenario, trace: Option<&(PlannedFile, Trace)>) -> Load {
    let load = &scenario.load;
    let otherwise = match (&load.stages, trace) {
        (Some(stages), _) => Amount::Duration(
            planned(stages).iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length),
        ),
        (None, Some((_, trace))) => Amount::Requests(trace.len() as u64),
        (None, None) => Amount::Requests(load.requests()),
    };
    let amount = match (value(&load.duration), value(&load.requests), value(&load.sessions)) {
        (Some(duration), _, _) => Amount::Duration(duration.0.into()),
        (None, Some(requests), _) => Amount::Requests(requests),
        (None, None, Some(sessions)) => Amount::Sessions(sessions),
        (None, None, None) => otherwise,
    };
    let planned = Load {
        amount,
        arrival: arrival_of(load, amount, trace),
        max_in_flight: value(&load.max_in_flight).map(narrow),
        users: load.users(),
        session_memory: load.session_memory().0,
        salted: load.meant_cache() == Cache::Salt,
        salt: None,
        warmup: if load.lanes.place().is_some() { 0 } else { narrow(load.warmup()) },
        warming: load.warming(),
        warmup_limit: None,
        lanes: lanes(&load.lanes),
        seed: load.seed(),
    };
    match planned.warming {
        Warming::Requests => planned,
        Warming::LikeLoad | Warming::UntilStable => Load {
            warmup: planned.wave(),
            warmup_limit: (planned.warming == Warming::UntilStable)
                .then(|| load.warmup_limit().0.into()),
            ..planned
        },
    }
}

fn lanes(lanes: &scenario::Lanes) -> Option<Lanes> {
    Some(Lanes {
        start_at: lanes.shares()?,
        warmup: narrow(lanes.warmup()),
        warmup_grace: lanes.warmup_grace().0.into(),
        idle_most: value(&lanes.idle_most).map(|most| most.0.into()),
        salt: lanes.salt(),
    })
}

fn arrival_of(
    load: &scenario::Load,
    amount: Amount,
    trace: Option<&(PlannedFile, Trace)>,
) -> arrival::Arrival {
    let rate = value(&load.rate).unwrap_or(f64::INFINITY);
    let burstiness = value(&load.burstiness).unwrap_or(1.0);
    let normalise = load.normalise();
    let meant = load.meant_arrival().unwrap_or_else(|| load.arrival());
    let spread = match meant {
        Arrival::Constant => Spread::Constant,
        Arrival::Gamma => Spread::Gamma { burstiness },
        _ => Spread::Poisson,
    };
    match meant {
        meant if meant.has_rate() && load.stages.is_some() => arrival::Arrival::Stages {
            spread,
            stages: planned(load.stages.as_deref().unwrap_or_default()),
        },
        meant if meant.has_rate() && load.ramp.place().is_some() => {
            arrival::Arrival::Ramp { spread, ramp: ramp_of(&load.ramp, amount) }
        }
        Arrival::Constant => arrival::Arrival::Constant { rate },
        Arrival::Poisson => arrival::Arrival::Poisson { rate, normalise },
        Arrival::Gamma => arrival::Arrival::Gamma { rate, burstiness, normalise },
        Arrival::Closed => arrival::Arrival::Closed {
            concurrency: value(&load.concurrency).map_or(1, narrow),
            think: value(&load.think_time)
                .map(|time| Think { time: time.0.into(), spread: load.think_spread() }),
        },
        // Without its file, the scenario is refused.
        Arrival::Trace => trace.map_or(arrival::Arrival::Inf, |(file, trace)| {
            let time_scale = load.trace.time_scale();
            arrival::Arrival::Trace {
                file: file.clone(),
                time_scale,
                timestamps: trace.len() as u64,
                length: trace.length(time_scale),
                peak: trace.peak(time_scale) as f64,
            }
        }),
        // Its samples are read when everything else is known: see `Resolution::planned_arrivals`.
        Arrival::Dataset => arrival::Arrival::Dataset {
            time_scale: load.trace.time_scale(),
            timestamps: 0,
            first: Nanos::ZERO,
            length: 0.0,
            peak: 0.0,
        },
        Arrival::Inf => arrival::Arrival::Inf,
    }
}

/// A ramp over its own time, else over the run: its duration, or until all its requests are due.
fn ramp_of(ramp: &Ramp, amount: Amount) -> arrival::Stage {
    let [from, to] = [&ramp.from, &ramp.to].map(|end| value(end).unwrap_or(0.0));
    let shape = ramp.shape();
    arrival::Stage {
        from,
        to,
        shape,
        length: match (&ramp.over, amount) {
            (Some(over), _) => over.value.0.into(),
            (None, Amount::Duration(duration)) => duration,
            (None, Amount::Requests(requests) | Amount::Sessions(requests)) => {
                length_for(shape, from, to, requests)
            }
        },
    }
}

/// Stages with their start rates; one that is not set is the end rate of the stage before.
fn planned(stages: &[Located<Stage>]) -> Vec<arrival::Stage> {
    let mut before = 0.0;
    let one = |Located { value: stage, .. }: &Located<Stage>| {
        let to = value(&stage.rate).or(value(&stage.to)).unwrap_or(before);
        let from = value(&stage.rate).or(value(&stage.from)).unwrap_or(before);
        before = to;
        arrival::Stage {
            from,
            to,
            shape: stage.shape(),
            length: value(&stage.length).map_or(Nanos::ZERO, |length| length.0.into()),
        }
    };
    stages.iter().map(one).collect()
}

fn value<T: Copy>(entry: &Option<Located<T>>) -> Option<T> {
    entry.as_ref().map(|entry| entry.value)
}

/// A number that the limits of scenarios have kept small.
pub(super) fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The options of every request: streamed and of the requested length, unless set otherwise.
pub(crate) fn request_options(scenario: &Scenario) -> RequestOptions {
    let request = &scenario.request;
    let whole = |entry: &Option<Located<u64>>| value(entry).map(narrow);
    RequestOptions {
        stream: request.stream(),
        ignore_eos: request.ignore_eos(),
        output_tokens: whole(&request.output_tokens),
        min_output_tokens: whole(&request.min_output_tokens),
        temperature: match request.extra_body.get("temperature") {
            Some(_) => None,
            None => request.temperature().stated(),
        },
        top_p: value(&request.top_p),
        top_k: whole(&request.top_k),
        min_p: value(&request.min_p),
        frequency_penalty: value(&request.frequency_penalty),
        presence_penalty: value(&request.presence_penalty),
        repetition_penalty: value(&request.repetition_penalty),
        sampling_seed: value(&request.sampling_seed),
        stop: texts(&request.stop),
        adapters: texts(&request.adapters),
        adapter_assignment: request.adapter_assignment(),
        system_prompt: (request.system_prompt.as_ref()).map(|entry| entry.value.clone()),
        history: request.history(),
        // Lanes replay a recording, so a failure does not end a stream.
        after_failure: value(&request.after_failure).unwrap_or(match scenario.load.lanes.place() {
            Some(_) => AfterFailure::Continue,
            None => AfterFailure::Drop,
        }),
        cancel: (value(&request.cancel_share).zip(value(&request.cancel_after)))
            .map(|(share, after)| Cancel { share, after: after.0.into() }),
        extra_body: (!request.extra_body.is_empty()).then(|| config_json(&request.extra_body)),
        ids: request_ids(&request.ids),
        // Known once the backend was asked.
        ignored: Vec::new(),
        unforced: false,
    }
}

fn request_ids(ids: &scenario::Ids) -> RequestIds {
    // Names of fields are the same in either case, and plans that say the same are.
    let names = |names: &[Located<String>]| -> Vec<String> {
        let names = names.iter().map(|name| name.value.to_ascii_lowercase());
        names.filter(|name| name != OFF).collect()
    };
    let listed = |entry: &Option<Located<Vec<Located<String>>>>| {
        entry.as_ref().map(|entry| names(&entry.value)).unwrap_or_default()
    };
    RequestIds {
        request: names(&ids.request()),
        session: listed(&ids.session),
        parent: listed(&ids.parent),
        routing_key: listed(&ids.routing_key),
        routing_by: ids.routing_by(),
        prefix: ids.prefix.as_ref().map(|entry| entry.value.clone()),
        form: ids.form(),
        traceparent: ids.traceparent(),
    }
}

fn texts(list: &Option<Located<Vec<Located<String>>>>) -> Vec<String> {
    let texts = list.iter().flat_map(|list| &list.value);
    texts.map(|text| text.value.clone()).collect()
}

pub fn timeouts(scenario: &Scenario) -> Timeouts {
    let timeouts = &scenario.timeouts;
    Timeouts {
        connect: timeouts.connect().0.into(),
        first_token: value(&timeouts.first_token).map(|limit| limit.0.into()),
        token_gap: timeouts.token_gap().0.into(),
        request: timeouts.request().0.into(),
    }
}

/// Returns the requests to targets in addition to the measured ones: none by default.
pub fn controls(scenario: &Scenario) -> Controls {
    Controls {
        wait_ready: value(&scenario.target.wait_ready)
            .map(|limit| limit.0.into())
            .filter(|limit| *limit > Nanos::ZERO),
        flush_cache: scenario.load.meant_cache() == Cache::Flush,
        server_metrics: scenario.report.server_metrics(),
        server_series: server_series(scenario),
        cache_report: scenario.report.cache(),
        page_size: value(&scenario.report.page_size)
            .and_then(|tokens| NonZeroU32::new(narrow(tokens))),
    }
}

/// The time between readings of metrics pages; none unless metrics or a page are asked for.
fn server_series(scenario: &Scenario) -> Option<Nanos> {
    let report = &scenario.report;
    match value(&report.server_series) {
        Some(ServerSeries::None) => None,
        Some(ServerSeries::Every(span)) => Some(span.0.into()),
        None => (report.server_metrics() || scenario.target.metrics_url.is_some())
            .then(|| ServerSeries::USUAL.0.into()),
    }
}

/// Returns the devices to sample: none by default.
pub fn device_metrics(scenario: &Scenario) -> Option<WatchedDevices> {
    let run = &scenario.run;
    let from = run.device_metrics();
    let interval = value(&run.device_interval);
    let every = interval.map_or(WatchedDevices::usual(&from), |interval| interval.0.into());
    (from != DeviceMetrics::None).then(|| WatchedDevices { from, every, only: texts(&run.devices) })
}

pub fn cost(scenario: &Scenario) -> Option<Price> {
    let cost = &scenario.cost;
    Some(Price {
        per_hour: value(&cost.per_hour)?,
        currency: cost.currency.as_ref().map(|entry| entry.value.clone()),
    })
}

pub fn machines(scenario: &Scenario) -> Machines {
    let machines = &scenario.machines;
    Machines { devices: value(&machines.devices).map(narrow), power_w: value(&machines.power_w) }
}

/// The percentiles to report, in percent.
pub fn percentiles(scenario: &Scenario) -> Vec<f64> {
    let percentiles = scenario.report.percentiles().into_iter();
    percentiles.map(|entry| entry.value).collect()
}

/// The SLOs that a good request meets.
pub fn goodput(scenario: &Scenario) -> Vec<Objective> {
    let objective = |(metric, most): (&String, &Located<f64>)| Objective {
        metric: metric.clone(),
        at_most_ms: most.value,
    };
    scenario.goodput.iter().map(objective).collect()
}

/// The thresholds of the run. Those that are malformed were reported before.
pub fn thresholds(scenario: &Scenario) -> Vec<Threshold> {
    let thresholds = scenario.thresholds.iter();
    thresholds.filter_map(|entry| entry.value.parse().ok()).collect()
}

pub fn limits(scenario: &Scenario) -> Limits {
    let sandbox = &scenario.sandbox;
    let millis = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
    Limits {
        component_bytes: sandbox.component().0,
        functions: sandbox.functions(),
        table_elements: sandbox.table(),
        nesting: sandbox.nesting(),
        compile_ms: millis(sandbox.compile()),
        memory_bytes: sandbox.memory().0,
        returned_bytes: sandbox.returned().0,
        backend_call_ms: millis(sandbox.backend_call()),
        dataset_call_ms: millis(sandbox.dataset_call()),
        scorer_call_ms: millis(sandbox.scorer_call()),
    }
}
