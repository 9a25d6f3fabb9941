//! A run cut into blocks of consecutive requests, with sums and counts for each: the data that a
//! bootstrap over blocks draws from. Reads exchanges one by one and keeps none.
//!
//! Requests of one run are not independent samples: requests in flight together share a batch and a
//! queue. Blocks are long enough that little of this dependence crosses their ends. Gaps and tokens
//! are assigned by their arrival time: a pause affects all requests in flight, and counts as one
//! event, not one per request. An answer is assigned by the shares of its tokens, so rates of
//! answers and of tokens are equally certain.
//!
//! Of a run that alternates between sides, each turn of a side is a run of its own, and one block.

use std::sync::Arc;

use super::prompts::Places;
use model::exchange::{Exchange, Phase};
use model::units::Nanos;
use result::figure::{Figure, Statistic, WHOLE};
use result::metric::{self, Measure, Metric, Objective, Of, Reading, Single, objective};
use result::summary::{Loop, Run, RunFacts, Summary};
use statistics::blocks::{FEWEST, MOST};
use statistics::cells::{Cells, Counting};
use statistics::decomposition::Decomposition;

/// Up to this many requests, every sample is kept exactly.
const EXACT: u64 = 20_000;

/// The number of blocks for runs whose shortest has this many requests; `None` if there are too
/// few. A block has at least as many requests as a run has blocks.
pub fn blocks(requests: u64) -> Option<usize> {
    (requests >= FEWEST).then(|| (requests / FEWEST).clamp(FEWEST, MOST) as usize)
}

/// A metric by name: the sum and the number of its samples by block, and their cells.
type Sampled = (&'static str, Vec<[f64; 2]>, Arc<Cells>);

#[derive(Debug, Default)]
pub struct Blocked {
    metrics: Vec<Sampled>,
    requests: Vec<Counts>,
    flow: Vec<Flow>,
    /// The time of each slice in seconds; absent if the run's time is not known.
    seconds: Option<Vec<f64>>,
    edge: f64,
    /// The variation of the load from block to block, as a share of it, if its requests come by
    /// chance; `None` where the engine's answers decide when they come.
    pub(super) load: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    total: u64,
    answered: u64,
    good: u64,
}

/// The requests and tokens that arrived in a slice of the run's time.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    answered: f64,
    good: f64,
    input_tokens: f64,
    output_tokens: f64,
    good_tokens: f64,
}

/// Cuts a run as its exchanges are shown, in whatever order.
pub struct Cutting<'a> {
    facts: &'a RunFacts,
    blocks: usize,
    requests: u64,
    slices: u64,
    origin: Nanos,
    duration: f64,
    objectives: Vec<(Single, f64)>,
    metrics: Vec<Gathered>,
    cut: Blocked,
    baseline: Option<&'a Places>,
    /// The block of every request and every instant, where the run is one block.
    turn: Option<usize>,
}

struct Gathered {
    metric: &'static Metric,
    sums: Vec<[f64; 2]>,
    counting: Counting,
}

impl<'a> Cutting<'a> {
    /// A run to be cut into blocks, for these figures. `slices` is the number of parts of the plan.
    pub fn new(
        (facts, summary): (&'a RunFacts, &Summary),
        slices: u32,
        figures: &[Figure],
        blocks: usize,
    ) -> Self {
        let requests = summary.requests.total.max(1);
        let measured = |objective: &Objective| Some((objective.measure()?, objective.at_most_ms));
        let gathered = |metric| Gathered::new(metric, blocks, requests);
        let duration = summary.throughput.duration_s;
        Cutting {
            facts,
            blocks,
            requests,
            slices: u64::from(slices.max(1)),
            origin: summary.run.measure_start.unwrap_or_default(),
            duration: duration.unwrap_or_default(),
            objectives: facts.run.goodput.iter().filter_map(measured).collect(),
            metrics: wanted(figures).map(gathered).collect(),
            cut: Blocked {
                seconds: duration.map(|seconds| vec![seconds / blocks as f64; blocks]),
                edge: edge(summary),
                load: load(&facts.run, requests as f64 / blocks as f64),
                ..Blocked::new(blocks)
            },
            baseline: None,
            turn: None,
        }
    }

    /// A measurement in turns: each turn is a run and a block ([`Cutting::begin_turn`]).
    pub fn in_turns(first: (&'a RunFacts, &Summary), figures: &[Figure], turns: usize) -> Self {
        let mut cutting = Cutting::new(first, 1, figures, turns);
        cutting.cut.seconds = Some(vec![0.0; turns]);
        cutting.cut.edge = 0.0;
        cutting.cut.load = None;
        cutting
    }

    /// The exchanges of this turn are shown next.
    pub fn begin_turn(&mut self, turn: usize, (facts, summary): (&'a RunFacts, &Summary)) {
        (self.facts, self.turn) = (facts, Some(turn));
        let timed = self.cut.seconds.take().zip(summary.throughput.duration_s);
        self.cut.seconds = timed.map(|(mut seconds, own)| {
            seconds[turn] = own;
            seconds
        });
    }

    /// Requests that stand in these places of the baseline stand in the same places here, if both
    /// runs are as long: else the shorter one would fill some blocks only.
    pub fn place_as(&mut self, baseline: &'a Places) {
        let apart = baseline.requests.abs_diff(self.requests);
        if apart.saturating_mul(self.blocks as u64) <= self.requests {
            self.baseline = Some(baseline);
        }
    }

    pub fn add(&mut self, exchange: &Exchange) {
        if exchange.phase != Phase::Measure {
            return;
        }
        let paired = (self.baseline)
            .and_then(|baseline| baseline.of_request(&exchange.sample.request_digest));
        let block = match (self.turn, paired) {
            (Some(turn), _) => turn,
            (None, Some((place, of))) => part(place, of, self.blocks),
            (None, None) => part(exchange.index / self.slices, self.requests, self.blocks),
        };
        let retokenized = self.facts.retokenized.get(exchange.index);
        let run = &self.facts.run;
        let reading = Reading::new(exchange, run.streamed, retokenized).at_pace(run.pace());
        let answered = exchange.is_ok();
        let good = answered && self.is_good(&reading);
        let counts = &mut self.cut.requests[block];
        // Requests cancelled on purpose count neither as answered nor as failed.
        counts.total += u64::from(answered || exchange.has_failed());
        counts.answered += u64::from(answered);
        counts.good += u64::from(good);
        let slice = self.slice();
        if answered {
            self.flow(&reading, good, &slice);
        }
        for gathered in &mut self.metrics {
            if gathered.metric.of == Of::Sent || answered {
                gathered.add(block, &slice, &reading);
            }
        }
    }

    /// Tells in which slice of the run's time an instant lies.
    fn slice(&self) -> impl Fn(Nanos) -> usize + use<> {
        let nanoseconds = (self.duration * 1e9) as u64;
        let (origin, blocks, turn) = (self.origin, self.blocks, self.turn);
        move |at| turn.unwrap_or_else(|| part(at.since(origin).0, nanoseconds, blocks))
    }

    fn is_good(&self, reading: &Reading<'_>) -> bool {
        let mut objectives = self.objectives.iter();
        objectives.all(|(measure, most)| objective::kept(*measure, *most, reading) == Some(true))
    }

    fn flow(&mut self, reading: &Reading<'_>, good: bool, slice: impl Fn(Nanos) -> usize) {
        let Some(ended) = reading.exchange.ended else { return };
        let input = reading.input_tokens.map_or(0.0, |count| f64::from(count.tokens));
        let output = reading.output_tokens.map_or(0.0, |count| f64::from(count.tokens));
        let (mut arrived, mut dated) = (Vec::new(), 0.0);
        reading.each_token_arrival(|at, tokens| {
            arrived.push((slice(at), tokens as f64));
            dated += tokens as f64;
        });
        arrived.push((slice(ended), (output - dated).max(0.0)));
        let whole = output.max(dated);
        if whole == 0.0 {
            arrived = vec![(slice(ended), 1.0)];
        }
        for (slice, tokens) in arrived {
            let (flow, share) = (&mut self.cut.flow[slice], tokens / whole.max(1.0));
            flow.answered += share;
            flow.input_tokens += share * input;
            flow.output_tokens += share * whole;
            if good {
                flow.good += share;
                flow.good_tokens += share * whole;
            }
        }
    }

    pub fn finish(self) -> Blocked {
        Blocked { metrics: self.metrics.into_iter().map(Gathered::finish).collect(), ..self.cut }
    }
}

impl Gathered {
    fn new(metric: &'static Metric, blocks: usize, requests: u64) -> Self {
        let single = matches!(metric.measure, Measure::One(_));
        Gathered {
            metric,
            sums: vec![[0.0; 2]; blocks],
            counting: Counting::new(blocks, single && requests <= EXACT),
        }
    }

    fn add(&mut self, block: usize, slice: impl Fn(Nanos) -> usize, reading: &Reading<'_>) {
        let scale = self.metric.unit.scale();
        match self.metric.measure {
            Measure::One(measure) => {
                if let Some(sample) = measure(reading) {
                    self.one(block, sample);
                }
            }
            Measure::Pooled(shown) => {
                let (sums, counting) = (&mut self.sums, &mut self.counting);
                shown(reading, &mut |at, value, times| {
                    let slice = slice(at);
                    sums[slice][0] += value as f64 / scale * times as f64;
                    sums[slice][1] += times as f64;
                    counting.add(slice, value, times);
                });
            }
            Measure::Session(_) => {}
        }
    }

    fn one(&mut self, block: usize, sample: f64) {
        self.sums[block][0] += sample;
        self.sums[block][1] += 1.0;
        let steps = (sample * self.metric.unit.scale()).round() as u64;
        self.counting.add(block, steps, 1);
    }

    fn finish(self) -> Sampled {
        let cells = self.counting.finish(self.metric.unit.scale());
        (self.metric.name, self.sums, Arc::new(cells))
    }
}

impl Blocked {
    /// Blocks without any data.
    fn new(blocks: usize) -> Self {
        let (requests, flow) = (vec![Counts::default(); blocks], vec![Flow::default(); blocks]);
        Blocked { requests, flow, ..Blocked::default() }
    }

    /// Samples per request from another tool, each list in the order of its requests.
    pub(crate) fn of_samples(samples: &[(&'static str, Vec<f64>)], blocks: usize) -> Self {
        let metrics = samples.iter().filter_map(|(name, values)| {
            let metric = metric::by_name(name)?;
            let count = values.len() as u64;
            let mut gathered = Gathered::new(metric, blocks, count);
            for (place, value) in (0..).zip(values) {
                gathered.one(part(place, count, blocks), *value);
            }
            Some(gathered.finish())
        });
        Blocked { metrics: metrics.collect(), ..Blocked::new(blocks) }
    }

    /// A figure decomposed by block; `None` if blocks do not contribute to it.
    pub fn take(&self, figure: &Figure) -> Option<Decomposition> {
        match figure {
            Figure::Of(name, statistic) => {
                let (_, sums, ranks) = self.metrics.iter().find(|(metric, ..)| metric == name)?;
                match statistic {
                    Statistic::Mean => Some(Decomposition::Ratio(sums.clone())),
                    Statistic::Percentile(percent) => {
                        Some(Decomposition::Percentile(ranks.clone(), *percent))
                    }
                    Statistic::Std | Statistic::Min | Statistic::Max => None,
                }
            }
            Figure::Whole(place) => self.whole(WHOLE[*place].name),
            // Scores are paired by sample.
            Figure::Score(_) => None,
        }
    }

    fn whole(&self, name: &str) -> Option<Decomposition> {
        let share = |part: fn(&Counts) -> u64| {
            let blocks = self.requests.iter();
            Decomposition::Ratio(blocks.map(|c| [part(c) as f64, c.total as f64]).collect())
        };
        let rate = |amount: fn(&Flow) -> f64| {
            let slices = self.flow.iter().zip(self.seconds.as_ref()?);
            let slices = slices.map(|(flow, seconds)| [amount(flow), *seconds]);
            Some(Decomposition::Rate(slices.collect(), self.edge))
        };
        match name {
            "requests.success-share" => Some(share(|c| c.answered)),
            "requests.failed" => {
                // The sum over the mixture's blocks, as if they were the run's.
                let one = 1.0 / self.requests.len() as f64;
                let blocks = self.requests.iter();
                let failed = blocks.map(|c| [(c.total - c.answered) as f64, one]);
                Some(Decomposition::Ratio(failed.collect()))
            }
            "goodput.slo-attainment" => Some(share(|c| c.good)),
            "goodput.requests-per-s" => rate(|flow| flow.good),
            "goodput.output-tokens-per-s" => rate(|flow| flow.good_tokens),
            "throughput.requests-per-s" => rate(|flow| flow.answered),
            "throughput.input-tokens-per-s" => rate(|flow| flow.input_tokens),
            "throughput.output-tokens-per-s" => rate(|flow| flow.output_tokens),
            "throughput.total-tokens-per-s" => rate(|flow| flow.input_tokens + flow.output_tokens),
            _ => None,
        }
    }
}

/// The uncertainty of the run's time, as a share of it. The run ends with an answer, whose time is
/// subject to chance: the variation of latencies or, if answers queue and come one after the other,
/// the time between two.
fn edge(summary: &Summary) -> f64 {
    let latency = summary.metric(metric::E2E_FROM_DUE);
    let seconds = summary.throughput.duration_s;
    let Some((latency, seconds)) = latency.zip(seconds.filter(|seconds| *seconds > 0.0)) else {
        return 0.0;
    };
    (latency.std / 1e3 / seconds).min(1.0 / latency.count as f64)
}

/// The load's variation between blocks of this size, as a share of it, where a rate decides it.
fn load(run: &Run, requests: f64) -> Option<f64> {
    let by_rate = run.r#loop == Loop::Open && run.request_rate.is_some();
    by_rate.then(|| 1.0 / requests.sqrt())
}

/// The metrics of the figures, each once. Metrics of sessions span several blocks and are left out.
fn wanted(figures: &[Figure]) -> impl Iterator<Item = &'static Metric> {
    let of_requests = metric::CATALOGUE.iter().filter(|metric| metric.of != Of::Session);
    of_requests.filter(|metric| {
        let mut figures = figures.iter();
        figures.any(|figure| matches!(figure, Figure::Of(name, _) if *name == metric.name))
    })
}

/// Finds the number of the equal part of `whole` in which the place lies.
fn part(place: u64, whole: u64, parts: usize) -> usize {
    let part = u128::from(place) * parts as u128 / u128::from(whole.max(1));
    (part as usize).min(parts - 1)
}
