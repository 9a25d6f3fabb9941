//! The steady state: the window of a run in which requests in flight were near their plateau, and
//! the run's figures within it. It excludes the time in which the run fills and drains.
//!
//! The window is defined as in vLLM (`vllm-bench`): from the first instant at which 95 % of the
//! plateau are in flight to the last one. vLLM uses it for runs with a cap. If requests arrive at
//! one rate, the number in flight is not fixed, and the plateau is then the usual number. Chance
//! reaches the peak, and any part of the run may lie between the first and the last time it is
//! reached.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::confidence::HEADLINE;
use super::course::{Course, Drift, Swing};
use super::distribution::Distribution;
use super::{Flights, Span};
use crate::metric::{self, Metric, Reading};
use crate::metric::{spread, take};
use model::exchange::Exchange;
use model::units::Nanos;
use statistics::Spread;
use statistics::blocks::{Blocks, Layout};
use statistics::interval::Loads;

/// The share of the plateau that must be in flight.
const SHARE: f64 = 0.95;

/// A shorter window is too short to judge, in seconds.
const SHORTEST: f64 = 10.0;

/// A window that is a smaller part of the run is an accident.
const SHORTEST_SHARE: f64 = 0.1;

/// The metrics that are taken of it.
const METRICS: [&str; 4] = [metric::TTFT, metric::TPOT, metric::ITL, metric::E2E];

/// The run's figures while requests in flight were steady, or why there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyState {
    /// There is no steady window, for this reason.
    Absent(String),
    /// There is a steady window.
    Window(Box<Window>),
}

/// A window and its figures. Only answered requests and their tokens count.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Window {
    /// Requests in flight that count as full load. If requests arrive at one rate and never reach
    /// 95 % of the cap, it is the median over the time in which they were sent; otherwise the cap,
    /// or the peak if there is no cap.
    pub plateau: u64,
    /// Requests in flight from which the state counts as steady: 95 % of the plateau, rounded up.
    pub at_least: u64,
    /// Seconds from the start of the measurement to the window's start.
    pub from_s: f64,
    /// Seconds from the start of the measurement to the window's end.
    pub to_s: f64,
    /// Its length in seconds.
    pub duration_s: f64,
    /// Time in flight of all requests within it, divided by its length.
    pub mean_in_flight: f64,
    /// Answered requests that ended within it.
    pub ended: u64,
    /// Answered requests that were sent within it, whenever they ended, and not before the run's
    /// first answer had ended: those met an engine that filled. The metrics cover these.
    pub sent: u64,
    /// `ended` per second.
    pub requests_per_s: f64,
    /// Output tokens per second that came within it, whichever request they belong to; absent if
    /// replies were not streamed.
    pub output_tokens_per_s: Option<f64>,
    /// The distributions of TTFT, TPOT, ITL and E2E over the requests that `sent` counts, each
    /// followed to its end: were those left out that end later, the longest would be missing.
    pub metrics: BTreeMap<String, Distribution>,
    /// The change of output throughput, TTFT and TPOT from its beginning to its end, by name; a
    /// figure with too little data is not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drift: BTreeMap<String, Drift>,
    /// The oscillation of output throughput; absent if it had no period.
    pub swing: Option<Swing>,
}

/// The facts that decide the number of requests in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) cap: Option<u64>,
    /// True if requests arrive at one rate all the time, and not when another has ended.
    pub(super) even_rate: bool,
}

/// The steady window of requests in flight, without its figures so far; or why there is none.
pub(super) fn steady(
    flights: Flights<'_>,
    origin: Nanos,
    run: f64,
    peak: u64,
    demand: Demand,
) -> Result<(Span, Window), SteadyState> {
    let enough = |plateau: u64| (SHARE * plateau as f64).ceil() as u64;
    let plateau = match demand {
        Demand { cap: Some(cap), .. } if peak >= enough(cap) => cap,
        Demand { even_rate: true, .. } => flights.median().max(1),
        Demand { cap, .. } => cap.unwrap_or(peak),
    };
    let at_least = enough(plateau);
    let (mut from, mut to, mut above) = (None, Nanos::ZERO, false);
    flights.sweep(|at, in_flight| {
        if in_flight >= at_least {
            from.get_or_insert(at);
        } else if above {
            to = at;
        }
        above = in_flight >= at_least;
    });
    let Some(from) = from else {
        return Err(SteadyState::Absent(format!(
            "at most {peak} of {plateau} requests were in flight, and a steady state needs at least {at_least}"
        )));
    };
    let span = Span { from, to };
    let duration_s = to.since(from).as_secs_f64();
    let shortest = SHORTEST.max(SHORTEST_SHARE * run);
    if duration_s < shortest {
        return Err(SteadyState::Absent(format!(
            "{at_least} or more requests were in flight for {duration_s:.2} s, and at least {shortest:.2} s are needed"
        )));
    }
    Ok((
        span,
        Window {
            plateau,
            at_least,
            from_s: from.since(origin).as_secs_f64(),
            to_s: to.since(origin).as_secs_f64(),
            duration_s,
            mean_in_flight: flights.within(span) as f64 / 1e9 / duration_s,
            ..Window::default()
        },
    ))
}

pub(super) struct Gather {
    span: Span,
    /// The end of the run's first answer.
    filled: Nanos,
    window: Window,
    tokens: Option<u64>,
    course: Course,
    /// The samples of each metric, and the headline metrics' samples by slice of the window.
    spreads: Vec<(&'static Metric, Spread, Option<Blocks>)>,
}

impl Gather {
    /// An empty gatherer for a window; the run's first answer ended at `filled`.
    pub(super) fn new((span, window): (Span, Window), filled: Nanos) -> Self {
        let metrics = METRICS.iter().filter_map(|name| metric::by_name(name));
        Gather {
            span,
            filled,
            course: Course::over(span),
            window,
            tokens: None,
            spreads: metrics
                .map(|metric| {
                    let layout = Layout::over(span.from.max(filled).0, span.to.0);
                    let blocks = Blocks::new(layout, metric.unit.scale());
                    let blocks = HEADLINE.contains(&metric.name).then_some(blocks);
                    (metric, spread(metric), blocks)
                })
                .collect(),
        }
    }

    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let Exchange { sent, ended, .. } = reading.exchange;
        let is_of_fill = sent.is_some_and(|at| at < self.filled);
        self.course.add(reading, is_of_fill);
        if ended.is_some_and(|at| self.span.holds(at)) {
            self.window.ended += 1;
        }
        // Requests sent at its end are outside of it: there are too few in flight from then on.
        let within = |at: &Nanos| self.span.from <= *at && *at < self.span.to && !is_of_fill;
        if let Some(at) = sent.filter(within) {
            self.window.sent += 1;
            for (metric, spread, blocks) in &mut self.spreads {
                let blocks = blocks.as_mut().map(|blocks| (blocks, at.0));
                take(metric, reading, spread, blocks);
            }
        }
    }

    pub(super) fn add_tokens(&mut self, at: Nanos, tokens: u64) {
        let sum = self.tokens.get_or_insert(0);
        self.course.add_tokens(at, tokens);
        if self.span.holds(at) {
            *sum = sum.saturating_add(tokens);
        }
    }

    /// `loads` are the loads of the whole run, which has `requests` requests.
    pub(super) fn finish(
        self,
        percentiles: &[f64],
        loads: Option<Loads>,
        requests: u64,
    ) -> SteadyState {
        let seconds = self.window.duration_s;
        // The window holds its share of the run's loads.
        let share = self.window.sent as f64 / requests.max(1) as f64;
        let loads = loads.map(|of| Loads { independent: of.independent * share, ..of });
        let metrics = self.spreads.into_iter().filter_map(|(metric, spread, blocks)| {
            let figures = spread.figures()?;
            let mut distribution = Distribution::new(metric, &figures, percentiles);
            if let Some(blocks) = blocks {
                distribution = distribution.with_confidence(metric, &figures, &blocks, loads, None);
            }
            Some((metric.name.to_owned(), distribution))
        });
        let metrics: BTreeMap<String, Distribution> = metrics.collect();
        let gap = metrics.get(metric::ITL).map(|gaps| gaps.mean);
        SteadyState::Window(Box::new(Window {
            drift: self.course.drift(),
            swing: gap.and_then(|gap| self.course.swing(gap, self.window.mean_in_flight)),
            requests_per_s: self.window.ended as f64 / seconds,
            output_tokens_per_s: self.tokens.map(|tokens| tokens as f64 / seconds),
            metrics,
            ..self.window
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::SteadyState;
    use crate::summary::{Summary, fixture};
    use model::exchange::Kind::{End, Text};

    /// Four users ask every second for 25 s, a fifth every ten seconds: his last answer ends after
    /// the others have left, and so after the window.
    #[test]
    fn a_request_sent_within_the_window_is_followed_to_its_end() {
        let short = (0..100).map(|n| (1000 + n / 4 * 1000, 1000));
        let long = (0..3).map(|n| (1000 + n * 10_000, 10_000));
        let run = short.chain(long).enumerate().map(|(index, (sent, took))| {
            let events = [(sent + took / 2, Text, None, 3), (sent + took, End, None, 0)];
            fixture::reply(index as u64, sent, &events)
        });
        let summary = Summary::new(&fixture::facts(), run.collect::<Vec<_>>());
        let Some(SteadyState::Window(window)) = summary.steady_state else {
            panic!("five are in flight for 25 s");
        };
        assert_eq!((window.from_s, window.to_s), (0.0, 25.0));
        // Five were sent before the first answer had ended, one of them for ten seconds.
        assert_eq!((window.sent, window.ended), (98, 102));
        assert_eq!(window.metrics["e2e"].count, 98);
        assert_eq!(window.metrics["e2e"].mean, 116_000.0 / 98.0);
        assert_eq!(window.metrics["e2e"].max, 10_000.0);
        assert_eq!(window.requests_per_s, 102.0 / 25.0);
    }
}
