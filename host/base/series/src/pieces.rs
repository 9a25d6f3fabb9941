//! Values that hold over pieces of time, made of the pages of a recording.
//!
//! A gauge holds from the middle between its page and the page before to the middle between its
//! page and the next, but no longer than an interval either way. Between two pages, a counter has a
//! constant rate. A counter that shrank began anew with the server, and grew by its value since
//! then. A counter that a page left out grew from its last value.

use std::collections::BTreeMap;

use model::units::Nanos;

use crate::names::{Name, Source, sources};
use crate::recording::{RecordedSeries, Recording};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece<T = f64> {
    pub from: Nanos,
    pub to: Nanos,
    pub value: T,
}

impl<T> Piece<T> {
    /// The seconds that it shares with an interval.
    pub(crate) fn shared(&self, (from, to): (Nanos, Nanos)) -> f64 {
        self.to.min(to).since(self.from.max(from)).as_secs_f64()
    }
}

/// Observations per second: up to each bound, their sum, and all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Observations {
    pub upto: Vec<f64>,
    pub sum: f64,
    pub count: f64,
}

/// A number that can be written; sums of finite ones need not be.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

pub(crate) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then_some((part / finite(whole)?).min(1.0))
}

/// A figure over time, in a list of pieces for each target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Curve {
    Level(Fold, Vec<Vec<Piece>>),
    Count(Vec<Vec<Piece>>),
    /// Rates of a counter, and rates of its whole.
    Share(Vec<Vec<Piece>>, Vec<Vec<Piece>>),
    /// Observations, with the bounds of their buckets: the last is infinite.
    Histogram(Vec<f64>, Vec<Vec<Piece<Observations>>>),
}

/// The rule that makes one gauge of the gauges of several processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fold {
    Sum,
    Largest,
    Mean,
}

/// The most growths of a histogram's buckets on all pages; beyond them it is absent.
const MOST_GROWTHS: usize = 8_000_000;

#[derive(Clone, Copy)]
struct Aggregate {
    count: u32,
    sum: f64,
    most: f64,
}

impl Aggregate {
    const NONE: Self = Aggregate { count: 0, sum: 0.0, most: f64::NEG_INFINITY };

    fn one(value: f64) -> Self {
        Aggregate { count: 1, sum: value, most: value }
    }

    fn with(self, other: Self) -> Self {
        Aggregate {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            most: self.most.max(other.most),
        }
    }
}

impl Fold {
    pub(crate) fn apply(self, values: impl Iterator<Item = f64>) -> Option<f64> {
        self.value(values.map(Aggregate::one).fold(Aggregate::NONE, Aggregate::with))
    }

    fn value(self, folded: Aggregate) -> Option<f64> {
        let Aggregate { count, sum, most } = folded;
        let value = (count > 0).then(|| match self {
            Fold::Sum => sum,
            Fold::Largest => most,
            Fold::Mean => sum / f64::from(count),
        });
        value.and_then(finite)
    }
}

/// A name's curve and its metrics on the server; `None` if a target does not report it.
pub(crate) fn curve(recording: &Recording, name: Name) -> Option<(Curve, Vec<&'static str>)> {
    let targets: Vec<u32> = recording.pages.keys().copied().collect();
    if targets.is_empty() {
        return None;
    }
    sources(name).iter().find_map(|source| {
        let curve = of_source(recording, &targets, source)?;
        Some((curve, source.metrics()))
    })
}

fn of_source(recording: &Recording, targets: &[u32], source: &Source) -> Option<Curve> {
    let each = |of: &dyn Fn(u32) -> Option<Vec<Piece>>| -> Option<Vec<Vec<Piece>>> {
        targets.iter().map(|target| of(*target)).collect()
    };
    let level = |fold: Fold, names: &[&str]| {
        let lists = each(&|target| levels(recording, target, names, fold))?;
        Some(Curve::Level(fold, lists))
    };
    let counts = |names: &[&str]| each(&|target| rates(recording, target, names));
    match source {
        Source::Sum(names) => level(Fold::Sum, names),
        Source::Largest(name) => level(Fold::Largest, &[name]),
        Source::Mean(name) => level(Fold::Mean, &[name]),
        Source::Count(name) => counts(&[name]).map(Curve::Count),
        Source::Labelled(name, label) => each(&|target| {
            let series = recording.series_of(target, name);
            rates_of(recording, target, series.filter(|recorded| recorded.has(Some(*label))))
        })
        .map(Curve::Count),
        Source::Share(part, whole) => Some(Curve::Share(counts(&[part])?, counts(&[whole])?)),
        Source::Part(part, rest) => {
            let whole = counts(&[part]).and_then(|_| counts(&[rest])).is_some();
            let whole = whole.then(|| counts(&[part, rest])).flatten()?;
            Some(Curve::Share(counts(&[part])?, whole))
        }
        Source::Time(name, unit) => observed(recording, targets, name, *unit),
        Source::Size(name) => observed(recording, targets, name, 1.0),
    }
}

/// The time over which each page of a target stands.
pub(crate) fn held(recording: &Recording, target: u32) -> Vec<(Nanos, Nanos)> {
    let pages = recording.pages_of(target);
    let every = recording.every_ns;
    let spans = pages.iter().enumerate().map(|(place, at)| {
        let middle =
            |other: Option<&Nanos>| other.map_or(*at, |other| Nanos(other.0.midpoint(at.0)));
        let from = middle(place.checked_sub(1).map(|before| &pages[before]));
        let to = middle(pages.get(place + 1));
        let (first, last) = (at.0.saturating_sub(every.0), at.0.saturating_add(every.0));
        (from.max(Nanos(first)), to.min(Nanos(last)))
    });
    spans.collect()
}

/// The level of a target on each of its pages; `None` if no page has it.
pub(crate) fn on_pages(
    recording: &Recording,
    target: u32,
    names: &[&str],
    fold: Fold,
) -> Option<Vec<Option<f64>>> {
    let series: Vec<_> = names.iter().flat_map(|name| recording.series_of(target, name)).collect();
    if series.is_empty() {
        return None;
    }
    let changes = series.iter().enumerate().flat_map(|(place, recorded)| {
        recorded.changes.iter().map(move |(page, value)| (*page, place as u32, *value))
    });
    let mut changes: Vec<(u32, u32, Option<f64>)> = changes.collect();
    changes.sort_unstable_by_key(|(page, place, _)| (*page, *place));
    let mut changes = changes.into_iter().peekable();
    // The parent of `n` is `n / 2`, and the root is all series: a change costs the way up to it,
    // and no sum is made by taking away.
    let leaves = series.len().next_power_of_two();
    let mut tree = vec![Aggregate::NONE; 2 * leaves];
    let pages = 0..recording.pages_of(target).len();
    let levels = pages.map(|page| {
        while let Some((_, place, value)) = changes.next_if(|(at, ..)| *at as usize <= page) {
            let mut node = leaves + place as usize;
            tree[node] = value.map_or(Aggregate::NONE, Aggregate::one);
            while node > 1 {
                node /= 2;
                tree[node] = tree[2 * node].with(tree[2 * node + 1]);
            }
        }
        fold.value(tree[1])
    });
    Some(levels.collect())
}

fn levels(recording: &Recording, target: u32, names: &[&str], fold: Fold) -> Option<Vec<Piece>> {
    let levels = on_pages(recording, target, names, fold)?;
    let spans = held(recording, target).into_iter().zip(levels);
    let pieces = spans.filter_map(|((from, to), value)| Some(Piece { from, to, value: value? }));
    Some(pieces.collect())
}

/// The growth of all these series together, from each page to the next; absent where the later page
/// has none of them.
fn grown<'a>(
    series: impl Iterator<Item = &'a RecordedSeries>,
    pages: usize,
) -> Option<Vec<Option<f64>>> {
    let mut grown = vec![0.0; pages];
    // The number of series that come on each page, less the series that go.
    let mut come = vec![0i64; pages];
    let mut any = false;
    for recorded in series {
        any = true;
        let (mut last, mut is_there) = (f64::INFINITY, false);
        for (page, value) in &recorded.changes {
            let page = *page as usize;
            come[page] += i64::from(value.is_some()) - i64::from(is_there);
            is_there = value.is_some();
            if let Some(value) = *value {
                // Less than before: it began anew, or this is its first count.
                grown[page] += if value < last { value } else { value - last };
                last = value;
            }
        }
    }
    let mut there = 0;
    let grown = grown.into_iter().zip(come).map(|(grown, come)| {
        there += come;
        (there > 0).then_some(grown)
    });
    // On the first page nothing is known to have grown.
    any.then(|| grown.skip(1).collect())
}

fn rates(recording: &Recording, target: u32, names: &[&str]) -> Option<Vec<Piece>> {
    let series = names.iter().flat_map(|name| recording.series_of(target, name));
    rates_of(recording, target, series)
}

/// The rate at which counters of a target grow together; `None` if there are none.
pub(crate) fn rates_of<'a>(
    recording: &Recording,
    target: u32,
    series: impl Iterator<Item = &'a RecordedSeries>,
) -> Option<Vec<Piece>> {
    let pages = recording.pages_of(target);
    let grown = grown(series, pages.len())?;
    let pieces = pages.windows(2).zip(grown).filter_map(|(pair, grown)| {
        let (from, to) = (pair[0], pair[1]);
        Some(Piece { from, to, value: grown? / to.since(from).as_secs_f64() })
    });
    Some(pieces.collect())
}

fn observed(recording: &Recording, targets: &[u32], name: &str, unit: f64) -> Option<Curve> {
    let bucket = format!("{name}_bucket");
    let buckets = |target: u32| {
        let mut by_bound: BTreeMap<u64, (f64, Vec<&RecordedSeries>)> = BTreeMap::new();
        for recorded in recording.series_of(target, &bucket) {
            let bound = recorded.series.labels.get("le")?;
            let bound: f64 = bound.parse().ok().filter(|bound: &f64| !bound.is_nan())?;
            // Bounds of times and sizes are no less than zero, so their bits are in their order.
            let key = bound.max(0.0).to_bits();
            by_bound.entry(key).or_insert((bound, Vec::new())).1.push(recorded);
        }
        (!by_bound.is_empty()).then_some(by_bound)
    };
    let first = buckets(*targets.first()?)?;
    let pages: usize = recording.pages.values().map(Vec::len).sum();
    if pages * first.len() > MOST_GROWTHS {
        return None;
    }
    let bounds: Vec<f64> = first.values().map(|(bound, _)| bound * unit).collect();
    let lists = targets.iter().map(|target| {
        let buckets = buckets(*target)?;
        let pages = recording.pages_of(*target);
        // Buckets of other bounds cannot be added up.
        if buckets.keys().ne(first.keys()) {
            return None;
        }
        let of = |suffix: &str| {
            let name = format!("{name}{suffix}");
            let series: Vec<&RecordedSeries> = recording.series_of(*target, &name).collect();
            grown(series.into_iter(), pages.len())
        };
        let (sums, counts) = (of("_sum")?, of("_count")?);
        let upto: Vec<Vec<Option<f64>>> = (buckets.into_values())
            .map(|(_, series)| grown(series.into_iter(), pages.len()))
            .collect::<Option<_>>()?;
        let pieces = pages.windows(2).enumerate().filter_map(|(pair, instants)| {
            let (from, to) = (instants[0], instants[1]);
            let seconds = to.since(from).as_secs_f64();
            let upto = upto.iter().map(|upto| Some(upto[pair]? / seconds));
            let value = Observations {
                upto: upto.collect::<Option<_>>()?,
                sum: sums[pair]? * unit / seconds,
                count: counts[pair]? / seconds,
            };
            Some(Piece { from, to, value })
        });
        Some(pieces.collect())
    });
    let lists: Option<Vec<Vec<Piece<Observations>>>> = lists.collect();
    Some(Curve::Histogram(bounds, lists?))
}

/// The mean of a target's values over the known part of an interval.
pub(crate) fn mean(pieces: &[Piece], over: (Nanos, Nanos)) -> Option<f64> {
    let (mut sum, mut seconds) = (0.0, 0.0);
    for piece in pieces {
        let shared = piece.shared(over);
        (sum, seconds) = (sum + piece.value * shared, seconds + shared);
    }
    (seconds > 0.0).then(|| sum / seconds).and_then(finite)
}

/// The sum of rates times time over an interval, of all targets.
pub(crate) fn total(lists: &[Vec<Piece>], over: (Nanos, Nanos)) -> f64 {
    let pieces = lists.iter().flatten();
    pieces.map(|piece| piece.value * piece.shared(over)).sum()
}

/// The observations of all targets over an interval.
pub(crate) fn sum(lists: &[Vec<Piece<Observations>>], over: (Nanos, Nanos)) -> Observations {
    let mut all = Observations::default();
    for piece in lists.iter().flatten() {
        let shared = piece.shared(over);
        if shared <= 0.0 {
            continue;
        }
        all.upto.resize(piece.value.upto.len(), 0.0);
        for (sum, rate) in all.upto.iter_mut().zip(&piece.value.upto) {
            *sum += rate * shared;
        }
        all.sum += piece.value.sum * shared;
        all.count += piece.value.count * shared;
    }
    all
}

impl Observations {
    /// The quantile of the observations, from 0 to 1, as in Prometheus' `histogram_quantile`:
    /// linear within a bucket, and the highest finite bound where it lies beyond. Absent where it
    /// lies in the lowest bucket: servers begin with bounds such as 0.3 s, and a value below is
    /// unknown.
    pub(crate) fn quantile(&self, bounds: &[f64], share: f64) -> Option<f64> {
        /// Less than this of an observation is none: it is rounding.
        const NONE: f64 = 1e-6;
        let all = *self.upto.last()?;
        if all <= NONE {
            return None;
        }
        let rank = share * all;
        let place = self.upto.iter().position(|upto| *upto >= rank)?;
        let below = place.checked_sub(1)?;
        let (from, to) = (bounds[below], bounds[place]);
        if !to.is_finite() {
            return finite(from);
        }
        let within = self.upto[place] - self.upto[below];
        let part = if within > 0.0 { (rank - self.upto[below]) / within } else { 1.0 };
        finite(from + (to - from) * part)
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 1e-6).then(|| self.sum / self.count).and_then(finite)
    }
}
