//! A page of runs as engine projects publish them, in Markdown. It has doubts first, a table of
//! contents, a summary, and a comparison of the runs of each model. A section for each engine and
//! model has the server's launch command, the runner's command and the text block. The last part
//! describes the measurement.
//!
//! Runs are grouped by engine, and within it by model, in the order in which they first occur.

#[cfg(test)]
mod tests;

use crate::document::{Block, Cell, Document, Heading, Span, Table, Text, pair, pairs};
use crate::label;
use crate::page::figures::{HEADLINE, LABELS};
use crate::workload::Workload;
use model::shell;
use result::finding::{Severity, Verdict};
use result::metric;
use result::summary::Summary;
use runs::Reported;
use runs::environment::Environment;
use scenario::plan::{Amount, Plan};

/// The most files of a run's dataset that are shown: a folder may have thousands.
const MOST_FILES: usize = 20;

/// Shown for a figure that was not measured.
const ABSENT: &str = "–";

pub struct PublishedRun {
    /// The facts that the page has about it.
    pub reported: Reported,
    /// Its block of text, in whatever style.
    pub block: String,
}

/// The page of these runs, in their order.
pub fn page(runs: &[PublishedRun]) -> Document {
    let reported: Vec<&Reported> = runs.iter().map(|run| &run.reported).collect();
    let engines = groups(reported.iter().map(|run| engine(run)));
    let title = match &engines[..] {
        [(one, _)] => one.as_str(),
        _ => "Benchmark results",
    };
    let mut page = Document::new("Benchmark results", title);
    for (place, run) in reported.iter().enumerate() {
        doubt(&mut page, place, run);
    }
    page.push(Block::Contents);
    summary(&mut page, &reported);
    comparison(&mut page, &reported);
    for (name, places) in &engines {
        page.heading(2, name.as_str());
        for (name, own) in groups(places.iter().map(|place| model(&reported[*place].plan))) {
            page.heading(3, name);
            section(&mut page, runs, own.into_iter().map(|at| places[at]).collect());
        }
    }
    provenance(&mut page, &reported);
    page.section("definitions", None, "Definitions");
    page.paragraph(Text::explained(
        "*n* is the number of output tokens of a request. Times start when the request is sent.",
    ));
    let defined = LABELS.into_iter().zip(HEADLINE);
    let defined = defined.filter_map(|(label, name)| Some((label, metric::by_name(name)?)));
    page.push(Block::Definitions(defined.collect()));
    page
}

/// The name of the section of a run.
fn anchor(place: usize) -> String {
    format!("run-{place}")
}

/// Adds the reasons to doubt a run, if its verdict has any.
fn doubt(page: &mut Document, place: usize, run: &Reported) {
    let Summary { verdict, findings, .. } = &run.summary;
    if *verdict == Verdict::Valid {
        return;
    }
    let name = format!("{}, {}, {}", engine(run), model(&run.plan), run.plan.name);
    let badge = Span::Badge(verdict.name().to_owned(), *verdict);
    let title = Text::from(badge).then(": ").with(Span::Link(name, anchor(place)));
    let lines = findings.iter().filter(|found| found.severity != Severity::Note).map(|found| {
        Text::from(Span::Code(found.id.name().to_owned())).then(format!(": {}", found.seen))
    });
    page.push(Block::Verdict(*verdict, title, lines.collect()));
}

fn summary(page: &mut Document, runs: &[&Reported]) {
    page.heading(2, "Summary");
    let mut table = Table::new([
        "Engine",
        "Model",
        "Scenario",
        "Workload",
        "Verdict",
        "Requests (req/s)",
        "Output (tok/s)",
        "Mean TTFT (ms)",
        "P99 TTFT (ms)",
        "Mean TPOT (ms)",
        "Mean ITL (ms)",
    ]);
    table.numeric = Some(5..11);
    for (place, run) in runs.iter().enumerate() {
        let Summary { throughput, .. } = &run.summary;
        let of = |name| run.summary.metric(name);
        let figures = [
            throughput.requests_per_s,
            throughput.output_tokens_per_s,
            of(metric::TTFT).map(|ttft| ttft.mean),
            of(metric::TTFT).and_then(|ttft| ttft.percentile(99.0)),
            of(metric::TPOT).map(|tpot| tpot.mean),
            of(metric::ITL).map(|itl| itl.mean),
        ];
        let first = [
            engine(run).into(),
            model(&run.plan).into(),
            Cell::from(Span::Link(run.plan.name.clone(), anchor(place))),
            // As it was: a scenario's name may say otherwise.
            Workload::in_short(run).into(),
            verdict(&run.summary),
        ];
        table.row(first.into_iter().chain(figures.map(|value| figure(value).into())));
    }
    page.table(table);
    let words = format!("{ABSENT}: not measured. The metrics are explained under ");
    let link = Span::Link("Definitions".to_owned(), "definitions".to_owned());
    page.paragraph(Text::plain(words).with(link).then("."));
}

/// Adds a comparison of the runs that share model and scenario, where there are several.
fn comparison(page: &mut Document, runs: &[&Reported]) {
    let mut alike = groups(runs.iter().map(|run| (model(&run.plan), run.plan.name.clone())));
    alike.retain(|(_, places)| places.len() > 1);
    if alike.is_empty() {
        return;
    }
    page.heading(2, "Comparison");
    page.say("Each run against the first run of its model and scenario. `runner compare` tells whether a difference is more than noise.");
    for ((model, scenario), places) in alike {
        page.paragraph(Text::strong(format!("{model}, {scenario}")));
        let mut table = Table::new([
            "Run",
            "Verdict",
            "Total TPS (tok/s)",
            "Change",
            "Mean TPOT (ms)",
            "Change",
            "Differs in",
        ]);
        table.numeric = Some(2..6);
        let first = runs[places[0]];
        for &place in &places {
            let run = runs[place];
            let tokens = |run: &Reported| run.summary.throughput.total_tokens_per_s;
            let tpot = |run: &Reported| run.summary.metric(metric::TPOT).map(|tpot| tpot.mean);
            let changed = |of: fn(&Reported) -> Option<f64>| {
                if place == places[0] { "baseline".to_owned() } else { change(of(first), of(run)) }
            };
            let name = format!("{}, {}", engine(run), run.folder);
            table.row([
                Cell::from(Span::Link(name, anchor(place))),
                verdict(&run.summary),
                figure(tokens(run)).into(),
                changed(tokens).into(),
                figure(tpot(run)).into(),
                changed(tpot).into(),
                unlike(&first.plan, &run.plan).join(", ").into(),
            ]);
        }
        page.table(table.without_empty_columns());
    }
}

/// Adds the runs of a model. The launch of the server stands once if all runs agree.
fn section(page: &mut Document, runs: &[PublishedRun], places: Vec<usize>) {
    let launch = |place: usize| runs[place].reported.plan.about.launch_command.as_deref();
    let is_shared = places.iter().all(|place| launch(*place) == launch(places[0]));
    if let Some(command) = launch(places[0]).filter(|_| is_shared) {
        page.code("shell", command);
    }
    for place in places {
        let PublishedRun { reported, block } = &runs[place];
        let Reported { folder, plan, environment, status, summary } = reported;
        page.push(Block::Heading(Heading {
            level: 4,
            text: plan.name.as_str().into(),
            name: Some(anchor(place)),
            short: None,
        }));
        let began = status.as_ref().map(|status| status.started.clone());
        page.push(Block::Facts(pairs([
            ("Verdict", Some(summary.verdict.name().to_owned())),
            ("Arrival", Some(arrival(summary))),
            ("Began", began),
            ("Run", Some(folder.clone())),
        ])));
        let notes = plan.about.notes.iter().map(|(name, value)| pair(name, value));
        page.pairs(notes.collect());
        if let Some(command) = launch(place).filter(|_| !is_shared) {
            page.code("shell", command);
        }
        if let Some(environment) = environment {
            let mut words = environment.command_line.clone();
            if let Some(program) = words.first_mut() {
                *program = program.rsplit('/').next().unwrap_or_default().to_owned();
            }
            page.code("shell", shell::line(&words));
        }
        page.code("text", block.as_str());
        if !summary.findings.is_empty() {
            page.say("Findings:");
            page.push(Block::Findings(summary.findings.clone()));
        }
    }
}

/// Adds the origin of the runs: versions, plugins, data and machines, shared ones once.
fn provenance(page: &mut Document, runs: &[&Reported]) {
    page.heading(2, "How it was made");
    let mut table = Table::new(["Run", "Runner", "Dataset", "Requests", "Seed", "Tokenizer"]);
    table.numeric = Some(3..5);
    let mut plugins = Table::new(["Plugin", "Kind", "Version", "SHA-256"]);
    let mut files = Table::new(["Input file", "Bytes", "SHA-256"]);
    let mut machines = Vec::new();
    for Reported { folder, plan, environment, .. } in runs {
        let requests = match plan.load.amount {
            Amount::Requests(requests) => requests.to_string(),
            Amount::Sessions(sessions) => format!("{sessions} sessions"),
            Amount::Duration(span) => format!("for {} s", span.as_secs_f64()),
        };
        table.row([
            folder.clone(),
            plan.runner.clone(),
            plan.dataset.plugin.name.clone(),
            requests,
            plan.load.seed.to_string(),
            plan.tokenizer.summary().label(),
        ]);
        for used in plan.plugins() {
            let digest = digest(&used.digest);
            let kind = used.kind.name();
            plugins.row_once([used.name.into(), kind.into(), used.version.into(), digest]);
        }
        for file in plan.dataset.files.values().take(MOST_FILES) {
            let path = file.path.display().to_string();
            files.row_once([path.into(), file.bytes.to_string().into(), digest(&file.digest)]);
        }
        let further = plan.dataset.files.len().saturating_sub(MOST_FILES);
        if further > 0 {
            let more = format!("and {further} more, in plan.json");
            files.row_once([more, String::new(), String::new()]);
        }
        if let Some(environment) = environment {
            let machine = Text::plain(machine(environment));
            if !machines.contains(&machine) {
                machines.push(machine);
            }
        }
    }
    [table, plugins, files].into_iter().for_each(|table| page.table(table));
    page.list(machines);
}

/// The machine of the client: `Client: linux x86_64, Processor, 16 cores, 128 GiB, kernel 6.1.0`.
fn machine(environment: &Environment) -> String {
    let gibibytes = |bytes: u64| format!("{:.0} GiB", bytes as f64 / (1u64 << 30) as f64);
    let kernel = environment.kernel.as_ref();
    let parts = [
        Some(environment.platform.clone()),
        environment.cpu.clone(),
        environment.cores.map(|cores| format!("{cores} cores")),
        environment.memory_bytes.map(gibibytes),
        kernel.map(|kernel| format!("kernel {kernel}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("Client: {}", parts.join(", "))
}

/// A digest, as far as people compare it.
fn digest(digest: &str) -> Cell {
    let short: String = digest.chars().take(16).collect();
    Span::Code(short).into()
}

/// The differences between two plans that affect the figures.
fn unlike(first: &Plan, plan: &Plan) -> Vec<&'static str> {
    let dataset = |plan: &Plan| {
        let dataset = &plan.dataset;
        let files: Vec<String> = dataset.files.values().map(|f| f.digest.clone()).collect();
        (dataset.plugin.digest.clone(), dataset.plugin.config.clone(), files)
    };
    let differences = [
        ("dataset", dataset(first) != dataset(plan)),
        ("load", first.load != plan.load),
        ("request options", first.request != plan.request),
    ];
    differences.into_iter().filter(|(_, differ)| *differ).map(|(what, _)| what).collect()
}

/// The places of items that are equal, in the order in which they first occur.
fn groups<K: PartialEq>(items: impl Iterator<Item = K>) -> Vec<(K, Vec<usize>)> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for (place, item) in items.enumerate() {
        match groups.iter_mut().find(|(known, _)| *known == item) {
            Some((_, places)) => places.push(place),
            None => groups.push((item, vec![place])),
        }
    }
    groups
}

/// The system under test as the author describes it, else the backend: `vllm 0.10.1, 8x H800`.
fn engine(run: &Reported) -> String {
    let mut about = run.plan.about.clone();
    let backend = &run.plan.backend.name;
    about.engine.get_or_insert_with(|| backend.clone());
    let known = [label::engine(&about), about.hardware];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Describes the arrival of requests: `poisson, 30 req/s, at most 8 in flight`.
fn arrival(summary: &Summary) -> String {
    let run = &summary.run;
    let mut words = run.arrival.clone();
    if let Some(cap) = run.max_in_flight
        && !words.contains(&cap.to_string())
    {
        words = format!("{words}, at most {cap} in flight");
    }
    words
}

fn verdict(summary: &Summary) -> Cell {
    Span::Badge(summary.verdict.name().to_owned(), summary.verdict).into()
}

fn figure(value: Option<f64>) -> String {
    value.map_or(ABSENT.to_owned(), |value| format!("{value:.2}"))
}

fn change(from: Option<f64>, to: Option<f64>) -> String {
    let share = from.zip(to).filter(|(from, _)| *from > 0.0);
    share.map_or(ABSENT.to_owned(), |(from, to)| format!("{:+.2} %", (to / from - 1.0) * 100.0))
}

fn model(plan: &Plan) -> String {
    plan.target.model().unwrap_or("model unknown").to_owned()
}
