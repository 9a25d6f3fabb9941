//! Every experiment with its judgements, the tables by option and against the baseline, and every
//! run.

use report::document::{Cell, Document, Table, Text, Tone};

use super::{figure_of, gain_cell, judgement, number, of_model, spread};
use crate::findings::{
    LabReport, ScenarioFacts, StudyReport, gain_text, held_text, key_of, to_show_text,
};
use crate::judge::{Judgement, Row, StageReport};
use crate::stat::OUTSIDE;
use result::finding::Verdict;

/// Every experiment, and the tables over all of them.
pub(super) fn experiments(
    page: &mut Document,
    report: &LabReport,
    study: &StudyReport,
    number: usize,
) {
    // With one experiment and one option, the table against the baseline shows the same.
    if study.stages.len() > 1 || study.against_baseline.is_empty() {
        page.heading(2, format!("Experiments{}", of_model(report, study)));
        for stage in &study.stages {
            experiment(page, report, study, stage);
        }
    } else if study.stages.iter().any(|stage| !stage.is_complete) {
        page.say("The experiment is not complete.");
    }
    if study.options.len() > 1 {
        page.heading(2, format!("By option{}", of_model(report, study)));
        for table_of in &study.options {
            page.heading(3, table_of.option.as_str());
            let rows = table_of.values.iter().map(|value| (value.value.as_str(), &value.row));
            page.table(table("Value", report, study, rows));
        }
    }
    if !study.against_baseline.is_empty() {
        page.heading(2, format!("Everything against the baseline{}", of_model(report, study)));
        if study.stages.len() > 1 {
            page.say(
                "Each trial is shown as in its last experiment, against the baseline of the same \
                 experiment: earlier experiments chose it partly by luck.",
            );
        }
        rows(page, report, study, &study.against_baseline);
    }
    super::fronts(page, report, study, number);
    not_shown(page, report, study);
    constraints(page, report, study);
    let drift = study.drift.as_ref();
    if let Some(drift) = drift.filter(|drift| drift.probability <= OUTSIDE) {
        page.heading(2, format!("Drift{}", of_model(report, study)));
        page.say(&format!(
            "All trials together changed by {:+.2} % from round to round, beyond chance (p = {:.4}): the machine \
             changed. Trials are compared within rounds, so the drift affects no difference.",
            drift.percent_per_round, drift.probability
        ));
    }
}

/// Differences that are not shown, with the rounds that would show them.
fn not_shown(page: &mut Document, report: &LabReport, study: &StudyReport) {
    let is_alike = |row: &&Row| row.judgement == Judgement::NoDifference;
    let rows: Vec<&Row> = study.against_baseline.iter().filter(is_alike).collect();
    if rows.is_empty() {
        return;
    }
    page.heading(2, format!("No difference shown{}", of_model(report, study)));
    page.say(
        "Chance can explain these differences from the baseline. That does not mean that there is no difference. \
         The last column has the rounds that would show each difference, if it is as large as measured.",
    );
    let mut table = Table::new(["Trial", "Against the baseline", "Rounds to show it"]);
    for row in rows {
        let mut stages = study.stages.iter().rev();
        let stage = stages.find(|stage| stage.row(&row.trial).is_some());
        table.row([
            row.label.clone(),
            row.gain.as_ref().map(gain_text).unwrap_or_default(),
            to_show_text(row.to_show.as_ref(), stage.map_or("repeats", key_of)).replace('`', ""),
        ]);
    }
    page.table(table);
}

/// Constraints that trials are not shown to meet; broken constraints are among the failures.
fn constraints(page: &mut Document, report: &LabReport, study: &StudyReport) {
    let held = study.against_baseline.iter().filter(|row| row.why.is_none()).flat_map(|row| {
        let not_shown = row.constraints.iter().filter(|held| held.figure.is_some());
        not_shown.map(move |held| (row, held))
    });
    let lines: Vec<Text> = held
        .map(|(row, held)| Text::marked(&format!("`{}`: {}", row.label, held_text(held))))
        .collect();
    if !lines.is_empty() {
        page.heading(2, format!("Constraints not confirmed{}", of_model(report, study)));
        page.list(lines);
    }
}

fn experiment(page: &mut Document, report: &LabReport, study: &StudyReport, stage: &StageReport) {
    let rounds = match stage.rounds {
        [first, last] if first == last => format!("round {first}"),
        [first, last] => format!("rounds {first} to {last}"),
    };
    page.heading(3, format!("{} ({rounds})", stage.title));
    if !stage.is_complete {
        page.say("This experiment is not complete.");
    }
    if let Some((noise, detectable)) = stage.noise.zip(stage.detectable) {
        page.say(&format!(
            "Starts of one trial vary by {:.2} % within a round. A true gain of {detectable:.1} % is shown in nine of ten such experiments.",
            noise.percent
        ));
    }
    rows(page, report, study, &stage.rows);
}

/// Rows with the objective's figure on each scenario, and the gain over all of them.
fn table<'r>(
    first: &str,
    report: &LabReport,
    study: &StudyReport,
    rows: impl Iterator<Item = (&'r str, &'r Row)>,
) -> Table {
    let figure = figure_of(report);
    let (figures, gain) = match report.scenarios.as_slice() {
        [_] => (vec![figure], "Against the reference"),
        many => {
            // The objective above names the figure; its unit is enough here.
            let unit = figure.rfind(" (").map_or("", |at| &figure[at..]);
            let title = |own: &ScenarioFacts| format!("{}{unit}", own.name);
            (many.iter().map(title).collect(), "Against the reference, geometric mean of scenarios")
        }
    };
    let head = [first.to_owned()].into_iter().chain(figures);
    let mut table = Table::new(head.chain([gain.to_owned(), "Judgement".to_owned()]));
    for (name, row) in rows {
        let cell = |own: &ScenarioFacts| {
            let scenario = row.scenarios.iter().find(|scenario| scenario.scenario == own.name);
            let figure = scenario.and_then(|scenario| scenario.figure.as_ref()).map(spread);
            let mark = super::mark(study, Some(&row.trial), &own.name);
            Cell::from(figure.map(|figure| format!("{figure}{mark}")).unwrap_or_default())
        };
        let gain = row.gain.as_ref().map(gain_text).unwrap_or_default();
        let cells = [Cell::from(name)].into_iter().chain(report.scenarios.iter().map(cell));
        table.row(cells.chain([gain.into(), judgement(row.judgement)]));
    }
    table
}

/// The rows of a stage, and below it the gain on each scenario, where there are several.
fn rows(page: &mut Document, report: &LabReport, study: &StudyReport, all: &[Row]) {
    page.table(table("Trial", report, study, all.iter().map(|row| (row.label.as_str(), row))));
    if report.scenarios.len() < 2 {
        return;
    }
    let mut table = Table::new(["Trial", "Scenario", "Against the reference"]);
    for row in all {
        for scenario in &row.scenarios {
            if let Some(gain) = &scenario.gain {
                let name = scenario.scenario.as_str().into();
                table.row([Cell::from(row.label.as_str()), name, gain_cell(gain)]);
            }
        }
    }
    page.table(table);
}

/// Every run, with its folder, verdict and findings.
pub(super) fn runs(page: &mut Document, report: &LabReport, study: &StudyReport) {
    page.heading(2, format!("Runs{}", of_model(report, study)));
    let figure = figure_of(report);
    let stage_of = |round: u32| {
        let within = |stage: &&StageReport| (stage.rounds[0]..=stage.rounds[1]).contains(&round);
        let stage = study.stages.iter().find(within);
        stage.map(|stage| stage.title.clone()).unwrap_or_default()
    };
    let mut found: Vec<(String, String, usize)> = Vec::new();
    for trial in study.trials.iter().filter(|trial| !trial.runs.is_empty()) {
        page.heading(3, trial.label.as_str());
        page.code("bash", trial.command.as_str());
        let mut table = Table::new(["Scenario", "Round", &figure, "Verdict", "Folder", "Findings"]);
        for run in &trial.runs {
            let verdict = Cell {
                text: run.verdict.map_or("failed", Verdict::name).into(),
                tone: match run.verdict {
                    Some(Verdict::Valid | Verdict::Suspect) => Tone::Plain,
                    Some(Verdict::Invalid) | None => Tone::Bad,
                },
            };
            let again = match run.attempt {
                1 => String::new(),
                attempt => format!(", attempt {attempt}"),
            };
            table.row([
                Cell::from(format!("{}{again}", run.scenario)),
                format!("{} ({})", run.round, stage_of(run.round)).into(),
                run.figure.map(number).unwrap_or_default().into(),
                verdict,
                run.folder.as_str().into(),
                names(&run.findings).into(),
            ]);
            for (name, seen) in run.findings.iter().filter_map(|text| named(text)) {
                match found.iter_mut().find(|(own, ..)| own == name) {
                    Some((.., many)) => *many += 1,
                    None => found.push((name.to_owned(), seen.to_owned(), 1)),
                }
            }
        }
        page.table(table.without_empty_columns());
    }
    if !found.is_empty() {
        page.heading(3, "Findings");
        let lines = found.into_iter().map(|(name, seen, many)| {
            let note = match many {
                1 => String::new(),
                many => format!(" (the first of {many} runs)"),
            };
            Text::marked(&format!("`{name}`{note}: ")).then(seen)
        });
        page.list(lines.collect());
    }
}

/// The names of findings, which a list below explains; a text without a name stays unchanged.
fn names(findings: &[String]) -> String {
    let names: Vec<&str> =
        findings.iter().map(|text| named(text).map_or(text.as_str(), |(name, _)| name)).collect();
    names.join(", ")
}

/// A finding's name and its observation; nothing if the text is no finding.
pub(super) fn named(text: &str) -> Option<(&str, &str)> {
    text.split_once(": ").filter(|(name, _)| !name.contains(' '))
}
