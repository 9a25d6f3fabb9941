//! Runs as a page: one file that needs no network, and works on a screen, a telephone and paper,
//! with a pointer, a keyboard or a screen reader.
//!
//! Pure: the same runs give the same bytes. `chart` draws the charts; the page's script only moves
//! and hides elements. The template escapes all text of a server, a plugin or a scenario; the
//! page's content security policy allows no script but its own, by its digest.

mod beside;
mod figures;
pub(crate) mod frame;
mod pair;
mod parts;
pub(crate) mod plan;
mod run;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use self::beside::Comparison;
use self::frame::{Drawn, Frame, drawn, section};
use super::chart::Chart;
use super::charts::{Charts, Shown};
use result::metric::{self, Metric};

const TEMPLATE: &str = include_str!("html/page.html");

#[derive(Serialize)]
struct Page {
    #[serde(flatten)]
    frame: Frame,
    several: bool,
    runs: Vec<run::Run>,
    beside: Vec<beside::Row>,
    /// The reasons why differences between the runs are not judged.
    obstacles: Vec<String>,
    chart_groups: Vec<ChartGroup>,
    grouped: Vec<figures::Table>,
    /// True if any run has bad answers to show.
    worst: bool,
    differences: Vec<plan::Difference>,
    definitions: Vec<Definition>,
}

#[derive(Serialize)]
struct ChartGroup {
    id: &'static str,
    name: &'static str,
    lead: &'static str,
    charts: Vec<Drawn>,
}

#[derive(Serialize)]
struct Definition {
    name: &'static str,
    unit: &'static str,
    definition: &'static str,
    equals: &'static str,
}

/// The page of these runs, of which there is at least one. The first one is the baseline;
/// `compared` states which differences are more than chance, and is present if there are several
/// runs.
///
/// # Errors
/// Only if the template uses a value that it is not given, which is a bug.
pub fn page(runs: &[Shown], compared: Option<&Comparison>) -> Result<String, minijinja::Error> {
    let charts = Charts::of(runs);
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    let drawn = |charts: &[Chart]| charts.iter().map(|chart| drawn(chart, &labels)).collect();
    let chart_groups = vec![
        ChartGroup {
            id: "distributions",
            name: "Distributions",
            lead: "Each metric as a cumulative distribution and as a histogram. Dotted lines mark the median, the 99th percentile and any limits that were set.",
            charts: drawn(&charts.distributions),
        },
        ChartGroup {
            id: "over-time",
            name: "Over time",
            lead: "Throughput, requests in flight, waiting requests and failures.",
            charts: drawn(&charts.course),
        },
        ChartGroup {
            id: "prompts",
            name: "What the time to first token depends on",
            lead: "Time to first token against prompt length, and over the run.",
            charts: drawn(&charts.dependence),
        },
        ChartGroup {
            id: "requests",
            name: "Requests",
            lead: "Single requests with their phases; a cross marks each one that failed.",
            charts: drawn(&charts.requests),
        },
    ];
    let grouped = figures::grouped(runs);
    let mut sections = vec![section("verdict", "Verdict"), section("figures", "Figures")];
    let groups = chart_groups.iter().filter(|group| !group.charts.is_empty());
    sections.extend(groups.map(|group| match group.id {
        "prompts" => section(group.id, "First token"),
        id => section(id, group.name),
    }));
    if !grouped.is_empty() {
        sections.push(section("groups", "Groups"));
    }
    let summaries = runs.iter().map(|run| &run.reported.summary);
    let mut scores = summaries.flat_map(|summary| summary.scores.values());
    let worst = scores.any(|score| !score.examples.is_empty());
    sections.extend([
        section("all", "All figures"),
        section("failures", "Failures"),
    ]);
    sections.extend(worst.then(|| section("worst", "Worst answers")));
    sections.extend([
        section("how", "How it was run"),
        section("definitions", "Definitions"),
    ]);
    let page = Page {
        frame: Frame::new(run::title(runs), sections),
        several: compared.is_some(),
        runs: runs
            .iter()
            .enumerate()
            .map(|(number, shown)| run::run(number, shown))
            .collect(),
        beside: compared.map_or_else(Vec::new, |compared| beside::rows(runs, compared)),
        obstacles: compared.map_or_else(Vec::new, |compared| beside::obstacles(runs, compared)),
        chart_groups,
        grouped,
        worst,
        differences: plan::differences(runs),
        definitions: definitions(runs),
    };
    frame::render(TEMPLATE, &page)
}

/// The definitions of the metrics that any of the runs has measured, or might have been expected
/// to.
fn definitions(runs: &[Shown]) -> Vec<Definition> {
    let named = |metric: &&Metric| {
        let headline = figures::HEADLINE.contains(&metric.name);
        let measured = runs
            .iter()
            .any(|run| run.reported.summary.metrics.contains_key(metric.name));
        headline || measured
    };
    let known = metric::CATALOGUE.iter().filter(named);
    known
        .map(|metric| Definition {
            name: metric.name,
            unit: metric.unit.symbol(),
            definition: metric.definition,
            equals: metric.equals,
        })
        .collect()
}
