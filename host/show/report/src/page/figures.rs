//! A run's figures: the headline and every metric; over all answers, and by group.

use crate::charts::RunView;
use crate::document::{Cell, Figure, Fit, Span, Table, Text};
use crate::sure::{COLUMNS, Row, rows};
use model::number::{count, fixed, percent, significant};
use result::figure::{Statistic, mirrored};
use result::metric::{self, Unit};
use result::summary::{Basis, Bounds, Distribution, Group, Loop, Score, ScoredGroup, Summary};

/// The headline metrics, with their common names.
pub(crate) const HEADLINE: [&str; 4] = [metric::TTFT, metric::TPOT, metric::ITL, metric::E2E];

pub(crate) const LABELS: [&str; 4] = ["TTFT", "TPOT", "ITL", "E2E latency"];

pub(super) fn label(metric: &str) -> &str {
    HEADLINE.iter().position(|known| *known == metric).map_or(metric, |place| LABELS[place])
}

pub(super) fn sure(summary: &Summary, wanted: impl Fn(&Row) -> bool) -> Table {
    let mut table = Table::new(["Figure"].into_iter().chain(COLUMNS));
    for row in rows(summary).into_iter().filter(|row| wanted(row)) {
        table.row(std::iter::once(row.name).chain(row.cells));
    }
    table
}

pub(super) fn headline(summary: &Summary) -> Vec<Figure> {
    let Summary { throughput, requests, goodput, concurrency, .. } = summary;
    let mut figures = Vec::new();
    let mut tile = |name: &str, metric, value: Option<f64>, unit, lines: &[Option<String>]| {
        if let Some(value) = value {
            let (name, value) = (named(name, metric), significant(value, 4));
            let lines = lines.iter().flatten().cloned().collect();
            figures.push(Figure { name, value, unit, lines });
        }
    };
    let per_s = |value: Option<f64>, unit: &str, what: &str| {
        value.map(|value| format!("{} {unit} {what}", significant(value, 4)))
    };
    let lines = [
        per_s(throughput.total_tokens_per_s, "tok/s", "with input"),
        per_s(throughput.peak_output_tokens_per_s, "tok/s", "in the best second"),
    ];
    tile("Output throughput", None, throughput.output_tokens_per_s, "tok/s", &lines);
    let in_flight = concurrency.mean_in_flight.map(|mean| {
        let peak = concurrency.peak.map(|peak| format!(", at most {}", count(peak)));
        format!("{} in flight on average{}", significant(mean, 3), peak.unwrap_or_default())
    });
    let lines = [per_s(throughput.due_requests_per_s, "req/s", "were due"), in_flight];
    tile("Request throughput", None, throughput.requests_per_s, "req/s", &lines);
    let is_closed = summary.run.r#loop == Loop::Closed;
    for (name, label) in HEADLINE.into_iter().zip(LABELS) {
        let Some(of) = summary.metric(name) else { continue };
        let p99 = of.percentile(99.0).map(|p99| format!("P99 {} ms", significant(p99, 4)));
        let closed =
            is_closed.then(|| "of a closed loop: slow periods get fewer requests".to_owned());
        tile(&format!("{label}, median"), Some(name), Some(of.median), "ms", &[p99, closed]);
    }
    if let Some(speed) = summary.metric(metric::OUTPUT_SPEED) {
        let lowest = mirrored(&summary.run.percentiles).into_iter().reduce(f64::min);
        let slowest = lowest.and_then(|lowest| {
            let least = speed.percentile(lowest)?;
            Some(format!("P{lowest} {} tok/s: the slowest users", significant(least, 4)))
        });
        let (name, metric) = ("Speed of one user, median", Some(metric::OUTPUT_SPEED));
        tile(name, metric, Some(speed.median), "tok/s", &[slowest]);
    }
    if let Some(goodput) = goodput {
        let met = goodput
            .slo_attainment
            .map(|share| format!("{} of the due requests met every limit", percent(share)));
        tile("Goodput", None, goodput.requests_per_s, "req/s", &[met]);
    }
    let total = count(requests.total);
    let lines = [
        Some(match requests.failed {
            0 => format!("all of {total} requests"),
            failed => format!("{} of {total} requests failed", count(failed)),
        }),
        (requests.cancelled > 0)
            .then(|| format!("{} cancelled on purpose", count(requests.cancelled))),
        (requests.tail > 0).then(|| format!("{} more after the measurement", count(requests.tail))),
        requests.failed_by_themselves.map(|own| {
            let followed = requests.failed - own;
            format!("{} by themselves, {} because another had", count(own), count(followed))
        }),
    ];
    tile("Answered", None, requests.success_share.map(|share| share * 100.0), "%", &lines);
    figures.extend(sessions(summary));
    figures
}

/// A figure's name; with its metric's definition if it is of one.
fn named(name: &str, metric: Option<&'static str>) -> Text {
    match metric {
        Some(metric) => Span::Term(name.to_owned(), metric).into(),
        None => name.into(),
    }
}

/// The time that sessions took, and the number of complete ones.
fn sessions(summary: &Summary) -> Option<Figure> {
    let (sessions, time) = (summary.sessions?, summary.metric(metric::SESSION_TIME)?);
    let p99 = time.percentile(99.0);
    let lines = [
        p99.map(|p99| format!("P99 {} s", significant(p99 / 1e3, 4))),
        Some(format!(
            "{} of {} sessions are complete",
            count(sessions.complete),
            count(sessions.total)
        )),
    ];
    Some(Figure {
        name: named("Session time, median", Some(metric::SESSION_TIME)),
        value: significant(time.median / 1e3, 4),
        unit: "s",
        lines: lines.into_iter().flatten().collect(),
    })
}

/// Every metric that was measured, in the catalogue's order, and how to read it.
pub(super) fn metrics(summary: &Summary) -> (Table, String) {
    let percents = &summary.run.percentiles;
    let heads = ["Metric", "Samples", "Mean", "Std", "Min", "Median"].map(str::to_owned);
    let named = percents.iter().map(|percent| format!("P{percent}"));
    let mut table = Table::new(heads.into_iter().chain(named).chain(["Max".to_owned()]));
    table.fit = Fit::Scrolled;
    let measured =
        metric::CATALOGUE.iter().filter_map(|metric| Some((metric, summary.metric(metric.name)?)));
    for (metric, of) in measured.clone() {
        // A mean that failures make infinite says nothing.
        let means = [of.mean, of.std].map(|mean| Some(mean).filter(|mean| mean.is_finite()));
        let figures = means.into_iter().chain([of.min, of.median].map(Some));
        let percentiles = percents.iter().map(|percent| of.percentile(*percent));
        let figures = figures.chain(percentiles).chain([Some(of.max)]);
        let figures = figures.map(|value| value.map_or(String::new(), |value| fixed(value, 2)));
        let name = Span::Term(metric.name.to_owned(), metric.name);
        let name = Text(vec![name, Span::Unit(metric.unit.symbol())]);
        let figures = std::iter::once(count(of.count)).chain(figures);
        table.row(std::iter::once(Cell::from(name)).chain(figures.map(Cell::from)));
    }
    let is_counted = |of: &Distribution| of.from == Basis::Histogram;
    let counted: Vec<&str> =
        measured.filter(|(_, of)| is_counted(of)).map(|(metric, _)| metric.name).collect();
    let notes = [histograms(&counted), slowest(summary)];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (table, notes.join(" "))
}

/// Writes the note that names the percentiles from a histogram.
fn histograms(counted: &[&str]) -> Option<String> {
    (!counted.is_empty()).then(|| {
        format!(
            "Median and percentiles of {} come from a histogram and are within 0.05 % of the exact values.",
            counted.join(", ")
        )
    })
}

/// The speeds of the slowest users, which have no column among the high percentiles.
fn slowest(summary: &Summary) -> Option<String> {
    let lowest = mirrored(&summary.run.percentiles).into_iter().reduce(f64::min)?;
    let speeds = metric::single().filter(|(metric, _)| metric.unit == Unit::TokensPerSecond);
    let speeds = speeds.filter_map(|(metric, _)| {
        let least = summary.metric(metric.name)?.percentile(lowest)?;
        Some(format!("{} tok/s ({})", significant(least, 4), metric.name))
    });
    let speeds: Vec<String> = speeds.collect();
    (!speeds.is_empty()).then(|| {
        format!(
            "The high percentiles of a speed belong to the luckiest users; the P{lowest} of the slowest are {}.",
            speeds.join(", ")
        )
    })
}

/// Tables by turn, class and adapter, of each run that has them, each with its title.
pub(super) fn grouped(runs: &[RunView]) -> Vec<(String, Table)> {
    let mut tables = Vec::new();
    for run in runs {
        let groups = &run.reported.summary.groups;
        for (title, head, groups) in [
            ("By turn of the conversation, from 0", "Turn", &groups.by_turn),
            ("By class of sample", "Class", &groups.by_class),
            ("By adapter", "Adapter", &groups.by_adapter),
        ] {
            let mut table = Table::new([
                head,
                "Requests",
                "Failed",
                "Input tokens",
                "Output tokens",
                "Cached input",
                "TTFT, median (ms)",
                "TTFT, P99 (ms)",
                "TPOT, median (ms)",
                "E2E, median (ms)",
                "E2E, P99 (ms)",
            ]);
            for group in groups {
                table.row(row(group));
            }
            tables.push((titled(title, run, runs.len()), table));
        }
        tables.extend(accepted(run, runs.len()));
        tables.extend(scored(run, runs.len()));
    }
    for (_, table) in &mut tables {
        table.fit = Fit::Scrolled;
    }
    tables.retain(|(_, table)| !table.rows.is_empty());
    tables
}

/// Tables of the steps of speculative decoding by turn, class and adapter.
fn accepted(run: &RunView, runs: usize) -> [(String, Table); 3] {
    let groups = &run.reported.summary.groups;
    let kinds = [
        ("Acceptance of drafts by turn of the conversation, from 0", "Turn", &groups.by_turn),
        ("Acceptance of drafts by class of sample", "Class", &groups.by_class),
        ("Acceptance of drafts by adapter", "Adapter", &groups.by_adapter),
    ];
    kinds.map(|(title, head, groups)| {
        let mut table = Table::new([
            head,
            "Answers",
            "Steps",
            "Tokens per step",
            "Steps that accepted at position",
        ]);
        for group in groups {
            let Some(steps) = &group.speculation else { continue };
            let length = steps.acceptance_length;
            table.row([
                name(&group.name),
                count(steps.answers),
                count(steps.steps),
                length.map_or(String::new(), |length| significant(length, 4)),
                steps.positions().unwrap_or_default(),
            ]);
        }
        (titled(title, run, runs), table)
    })
}

fn scored(run: &RunView, runs: usize) -> [(String, Table); 2] {
    let scores = &run.reported.summary.scores;
    let by_turn: fn(&Score) -> &[ScoredGroup] = |score| &score.by_turn;
    let by_class: fn(&Score) -> &[ScoredGroup] = |score| &score.by_class;
    let kinds = [
        ("Scores by turn of the conversation, from 0", "Turn", by_turn),
        ("Scores by class of sample", "Class", by_class),
    ];
    kinds.map(|(title, head, groups)| {
        let mut table =
            Table::new([head, "Score", "Judged", "Mean", "95 % interval", "Not judged"]);
        for (score_name, score) in scores {
            for group in groups(score) {
                let mean = group.mean.map(|mean| fixed(mean, 4));
                let between = |bounds: Bounds| bounds.label(" to ", |end| fixed(end, 4));
                table.row([
                    name(&group.name),
                    score_name.clone(),
                    count(group.count),
                    mean.unwrap_or_default(),
                    group.confidence.map(between).unwrap_or_default(),
                    group.unjudged.label().unwrap_or_default(),
                ]);
            }
        }
        (titled(title, run, runs), table)
    })
}

/// A table's title, with the run's name where there are several.
pub(super) fn titled(title: &str, run: &RunView, runs: usize) -> String {
    match runs {
        1 => title.to_owned(),
        _ => format!("{title}: {}", run.label),
    }
}

fn name(group: &Option<String>) -> String {
    group.clone().unwrap_or_else(|| "all others".to_owned())
}

fn row(group: &Group) -> Vec<String> {
    let mean = |value: Option<f64>| value.map_or(String::new(), |value| significant(value, 4));
    let at = |name: &str, percent: f64| {
        let of = group.metrics.get(name);
        let value = of.and_then(|of| of.statistic(Statistic::Percentile(percent)));
        value.map_or(String::new(), |value| fixed(value, 2))
    };
    vec![
        name(&group.name),
        count(group.requests),
        count(group.failed),
        mean(group.input_tokens),
        mean(group.output_tokens),
        group.cached_share.map_or(String::new(), percent),
        at(metric::TTFT, 50.0),
        at(metric::TTFT, 99.0),
        at(metric::TPOT, 50.0),
        at(metric::E2E, 50.0),
        at(metric::E2E, 99.0),
    ]
}
