//! The parts of every page: its head with style and script, a content security policy that allows
//! nothing else, the drawings of its charts, and the templates' common macros.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::chart::{self, Chart, Form, Look, Side, Theme, Width, palette};

const MACROS: &str = include_str!("macros.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The values of a page that the macros take.
#[derive(Serialize)]
pub(crate) struct Frame {
    title: String,
    version: &'static str,
    policy: String,
    style: Value,
    script: Value,
    sections: Vec<Section>,
}

/// A section, for the page's navigation.
#[derive(Serialize)]
pub(crate) struct Section {
    id: String,
    name: String,
}

pub(crate) fn section(id: &str, name: &str) -> Section {
    Section {
        id: id.to_owned(),
        name: name.to_owned(),
    }
}

impl Frame {
    /// The frame of a page with that title and these sections.
    pub(crate) fn new(title: String, sections: Vec<Section>) -> Self {
        let style = style();
        Frame {
            title,
            version: env!("CARGO_PKG_VERSION"),
            policy: policy(&style),
            style: Value::from_safe_string(style),
            script: Value::from_safe_string(SCRIPT.to_owned()),
            sections,
        }
    }
}

/// A chart as the template takes it.
#[derive(Serialize)]
pub(crate) struct Drawn {
    name: String,
    title: String,
    note: String,
    form: &'static str,
    /// True if its keys are the runs.
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

/// The text of a page.
///
/// # Errors
/// Only if the template uses a value that it is not given, which is a bug.
pub(crate) fn render(template: &str, page: &impl Serialize) -> Result<String, Error> {
    let template = format!("{MACROS}{template}");
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("page.html", &template)?;
    let text = environment.get_template("page.html")?.render(Serde(page))?;
    // No word from outside moves a terminal's cursor, when a page is looked at as text.
    let plain = |c: char| match c != '\n' && model::clean::unsafe_to_show(c) {
        true => ' ',
        false => c,
    };
    Ok(text.trim().chars().map(plain).chain(['\n']).collect())
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

/// The page's content security policy: its own style and script, by their digests, and no other
/// source.
fn policy(style: &str) -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        source(style),
        source(SCRIPT)
    )
}

/// The content of an element, as a policy identifies it.
pub(super) fn source(text: &str) -> String {
    format!(
        "sha256-{}",
        STANDARD.encode(Sha256::digest(text.as_bytes()))
    )
}

/// A chart, drawn for every width and scale. `runs` are the names of the page's runs, by which a
/// chart knows that its keys are these.
pub(crate) fn drawn(chart: &Chart, runs: &[&str]) -> Drawn {
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
                .all(|(key, run)| key.label == *run),
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
