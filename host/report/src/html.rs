//! Runs as a page: one file that needs no network, and works on a screen, a telephone and paper, with a
//! pointer, a keyboard or a screen reader.
//!
//! Pure: the same runs give the same bytes. `chart` draws the charts; the page's script only moves and
//! hides elements. The template escapes all text of a server, a plugin or a scenario; the page's content
//! security policy allows no script but its own, by its digest.

mod beside;
mod figures;
mod parts;
mod plan;
mod run;

#[cfg(test)]
mod tests;

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use self::beside::Comparison;
use super::chart::{self, Chart, Form, Look, Side, Theme, Width, palette};
use super::charts::{Charts, Shown};
use result::metric::{self, Metric};

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Pair {
    name: String,
    value: String,
}

fn pair(name: &str, value: impl ToString) -> Pair {
    Pair {
        name: name.to_owned(),
        value: value.to_string(),
    }
}

/// Names with their measured values; leaves out those that were not measured.
fn pairs<const N: usize>(given: [(&str, Option<String>); N]) -> Vec<Pair> {
    let known = given.into_iter();
    known
        .filter_map(|(name, value)| Some(pair(name, value?)))
        .collect()
}

#[derive(Serialize)]
struct Page {
    title: String,
    version: &'static str,
    policy: String,
    style: Value,
    script: Value,
    several: bool,
    sections: Vec<Section>,
    runs: Vec<run::Run>,
    beside: Vec<beside::Row>,
    /// Why differences between the runs are not judged.
    obstacles: Vec<String>,
    chart_groups: Vec<ChartGroup>,
    grouped: Vec<figures::Table>,
    differences: Vec<plan::Difference>,
    definitions: Vec<Definition>,
}

#[derive(Serialize)]
struct Section {
    id: &'static str,
    name: &'static str,
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

/// A chart as the template takes it.
#[derive(Serialize)]
struct Drawn {
    name: String,
    title: String,
    note: String,
    form: &'static str,
    /// Whether its keys are the runs.
    of_runs: bool,
    keys: Vec<Legend>,
    /// The axis that may be logarithmic.
    log: Option<&'static str>,
    log_first: bool,
    snap: &'static str,
    start: usize,
    drawings: Value,
    head: String,
    columns: Vec<String>,
    rows: Vec<DrawnRow>,
}

#[derive(Serialize)]
struct Legend {
    label: String,
    class: String,
    swatch: Value,
}

#[derive(Serialize)]
struct DrawnRow {
    label: String,
    cells: Vec<String>,
}

/// The page of these runs, of which there is at least one. The first one is the baseline; `compared` states which
/// differences are more than chance, and is present if there are several runs.
///
/// # Errors
/// Only if the template uses a value that it is not given, which is a bug.
pub fn page(runs: &[Shown], compared: Option<&Comparison>) -> Result<String, minijinja::Error> {
    let charts = Charts::of(runs);
    let style = style();
    let drawn = |charts: &[Chart]| charts.iter().map(|chart| drawn(chart, runs)).collect();
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
    sections.extend([
        section("all", "All figures"),
        section("failures", "Failures"),
        section("how", "How it was run"),
        section("definitions", "Definitions"),
    ]);
    let page = Page {
        title: run::title(runs),
        version: env!("CARGO_PKG_VERSION"),
        policy: policy(&style),
        style: Value::from_safe_string(style),
        script: Value::from_safe_string(SCRIPT.to_owned()),
        several: compared.is_some(),
        sections,
        runs: runs
            .iter()
            .enumerate()
            .map(|(number, shown)| run::run(number, shown))
            .collect(),
        beside: compared.map_or_else(Vec::new, |compared| beside::rows(runs, compared)),
        obstacles: compared.map_or_else(Vec::new, |compared| beside::obstacles(runs, compared)),
        chart_groups,
        grouped,
        differences: plan::differences(runs),
        definitions: definitions(runs),
    };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("page.html", TEMPLATE)?;
    let text = environment
        .get_template("page.html")?
        .render(Serde(&page))?;
    // No word from outside moves a terminal's cursor, when a page is looked at as text.
    let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    Ok(text.trim().chars().map(plain).chain(['\n']).collect())
}

fn section(id: &'static str, name: &'static str) -> Section {
    Section { id, name }
}

/// The style sheet: the house's rules, with the colours of both themes.
fn style() -> String {
    let [light, dark] = [Theme::Light, Theme::Dark].map(palette::properties);
    let charts = palette::rules(|name| format!("var(--{name})"));
    format!(
        ":root{{{light}}}\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\
         :root[data-theme=dark]{{color-scheme:dark;{dark}}}\n\
         {STYLE}{charts}\
         @media print{{:root,:root:not([data-theme=light]),:root[data-theme=dark]{{color-scheme:light;{light}}}}}"
    )
}

/// The page's content security policy: its own style and script, by their digests, and no other source.
fn policy(style: &str) -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        source(style),
        source(SCRIPT)
    )
}

/// The content of an element, as a policy identifies it.
fn source(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() {
                letter as char
            } else {
                '='
            });
        }
    }
    text
}

fn drawn(chart: &Chart, runs: &[Shown]) -> Drawn {
    let mut drawings = String::new();
    for width in [Width::Wide, Width::Narrow] {
        let scales: &[bool] = if chart.log.is_some() {
            &[false, true]
        } else {
            &[false]
        };
        for log in scales {
            let look = Look {
                width,
                log: *log,
                alone: None,
            };
            drawings.push_str(&chart::svg(chart, look));
        }
    }
    let keys = chart.keys.iter().map(|key| Legend {
        label: key.label.clone(),
        class: key.tone.class(),
        swatch: Value::from_safe_string(chart::swatch(key.tone, 1.0, 6.0)),
    });
    let columns: Vec<_> = chart.columns().map(|(_, column)| column).collect();
    let rows = chart
        .rows
        .labels
        .iter()
        .enumerate()
        .map(|(row, label)| DrawnRow {
            label: label.clone(),
            cells: (columns.iter())
                .map(|column| {
                    let cell = column.cells.get(row).and_then(Option::as_ref);
                    cell.map_or(String::new(), |cell| cell.text.clone())
                })
                .collect(),
        });
    Drawn {
        name: chart.name.clone(),
        title: chart.title.clone(),
        note: chart.note.clone(),
        form: match chart.form {
            Form::Half => "half",
            Form::Full => "full",
        },
        of_runs: chart.keys.len() == runs.len()
            && chart
                .keys
                .iter()
                .zip(runs)
                .all(|(key, run)| key.label == run.label),
        keys: keys.collect(),
        log: chart.log.map(|log| match log.side {
            Side::X => "horizontal",
            Side::Y => "vertical",
        }),
        log_first: chart.log.is_some_and(|log| log.first),
        snap: chart.rows.snap.name(),
        start: chart
            .rows
            .labels
            .iter()
            .position(|label| label == "P50")
            .unwrap_or(0),
        drawings: Value::from_safe_string(drawings),
        head: chart.rows.head.clone(),
        columns: columns.iter().map(|column| column.head.clone()).collect(),
        rows: rows.collect(),
    }
}

/// The definitions of the metrics that any of the runs has measured, or might have been expected to.
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
