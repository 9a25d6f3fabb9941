//! A server's figures over an interval, from its own series.

use std::collections::BTreeMap;

use model::units::Nanos;

use crate::names::{Name, Source, sources};
use crate::pieces::{
    Curve, Fold, Observations, Piece, curve, finite, held, mean, on_pages, share, sum, total,
};
use crate::recording::Recording;
use crate::stages::Stages;

/// The server's own series over the measurement.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct ServerSeries {
    /// Seconds from one page to the next.
    pub every_s: f64,
    /// Pages that were read during the measurement, of all targets.
    pub pages: u64,
    /// Share of the measurement that lies between pages, of the target with the smallest share.
    pub covered: f64,
    /// The number of series that the pages have.
    pub series: u64,
    /// The longest time that a page took, in milliseconds.
    pub longest_page_ms: f64,
    /// Pages that did not come; absent if all came.
    pub failed: Option<u64>,
    /// The error of the last of these.
    pub last_error: Option<String>,
    /// Lines of a page that were not kept because there are too many or their labels are too long.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub left_out: u64,
    /// The figures that all targets report.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<Name, Figure>,
    /// The queue in front of each target's scheduler, for targets that report a queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Queue>,
    /// The stages of a request before its first token; absent if the pages do not show them.
    pub stages: Option<Stages>,
}

/// One of a server's figures over an interval. Levels have a mean and extremes, counts a total and
/// a rate, shares a mean, times a mean and percentiles.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Figure {
    /// The server's own metrics that it is made of.
    pub metrics: Vec<String>,
    /// The mean over time; for times, over the observations; for shares, the share of the whole.
    pub mean: Option<f64>,
    /// The maximum error of the mean of observations from pages across the ends of the interval:
    /// its change if all or none of their observations count. Absent if no page lies across an end.
    pub mean_within: Option<f64>,
    /// The smallest value on a page.
    pub min: Option<f64>,
    /// The largest value on a page.
    pub max: Option<f64>,
    /// The growth of a counter, or the number of observations. Growth up to a page beyond an end of
    /// the interval is spread evenly over time.
    pub total: Option<f64>,
    /// The same per second.
    pub per_s: Option<f64>,
    /// The median of the observations: linear within a bucket of the server's histogram. Absent if
    /// it lies in the lowest bucket, which has only an upper bound.
    pub p50: Option<f64>,
    /// The 99th percentile likewise; where it lies beyond the last finite bound, that bound.
    pub p99: Option<f64>,
    /// Seconds from the beginning of the interval until a counter first grew, to within a page.
    pub first_s: Option<f64>,
    /// Seconds until it last grew.
    pub last_s: Option<f64>,
}

/// The queue in front of a target's scheduler.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Queue {
    /// The target's base URL.
    pub url: String,
    /// Share of the time in which requests waited.
    pub queued: f64,
    /// Pages on which requests waited.
    pub pages: u64,
    /// The most waiting requests on a page.
    pub max_waiting: f64,
    /// The most running requests on a page while others waited; absent if none ran.
    pub ceiling: Option<f64>,
    /// The share of the waiting time with at least 95 % of this number running.
    pub at_ceiling: Option<f64>,
    /// Mean share of the KV cache in use while requests waited.
    pub kv_usage: Option<f64>,
}

/// Share of the ceiling from which the number of running requests counts as the ceiling.
const FLAT: f64 = 0.95;

impl Recording {
    /// The figures over an interval; `None` if no page was requested within it.
    pub fn figures(&self, over: (Nanos, Nanos)) -> Option<ServerSeries> {
        let (from, to) = over;
        let length = to.since(from).as_secs_f64();
        let within = |at: &&Nanos| (from..=to).contains(*at);
        let pages: usize =
            (self.pages.values()).map(|pages| pages.iter().filter(within).count()).sum();
        let covered = (0..self.targets.len() as u32).map(|target| {
            let pages = self.pages_of(target);
            let ends = pages.first().zip(pages.last());
            let ends =
                ends.map_or(Nanos::ZERO, |(first, last)| (*last).min(to).since((*first).max(from)));
            ends.as_secs_f64() / length
        });
        let failed: u64 = self.failed.values().map(|failed| failed.count).sum();
        if length <= 0.0 || (pages == 0 && failed == 0) {
            return None;
        }
        let figures = Name::ALL.iter().filter_map(|name| {
            let (curve, metrics) = curve(self, *name)?;
            let figure = figure(&curve, over);
            let metrics = metrics.into_iter().map(str::to_owned).collect();
            Some((*name, Figure { metrics, ..figure }))
        });
        let figures: BTreeMap<Name, Figure> = figures.collect();
        Some(ServerSeries {
            stages: self.stages(over, |name| figures.get(&name)),
            every_s: self.every_ns.as_secs_f64(),
            pages: pages as u64,
            covered: covered.fold(1.0, f64::min),
            series: self.series.len() as u64,
            longest_page_ms: self.longest_ns.as_millis_f64(),
            failed: (failed > 0).then_some(failed),
            last_error: self.failed.values().last().map(|failed| failed.error.clone()),
            left_out: self.left_out,
            figures,
            queues: (0..self.targets.len() as u32)
                .filter_map(|target| self.queue(target, over))
                .collect(),
        })
    }

    /// A target's first source of a level that its pages have.
    fn level(&self, target: u32, name: Name) -> Option<Vec<Option<f64>>> {
        sources(name).iter().find_map(|source| match source {
            Source::Sum(names) => on_pages(self, target, names, Fold::Sum),
            Source::Largest(name) => on_pages(self, target, &[name], Fold::Largest),
            _ => None,
        })
    }

    fn queue(&self, target: u32, over: (Nanos, Nanos)) -> Option<Queue> {
        let waiting = self.level(target, Name::Waiting)?;
        let running = self.level(target, Name::Running)?;
        let usage = self.level(target, Name::KvUsage);
        let held = held(self, target);
        let mut known = 0.0;
        // Seconds with waiting requests, with the running requests and the used share of the cache.
        let mut queued: Vec<(f64, f64, Option<f64>)> = Vec::new();
        let mut max_waiting: f64 = 0.0;
        for (page, (from, to)) in held.into_iter().enumerate() {
            let seconds = Piece { from, to, value: () }.shared(over);
            let (Some(waiting), Some(running)) = (waiting[page], running[page]) else { continue };
            if seconds <= 0.0 {
                continue;
            }
            known += seconds;
            max_waiting = max_waiting.max(waiting);
            if waiting > 0.0 {
                let usage = usage.as_ref().and_then(|usage| usage[page]);
                queued.push((seconds, running, usage));
            }
        }
        // The sum of nothing has the sign of -0.
        let seconds = |lengths: &mut dyn Iterator<Item = f64>| lengths.sum::<f64>() + 0.0;
        let all = seconds(&mut queued.iter().map(|(seconds, _, _)| *seconds));
        let ceiling = queued.iter().map(|(_, running, _)| *running).reduce(f64::max);
        let flat = ceiling.map(|ceiling| {
            let flat = queued.iter().filter(|(_, running, _)| *running >= FLAT * ceiling);
            seconds(&mut flat.map(|(seconds, _, _)| *seconds)) / all
        });
        let in_use = queued.iter().filter_map(|(seconds, _, usage)| Some((*seconds, (*usage)?)));
        let (sum, over) = in_use.fold((0.0, 0.0), |(sum, over), (seconds, usage)| {
            (sum + seconds * usage, over + seconds)
        });
        (known > 0.0).then(|| Queue {
            url: self.targets[target as usize].clone(),
            queued: all / known,
            pages: queued.len() as u64,
            max_waiting,
            ceiling,
            at_ceiling: flat,
            kv_usage: (over > 0.0).then(|| sum / over).and_then(finite),
        })
    }
}

fn figure(curve: &Curve, over: (Nanos, Nanos)) -> Figure {
    let (from, to) = over;
    match curve {
        Curve::Level(fold, lists) => {
            let means: Option<Vec<f64>> = lists.iter().map(|list| mean(list, over)).collect();
            let extremes = together(*fold, lists, over);
            Figure {
                mean: means.and_then(|means| fold.apply(means.into_iter())),
                min: extremes.iter().copied().reduce(f64::min),
                max: extremes.iter().copied().reduce(f64::max),
                ..Figure::default()
            }
        }
        Curve::Count(lists) => {
            let total = total(lists, over);
            let growing = || {
                let pieces = lists.iter().flatten();
                pieces.filter(|piece| piece.value > 0.0 && piece.shared(over) > 0.0)
            };
            let first = growing().map(|piece| piece.from).min();
            let last = growing().map(|piece| piece.to).max();
            Figure {
                total: finite(total),
                per_s: finite(total / to.since(from).as_secs_f64()),
                first_s: first.map(|first| first.since(from).as_secs_f64()),
                last_s: last.map(|last| last.min(to).since(from).as_secs_f64()),
                ..Figure::default()
            }
        }
        Curve::Share(part, whole) => {
            let (part, whole) = (total(part, over), total(whole, over));
            Figure { mean: share(part, whole), total: finite(whole), ..Figure::default() }
        }
        Curve::Histogram(bounds, lists) => {
            let all = sum(lists, over);
            Figure {
                mean: all.mean(),
                mean_within: all.mean().and_then(|mean| mean_within(lists, over, &all, mean)),
                total: finite(all.count),
                p50: all.quantile(bounds, 0.5),
                p99: all.quantile(bounds, 0.99),
                ..Figure::default()
            }
        }
    }
}

/// The most that a mean changes if all or nothing of the part across each end counts.
fn mean_within(
    lists: &[Vec<Piece<Observations>>],
    over: (Nanos, Nanos),
    all: &Observations,
    mean: f64,
) -> Option<f64> {
    let mut ends = [(0.0, 0.0); 4];
    for piece in lists.iter().flatten() {
        let (shared, whole) = (piece.shared(over), piece.to.since(piece.from).as_secs_f64());
        if shared <= 0.0 || shared >= whole {
            continue;
        }
        let first = usize::from(piece.from >= over.0) * 2;
        for (end, seconds) in [(first, -shared), (first + 1, whole - shared)] {
            ends[end].0 += piece.value.sum * seconds;
            ends[end].1 += piece.value.count * seconds;
        }
    }
    let [first, last] = [&ends[..2], &ends[2..]];
    let means = first.iter().flat_map(|first| last.iter().map(move |last| (first, last)));
    let off = means.filter_map(|(first, last)| {
        let count = all.count + first.1 + last.1;
        (count > 0.0).then(|| ((all.sum + first.0 + last.0) / count - mean).abs())
    });
    off.reduce(f64::max).filter(|off| *off > 0.0)
}

/// The levels of all targets together, at the instants of the pieces of each.
fn together(fold: Fold, lists: &[Vec<Piece>], over: (Nanos, Nanos)) -> Vec<f64> {
    let at = |list: &[Piece], instant: Nanos| {
        let place = list.partition_point(|piece| piece.to < instant);
        let piece = list.get(place).filter(|piece| piece.from <= instant)?;
        Some(piece.value)
    };
    let pieces = lists.iter().flatten().filter(|piece| piece.shared(over) > 0.0);
    let levels = pieces.filter_map(|piece| {
        let instant = Nanos(piece.from.0.midpoint(piece.to.0));
        let all: Option<Vec<f64>> = lists.iter().map(|list| at(list, instant)).collect();
        fold.apply(all?.into_iter())
    });
    levels.collect()
}

/// The course of a server's figures. Each line has a value for each span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course(pub Vec<Line>);

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: Name,
    /// Means of levels and times, rates of counts, shares; absent where it is not known.
    pub values: Vec<Option<f64>>,
    /// The 99th percentile of times, by span; absent where the server's lowest bucket has it.
    pub high: Option<Vec<Option<f64>>>,
}

impl Course {
    /// The course of each figure that is known at all, over these spans.
    pub fn over(recording: &Recording, spans: &[(Nanos, Nanos)]) -> Self {
        let lines = Name::ALL.iter().filter_map(|name| {
            let (curve, _) = curve(recording, *name)?;
            let line = line(*name, &curve, spans);
            line.values.iter().any(Option::is_some).then_some(line)
        });
        Course(lines.collect())
    }

    pub fn line(&self, name: Name) -> Option<&Line> {
        self.0.iter().find(|line| line.name == name)
    }
}

fn line(name: Name, curve: &Curve, spans: &[(Nanos, Nanos)]) -> Line {
    let each = |of: &dyn Fn((Nanos, Nanos)) -> Option<f64>| -> Vec<Option<f64>> {
        spans.iter().map(|span| of(*span)).collect()
    };
    let folded = |lists: &[Vec<Piece>], fold: Fold, span| {
        let means: Option<Vec<f64>> = lists.iter().map(|pieces| mean(pieces, span)).collect();
        fold.apply(means?.into_iter())
    };
    let (values, high) = match curve {
        Curve::Level(fold, lists) => (each(&|span| folded(lists, *fold, span)), None),
        Curve::Count(lists) => (each(&|span| folded(lists, Fold::Sum, span)), None),
        Curve::Share(part, whole) => {
            (each(&|span| share(total(part, span), total(whole, span))), None)
        }
        Curve::Histogram(bounds, lists) => {
            let means = each(&|span| sum(lists, span).mean());
            let high = each(&|span| sum(lists, span).quantile(bounds, 0.99));
            let is_known = high.iter().any(Option::is_some);
            (means, is_known.then_some(high))
        }
    };
    Line { name, values, high }
}
