//! A build as Markdown, for the summary of a job and the comment on a change: the outcome, the
//! checks, and the figures in a part that a reader opens.

use super::{Baseline, Build, Check, Outcome};
use crate::document::{Block, Document, Table, Text};
use crate::{compared, repeats};
use compare::repeats::repeats;
use result::finding::Finding;
use result::summary::Summary;

pub fn text(build: &Build) -> String {
    page(build, false).text()
}

/// The outcome and the checks, the worst first; with a visible sign in the title.
fn page(build: &Build, with_sign: bool) -> Document {
    let checks = build.checks();
    let worst = checks.iter().map(|check| check.outcome).max();
    let (sign, words) = match worst.unwrap_or(Outcome::Passes) {
        Outcome::Passes | Outcome::Notes => ("✅ ", "passes"),
        Outcome::Warns => ("⚠️ ", "passes, with doubts"),
        Outcome::Fails => ("❌ ", "fails"),
    };
    let sign = if with_sign { sign } else { "" };
    let title = format!("{sign}{}: {words}", build.scenario);
    let mut page = Document::new("Build", title);
    page.paragraph(Text::strong(against(build)));
    let mut table = Table::new(["Outcome", "Check", "Seen"]);
    let mut sorted: Vec<&Check> = checks.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(check.outcome));
    for check in sorted {
        let seen = std::iter::once(&check.seen).chain(&check.more);
        let seen = seen.map(String::as_str).collect::<Vec<_>>().join(". ");
        table.row([word(check.outcome).to_owned(), check.name.clone(), seen]);
    }
    page.table(table);
    page
}

pub fn markdown(build: &Build) -> String {
    let mut out = page(build, true).markdown_section(2);
    if let Baseline::Compared(compared) = &build.baseline {
        let shown = compared::page(compared).markdown_section(3);
        out += &details("The figures against the baseline", &shown);
    }
    let summaries: Vec<Summary> = build.runs.iter().map(|run| run.summary.clone()).collect();
    let spread = repeats(&build.scenario, &summaries, None);
    let mut shown = repeats::page(&spread).markdown_section(3);
    let mut findings: Vec<Finding> = Vec::new();
    for finding in summaries.iter().flat_map(|summary| &summary.findings) {
        if !findings.iter().any(|known| known.id == finding.id) {
            findings.push(finding.clone());
        }
    }
    if !findings.is_empty() {
        let mut page = Document::new("Findings", "Findings");
        page.push(Block::Findings(findings));
        shown += "\n";
        shown += &page.markdown_section(3);
    }
    out += &details("The figures and findings of these runs", &shown);
    out
}

fn against(build: &Build) -> String {
    match &build.baseline {
        Baseline::NotRequested => "No baseline was requested.".to_owned(),
        Baseline::None(_) => {
            "There is no baseline yet, so nothing was compared. The first run passes.".to_owned()
        }
        Baseline::NotComparable { .. } => {
            "NOTHING WAS COMPARED: the baseline is not comparable.".to_owned()
        }
        Baseline::Compared(compared) => {
            let runs = |at: usize| compared.sides.get(at).map_or(0, |side| side.sources.len());
            format!("Compared with the baseline: {} runs against {}.", runs(1), runs(0))
        }
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passes => "passes",
        Outcome::Notes => "note",
        Outcome::Warns => "doubt",
        Outcome::Fails => "FAILS",
    }
}

/// Markdown that a reader opens.
fn details(summary: &str, inner: &str) -> String {
    format!("\n<details>\n<summary>{summary}</summary>\n\n{inner}\n</details>\n")
}
