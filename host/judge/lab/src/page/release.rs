//! This lab beside a previous release: a table for each model.

use report::document::{Cell, Document, Table, Text, Tone};
use report::label::label;

use super::words::spread;
use crate::previous::Origin;
use crate::release::{Difference, Release, Verdict};

/// Adds the differences from the previous release.
pub(super) fn release(page: &mut Document, release: &Release) {
    page.heading(2, "Against the previous release");
    page.say(&summary(release));
    let mut models: Vec<&str> = release.rows.iter().map(|row| row.model.as_str()).collect();
    models.dedup();
    for model in models {
        if !model.is_empty() {
            page.heading(3, model);
        }
        let rows: Vec<&Difference> = release.rows.iter().filter(|row| row.model == model).collect();
        page.table(table(&rows, &release.previous));
    }
    if !release.alone.is_empty() {
        page.say("What has nothing beside it:");
        let alone = release.alone.iter();
        page.list(alone.map(|why| Text::plain(why.as_str())).collect());
    }
}

fn summary(release: &Release) -> String {
    let mut engines: Vec<&str> =
        release.rows.iter().filter_map(|row| row.engine.as_deref()).collect();
    engines.sort_unstable();
    engines.dedup();
    let of = match engines.is_empty() {
        true => String::new(),
        false => format!(" ({})", engines.join(", ")),
    };
    let name = format!("`{}`{of}", release.previous);
    if release.rows.is_empty() {
        return format!("{name} has no result that this lab has too.");
    }
    if release.origin == Origin::Published {
        return format!(
            "Before is {name}, as published: means, with nothing of how they vary. So differences are shown and not judged."
        );
    }
    let many = |verdict: Verdict| release.rows.iter().filter(|row| row.verdict == verdict).count();
    let counts = [
        (Verdict::Better, "better"),
        (Verdict::Worse, "worse"),
        (Verdict::Same, "the same"),
        (Verdict::NoDifference, "with no difference shown"),
        (Verdict::NotJudged, "not judged"),
    ];
    let counts = counts.into_iter().filter(|(verdict, _)| many(*verdict) > 0);
    let counts: Vec<String> =
        counts.map(|(verdict, words)| format!("{} {words}", many(verdict))).collect();
    let within = release.same_within.map(|share| {
        format!(
            " The same means: the interval of the difference lies within {} %.",
            (1e4 * share).round() / 100.0
        )
    });
    format!(
        "Before is {name}. Of {} figures: {}. No difference shown does not mean that there is none.{}",
        release.rows.len(),
        counts.join(", "),
        within.unwrap_or_default()
    )
}

fn table(rows: &[&Difference], previous: &str) -> Table {
    let head = ["Scenario", "Trial", "Figure", "Before", "Now", "Change", "Verdict", "Source"];
    let mut table = Table::new(head);
    let is_one_trial = rows.iter().all(|row| row.trial == rows[0].trial);
    for row in rows {
        let trial = if is_one_trial { "" } else { &row.trial };
        // What every row would repeat has no column.
        let source = if row.source == previous { "" } else { &row.source };
        let change = format!("{:+.1} %", row.change.percent);
        let change = match row.change.interval {
            Some([low, high]) => format!("{change} (95 % interval {low:+.1} to {high:+.1} %)"),
            None => change,
        };
        table.row([
            Cell::from(row.scenario.as_str()),
            trial.into(),
            label(&row.figure).into(),
            spread(&row.before).into(),
            spread(&row.now).into(),
            change.into(),
            verdict(row.verdict),
            source.into(),
        ]);
    }
    table.without_empty_columns()
}

fn verdict(of: Verdict) -> Cell {
    Cell {
        text: of.words().into(),
        tone: match of {
            Verdict::Better => Tone::Good,
            Verdict::Worse => Tone::Bad,
            Verdict::NoDifference | Verdict::Same | Verdict::NotJudged => Tone::Plain,
        },
    }
}
