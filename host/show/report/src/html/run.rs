//! One run on a page: its subject, its verdict, its figures, its failures, how it was made.

use minijinja::value::Value;
use serde::Serialize;

use super::figures::{self, Metrics, Tile};
use super::pair::{Pair, pair, pairs};
use super::parts::{self, Part};
use super::plan;
use crate::chart::{Tone, swatch};
use crate::charts::Shown;
use crate::plain;
use model::number::{count, fixed, significant};
use result::finding::Verdict as Worth;
use result::summary::Summary;
use runs::Reported;

#[derive(Serialize)]
pub(super) struct Run {
    label: String,
    folder: String,
    /// The class of its series' colour, and a sample of it.
    class: String,
    swatch: Value,
    facts: Vec<Pair>,
    notes: Vec<String>,
    launch: Option<String>,
    verdict: Verdict,
    findings: Vec<Finding>,
    thresholds: Vec<Threshold>,
    tiles: Vec<Tile>,
    metrics: Metrics,
    parts: Vec<Part>,
    failures: Vec<Failure>,
    worst: Vec<Worst>,
    plan: Vec<Pair>,
    environment: Vec<Pair>,
    client: Vec<Pair>,
    plugins: Vec<Plugin>,
    command: Option<String>,
    whole_plan: String,
}

#[derive(Serialize)]
struct Verdict {
    name: &'static str,
    title: &'static str,
    words: String,
}

#[derive(Serialize)]
struct Finding {
    id: &'static str,
    severity: &'static str,
    seen: String,
    why: String,
    advice: String,
}

#[derive(Serialize)]
struct Threshold {
    threshold: String,
    seen: String,
    held: bool,
}

#[derive(Serialize)]
struct Failure {
    class: &'static str,
    count: String,
    first: String,
    reasons: String,
    messages: Vec<String>,
}

/// A bad answer.
#[derive(Serialize)]
struct Worst {
    score: String,
    value: String,
    sample: String,
    prompt: String,
    answer: String,
    reference: String,
}

/// The worst answers of each score.
fn worst(summary: &Summary) -> Vec<Worst> {
    let scores = summary.scores.iter().flat_map(|(name, score)| {
        let examples = score.examples.iter();
        examples.map(move |example| Worst {
            score: plain(name),
            value: fixed(example.score, 4),
            sample: format!("{}, request {}", plain(&example.id), example.index),
            prompt: example
                .prompt_end
                .as_deref()
                .map_or_else(String::new, |end| format!("…{}", plain(end))),
            answer: plain(&example.answer),
            reference: example.reference.as_deref().map(plain).unwrap_or_default(),
        })
    });
    scores.collect()
}

#[derive(Serialize)]
struct Plugin {
    kind: &'static str,
    name: String,
    version: String,
    digest: String,
}

/// The title of a page of these runs: engine and model if they are known, else the plan's name.
pub(super) fn title(runs: &[Shown]) -> String {
    let of = |shown: &Shown| {
        let Reported { plan, .. } = &shown.reported;
        let engine = plan.about.engine.as_ref().map(|engine| {
            let version = plan.about.engine_version.as_ref();
            version.map_or(engine.clone(), |version| format!("{engine} {version}"))
        });
        match (engine, plan.target.model()) {
            (Some(engine), Some(model)) => format!("{model} on {engine}"),
            (Some(engine), None) => engine,
            (None, Some(model)) => format!("{model}: {}", plan.name),
            (None, None) => plan.name.clone(),
        }
    };
    if let [one] = runs {
        return plain(&of(one));
    }
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    fn model(run: &Shown) -> Option<&str> {
        run.reported.plan.target.model()
    }
    let shared = model(&runs[0]).filter(|first| runs.iter().all(|run| model(run) == Some(first)));
    let model = shared.map(|model| format!("{model}: "));
    let (last, first) = labels.split_last().unwrap_or((&"", &[]));
    plain(&format!(
        "{}{} and {last}",
        model.unwrap_or_default(),
        first.join(", ")
    ))
}

pub(super) fn run(number: usize, shown: &Shown) -> Run {
    let Reported {
        folder,
        plan: of,
        environment,
        summary,
        ..
    } = &shown.reported;
    let tone = Tone::Series(number);
    let findings = summary.findings.iter().map(|finding| Finding {
        id: finding.id.name(),
        severity: finding.severity.name(),
        seen: sentence(&finding.seen),
        why: finding.why.clone(),
        advice: finding.advice.clone(),
    });
    let failures = summary.requests.failures.iter().map(|(class, failures)| {
        let statuses = failures.statuses.iter();
        let statuses = statuses.map(|(status, times)| format!("HTTP {status} {}", count(*times)));
        let reasons = failures.reasons.iter();
        let reasons = reasons.map(|(reason, times)| format!("{} {}", reason.name(), count(*times)));
        let reasons = statuses.chain(reasons);
        Failure {
            class: class.name(),
            count: count(failures.count),
            first: count(failures.first),
            reasons: reasons.collect::<Vec<_>>().join(", "),
            messages: failures
                .messages
                .iter()
                .map(|message| match message.count {
                    times @ 2.. => {
                        format!("{} ({} like this)", plain(&message.text), count(times))
                    }
                    _ => plain(&message.text),
                })
                .collect(),
        }
    });
    let plugins = of.plugins().into_iter().map(|plugin| Plugin {
        kind: plugin.kind.name(),
        name: plugin.name,
        version: plugin.version,
        digest: plugin.digest,
    });
    let thresholds = summary.thresholds.iter().map(|checked| Threshold {
        threshold: checked.threshold.clone(),
        seen: checked.outcome(),
        held: checked.held,
    });
    let command = environment
        .as_ref()
        .map(|environment| &environment.command_line);
    Run {
        label: shown.label.clone(),
        folder: folder.clone(),
        class: tone.class(),
        swatch: Value::from_safe_string(swatch(tone, 1.0, 6.0)),
        facts: facts(&shown.reported),
        notes: notes(&shown.reported),
        launch: of.about.launch_command.clone(),
        verdict: verdict(&shown.reported),
        findings: findings.collect(),
        thresholds: thresholds.collect(),
        tiles: figures::tiles(summary),
        metrics: figures::metrics(summary),
        parts: parts::parts(summary),
        failures: failures.collect(),
        worst: worst(summary),
        plan: plan::settings(of),
        environment: plan::environment(&shown.reported),
        client: plan::client(summary),
        plugins: plugins.collect(),
        command: command
            .filter(|words| !words.is_empty())
            .map(|words| plan::command_line(words)),
        whole_plan: plan::whole(of),
    }
}

/// The main facts of the run.
fn facts(reported: &Reported) -> Vec<Pair> {
    let Reported {
        plan,
        status,
        summary,
        ..
    } = reported;
    let about = &plan.about;
    let engine = about.engine.as_ref().map(|engine| {
        let version = about.engine_version.as_ref();
        version.map_or(engine.clone(), |version| format!("{engine} {version}"))
    });
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
        ("Engine", engine),
        ("Hardware", about.hardware.clone()),
        ("Load", Some(plan::load(plan))),
        (
            "Answered",
            Some(format!(
                "{} of {}",
                count(requests.successful),
                count(requests.total)
            )),
        ),
        (
            "Duration",
            summary
                .throughput
                .duration_s
                .map(|s| format!("{} s", significant(s, 4))),
        ),
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
        notes.push(format!("The run ended early: {}.", plain(error)));
    }
    if status.interrupted {
        notes.push("The run was interrupted before it completed its plan.".to_owned());
    }
    notes
}

fn verdict(reported: &Reported) -> Verdict {
    let findings = reported.summary.findings.len();
    let worth = reported.summary.verdict;
    let (title, words) = match (worth, findings) {
        (Worth::Valid, 0) => (
            "Valid: these figures can be relied on",
            "No check found a reason to doubt the measurement.",
        ),
        (Worth::Valid, _) => (
            "Valid: these figures can be relied on",
            "No check found a reason to doubt the measurement; keep the notes below in mind when you read it.",
        ),
        (Worth::Suspect, _) => (
            "Suspect: some figures may not be what they seem",
            "Read the findings before you rely on these figures.",
        ),
        (Worth::Invalid, _) => (
            "Invalid: do not rely on these figures",
            "The run did not measure what it was meant to measure. The findings explain why, and what to do.",
        ),
    };
    Verdict {
        name: worth.name(),
        title,
        words: words.to_owned(),
    }
}

/// Writes words with a capital at their beginning.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
