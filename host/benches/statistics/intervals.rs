//! How often a run's own 95 % intervals hold the truth.

use crate::load::{each, summary};
use crate::table::{Section, misses, percent, remarks};
use result::metric;
use result::stats::blocks::{Blocks, Layout};
use result::stats::{Figures, Interval, Ranked, Sorted, Spread, interval};
use result::summary::{Bounds, Summary};
use simulator::{CHAT, Case, FIXED, Load, Parameters, Random, Served, exchanges};

/// What the intervals of a figure did in the runs of a case.
#[derive(Clone, Copy, Default)]
struct Tally {
    runs: usize,
    given: usize,
    held: usize,
    open: usize,
    /// Sum of the widths of closed intervals, as a share of the truth.
    width: f64,
}

impl Tally {
    fn add(&mut self, interval: Option<Interval>, truth: f64) {
        self.runs += 1;
        let Some(Interval { low, high }) = interval else {
            return;
        };
        self.given += 1;
        // Engines that do not vary give the same to rounding.
        let rounding = 1e-9 * truth.abs();
        self.held += usize::from(low <= truth + rounding && truth <= high + rounding);
        if high.is_infinite() {
            self.open += 1;
        } else {
            self.width += (high - low) / truth;
        }
    }

    /// The share of the given intervals that hold the truth; `None` where hardly any is given.
    fn coverage(&self) -> Option<f64> {
        (self.given * 20 >= self.runs).then(|| self.held as f64 / self.given as f64)
    }

    /// Coverage, with how often it was given and how wide it was.
    fn cell(&self) -> String {
        if self.coverage().is_none() {
            return "too little data".into();
        }
        let mut parts = Vec::new();
        if self.given < self.runs {
            parts.push(format!("given {}", percent(self.given, self.runs)));
        }
        if self.open > 0 {
            parts.push(format!("open {}", percent(self.open, self.given)));
        }
        let closed = self.given - self.open;
        if closed > 0 {
            let half = 50.0 * self.width / closed as f64;
            parts.push(format!("± {half:.0} %"));
        }
        format!("{} ({})", percent(self.held, self.given), parts.join(", "))
    }
}

pub fn sections(runs: u64) -> Vec<Section> {
    vec![engines(runs), samples(runs)]
}

const FIGURES: [(&str, Option<f64>); 3] =
    [("mean", None), ("median", Some(50.0)), ("P99", Some(99.0))];

const METRICS: [(&str, &str); 3] = [
    (metric::TTFT, "TTFT"),
    (metric::TPOT, "TPOT"),
    (metric::E2E, "E2E"),
];

fn cases() -> Vec<Case> {
    use Load::{AtOnce, Closed, Open};
    let mut cases: Vec<Case> = [
        (Open(0.5), 300),
        (Open(0.5), 1000),
        (Open(0.7), 500),
        (Open(0.7), 1000),
        (Open(0.7), 4000),
        (Open(0.85), 1000),
        (Open(0.85), 4000),
        (Open(0.9), 1000),
        (Open(0.95), 1000),
        (Open(1.1), 1000),
        (Closed(32), 500),
        (Closed(32), 1000),
        (Closed(64), 1000),
        (AtOnce, 500),
    ]
    .into_iter()
    .map(|(load, requests)| Case::usual(load, requests))
    .collect();
    let others = [
        (
            "closed loop, 32 users, 500 requests, fixed lengths",
            "",
            FIXED,
            Closed(32),
            500,
        ),
        (
            "open loop, 0.7 of capacity, 1000 requests, fixed lengths",
            "",
            FIXED,
            Open(0.7),
            1000,
        ),
        (
            "closed loop, 32 users, 1000 requests, steps that drift slowly (jitter 10 %, correlation 0.99)",
            "jitter=0.1,correlation=0.99",
            CHAT,
            Closed(32),
            1000,
        ),
        (
            "open loop, 0.7 of capacity, 1000 requests, KV cache of 12,000 tokens",
            "kv=12000",
            CHAT,
            Open(0.7),
            1000,
        ),
    ];
    cases.extend(others.map(|(name, engine, lengths, load, requests)| {
        Case::of(name, parameters(engine), lengths, load, requests)
    }));
    cases
}

fn parameters(text: &str) -> Parameters {
    text.parse().unwrap_or_else(|mistake| panic!("{mistake}"))
}

/// A latency of a request in milliseconds; `None` where it has none.
fn sample(metric: &str, served: &Served) -> Option<f64> {
    let (first, last) = (*served.tokens.first()?, *served.tokens.last()?);
    let further = served.tokens.len() - 1;
    match metric {
        metric::TTFT => Some(first.since(served.sent).as_millis_f64()),
        metric::TPOT => (further > 0).then(|| last.since(first).as_millis_f64() / further as f64),
        _ => Some(last.since(served.sent).as_millis_f64()),
    }
}

/// The cells that lie outside of the target, 90 to 99 %.
#[derive(Default)]
struct Outside {
    below: Vec<String>,
    above: Vec<String>,
}

impl Outside {
    fn add(&mut self, cell: &str, tally: &Tally) {
        let Some(coverage) = tally.coverage() else {
            return;
        };
        let named = format!("{cell} ({})", percent(tally.held, tally.given));
        if coverage < 0.9 {
            self.below.push(named);
        } else if coverage > 0.99 {
            self.above.push(named);
        }
    }

    fn remarks(&self) -> String {
        remarks([
            misses(
                "Below 90 %",
                &self.below,
                "Close to capacity, a run that happens to be calm shows nothing of the queues that other runs have, so the \
                 intervals that are given are of the calmest runs; the others have none, and the note `few-loads`. Repeats \
                 show what one run cannot.",
            ),
            misses(
                "Above 99 %",
                &self.above,
                "Intervals of a P99 lie between order statistics, of which few lie beyond it, and mostly have no upper end. \
                 The upper end of mean TTFT allows for bursts that a run did not hold. Where lengths are fixed, the fill of \
                 a closed loop is the same in every run, and one run cannot show that.",
            ),
        ])
    }
}

fn engines(runs: u64) -> Section {
    let mut rows = Vec::new();
    let mut outside = Outside::default();
    for case in cases() {
        let drawn = each(runs, |run| {
            let served = case.served(run, run);
            let summary = summary(&case, &exchanges(&served));
            let samples = METRICS.map(|(metric, _)| {
                let samples = served.iter().filter_map(|own| sample(metric, own));
                samples.collect::<Vec<f64>>()
            });
            (summary, samples)
        });
        for (place, (metric, label)) in METRICS.into_iter().enumerate() {
            let own: Vec<&Vec<f64>> = drawn.iter().map(|(_, samples)| &samples[place]).collect();
            let mut row = vec![case.name.clone(), label.to_owned()];
            for (figure, percentile) in FIGURES {
                let truth = truth(&own, percentile);
                let mut tally = Tally::default();
                for (summary, _) in &drawn {
                    tally.add(given(summary, metric, percentile), truth);
                }
                outside.add(&format!("{}: {figure} {label}", case.name), &tally);
                row.push(tally.cell());
            }
            rows.push(row);
        }
    }
    let mut heads = vec!["case".to_owned(), "metric".to_owned()];
    heads.extend(FIGURES.map(|(name, _)| name.to_owned()));
    Section {
        title: "Intervals of one run".into(),
        about: "The share of runs whose 95 % interval holds the truth, which is the figure over all runs of the case. \
            \"Given\" is the share of runs that have an interval at all, if not all do; \"open\" the share of the given \
            ones without an upper end; the last figure is half the mean width of the others. \"Too little data\" stands \
            where fewer than one run in twenty has an interval. The target is 90 to 99 % up to 0.85 of capacity."
            .into(),
        heads,
        rows,
        remarks: outside.remarks(),
    }
}

/// A figure over all runs: the mean of means, or the percentile of all samples together.
fn truth(samples: &[&Vec<f64>], percentile: Option<f64>) -> f64 {
    match percentile {
        None => {
            let means = samples
                .iter()
                .map(|own| own.iter().sum::<f64>() / own.len() as f64);
            means.sum::<f64>() / samples.len() as f64
        }
        Some(percent) => {
            let all: Vec<f64> = samples.iter().flat_map(|own| own.iter().copied()).collect();
            Sorted::new(all).map_or(f64::NAN, |all| all.percentile(percent))
        }
    }
}

fn given(summary: &Summary, metric: &str, percentile: Option<f64>) -> Option<Interval> {
    let of = summary.metric(metric)?.confidence?;
    let Bounds { low, high } = match percentile {
        None => of.mean?,
        Some(50.0) => of.median?,
        Some(_) => of.p99?,
    };
    Some(Interval {
        low: low.unwrap_or(f64::NEG_INFINITY),
        high: high.unwrap_or(f64::INFINITY),
    })
}

/// Samples of known distributions, without an engine.
fn samples(runs: u64) -> Section {
    // The lognormal distribution's mean and P99, and those of a normal one about 10.
    let lognormal = [0.5_f64.exp(), 1.0, 2.326_347_874_f64.exp()];
    let normal = [10.0, 10.0, 12.326_347_874];
    let mut rows = Vec::new();
    let mut outside = Outside::default();
    for requests in [20_u64, 50, 100, 200, 500, 1000] {
        let draw = |random: &mut Random, _: &mut f64| random.normal().exp();
        let name = format!("independent, lognormal, {requests} samples");
        rows.push(row(name, runs, requests, lognormal, draw, &mut outside));
    }
    for kept in [0.5_f64, 0.9] {
        let draw = move |random: &mut Random, at: &mut f64| {
            *at = kept * *at + (1.0 - kept * kept).sqrt() * random.normal();
            10.0 + *at
        };
        let name = format!("autoregressive, correlation {kept}, 1000 samples");
        rows.push(row(name, runs, 1000, normal, draw, &mut outside));
    }
    let mut heads = vec!["samples".to_owned()];
    heads.extend(FIGURES.map(|(name, _)| name.to_owned()));
    Section {
        title: "Intervals of samples of known distributions".into(),
        about: "The same for samples whose distribution is known to the formula.".into(),
        heads,
        rows,
        remarks: outside.remarks(),
    }
}

fn row(
    name: String,
    runs: u64,
    requests: u64,
    truths: [f64; 3],
    draw: impl Fn(&mut Random, &mut f64) -> f64 + Sync,
    outside: &mut Outside,
) -> Vec<String> {
    let drawn = each(runs, |run| {
        let mut random = Random::new(7_000_000 + run);
        let mut at = random.normal();
        let samples: Vec<f64> = (0..requests).map(|_| draw(&mut random, &mut at)).collect();
        FIGURES.map(|(_, percentile)| interval_of(&samples, percentile))
    });
    let mut row = vec![name.clone()];
    for (place, truth) in truths.into_iter().enumerate() {
        let mut tally = Tally::default();
        drawn.iter().for_each(|own| tally.add(own[place], truth));
        outside.add(&format!("{name}: {}", FIGURES[place].0), &tally);
        row.push(tally.cell());
    }
    row
}

fn interval_of(samples: &[f64], percentile: Option<f64>) -> Option<Interval> {
    let count = samples.len() as u64;
    let layout = Layout::of(count, 0, 0, count - 1)?;
    let (mut blocks, mut spread) = (Blocks::new(layout, 1e6), Spread::new(1e6));
    for (index, sample) in (0..).zip(samples) {
        blocks.add(index, *sample);
        spread.add(*sample);
    }
    let figures: Figures = spread.figures()?;
    match percentile {
        None => interval::mean(&blocks, &figures, None),
        Some(percent) => interval::percentile(&blocks, &figures, percent, None),
    }
}
