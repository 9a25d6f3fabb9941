//! Lays one scenario over another: flags override the file.
//!
//! Most keys simply replace each other. `[load]` needs care, because one key can contradict
//! another there: a user who asks for a number of requests does not want the file's duration.

use std::collections::BTreeMap;

use super::{
    Arrival, Connection, Dataset, Load, Plugin, Ramp, Report, Sandbox, Scenario, Target, Timeouts,
    Tokenizer, Trace,
};
use reader::Said;
use result::threshold::Threshold;

impl Scenario {
    /// This scenario with `over` laid on it: what `over` sets wins. Free-form tables, headers
    /// and files are merged key by key; lists are replaced as a whole. In `[load]`, `over` also removes
    /// what contradicts it below.
    #[must_use]
    pub fn overlay(self, over: Scenario) -> Scenario {
        let mut sections = self.sections;
        for (path, place) in over.sections {
            sections.entry(path).or_insert(place);
        }
        Scenario {
            name: over.name.or(self.name),
            order: over.order.or(self.order),
            about: self.about.overlay(over.about),
            target: target(self.target, over.target),
            tokenizer: Tokenizer {
                path: over.tokenizer.path.or(self.tokenizer.path),
            },
            backend: Plugin {
                plugin: over.backend.plugin.or(self.backend.plugin),
                config: self.backend.config.overlay(over.backend.config),
            },
            dataset: Dataset {
                plugin: over.dataset.plugin.or(self.dataset.plugin),
                config: self.dataset.config.overlay(over.dataset.config),
                files: merged(self.dataset.files, over.dataset.files),
            },
            load: load(self.load, over.load),
            request: self.request.overlay(over.request),
            connection: Connection {
                http: over.connection.http.or(self.connection.http),
                reuse: over.connection.reuse.or(self.connection.reuse),
                ca_cert: over.connection.ca_cert.or(self.connection.ca_cert),
                insecure: over.connection.insecure.or(self.connection.insecure),
                timestamps: over.connection.timestamps.or(self.connection.timestamps),
            },
            timeouts: Timeouts {
                connect: over.timeouts.connect.or(self.timeouts.connect),
                first_token: over.timeouts.first_token.or(self.timeouts.first_token),
                token_gap: over.timeouts.token_gap.or(self.timeouts.token_gap),
                request: over.timeouts.request.or(self.timeouts.request),
            },
            scorers: over.scorers.or(self.scorers),
            report: Report {
                percentiles: over.report.percentiles.or(self.report.percentiles),
                server_metrics: over.report.server_metrics.or(self.report.server_metrics),
            },
            goodput: merged(self.goodput, over.goodput),
            thresholds: thresholds(self.thresholds, over.thresholds),
            sandbox: Sandbox {
                component: over.sandbox.component.or(self.sandbox.component),
                functions: over.sandbox.functions.or(self.sandbox.functions),
                table: over.sandbox.table.or(self.sandbox.table),
                nesting: over.sandbox.nesting.or(self.sandbox.nesting),
                compile: over.sandbox.compile.or(self.sandbox.compile),
                memory: over.sandbox.memory.or(self.sandbox.memory),
                backend_call: over.sandbox.backend_call.or(self.sandbox.backend_call),
                dataset_call: over.sandbox.dataset_call.or(self.sandbox.dataset_call),
                scorer_call: over.sandbox.scorer_call.or(self.sandbox.scorer_call),
                returned: over.sandbox.returned.or(self.sandbox.returned),
            },
            sections,
        }
    }
}

fn target(below: Target, over: Target) -> Target {
    let headers = over
        .headers
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value));
    Target {
        base_url: over.base_url.or(below.base_url),
        model: over.model.or(below.model),
        api_key_env: over.api_key_env.or(below.api_key_env),
        wait_ready: over.wait_ready.or(below.wait_ready),
        headers: merged(below.headers, headers),
    }
}

/// All thresholds of both; for a figure that `over` has a threshold on, only that one.
fn thresholds(below: Vec<Said<String>>, over: Vec<Said<String>>) -> Vec<Said<String>> {
    let subject = |said: &Said<String>| {
        let threshold = said.value.parse::<Threshold>().ok();
        threshold.map(|threshold| threshold.subject())
    };
    let replaced: Vec<_> = over.iter().filter_map(subject).collect();
    let kept = below
        .into_iter()
        .filter(|said| subject(said).is_none_or(|own| !replaced.contains(&own)));
    kept.chain(over).collect()
}

fn merged<T>(
    mut below: BTreeMap<String, T>,
    over: impl IntoIterator<Item = (String, T)>,
) -> BTreeMap<String, T> {
    below.extend(over);
    below
}

fn load(mut below: Load, over: Load) -> Load {
    if over.requests.is_some() {
        below.duration = None;
    }
    if over.duration.is_some() {
        below.requests = None;
    }
    // A time scale suits whatever is played below, a trace or the dataset's own times.
    let only_scales = over.arrival.is_none()
        && over.trace.file.is_none()
        && over.trace.time_scale.is_some()
        && below.meant_arrival() == Some(Arrival::Dataset);
    if let Some(means) = over.meant_arrival().filter(|_| !only_scales) {
        give_way(&mut below, &over, means);
    }
    Load {
        requests: over.requests.or(below.requests),
        duration: over.duration.or(below.duration),
        arrival: over.arrival.or(below.arrival),
        rate: over.rate.or(below.rate),
        burstiness: over.burstiness.or(below.burstiness),
        normalise: over.normalise.or(below.normalise),
        ramp: Ramp {
            shape: over.ramp.shape.or(below.ramp.shape),
            from: over.ramp.from.or(below.ramp.from),
            to: over.ramp.to.or(below.ramp.to),
            over: over.ramp.over.or(below.ramp.over),
        },
        stages: over.stages.or(below.stages),
        trace: Trace {
            file: over.trace.file.or(below.trace.file),
            time_scale: over.trace.time_scale.or(below.trace.time_scale),
        },
        concurrency: over.concurrency.or(below.concurrency),
        think_time: over.think_time.or(below.think_time),
        think_spread: over.think_spread.or(below.think_spread),
        max_in_flight: over.max_in_flight.or(below.max_in_flight),
        warmup: over.warmup.or(below.warmup),
        flush_cache: over.flush_cache.or(below.flush_cache),
        seed: over.seed.or(below.seed),
    }
}

/// Removes what an arrival set above has no use for below, and of two ways to set a
/// rate the lower one.
fn give_way(below: &mut Load, over: &Load, means: Arrival) {
    // If no arrival is named above, the file decides how requests are spread, provided that its
    // arrival has a rate; a burstiness does not leave that open.
    let open = |arrival: &Arrival| {
        let leaves = over.arrival.is_none() && over.burstiness.is_none();
        leaves && arrival.has_rate() && means.has_rate()
    };
    let spread = below.meant_arrival().filter(open).unwrap_or(means);
    below.arrival = below
        .arrival
        .take()
        .filter(|arrival| arrival.value == spread);
    if spread != Arrival::Gamma {
        below.burstiness = None;
    }
    if !matches!(spread, Arrival::Gamma | Arrival::Poisson) {
        below.normalise = None;
    }
    match means {
        Arrival::Trace => {}
        Arrival::Dataset => below.trace.file = None,
        _ => below.trace = Trace::default(),
    }
    if means == Arrival::Closed {
        below.max_in_flight = None;
    } else {
        below.concurrency = None;
        (below.think_time, below.think_spread) = (None, None);
    }
    let (rate, ramp, stages) = (
        over.rate.is_some(),
        over.ramp.place().is_some(),
        over.stages.is_some(),
    );
    let keeps = means.has_rate();
    below.rate = below
        .rate
        .take()
        .filter(|rate| keeps && !ramp && !stages && rate.value.is_finite());
    if !keeps || rate || stages {
        below.ramp = Ramp::default();
    }
    if !keeps || rate || ramp {
        below.stages = None;
    }
    if ramp || stages {
        below.normalise = None;
    }
}
