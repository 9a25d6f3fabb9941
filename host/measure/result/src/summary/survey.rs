//! The first pass over a run's exchanges: the start and length of the measurement, the number of
//! requests in flight, and the window in which it was steady. The second pass needs these.
//!
//! Keeps 16 bytes per request during the pass, and 8 more at its end. A sweep over their start and
//! end times in order gives the peak of requests in flight and the number of independent loads. If
//! the plan offers a rate, 8 bytes more, for the gaps between due times.

use super::facts::{Loop, Run};
use super::load::Arrivals;
use super::sessions::is_of_session;
use super::steady::{Demand, SteadyState, Window, steady};
use super::{Flights, Span};
use model::exchange::{Exchange, Phase};
use model::units::Nanos;
use statistics::blocks::Layout;
use statistics::interval::Loads;

const SECOND: f64 = 1e9;

/// The data that the first pass keeps of the exchanges so far. A reader of a run's exchanges can
/// make this pass on the way: see [`Summary::read_surveyed`](super::Summary::read_surveyed).
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The number of exchanges so far, with the warm-up's.
    seen: usize,
    has_sessions: bool,
    due: Option<(Nanos, Nanos)>,
    last_end: Option<Nanos>,
    first_answer: Option<Nanos>,
    /// The instant at which the last reply began.
    last_first: Option<Nanos>,
    /// Times at which requests that took any time were sent and, in `ends`, ended.
    starts: Vec<Nanos>,
    ends: Vec<Nanos>,
    /// Times at which the same requests were due, if the plan offers a rate.
    dues: Option<Vec<Nanos>>,
    in_flight: u128,
    /// Requests of the measurement, and the lowest and the highest index among them.
    requests: u64,
    indexes: Option<(u64, u64)>,
}

pub(crate) struct SurveyResult {
    /// Exchanges that it saw. Records may grow meanwhile.
    pub(crate) seen: usize,
    pub(super) has_sessions: bool,
    pub(super) origin: Nanos,
    /// The times at which the first and the last request were due.
    pub(super) due: Option<(Nanos, Nanos)>,
    /// Seconds from there to the end of the last exchange; `None` if nothing ended.
    pub(super) duration: Option<f64>,
    pub(super) peak: Option<u64>,
    /// Seconds in flight of all requests, summed.
    pub(super) in_flight_seconds: f64,
    /// The window in which requests in flight were steady, or why there is none.
    pub(super) steady: Option<Result<(Span, Window), SteadyState>>,
    /// The block of the run that each request belongs to; `None` if there are too few.
    pub(super) layout: Option<Layout>,
    pub(super) loads: Option<Loads>,
    pub(super) first_answer: Option<Nanos>,
    pub(super) last_end: Option<Nanos>,
    /// The instants at which the first and last request that took any time were sent.
    pub(super) first_sent: Option<Nanos>,
    pub(super) last_sent: Option<Nanos>,
    pub(super) last_first: Option<Nanos>,
    /// The coefficient of variation of the gaps between requests, as due at a rate or as sent.
    pub(super) gap_cv: Option<f64>,
    /// The evenness with which requests were due and sent, if the plan offers a rate.
    pub(super) arrivals: Option<Arrivals>,
}

impl Survey {
    pub fn new(run: &Run) -> Self {
        Survey { dues: run.request_rate.map(|_| Vec::new()), ..Survey::default() }
    }

    /// Adds an exchange; their order does not matter.
    pub fn add(&mut self, exchange: &Exchange) {
        self.seen += 1;
        if exchange.phase != Phase::Measure {
            return;
        }
        self.requests += 1;
        self.has_sessions |= is_of_session(exchange);
        let index = exchange.index;
        let (first, last) = self.indexes.unwrap_or((index, index));
        self.indexes = Some((first.min(index), last.max(index)));
        self.last_first = self.last_first.max(exchange.events.at.first().copied());
        let due = exchange.due;
        let (first, last) = self.due.unwrap_or((due, due));
        self.due = Some((first.min(due), last.max(due)));
        self.last_end = self.last_end.max(exchange.ended);
        if let Some(ended) = exchange.ended.filter(|_| exchange.is_ok()) {
            self.first_answer = Some(self.first_answer.map_or(ended, |first| first.min(ended)));
        }
        // Without an end, a request was in flight at least until the last sign of its reply.
        let seen = exchange.events.at.last().copied().or(exchange.headers);
        let end = exchange.ended.or(seen);
        if let Some((sent, end)) = exchange.sent.zip(end).filter(|(sent, end)| end > sent) {
            self.starts.push(sent);
            self.ends.push(end);
            self.dues.iter_mut().for_each(|dues| dues.push(due));
            self.in_flight += u128::from(end.since(sent).0);
        }
    }

    /// Combines the surveyed exchanges, from the given start or the first request's due time.
    pub(crate) fn finish(mut self, run: &Run) -> SurveyResult {
        let demand = Demand { cap: run.max_in_flight, even_rate: run.even_rate };
        let began = |first: Nanos| first.since(run.first_due);
        self.starts.sort_unstable();
        self.ends.sort_unstable();
        let arrivals = self.dues.map(|mut dues| {
            dues.sort_unstable();
            Arrivals { due_gap_cv: gap_cv(&dues), sent_gap_cv: gap_cv(&self.starts) }
        });
        let origin = run.measure_start.or(self.due.map(|(first, _)| began(first)));
        let origin = origin.unwrap_or_default();
        let seconds = self.last_end.map(|end| end.since(origin).as_secs_f64());
        let duration = seconds.filter(|seconds| *seconds > 0.0);
        let flights = Flights { starts: &self.starts, ends: &self.ends };
        let peak = flights.peak();
        let steady = peak
            .zip(duration)
            .map(|(peak, duration)| steady(flights, origin, duration, peak, demand));
        let layout = self.indexes.and_then(|(first, last)| {
            let fill = flights.fill(self.first_answer);
            Layout::new(self.requests, fill as u64, first, last)
        });
        SurveyResult {
            layout,
            // In a closed loop, steps vary the number in flight, which is then no load.
            loads: layout
                .filter(|_| run.r#loop == Loop::Open)
                .and_then(|layout| flights.loads(layout)),
            seen: self.seen,
            has_sessions: self.has_sessions,
            origin,
            due: self.due,
            duration,
            peak,
            in_flight_seconds: self.in_flight as f64 / SECOND,
            steady,
            first_answer: self.first_answer,
            last_end: self.last_end,
            first_sent: self.starts.first().copied(),
            last_sent: self.starts.last().copied(),
            last_first: self.last_first,
            gap_cv: arrivals.and_then(|of| of.due_gap_cv).or_else(|| gap_cv(&self.starts)),
            arrivals,
        }
    }
}

/// The coefficient of variation of gaps; `None` of fewer than two gaps, or of one instant.
fn gap_cv(instants: &[Nanos]) -> Option<f64> {
    let (first, last) = (instants.first()?, instants.last()?);
    let gaps = instants.len() as f64 - 1.0;
    let mean = last.since(*first).0 as f64 / gaps;
    let squares = instants.windows(2).map(|pair| {
        let off = pair[1].since(pair[0]).0 as f64 - mean;
        off * off
    });
    (gaps >= 2.0 && mean > 0.0).then(|| (squares.sum::<f64>() / gaps).sqrt() / mean)
}
