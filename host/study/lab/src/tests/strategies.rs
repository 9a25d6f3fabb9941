//! Labs in a world whose truth is known.

use super::pages::{body, golden};
use super::world::{Fate, Settings, World};
use crate::findings::{self, LabReport, StudyReport};
use crate::journal::{Event, Outcome};
use crate::judge::Judgement;
use crate::measured::Number;
use crate::strategy::Kind;
use crate::{LabEnd, Next, Results, next, page};

fn text(strategy: &str, more: &str) -> String {
    format!(
        "name = \"A lab\"\nstrategy = \"{strategy}\"\nscenarios = [\"chat.toml\", \"long.toml\"]\n{more}\n\
         [objective]\nmaximize = \"throughput.output-tokens-per-s\"\n\
         [[engines]]\nname = \"vllm\"\nlaunch = [\"vllm\", \"serve\", \"m\"]\n\
         [engines.options]\nseqs = [64, 128, 256]\nmode = [\"plain\", \"fast\"]\ntokens = [2048, 8192]\n"
    )
}

fn option<'s>(settings: &'s Settings, name: &str) -> &'s str {
    settings.get(name).map_or("", String::as_str)
}

/// More sequences help, the fast mode helps, more tokens do nothing. The options multiply.
fn truth(settings: &Settings, scenario: &str) -> Fate {
    let seqs = match option(settings, "seqs") {
        "128" => 1.10,
        "256" => 1.25,
        _ => 1.0,
    };
    let mode = if option(settings, "mode") == "fast" { 1.15 } else { 1.0 };
    let base = if scenario == "long" { 300.0 } else { 1000.0 };
    Fate::Tokens(base * seqs * mode)
}

fn run(world: &World) -> (LabReport, Results) {
    let results = world.run(&mut Vec::new());
    (findings::lab_report(&world.lab, &world.scenarios, &results), results)
}

fn only(report: &LabReport) -> &StudyReport {
    assert_eq!(report.incomplete, None);
    &report.studies[0]
}

fn chosen(study: &StudyReport) -> &str {
    let id = study.conclusion.trial.as_ref();
    let trial = study.trials.iter().find(|trial| Some(&trial.id) == id);
    trial.map_or("none", |trial| trial.label.as_str())
}

#[test]
fn every_strategy_finds_the_best() {
    for strategy in ["matrix", "one-at-a-time"] {
        let world = World::new(&text(strategy, ""), truth);
        let (report, _) = run(&world);
        let study = only(&report);
        let best = chosen(study);
        // More tokens have no effect, so both of these are the best.
        let ties = ["seqs 256, mode fast", "seqs 256, mode fast, tokens 8192"];
        assert!(ties.contains(&best), "{strategy}: {best}");
        assert_eq!(study.conclusion.kind, Kind::Better, "{strategy}");
        let gain = study.conclusion.gain.unwrap();
        let [low, high] = gain.interval.unwrap();
        assert!(low < 43.75 && 43.75 < high && high - low < 20.0, "{strategy}: {gain:?}");
        assert_eq!(study.conclusion.scenarios.len(), 2);
        // Before its confirmation, it was partly lucky; its row is from the fresh runs.
        let id = study.conclusion.trial.as_ref();
        let mut rows = study.against_baseline.iter();
        let row = rows.find(|row| Some(&row.trial) == id).unwrap();
        let apart = row.gain.unwrap().percent - gain.percent;
        assert!(apart.abs() < 1e-9, "{strategy}: {row:?}");
    }
}

/// A gain that three rounds do not show: the page states the rounds that would, and their time.
#[test]
fn states_the_rounds_that_would_show_a_gain() {
    let truth = |settings: &Settings, _: &str| {
        Fate::Tokens(if option(settings, "mode") == "fast" { 1010.0 } else { 1000.0 })
    };
    let text = text("matrix", "").replace("seqs = [64, 128, 256]\n", "");
    let text = text.replace("tokens = [2048, 8192]\n", "");
    // A lab in which it is ahead by its mean, and not shown.
    let with_seed = |seed| {
        let mut world = World::new(&text, truth);
        world.seed = seed;
        let (report, _) = run(&world);
        let study = only(&report);
        let gain = study.against_baseline[1].gain?.percent;
        let is_wanted = study.conclusion.kind == Kind::NoDifference && gain > 0.5;
        is_wanted.then_some(report)
    };
    let report = (1..30).find_map(with_seed).unwrap();
    let study = only(&report);
    let row = &study.against_baseline[1];
    assert_eq!(row.judgement, Judgement::NoDifference);
    let to_show = row.to_show.unwrap();
    // A start takes 30 s and its two runs 200 s, of two trials.
    let more = f64::from(to_show.rounds - 3) * 2.0 * 230.0;
    assert_eq!(to_show.seconds, Some(more));
    let (rounds, time) = (to_show.rounds, model::duration::roughly(more));
    let sentence =
        format!("{rounds} rounds would show it (`repeats = {rounds}`), which takes {time} more.");
    assert!(study.conclusion.words.contains(&sentence), "{}", study.conclusion.words);
    assert!(page::page(&report).markdown().contains(&sentence));
}

/// Shares of faults are better the lower they are, on a Pareto front as in a comparison.
#[test]
fn fewer_faults_are_better() {
    let text = text("matrix", "").replace(
        "[[engines]]",
        "pareto = [\"score.final-number\", \"score.final-number-unparsed\"]\n[[engines]]",
    );
    let world = World::new(&text, |_, _| Fate::Tokens(1000.0));
    let mut events = Vec::new();
    world.run(&mut events);
    let baseline = world.lab.baseline(0, 0).unwrap().id;
    for event in &mut events {
        let Event::Finished(finished) = event else { continue };
        let Outcome::Measured(measured) = &mut finished.outcome else { continue };
        let faults = f64::from(u8::from(finished.run.trial == baseline)) * 0.2;
        let scores = [("final-number", 0.8), ("final-number-unparsed", faults)];
        let scores = scores.map(|(name, score)| (format!("score.{name}"), Number(score)));
        measured.figures.extend(scores);
    }
    let report = findings::lab_report(&world.lab, &world.scenarios, &Results::from_events(&events));
    let points = &report.studies[0].pareto[0].points;
    assert!(points.len() > 1);
    for point in points {
        assert_eq!(point.is_on_front, point.trial != baseline, "{point:?}");
    }
}

/// Only shown gains are kept; the combination runs against the baseline and the best value.
#[test]
fn one_at_a_time_combines_what_helps() {
    let world = World::new(&text("one-at-a-time", ""), truth);
    let (report, results) = run(&world);
    let study = only(&report);
    let titles: Vec<&str> = study.stages.iter().map(|stage| stage.title.as_str()).collect();
    assert_eq!(titles, ["Each option alone", "The best of each option together"]);
    let labels: Vec<&str> = study.stages[1].rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["baseline", "seqs 256", "seqs 256, mode fast"]);
    assert_eq!(study.not_significant, ["tokens 8192"]);
    // Five trials and three trials, three rounds each, two scenarios each.
    assert_eq!(results.runs.len(), (5 + 3) * 3 * 2);
    assert_eq!(report.spent.starts, (5 + 3) * 3);
    let seqs = study.options.iter().find(|table| table.option == "seqs").unwrap();
    let values: Vec<&str> = seqs.values.iter().map(|value| value.value.as_str()).collect();
    assert_eq!(values, ["64", "128", "256"]);
    for front in &study.pareto {
        let front: Vec<&str> =
            front.points.iter().filter(|p| p.is_on_front).map(|p| p.label.as_str()).collect();
        assert_eq!(front, ["seqs 256, mode fast"]);
    }
}

#[test]
fn a_crash_or_a_lost_request_never_wins() {
    fn truth(settings: &Settings, _: &str) -> Fate {
        match (option(settings, "seqs"), option(settings, "mode"), option(settings, "tokens")) {
            ("256", ..) => Fate::Crashes,
            ("128", ..) => Fate::Loses(9000.0, 0.485),
            (_, "fast", _) => Fate::Dies,
            (_, _, "8192") => Fate::OnceInvalid(1100.0),
            _ => Fate::Tokens(1000.0),
        }
    }
    for strategy in ["matrix", "one-at-a-time"] {
        let world = World::new(&text(strategy, ""), truth);
        let (report, results) = run(&world);
        let study = only(&report);
        assert_eq!(chosen(study), "tokens 8192", "{strategy}");
        assert_eq!(study.conclusion.kind, Kind::Better, "{strategy}");
        let failed = |label: &str| {
            let found = study.failed.iter().find(|failed| failed.label == label);
            found.unwrap_or_else(|| panic!("{strategy}: {label}: {:?}", study.failed))
        };
        assert!(failed("seqs 256").why.contains("ended before it answered (exit code 1)"));
        assert_eq!(failed("seqs 256").log.last().unwrap(), "ValueError: no such option");
        let lost = &failed("seqs 128").why;
        assert!(lost.contains("requests.success-share is 0.5150"), "{lost}");
        assert!(lost.contains("but `requests.success-share >= 99%` must hold"), "{lost}");
        assert!(failed("mode fast").why.contains("ended during a run"), "{strategy}");
        // An engine that does not start is tried twice.
        for starts in results.failures.values() {
            assert_eq!(starts.len(), 2, "{strategy}");
        }
        let text = page::page(&report).markdown();
        assert!(text.contains("## Failures") && text.contains("ValueError: no such option"));
    }
}

#[test]
fn reports_a_failed_baseline_as_missing() {
    let truth = |settings: &Settings, _: &str| {
        if option(settings, "mode") == "fast" { Fate::Tokens(1000.0) } else { Fate::Crashes }
    };
    let (report, _) = run(&World::new(&text("matrix", ""), truth));
    assert_eq!(only(&report).conclusion.kind, Kind::BestOfRest);
    assert!(chosen(only(&report)).contains("mode fast"));
    let (report, _) = run(&World::new(&text("one-at-a-time", ""), |_, _| Fate::Crashes));
    assert_eq!(only(&report).conclusion.kind, Kind::Nothing);
    assert_eq!(chosen(only(&report)), "none");
    let (report, _) = run(&World::new(&text("one-at-a-time", ""), |_, _| Fate::Loses(5.0, 0.5)));
    assert_eq!(only(&report).conclusion.kind, Kind::Nothing);
}

/// One repeat shows nothing by itself, and says so.
#[test]
fn one_repeat_shows_nothing() {
    let (report, _) = run(&World::new(&text("matrix", "repeats = 1"), truth));
    let study = only(&report);
    assert_eq!(study.conclusion.kind, Kind::NoDifference);
    let mut gains = study.against_baseline.iter().filter_map(|row| row.gain);
    assert!(gains.all(|gain| gain.interval.is_none()));
}

/// The best of two engines is tuned; a slower one is not.
#[test]
fn the_better_engine_is_tuned() {
    let truth = |settings: &Settings, scenario: &str| {
        let Fate::Tokens(tokens) = truth(settings, scenario) else { unreachable!() };
        Fate::Tokens(tokens * if option(settings, "engine") == "sglang" { 1.3 } else { 1.0 })
    };
    let more = "\n[[engines]]\nname = \"sglang\"\nlaunch = [\"sglang\"]\n[engines.options]\nmode = [\"plain\", \"fast\"]\n";
    let world = World::new(&(text("one-at-a-time", "") + more), truth);
    let (report, _) = run(&world);
    let study = only(&report);
    assert_eq!(chosen(study), "sglang: mode fast");
    assert_eq!(study.stages[0].title, "Choosing the engine");
    let is_right = |own: &str, label: &str| own == "sglang" || label == "vllm: baseline";
    assert!(study.trials.iter().all(|trial| is_right(&trial.engine, &trial.label)));
    let gain = study.conclusion.gain.unwrap();
    assert!((gain.percent - 49.5).abs() < 5.0, "{gain:?}");
}

/// An option whose condition needs another option's better value is tried after that value is kept.
#[test]
fn conditional_options_follow() {
    let truth = |settings: &Settings, _: &str| {
        let chunk = if option(settings, "chunk") == "2" { 1.2 } else { 1.0 };
        let seqs = if option(settings, "seqs") == "128" { 1.2 } else { 1.0 };
        Fate::Tokens(1000.0 * chunk * seqs)
    };
    let text = "name = \"A lab\"\nscenarios = \"chat.toml\"\n[objective]\nmaximize = \"throughput.output-tokens-per-s\"\n\
                [[engines]]\nname = \"a\"\nlaunch = [\"a\"]\n[engines.options]\nseqs = [64, 128]\n\
                chunk = { values = [1, 2], when = \"seqs == 128\" }\n";
    let world = World::new(text, truth);
    let (report, _) = run(&world);
    assert_eq!(chosen(only(&report)), "seqs 128, chunk 2");
}

#[test]
fn a_budget_ends_a_lab_before_its_next_start() {
    let world = World::new(&text("matrix", "budget = { time = \"40m\" }"), truth);
    let results = world.run(&mut Vec::new());
    assert_eq!(next(&world.lab, &world.scenarios, &results), Next::Done(LabEnd::Budget));
    assert!(results.seconds <= 2400.0 && results.seconds > 2000.0, "{}", results.seconds);
    let report = findings::lab_report(&world.lab, &world.scenarios, &results);
    assert_eq!(report.incomplete.as_deref(), Some("its budget is spent"));
    assert_eq!(report.studies[0].conclusion.kind, Kind::Unfinished);
    let more = "budget = { cost = 1 }\ncost = { per-hour = 3 }";
    let world = World::new(&text("matrix", more), truth);
    let results = world.run(&mut Vec::new());
    assert!(results.seconds <= 1200.0 && results.seconds > 900.0, "{}", results.seconds);
}

#[test]
fn notices_a_slowing_machine_and_blames_no_trial() {
    let mut world = World::new(&text("matrix", "repeats = 5"), |_, _| Fate::Tokens(1000.0));
    world.drift = 0.03;
    let (report, _) = run(&world);
    let study = only(&report);
    assert_eq!(study.conclusion.kind, Kind::NoDifference);
    let drift = study.drift.unwrap();
    assert!((drift.percent_per_round + 2.96).abs() < 0.5 && drift.probability < 0.001, "{drift:?}");
    assert!(page::page(&report).markdown().contains("## Drift"));
}

/// A round runs every trial, and an engine's start serves all scenarios of a round.
#[test]
fn rounds_are_interleaved() {
    let world = World::new(&text("matrix", ""), truth);
    let mut events = Vec::new();
    world.run(&mut events);
    let starts: Vec<(u32, &str)> = (events.iter())
        .filter_map(|event| match event {
            Event::Starting(starting) => Some((starting.round, starting.label.as_str())),
            _ => None,
        })
        .collect();
    // Three rounds of two trials confirm the best.
    assert_eq!(starts.len(), (12 + 2) * 3);
    for (place, round) in starts[..12 * 3].chunks(12).enumerate() {
        assert!(round.iter().all(|(number, _)| *number as usize == place + 1));
        let mut labels: Vec<&str> = round.iter().map(|(_, label)| *label).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), 12);
    }
}

/// The page of a lab, whole; `BLESS=1` writes it anew.
#[test]
fn the_page_matches_its_snapshot() {
    let truth = |settings: &Settings, scenario: &str| match option(settings, "tokens") {
        "8192" => Fate::Crashes,
        _ => truth(settings, scenario),
    };
    let more = "about = \"What helps.\"\ncost = { per-hour = 2.5 }";
    let (report, _) = run(&World::new(&text("one-at-a-time", more), truth));
    let json = serde_json::to_string_pretty(&report).unwrap();
    let back: LabReport = serde_json::from_str(&json).unwrap();
    assert_eq!(back, report);
    let now = page::page(&report).markdown();
    assert_eq!(page::page(&back).markdown(), now);
    golden("src/tests/page.md", &now);
    golden("src/tests/page.html", &body(&page::page(&report)));
}

/// Without an objective, a page has all models' figures on all scenarios, and no recommendation.
#[test]
fn a_release_is_measured_and_nothing_is_recommended() {
    let text = "name = \"A release\"\nstrategy = \"matrix\"\nscenarios = [\"chat.toml\", \"long.toml\"]\n\
                [[models]]\nname = \"small\"\n[[models]]\nname = \"large\"\n\
                [[engines]]\nname = \"a\"\nlaunch = [\"a\", \"{model.path}\"]\n";
    let (report, results) = run(&World::new(text, truth));
    assert_eq!(results.runs.len(), 2 * 2 * 3);
    let kinds: Vec<Kind> = report.studies.iter().map(|study| study.conclusion.kind).collect();
    assert_eq!(kinds, [Kind::NoObjective, Kind::NoObjective]);
    let page = page::page(&report).markdown();
    for part in ["### long", "| small, baseline |", "| large, baseline |"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains("Output token throughput (tok/s)") && !page.contains("TTFT"), "{page}");
}
