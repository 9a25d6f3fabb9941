//! The upper limits of a scenario, far beyond the needs of a measurement. A larger number is a
//! slip of the pen, and costs all memory or a run without end.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::super::load::{Arrival, Load};
use super::{unless, wrong};
use crate::devices::DeviceMetrics;
use crate::expect::AcceptanceLength;
use crate::scenario::Scenario;
use model::arrival::{Shape, Stage, length_for};
use model::duration::{self, Span};
use model::target::{Target, TargetError};
use model::units::Nanos;
use reader::{Located, Place, Problem, Size};

const REQUESTS: u64 = 1_000_000_000;
/// Users, requests in flight, and requests that are due at the same time: each may need a
/// connection.
const AT_ONCE: u64 = 1_000_000;
const DEVICES: u64 = 1_000_000;
/// Requests whose gaps are scaled: all of them are drawn before the first is due.
const SCALED: u64 = 10_000_000;
/// Tokens of a page of a prefix cache.
const PAGE_SIZE: u64 = 1 << 20;
/// Threads of one kind. More than there are cores gain nothing.
const THREADS: u64 = 64;
/// Requests of a warmup, which lie in memory together.
const WARMUP: u64 = 100_000;
pub(super) const RATES: RangeInclusive<f64> = 1e-6..=1e6;
/// The range of factors for the shape of gaps, or the speed of a trace; 1 changes nothing.
pub(super) const FACTORS: RangeInclusive<f64> = 1e-6..=1e6;
/// Any time: a run, a timeout, a pause.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// One call of a plugin, or its compilation.
const LONGEST_CALL: Duration = Duration::from_secs(24 * 3600);
/// The time between two readings of devices. The energy counters of processors wrap around after
/// little more than a minute.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(60);
/// The highest power of the machines, in watts.
const MOST_WATTS: f64 = 1e12;

/// The highest cost of machines per hour, in any currency.
const MOST_PER_HOUR: f64 = 1e12;
/// Letters of a currency's label.
const CURRENCY: usize = 8;
const PERCENTILES: usize = 100;

/// Finds values that are beyond their limit, or not above zero.
pub(super) fn values(scenario: &Scenario, problems: &mut Vec<Problem>) {
    let mut check = |problem: Option<Problem>| problems.extend(problem);
    let load = &scenario.load;
    for (name, count, range) in [
        ("load.requests", &load.requests, 1..=REQUESTS),
        ("load.sessions", &load.sessions, 1..=REQUESTS),
        ("load.concurrency", &load.concurrency, 1..=AT_ONCE),
        ("load.max-in-flight", &load.max_in_flight, 1..=AT_ONCE),
        ("machines.devices", &scenario.machines.devices, 1..=DEVICES),
        ("load.warmup", &load.warmup, 0..=WARMUP),
        ("load.lanes.warmup", &load.lanes.warmup, 0..=WARMUP),
        ("report.page-size", &scenario.report.page_size, 1..=PAGE_SIZE),
        ("connection.readers", &scenario.connection.readers, 1..=THREADS),
        ("connection.decoders", &scenario.connection.decoders, 1..=THREADS),
    ] {
        check(within(name, count, &range));
    }
    let (timeouts, sandbox) = (&scenario.timeouts, &scenario.sandbox);
    for (name, span) in [
        ("load.duration", &load.duration),
        ("load.think-time", &load.think_time),
        ("load.warmup-limit", &load.warmup_limit),
        ("load.lanes.warmup-grace", &load.lanes.warmup_grace),
        ("load.lanes.idle-most", &load.lanes.idle_most),
        ("load.ramp.over", &load.ramp.over),
        ("timeouts.connect", &timeouts.connect),
        ("timeouts.first-token", &timeouts.first_token),
        ("timeouts.token-gap", &timeouts.token_gap),
        ("timeouts.request", &timeouts.request),
        ("report.slice", &scenario.report.slice),
    ] {
        check(lasting(name, span, LONGEST));
    }
    for stage in load.stages.iter().flatten() {
        check(lasting("load.stages.for", &stage.value.length, LONGEST));
    }
    let wait = &scenario.target.wait_ready;
    let expected = format!("at most {}", duration::format(LONGEST));
    check(unless("target.wait-ready", wait, &expected, |span| span.0 <= LONGEST));
    for (name, span) in [
        ("sandbox.compile", &sandbox.compile),
        ("sandbox.backend-call", &sandbox.backend_call),
        ("sandbox.dataset-call", &sandbox.dataset_call),
        ("sandbox.scorer-call", &sandbox.scorer_call),
    ] {
        check(lasting(name, span, LONGEST_CALL));
    }
    for (name, size, most) in [
        ("sandbox.component", &sandbox.component, Size(1 << 30)),
        // A guest can address no more.
        ("sandbox.memory", &sandbox.memory, Size(4 << 30)),
        ("sandbox.returned", &sandbox.returned, Size(1 << 30)),
        ("load.session-memory", &load.session_memory, Size(1 << 40)),
    ] {
        let expected = format!("a size above zero, at most {most}");
        let fits = |size: &Size| size.0 > 0 && *size <= most;
        check(unless(name, size, &expected, fits));
    }
    for (name, number, most) in [
        ("sandbox.functions", &sandbox.functions, 10_000_000),
        ("sandbox.table", &sandbox.table, 10_000_000),
        ("sandbox.nesting", &sandbox.nesting, 100),
    ] {
        check(within(name, number, &(1..=most)));
    }
    watched(scenario, &mut check);
    let (name, length) = ("expect.acceptance-length", &scenario.expect.acceptance_length);
    check(unless(name, length, "a number from 1 to 1000", |length| match length {
        AcceptanceLength::Tokens(tokens) => AcceptanceLength::is_possible(*tokens),
        AcceptanceLength::Listed { .. } => true,
    }));
    if let Some(percentiles) = &scenario.report.percentiles
        && percentiles.value.len() > PERCENTILES
    {
        let (place, found) = (&percentiles.place, percentiles.value.len());
        let expected = format!("at most {PERCENTILES}");
        check(Some(wrong("report.percentiles", place, &expected, found)));
    }
}

fn watched(scenario: &Scenario, check: &mut impl FnMut(Option<Problem>)) {
    let (run, cost) = (&scenario.run, &scenario.cost);
    let expected = "a duration from 10ms to 1m";
    let interval = &run.device_interval;
    check(unless("run.device-interval", interval, expected, |span| INTERVALS.contains(&span.0)));
    let expected = "a number above zero";
    check(unless("cost.per-hour", &cost.per_hour, expected, |price| {
        *price > 0.0 && *price <= MOST_PER_HOUR
    }));
    let machines = &scenario.machines;
    check(unless("machines.power-w", &machines.power_w, expected, |watts| {
        *watts > 0.0 && *watts <= MOST_WATTS
    }));
    let expected = "a label of at most 8 letters, such as \"EUR\"";
    check(unless("cost.currency", &cost.currency, expected, |label| {
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
        (1..=CURRENCY).contains(&label.chars().count()) && label.chars().all(is_plain)
    }));
    if let Some(Located { value, place }) = &run.device_metrics
        && let DeviceMetrics::Page(url) = value
        && let Err(error) = Target::parse(url)
    {
        let problem = match error {
            TargetError::Credentials => Problem::new(
                "`run.device-metrics`: the URL contains a user name or password, which would end up in results",
            )
            .at(place.clone(), "this")
            .help("have the exporter serve this machine without a password")
            .secret(),
            TargetError::NotUrl { .. } => {
                let expected = "a URL without a query, such as \"http://127.0.0.1:9400/metrics\"";
                wrong("run.device-metrics", place, expected, format!("{url:?}"))
            }
        };
        check(Some(problem));
    }
}

/// Finds totals beyond limits that the values keep: requests at once, in all, and the length.
pub(super) fn together(load: &Load, problems: &mut Vec<Problem>) {
    if fits(load) {
        at_once(load, problems);
        scaled(load, problems);
        problems.extend(whole_length(load).or_else(|| most_due(load)));
    }
}

/// True if each value is within its limit, so that they can be checked together.
fn fits(load: &Load) -> bool {
    let stages = || load.stages.iter().flatten().map(|located| &located.value);
    let ends = stages().flat_map(|stage| [&stage.rate, &stage.from, &stage.to]);
    let mut rates = [&load.ramp.from, &load.ramp.to].into_iter().chain(ends).flatten();
    let lengths = stages().map(|stage| &stage.length);
    let mut spans = [&load.duration, &load.ramp.over].into_iter().chain(lengths).flatten();
    let steady = load.rate.iter().all(|located| is_rate(located.value));
    let counted = (load.requests.iter())
        .chain(&load.sessions)
        .all(|located| (1..=REQUESTS).contains(&located.value));
    steady
        && counted
        && rates.all(|located| located.value == 0.0 || RATES.contains(&located.value))
        && spans.all(|located| !located.value.0.is_zero() && located.value.0 <= LONGEST)
}

/// True if requests can come at this rate; at an infinite one, all come at once.
pub(super) fn is_rate(rate: f64) -> bool {
    rate == f64::INFINITY || RATES.contains(&rate)
}

/// Requests that are all due at once need a cap if they are many.
fn at_once(load: &Load, problems: &mut Vec<Problem>) {
    let is_inf = load.meant_arrival().unwrap_or_else(|| load.arrival()) == Arrival::Inf;
    if !is_inf || load.max_in_flight.is_some() {
        return;
    }
    for (located, unit) in [(&load.requests, "requests"), (&load.sessions, "sessions")] {
        let Some(located) = located.as_ref().filter(|located| located.value > AT_ONCE) else {
            continue;
        };
        let message = format!("`load.{unit}`: at most {AT_ONCE} {unit} can begin at once");
        problems
            .push(Problem::new(message).at(located.place.clone(), "all of them due at once").help(
            "cap them with `max-in-flight` (--max-concurrency), or set a `rate` (--request-rate)",
        ));
    }
}

/// Gaps are scaled by their sum, so all of them are drawn first.
fn scaled(load: &Load, problems: &mut Vec<Problem>) {
    let many = load.requests.as_ref().filter(|requests| requests.value > SCALED);
    if let (Some(requests), Some(normalise)) = (many, &load.normalise)
        && normalise.value
    {
        let message = format!("`load.normalise` works with at most {SCALED} requests");
        problems.push(
            Problem::new(message)
                .at(requests.place.clone(), "this many")
                .at(normalise.place.clone(), "with this")
                .help("ask for fewer requests, or drop `normalise`; with this many gaps the mean hardly differs"),
        );
    }
}

/// Stages that each fit may be too long together.
fn whole_length(load: &Load) -> Option<Problem> {
    let stages = load.stages.as_ref()?;
    let lengths = stages.iter().filter_map(|stage| stage.value.length.as_ref());
    let whole = lengths.map(|length| length.value.0).fold(Duration::ZERO, Duration::saturating_add);
    (whole > LONGEST).then(|| {
        let [longest, whole] = [LONGEST, whole].map(duration::format);
        let message = format!("`load.stages`: expected at most {longest} in all, found {whole}");
        let first = stages.first().map(|first| first.place.clone());
        Problem::new(message).at(first, "with those after it")
    })
}

/// A rate and a duration may mean too many requests, and a rate and a number of requests too long a
/// time.
fn most_due(load: &Load) -> Option<Problem> {
    let usual = load.requests();
    let duration = load.duration.as_ref();
    let requests = load.requests.as_ref();
    let seconds = duration.map(|duration| duration.value.0.as_secs_f64());
    if let Some(stages) = &load.stages {
        let due = stages.iter().map(|stage| {
            let stage = &stage.value;
            let rates = [&stage.rate, &stage.from, &stage.to].into_iter().flatten();
            let peak = rates.map(|rate| rate.value).fold(0.0, f64::max);
            let length = stage.length.as_ref().map_or(Duration::ZERO, |length| length.value.0);
            peak * length.as_secs_f64()
        });
        return too_many(due.sum(), &stages.first()?.place);
    }
    let rate = |rate: &Option<Located<f64>>| rate.as_ref().map(|rate| rate.value);
    if let (Some(from), Some(to)) = (rate(&load.ramp.from), rate(&load.ramp.to)) {
        let place = load.ramp.place()?;
        if from.max(to) == 0.0 || (load.ramp.shape() == Shape::Exponential && from.min(to) == 0.0) {
            return None;
        }
        if let Some(seconds) = seconds {
            return too_many(from.max(to) * seconds, place);
        }
        let count = requests.map_or(usual, |requests| requests.value);
        let needs = match &load.ramp.over {
            None => length_for(load.ramp.shape(), from, to, count),
            Some(over) => {
                let ramp =
                    Stage { from, to, shape: load.ramp.shape(), length: over.value.0.into() };
                if ramp.area() < as_number(count) && to > 0.0 {
                    length_for(Shape::Linear, to, to, count) + ramp.length
                } else {
                    ramp.length
                }
            }
        };
        return too_long(needs, place);
    }
    let rate = load.rate.as_ref().filter(|rate| rate.value.is_finite())?;
    match seconds {
        Some(seconds) => too_many(rate.value * seconds, &rate.place),
        None => {
            let count = requests.map_or(usual, |requests| requests.value);
            too_long(length_for(Shape::Linear, rate.value, rate.value, count), &rate.place)
        }
    }
}

fn too_many(due: f64, place: &Place) -> Option<Problem> {
    let most = as_number(REQUESTS);
    (due > most).then(|| {
        let message =
            format!("up to {due:.3e} requests would be due, but a run has at most {REQUESTS}");
        Problem::new(message)
            .at(place.clone(), "at this rate")
            .help("lower the rate, or measure for a shorter time")
    })
}

fn too_long(needs: Nanos, place: &Place) -> Option<Problem> {
    let needs = Duration::from(needs);
    (needs > LONGEST).then(|| {
        let longest = duration::format(LONGEST);
        let message =
            format!("the last request would be due after {longest}, the longest time of a run");
        Problem::new(message)
            .at(place.clone(), "at this rate")
            .help("raise the rate, or ask for fewer requests (--num-prompts)")
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "to compare with limits, where the last digits do not matter"
)]
fn as_number(count: u64) -> f64 {
    count as f64
}

fn within(
    name: &str,
    located: &Option<Located<u64>>,
    range: &RangeInclusive<u64>,
) -> Option<Problem> {
    let expected = format!("a whole number from {} to {}", range.start(), range.end());
    unless(name, located, &expected, |number| range.contains(number))
}

fn lasting(name: &str, located: &Option<Located<Span>>, longest: Duration) -> Option<Problem> {
    let expected = format!("a duration above zero, at most {}", duration::format(longest));
    unless(name, located, &expected, |span| !span.0.is_zero() && span.0 <= longest)
}

pub(super) fn from_to(range: &RangeInclusive<f64>) -> impl Display {
    format!("from {} to {}", range.start(), range.end())
}
