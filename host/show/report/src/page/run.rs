//! One run on a page: its subject, its verdict, its figures, its failures, how it was made.

use super::{figures, plan};
use crate::charts::RunView;
use crate::document::{Block, Cell, Document, Pair, Span, Table, Text, pair, pairs};
use crate::label::engine;
use model::number::{count, fixed, plural, significant};
use model::shell;
use result::finding::{Finding, Severity, Verdict};
use result::metric;
use result::summary::Summary;
use result::threshold::Checked;
use runs::Reported;

/// The title of a page of these runs: engine and model if they are known, else the plan's name.
pub(super) fn title(runs: &[RunView]) -> String {
    let of = |shown: &RunView| {
        let Reported { plan, .. } = &shown.reported;
        let engine = engine(&plan.about);
        match (engine, plan.target.model()) {
            (Some(engine), Some(model)) => format!("{model} on {engine}"),
            (Some(engine), None) => engine,
            (None, Some(model)) => format!("{model}: {}", plan.name),
            (None, None) => plan.name.clone(),
        }
    };
    if let [one] = runs {
        return of(one);
    }
    fn model(run: &RunView) -> Option<&str> {
        run.reported.plan.target.model()
    }
    let shared = model(&runs[0]).filter(|first| runs.iter().all(|run| model(run) == Some(first)));
    let model = shared.map(|model| format!("{model}: ")).unwrap_or_default();
    match runs {
        [one, other] => format!("{model}{} and {}", one.label, other.label),
        _ => format!("{model}{} runs", runs.len()),
    }
}

/// Adds the verdict on a run in a line, and the subject of the run.
pub(super) fn answer(page: &mut Document, shown: &RunView) {
    let Summary { verdict, findings, .. } = &shown.reported.summary;
    let worst: Vec<_> = findings.iter().filter(|of| of.severity != Severity::Note).collect();
    let more = match (worst.len(), findings.len() - worst.len()) {
        (0, 0) => "no check found a reason to doubt these figures".to_owned(),
        (0, notes) => plural(notes as u64, "note"),
        (1, 0) => worst[0].seen.clone(),
        (1, notes) => format!("{}, and {}", worst[0].seen, plural(notes as u64, "note")),
        (doubts, notes) => {
            let more = plural((doubts + notes - 1) as u64, "more finding");
            format!("{}, and {more}", worst[0].seen)
        }
    };
    let title = Text::strong(match verdict {
        Verdict::Valid => "Valid: ",
        Verdict::Suspect => "Suspect: ",
        Verdict::Invalid => "Invalid, do not rely on these figures: ",
    });
    let title = if findings.is_empty() {
        title.then(more)
    } else {
        title.with(Span::Link(more, "verdict".to_owned()))
    };
    page.push(Block::Verdict(*verdict, title, Vec::new()));
    let facts = facts(&shown.reported).into_iter();
    let facts: Vec<_> = facts.map(|fact| format!("{} {}", fact.name, fact.value)).collect();
    page.remark(facts.join(" · "));
    for note in notes(&shown.reported) {
        page.remark(note);
    }
}

/// Adds a table of runs, each with its verdict and its first figures.
pub(super) fn table(page: &mut Document, runs: &[RunView]) {
    let measured = ["Load", "Answered", "Output tok/s", "TTFT, median", "TPOT, median", "Started"];
    let mut table = Table::new(["Run", "Verdict"].into_iter().chain(measured));
    for (place, run) in runs.iter().enumerate() {
        let Reported { plan, summary, .. } = &run.reported;
        let (requests, verdict) = (&summary.requests, summary.verdict);
        let median = |name| {
            let of = summary.metric(name)?;
            Some(format!("{} ms", significant(of.median, 4)))
        };
        let cell = |text: Option<String>| Cell::from(text.unwrap_or_default());
        table.row([
            Cell::from(Text::from(Span::Mark(place)).then(run.label.clone())),
            Span::Badge(verdict.name().to_owned(), verdict).into(),
            plan::load(plan).into(),
            format!("{} of {}", count(requests.successful), count(requests.total)).into(),
            cell(summary.throughput.output_tokens_per_s.map(|rate| significant(rate, 4))),
            cell(median(metric::TTFT)),
            cell(median(metric::TPOT)),
            cell(started(&run.reported)),
        ]);
    }
    page.table(table.without_empty_columns());
    page.remark("The first run is the baseline.");
    for run in runs {
        for note in notes(&run.reported) {
            page.remark(format!("{}: {note}", run.label));
        }
    }
}

fn facts(reported: &Reported) -> Vec<Pair> {
    let Reported { plan, summary, .. } = reported;
    let about = &plan.about;
    let requests = &summary.requests;
    let mut facts = pairs([
        ("Scenario", Some(plan.name.clone())),
        ("Model", plan.target.model().map(str::to_owned)),
        ("Engine", engine(about)),
        ("Hardware", about.hardware.clone()),
        ("Load", Some(plan::load(plan))),
        ("Answered", Some(format!("{} of {}", count(requests.successful), count(requests.total)))),
        ("Duration", summary.throughput.duration_s.map(|s| format!("{} s", significant(s, 4)))),
        ("Started", started(reported)),
    ]);
    facts.extend(about.notes.iter().map(|(name, value)| pair(name, value)));
    facts
}

/// Writes notes on the end of the run, if it did not end as planned.
fn notes(reported: &Reported) -> Vec<String> {
    let Some(status) = &reported.status else {
        return vec![
            "The run did not finish: it was killed, or it is still running. This page shows its records so far."
                .to_owned(),
        ];
    };
    let mut notes = Vec::new();
    if let Some(error) = &status.error {
        notes.push(format!("The run ended early: {}.", error));
    }
    if status.interrupted {
        notes.push("The run was interrupted before it completed its plan.".to_owned());
    }
    notes
}

fn started(reported: &Reported) -> Option<String> {
    let started = &reported.status.as_ref()?.started;
    let at = started.split('.').next().unwrap_or(started);
    Some(match at.trim_end_matches('Z').split_once('T') {
        Some((day, time)) => format!("{day}, {time} UTC"),
        None => started.clone(),
    })
}

/// Adds the findings on each run, with the notes folded, and its thresholds.
pub(super) fn findings(page: &mut Document, runs: &[RunView]) {
    let has = |run: &&RunView| {
        let Summary { findings, thresholds, .. } = &run.reported.summary;
        !findings.is_empty() || !thresholds.is_empty()
    };
    let doubted: Vec<&RunView> = runs.iter().filter(has).collect();
    if doubted.is_empty() {
        return;
    }
    page.section("verdict", None, "Verdict");
    for run in doubted {
        let Summary { findings, thresholds, verdict, .. } = &run.reported.summary;
        if runs.len() > 1 {
            let name = Text::plain(format!("{} ", run.label));
            page.heading(3, name.with(Span::Badge(verdict.name().to_owned(), *verdict)));
        }
        let (notes, doubts): (Vec<Finding>, Vec<_>) =
            findings.iter().cloned().partition(|finding| finding.severity == Severity::Note);
        if !doubts.is_empty() {
            page.push(Block::Findings(doubts));
        }
        if !notes.is_empty() {
            let names: Vec<&str> = notes.iter().map(|note| note.id.name()).collect();
            page.push(Block::Details {
                summary: format!("{}: {}", plural(notes.len() as u64, "note"), names.join(", ")),
                is_printed: true,
                blocks: vec![Block::Findings(notes)],
            });
        }
        thresholds_of(page, thresholds, if runs.len() > 1 { 4 } else { 3 });
    }
}

fn thresholds_of(page: &mut Document, thresholds: &[Checked], level: u8) {
    if thresholds.is_empty() {
        return;
    }
    page.heading(level, "Thresholds");
    let mut table = Table::new(["Threshold", "Measured", "Result"]);
    for checked in thresholds {
        let (worth, words) = if checked.held {
            (Verdict::Valid, "✓ holds")
        } else {
            (Verdict::Invalid, "✕ does not hold")
        };
        table.row([
            Cell::from(Span::Code(checked.threshold.clone())),
            checked.outcome().into(),
            Span::Badge(words.to_owned(), worth).into(),
        ]);
    }
    page.table(table);
}

pub(super) fn figures(page: &mut Document, shown: &RunView, level: u8) {
    let summary = &shown.reported.summary;
    let (table, note) = figures::metrics(summary);
    page.table(table);
    if !note.is_empty() {
        page.remark(note);
    }
    let sure = figures::sure(summary, |_| true);
    if !sure.rows.is_empty() {
        page.heading(level, "How sure, every figure: the average of many runs (95 %)");
        page.table(sure);
    }
    let parts = super::parts(summary).into_iter().map(|(title, words, pairs)| {
        let words = words.map(|words| Block::Paragraph(words.into()));
        let pairs = (!pairs.is_empty()).then_some(Block::Pairs(pairs));
        let blocks = [Some(Block::heading(level, title)), words, pairs];
        blocks.into_iter().flatten().collect()
    });
    page.push(Block::Cards(parts.collect()));
}

/// Adds the failures of each class, with the servers' messages.
pub(super) fn failures(page: &mut Document, shown: &RunView, _: u8) {
    let failures = &shown.reported.summary.requests.failures;
    if failures.is_empty() {
        page.say("No request failed.");
    }
    let mut table = Table::new(["Class", "Requests", "First", "Reasons", "Messages, verbatim"]);
    for (class, failures) in failures {
        let statuses = failures.statuses.iter();
        let statuses = statuses.map(|(status, times)| format!("HTTP {status} {}", count(*times)));
        let reasons = failures.reasons.iter();
        let reasons = reasons.map(|(reason, times)| format!("{} {}", reason.name(), count(*times)));
        let reasons: Vec<String> = statuses.chain(reasons).collect();
        let messages = failures.messages.iter().map(|message| {
            Span::Code(match message.count {
                times @ 2.. => format!("{} ({} like this)", message.text, count(times)),
                _ => message.text.clone(),
            })
        });
        let mut lines = Vec::new();
        for message in messages {
            if !lines.is_empty() {
                lines.push(Span::Break);
            }
            lines.push(message);
        }
        table.row([
            Cell::from(class.name()),
            count(failures.count).into(),
            count(failures.first).into(),
            reasons.join(", ").into(),
            Text(lines).into(),
        ]);
    }
    page.table(table);
}

/// Adds the worst answers of each score.
pub(super) fn worst(page: &mut Document, summary: &Summary) {
    let mut table =
        Table::new(["Score", "Value", "Sample", "End of the prompt", "Answer", "Reference"]);
    for (name, score) in &summary.scores {
        for example in &score.examples {
            let prompt = example.prompt_end.as_ref();
            table.row([
                name.clone(),
                fixed(example.score, 4),
                format!("{}, request {}", example.id, example.index),
                prompt.map_or_else(String::new, |end| format!("…{end}")),
                example.answer.clone(),
                example.reference.clone().unwrap_or_default(),
            ]);
        }
    }
    page.table(table);
}

/// Adds the conditions of a run: plan, client, plugins, and how to run it again.
pub(super) fn how(page: &mut Document, shown: &RunView, level: u8) {
    let Reported { plan, environment, summary, .. } = &shown.reported;
    if let Some(text) = plan.about.launch_command.clone() {
        page.heading(level, "How the server was started");
        page.code("shell", text);
    }
    let mut client =
        vec![Block::heading(level, "Client"), Block::Pairs(plan::environment(&shown.reported))];
    let performed = plan::client(summary);
    if !performed.is_empty() {
        client.push(Block::heading(level, "How the client performed"));
        client.push(Block::Pairs(performed));
    }
    page.push(Block::Cards(vec![
        vec![Block::heading(level, "Plan"), Block::Pairs(plan::settings(plan))],
        client,
    ]));
    page.heading(level, "Plugins");
    let mut table = Table::new(["Kind", "Name", "Version", "SHA-256"]);
    for plugin in plan.plugins() {
        table.row([
            Cell::from(plugin.kind.name()),
            plugin.name.into(),
            plugin.version.into(),
            Span::Code(plugin.digest).into(),
        ]);
    }
    page.table(table);
    let command = environment.as_ref().map(|own| &own.command_line);
    if let Some(words) = command.filter(|words| !words.is_empty()) {
        page.heading(level, "To run it again");
        page.remark("The command line of this run. Values that may be secret are left out: add them again, or set the environment variables that hold them.");
        page.code("shell", shell::line(words));
    }
    page.push(Block::Details {
        summary: format!("The whole plan of {}", shown.label),
        is_printed: false,
        blocks: vec![Block::Code { language: "json", text: plan::whole(plan) }],
    });
}
