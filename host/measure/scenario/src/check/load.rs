//! Checks that `[load]` makes sense: its values, keys that contradict each other, and the keys that
//! an arrival needs.

use super::super::load::{Arrival, Load, Stage};
use super::limits::{FACTORS, RATES, from_to, is_rate};
use super::{contradicts, unless};
use crate::field::place;
use crate::scenario::Scenario;
use model::arrival::Shape;
use model::session::{Cache, Users};
use reader::words::joined;
use reader::{Located, Place, Problem};

pub fn values(load: &Load, problems: &mut Vec<Problem>) {
    let mut check = |problem: Option<Problem>| problems.extend(problem);
    let expected = format!("{} requests per second, or inf", from_to(&RATES));
    check(unless("load.rate", &load.rate, &expected, |rate| is_rate(*rate)));
    if let Some(problem) = unless(
        "load.burstiness",
        &load.burstiness,
        &format!("a number {}", from_to(&FACTORS)),
        |b| FACTORS.contains(b),
    ) {
        check(Some(problem.help(
            "1 is Poisson, less is burstier, more is more even; for equal gaps use `arrival` = \"constant\"",
        )));
    }
    check(unless(
        "load.trace.time-scale",
        &load.trace.time_scale,
        &format!("a number {}", from_to(&FACTORS)),
        |scale| FACTORS.contains(scale),
    ));
    let ramp = &load.ramp;
    let rates = format!("0, or {} requests per second", from_to(&RATES));
    check(unless("load.ramp.from", &ramp.from, &rates, usable));
    check(unless("load.ramp.to", &ramp.to, &rates, usable));
    check(climb("load.ramp", &ramp.shape, [&ramp.from, &ramp.to]));
    let mut before = None;
    for Located { value: stage, .. } in load.stages.iter().flatten() {
        for (name, rate) in [
            ("load.stages.rate", &stage.rate),
            ("load.stages.from", &stage.from),
            ("load.stages.to", &stage.to),
        ] {
            check(unless(name, rate, &rates, usable));
        }
        let from = stage.from.clone().or(before.take());
        check(climb("load.stages", &stage.shape, [&from, &stage.to]));
        before = stage.to.clone().or(stage.rate.clone());
    }
}

fn usable(rate: &f64) -> bool {
    *rate == 0.0 || RATES.contains(rate)
}

/// Checks the two ends of a ramp that are each in range.
fn climb(
    name: &str,
    shape: &Option<Located<Shape>>,
    ends: [&Option<Located<f64>>; 2],
) -> Option<Problem> {
    let [from, to] = ends.map(|end| end.as_ref().filter(|end| usable(&end.value)));
    let exponential = shape.as_ref().filter(|shape| shape.value == Shape::Exponential);
    if let Some(shape) = exponential {
        let zero = [from, to].into_iter().flatten().find(|end| end.value == 0.0)?;
        let message = format!("`{name}`: an exponential ramp cannot begin or end at 0");
        return Some(
            Problem::new(message)
                .at(zero.place.clone(), "this")
                .at(shape.place.clone(), "with this shape")
                .help("no factor leads from or to 0; use a small rate, or `shape` = \"linear\""),
        );
    }
    let (from, to) = (from?, to?);
    (from.value == 0.0 && to.value == 0.0).then(|| {
        let message = format!("`{name}`: a ramp from 0 to 0 offers no load");
        Problem::new(message)
            .at(to.place.clone(), "this")
            .help("use a `to` above 0; to send nothing in a stage, set `rate` = 0.0")
    })
}

pub(crate) fn contradictions(load: &Load, problems: &mut Vec<Problem>) {
    let meant = load.meant_arrival();
    let decider = decider(load);
    let mut clash = |key: &str, place: Option<&Place>, help: &str| {
        if let (Some((decided_at, decision)), Some(place)) = (&decider, place) {
            problems.push(against(key, place, decided_at, decision, help));
        }
    };
    if let (Some(rate), Some(arrival)) = (&load.rate, &load.arrival) {
        let help = match (arrival.value.has_rate(), rate.value.is_infinite()) {
            (false, _) if arrival.value == Arrival::Trace => Some(
                "a trace sets when requests are due; play it faster with `time-scale` in [load.trace]",
            ),
            (false, _) if arrival.value == Arrival::Dataset => Some(
                "the dataset sets when requests are due; play it faster with `time-scale` in [load.trace]",
            ),
            (false, false) => {
                Some("`rate` only works with `arrival` = \"constant\", \"poisson\" or \"gamma\"")
            }
            (true, true) => Some("an infinite rate is `arrival` = \"inf\": everything at once"),
            (false, true) if arrival.value == Arrival::Closed => {
                Some("a closed loop sends when an answer arrives, not at a rate; drop `rate`")
            }
            _ => None,
        };
        if let Some(help) = help {
            clash("rate", place(&load.rate), help);
        }
    } else if meant == Some(Arrival::Trace) && load.rate.is_some() {
        let help = "a trace sets when requests are due; keep one of the two";
        clash("rate", place(&load.rate), help);
    } else if meant == Some(Arrival::Gamma)
        && load.rate.as_ref().is_some_and(|rate| rate.value.is_infinite())
    {
        let help = "requests sent all at once have no gaps; set a rate, or drop `burstiness`";
        clash("rate", place(&load.rate), help);
    }
    let closed = meant == Some(Arrival::Closed);
    let cap = "`concurrency` is the number of requests in flight of a closed loop \
               (`arrival` = \"closed\"); to cap an open loop use `max-in-flight` (--max-concurrency)";
    let think = "only users in a closed loop think; set `concurrency` instead of a rate";
    let users = "only closed loops have users; set `concurrency` instead of a rate";
    let full =
        "a closed loop never has more in flight than its `concurrency`; drop `max-in-flight`";
    let dataset = "the dataset sets when requests are due; keep one of the two";
    let trace =
        "a trace sets when requests are due; drop [load.trace], or use `arrival` = \"trace\"";
    let gamma = "`burstiness` only works with `arrival` = \"gamma\"";
    let varies =
        "a changing rate only works with `arrival` = \"constant\", \"poisson\" or \"gamma\"";
    let random = "only random gaps can be scaled: use `arrival` = \"poisson\" or \"gamma\"";
    let number = "requests sent all at once have a number, not a duration: set `requests`, \
                  or keep a server busy for a while with `arrival` = \"closed\"";
    let by_dataset = meant == Some(Arrival::Dataset);
    let is_timed = by_dataset || meant == Some(Arrival::Trace);
    let is_random = matches!(meant, Some(Arrival::Poisson | Arrival::Gamma));
    let has_rate = meant.is_some_and(Arrival::has_rate);
    let normalise = load.normalise.as_ref().filter(|normalise| normalise.value);
    for (clashes, key, place, help) in [
        (!closed, "concurrency", place(&load.concurrency), cap),
        (!closed, "think-time", place(&load.think_time), think),
        (!closed, "think-spread", place(&load.think_spread), think),
        (!closed, "users", place(&load.users), users),
        (closed, "max-in-flight", place(&load.max_in_flight), full),
        (by_dataset, "trace.file", place(&load.trace.file), dataset),
        (!is_timed, "trace", load.trace.place(), trace),
        (meant != Some(Arrival::Gamma), "burstiness", place(&load.burstiness), gamma),
        (!has_rate, "ramp", load.ramp.place(), varies),
        (!has_rate, "stages", first_stage(load), varies),
        (!is_random, "normalise", normalise.map(|normalise| &normalise.place), random),
        (meant == Some(Arrival::Inf), "duration", place(&load.duration), number),
    ] {
        if clashes {
            clash(key, place, help);
        }
    }
    several_rates(load, problems);
    if let (Some(cache), Some(flush)) = (&load.cache, &load.flush_cache)
        && (cache.value == Cache::Flush) != flush.value
    {
        let decision = format!("`load.cache` = \"{}\"", cache.value.name());
        let help = "`flush-cache` = true is `cache` = \"flush\"; keep `cache` alone";
        problems.push(against("flush-cache", &flush.place, &cache.place, &decision, help));
    }
    if let Some(normalise) = normalise
        && let Some(duration) = &load.duration
    {
        let help = "`normalise` needs a number of requests: the last request is due at `requests` / `rate`; \
                    drop `normalise` or `duration`";
        let decision = "`load.duration`";
        problems.push(against("normalise", &normalise.place, &duration.place, decision, help));
    }
    if let Some(sessions) = &load.sessions {
        let others = [
            ("`load.requests`", place(&load.requests)),
            ("`load.duration`", place(&load.duration)),
        ];
        for (decision, decided_at) in others {
            if let Some(decided_at) = decided_at {
                let help = "a run ends after a number of sessions, a number of requests, or a time; keep one";
                let at = &sessions.place;
                problems.push(against("sessions", at, decided_at, decision, help));
            }
        }
    }
    stages(load, problems);
}

/// Checks the start of lanes, and the keys that lanes need or replace.
fn lanes(load: &Load, problems: &mut Vec<Problem>) {
    let Some(at) = load.lanes.place() else { return };
    let mut check = |message: &str, place: &Place, help: &str| {
        problems.push(Problem::new(message).at(place.clone(), "here").help(help));
    };
    match &load.lanes.start_at {
        None => check(
            "`load.lanes` needs a `start-at`",
            at,
            "add for instance `start-at = [0.25, 0.75]` to [load.lanes]; [0, 0] begins with the first request",
        ),
        Some(shares) if load.lanes.shares().is_none() => check(
            "`load.lanes.start-at`: expected two numbers from 0 to 1, the lower one first",
            &shares.place,
            "use for instance `start-at = [0.25, 0.75]`",
        ),
        Some(_) => {}
    }
    if load.meant_arrival() != Some(Arrival::Closed) || load.users() != Users::Sessions {
        let help = "set `concurrency` to the number of lanes, and leave `users` out";
        check("`load.lanes` needs a closed loop whose users have sessions", at, help);
    }
    if load.duration.is_none() && load.sessions.is_none() {
        let help = "add for instance `duration = \"30m\"` or `sessions = 613` to [load]";
        check("`load.lanes` needs a `duration` or a number of `sessions`", at, help);
    }
    let replaced = [
        ("warmup", place(&load.warmup)),
        ("warming", place(&load.warming)),
        ("think-time", place(&load.think_time)),
    ];
    for (key, at) in replaced {
        if let Some(at) = at {
            let help = "lanes warm up by their sessions' own requests and pause as recorded; leave the key out";
            check(&format!("`load.{key}` contradicts `load.lanes`"), at, help);
        }
    }
}

fn first_stage(load: &Load) -> Option<&Place> {
    Some(&load.stages.as_ref()?.first()?.place)
}

fn against(key: &str, place: &Place, other: &Place, decision: &str, help: &str) -> Problem {
    contradicts(&format!("`load.{key}`"), place, decision, other).help(help)
}

/// The place of the key that decides on the arrival.
pub(crate) fn decided_at(load: &Load) -> Option<&Place> {
    decider(load).map(|(place, _)| place)
}

/// The key that decides on the arrival, as in [`Load::meant_arrival`], and its form in messages.
fn decider(load: &Load) -> Option<(&Place, String)> {
    if let Some(arrival) = &load.arrival {
        let reads = format!("`load.arrival` = \"{}\"", arrival.value.name());
        return Some((&arrival.place, reads));
    }
    let rate = || {
        let rate = load.rate.as_ref()?;
        Some((&rate.place, format!("`load.rate` = {}", rate.value)))
    };
    keyed(load.trace.place(), "trace")
        .or_else(|| keyed(place(&load.burstiness), "burstiness"))
        .or_else(rate)
        .or_else(|| keyed(load.ramp.place(), "ramp"))
        .or_else(|| keyed(first_stage(load), "stages"))
        .or_else(|| keyed(place(&load.concurrency), "concurrency"))
        .or_else(|| keyed(place(&load.think_time), "think-time"))
        .or_else(|| keyed(place(&load.think_spread), "think-spread"))
}

fn keyed<'a>(place: Option<&'a Place>, key: &str) -> Option<(&'a Place, String)> {
    Some((place?, format!("`load.{key}`")))
}

/// The keys that set a rate, with their places.
fn rates(load: &Load) -> impl Iterator<Item = (&'static str, &Place)> {
    let ways =
        [("rate", place(&load.rate)), ("ramp", load.ramp.place()), ("stages", first_stage(load))];
    ways.into_iter().filter_map(|(key, at)| Some((key, at?)))
}

/// A constant rate, a ramp and stages are three ways to set one thing; scaling needs the first.
fn several_rates(load: &Load, problems: &mut Vec<Problem>) {
    let mut keys = rates(load);
    let Some((kept, kept_at)) = keys.next() else { return };
    for (key, at) in keys {
        let help = "a rate is constant (`rate`), changes once ([load.ramp]) or several times ([[load.stages]]); keep one";
        let decision = format!("`load.{kept}`");
        problems.push(against(key, at, kept_at, &decision, help));
    }
    if let Some(normalise) = load.normalise.as_ref().filter(|normalise| normalise.value)
        && kept != "rate"
    {
        let help = "gaps are scaled to a constant rate; drop `normalise`";
        let decision = format!("`load.{kept}`");
        problems.push(against("normalise", &normalise.place, kept_at, &decision, help));
    }
}

/// A rate without an arrival. Set by a flag, it means Poisson, as in the tools that have the flag.
pub(crate) fn missing_arrival(load: &Load, problems: &mut Vec<Problem>) {
    if load.meant_arrival() != Some(Arrival::Poisson) || load.arrival.is_some() {
        return;
    }
    if let Some((key, at @ Place::Text { .. })) = rates(load).next() {
        problems.push(
            Problem::new(format!("`load.{key}` does not say how requests are spread over time"))
                .at(at.clone(), "a rate without an arrival")
                .help("add `arrival` = \"poisson\" (at random) or \"constant\" (at equal gaps)"),
        );
    }
}

/// Checks stages as a list, and each as a whole.
fn stages(load: &Load, problems: &mut Vec<Problem>) {
    let Some(stages) = &load.stages else { return };
    let mut ends = None;
    for located in stages {
        problems.extend(stage_rate(located, ends.is_some()));
        let stage = &located.value;
        ends = stage.to.as_ref().or(stage.rate.as_ref());
        if stage.length.is_none() {
            problems.push(
                Problem::new("a stage has no duration")
                    .at(located.place.clone(), "without `for`")
                    .help("add for instance `for = \"30s\"`"),
            );
        }
    }
    let loads = |stage: &Stage| {
        let rates = [&stage.rate, &stage.from, &stage.to];
        rates.into_iter().flatten().any(|rate| rate.value > 0.0 || rate.value.is_nan())
    };
    if let Some(first) = stages.first()
        && !stages.iter().any(|located| loads(&located.value))
    {
        problems.push(
            Problem::new("no stage has a rate above 0")
                .at(first.place.clone(), "nor any other stage")
                .help("set a `rate` above 0 in one of them"),
        );
    }
    if stages.is_empty() {
        problems.push(
            Problem::new("`load.stages`: expected at least one, found none")
                .help("add one under [[load.stages]], or drop the list"),
        );
    }
    let lengths: Option<std::time::Duration> =
        stages.iter().try_fold(std::time::Duration::ZERO, |sum, stage| {
            Some(sum.saturating_add(stage.value.length.as_ref()?.value.0))
        });
    if let (Some(duration), Some(whole)) = (&load.duration, lengths)
        && duration.value.0 > whole
        && let Some(first) = first_stage(load)
    {
        let whole = model::duration::format(whole);
        problems.push(
            Problem::new("`load.duration` is longer than the stages")
                .at(duration.place.clone(), "this")
                .at(first.clone(), format!("these take {whole}"))
                .help(
                    "nothing is due after the last stage; drop `duration`, or make a stage longer",
                ),
        );
    }
}

/// A stage has a constant rate, or ramps to one.
fn stage_rate(located: &Located<Stage>, follows: bool) -> Option<Problem> {
    let stage = &located.value;
    let at = || located.place.clone();
    let ramp: Vec<String> =
        [("from", place(&stage.from)), ("to", place(&stage.to)), ("shape", place(&stage.shape))]
            .into_iter()
            .filter_map(|(key, place)| place.map(|_| format!("`{key}`")))
            .collect();
    match (&stage.rate, &stage.to) {
        (Some(rate), _) if !ramp.is_empty() => {
            let keys = joined(&ramp, "and");
            Some(
                Problem::new(format!("a stage has both `rate` and {keys}"))
                    .at(rate.place.clone(), "a constant rate")
                    .help(
                        "a stage has a `rate`, or ramps from one to another with `from` and `to`",
                    ),
            )
        }
        (None, None) => {
            Some(Problem::new("a stage has no rate").at(at(), "without `rate` or `to`").help(
                "add for instance `rate = 10.0`, or `to = 20.0` to ramp there from the rate before",
            ))
        }
        (None, Some(to)) if stage.from.is_none() && !follows => Some(
            Problem::new("the first stage ramps to a rate, but has no `from`")
                .at(to.place.clone(), "to this")
                .help("add for instance `from = 1.0`"),
        ),
        _ => None,
    }
}

/// Finds the missing keys that an arrival needs.
pub fn gaps(scenario: &Scenario) -> Vec<Problem> {
    let load = &scenario.load;
    let varies = load.ramp.place().is_some() || load.stages.is_some();
    let lacks_rate = load.rate.is_none() && !varies;
    let mut problems = Vec::new();
    lanes(load, &mut problems);
    let lack = match load.meant_arrival() {
        Some(arrival) if arrival.has_rate() && lacks_rate => {
            Some(("rate", "add for instance `rate = 10.0` to [load], or --request-rate 10"))
        }
        Some(Arrival::Closed) if load.concurrency.is_none() => {
            let help = "add for instance `concurrency = 64` to [load], or --concurrency 64";
            Some(("concurrency", help))
        }
        Some(Arrival::Trace) if load.trace.file.is_none() => {
            Some(("file", "name one with `file` in [load.trace], or --trace FILE"))
        }
        _ => None,
    };
    let of_dataset = scenario.dataset.config.get("time-scale");
    if let (Some(theirs), Some(ours), Some(Arrival::Dataset)) =
        (of_dataset, &load.trace.time_scale, load.meant_arrival())
    {
        problems.push(
            Problem::new(
                "the dataset's times are scaled twice, and both factors would be multiplied",
            )
            .at(ours.place.clone(), "here")
            .at(theirs.value.place.clone(), "and here, by the dataset")
            .help("keep one of the two"),
        );
    }
    if let (Some((key, help)), Some((place, reads))) = (lack, decider(load)) {
        let problem = Problem::new(format!("{reads} needs a `{key}`"));
        problems.push(problem.at(place.clone(), format!("without a {key}")).help(help));
    }
    if let (Some(spread), None) = (&load.think_spread, &load.think_time) {
        problems.push(
            Problem::new("`load.think-spread` needs a `think-time`")
                .at(spread.place.clone(), "without a think-time")
                .help("add for instance `think-time = \"2s\"` to [load], or --think-time 2s"),
        );
    }
    let ramp = &load.ramp;
    if let Some(place) = ramp.place() {
        for (key, flag, end) in
            [("from", "--ramp-up-start-rps", &ramp.from), ("to", "--ramp-up-end-rps", &ramp.to)]
        {
            if end.is_none() {
                problems.push(
                    Problem::new(format!("`load.ramp` needs a `{key}`"))
                        .at(place.clone(), format!("without `{key}`"))
                        .help(format!(
                            "add for instance `{key} = 10.0` to [load.ramp], or {flag} 10"
                        )),
                );
            }
        }
    }
    problems
}
