//! A run's figures: the headline's, those of every metric, and sections of a few each.

use serde::Serialize;

use super::{Pair, pairs};
use crate::metric;
use crate::report::chart::number::{count, fixed, percent, significant};
use crate::report::charts::Shown;
use crate::report::view::Group;
use crate::stats::{Figures, Ranked};
use crate::summary::server::Figure as Counted;
use crate::summary::{Basis, Bounds, Distribution, SteadyState, Summary};

/// The metrics that stand above all others, with what people call them.
pub(super) const HEADLINE: [&str; 4] = [metric::TTFT, metric::TPOT, metric::ITL, metric::E2E];

const LABELS: [&str; 4] = ["TTFT", "TPOT", "ITL", "E2E latency"];

/// A figure that stands out.
#[derive(Serialize)]
pub(super) struct Tile {
    name: String,
    metric: Option<&'static str>,
    value: String,
    unit: &'static str,
    lines: Vec<String>,
}

/// Every metric's figures.
#[derive(Serialize)]
pub(super) struct Metrics {
    heads: Vec<String>,
    rows: Vec<Row>,
    note: Option<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    unit: String,
    cells: Vec<String>,
}

/// A few figures that belong together.
#[derive(Serialize)]
pub(super) struct Part {
    title: &'static str,
    words: Option<String>,
    pairs: Vec<Pair>,
}

/// Figures by group.
#[derive(Serialize)]
pub(super) struct Table {
    title: String,
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// What people call a metric of the headline.
pub(super) fn label(metric: &str) -> &str {
    let place = HEADLINE.iter().position(|known| *known == metric);
    place.map_or(metric, |place| LABELS[place])
}

/// The headline: throughput, latencies with how sure they are, and what failed.
pub(super) fn tiles(summary: &Summary) -> Vec<Tile> {
    let Summary {
        throughput,
        requests,
        goodput,
        concurrency,
        ..
    } = summary;
    let mut tiles = Vec::new();
    let mut tile = |name: &str, metric, value: Option<f64>, unit, lines: Vec<Option<String>>| {
        if let Some(value) = value {
            tiles.push(Tile {
                name: name.to_owned(),
                metric,
                value: significant(value, 4),
                unit,
                lines: lines.into_iter().flatten().collect(),
            });
        }
    };
    let per_s = |value: Option<f64>, unit: &str, what: &str| {
        value.map(|value| format!("{} {unit} {what}", significant(value, 4)))
    };
    tile(
        "Output throughput",
        None,
        throughput.output_tokens_per_s,
        "tok/s",
        vec![
            per_s(throughput.total_tokens_per_s, "tok/s", "with input"),
            per_s(
                throughput.peak_output_tokens_per_s,
                "tok/s",
                "in the best second",
            ),
        ],
    );
    tile(
        "Request throughput",
        None,
        throughput.requests_per_s,
        "req/s",
        vec![
            per_s(throughput.due_requests_per_s, "req/s", "were due"),
            concurrency.mean_in_flight.map(|mean| {
                let peak = concurrency
                    .peak
                    .map(|peak| format!(", at most {}", count(peak)));
                format!(
                    "{} in flight on average{}",
                    significant(mean, 3),
                    peak.unwrap_or_default()
                )
            }),
        ],
    );
    for (name, label) in HEADLINE.into_iter().zip(LABELS) {
        let Some(of) = summary.metric(name) else {
            continue;
        };
        let p99 = of.percentile(99.0).map(|p99| {
            let sure = of
                .confidence
                .map(|sure| format!(" ({})", between(sure.p99)));
            format!("P99 {} ms{}", significant(p99, 4), sure.unwrap_or_default())
        });
        tile(
            &format!("{label}, median"),
            Some(name),
            Some(of.median),
            "ms",
            vec![
                of.confidence
                    .map(|sure| format!("95 %: {} ms", between(sure.median))),
                p99,
            ],
        );
    }
    if let Some(goodput) = goodput {
        tile(
            "Goodput",
            None,
            goodput.requests_per_s,
            "req/s",
            vec![goodput.slo_attainment.map(|share| {
                format!("{} of the requests due kept to every limit", percent(share))
            })],
        );
    }
    tile(
        "Answered",
        None,
        requests.success_share.map(|share| share * 100.0),
        "%",
        vec![Some(match requests.failed {
            0 => format!("all of {} requests", count(requests.total)),
            failed => format!(
                "{} of {} requests failed",
                count(failed),
                count(requests.total)
            ),
        })],
    );
    tiles
}

fn between(bounds: Bounds) -> String {
    format!(
        "{} to {}",
        significant(bounds.low, 4),
        significant(bounds.high, 4)
    )
}

/// Every metric that was measured, in the catalogue's order.
pub(super) fn metrics(summary: &Summary) -> Metrics {
    let percents = &summary.run.percentiles;
    let heads = ["Samples", "Mean", "Std", "Least", "Median"].map(str::to_owned);
    let named = percents.iter().map(|percent| format!("P{percent}"));
    let measured = metric::CATALOGUE
        .iter()
        .filter_map(|metric| Some((metric, summary.metric(metric.name)?)));
    let rows: Vec<Row> = measured
        .clone()
        .map(|(metric, of)| {
            let figures = [of.mean, of.std, of.min, of.median].map(Some);
            let percentiles = percents.iter().map(|percent| of.percentile(*percent));
            let figures = figures.into_iter().chain(percentiles).chain([Some(of.max)]);
            let figures = figures.map(|value| value.map_or(String::new(), |value| fixed(value, 2)));
            Row {
                name: metric.name.to_owned(),
                unit: of.unit.clone(),
                cells: [count(of.count)].into_iter().chain(figures).collect(),
            }
        })
        .collect();
    let is_counted = |of: &Distribution| of.from == Basis::Histogram;
    let counted: Vec<&str> = measured
        .filter(|(_, of)| is_counted(of))
        .map(|(metric, _)| metric.name)
        .collect();
    Metrics {
        heads: heads
            .into_iter()
            .chain(named)
            .chain(["Largest".to_owned()])
            .collect(),
        rows,
        note: (!counted.is_empty()).then(|| {
            format!(
                "Median and percentiles of {} come from counts in cells, within 0.05 % of those of the samples.",
                counted.join(", ")
            )
        }),
    }
}

/// Goodput, steady state, tokens and what the server says, where they are there.
pub(super) fn parts(summary: &Summary) -> Vec<Part> {
    let parts = [
        goodput(summary),
        steady(summary),
        tokens(summary),
        server(summary),
        scores(summary),
    ];
    let there = parts.into_iter().flatten();
    there
        .filter(|part| !part.pairs.is_empty() || part.words.is_some())
        .collect()
}

fn goodput(summary: &Summary) -> Option<Part> {
    let goodput = summary.goodput.as_ref()?;
    let mut pairs = pairs([
        ("Good requests", Some(count(goodput.good))),
        ("Of the requests due", goodput.slo_attainment.map(percent)),
        (
            "Good requests a second",
            goodput.requests_per_s.map(|value| significant(value, 4)),
        ),
        (
            "Their output tokens a second",
            goodput
                .output_tokens_per_s
                .map(|value| significant(value, 4)),
        ),
    ]);
    for (metric, of) in &goodput.objectives {
        let unknown = match of.unknown {
            0 => String::new(),
            unknown => format!(", {} unknown", count(unknown)),
        };
        let share = of.attainment.map(|share| format!("{}: ", percent(share)));
        pairs.push(Pair {
            name: format!("{metric} at most {} ms", significant(of.at_most_ms, 4)),
            value: format!(
                "{}{} kept, {} missed{unknown}",
                share.unwrap_or_default(),
                count(of.kept),
                count(of.missed)
            ),
        });
    }
    Some(Part {
        title: "Goodput",
        words: None,
        pairs,
    })
}

fn steady(summary: &Summary) -> Option<Part> {
    let window = match summary.steady_state.as_ref()? {
        SteadyState::Absent(why) => {
            return Some(Part {
                title: "Steady state",
                words: Some(format!("None: {why}.")),
                pairs: Vec::new(),
            });
        }
        SteadyState::Window(window) => window,
    };
    let of = |name: &str| {
        let of = window.metrics.get(name)?;
        let p99 = of.percentile(99.0);
        let p99 = p99.map(|p99| format!(", P99 {} ms", significant(p99, 4)));
        Some(format!(
            "{} ms{}",
            significant(of.median, 4),
            p99.unwrap_or_default()
        ))
    };
    let drift = window.drift.iter().map(|(name, drift)| {
        let change = format!("{:+.1} %", drift.change * 100.0);
        format!("{name} {}", change.replace('-', "\u{2212}"))
    });
    let drift: Vec<String> = drift.collect();
    Some(Part {
        title: "Steady state",
        words: Some(format!(
            "From {} to {} s, while {} of {} requests or more were in flight.",
            significant(window.from_s, 4),
            significant(window.to_s, 4),
            count(window.at_least),
            count(window.plateau)
        )),
        pairs: pairs([
            ("Requests that ended in it", Some(count(window.ended))),
            (
                "Requests a second",
                Some(significant(window.requests_per_s, 4)),
            ),
            (
                "Output tokens a second",
                window
                    .output_tokens_per_s
                    .map(|value| significant(value, 4)),
            ),
            ("In flight", Some(significant(window.mean_in_flight, 4))),
            ("TTFT, median", of(metric::TTFT)),
            ("TPOT, median", of(metric::TPOT)),
            ("ITL, median", of(metric::ITL)),
            ("E2E latency, median", of(metric::E2E)),
            (
                "From its beginning to its end",
                (!drift.is_empty()).then(|| drift.join(", ")),
            ),
            (
                "Throughput swings every",
                window.swing.map(|swing| {
                    format!(
                        "{} s, by {}",
                        significant(swing.period_s, 3),
                        percent(swing.share)
                    )
                }),
            ),
        ]),
    })
}

fn tokens(summary: &Summary) -> Option<Part> {
    let tokens = &summary.tokens;
    let sources = |counted: &crate::summary::Counted| {
        let known = counted.exchanges_by_source.iter();
        let known = known.map(|(source, n)| format!("{} {}", source.name(), count(*n)));
        let unknown = (counted.unknown > 0).then(|| format!("unknown {}", count(counted.unknown)));
        let parts: Vec<String> = known.chain(unknown).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let tokenizer = summary.run.tokenizer.as_ref().map(|tokenizer| {
        let kind = if tokenizer.approximate {
            ", approximate"
        } else {
            ""
        };
        format!("{}{kind}", tokenizer.name)
    });
    Some(Part {
        title: "Tokens",
        words: None,
        pairs: pairs([
            ("Input tokens", tokens.input.total.map(count)),
            ("Counted by, in requests", sources(&tokens.input)),
            ("Output tokens", tokens.output.total.map(count)),
            ("Counted by, in requests", sources(&tokens.output)),
            (
                "Output tokens asked for",
                tokens.output_requested.map(count),
            ),
            (
                "Output tokens, tokenized again",
                tokens.output_retokenized.map(count),
            ),
            (
                "Input tokens found in a cache",
                tokens.input_cached.map(count),
            ),
            ("Reasoning tokens", tokens.output_reasoning.map(count)),
            (
                "Output tokens to an event",
                tokens.per_event.map(|value| significant(value, 4)),
            ),
            ("Tokenizer of this side", tokenizer),
        ]),
    })
}

fn server(summary: &Summary) -> Option<Part> {
    let server = summary.server.as_ref()?;
    let counted = |figure| server.counted(figure).map(|value| significant(value, 12));
    let hits = server.counted(Counted::PrefixCacheHits);
    let queries = server.counted(Counted::PrefixCacheQueries);
    let share = hits.zip(queries).filter(|(_, queries)| *queries > 0.0);
    let cache = match server.largest(Counted::KvCacheUsage) {
        [Some(before), Some(after)] => Some(format!(
            "{} before, {} after",
            percent(before),
            percent(after)
        )),
        _ => None,
    };
    let lost = server.targets.iter().filter_map(|told| {
        let why = told.lost.as_ref()?;
        Some(format!(
            "{} did not tell its metrics afterwards: {why}",
            told.url
        ))
    });
    let lost: Vec<String> = lost.collect();
    Some(Part {
        title: "What the server counted",
        words: (!lost.is_empty()).then(|| lost.join("; ")),
        pairs: pairs([
            ("Finished requests", counted(Counted::FinishedRequests)),
            ("Input tokens", counted(Counted::InputTokens)),
            ("Output tokens", counted(Counted::OutputTokens)),
            ("Preemptions", counted(Counted::Preemptions)),
            (
                "Tokens found in the prefix cache",
                share.map(|(hits, queries)| percent(hits / queries)),
            ),
            ("Cache for keys and values in use", cache),
        ]),
    })
}

fn scores(summary: &Summary) -> Option<Part> {
    let means = summary.scores.iter().map(|(name, score)| Pair {
        name: name.clone(),
        value: format!("{}, mean of {}", fixed(score.mean, 4), count(score.count)),
    });
    let whole = summary.run_scores.iter().map(|(name, value)| Pair {
        name: name.clone(),
        value: fixed(*value, 4),
    });
    let pairs: Vec<Pair> = means.chain(whole).collect();
    (!pairs.is_empty()).then_some(Part {
        title: "Scores",
        words: None,
        pairs,
    })
}

/// Tables by turn, class and adapter, of each run that has them.
pub(super) fn grouped(runs: &[Shown]) -> Vec<Table> {
    let mut tables = Vec::new();
    for run in runs {
        let groups = &run.view.groups;
        for (title, head, groups) in [
            ("By turn of the conversation", "Turn", &groups.turns),
            ("By class of sample", "Class", &groups.classes),
            ("By adapter", "Adapter", &groups.adapters),
        ] {
            if groups.is_empty() {
                continue;
            }
            tables.push(Table {
                title: match runs.len() {
                    1 => title.to_owned(),
                    _ => format!("{title}: {}", run.label),
                },
                heads: vec![
                    head,
                    "Requests",
                    "Failed",
                    "Input tokens",
                    "Output tokens",
                    "TTFT, median (ms)",
                    "TTFT, P99 (ms)",
                    "TPOT, median (ms)",
                    "E2E, median (ms)",
                    "E2E, P99 (ms)",
                ],
                rows: groups.iter().map(row).collect(),
            });
        }
    }
    tables
}

fn row(group: &Group) -> Vec<String> {
    let mean = |value: Option<f64>| value.map_or(String::new(), |value| significant(value, 4));
    let at = |figures: &Option<Figures>, percent: f64| {
        let figures = figures.as_ref();
        figures.map_or(String::new(), |figures| {
            fixed(figures.percentile(percent), 2)
        })
    };
    vec![
        group
            .name
            .clone()
            .unwrap_or_else(|| "all others".to_owned()),
        count(group.requests),
        count(group.failed),
        mean(group.input_tokens),
        mean(group.output_tokens),
        at(&group.ttft, 50.0),
        at(&group.ttft, 99.0),
        at(&group.tpot, 50.0),
        at(&group.e2e, 50.0),
        at(&group.e2e, 99.0),
    ]
}
