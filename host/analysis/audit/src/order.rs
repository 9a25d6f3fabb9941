//! Rules on the statistics of one latency: percentiles are in order, and the mean is consistent
//! with them.
//!
//! Let samples be sorted from 0 to N - 1. The p-th percentile lies between the sample at
//! `floor(p (N - 1))` and the next, with any interpolation; a tool that takes the nearest rank is
//! off by one. So all but this number of the N samples are at least, or at most, the percentile,
//! which bounds the mean.

use super::Finding;
use super::figures::{Figures, shown};
use super::id::Id;
use super::spread::Range;
use result::figure::Statistic;
use result::finding::Severity;

/// The latencies, by the tool's name, with their label in findings.
pub(super) const NAMES: [(&str, &str); 4] =
    [("e2e", "E2E"), ("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL")];

/// A percentile with its value.
pub(super) type Point = (f64, Range);

/// Percentiles in order, the least and the greatest at the ends.
pub(super) fn points(figures: &Figures<'_>, theirs: &str) -> Vec<Point> {
    let mut points: Vec<Point> = (figures.claim.statistics(theirs).into_iter())
        .filter_map(|(statistic, stated)| {
            let percent = match statistic {
                Statistic::Min => 0.0,
                Statistic::Max => 100.0,
                Statistic::Percentile(percent) => percent,
                Statistic::Mean | Statistic::Std => return None,
            };
            Some((percent, Range::from(stated)))
        })
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

/// Writes the name of a percentile in findings.
pub(super) fn label(percent: f64) -> String {
    match percent {
        0.0 => "min".into(),
        50.0 => "median".into(),
        100.0 => "max".into(),
        percent => format!("P{percent}"),
    }
}

pub(super) fn percentiles(figures: &Figures<'_>) -> Option<Finding> {
    let mut wrong = Vec::new();
    for (theirs, name) in NAMES {
        for pair in points(figures, theirs).windows(2) {
            let [(low, at_low), (high, at_high)] = [pair[0], pair[1]];
            if at_high.below(at_low) {
                let [low, high] = [low, high].map(label);
                wrong
                    .push(format!("{low} {name} is {at_low} ms and {high} {name} is {at_high} ms"));
            }
        }
    }
    (!wrong.is_empty()).then(|| Finding::new(Id::Disordered, Severity::Invalid, wrong.join("; ")))
}

pub(super) fn means(figures: &Figures<'_>) -> Option<Finding> {
    let wrong: Vec<String> = (NAMES.into_iter())
        .filter_map(|(theirs, name)| {
            let mean = figures.get(&format!("{theirs}.mean"))?;
            // A mean that was not measured is the matter of another rule.
            if mean.high <= 0.0 {
                return None;
            }
            let points = points(figures, theirs);
            let most = match theirs {
                "e2e" | "ttft" => figures.duration().map(|duration| duration.high * 1e3),
                _ => None,
            };
            let samples = samples(figures, theirs)?;
            let seen = |words: String| Some(format!("mean {name} is {mean} ms, {words}"));
            let least = least(&points, samples);
            if mean.below(Range::exact(least)) {
                return seen(format!("but the percentiles allow no less than {}", shown(least)));
            }
            let greatest = greatest(&points, samples, most)?;
            if Range::exact(greatest).below(mean) && mean.low > greatest * 1.001 {
                return seen(format!("but the percentiles allow no more than {}", shown(greatest)));
            }
            strays(figures, theirs, mean, &points).and_then(seen)
        })
        .collect();
    (!wrong.is_empty())
        .then(|| Finding::new(Id::MeanImpossible, Severity::Invalid, wrong.join("; ")))
}

/// The number of samples of a latency; `None` if it is not known well, or if samples are weighted
/// by their tokens, so that one may dominate.
fn samples(figures: &Figures<'_>, theirs: &str) -> Option<f64> {
    let answered = figures.answered().filter(|_| !figures.claim.trimmed)?;
    match theirs {
        "tpot" | "itl" if figures.first_and_last() => None,
        // Answers of one token have no TPOT.
        "tpot" => figures.same_length().then_some(answered),
        // All gaps together are the time after the first token.
        "itl" => {
            let gaps = figures.decode()?.low * answered / figures.positive("itl.mean")?.high;
            (figures.itl_is_gaps() && gaps >= 100.0).then_some(gaps)
        }
        _ => Some(answered),
    }
}

/// The least mean: each sample as small as the percentile below it allows.
fn least(points: &[Point], samples: f64) -> f64 {
    // A percentile of very few samples shows nothing.
    if samples < 10.0 {
        return 0.0;
    }
    let mut sum = 0.0;
    let mut counted: f64 = 0.0;
    for (percent, value) in points.iter().rev() {
        let at_least = match percent {
            0.0 => samples,
            100.0 => 1.0,
            // One less than there are, for the nearest rank.
            percent => (samples - 2.0 - (percent / 100.0 * (samples - 1.0)).floor()).max(0.0),
        };
        sum += (at_least - counted).max(0.0) * value.low.max(0.0);
        counted = counted.max(at_least);
    }
    sum / samples * 0.99
}

/// The greatest mean: each sample as large as the percentile above it allows, and the rest as the
/// largest, or the run's duration.
fn greatest(points: &[Point], samples: f64, most: Option<f64>) -> Option<f64> {
    let max = points.iter().find(|(percent, _)| *percent == 100.0).map(|(_, max)| max.high);
    let most = max.or(most)?;
    if samples < 10.0 {
        return Some(most);
    }
    let mut sum = 0.0;
    let mut below = 0.0;
    for (percent, value) in points.iter().filter(|(percent, _)| *percent > 0.0 && *percent < 100.0)
    {
        let at_most = (percent / 100.0 * (samples - 1.0)).floor();
        sum += (at_most - below).max(0.0) * value.high;
        below = at_most.max(below);
    }
    sum += (samples - below) * most;
    Some(sum / samples * 1.01)
}

/// A median is within one deviation of the mean, for samples of any distribution.
fn strays(figures: &Figures<'_>, theirs: &str, mean: Range, points: &[Point]) -> Option<String> {
    let std = figures.get(&format!("{theirs}.std"))?;
    let (_, median) = points.iter().find(|(percent, _)| *percent == 50.0)?;
    let away = (mean - *median).low.max((*median - mean).low);
    (away > std.high * 1.001 + 1e-9).then(|| {
        format!(
            "the median {median} ms and the deviation {std} ms: a median cannot be further from its mean than that"
        )
    })
}
