//! A lab's page as Markdown.
//!
//! It is drawn of a [`LabReport`] alone. What the lab did not measure has no line.

use std::fmt::Write;

use crate::estimate::in_words;
use crate::findings::{Front, LabReport, StudyReport, TrialReport, gain_words, settings_words};
use crate::judge::{Row, StageReport};
use crate::stat::{OUTSIDE, Spread, figures};

/// The page.
pub fn markdown(report: &LabReport) -> String {
    let mut out = String::new();
    heading(&mut out, 1, &report.name);
    if let Some(about) = &report.about {
        paragraph(&mut out, &plain(about));
    }
    if let Some(why) = &report.incomplete {
        paragraph(&mut out, &format!("**This lab is not complete: {why}.**"));
    }
    for study in &report.studies {
        conclusion(&mut out, report, study);
    }
    setup(&mut out, report);
    results(&mut out, report);
    for study in &report.studies {
        if report.objective.is_some() {
            experiments(&mut out, report, study);
        }
        failures(&mut out, report, study);
        runs(&mut out, report, study);
    }
    reproduce(&mut out, report);
    out
}

fn heading(out: &mut String, level: usize, text: &str) {
    let _ = writeln!(out, "{} {}\n", "#".repeat(level), plain(text));
}

fn paragraph(out: &mut String, text: &str) {
    let _ = writeln!(out, "{text}\n");
}

/// Text from outside, on one line, in which Markdown and HTML mean nothing.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            c if c.is_control() => plain.push(' '),
            '\\' | '*' | '_' | '[' | ']' | '|' | '#' | '`' => plain.extend(['\\', c]),
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            c => plain.push(c),
        }
    }
    plain
}

/// Lines from outside, as code.
fn code(out: &mut String, language: &str, lines: &[String]) {
    // A fence that is longer than any run of backticks in the text ends with it.
    let longest = lines
        .iter()
        .flat_map(|line| line.split(|c| c != '`').map(str::len))
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let clean = |line: &String| line.replace(|c: char| c.is_control() && c != '\t', " ");
    let lines: Vec<String> = lines.iter().map(clean).collect();
    let _ = writeln!(out, "{fence}{language}\n{}\n{fence}\n", lines.join("\n"));
}

fn table(out: &mut String, header: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "| {} |", header.join(" | "));
    let is_number =
        |cell: &String| cell.is_empty() || cell.starts_with(|c: char| "+-0123456789".contains(c));
    let marks = (0..header.len()).map(|at| {
        // Ids of trials look like numbers and are none.
        let is_right = at > 0
            && rows.iter().all(|row| is_number(&row[at]))
            && rows.iter().any(|row| !row[at].is_empty());
        if is_right { "---:" } else { "---" }
    });
    let marks: Vec<&str> = marks.collect();
    let _ = writeln!(out, "| {} |", marks.join(" | "));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out.push('\n');
}

/// A model's heading, where there are several.
fn of_model(report: &LabReport, study: &StudyReport) -> String {
    match report.studies.len() {
        1 => String::new(),
        _ => format!(": {}", study.model),
    }
}

fn conclusion(out: &mut String, report: &LabReport, study: &StudyReport) {
    heading(out, 2, &format!("Conclusion{}", of_model(report, study)));
    paragraph(out, &study.conclusion.words.replace(char::is_control, " "));
    if let Some(command) = &study.conclusion.command {
        paragraph(out, "The recommended command:");
        code(out, "bash", std::slice::from_ref(command));
    }
    let rows = study.conclusion.scenarios.iter().filter_map(|row| {
        let gain = row.gain.as_ref()?;
        let figure = row.figure.as_ref().map(spread).unwrap_or_default();
        Some(vec![plain(&row.scenario), figure, gain_words(gain)])
    });
    table(
        out,
        &["Scenario", &figure_of(report), "Against the baseline"],
        &rows.collect::<Vec<_>>(),
    );
}

/// A mean with its interval.
fn spread(of: &Spread) -> String {
    match of.interval {
        Some([low, high]) => {
            let half = (high - low) / 2.0;
            format!("{} ± {}", figures(of.mean), figures(half))
        }
        None => figures(of.mean),
    }
}

fn setup(out: &mut String, report: &LabReport) {
    heading(out, 2, "Setup and method");
    let mut lines = Vec::new();
    let objective = report.objective.as_deref().unwrap_or("none");
    lines.push(format!("Objective: {}", plain(objective)));
    if !report.constraints.is_empty() {
        let all: Vec<String> = report.constraints.iter().map(|text| plain(text)).collect();
        lines.push(format!("Every run must meet: {}", all.join("; ")));
    }
    lines.push(format!(
        "Strategy: {}, {} repeats of each trial on each scenario, each with an engine started anew",
        report.strategy, report.repeats
    ));
    lines.push(format!(
        "A difference is shown where Student's test over repeats, of all comparisons of an experiment together (Holm), leaves a \
         probability of at most {:.0} % that there is none; ± and intervals are of 95 %",
        100.0 * OUTSIDE
    ));
    let names: Vec<String> = report
        .scenarios
        .iter()
        .map(|scenario| plain(&scenario.name))
        .collect();
    lines.push(format!("Scenarios: {}", names.join(", ")));
    let spent = &report.spent;
    let cost = spent
        .cost
        .map(|cost| format!(", at a cost of {cost:.2}"))
        .unwrap_or_default();
    lines.push(format!(
        "It took {} for {} runs and {} starts of engines{cost}",
        in_words(spent.seconds),
        spent.runs,
        spent.starts
    ));
    for line in lines {
        let _ = writeln!(out, "- {line}.");
    }
    out.push('\n');
    let mut seen: Vec<Vec<String>> = Vec::new();
    for trial in report.studies.iter().flat_map(|study| &study.trials) {
        let Some(facts) = &trial.facts else { continue };
        let text = |text: &Option<String>| text.as_deref().map(plain).unwrap_or_default();
        let devices: Vec<String> = facts.devices.iter().map(|device| plain(device)).collect();
        let row = vec![
            plain(&trial.engine),
            text(&facts.version),
            text(&facts.model),
            devices.join(", "),
            text(&facts.driver),
            text(&facts.host),
        ];
        if !seen.contains(&row) {
            seen.push(row);
        }
    }
    table(
        out,
        &["Engine", "Version", "Model", "Devices", "Driver", "Host"],
        &seen,
    );
}

fn experiments(out: &mut String, report: &LabReport, study: &StudyReport) {
    heading(out, 2, &format!("Experiments{}", of_model(report, study)));
    for stage in &study.stages {
        let rounds = match stage.rounds {
            [first, last] if first == last => format!("round {first}"),
            [first, last] => format!("rounds {first} to {last}"),
        };
        heading(out, 3, &format!("{} ({rounds})", stage.title));
        if stage.share < 1000 {
            paragraph(
                out,
                &format!(
                    "With {} % of each scenario's requests.",
                    f64::from(stage.share) / 10.0
                ),
            );
        }
        if !stage.is_complete {
            paragraph(out, "This experiment is not complete.");
        }
        rows(out, report, &stage.rows);
    }
    if !study.options.is_empty() {
        heading(out, 2, &format!("By option{}", of_model(report, study)));
        for of in &study.options {
            heading(out, 3, &of.option);
            let values = of.values.iter().map(|value| {
                let mut cells = cells(&value.row);
                cells[0] = plain(&value.value);
                cells
            });
            table(
                out,
                &header("Value", &figure_of(report)),
                &values.collect::<Vec<_>>(),
            );
        }
    }
    if !study.against_baseline.is_empty() {
        heading(
            out,
            2,
            &format!("Everything against the baseline{}", of_model(report, study)),
        );
        rows(out, report, &study.against_baseline);
    }
    fronts(out, report, study);
    if !study.not_significant.is_empty() {
        heading(
            out,
            2,
            &format!("No difference shown{}", of_model(report, study)),
        );
        paragraph(
            out,
            "These differ from the baseline by no more than chance can explain. That does not mean that there is no difference.",
        );
        for label in &study.not_significant {
            let _ = writeln!(out, "- {}", plain(label));
        }
        out.push('\n');
    }
    if let Some(drift) = study
        .drift
        .as_ref()
        .filter(|drift| drift.probability <= OUTSIDE)
    {
        heading(out, 2, &format!("Drift{}", of_model(report, study)));
        paragraph(
            out,
            &format!(
                "All trials together changed by {:+.2} % from round to round, beyond chance (p = {:.4}): the machine did not stay as \
                 it was. Rounds are interleaved, so comparisons are still fair, but less certain than they could be.",
                drift.percent_per_round, drift.probability
            ),
        );
    }
}

/// What failed, and why.
fn failures(out: &mut String, report: &LabReport, study: &StudyReport) {
    if !study.failed.is_empty() {
        heading(out, 2, &format!("What failed{}", of_model(report, study)));
        for failed in &study.failed {
            paragraph(
                out,
                &format!("**{}**: {}.", plain(&failed.label), plain(&failed.why)),
            );
            if !failed.log.is_empty() {
                code(out, "text", &failed.log);
            }
        }
    }
}

/// The figures of every trial on every scenario that any of them has, the models below one another.
fn results(out: &mut String, report: &LabReport) {
    heading(out, 2, "Figures");
    for scenario in &report.scenarios {
        let measured = report.studies.iter().flat_map(|study| {
            let trials = study.trials.iter();
            trials.filter_map(move |trial| Some((study, trial, trial.figures.get(&scenario.name)?)))
        });
        let measured: Vec<_> = measured.collect();
        let has = |name: &str| {
            measured
                .iter()
                .any(|(.., figures)| figures.contains_key(name))
        };
        let columns: Vec<(&str, &str)> =
            COLUMNS.into_iter().filter(|(name, _)| has(name)).collect();
        let mut header: Vec<&str> = columns.iter().map(|(_, label)| *label).collect();
        header.insert(0, "Trial");
        let rows = measured.iter().map(|(study, trial, figures)| {
            let name = match study.model.as_str() {
                "" => plain(&trial.label),
                model => format!("{}, {}", plain(model), plain(&trial.label)),
            };
            let cells = columns
                .iter()
                .map(|(name, _)| figures.get(*name).map(spread).unwrap_or_default());
            [name].into_iter().chain(cells).collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        if !rows.is_empty() {
            heading(out, 3, &scenario.name);
            table(out, &header, &rows);
        }
    }
}

/// The figures of that table, and what they are called there.
const COLUMNS: [(&str, &str); 8] = [
    ("requests.success-share", "Success share"),
    ("throughput.requests-per-s", "Requests (req/s)"),
    ("throughput.output-tokens-per-s", "Output (tok/s)"),
    ("throughput.total-tokens-per-s", "Total (tok/s)"),
    ("ttft.mean", "Mean TTFT (ms)"),
    ("ttft.p99", "P99 TTFT (ms)"),
    ("tpot.mean", "Mean TPOT (ms)"),
    ("e2e.mean", "Mean E2E (ms)"),
];

/// The columns of trials, with the objective's figure.
fn header<'f>(first: &'f str, figure: &'f str) -> [&'f str; 4] {
    [first, figure, "Against the reference", "Judgement"]
}

/// What the objective's figure is called.
fn figure_of(report: &LabReport) -> String {
    report
        .figure
        .as_deref()
        .map_or_else(|| "Figure".to_owned(), plain)
}

fn cells(row: &Row) -> Vec<String> {
    let level = row.level.map(figures).unwrap_or_default();
    let gain = row.gain.as_ref().map(gain_words).unwrap_or_default();
    vec![
        plain(&row.label),
        level,
        gain,
        row.judgement.words().to_owned(),
    ]
}

/// The rows of a stage, and below it the scenarios, where there are several.
fn rows(out: &mut String, report: &LabReport, all: &[Row]) {
    let figure = figure_of(report);
    table(
        out,
        &header("Trial", &figure),
        &all.iter().map(cells).collect::<Vec<_>>(),
    );
    let many = all.iter().map(|row| row.scenarios.len()).max().unwrap_or(0);
    if many < 2 {
        return;
    }
    let each = all.iter().flat_map(|row| {
        row.scenarios.iter().filter_map(|scenario| {
            let figure = scenario.figure.as_ref()?;
            let gain = scenario.gain.as_ref().map(gain_words).unwrap_or_default();
            Some(vec![
                plain(&row.label),
                plain(&scenario.scenario),
                spread(figure),
                gain,
            ])
        })
    });
    table(
        out,
        &["Trial", "Scenario", &figure, "Against the reference"],
        &each.collect::<Vec<_>>(),
    );
}

fn fronts(out: &mut String, report: &LabReport, study: &StudyReport) {
    let drawn: Vec<&Front> = study
        .pareto
        .iter()
        .filter(|front| front.points.len() > 1)
        .collect();
    if drawn.is_empty() {
        return;
    }
    heading(out, 2, &format!("Pareto front{}", of_model(report, study)));
    for front in drawn {
        heading(out, 3, &front.scenario);
        let points = front.points.iter().map(|point| {
            let mark = if point.is_on_front { "yes" } else { "" };
            vec![
                plain(&point.label),
                spread(&point.at[0]),
                spread(&point.at[1]),
                mark.to_owned(),
            ]
        });
        let header = [
            "Trial",
            &front.figures[0],
            &front.figures[1],
            "On the front",
        ];
        table(out, &header, &points.collect::<Vec<_>>());
    }
}

/// Every run, with its folder, verdict and findings.
fn runs(out: &mut String, report: &LabReport, study: &StudyReport) {
    heading(out, 2, &format!("Runs{}", of_model(report, study)));
    let figure = figure_of(report);
    let stage_of = |round: u32| {
        let within = |stage: &&StageReport| (stage.rounds[0]..=stage.rounds[1]).contains(&round);
        study
            .stages
            .iter()
            .find(within)
            .map(|stage| stage.title.clone())
            .unwrap_or_default()
    };
    for trial in study.trials.iter().filter(|trial| !trial.runs.is_empty()) {
        heading(out, 3, &trial.label);
        code(out, "bash", std::slice::from_ref(&trial.command));
        let rows = trial.runs.iter().map(|run| {
            let verdict = run.verdict.map_or("failed", |verdict| verdict.name());
            let findings: Vec<String> = run.findings.iter().map(|finding| plain(finding)).collect();
            let again = if run.attempt > 1 {
                format!(", attempt {}", run.attempt)
            } else {
                String::new()
            };
            vec![
                format!("{}{again}", plain(&run.scenario)),
                format!("{} ({})", run.round, plain(&stage_of(run.round))),
                run.figure.map(figures).unwrap_or_default(),
                verdict.to_owned(),
                plain(&run.folder),
                findings.join("; "),
            ]
        });
        let header = [
            "Scenario", "Round", &figure, "Verdict", "Folder", "Findings",
        ];
        table(out, &header, &rows.collect::<Vec<_>>());
    }
}

fn reproduce(out: &mut String, report: &LabReport) {
    heading(out, 2, "How to do it again");
    paragraph(
        out,
        "Run the lab file again in an empty folder. What it ran, by trial:",
    );
    let trials: Vec<&TrialReport> = report
        .studies
        .iter()
        .flat_map(|study| &study.trials)
        .collect();
    let rows = trials.iter().map(|trial| {
        let settings = settings_words(trial);
        vec![trial.id.to_string(), plain(&trial.label), plain(&settings)]
    });
    table(
        out,
        &["Trial", "Called", "Options"],
        &rows.collect::<Vec<_>>(),
    );
    let rows = report.scenarios.iter().map(|scenario| {
        let short: String = scenario.content.chars().take(12).collect();
        vec![plain(&scenario.name), plain(&short)]
    });
    table(out, &["Scenario", "Digest"], &rows.collect::<Vec<_>>());
    if let Some(program) = &report.program {
        paragraph(out, &format!("Measured with runner {}.", plain(program)));
    }
}
