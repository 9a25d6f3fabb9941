//! One run on a page: its subject, its verdict, its figures, its failures, how it was made.

use super::{figures, parts, plan};
use crate::charts::Shown;
use crate::document::{Block, Cell, Document, Pair, Span, Table, Text, pair, pairs};
use crate::label::engine;
use model::number::{count, fixed, significant};
use result::finding::Verdict;
use result::summary::Summary;
use runs::Reported;

/// The title of a page of these runs: engine and model if they are known, else the plan's name.
pub(super) fn title(runs: &[Shown]) -> String {
    let of = |shown: &Shown| {
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
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    fn model(run: &Shown) -> Option<&str> {
        run.reported.plan.target.model()
    }
    let shared = model(&runs[0]).filter(|first| runs.iter().all(|run| model(run) == Some(first)));
    let model = shared.map(|model| format!("{model}: "));
    let (last, first) = labels.split_last().unwrap_or((&"", &[]));
    format!("{}{} and {last}", model.unwrap_or_default(), first.join(", "))
}

/// Adds the subject of each run; several stand beside each other.
pub(super) fn heads(page: &mut Document, runs: &[Shown]) {
    if let [one] = runs {
        page.blocks.extend(head(&one.reported));
        return;
    }
    page.remark(format!("{} runs; the first one is the baseline.", runs.len()));
    let cards = runs.iter().enumerate().map(|(place, run)| {
        let verdict = run.reported.summary.verdict;
        let name = Text::from(Span::Mark(place)).then(format!("{} ", run.label));
        let name = name.with(Span::Badge(verdict.name().to_owned(), verdict));
        let head = head(&run.reported);
        [Block::heading(2, name)].into_iter().chain(head).collect()
    });
    page.push(Block::Cards(cards.collect()));
}

fn head(reported: &Reported) -> Vec<Block> {
    let mut blocks = vec![Block::Facts(facts(reported))];
    let notes = notes(reported).into_iter();
    blocks.extend(notes.map(|note| Block::Remark(Text::plain(note))));
    if let Some(text) = reported.plan.about.launch_command.clone() {
        let language = "shell";
        blocks.push(Block::Details {
            summary: "How the server was started".to_owned(),
            is_printed: true,
            blocks: vec![Block::Code { language, text }],
        });
    }
    blocks
}

/// The main facts of the run.
fn facts(reported: &Reported) -> Vec<Pair> {
    let Reported { plan, status, summary, .. } = reported;
    let about = &plan.about;
    let started = status.as_ref().map(|status| {
        let at = status.started.split('.').next().unwrap_or(&status.started);
        match at.trim_end_matches('Z').split_once('T') {
            Some((day, time)) => format!("{day}, {time} UTC"),
            None => status.started.clone(),
        }
    });
    let requests = &summary.requests;
    let mut facts = pairs([
        ("Scenario", Some(plan.name.clone())),
        ("Model", plan.target.model().map(str::to_owned)),
        ("Engine", engine(about)),
        ("Hardware", about.hardware.clone()),
        ("Load", Some(plan::load(plan))),
        ("Answered", Some(format!("{} of {}", count(requests.successful), count(requests.total)))),
        ("Duration", summary.throughput.duration_s.map(|s| format!("{} s", significant(s, 4)))),
        ("Started", started),
    ]);
    facts.extend(about.notes.iter().map(|(name, value)| pair(name, value)));
    facts
}

/// Writes notes on the end of the run, if it did not end as planned.
fn notes(reported: &Reported) -> Vec<String> {
    let Some(status) = &reported.status else {
        return vec![
            "The run did not finish: it was killed, or it is still running. This page shows what it had recorded."
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

/// Adds the verdict on a run, one of several, with its findings and thresholds.
pub(super) fn verdict(page: &mut Document, shown: &Shown, of: usize) {
    let Summary { verdict, findings, thresholds, .. } = &shown.reported.summary;
    let (title, words) = match (verdict, findings.len()) {
        (Verdict::Valid, 0) => (
            "Valid: these figures can be relied on",
            "No check found a reason to doubt the measurement.",
        ),
        (Verdict::Valid, _) => (
            "Valid: these figures can be relied on",
            "No check found a reason to doubt the measurement; keep the notes below in mind when you read it.",
        ),
        (Verdict::Suspect, _) => (
            "Suspect: some figures may not be what they seem",
            "Read the findings before you rely on these figures.",
        ),
        (Verdict::Invalid, _) => (
            "Invalid: do not rely on these figures",
            "The run did not measure what it was meant to measure. The findings explain why, and what to do.",
        ),
    };
    let title = match of {
        1 => title.to_owned(),
        _ => format!("{}: {}", shown.label, verdict.name()),
    };
    page.push(Block::Verdict(*verdict, title.into(), vec![words.into()]));
    if !findings.is_empty() {
        page.push(Block::Findings(findings.clone()));
    }
    if thresholds.is_empty() {
        return;
    }
    page.heading(if of > 1 { 4 } else { 3 }, "Thresholds");
    let mut table = Table::new(["Threshold", "Measured", "Result"]);
    for checked in thresholds {
        let (worth, words) = match checked.held {
            true => (Verdict::Valid, "✓ holds"),
            false => (Verdict::Invalid, "✕ does not hold"),
        };
        table.row([
            Cell::from(Span::Code(checked.threshold.clone())),
            checked.outcome().into(),
            Span::Badge(words.to_owned(), worth).into(),
        ]);
    }
    page.table(table);
}

/// Adds every figure, and those that belong together.
pub(super) fn figures(page: &mut Document, shown: &Shown, level: u8) {
    let summary = &shown.reported.summary;
    let (table, note) = figures::metrics(summary);
    page.table(table);
    if !note.is_empty() {
        page.remark(note);
    }
    let parts = parts::parts(summary).into_iter().map(|part| {
        let words = part.words.map(|words| Block::Paragraph(words.into()));
        let pairs = (!part.pairs.is_empty()).then_some(Block::Pairs(part.pairs));
        let blocks = [Some(Block::heading(level, part.title)), words, pairs];
        blocks.into_iter().flatten().collect()
    });
    page.push(Block::Cards(parts.collect()));
}

/// Adds the failures of each class, with what servers said.
pub(super) fn failures(page: &mut Document, shown: &Shown, _: u8) {
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
pub(super) fn how(page: &mut Document, shown: &Shown, level: u8) {
    let Reported { plan, environment, summary, .. } = &shown.reported;
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
        page.code("shell", plan::command_line(words));
    }
    page.push(Block::Details {
        summary: format!("The whole plan of {}", shown.label),
        is_printed: false,
        blocks: vec![Block::Code { language: "json", text: plan::whole(plan) }],
    });
}
