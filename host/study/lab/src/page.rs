//! A lab's page: the conclusion first, then its evidence, and how to reproduce it.
//!
//! It is made only from a [`LabReport`], as a [`Document`], which `report` writes as Markdown and
//! as one HTML file. Figures that the lab did not measure have no line.

mod experiments;
mod gains;

use std::collections::BTreeMap;

use report::document::{Cell, Document, Table, Text, Tone};
use report::workload::{self, Workload};

use crate::expand::TrialId;
use crate::findings::{
    Front, LabReport, LoadCurves, RunReport, StudyReport, TrialReport, gain_text, settings_text,
};
use crate::judge::Judgement;
use crate::stat::{Gain, OUTSIDE, Spread, places};
use crate::strategy::Kind;
use model::duration::roughly;
use model::number::{self, fixed};
use report::charts::curve::{Line, Plane, Plot, Spot, Style, chart, front};
use report::label::label;
use report::search::{amount, unit};
use report::sweep::{knee_rule, spot};
use result::finding::Verdict;
use search::sweep::Mean;
use statistics::median;

pub fn page(report: &LabReport) -> Document {
    let mut page = Document::new("Lab", report.name.as_str());
    if let Some(about) = &report.about {
        page.paragraph(Text::plain(about.as_str()));
    }
    if let Some(why) = &report.incomplete {
        page.paragraph(Text::strong(format!("This lab is not complete: {why}.")));
    }
    if report.spent.runs == 0 && report.spent.starts_that_failed > 0 {
        nothing_started(&mut page, report);
    }
    match &report.objective {
        Some(_) => {
            for (number, study) in report.studies.iter().enumerate() {
                conclusion(&mut page, report, study, number);
            }
        }
        None => {
            page.heading(2, "Conclusion");
            page.say("This lab measures and chooses nothing, because its file has no objective.");
            overview(&mut page, report);
        }
    }
    setup(&mut page, report);
    figures(&mut page, report);
    for (number, study) in report.studies.iter().enumerate() {
        curves(&mut page, report, study, number);
        if report.objective.is_some() {
            experiments::experiments(&mut page, report, study, number);
        }
        failures(&mut page, report, study);
        experiments::runs(&mut page, report, study);
    }
    reproduce(&mut page, report);
    page
}

/// Names the engines that never answered, with the last line of their logs, at the top.
fn nothing_started(page: &mut Document, report: &LabReport) {
    page.paragraph(Text::strong("No engine answered, so nothing was measured."));
    let failed = report.studies.iter().flat_map(|study| &study.failed);
    let lines = failed.map(|failed| {
        let last = failed.log.iter().rev().find(|line| !line.trim().is_empty());
        let why = last.map_or(failed.why.as_str(), |line| line.trim());
        Text::strong(failed.label.as_str()).then(format!(": {why}"))
    });
    page.list(lines.collect());
}

/// The end of a heading: the model's name, where there are several.
fn of_model(report: &LabReport, study: &StudyReport) -> String {
    if report.studies.len() == 1 { String::new() } else { format!(": {}", study.model) }
}

fn conclusion(page: &mut Document, report: &LabReport, study: &StudyReport, number: usize) {
    page.heading(2, format!("Conclusion{}", of_model(report, study)));
    page.say(&study.conclusion.words);
    page.chart(gains::chart(report, study, number));
    for doubt in report.doubts.iter().filter(|_| number == 0) {
        page.paragraph(Text::strong("Doubtful objective").then(format!(": {doubt}")));
    }
    if let Some(text) = suspect(study) {
        page.say(&text);
    }
    if report.repeats < FEWEST as u32 {
        page.say(&format!(
            "With {} of each trial only large differences can be shown, and figures have no ±: set `repeats` to 5 or more.",
            repeats(report)
        ));
    }
    // Without a better trial there is nothing to recommend.
    let command = study.conclusion.command.as_ref();
    let is_shown = matches!(study.conclusion.kind, Kind::Better | Kind::BestOfRest);
    if let Some(command) = command.filter(|_| is_shown) {
        page.say(match study.conclusion.kind {
            Kind::Better => "The recommended command:",
            _ => "Its command:",
        });
        page.code("bash", command.as_str());
    } else if study.conclusion.kind == Kind::Unfinished {
        page.say("Run the same command again to continue.");
    }
    let mut table =
        Table::new(["Scenario".to_owned(), figure_of(report), "Against the baseline".to_owned()]);
    for row in &study.conclusion.scenarios {
        let Some(gain) = &row.gain else { continue };
        let figure = row.figure.as_ref().map(spread).unwrap_or_default();
        let mark = mark(study, study.conclusion.trial.as_ref(), &row.scenario);
        let figure = Cell::from(format!("{figure}{mark}"));
        table.row([row.scenario.as_str().into(), figure, gain_cell(gain)]);
    }
    page.table(table);
    if let Some(baseline) = study.trials.first().filter(|own| Some(&own.command) != command) {
        page.say("The baseline's command:");
        page.code("bash", baseline.command.as_str());
    }
    page.table(machines(study.trials.iter()));
    if let (Some(block), Some(scenario)) = (&study.conclusion.block, report.scenarios.first()) {
        page.say(&format!("Its last run on {}:", scenario.name));
        page.code("text", block.as_str());
    }
}

fn repeats(report: &LabReport) -> String {
    if report.repeats == 1 { "1 repeat".to_owned() } else { format!("{} repeats", report.repeats) }
}

fn setup(page: &mut Document, report: &LabReport) {
    page.heading(2, "Setup and method");
    let mut lines = Vec::new();
    if let Some(objective) = &report.objective {
        lines.push(format!("Objective: `{objective}`."));
    }
    if !report.constraints.is_empty() {
        lines.push(format!(
            "Constraints, on average over a trial's rounds: `{}`. A trial that is shown to break a constraint is ruled out.",
            report.constraints.join("`; `")
        ));
    }
    let repeats = repeats(report);
    lines.push(format!(
        "Strategy: {}, {repeats} of each trial on each scenario, each with a fresh engine, in interleaved rounds.",
        report.strategy
    ));
    lines.push(format!(
        "± and intervals are of 95 %; intervals of differences hold for all trials of a table together. A difference is called \
         shown where its interval does not hold zero: the probability of showing any difference without a real one is at most \
         {:.0} % (Dunnett's test in a model of trials and rounds, with the error of all trials).",
        100.0 * OUTSIDE
    ));
    let spent = &report.spent;
    let cost = spent.cost.map(|cost| format!(", at a cost of {cost:.2}")).unwrap_or_default();
    let failed = match spent.starts_that_failed {
        0 => String::new(),
        many => format!(", {many} without an answer"),
    };
    let (time, runs, many) = (roughly(spent.seconds), spent.runs, spent.starts);
    lines.push(format!(
        "It took {time} for {runs} runs and {many} starts of engines{failed}{cost}."
    ));
    page.list(lines.iter().map(|line| Text::marked(line)).collect());
    if report.objective.is_none() {
        page.table(machines(report.studies.iter().flat_map(|study| &study.trials)));
    }
    let starts = starts(report);
    if !starts.rows.is_empty() {
        page.say("From the start of an engine's process until it answered, with the time in which it loads and compiles:");
        page.table(starts);
    }
    let workloads: Vec<(&str, &Workload)> = (report.scenarios.iter())
        .filter_map(|scenario| Some((scenario.name.as_str(), scenario.workload.as_ref()?)))
        .collect();
    if workloads.is_empty() {
        let names: Vec<&str> =
            report.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        page.say(&format!("Scenarios: {}.", names.join(", ")));
    } else {
        workload::say(page, "Workload", &workloads)
    }
}

/// The engines and machines of trials, each once.
fn machines<'t>(trials: impl Iterator<Item = &'t TrialReport>) -> Table {
    let mut table = Table::new(["Engine", "Version", "Model", "Devices", "Driver", "Host"]);
    for trial in trials {
        let Some(facts) = &trial.facts else { continue };
        let text = |text: &Option<String>| Cell::from(text.clone().unwrap_or_default());
        table.row_once([
            trial.engine.as_str().into(),
            text(&facts.version),
            text(&facts.model),
            facts.devices.join(", ").into(),
            text(&facts.driver),
            text(&facts.host),
        ]);
    }
    table.without_empty_columns()
}

/// The time that engines took until they answered, by trial.
fn starts(report: &LabReport) -> Table {
    let mut table = Table::new([
        "Trial",
        "Starts",
        "Ready after, median (s)",
        "Least (s)",
        "Most (s)",
        "First token after, median (s)",
    ]);
    let trials = (report.studies.iter())
        .flat_map(|study| study.trials.iter().map(move |trial| (study, trial)));
    for (study, trial) in trials {
        let own = report.starts.iter().filter(|start| start.trial == trial.id);
        let tokens = own.clone().filter_map(|start| start.first_token_after_s);
        let token =
            median(tokens.collect()).map_or_else(|| "–".to_owned(), |token| fixed(token, 2));
        let seconds: Vec<f64> = own.map(|start| start.ready_after_s).collect();
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = seconds.iter().copied().fold(0.0, f64::max);
        let many = seconds.len();
        if let Some(median) = median(seconds) {
            let name = format!("{}{}", trial.label, of_model(report, study));
            let [median, least, most] = [median, least, most].map(|figure| fixed(figure, 2));
            table.row([name, many.to_string(), median, least, most, token]);
        }
    }
    table
}

/// Adds the trials that failed, with the reasons.
fn failures(page: &mut Document, report: &LabReport, study: &StudyReport) {
    if study.failed.is_empty() {
        return;
    }
    page.heading(2, format!("Failures{}", of_model(report, study)));
    for failed in &study.failed {
        let why = format!(": {}.", failed.why.trim_end_matches('.'));
        page.paragraph(Text::strong(failed.label.as_str()).then(why));
        if !failed.log.is_empty() {
            page.code("text", failed.log.join("\n"));
        }
    }
}

fn reproduce(page: &mut Document, report: &LabReport) {
    page.heading(2, "Reproduction");
    page.say("Run `runner lab` with the lab file in an empty folder. `lab.json` has the file. The commands, by trial:");
    let mut table = Table::new(["Trial", "Called", "Options"]);
    for trial in report.studies.iter().flat_map(|study| &study.trials) {
        table.row([trial.id.to_string(), trial.label.clone(), settings_text(trial)]);
    }
    page.table(table.without_empty_columns());
    let mut table = Table::new(["Scenario", "Digest"]);
    for scenario in &report.scenarios {
        let short: String = scenario.content.chars().take(12).collect();
        table.row([scenario.name.clone(), short]);
    }
    page.table(table);
    if let Some(program) = &report.program {
        page.paragraph(Text::plain(format!("Measured with runner {program}.")));
    }
}

/// The mark of a mean with a suspect run.
const MARK: &str = " †";

fn is_suspect(run: &RunReport) -> bool {
    run.verdict == Some(Verdict::Suspect)
}

/// The mark behind a trial's mean on a scenario; empty if no run of it is suspect.
fn mark(study: &StudyReport, trial: Option<&TrialId>, scenario: &str) -> &'static str {
    let trial = study.trials.iter().find(|own| Some(&own.id) == trial);
    trial.map_or("", |trial| mark_of(trial, scenario))
}

fn mark_of(trial: &TrialReport, scenario: &str) -> &'static str {
    if trial.runs.iter().any(|run| run.scenario == scenario && is_suspect(run)) { MARK } else { "" }
}

/// The number of suspect runs with their findings, the most frequent first.
fn suspect(study: &StudyReport) -> Option<String> {
    let runs = || study.trials.iter().flat_map(|trial| &trial.runs);
    let suspect: Vec<&RunReport> = runs().filter(|run| is_suspect(run)).collect();
    let measured = runs().filter(|run| run.verdict.is_some()).count();
    if suspect.is_empty() {
        return None;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for run in &suspect {
        for (name, _) in run.findings.iter().filter_map(|text| experiments::named(text)) {
            *counts.entry(name).or_default() += 1;
        }
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let names: Vec<String> =
        counts.iter().take(4).map(|(name, count)| format!("`{name}` ({count})")).collect();
    let names = match names.join(", ").as_str() {
        "" => String::new(),
        names => format!("; their findings: {names}"),
    };
    let suspect = suspect.len();
    Some(format!(
        "{suspect} of {measured} runs are suspect{names}. A mean with a suspect run is marked †."
    ))
}

/// A number with four digits, or all before the point: `14,154`, `9.875`.
fn number(value: f64) -> String {
    number::fixed(value, places(value))
}

/// Fewer repeats have no useful interval: of two it is some nine times as wide as their distance.
const FEWEST: usize = 3;

/// A mean with half of its interval, to the same place; of too few repeats the mean alone.
fn spread(value: &Spread) -> String {
    let interval = value.interval.filter(|_| value.repeats >= FEWEST);
    with_margin(value.mean, interval.map(|[low, high]| (high - low) / 2.0))
}

/// A mean with its margin, to the same place: `1,443 ± 9`.
fn with_margin(mean: f64, margin: Option<f64>) -> String {
    match margin {
        Some(margin) => format!("{} ± {}", number(mean), number::fixed(margin, places(mean))),
        None => number(mean),
    }
}

/// A figure as text; shares are in percent.
fn figure(name: &str, value: &Spread) -> String {
    if name.ends_with("-share") { number::percent(value.mean) } else { spread(value) }
}

fn figure_of(report: &LabReport) -> String {
    let objective = report.objective.as_deref().unwrap_or_default();
    let figure = objective.split_once(' ').map(|(_, figure)| figure);
    figure.map_or_else(|| "Figure".to_owned(), label)
}

/// A gain, as good or bad news where its interval does not hold zero.
fn gain_cell(gain: &Gain) -> Cell {
    Cell {
        text: gain_text(gain).into(),
        tone: match gain.interval {
            Some([low, _]) if low > 0.0 => Tone::Good,
            Some([_, high]) if high < 0.0 => Tone::Bad,
            _ => Tone::Plain,
        },
    }
}

fn judgement(standing: Judgement) -> Cell {
    Cell {
        text: standing.label().into(),
        tone: match standing {
            Judgement::Better => Tone::Good,
            Judgement::Worse | Judgement::RuledOut => Tone::Bad,
            Judgement::Reference | Judgement::NoDifference | Judgement::NotJudged => Tone::Plain,
        },
    }
}

const COLUMNS: [&str; 11] = [
    "requests.success-share",
    "throughput.requests-per-s",
    "throughput.output-tokens-per-s",
    "throughput.total-tokens-per-s",
    "ttft.mean",
    "ttft.p99",
    "tpot.mean",
    "tpot.p99",
    "e2e.mean",
    "devices.energy-per-million-output-tokens",
    "cost.per-million-output-tokens",
];

/// The figure that is shown at a glance.
const FIRST: &str = "throughput.output-tokens-per-s";

/// A trial's name, with its model where there are several.
fn name(study: &StudyReport, trial: &TrialReport) -> String {
    match study.model.as_str() {
        "" => trial.label.clone(),
        model => format!("{model}, {}", trial.label),
    }
}

/// A row for each model's trial, a column for each scenario, if there are several of either.
fn overview(page: &mut Document, report: &LabReport) {
    let first = ["Trial".to_owned()].into_iter();
    let names = report.scenarios.iter().map(|scenario| scenario.name.clone());
    let mut table = Table::new(first.chain(names));
    for study in &report.studies {
        for trial in &study.trials {
            let cell = |scenario: &str| {
                let figure = spread(trial.figures.get(scenario)?.get(FIRST)?);
                Some(format!("{figure}{}", mark_of(trial, scenario)))
            };
            let cells: Vec<Option<String>> =
                report.scenarios.iter().map(|scenario| cell(&scenario.name)).collect();
            if cells.iter().any(Option::is_some) {
                let cells = cells.into_iter().map(Option::unwrap_or_default);
                table.row([name(study, trial)].into_iter().chain(cells));
            }
        }
    }
    if table.rows.len() > 1 || report.scenarios.len() > 1 {
        page.say(&format!("{} of each model on each scenario:", label(FIRST)));
        page.table(table);
    }
}

/// The figures of every trial on every scenario that any of them has, the models below one another.
fn figures(page: &mut Document, report: &LabReport) {
    page.heading(2, "Figures");
    for scenario in &report.scenarios {
        let measured: Vec<_> = (report.studies.iter())
            .flat_map(|study| study.trials.iter().map(move |trial| (study, trial)))
            .filter_map(|(study, trial)| Some((study, trial, trial.figures.get(&scenario.name)?)))
            .collect();
        if measured.is_empty() {
            continue;
        }
        let has = |name: &&str| measured.iter().any(|(.., figures)| figures.contains_key(*name));
        let columns: Vec<&str> = COLUMNS.into_iter().filter(has).collect();
        let head = columns.iter().map(|name| label(name));
        let mut table = Table::new(["Trial".to_owned()].into_iter().chain(head));
        for (study, trial, figures) in measured {
            let cells = columns.iter().map(|name| {
                let value = figures.get(*name);
                Cell::from(value.map(|value| figure(name, value)).unwrap_or_default())
            });
            let mark = mark_of(trial, &scenario.name);
            let name = Cell::from(format!("{}{mark}", name(study, trial)));
            table.row([name].into_iter().chain(cells));
        }
        page.heading(3, scenario.name.as_str());
        page.table(table);
    }
}

/// The most trials that a chart draws; a table has all of them.
const MOST_LINES: usize = 12;

/// The throughput-latency curves of a study, if it has scenarios that differ only in their load.
fn curves(page: &mut Document, report: &LabReport, study: &StudyReport, study_at: usize) {
    if study.curves.is_empty() {
        return;
    }
    page.heading(2, format!("Throughput and latency{}", of_model(report, study)));
    page.say(
        "Scenarios that differ only in their load are points of one curve; further right and further down is better. \
         Beyond the knee, more load brings latency and little throughput. A point is on the Pareto front if no point of \
         any trial has as much throughput and as little latency.",
    );
    for (at, curves) in study.curves.iter().enumerate() {
        page.heading(3, curves.name.as_str());
        page.chart(chart(&plot(curves, format!("curve-{}-{}", study_at + 1, at + 1))));
        page.table(table(curves));
        knees(page, curves);
    }
}

fn plot(curves: &LoadCurves, name: String) -> Plot {
    let figures = [curves.figures[0].as_str(), &curves.figures[1]];
    let several = curves.lines.len() > 1;
    let drawn = curves.lines.iter().take(MOST_LINES);
    let point = |place: &_| spot(figures, curves.load, place);
    let lines = drawn.clone().map(|line| Line {
        label: line.label.clone(),
        shape: Style::Joined,
        spots: line.curve.places.iter().filter_map(point).collect(),
    });
    let places = curves.lines.iter().flat_map(|line| &line.curve.places);
    let on_front = places.filter(|place| place.on_front == Some(true));
    let rules = drawn.clone().filter_map(|line| {
        let name = if several { format!("knee of {}", line.label) } else { "knee".to_owned() };
        Some(knee_rule(&name, curves.load, line.curve.knee.as_ref()?))
    });
    let left_out = match curves.lines.len().saturating_sub(MOST_LINES) {
        0 => String::new(),
        more => format!(" {more} more trials are in the table."),
    };
    Plot {
        name,
        title: format!("Throughput and latency: {}", curves.name),
        note: format!("One point for each load, joined from the lowest to the highest.{left_out}"),
        x: label(figures[0]),
        head: "Load".to_owned(),
        panels: vec![Plane {
            y: label(figures[1]),
            is_share: false,
            lines: lines.chain(front(on_front.filter_map(point))).collect(),
            rules: rules.collect(),
        }],
        bands: Vec::new(),
        is_named: true,
    }
}

fn mean(value: Option<Mean>) -> String {
    value.map(|value| with_margin(value.mean, value.margin)).unwrap_or_default()
}

fn table(curves: &LoadCurves) -> Table {
    let mut table = Table::new([
        "Trial".to_owned(),
        format!("Load ({})", unit(curves.load)),
        label(&curves.figures[0]),
        label(&curves.figures[1]),
        "On the front".to_owned(),
    ]);
    for line in &curves.lines {
        for place in &line.curve.places {
            table.row([
                line.label.clone(),
                place.at.to_string(),
                mean(place.throughput),
                mean(place.latency),
                if place.on_front == Some(true) { "yes" } else { "" }.to_owned(),
            ]);
        }
    }
    table
}

/// The knee of each line that has one.
fn knees(page: &mut Document, curves: &LoadCurves) {
    let mut table = Table::new(["Trial", "Knee", "Throughput there"]);
    for line in &curves.lines {
        if let Some(knee) = &line.curve.knee {
            table.row([line.label.clone(), amount(curves.load, knee.at), number(knee.throughput)]);
        }
    }
    if table.rows.is_empty() {
        page.say(
            "No knee is shown: a knee needs five loads or more, and throughput that stops following them.",
        )
    } else {
        page.table(table)
    }
}

/// The Pareto front of each scenario that has several trials.
fn fronts(page: &mut Document, report: &LabReport, study: &StudyReport, study_at: usize) {
    let several = |front: &&Front| front.points.len() > 1;
    let drawn: Vec<&Front> = study.pareto.iter().filter(several).collect();
    if drawn.is_empty() {
        return;
    }
    page.heading(2, format!("Pareto front{}", of_model(report, study)));
    page.say(
        "A trial is on the front if no other trial is at least as good in both figures and better in one, by their means.",
    );
    for (at, front) in drawn.into_iter().enumerate() {
        page.heading(3, front.scenario.as_str());
        page.chart(chart(&plane(front, format!("front-{}-{}", study_at + 1, at + 1))));
        let mut table = Table::new([
            "Trial".to_owned(),
            label(&front.figures[0]),
            label(&front.figures[1]),
            "On the front".to_owned(),
        ]);
        for point in &front.points {
            table.row([
                point.label.clone(),
                spread(&point.at[0]),
                spread(&point.at[1]),
                if point.is_on_front { "yes" } else { "" }.to_owned(),
            ]);
        }
        page.table(table);
    }
}

fn plane(pareto: &Front, name: String) -> Plot {
    let [x, y] = pareto.figures.each_ref().map(|figure| label(figure));
    let spots = |wanted: bool| -> Vec<Spot> {
        let points = pareto.points.iter().filter(|point| point.is_on_front == wanted);
        let spot = |point: &crate::findings::Point| Spot {
            row: point.label.clone(),
            x: point.at[0].mean,
            y: point.at[1].mean,
            text: format!("{x}: {}; {y}: {}", spread(&point.at[0]), spread(&point.at[1])),
        };
        points.map(spot).collect()
    };
    let line = |label: &str, spots| Line { label: label.to_owned(), shape: Style::Apart, spots };
    let lines = [line("On the front", spots(true)), line("Beaten by another trial", spots(false))]
        .into_iter()
        .filter(|line| !line.spots.is_empty())
        .chain(front(spots(true)))
        .collect();
    Plot {
        name,
        title: format!("Pareto front: {}", pareto.scenario),
        note: "One point for each trial, over all rounds.".to_owned(),
        head: "Trial".to_owned(),
        panels: vec![Plane { y, is_share: false, lines, rules: Vec::new() }],
        x,
        bands: Vec::new(),
        is_named: true,
    }
}
