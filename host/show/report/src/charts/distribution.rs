//! Distributions: the share of samples up to each value, and the number of samples near each value.

use super::{
    RunView, chosen_milliseconds, end, histogram, keys, milliseconds, round_begin, sentences,
    time_unit,
};
use crate::chart::scale;
use crate::chart::{
    Axis, Cell, Chart, Form, Log, Mark, Panel, Point, Rows, Rule, Shape, Side, Snap, Ticks,
};
use crate::view::DRAWN;
use model::number::{self, count};
use result::metric;
use statistics::{Figures, Ranked};

/// Up to this many samples, a cumulative distribution has a step for each.
const STEPS: u64 = 300;

/// Bars of a histogram, about.
const BARS: usize = 36;

/// If the largest sample is more than this many times the median, the axis starts out logarithmic.
const SKEWED: f64 = 6.0;

/// Names of metrics in titles: in full, and short.
fn names(metric: &str) -> (&'static str, &'static str) {
    match metric {
        metric::TTFT => ("Time to first token (TTFT)", "TTFT"),
        metric::ITL => ("Gaps between events (ITL)", "ITL"),
        metric::TPOT => ("Time per output token (TPOT)", "TPOT"),
        _ => ("End-to-end latency (E2E)", "E2E latency"),
    }
}

/// Two charts for each metric that any of the runs has measured.
pub(super) fn charts(runs: &[RunView]) -> Vec<Chart> {
    let drawn = DRAWN.into_iter().filter_map(|metric| {
        let of = |run: &RunView| {
            let mut own = run.view.distributions.iter();
            own.find(|(known, _)| *known == metric).map(|(_, figures)| figures.clone())
        };
        let figures: Vec<Option<Figures>> = runs.iter().map(of).collect();
        figures.iter().any(Option::is_some).then_some(MetricChart { metric, runs, figures })
    });
    drawn.flat_map(|drawn| [drawn.cumulative(), drawn.histogram()]).collect()
}

struct MetricChart<'a> {
    metric: &'static str,
    runs: &'a [RunView],
    figures: Vec<Option<Figures>>,
}

impl MetricChart<'_> {
    fn each(&self) -> impl Iterator<Item = (usize, &Figures)> {
        let numbered = self.figures.iter().enumerate();
        numbered.filter_map(|(number, figures)| Some((number, figures.as_ref()?)))
    }

    fn most(&self, of: impl Fn(&Figures) -> f64) -> f64 {
        self.each().map(|(_, figures)| of(figures)).fold(0.0, f64::max)
    }

    fn least(&self, of: impl Fn(&Figures) -> f64) -> f64 {
        self.each().map(|(_, figures)| of(figures)).fold(f64::INFINITY, f64::min)
    }

    fn seen(&self) -> String {
        sentences(self.runs, |number| {
            let figures = self.figures[number].as_ref()?;
            let of = |percent: f64| milliseconds(figures.percentile(percent));
            Some(format!(
                "of {} samples, half are at most {}, 90 % at most {}, 99 % at most {}; the largest is {}.",
                count(figures.count()),
                of(50.0),
                of(90.0),
                of(99.0),
                milliseconds(figures.max())
            ))
        })
    }

    /// The percentiles of a run that is alone, and the limit that was set.
    fn rules(&self, divisor: f64, within: f64) -> Vec<Rule> {
        let ruled = |name: &str, at: f64| {
            Rule::new(Side::X, at / divisor, format!("{name} {}", milliseconds(at)))
        };
        let mut rules = Vec::new();
        if let [Some(figures)] = self.figures.as_slice() {
            let [half, most] = [50.0, 99.0].map(|percent| figures.percentile(percent));
            // Two names at one place would lie on each other.
            if milliseconds(half) == milliseconds(most) {
                rules.push(ruled("P50 and P99", half));
            } else {
                rules.extend([ruled("P50", half), ruled("P99", most)]);
            }
        }
        let goodput = self.runs.iter().flat_map(|run| &run.reported.plan.goodput);
        let mut limits: Vec<f64> = goodput
            .filter(|objective| objective.metric == self.metric)
            .map(|objective| objective.at_most_ms)
            .collect();
        limits.dedup();
        if let [limit] = limits.as_slice() {
            rules.push(ruled("limit", *limit));
        }
        rules.retain(|rule| rule.at <= within);
        rules.sort_by(|one, other| one.at.total_cmp(&other.at));
        rules
    }

    fn panel(&self, top: f64, marks: Vec<Mark>, divisor: f64, within: f64) -> Vec<Panel> {
        let y = Axis::new("share of samples", 0.0, top, Ticks::Percent);
        vec![Panel { rules: self.rules(divisor, within), ..Panel::new(y, 220.0, marks) }]
    }

    fn cumulative(&self) -> Chart {
        let (name, short) = names(self.metric);
        let longest = self.most(Figures::max);
        let (unit, divisor) = time_unit(longest);
        let high = end(longest / divisor);
        // Values that lie close together far from zero get a close look.
        let least = self.least(Figures::min) / divisor;
        let step = number::round_step((high - least).max(high * 1e-3), 6);
        let (low, high) = if least > 0.5 * high {
            ((least / step - 1.0).floor() * step, (longest / divisor / step).ceil() * step)
        } else {
            (0.0, high)
        };
        let begin = self.least(|figures| figures.percentile(0.5)) / divisor;
        let begin = round_begin(begin.clamp(high * 1e-5, high * 0.5));
        let percents = self.percents();
        let marks = self.each().map(|(number, figures)| {
            let cells = percents.iter().map(|percent| {
                let at = figures.percentile(*percent);
                Some(Cell { x: at / divisor, y: percent / 100.0, text: milliseconds(at) })
            });
            Mark::new(number, Shape::Steps, curve(figures, divisor, high))
                .with_column(self.runs[number].label.clone(), cells.collect())
        });
        let median = self.least(|figures| figures.percentile(50.0));
        Chart {
            name: format!("{}-ecdf", self.metric),
            title: format!("{name}, cumulative"),
            note: "The share of samples up to each value. Further left and steeper is better; the upper end is the tail."
                .to_owned(),
            seen: self.seen(),
            x: Axis::new(format!("{short} ({unit})"), low, high, Ticks::Numbers),
            panels: self.panel(1.0, marks.collect(), divisor, high),
            keys: keys(self.runs),
            rows: Rows::new("Percentile", percents.iter().map(|percent| named(*percent)).collect(), Snap::Near),
            log: Some(Log {
                side: Side::X,
                low: begin,
                first: longest > SKEWED * median && begin > 0.0,
            }),
            form: Form::Half,
        }
    }

    /// The percentiles that a reader steps through; the tail's if there are enough samples.
    fn percents(&self) -> Vec<f64> {
        let most = self.each().map(|(_, figures)| figures.count()).max();
        let tail = [(99.5, 200), (99.9, 1_000), (99.95, 2_000), (99.99, 10_000)];
        let tail = tail.into_iter().filter(|(_, needed)| most >= Some(*needed));
        let whole = (0..100).map(f64::from);
        whole.chain(tail.map(|(percent, _)| percent)).chain([100.0]).collect()
    }

    fn histogram(&self) -> Chart {
        let (name, short) = names(self.metric);
        // A few samples far out would press all others into one bar.
        let p99 = self.most(|figures| figures.percentile(99.0));
        let longest = self.most(Figures::max);
        let low = self.least(Figures::min);
        let low = if low > 0.5 * p99 { low } else { 0.0 };
        let high = if longest - low > 2.5 * (p99 - low) && p99 > low {
            low + (p99 - low) * 1.4
        } else {
            longest
        };
        let (unit, divisor) = time_unit(high);
        let width = number::round_step((high - low).max(high * 1e-3), BARS);
        let first = (low / width).floor();
        let bars = ((high / width - first).ceil() as usize).clamp(1, 4 * BARS);
        let edge = |n: usize| (first + n as f64) * width;
        // The last edge is a sum of fractions, and must not leave the largest out.
        let bars = if edge(bars) < high { bars + 1 } else { bars };
        let edges: Vec<f64> = (0..=bars).map(edge).collect();
        let (begin, finish) = (edges[0], edges[bars]);
        // A bar holds its beginning, the last bar also its end.
        let before = |figures: &Figures, edge: f64| {
            let edge = if edge == finish { edge.next_up() } else { edge };
            figures.below(edge)
        };
        let alone = self.figures.len() == 1;
        let marks = self.each().map(|(number, figures)| {
            let bars = edges.windows(2).map(|edge| {
                let samples = before(figures, edge[1]) - before(figures, edge[0]);
                (edge[0] / divisor, edge[1] / divisor, samples)
            });
            let (points, cells) = histogram(bars.collect(), figures.count());
            let shape = if alone { Shape::Bars } else { Shape::Area };
            Mark::new(number, shape, points).with_column(self.runs[number].label.clone(), cells)
        });
        let marks: Vec<Mark> = marks.collect();
        let shares = marks.iter().flat_map(|mark| &mark.points).filter_map(|point| point.y);
        let most = shares.fold(0.0, f64::max);
        let beyond = sentences(self.runs, |number| {
            let figures = self.figures[number].as_ref()?;
            let beyond = figures.count() - before(figures, finish);
            let (of, end) = (count(figures.count()), chosen_milliseconds(finish));
            (beyond > 0).then(|| {
                format!("{} of {of} samples are above {end} and not drawn.", count(beyond))
            })
        });
        let name_of_bar = |edge: &[f64]| {
            let [from, to] = [edge[0], edge[1]].map(chosen_milliseconds);
            format!("{from} to {to}")
        };
        let (low, high) = (begin / divisor, finish / divisor);
        Chart {
            name: format!("{}-histogram", self.metric),
            title: format!("{name}, histogram"),
            note: format!(
                "The share of samples near each value; each bar is {} wide. {beyond}",
                chosen_milliseconds(width)
            )
            .trim_end()
            .to_owned(),
            seen: self.seen(),
            x: Axis::new(format!("{short} ({unit})"), low, high, Ticks::Numbers),
            panels: self.panel(scale::round_end(most, 4), marks, divisor, high),
            keys: keys(self.runs),
            rows: Rows::new(short, edges.windows(2).map(name_of_bar).collect(), Snap::X),
            log: None,
            form: Form::Half,
        }
    }
}

fn named(percent: f64) -> String {
    match percent {
        0.0 => "min".to_owned(),
        100.0 => "max".to_owned(),
        percent => format!("P{percent}"),
    }
}

/// The steps of a cumulative distribution: each of few samples, or enough of many to look the same.
fn curve(figures: &Figures, divisor: f64, high: f64) -> Vec<Point> {
    let total = figures.count();
    let ranks: Vec<u64> = if total <= STEPS {
        (0..total).collect()
    } else {
        let even = (0..=200).map(|n| f64::from(n) / 200.0);
        let tail = (1..=20).map(|n| 1.0 - 0.005 * 0.8f64.powi(n));
        let mut ranks: Vec<u64> = even
            .chain(tail)
            .map(|share| ((share * total as f64).ceil() as u64).clamp(1, total) - 1)
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    };
    let mut points: Vec<Point> = Vec::with_capacity(ranks.len() + 1);
    let first = figures.min() / divisor;
    points.push(Point::at(first, 0.0));
    for rank in ranks {
        let x = figures.at(rank) / divisor;
        if let Some(before) = points.last_mut() {
            before.to = x;
        }
        points.push(Point { x, to: high, y: Some((rank + 1) as f64 / total as f64) });
    }
    points
}
