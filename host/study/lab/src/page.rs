//! A lab's page: the conclusion first, then its evidence, and how to reproduce it.
//!
//! It is made only from a [`LabReport`], as a [`Document`], which `report` writes as Markdown and
//! as one HTML file. Figures that the lab did not measure have no line.

mod curves;
mod doubts;
mod experiments;
mod figures;
mod gains;
mod words;

use report::document::{Cell, Document, Table, Text};
use report::workload::{self, Workload};

use self::words::{FEWEST, figure_of, gain_cell, spread};
use crate::findings::{LabReport, StudyReport, TrialReport, settings_text};
use crate::stat::OUTSIDE;
use crate::strategy::Kind;
use model::duration::roughly;
use model::number::fixed;
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
            figures::overview(&mut page, report);
        }
    }
    setup(&mut page, report);
    figures::figures(&mut page, report);
    for (number, study) in report.studies.iter().enumerate() {
        curves::curves(&mut page, report, study, number);
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
    if let Some(text) = doubts::suspect(study) {
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
        let mark = doubts::mark(study, study.conclusion.trial.as_ref(), &row.scenario);
        let figure = Cell::from(format!("{figure}{mark}"));
        table.row([row.scenario.as_str().into(), figure, gain_cell(gain)]);
    }
    page.table(table);
    let baseline = study.trials.first().filter(|own| Some(&own.command) != command);
    if let Some(baseline) = baseline {
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
    lines.push(format!(
        "It took {} for {} runs and {} starts of engines{failed}{cost}.",
        roughly(spent.seconds),
        spent.runs,
        spent.starts
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
            let figures = [median, least, most].map(|figure| fixed(figure, 2));
            table.row(
                [format!("{}{}", trial.label, of_model(report, study)), many.to_string()]
                    .into_iter()
                    .chain(figures)
                    .chain([token]),
            );
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
        page.paragraph(
            Text::strong(failed.label.as_str())
                .then(format!(": {}.", failed.why.trim_end_matches('.'))),
        );
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
