//! Laying one scenario over another: flags override the file.
//!
//! Most keys simply replace each other. `[load]` needs care, because its keys can contradict each
//! other. A number of requests from a flag rules out the file's duration, and a number of warm-up
//! requests rules out the file's way to warm up.

use crate::field::Field;
use crate::{Arrival, Load, Ramp, Scenario, Trace};
use model::session::Warming;

impl Scenario {
    /// This scenario with `over` laid on it. Free-form tables, headers and files are merged key by
    /// key; lists are replaced whole. In `[load]`, `over` also removes keys that contradict it.
    pub fn overlay(mut self, over: Scenario) -> Scenario {
        make_way(&mut self.load, &over.load);
        self.merged(over)
    }
}

/// Removes the keys below that contradict keys above.
fn make_way(below: &mut Load, over: &Load) {
    if over.requests.is_some() {
        below.duration = None;
    }
    if over.duration.is_some() {
        below.requests = None;
    }
    if over.warmup.is_some() {
        below.warming = None;
    }
    if let Some(warming) = &over.warming
        && warming.value != Warming::Requests
    {
        below.warmup = None;
    }
    // A time scale fits a trace and the dataset's own times.
    let only_scales = over.arrival.is_none()
        && over.trace.file.is_none()
        && over.trace.time_scale.is_some()
        && below.meant_arrival() == Some(Arrival::Dataset);
    if let Some(means) = over.meant_arrival().filter(|_| !only_scales) {
        give_way(below, over, means);
    }
}

/// Removes the keys below for which an arrival set above has no use, and of two ways to set a rate
/// the lower one.
fn give_way(below: &mut Load, over: &Load, means: Arrival) {
    // If no arrival is named above, the file decides how requests are spread, provided that its
    // arrival has a rate; a burstiness does not leave that open.
    let open = |arrival: &Arrival| {
        let leaves = over.arrival.is_none() && over.burstiness.is_none();
        leaves && arrival.has_rate() && means.has_rate()
    };
    let spread = below.meant_arrival().filter(open).unwrap_or(means);
    below.arrival = below.arrival.take().filter(|arrival| arrival.value == spread);
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
    let (rate, ramp, stages) =
        (over.rate.is_some(), over.ramp.place().is_some(), over.stages.is_some());
    let keeps = means.has_rate();
    below.rate =
        below.rate.take().filter(|rate| keeps && !ramp && !stages && rate.value.is_finite());
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
