//! A page of runs with charts, as a [`Document`]: of one run, or of several that are drawn over
//! each other and compared with the first.
//!
//! Pure: the same runs give the same page. `charts` chooses the charts, and `compare` the
//! differences that are more than chance.

mod beside;
pub(crate) mod figures;
mod first_token;
pub(crate) mod plan;
mod run;

#[cfg(test)]
mod tests;

pub use self::beside::Comparison;
use super::charts::{Charts, RunView};
use super::sure;
use crate::document::{Block, Document, Pair, Span, Text};
use crate::sections::Row;
use crate::{sections, time_slices};
use model::number::{count, fixed, significant};
use result::metric::{self, Metric};
use result::summary::{Score, SteadyState, Summary};

/// The charts beside the headline figures: the first metric's distribution, drawn in two ways.
const PICTURES: usize = 2;

const TILES: usize = 4;

/// The page of these runs, the first the baseline; `compared` is present for several runs.
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
        page.heading(3, "How sure: the average of many runs (95 %)");
        page.table(table);
        page.remark(format!("{}; {}", sure::LEGEND, sure::NOTE));
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

/// The most devices that a page shows one by one.
const DEVICES: usize = 64;

/// A section: its title, words above its figures, and the figures.
type Part = (&'static str, Option<String>, Vec<Pair>);

fn parts(summary: &Summary) -> Vec<Part> {
    let (steady_words, steady) = match &summary.steady_state {
        None => (None, Vec::new()),
        Some(SteadyState::Absent(why)) => (Some(format!("None: {why}.")), Vec::new()),
        Some(SteadyState::Window(window)) => {
            let words = format!(
                "From {} to {} s, while at least {} of {} requests were in flight.",
                significant(window.from_s, 4),
                significant(window.to_s, 4),
                count(window.at_least),
                count(window.plateau)
            );
            (Some(words), sections::steady(window))
        }
    };
    let cache = summary.cache.as_ref().map(|cache| {
        format!(
            "A cache without limits is counted in pages of {} tokens, over the prompts in the order in which they were sent.",
            cache.page
        )
    });
    let server = summary.server.as_ref();
    let lost: Vec<String> =
        server.map(|server| sections::lost(server).collect()).unwrap_or_default();
    let (notes, host_note) = sections::device_notes(summary);
    let notes: Vec<String> = notes.into_iter().take(DEVICES).chain(host_note).collect();
    let scored = (!summary.scores.is_empty())
        .then(|| "Means over the judged answers, with 95 % intervals.".to_owned());
    let server_rows = server.map(sections::server).unwrap_or_default();
    let devices = pairs(sections::devices(summary)).into_iter().chain(each_device(summary));
    let mut parts = vec![
        ("Goodput", None, pairs(sections::goodput(summary))),
        ("Sessions", None, pairs(sections::sessions(summary))),
        ("Steady state", steady_words, pairs(steady)),
        ("Tokens", None, pairs(sections::tokens(summary))),
        ("Prefix cache", cache, pairs(sections::cache(summary))),
        ("Changes by the dataset", None, dataset(summary)),
        ("Server counts", joined(&lost), pairs(server_rows)),
        ("Server metrics over time", series(summary), pairs(sections::series(summary))),
        ("Devices", joined(&notes), devices.collect()),
        ("Cost", None, pairs(sections::cost(summary))),
        ("Scores", scored, scores(summary)),
    ];
    parts.retain(|(_, words, pairs)| !pairs.is_empty() || words.is_some());
    parts
}

fn pairs(rows: Vec<Row>) -> Vec<Pair> {
    rows.into_iter().filter_map(Row::pair).collect()
}

fn joined(sentences: &[String]) -> Option<String> {
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

fn dataset(summary: &Summary) -> Vec<Pair> {
    let pairs = summary.dataset.iter().flat_map(|dataset| &dataset.remarks).map(|remark| {
        let first = remark.first.as_ref().map(|first| format!(", first {first}"));
        Pair {
            name: format!("{}: {}", remark.what.name(), remark.reason),
            value: format!("{}{}", count(remark.count), first.unwrap_or_default()),
        }
    });
    pairs.collect()
}

fn series(summary: &Summary) -> Option<String> {
    let series = summary.server_series.as_ref()?;
    let failed = series.failed.zip(series.last_error.as_ref());
    let failed = failed.map_or(String::new(), |(count, error)| {
        format!(" {count} pages did not come, the last because: {error}.")
    });
    let (number, every) = (count(series.series), significant(series.every_s, 3));
    Some(format!("From {number} series of its metrics page, read every {every} s.{failed}"))
}

fn each_device(summary: &Summary) -> impl Iterator<Item = Pair> {
    let with = |value: Option<f64>, unit: &str| {
        value.map(|value| format!("{} {unit}", significant(value, 4)))
    };
    let devices = summary.devices.iter().flat_map(|devices| &devices.each);
    devices.enumerate().take(DEVICES).map(move |(place, figures)| {
        let known = [
            figures.device.name.clone(),
            with(figures.mean_power_w, "W"),
            with(figures.power_limit_w, "W at most"),
            with(figures.mean_sm_clock_mhz, "MHz"),
            with(figures.max_temperature_c, "°C"),
            with(figures.peak_memory.map(|bytes| bytes as f64 / sections::GIB), "GiB"),
        ];
        let known: Vec<String> = known.into_iter().flatten().collect();
        Pair {
            name: format!("Device {}", figures.device.label(place)),
            value: if known.is_empty() { "no values".to_owned() } else { known.join(", ") },
        }
    })
}

/// A score's mean, its certainty, and its number of answers.
fn scored(score: &Score) -> String {
    let bounds = score.confidence;
    let bounds = bounds.map(|bounds| format!(" ({})", bounds.label(" to ", |end| fixed(end, 4))));
    let unjudged = score.unjudged.label().map(|words| format!("; not judged: {words}"));
    format!(
        "{}{}, mean of {}{}",
        fixed(score.mean, 4),
        bounds.unwrap_or_default(),
        count(score.count),
        unjudged.unwrap_or_default()
    )
}

fn scores(summary: &Summary) -> Vec<Pair> {
    let means = summary.scores.iter().map(|(name, score)| (name, scored(score)));
    let whole = summary.run_scores.iter().map(|(name, value)| (name, fixed(*value, 4)));
    let silent = summary.silent_scorers.iter().map(|scorer| {
        let why = scorer.unjudged.label().unwrap_or_default();
        (&scorer.name, format!("no score: {why}"))
    });
    let pairs = means.chain(whole).chain(silent);
    pairs.map(|(name, value)| Pair { name: name.clone(), value }).collect()
}
