//! A lab that was stopped anywhere continues as if it had not been.

use std::sync::OnceLock;

use proptest::prelude::*;

use super::world::{Fate, Settings, World};
use crate::journal::{Cell, Event, Journal, whole};
use crate::{Next, Results, RunKey, findings, next};

/// One option helps, one crashes, one loses requests, and one needs a second attempt.
fn truth(settings: &Settings, scenario: &str) -> Fate {
    let option = |name: &str| settings.get(name).map_or("", String::as_str);
    match (option("seqs"), option("mode"), scenario) {
        ("512", ..) => Fate::Crashes,
        ("256", "plain", "chat") => Fate::Loses(5000.0, 0.3),
        ("256", _, "long") => Fate::Loses(5000.0, 0.3),
        ("128", "odd", "long") => Fate::Dies,
        (_, "odd", "chat") => Fate::OnceInvalid(900.0),
        ("128", ..) => Fate::Tokens(1200.0),
        _ => Fate::Tokens(1000.0),
    }
}

fn text(strategy: &str) -> String {
    format!(
        "name = \"A lab\"\nstrategy = \"{strategy}\"\nrepeats = 2\nscenarios = [\"chat.toml\", \"long.toml\"]\n\
         [objective]\nmaximize = \"throughput.output-tokens-per-s\"\n\
         [[engines]]\nname = \"vllm\"\nlaunch = [\"vllm\", \"serve\", \"m\"]\n\
         [engines.options]\nseqs = [64, 128, 256, 512]\nmode = [\"plain\", \"odd\"]\n"
    )
}

fn world(strategy: &str) -> World {
    World::new(&text(strategy), truth)
}

const STRATEGIES: [&str; 2] = ["matrix", "one-at-a-time"];

/// A lab that was run without a stop: its journal and its findings.
type LabRun = (World, Vec<Event>, Vec<findings::StudyReport>);

/// Each strategy's.
fn uninterrupted() -> &'static [LabRun] {
    static LABS: OnceLock<Vec<LabRun>> = OnceLock::new();
    LABS.get_or_init(|| {
        let lab = |strategy: &&str| {
            let world = world(strategy);
            let mut events = Vec::new();
            let results = world.run(&mut events);
            let found = findings::lab_report(&world.lab, &world.scenarios, &results);
            assert_eq!(found.incomplete, None);
            (world, events, found.studies)
        };
        STRATEGIES.iter().map(lab).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Stopped after any number of events, and again, it comes to the same runs and the same
    /// findings. The last line may be torn.
    #[test]
    fn a_stopped_lab_has_the_same_findings(
        lab in 0..STRATEGIES.len(),
        stops in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 1..4),
    ) {
        let (world, events, studies) = &uninterrupted()[lab];
        let mut kept: Vec<Event> = Vec::new();
        for (at, torn) in stops {
            let mut events = kept.clone();
            world.run(&mut events);
            let keep = kept.len() + ((events.len() - kept.len()) as f64 * at) as usize;
            let mut text: String = events[..keep].iter().map(Event::line).collect();
            // A part of the next line was written.
            if let Some(next) = events.get(keep) {
                let line = next.line();
                text.push_str(&line[..(line.len() as f64 * torn) as usize]);
            }
            let whole = whole(text.as_bytes());
            let journal = Journal::read(text.as_bytes()).unwrap();
            prop_assert_eq!(&Journal::read(whole).unwrap().events, &journal.events);
            kept = journal.events;
        }
        let results = world.run(&mut kept);
        prop_assert_eq!(&results.runs, &Results::from_events(events).runs);
        let found = findings::lab_report(&world.lab, &world.scenarios, &results);
        prop_assert_eq!(&found.studies, studies);
        // No finished run is made twice.
        let mut finished: Vec<&RunKey> = Vec::new();
        for event in &kept {
            if let Event::Finished(run) = event {
                prop_assert!(!finished.contains(&&run.run), "{:?}", run.run);
                finished.push(&run.run);
            }
        }
    }
}

/// The next starts are the missing ones, and no others.
#[test]
fn next_starts_are_the_missing_ones() {
    let (world, events, _) = &uninterrupted()[0];
    for keep in (0..events.len()).step_by(7) {
        let results = Results::from_events(&events[..keep]);
        let Next::Run(starts) = next(&world.lab, &world.scenarios, &results) else { continue };
        for run in starts.iter().flat_map(|start| &start.runs) {
            let first = RunKey { attempt: 1, ..run.clone() };
            assert_eq!(results.cell(&first, world.lab.retries), Cell::Missing(run.clone()));
        }
    }
}

/// A scenario that changed is run again, and the others are not.
#[test]
fn only_a_changed_scenario_runs_again() {
    let (world, events, _) = &uninterrupted()[0];
    let results = Results::from_events(events);
    let mut scenarios = world.scenarios.clone();
    scenarios[1].content = crate::digest(["changed"]);
    let Next::Run(starts) = next(&world.lab, &scenarios, &results) else {
        panic!("it has nothing to do");
    };
    let runs: Vec<&RunKey> = starts.iter().flat_map(|start| &start.runs).collect();
    // The other scenario's runs were not all made for trials that this one had ruled out.
    let (long, others): (Vec<&RunKey>, Vec<&RunKey>) =
        runs.into_iter().partition(|run| run.scenario == "long");
    assert!(long.len() > 4 && others.len() < long.len());
    let is_new = |run: &&RunKey| !results.runs.contains_key(*run);
    assert!(others.iter().all(is_new), "{others:?}");
}

/// A further value in the lab file runs only the trials with that value.
#[test]
fn a_changed_lab_file_runs_only_the_changed_trials() {
    let (world, events, _) = &uninterrupted()[1];
    let results = Results::from_events(events);
    let text = text("one-at-a-time").replace("512]", "512, 100]");
    let lab = crate::Lab::parse("lab.toml", &text).unwrap();
    let Next::Run(starts) = next(&lab, &world.scenarios, &results) else {
        panic!("it has nothing to do");
    };
    assert_eq!(starts.len(), 2);
    assert!(
        starts.iter().all(|start| lab.label(&start.trial) == "seqs 100" && start.runs.len() == 2)
    );
}

#[test]
fn a_journal_is_read_line_by_line() {
    let (world, ..) = &uninterrupted()[0];
    let line = world.began().line();
    let read = |text: &str| Journal::read(text.as_bytes());
    let journal = read(&format!("{line}\n{line}{{\"event\":\"re")).unwrap();
    assert_eq!(journal.events.len(), 2);
    assert_eq!(journal.notes, ["line 4 was cut off while it was written, and is left out"]);
    // As an older version left it when the disk was full and then had room again.
    let journal = Journal::read(&[line.as_bytes(), b"{\"ev\xc3{}\n", line.as_bytes()].concat());
    let journal = journal.unwrap();
    assert_eq!(journal.events.len(), 2);
    let [note] = &journal.notes[..] else { panic!("{:?}", journal.notes) };
    assert!(note.starts_with("line 2 is no event, and is left out: "), "{note}");
    let error = read("nothing\nof a journal\n").unwrap_err();
    assert!(error.starts_with("line 1 is no event"), "{error}");
    let later = line.replace("\"version\":1", "\"version\":2");
    assert!(read(&later).unwrap_err().contains("reads version 1"));
    assert_eq!(read("").unwrap(), Journal::default());
}
