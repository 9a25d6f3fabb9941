//! The content of a page, in the order of its template: runs are grouped by engine, and within it
//! by model, in the order in which they first occur.

use minijinja::value::Value;
use serde::Serialize;

use super::Shown;
use super::escape::{fence, shell};
use super::made::Made;
use super::slug::Slugs;
use crate::workload::Workload;
use result::finding::{Finding, Severity, Verdict};
use result::metric;
use result::summary::Summary;
use runs::Reported;
use scenario::plan::Plan;

/// Shown for a figure that was not measured.
const ABSENT: &str = "–";

/// The metrics that a page speaks of, by its name for them.
const DEFINED: [(&str, &str); 4] = [
    (metric::TTFT, "TTFT"),
    (metric::TPOT, "TPOT"),
    (metric::ITL, "ITL"),
    (metric::E2E, "E2E latency"),
];

/// The page.
#[derive(Serialize)]
pub(super) struct Page {
    title: String,
    doubted: Vec<Doubted>,
    rows: Vec<Row>,
    compared: Vec<Compared>,
    engines: Vec<Engine>,
    made: Made,
    defined: Vec<Defined>,
    anchors: Anchors,
}

/// Anchors of the headings that every page has.
#[derive(Serialize)]
struct Anchors {
    summary: String,
    comparison: String,
    made: String,
    defined: String,
}

/// A run that is not valid.
#[derive(Serialize)]
struct Doubted {
    alert: &'static str,
    verdict: &'static str,
    run: String,
    anchor: Value,
    findings: Vec<Found>,
}

/// A finding.
#[derive(Serialize)]
struct Found {
    severity: &'static str,
    id: Value,
    seen: String,
    why: String,
    advice: String,
}

/// A row of the summary.
#[derive(Serialize)]
struct Row {
    engine: String,
    model: String,
    scenario: String,
    /// Lengths, number and arrival of the requests, as they were: a scenario's name may say
    /// otherwise.
    workload: String,
    anchor: Value,
    verdict: Value,
    figures: Vec<String>,
}

/// Runs of one model and scenario, side by side.
#[derive(Serialize)]
struct Compared {
    model: String,
    scenario: String,
    rows: Vec<Beside>,
    /// True if the plan of any run differs from the first run's.
    unlike: bool,
}

/// A run compared with the first of its model and scenario.
#[derive(Serialize)]
struct Beside {
    run: String,
    anchor: Value,
    tokens: String,
    tokens_change: String,
    tpot: String,
    tpot_change: String,
    verdict: Value,
    /// The differences of its plan from the first run's.
    unlike: String,
}

/// The runs of an engine.
#[derive(Serialize)]
struct Engine {
    name: String,
    anchor: Value,
    models: Vec<Model>,
}

/// Its runs of a model.
#[derive(Serialize)]
struct Model {
    name: String,
    anchor: Value,
    /// The launch of the server, if all runs agree.
    launch: Option<Value>,
    runs: Vec<Section>,
}

/// A run.
#[derive(Serialize)]
struct Section {
    scenario: String,
    folder: String,
    facts: Vec<(&'static str, String)>,
    notes: Vec<(String, String)>,
    /// The launch of the server, if runs do not agree.
    launch: Option<Value>,
    asked: Option<Value>,
    block: Value,
    findings: Vec<Found>,
}

/// A metric.
#[derive(Serialize)]
struct Defined {
    label: &'static str,
    definition: &'static str,
    equals: &'static str,
}

impl Page {
    pub(super) fn of(runs: &[Shown]) -> Page {
        let reported: Vec<&Reported> = runs.iter().map(|run| &run.reported).collect();
        let engines = distinct(reported.iter().map(|run| engine(run)));
        let title = match &engines[..] {
            [one] => one.clone(),
            _ => "Benchmark results".to_owned(),
        };
        let groups = groups(&reported);
        let compared = compared_groups(&reported);

        // In the order of the template: anchors are numbered as headings stand.
        let mut slugs = Slugs::default();
        slugs.next(&title);
        slugs.next("Table of Contents");
        let summary = slugs.next("Summary");
        let comparison = match compared.is_empty() {
            true => String::new(),
            false => slugs.next("Comparison"),
        };
        let mut anchors = vec![String::new(); runs.len()];
        let engines: Vec<Engine> = groups
            .iter()
            .map(|(name, models)| Engine {
                name: name.clone(),
                anchor: safe(slugs.next(name)),
                models: models
                    .iter()
                    .map(|(model, places)| {
                        let anchor = safe(slugs.next(model));
                        for &place in places {
                            anchors[place] = slugs.next(&reported[place].plan.name);
                        }
                        Model::of(model, anchor, places, runs)
                    })
                    .collect(),
            })
            .collect();
        let made = slugs.next("How it was made");
        let defined = slugs.next("Definitions");

        let row = |(run, anchor): (&&Reported, &String)| Row {
            engine: engine(run),
            model: model(&run.plan),
            scenario: run.plan.name.clone(),
            workload: Workload::in_short(run),
            anchor: safe(anchor.clone()),
            verdict: verdict(&run.summary),
            figures: headline(&run.summary),
        };
        let doubted = reported.iter().zip(&anchors).filter_map(|(run, anchor)| {
            let alert = match run.summary.verdict {
                Verdict::Valid => return None,
                Verdict::Suspect => "WARNING",
                Verdict::Invalid => "CAUTION",
            };
            let findings = run.summary.findings.iter();
            let severe = findings.filter(|finding| finding.severity != Severity::Note);
            Some(Doubted {
                alert,
                verdict: run.summary.verdict.name(),
                run: format!("{}, {}, {}", engine(run), model(&run.plan), run.plan.name),
                anchor: safe(anchor.clone()),
                findings: severe.map(Found::of).collect(),
            })
        });
        Page {
            title,
            doubted: doubted.collect(),
            rows: reported.iter().zip(&anchors).map(row).collect(),
            compared: compared
                .iter()
                .map(|places| Compared::of(&reported, &anchors, places))
                .collect(),
            engines,
            made: Made::of(&reported),
            defined: DEFINED
                .iter()
                .filter_map(|(name, label)| {
                    let metric = metric::by_name(name)?;
                    Some(Defined {
                        label,
                        definition: metric.definition,
                        equals: metric.equals,
                    })
                })
                .collect(),
            anchors: Anchors {
                summary,
                comparison,
                made,
                defined,
            },
        }
    }
}

impl Model {
    fn of(name: &str, anchor: Value, places: &[usize], runs: &[Shown]) -> Self {
        let shown: Vec<&Shown> = places.iter().map(|place| &runs[*place]).collect();
        let launch = |run: &Shown| run.reported.plan.about.launch_command.clone();
        let launches = distinct(shown.iter().map(|run| launch(run)));
        let shared = launches.len() == 1;
        let fenced = |command: Option<String>| command.map(|command| fence("shell", &command));
        Model {
            name: name.to_owned(),
            anchor,
            launch: fenced(launches.into_iter().next().flatten()).filter(|_| shared),
            runs: shown
                .iter()
                .map(|run| Section::of(run, fenced(launch(run)).filter(|_| !shared)))
                .collect(),
        }
    }
}

impl Section {
    fn of(run: &Shown, launch: Option<Value>) -> Self {
        let Reported {
            folder,
            plan,
            environment,
            status,
            summary,
        } = &run.reported;
        let mut facts = vec![("Verdict", summary.verdict.name().to_owned())];
        facts.push(("Arrival", arrival(summary)));
        if let Some(status) = status {
            facts.push(("Began", status.started.clone()));
        }
        let asked = environment.as_ref().map(|environment| {
            let mut words = environment.command_line.clone();
            if let Some(program) = words.first_mut() {
                *program = program.rsplit('/').next().unwrap_or_default().to_owned();
            }
            fence("shell", &shell(&words))
        });
        Section {
            scenario: plan.name.clone(),
            folder: folder.clone(),
            facts,
            notes: plan.about.notes.clone().into_iter().collect(),
            launch,
            asked,
            block: fence("text", &run.block),
            findings: summary.findings.iter().map(Found::of).collect(),
        }
    }
}

impl Found {
    fn of(finding: &Finding) -> Self {
        Found {
            severity: finding.severity.name(),
            id: safe(format!("`{}`", finding.id.name())),
            seen: finding.seen.clone(),
            why: finding.why.clone(),
            advice: finding.advice.clone(),
        }
    }
}

impl Compared {
    fn of(runs: &[&Reported], anchors: &[String], places: &[usize]) -> Self {
        let first = runs[places[0]];
        let rows: Vec<Beside> = places
            .iter()
            .map(|&place| {
                let run = runs[place];
                let tokens = |run: &Reported| run.summary.throughput.total_tokens_per_s;
                let tpot = |run: &Reported| run.summary.metric(metric::TPOT).map(|tpot| tpot.mean);
                let changed = |of: fn(&Reported) -> Option<f64>| match place == places[0] {
                    true => "baseline".to_owned(),
                    false => change(of(first), of(run)),
                };
                Beside {
                    run: format!("{}, {}", engine(run), run.folder),
                    anchor: safe(anchors[place].clone()),
                    tokens: figure(tokens(run)),
                    tokens_change: changed(tokens),
                    tpot: figure(tpot(run)),
                    tpot_change: changed(tpot),
                    verdict: verdict(&run.summary),
                    unlike: unlike(&first.plan, &run.plan).join(", "),
                }
            })
            .collect();
        Compared {
            model: model(&first.plan),
            scenario: first.plan.name.clone(),
            unlike: rows.iter().any(|row| !row.unlike.is_empty()),
            rows,
        }
    }
}

/// The differences between two plans that affect the figures.
fn unlike(first: &Plan, plan: &Plan) -> Vec<&'static str> {
    let asked = |plan: &Plan| {
        let dataset = &plan.dataset;
        let files: Vec<String> = dataset.files.values().map(|f| f.digest.clone()).collect();
        (
            dataset.plugin.digest.clone(),
            dataset.plugin.config.clone(),
            files,
        )
    };
    let differences = [
        ("dataset", asked(first) != asked(plan)),
        ("load", first.load != plan.load),
        ("request options", first.request != plan.request),
    ];
    let differs = differences.into_iter().filter(|(_, differ)| *differ);
    differs.map(|(what, _)| what).collect()
}

/// Places of the runs of each engine's models.
type Models = Vec<(String, Vec<usize>)>;

fn groups(runs: &[&Reported]) -> Vec<(String, Models)> {
    let mut groups: Vec<(String, Models)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let models = entry(&mut groups, engine(run));
        entry(models, model(&run.plan)).push(place);
    }
    groups
}

/// Indexes of the runs that share model and scenario, if there are several.
fn compared_groups(runs: &[&Reported]) -> Vec<Vec<usize>> {
    let mut groups: Vec<((String, String), Vec<usize>)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        entry(&mut groups, (model(&run.plan), run.plan.name.clone())).push(place);
    }
    let several = groups.into_iter().map(|(_, places)| places);
    several.filter(|places| places.len() > 1).collect()
}

/// The value of a key, inserted if missing.
fn entry<K: PartialEq, V: Default>(entries: &mut Vec<(K, V)>, key: K) -> &mut V {
    let place = entries.iter().position(|(known, _)| *known == key);
    let place = place.unwrap_or_else(|| {
        entries.push((key, V::default()));
        entries.len() - 1
    });
    &mut entries[place].1
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

/// The system under test as the author describes it, else the backend: `vllm 0.10.1, 8x H800`.
fn engine(run: &Reported) -> String {
    let about = &run.plan.about;
    let mut name = about
        .engine
        .clone()
        .unwrap_or_else(|| run.plan.backend.name.clone());
    if let Some(version) = &about.engine_version {
        name = format!("{name} {version}");
    }
    if let Some(hardware) = &about.hardware {
        name = format!("{name}, {hardware}");
    }
    name
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

fn verdict(summary: &Summary) -> Value {
    let name = summary.verdict.name();
    safe(match summary.verdict {
        Verdict::Valid => name.to_owned(),
        Verdict::Suspect | Verdict::Invalid => format!("**{name}**"),
    })
}

/// The figures of a row of the summary.
fn headline(summary: &Summary) -> Vec<String> {
    let of = |name| summary.metric(name);
    let figures = [
        summary.throughput.requests_per_s,
        summary.throughput.output_tokens_per_s,
        of(metric::TTFT).map(|ttft| ttft.mean),
        of(metric::TTFT).and_then(|ttft| ttft.percentile(99.0)),
        of(metric::TPOT).map(|tpot| tpot.mean),
        of(metric::ITL).map(|itl| itl.mean),
    ];
    figures.map(figure).into()
}

fn figure(value: Option<f64>) -> String {
    value.map_or(ABSENT.to_owned(), |value| format!("{value:.2}"))
}

fn change(from: Option<f64>, to: Option<f64>) -> String {
    let share = from.zip(to).filter(|(from, _)| *from > 0.0);
    share.map_or(ABSENT.to_owned(), |(from, to)| {
        format!("{:+.2} %", (to / from - 1.0) * 100.0)
    })
}

/// Our own text, which needs no escaping.
fn safe(text: String) -> Value {
    Value::from_safe_string(text)
}

fn model(plan: &Plan) -> String {
    plan.target.model().unwrap_or("model unknown").to_owned()
}
