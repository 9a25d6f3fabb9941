//! A page of runs with charts, as a [`Document`]: of one run, or of several that are drawn over
//! each other and compared with the first.
//!
//! Pure: the same runs give the same page. `charts` chooses the charts, and `compare` the
//! differences that are more than chance.

mod beside;
pub(crate) mod figures;
mod first_token;
mod parts;
pub(crate) mod plan;
mod run;

#[cfg(test)]
mod tests;

pub use self::beside::Comparison;
use super::charts::{Charts, RunView};
use super::sure;
use crate::document::{Block, Document, Span, Text};
use crate::time_slices;
use result::metric::{self, Metric};
use result::summary::Summary;

/// The charts beside the headline figures: the first metric's distribution, drawn in two ways.
const PICTURES: usize = 2;

const TILES: usize = 4;

/// The page of these runs; there is at least one. The first one is the baseline; `compared` states
/// the differences that are more than chance, and is present if there are several runs.
pub fn page(runs: &[RunView], compared: Option<&Comparison>) -> Document {
    let mut page = Document::new("Benchmark result", run::title(runs));
    page.folders = runs.iter().map(|run| run.reported.folder.clone()).collect();
    let mut drawn = Charts::new(runs);
    let parts = std::mem::take(&mut drawn.first_token);
    let rest = drawn.distributions.split_off(drawn.distributions.len().min(PICTURES));
    let pictures = std::mem::replace(&mut drawn.distributions, rest);
    match runs {
        [one] => run::answer(&mut page, one),
        _ => run::table(&mut page, runs),
    }
    page.section("figures", "Figures", "Headline figures");
    match compared {
        Some(compared) => {
            pictures.into_iter().for_each(|chart| page.chart(chart));
            beside(&mut page, runs, compared);
        }
        None => {
            let summary = &runs[0].reported.summary;
            let mut first = figures::headline(summary);
            let further = first.split_off(first.len().min(TILES));
            page.push(Block::Figures(first));
            pictures.into_iter().for_each(|chart| page.chart(chart));
            if !further.is_empty() {
                page.push(Block::Figures(further));
            }
            sure(&mut page, summary);
        }
    }
    run::findings(&mut page, runs);
    charts(&mut page, drawn);
    first_token::section(&mut page, runs, parts);
    let grouped = figures::grouped(runs);
    if !grouped.is_empty() {
        page.section("groups", "Groups", "By turn, class and adapter");
    }
    for (title, table) in grouped {
        page.heading(3, title);
        page.table(table);
    }
    slices(&mut page, runs);
    page.section("all", None, "All figures");
    page.remark("Every metric that was measured. Each name opens its definition and lists the tools whose figure it equals.");
    each(&mut page, runs, run::figures);
    page.section("failures", None, "Failures");
    each(&mut page, runs, run::failures);
    let is_bad = |run: &&RunView| {
        let mut scores = run.reported.summary.scores.values();
        scores.any(|score| !score.examples.is_empty())
    };
    let bad: Vec<&RunView> = runs.iter().filter(is_bad).collect();
    if !bad.is_empty() {
        page.section("worst", None, "Worst answers");
        page.remark(
            "A few of the answers with the worst scores, cut to their beginnings and ends.",
        );
    }
    for run in bad {
        label(&mut page, runs, run);
        run::worst(&mut page, &run.reported.summary);
    }
    page.section("how", None, "How it was run");
    let differences = plan::differences(runs);
    if !differences.rows.is_empty() {
        page.heading(3, "Differences between the runs");
        page.table(differences);
    }
    each(&mut page, runs, run::how);
    page.section("definitions", None, "Definitions");
    page.remark(Text::explained("A *request* is *due* at the time the plan sets, *granted* when the cap on requests in flight lets it go, and *sent* when its first byte is written to the socket. *n* is the number of output tokens."));
    page.push(Block::Details {
        summary: "Every metric of this page".to_owned(),
        is_printed: true,
        blocks: vec![Block::Definitions(definitions(runs))],
    });
    page
}

/// Adds the intervals of the figures by which people decide.
fn sure(page: &mut Document, summary: &Summary) {
    let table = figures::sure(summary, |row| row.decides);
    if !table.rows.is_empty() {
        page.heading(3, "How sure (95 %)");
        page.table(table);
        page.remark(sure::NOTE);
    }
}

/// Adds a part of every run, below its name if there are several.
fn each(page: &mut Document, runs: &[RunView], part: fn(&mut Document, &RunView, u8)) {
    for run in runs {
        label(page, runs, run);
        part(page, run, if runs.len() > 1 { 4 } else { 3 });
    }
}

/// Adds the name of one of these runs as a heading, if there are several.
fn label(page: &mut Document, runs: &[RunView], run: &RunView) {
    if runs.len() > 1 {
        page.heading(3, run.label.as_str());
    }
}

/// Adds the time slices of each run that has them.
fn slices(page: &mut Document, runs: &[RunView]) {
    let sliced: Vec<_> = (runs.iter())
        .filter_map(|run| Some((run, run.reported.summary.time_slices.as_ref()?)))
        .collect();
    if sliced.is_empty() {
        return;
    }
    page.section("time-slices", None, "By time slice");
    page.remark("TTFT and E2E latency belong to the slice in which a request was sent, tokens and ITL to the slice in which they came, and all else to the slice in which a request ended.");
    for (run, slices) in sliced {
        let length = time_slices::length(slices);
        page.heading(3, figures::titled(&format!("Slices {length}"), run, runs.len()));
        page.table(time_slices::table(slices));
    }
}

fn beside(page: &mut Document, runs: &[RunView], compared: &Comparison) {
    let words = Text::plain("Each run against ").with(Span::Strong(runs[0].label.clone()));
    let obstacles = beside::obstacles(runs, compared);
    page.remark(if obstacles.is_empty() { words
            .then(". Figures that differ by more than chance are marked as better (green) or worse (red), all judged together, with a run-to-run variation of 2 % assumed; ")
            .with(Span::Code("runner compare".to_owned()))
            .then(" shows the confidence intervals. No mark does not mean equal.") } else { words.then(". The runs are not comparable, so nothing is marked as better or worse:") });
    page.list(obstacles);
    page.table(beside::table(runs, compared));
    let names = runs.iter().map(|run| run.label.clone());
    page.push(Block::Series(names.collect()));
}

fn charts(page: &mut Document, charts: Charts) {
    let groups = [
        (
            ("distributions", None, "Distributions"),
            "Each metric as a cumulative distribution and as a histogram. Dotted lines mark the median, the 99th percentile and any limits that were set.",
            charts.distributions,
        ),
        (
            ("over-time", None, "Over time"),
            "Throughput, requests in flight, waiting requests and failures.",
            charts.course,
        ),
        (
            ("prompts", Some("First token"), "Time to first token by cause"),
            "Time to first token against prompt length, and over the run.",
            charts.dependence,
        ),
        (
            ("requests", None, "Requests"),
            "Single requests with their phases; a cross marks each one that failed.",
            charts.requests,
        ),
    ];
    for ((name, short, heading), words, charts) in groups {
        if !charts.is_empty() {
            page.section(name, short, heading);
            page.remark(words);
            charts.into_iter().for_each(|chart| page.chart(chart));
        }
    }
}

/// The metrics that any of the runs has measured, or might have been expected to.
fn definitions(runs: &[RunView]) -> Vec<(&'static str, &'static Metric)> {
    let named = |metric: &&Metric| {
        let headline = figures::HEADLINE.contains(&metric.name);
        let measured =
            runs.iter().any(|run| run.reported.summary.metrics.contains_key(metric.name));
        headline || measured
    };
    metric::CATALOGUE.iter().filter(named).map(|metric| (metric.name, metric)).collect()
}
