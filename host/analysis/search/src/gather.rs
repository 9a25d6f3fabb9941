//! The counts of one run for the objectives: bad requests, and the independent requests that they
//! are worth.
//!
//! **Requests that wait in one queue are bad together.** Their number varies more than for
//! independent requests, by the design effect (`statistics::batches`). Where few requests are bad,
//! few of their clusters are seen. So the effect is also measured for "its metric is above the
//! run's own 90th percentile", and where any request is bad, the larger of the two counts. Where
//! none is, the important clusters are of requests that came near the limit: above that percentile
//! and beyond half of the limit. At a load far below the highest there are none, and each request
//! counts as one ([`decide`](crate::decide)).

use model::exchange::{Class, Phase};
use model::units::Nanos;
use result::metric::Reading;
use result::summary::Backlog;
use statistics::batches::{FEWEST, design_effect};
use statistics::blocks::design_effect_of;

use crate::control::{Arrivals, Control, Life, Simulated, controls};
use crate::slo::{Limit, Observation, Reader, Tier};

/// The counts of a run for one objective.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Counted {
    /// Requests that were due.
    pub requests: u64,
    /// Those that failed, were not sent or missed the limit.
    pub bad: u64,
    /// Answered requests among these whose metric is not known.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub unknown: u64,
    /// The design effect of being bad; at least 1.
    pub effect: f64,
    /// The design effect of being above the run's 90th percentile; at least 1.
    pub tail_effect: f64,
    /// The design effect of being above that percentile and beyond half of the limit; at least 1,
    /// and 1 if no request is.
    pub near_effect: f64,
    /// Batches that the design effects rest on.
    pub batches: u32,
    /// The control of the misses by simulation; absent where the run has none.
    pub control: Option<Control>,
    /// True if the simulated engine is overloaded at the run's rate.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub overloads: bool,
}

/// Little's law, as a check on a run: where the load is steady, the mean number of unanswered
/// requests is the rate at which requests are due times the mean time until they are answered
/// (Little 1961, "A proof for the queuing formula L = λW"). The number is taken over the time in
/// which requests were due and the latency over all of them, so they differ where the backlog
/// grows, where requests never end, and where the run is short.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Little {
    /// Requests that were due and not answered, on average over the time in which requests were
    /// due.
    pub unanswered: f64,
    /// Requests due per second of that time, counted over requests with an end.
    pub per_s: f64,
    /// Mean seconds from due to the end of the reply, over the requests that have one.
    pub latency_s: f64,
}

impl Little {
    /// The most by which the two sides may differ, as a share.
    pub const TOLERANCE: f64 = 0.1;

    /// The number of unanswered requests, divided by the law's value; absent if that is nothing.
    pub fn ratio(&self) -> Option<f64> {
        let expected = self.in_flight();
        (expected > 0.0).then(|| self.unanswered / expected)
    }

    /// Requests that are in flight in the long run.
    pub fn in_flight(&self) -> f64 {
        self.per_s * self.latency_s
    }

    pub fn agrees(&self) -> bool {
        self.ratio().is_none_or(|ratio| (ratio - 1.0).abs() <= Self::TOLERANCE)
    }
}

/// The counts of a valid run for the tiers of a search.
#[model::apply(model::document!)]
pub struct Measured {
    /// Requests that were due.
    pub requests: u64,
    /// The number of independent loads that the run holds, by the backlog when each request was
    /// due: of all requests, each counts by the design effect of that number. As many as requests
    /// where it does not vary.
    pub loads: f64,
    /// The counts for each objective of each tier, in their order.
    pub tiers: Vec<Vec<Counted>>,
    /// The growth of the number of unanswered requests, as the run's summary has it; a run at one
    /// rate must have it.
    pub backlog: Option<Backlog>,
    /// The check by Little's law; absent if requests were not due over a time or none was answered.
    pub little: Option<Little>,
}

/// Gathers the requests of one run, in any order. Keeps about a hundred bytes for each request.
pub struct Gather {
    tiers: Vec<Tier>,
    readers: Vec<Reader>,
    requests: Vec<Request>,
    /// A row of milliseconds for each request: infinite if it was not answered, negative if it is
    /// not known.
    values: Vec<f64>,
    /// The lives of all requests; absent once one is not known.
    lives: Option<Vec<Life>>,
}

struct Request {
    due: Nanos,
    /// The first token of a streamed answer.
    began: Option<Nanos>,
    ended: Option<Nanos>,
}

impl Gather {
    /// For these tiers.
    pub fn new(tiers: &[Tier]) -> Self {
        let mut readers: Vec<Reader> = Vec::new();
        for limit in tiers.iter().flat_map(|tier| &tier.limits) {
            if readers.iter().all(|reader| reader.metric != limit.metric) {
                readers.extend(Reader::new(&limit.metric));
            }
        }
        Gather {
            tiers: tiers.to_vec(),
            readers,
            requests: Vec::new(),
            values: Vec::new(),
            lives: Some(Vec::new()),
        }
    }

    /// Adds a request of the measurement that was due. Warm-up requests, and requests cancelled on
    /// purpose, count neither for nor against the server.
    pub fn add(&mut self, reading: &Reading<'_>) {
        let exchange = reading.exchange;
        if exchange.phase != Phase::Measure || exchange.outcome.class() == Class::Cancelled {
            return;
        }
        match (&mut self.lives, Life::new(reading)) {
            (Some(lives), Some(life)) => lives.push(life),
            _ => self.lives = None,
        }
        let began = reading.began();
        self.requests.push(Request { due: exchange.due, began, ended: exchange.ended });
        for reader in &self.readers {
            let seen = exchange.is_ok().then(|| reader.read(reading));
            self.values.push(coded(seen));
        }
    }

    /// Adds a request by its first token and its end, and its observations of each metric that the
    /// tiers name, in the order in which they name them first. `None` if it was not answered.
    pub fn add_seen(
        &mut self,
        due: Nanos,
        [began, ended]: [Option<Nanos>; 2],
        seen: Option<&[Observation]>,
    ) {
        self.lives = None;
        self.requests.push(Request { due, began, ended });
        for place in 0..self.readers.len() {
            let own = seen.map(|seen| seen.get(place).copied().unwrap_or(Observation::Unknown));
            self.values.push(coded(own));
        }
    }

    /// Counts the run. The run's summary has the backlog. With arrivals, the misses of a run whose
    /// answers are all known get a control.
    pub fn finish(mut self, backlog: Option<Backlog>, arrivals: Option<Arrivals>) -> Measured {
        let mut order: Vec<usize> = (0..self.requests.len()).collect();
        if !self.requests.is_sorted_by_key(|request| request.due) {
            order.sort_by_key(|place| self.requests[*place].due);
        }
        let columns: Vec<Vec<f64>> = (0..self.readers.len())
            .map(|column| {
                let row = |place: &usize| self.values[place * self.readers.len() + column];
                order.iter().map(row).collect()
            })
            .collect();
        let highest: Vec<f64> = columns.iter().map(|column| highest_tenth(column)).collect();
        let tails: Vec<(f64, u32)> = (columns.iter().zip(&highest))
            .map(|(column, from)| effect_above(column, *from))
            .collect();
        let column_of = |limit: &Limit| {
            let is_own = |reader: &Reader| reader.metric == limit.metric;
            self.readers.iter().position(is_own).unwrap_or_default()
        };
        let values_of =
            |limit: &Limit| columns.get(column_of(limit)).map_or(&[][..], Vec::as_slice);
        let limits: Vec<&Limit> = self.tiers.iter().flat_map(|tier| &tier.limits).collect();
        let all_bad: Vec<Vec<bool>> =
            limits.iter().map(|limit| misses(limit, values_of(limit))).collect();
        let mut lives = self.lives.take().unwrap_or_default();
        lives.sort_by_key(|life| life.due);
        let values: Vec<&[f64]> = limits.iter().copied().map(values_of).collect();
        let controls = arrivals
            .and_then(|own| controls(&lives, &self.readers, &limits, &values, own))
            .unwrap_or_else(|| vec![Simulated::default(); limits.len()]);
        let mut counted = all_bad.into_iter().zip(controls);
        let mut count = |limit: &Limit| {
            let (column, values) = (column_of(limit), values_of(limit));
            let (tail_effect, tail_batches) = tails.get(column).copied().unwrap_or((1.0, 0));
            let (bad, Simulated { control, overloads }) = counted.next().unwrap_or_default();
            let (effect, batches) = design_effect(&bad);
            let from = highest.get(column).copied().unwrap_or(f64::INFINITY);
            let (near_effect, _) = effect_above(values, from.max(limit.milliseconds / 2.0));
            Counted {
                requests: values.len() as u64,
                bad: bad.iter().filter(|bad| **bad).count() as u64,
                unknown: values.iter().filter(|value| **value < 0.0).count() as u64,
                effect,
                tail_effect,
                near_effect,
                batches: batches.min(tail_batches),
                control,
                overloads,
            }
        };
        let tiers =
            (self.tiers.iter()).map(|tier| tier.limits.iter().map(&mut count).collect()).collect();
        Measured {
            requests: self.requests.len() as u64,
            tiers,
            loads: loads(&order, &self.requests),
            backlog,
            little: little(&self.requests),
        }
    }
}

/// An observation as a number: infinite if there was no answer, negative if it is not known.
pub(crate) fn coded(seen: Option<Observation>) -> f64 {
    match seen {
        None => f64::INFINITY,
        Some(Observation::Unknown) => -1.0,
        Some(Observation::Took(milliseconds)) => milliseconds.max(0.0),
    }
}

/// True if a coded value misses a limit: an unknown one does.
pub(crate) fn is_miss(limit: &Limit, value: f64) -> bool {
    value < 0.0 || !limit.keeps(value)
}

/// The misses of a limit among coded values.
pub(crate) fn misses(limit: &Limit, values: &[f64]) -> Vec<bool> {
    values.iter().map(|value| is_miss(limit, *value)).collect()
}

/// The value above which the highest tenth lies; infinite without values.
pub(crate) fn highest_tenth(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::INFINITY;
    }
    let mut ranked = values.to_vec();
    let place = ranked.len() * 9 / 10;
    *ranked.select_nth_unstable_by(place, f64::total_cmp).1
}

/// The design effect of being above a value, and the batches it rests on.
fn effect_above(values: &[f64], limit: f64) -> (f64, u32) {
    if values.is_empty() {
        return (1.0, 0);
    }
    let above: Vec<bool> = values.iter().map(|value| *value > limit).collect();
    design_effect(&above)
}

/// Counts the independent loads that requests met, given their order by the time at which they
/// were due. The load is the backlog: requests that wait for their first token, or for their answer
/// where it is not streamed. Answers under way change slowly where they are long, whether anybody
/// waits or not.
fn loads(order: &[usize], requests: &[Request]) -> f64 {
    let left = |own: &Request| own.began.or(own.ended);
    let mut ends: Vec<Nanos> = requests.iter().filter_map(left).collect();
    ends.sort_unstable();
    let (mut begun, mut ended) = (0, 0);
    let waiting: Vec<u32> = (order.iter())
        .map(|place| {
            let own = &requests[*place];
            while ends.get(ended).is_some_and(|end| *end <= own.due) {
                ended += 1;
            }
            let before = begun - ended.min(begun);
            begun += usize::from(left(own).is_some());
            before as u32
        })
        .collect();
    requests.len() as f64 / design_effect_of(&waiting, FEWEST)
}

fn little(requests: &[Request]) -> Option<Little> {
    let from = requests.iter().map(|own| own.due).min()?;
    let to = requests.iter().map(|own| own.due).max()?;
    let window = to.since(from).as_secs_f64();
    let spans = (requests.iter()).filter_map(|own| Some((own.due, own.ended?)));
    let answered = spans.clone().count() as f64;
    if window <= 0.0 || answered == 0.0 {
        return None;
    }
    let latency: f64 = spans.clone().map(|(due, end)| end.since(due).as_secs_f64()).sum();
    let within: f64 = spans.map(|(due, end)| end.min(to).since(due).as_secs_f64()).sum();
    Some(Little {
        unanswered: within / window,
        per_s: answered / window,
        latency_s: latency / answered,
    })
}

#[cfg(test)]
mod tests;
