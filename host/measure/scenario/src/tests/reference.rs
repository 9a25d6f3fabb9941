//! The user guide's page on the keys of scenarios, generated from their declarations.

use super::*;
use crate::comparability::Fate;

/// The purposes of the tables. Keys without a table come first.
const TABLES: [(&str, &str); 21] = [
    ("", "At the top"),
    ("about", "Purpose of the run, for readers of its result. None of it is checked."),
    ("target", "The server under test."),
    ("sides[]", "Further servers of a paired run, each under `[[sides]]`."),
    ("paired", "How the sides of a paired run are measured."),
    ("tokenizer", "The model's tokenizer."),
    ("backend", "The backend, which speaks the server's dialect."),
    ("dataset", "The contents of requests."),
    (
        "load",
        "Number and times of requests. `[load.ramp]`, `[[load.stages]]` and `[load.trace]` vary the rate.",
    ),
    ("request", "Options for every request."),
    ("connection", "Connections to the server."),
    ("timeouts", "Time limits."),
    ("scorers[]", "The scorers that judge the answers, each under `[[scorers]]`."),
    ("run", "Figures to watch while the run goes on."),
    ("cost", "The cost of a million tokens."),
    ("machines", "The machines that serve, for figures of agents."),
    ("report", "Contents of the report."),
    ("expect", "Figures that the run is expected to have. A finding names a figure that differs."),
    ("goodput", "SLOs, the upper limits of request metrics."),
    ("thresholds", "Conditions that must hold of the run."),
    ("sandbox", "The resource limits of plugins."),
];

fn page() -> String {
    let mut page = "# Scenario keys\n\n\
         This page is generated from the declarations of the keys; do not edit it. `runner scenario keys` prints the \
         same.\n\n\
         Each key can be set in a scenario file, by its flag or variable if it has one, and by `--set KEY=VALUE`. \
         `--set` overrides flags, and flags override the file. Durations are written as `250ms`, `1.5s` or `1h30m`, \
         sizes as `64MiB`.\n\n\
         `runner compare` only compares runs that agree in the keys that shape the measurement. A key that must agree names \
         its kind, which `--allow` takes.\n"
        .to_owned();
    for (table, about) in TABLES {
        let heading = match table {
            "" => about.to_owned(),
            table if table.ends_with("[]") => format!("`[[{}]]`", table.trim_end_matches("[]")),
            table => format!("`[{table}]`"),
        };
        let _ = write!(page, "\n## {heading}\n");
        if !table.is_empty() {
            let _ = write!(page, "\n{about}\n");
        }
        for key in keys().iter().filter(|key| key.table() == table) {
            page.push_str(&entry(key));
        }
    }
    page
}

fn entry(key: &Key) -> String {
    let mut entry = format!("\n### `{}`\n\n", key.path);
    for paragraph in &key.about {
        let _ = write!(entry, "{}\n\n", escaped(paragraph));
    }
    let mut item = |name: &str, what: String| _ = writeln!(entry, "- **{name}:** {what}");
    match key.words.as_slice() {
        [] => item("Type", key.expected.clone()),
        words => {
            let mut list = String::from("one of");
            for (name, about) in words {
                let about = escaped(about.trim_end_matches('.'));
                let _ = write!(list, "\n  - `\"{name}\"`: {about}");
            }
            item("Type", list);
        }
    }
    match (&key.default, key.otherwise) {
        (_, Some(words)) => item("Default", words.to_owned()),
        (Some(value), None) => item("Default", format!("`{value}`")),
        (None, None) => {}
    }
    if let Some(flag) = &key.flag {
        let means = flag.inverted.map_or("", |_| ", which sets it to `false`");
        item("Flag", format!("`--{}`{means}", flag.long));
        item("Variable", format!("`{}`", flag.variable()));
    }
    item(
        "Comparisons",
        match key.plan {
            Some((_, Fate::Must(kind))) => format!("must agree (`{kind}`)"),
            Some((_, Fate::May)) => "show both values".to_owned(),
            Some((_, Fate::Silent)) | None => "not affected".to_owned(),
        },
    );
    entry
}

/// Text that Markdown leaves as it is.
fn escaped(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*")
}

#[test]
fn the_guide_lists_the_keys() {
    let tables: Vec<&str> = TABLES.iter().map(|(table, _)| *table).collect();
    for key in keys() {
        assert!(tables.contains(&key.table()), "`{}` is in no table", key.path);
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/src/reference");
    compare(&guide.join("scenario-keys.md"), &page()).unwrap();
}
