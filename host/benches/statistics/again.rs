//! Coverage of a run's intervals for other requests and for the same requests again.

use crate::cases::{
    CHATS, CONTEXT, EVEN, FREE, LONG, MANY, SHARED, SLOW_JITTER, THINKING, USUAL, case,
};
use crate::load::{Replies, each, summary_of};
use crate::measured::Section;
use crate::tally::{Tally, Target, WORDS};
use result::metric;
use result::summary::{Bounds, Summary};
use simulator::{Case, Load};

const REPEATS: u64 = 10;

/// A figure of a run, and its interval if it has one.
type Interval = (f64, Option<Bounds>);

/// A figure: its name, its value in a summary, and its intervals over other and the same requests.
type Figure = (&'static str, fn(&Summary) -> Option<(f64, Option<Bounds>, Option<Bounds>)>);

const FIGURES: [Figure; 8] = [
    ("mean TTFT", |summary| mean(summary, metric::TTFT)),
    ("median TTFT", |summary| median(summary, metric::TTFT)),
    ("mean TPOT", |summary| mean(summary, metric::TPOT)),
    ("median TPOT", |summary| median(summary, metric::TPOT)),
    ("mean E2E", |summary| mean(summary, metric::E2E)),
    ("median E2E", |summary| median(summary, metric::E2E)),
    ("requests per second", |summary| {
        let of = &summary.throughput;
        let sure = of.confidence;
        Some((
            of.requests_per_s?,
            sure.and_then(|sure| sure.other_requests.requests_per_s),
            sure.and_then(|sure| sure.same_requests.requests_per_s),
        ))
    }),
    ("output tokens per second", |summary| {
        let of = &summary.throughput;
        let sure = of.confidence;
        Some((
            of.output_tokens_per_s?,
            sure.and_then(|sure| sure.other_requests.output_tokens_per_s),
            sure.and_then(|sure| sure.same_requests.output_tokens_per_s),
        ))
    }),
];

fn mean(summary: &Summary, name: &str) -> Option<(f64, Option<Bounds>, Option<Bounds>)> {
    let of = summary.metric(name)?;
    let sure = of.confidence;
    Some((of.mean, sure.and_then(|sure| sure.mean), sure.and_then(|sure| sure.same_requests?.mean)))
}

fn median(summary: &Summary, name: &str) -> Option<(f64, Option<Bounds>, Option<Bounds>)> {
    let of = summary.metric(name)?;
    let sure = of.confidence;
    Some((
        of.median,
        sure.and_then(|sure| sure.median),
        sure.and_then(|sure| sure.same_requests?.median),
    ))
}

/// The cases up to 0.85 of capacity, and cases that people publish.
fn cases() -> Vec<(Case, Replies)> {
    use Load::{AtOnce, Closed, Open, Rate};
    let streamed = [
        case(CHATS, USUAL, Open(0.5), 1000),
        case(CHATS, USUAL, Open(0.7), 500),
        case(CHATS, USUAL, Open(0.7), 1000),
        case(CHATS, USUAL, Open(0.85), 1000),
        case(SHARED, USUAL, Open(0.7), 1000),
        case(SHARED, USUAL, Open(0.85), 1000),
        case(SHARED, FREE, Rate(10.0), 500),
        case(SHARED, CONTEXT, Open(0.7), 1000),
        case(THINKING, MANY, Open(0.6), 500),
        case(THINKING, FREE, Rate(10.0), 500),
        case(LONG, FREE, Rate(10.0), 500),
        case(CHATS, USUAL, Closed(32), 500),
        case(CHATS, USUAL, Closed(64), 1000),
        case(CHATS, SLOW_JITTER, Closed(32), 1000),
        case(EVEN, USUAL, Closed(32), 500),
        case(SHARED, FREE, Closed(64), 1000),
        case(LONG, FREE, Closed(64), 500),
        case(CHATS, USUAL, AtOnce, 500),
        case(SHARED, MANY, AtOnce, 1000),
        case(SHARED, FREE, AtOnce, 1000),
        case(LONG, MANY, AtOnce, 500),
    ];
    let whole = [
        case(CHATS, USUAL, Open(0.7), 1000),
        case(SHARED, FREE, Rate(10.0), 500),
        case(CHATS, USUAL, Closed(32), 1000),
        case(EVEN, USUAL, Closed(32), 500),
        case(SHARED, FREE, Closed(64), 1000),
        case(CHATS, USUAL, AtOnce, 500),
    ];
    let whole = whole.map(|case| Case { name: format!("{}, not streamed", case.name), ..case });
    let streamed = streamed.map(|case| (case, Replies::Streamed));
    let whole = whole.map(|case| (case, Replies::Whole));
    streamed.into_iter().chain(whole).collect()
}

pub fn sections(runs: u64) -> Vec<Section> {
    let mut rows = Vec::new();
    for (case, replies) in cases() {
        let other = each(runs, |run| seen(&summary_of(&case, replies, &case.exchanges(run, run))));
        let again = each(runs, |run| {
            seen(&summary_of(&case, replies, &case.exchanges(run / REPEATS, run)))
        });
        for (place, (figure, _)) in FIGURES.into_iter().enumerate() {
            let all: Vec<Interval> = other.iter().filter_map(|own| Some(own[place]?.0)).collect();
            let same: Vec<Interval> = again.iter().filter_map(|own| Some(own[place]?.1)).collect();
            // Whole replies have no first token.
            if all.is_empty() {
                continue;
            }
            let groups: Vec<&[Interval]> = same.chunks(REPEATS as usize).collect();
            // One run of the same requests shows nothing of whole replies.
            let target = if replies == Replies::Streamed { Target::All } else { Target::None };
            rows.push(vec![
                case.name.clone(),
                figure.to_owned(),
                tally(&[&all]).cell(Target::All),
                tally(&groups).cell(target),
            ]);
        }
    }
    let heads = ["case", "figure", "other requests", "these requests again"];
    vec![Section {
        title: "Intervals for other requests and for these again".into(),
        about: format!(
            "The share of {runs} runs of each case whose 95 % interval holds the truth. For other requests, that is the average over \
             all runs of the case; for these requests again, the average over {REPEATS} runs of the same requests, in which only the \
             engine's noise differs. {WORDS} The target is 90 to 99 %, given in 95 %, and at most 1.5 times as wide as needed."
        ),
        heads: heads.map(str::to_owned).to_vec(),
        rows,
        why: WHY.into(),
    }]
}

const WHY: &str = "Where requests wait for a slot now and then, mean TTFT is the average of many calm runs and a few that were not, and a \
    run without waits does not show the others: see above. Behaviour that a line through the steps does not describe counts as noise, so \
    the interval for these requests again is too wide where hundreds of prompts are read while the first answers come, where steps \
    grow with the context, and where answers last for much of the run; of TPOT, E2E and throughput it stays below ± 1 %. \
    Noise that lasts for seconds is known from a few blocks only, and the interval is somewhat too narrow. The throughput of a \
    burst, and of any short run, ends with the longest answer. With a long tail of lengths, a run does not show the lengths of \
    other runs. Where lengths vary less, the interval ignores that a longer answer also brings more tokens. \
    Replies that come whole show no steps: where lengths are fixed, the noise of those in flight together is taken to be all \
    shared, and in a burst it is not known when requests were let in.";

fn seen(summary: &Summary) -> [Option<(Interval, Interval)>; FIGURES.len()] {
    FIGURES.map(|(_, figure)| {
        let (figure, other, same) = figure(summary)?;
        Some(((figure, other), (figure, same)))
    })
}

/// Tallies the intervals in groups of runs, each with an average of its own.
fn tally(groups: &[&[Interval]]) -> Tally {
    let mut tally = Tally::default();
    for group in groups.iter().filter(|group| group.len() > 1) {
        let count = group.len() as f64;
        let average = group.iter().map(|(figure, _)| figure).sum::<f64>() / count;
        for (figure, bounds) in *group {
            // The average contains the figure, and is nearer to it than the truth is.
            let off = (average - figure) * (count / (count - 1.0)).sqrt();
            tally.add(off / average, bounds.map(|of| shares(of, *figure, average)));
        }
    }
    tally
}

/// Distances of the ends from a figure, as shares of the average.
fn shares(bounds: Bounds, figure: f64, average: f64) -> [f64; 2] {
    let low = bounds.low.unwrap_or(f64::NEG_INFINITY);
    let high = bounds.high.unwrap_or(f64::INFINITY);
    [(low - figure) / average, (high - figure) / average]
}
