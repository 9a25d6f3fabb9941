//! The class of the newest point: a pooled t-test of the latest points against the points before.

use statistics::difference::StandardError;
use statistics::moments::squares_about;
use statistics::{dependence, mean, variance};

use crate::{Class, Confirmed, Key, Point, Run, Series, Step, Verdict, is_worse, points};

/// Earlier points that a judgement needs.
pub const LEAST_HISTORY: usize = 6;

/// The latest points that may lie after a step.
pub const RECENT: usize = 5;

/// Points before a step that it is compared with, at most.
pub const WINDOW: usize = 30;

/// The probability below which a step is suspected.
pub const LEVEL: f64 = 0.01;

/// The probability below which a step may lie at another place than the likeliest.
const PLAUSIBLE: f64 = 0.05;

/// The correlation of successive points that is allowed for, at most: a history with a slow drift
/// would hide every step otherwise.
const MOST_CORRELATION: f64 = 0.7;

/// Makes the series of a figure from its runs, and judges the newest point.
pub fn judge(key: Key, figure: &str, unit: &str, runs: &[Run], confirmed: &[Confirmed]) -> Series {
    let points = points(runs);
    let own = |one: &&Confirmed| one.key == key && one.figure == figure;
    let confirmed: Vec<&Confirmed> = confirmed.iter().filter(own).collect();
    let found = found(figure, &points, &confirmed);
    let values: Vec<f64> = found.history.iter().map(|point| point.value).collect();
    let centre = mean(&values);
    let noise = variance(&values).filter(|_| centre != 0.0);
    Series {
        class: found.class,
        step: found.step,
        more: found.more,
        noise: noise.map(|variance| variance.sqrt() / centre.abs()),
        key,
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        points,
    }
}

/// The class of the newest point, and its reason.
pub(crate) struct Found<'p> {
    class: Class,
    pub(crate) step: Option<Step>,
    more: usize,
    /// The points that are comparable with the newest one, but for a step among them.
    history: &'p [Point],
}

/// Classifies the newest of the points, given the confirming measurements of the series.
pub(crate) fn found<'p>(figure: &str, points: &'p [Point], confirmed: &[&Confirmed]) -> Found<'p> {
    let begun = points.iter().rposition(|point| !point.changed.is_empty()).unwrap_or(0);
    let mut history = &points[begun..];
    if let [newest] = history
        && !newest.changed.is_empty()
    {
        let is_method = newest.changed.iter().any(|change| change.part != "machine");
        let class = if is_method { Class::MethodChanged } else { Class::MachineChanged };
        return Found { class, step: None, more: LEAST_HISTORY, history };
    }
    // A confirmed step begins a level of its own: it stays confirmed until the new level has points
    // enough to be judged by.
    let place = |one: &Confirmed| history.iter().position(|point| point.version == one.new_version);
    let steps = confirmed.iter().filter(|one| one.verdict == Verdict::Confirmed);
    let latest = steps.filter_map(|one| Some((place(one)?, *one))).max_by_key(|(at, _)| *at);
    if let Some((at, confirmed)) = latest {
        let old = history[..at].iter().rposition(|point| point.version == confirmed.old_version);
        let (before, after) = (&history[..old.map_or(at, |old| old + 1)], &history[at..]);
        if !before.is_empty() && after.len() <= LEAST_HISTORY {
            let ends = [&confirmed.old_version, &confirmed.new_version];
            let step = step(figure, before, after, confirmed.p, ends);
            return Found { class: Class::Confirmed, step: Some(step), more: 0, history };
        }
        history = after;
    }
    let earlier = history.len().saturating_sub(1);
    if earlier < LEAST_HISTORY {
        let more = LEAST_HISTORY - earlier;
        return Found { class: Class::NotEnoughData, step: None, more, history };
    }
    // A refuted step says that nothing changed between its versions.
    let place = |version: &str| history.iter().position(|point| point.version == version);
    let is_refuted = |old: usize, new: usize| {
        confirmed.iter().filter(|one| one.verdict == Verdict::Refuted).any(|one| {
            let ends = place(&one.old_version).zip(place(&one.new_version));
            ends.is_some_and(|(from, to)| from <= old && new <= to)
        })
    };
    let tested = (1..=RECENT.min(history.len() - LEAST_HISTORY)).filter_map(|recent| {
        let (before, after) = history.split_at(history.len() - recent);
        let before = &before[before.len().saturating_sub(WINDOW)..];
        Some((history.len() - recent, probability(before, after)?))
    });
    let tested: Vec<(usize, f64)> = tested.collect();
    let best = tested.iter().min_by(|(_, a), (_, b)| a.total_cmp(b)).copied();
    let plausible = || tested.iter().filter(|(_, p)| *p <= PLAUSIBLE).map(|(at, _)| *at);
    match (best, plausible().min(), plausible().max()) {
        (Some((at, p)), Some(first), Some(last)) if p <= LEVEL && !is_refuted(first - 1, last) => {
            let (before, after) = history.split_at(at);
            let ends = [&history[first - 1].version, &history[last].version];
            let step = step(figure, before, after, p, ends);
            Found { class: Class::Suspected, step: Some(step), more: 0, history }
        }
        _ => Found { class: Class::Unchanged, step: None, more: 0, history },
    }
}

fn values(points: &[Point]) -> Vec<f64> {
    points.iter().map(|point| point.value).collect()
}

fn step(figure: &str, before: &[Point], after: &[Point], p: f64, ends: [&String; 2]) -> Step {
    let before = &before[before.len().saturating_sub(WINDOW)..];
    let (old, new) = (mean(&values(before)), mean(&values(after)));
    Step {
        last_good: ends[0].clone(),
        first_bad: ends[1].clone(),
        before: old,
        after: new,
        share: (old != 0.0).then(|| (new - old) / old.abs()),
        is_worse: is_worse(figure, new - old),
        p,
    }
}

/// The two-sided probability of the difference of two groups of points: Student's test, with the
/// variance of both, and an allowance for points that resemble the points before them.
fn probability(before: &[Point], after: &[Point]) -> Option<f64> {
    let (a, b) = (values(before), values(after));
    let freedom = (a.len() + b.len()) as f64 - 2.0;
    if freedom < 1.0 {
        return None;
    }
    let (old, new) = (mean(&a), mean(&b));
    let squares = squares_about(&a, old) + squares_about(&b, new);
    let r = dependence::correlation(&a).clamp(0.0, MOST_CORRELATION);
    let error = (squares / freedom * (of_mean(a.len(), r) + of_mean(b.len(), r))).sqrt();
    // Rounding alone makes no step out of equal points.
    let error = error.max(f64::EPSILON * 8.0 * (old.abs() + new.abs()));
    Some(StandardError { error, freedom }.probability(new - old))
}

/// The variance of the mean of `count` points, as a share of the variance of a point. Points at the
/// distance `k` correlate by `r` to the power `k`.
fn of_mean(count: usize, r: f64) -> f64 {
    let n = count as f64;
    let pairs = (1..count).map(|lag| (1.0 - lag as f64 / n) * r.powi(lag as i32));
    (1.0 + 2.0 * pairs.sum::<f64>()) / n
}
