//! Coverage of a run's own 95 % intervals: how often they hold the truth.

use crate::cases::{
    CHATS, CHUNKS, CONTEXT, EVEN, FREE, KV, LONG, MIXED, PREFIXES, SHARED, SLOW_JITTER, THINKING,
    USUAL, bursts, case,
};
use crate::load::{each, summary};
use crate::measured::Section;
use crate::tally::{Tally, Target, WORDS};
use result::metric;
use result::summary::{Bounds, Summary};
use simulator::{Case, Load, Random, ServedRequest, exchanges};
use statistics::blocks::{Blocks, Layout};
use statistics::{Figures, Interval, Ranked, Sorted, Spread, interval};

pub fn sections(runs: u64) -> Vec<Section> {
    vec![engines(runs), samples(runs)]
}

const FIGURES: [(&str, Option<f64>); 3] =
    [("mean", None), ("median", Some(50.0)), ("P99", Some(99.0))];

const METRICS: [(&str, &str); 3] =
    [(metric::TTFT, "TTFT"), (metric::TPOT, "TPOT"), (metric::E2E, "E2E")];

/// The cases, each with the target for the intervals of its means and medians.
fn cases() -> Vec<(Case, Target)> {
    use Load::{AtOnce, Closed, Open, Rate};
    let below = [
        case(CHATS, USUAL, Open(0.5), 300),
        case(CHATS, USUAL, Open(0.5), 1000),
        case(CHATS, USUAL, Open(0.7), 500),
        case(CHATS, USUAL, Open(0.7), 1000),
        case(CHATS, USUAL, Open(0.7), 4000),
        case(CHATS, USUAL, Open(0.85), 1000),
        case(CHATS, USUAL, Open(0.85), 4000),
        case(CHATS, USUAL, bursts(0.7), 1000),
        case(CHATS, USUAL, Closed(32), 500),
        case(CHATS, USUAL, Closed(32), 1000),
        case(CHATS, USUAL, Closed(64), 1000),
        case(CHATS, SLOW_JITTER, Closed(32), 1000),
        case(CHATS, KV, Open(0.7), 1000),
        case(EVEN, USUAL, Open(0.7), 1000),
        case(EVEN, USUAL, Closed(32), 500),
        case(MIXED, USUAL, Open(0.7), 1000),
        case(MIXED, CHUNKS, Open(0.7), 1000),
        case(PREFIXES, USUAL, Open(0.7), 1000),
        case(SHARED, USUAL, Open(0.7), 1000),
        case(SHARED, USUAL, Open(0.85), 1000),
        case(SHARED, CONTEXT, Open(0.7), 1000),
        case(SHARED, FREE, Rate(10.0), 500),
        case(SHARED, FREE, Rate(50.0), 500),
        case(SHARED, USUAL, Closed(64), 1000),
        case(SHARED, FREE, Closed(64), 1000),
        case(SHARED, FREE, AtOnce, 1000),
        case(THINKING, USUAL, Open(0.6), 500),
        case(THINKING, FREE, Rate(10.0), 500),
        case(LONG, FREE, Rate(10.0), 500),
        case(LONG, FREE, Closed(64), 500),
    ];
    let above = [
        case(CHATS, USUAL, Open(0.9), 1000),
        case(CHATS, USUAL, Open(0.95), 1000),
        case(CHATS, USUAL, Open(1.1), 1000),
        case(CHATS, USUAL, AtOnce, 500),
    ];
    let below = below.map(|case| (case, Target::All));
    below.into_iter().chain(above.map(|case| (case, Target::None))).collect()
}

/// A latency of a request in milliseconds; `None` where it has none.
fn sample(metric: &str, served: &ServedRequest) -> Option<f64> {
    let (first, last) = (*served.tokens.first()?, *served.tokens.last()?);
    let further = served.tokens.len() - 1;
    match metric {
        metric::TTFT => Some(first.since(served.sent).as_millis_f64()),
        metric::TPOT => (further > 0).then(|| last.since(first).as_millis_f64() / further as f64),
        _ => Some(last.since(served.sent).as_millis_f64()),
    }
}

const WHY: &str = "By figure:

- **Mean TTFT of open loops**: in many of these runs, no request waits for a slot. Everything in them happens at the very same time \
    as on an engine with room for all, so nothing in them can tell the two apart. On average over all runs the mean is higher, because \
    in a few runs many requests wait for long. So the interval of a run without waits has no upper end. It has none either where the \
    mean may be twice as high, and is not given if its lower end is 0 too. Repeats, or a longer run, show the waits.
- **Reasoning at 10 a second**: answers last for a third of the run, so the engine fills for much of it. The likely cause is that \
    behaviour common to every run then counts as chance. The interval is too wide, not too narrow.
- **1k/1k in a closed loop**: lengths are fixed, so the engine's noise is all that differs, about 0.1 %. The likely cause is that steps \
    which read the prompts of all users at once do not follow the line through the others, and count as noise: ± 0.3 %.";

fn engines(runs: u64) -> Section {
    let mut rows = Vec::new();
    for (case, target) in cases() {
        let drawn = each(runs, |run| {
            let served = case.served(run, run);
            let summary = summary(&case, &exchanges(&served));
            let samples = METRICS.map(|(metric, _)| {
                served.iter().filter_map(|own| sample(metric, own)).collect::<Vec<f64>>()
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
                    let Some((figure, interval)) = given(summary, metric, percentile) else {
                        tally.add(0.0, None);
                        continue;
                    };
                    let share = |value: f64| (value - figure) / truth;
                    tally.add(share(truth), interval.map(|own| [own.low, own.high].map(share)));
                }
                let target = if figure == "P99" { Target::Least(0.93) } else { target };
                row.push(tally.cell(target));
            }
            rows.push(row);
        }
    }
    let mut heads = vec!["case".to_owned(), "metric".to_owned()];
    heads.extend(FIGURES.map(|(name, _)| name.to_owned()));
    Section {
        title: "Intervals of one run".into(),
        about: format!(
            "The share of {runs} runs of each case whose 95 % interval holds the truth, which is the figure over all runs of the \
             case. {WORDS} \"Too little data\" stands where fewer than one run in twenty has an interval. The target of means and \
             medians up to 0.85 of capacity is that 90 to 99 % hold the truth, that 95 % are given, and that they are at most 1.5 \
             times as wide as needed. For a P99, 93 % of the given intervals hold it."
        ),
        heads,
        rows,
        why: WHY.into(),
    }
}

/// A figure over all runs: the mean of means, or the percentile of all samples together.
fn truth(samples: &[&Vec<f64>], percentile: Option<f64>) -> f64 {
    match percentile {
        None => {
            let means = samples.iter().map(|own| own.iter().sum::<f64>() / own.len() as f64);
            means.sum::<f64>() / samples.len() as f64
        }
        Some(percent) => {
            let all: Vec<f64> = samples.iter().flat_map(|own| own.iter().copied()).collect();
            Sorted::new(all).map_or(f64::NAN, |all| all.percentile(percent))
        }
    }
}

/// A figure of a run, and its interval if it has one.
fn given(
    summary: &Summary,
    metric: &str,
    percentile: Option<f64>,
) -> Option<(f64, Option<Interval>)> {
    let of = summary.metric(metric)?;
    let figure = match percentile {
        None => of.mean,
        Some(percent) => of.percentile(percent)?,
    };
    let bounds = of.confidence.and_then(|own| match percentile {
        None => own.mean,
        Some(50.0) => own.median,
        Some(_) => own.p99,
    });
    let interval = bounds.map(|Bounds { low, high }| Interval {
        low: low.unwrap_or(f64::NEG_INFINITY),
        high: high.unwrap_or(f64::INFINITY),
    });
    Some((figure, interval))
}

/// Samples of known distributions, without an engine.
fn samples(runs: u64) -> Section {
    // The lognormal distribution's mean and P99, and a normal distribution's about 10.
    let lognormal = [0.5_f64.exp(), 1.0, 2.326_347_874_f64.exp()];
    let normal = [10.0, 10.0, 12.326_347_874];
    let mut rows = Vec::new();
    for requests in [20_u64, 50, 100, 200, 500, 1000] {
        let draw = |random: &mut Random, _: &mut f64| random.normal().exp();
        let name = format!("independent, lognormal, {requests} samples");
        rows.push(row(name, runs, requests, lognormal, draw));
    }
    for kept in [0.5_f64, 0.9] {
        let draw = move |random: &mut Random, at: &mut f64| {
            *at = kept * *at + (1.0 - kept * kept).sqrt() * random.normal();
            10.0 + *at
        };
        let name = format!("autoregressive, correlation {kept}, 1000 samples");
        rows.push(row(name, runs, 1000, normal, draw));
    }
    let mut heads = vec!["samples".to_owned()];
    heads.extend(FIGURES.map(|(name, _)| name.to_owned()));
    Section {
        title: "Intervals of samples of known distributions".into(),
        about: format!(
            "The same for {runs} sets of samples whose distribution is known to the formula. The target is that means and medians \
             hold the truth in 90 % at least, and a P99 in 93 %."
        ),
        heads,
        rows,
        why: "Of few samples that vary much, the largest are missing.".into(),
    }
}

fn row(
    name: String,
    runs: u64,
    requests: u64,
    truths: [f64; 3],
    draw: impl Fn(&mut Random, &mut f64) -> f64 + Sync,
) -> Vec<String> {
    let drawn = each(runs, |run| {
        let mut random = Random::new(7_000_000 + run);
        let mut at = random.normal();
        let samples: Vec<f64> = (0..requests).map(|_| draw(&mut random, &mut at)).collect();
        FIGURES.map(|(_, percentile)| interval_of(&samples, percentile))
    });
    let mut row = vec![name];
    for (place, truth) in truths.into_iter().enumerate() {
        let mut tally = Tally::default();
        for own in &drawn {
            let share = |value: f64| (value - truth) / truth;
            tally.add(0.0, own[place].map(|own| [own.low, own.high].map(share)));
        }
        row.push(tally.cell(Target::Least(if place == 2 { 0.93 } else { 0.9 })));
    }
    row
}

fn interval_of(samples: &[f64], percentile: Option<f64>) -> Option<Interval> {
    let count = samples.len() as u64;
    let layout = Layout::new(count, 0, 0, count - 1)?;
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
