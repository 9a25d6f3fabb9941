//! A world of engines whose throughput is known, with variation from start to start and from run to
//! run, for tests.

use std::collections::BTreeMap;

use crate::journal::{
    Began, End, Ending, Event, Facts, Failed, Finished, Outcome, Ready, Running, Starting, Stopped,
    VERSION,
};
use crate::measured::{Measured, Number};
use crate::study::OfLoad;
use crate::{Lab, Next, Results, RunKey, Scenario, Start, Trial, next};
use result::finding::Verdict;
use search::sweep::At;

/// The outcome of trials on a scenario.
pub type Truth = fn(&Settings, &str) -> Fate;

/// A trial's options and engine, by name, as texts.
pub type Settings = BTreeMap<String, String>;

#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// It has that throughput.
    Tokens(f64),
    /// It has that throughput, and that time per output token.
    Both(f64, f64),
    /// It has that throughput, and loses that share of requests.
    Loses(f64, f64),
    /// Its engine does not start.
    Crashes,
    /// Its engine dies in every run.
    Dies,
    /// Its first attempt of each run is invalid.
    OnceInvalid(f64),
}

pub struct World {
    pub lab: Lab,
    pub scenarios: Vec<Scenario>,
    pub truth: Truth,
    /// The standard deviation from start to start, as a share.
    pub varies: f64,
    /// The share by which everything gets slower with each round.
    pub drift: f64,
    pub seed: u64,
}

impl World {
    pub fn new(text: &str, truth: Truth) -> Self {
        let lab = Lab::parse("lab.toml", text).unwrap_or_else(|error| panic!("{error}"));
        let scenario = |name: &str| Scenario {
            name: name.to_owned(),
            content: crate::digest([name]),
            seconds: Some(100.0),
            load: name.rsplit_once('-').and_then(|(besides, at)| {
                Some(OfLoad {
                    kind: search::Load::Concurrency,
                    at: At::Load(at.parse().ok()?),
                    besides: besides.to_owned(),
                })
            }),
        };
        World {
            scenarios: (lab.scenarios.iter())
                .map(|named| scenario(named.value.trim_end_matches(".toml")))
                .collect(),
            lab,
            truth,
            varies: 0.01,
            drift: 0.0,
            seed: 1,
        }
    }

    pub fn settings(&self, trial: &Trial) -> Settings {
        let mut settings: Settings = (trial.settings.iter())
            .map(|(name, value)| (name.clone(), crate::template::shown(value)))
            .collect();
        settings.insert("engine".to_owned(), self.lab.engines[trial.engine].name.clone());
        settings
    }

    /// A normally distributed number, always the same for the same names.
    fn normal(&self, names: &[&str]) -> f64 {
        let seed = self.seed.to_string();
        let text = crate::digest([seed.as_str()].into_iter().chain(names.iter().copied()));
        // The sum of eight uniform numbers, of 32 bits each.
        let parts = text.as_bytes().chunks(8);
        let uniform =
            parts.map(|part| u32::from_str_radix(std::str::from_utf8(part).unwrap(), 16).unwrap());
        let sum: f64 = uniform.map(|number| f64::from(number) / f64::from(u32::MAX)).sum();
        (sum - 4.0) / (8.0_f64 / 12.0).sqrt()
    }

    fn outcome(&self, trial: &Trial, run: &RunKey) -> Outcome {
        let fate = (self.truth)(&self.settings(trial), &run.scenario);
        let round = run.round.to_string();
        let of_start = self.normal(&[&run.trial.0, &round]);
        let of_run = self.normal(&[&run.trial.0, &round, &run.scenario, "1000"]);
        let (tokens, lost, verdict) = match fate {
            Fate::Both(tokens, _) | Fate::Tokens(tokens) => (tokens, 0.0, Verdict::Valid),
            Fate::Loses(tokens, lost) => (tokens, lost, Verdict::Suspect),
            Fate::OnceInvalid(tokens) if run.attempt > 1 => (tokens, 0.0, Verdict::Valid),
            Fate::OnceInvalid(tokens) => (10.0 * tokens, 0.0, Verdict::Invalid),
            Fate::Dies | Fate::Crashes => return Outcome::Died(end(Ending::Died)),
        };
        let noise = self.varies * (of_start + 0.3 * of_run);
        let tokens = tokens * (noise - self.drift * f64::from(run.round)).exp();
        let tpot = match fate {
            Fate::Both(_, tpot) => tpot * noise.exp(),
            _ => 1e5 / tokens,
        };
        let figures = [
            ("throughput.output-tokens-per-s", tokens),
            ("tpot.mean", tpot),
            ("e2e.mean", 1e7 / tokens),
            ("requests.success-share", 1.0 - lost),
        ];
        Outcome::Measured(Measured {
            verdict,
            figures: figures.map(|(name, value)| (name.to_owned(), Number(value))).into(),
            with_failures: BTreeMap::new(),
            findings: match verdict {
                Verdict::Invalid => vec!["the client was too slow".to_owned()],
                _ => Vec::new(),
            },
        })
    }

    /// Lists the events of a start of an engine and of its runs.
    pub fn events(&self, start: &Start) -> Vec<Event> {
        let (trial, round) = (start.trial.id.clone(), start.round);
        let engine = &self.lab.engines[start.trial.engine];
        let mut events = vec![Event::Starting(Starting {
            at: "2026-01-01T00:00:00Z".to_owned(),
            trial: trial.clone(),
            round,
            label: self.lab.label(&start.trial),
            command: start.trial.recorded(engine),
        })];
        if let Fate::Crashes = (self.truth)(&self.settings(&start.trial), "") {
            let end = end(Ending::DiedBeforeReady);
            events.push(Event::Failed(Failed { trial, round, seconds: 5.0, end }));
            return events;
        }
        events.push(Event::Ready(Ready {
            trial: trial.clone(),
            round,
            seconds: 30.0,
            ready_after_s: Some(20.0 + f64::from(round)),
            facts: Facts {
                version: Some("1.0".to_owned()),
                devices: vec!["NVIDIA H100 80GB HBM3".to_owned()],
                ..Facts::default()
            },
        }));
        let mut class = Ending::Stopped;
        for run in &start.runs {
            let folder =
                format!("runs/{}-{}-{}-{}", run.trial, run.scenario, run.round, run.attempt);
            let at = "2026-01-01T00:00:30Z".to_owned();
            let (run, started) = (run.clone(), folder.clone());
            events.push(Event::Running(Running { at, run: run.clone(), folder: started }));
            let outcome = self.outcome(&start.trial, &run);
            let has_died = matches!(outcome, Outcome::Died(_));
            events.push(Event::Finished(Finished { run, folder, seconds: 100.0, outcome }));
            if has_died {
                class = Ending::Died;
                break;
            }
        }
        events.push(Event::Stopped(Stopped { trial, round, seconds: 1.0, end: end(class) }));
        events
    }

    /// Makes the event that begins a lab's journal.
    pub fn began(&self) -> Event {
        Event::Began(Began {
            at: "2026-01-01T00:00:00Z".to_owned(),
            version: VERSION,
            program: "0.1.0".to_owned(),
            lab: self.lab.name.clone(),
            file: "digest".to_owned(),
        })
    }

    /// Runs the lab to its end, beginning with a journal's events, and appends to it.
    pub fn run(&self, events: &mut Vec<Event>) -> Results {
        events.push(self.began());
        let mut results = Results::from_events(events);
        for _ in 0..5_000 {
            let Next::Run(starts) = next(&self.lab, &self.scenarios, &results) else {
                return results;
            };
            let new = self.events(&starts[0]);
            new.iter().for_each(|event| results.add(event));
            events.extend(new);
        }
        panic!("it does not end");
    }
}

fn end(class: Ending) -> End {
    match class {
        Ending::Stopped => End { class, exit: None, log: Vec::new() },
        class => End {
            class,
            exit: Some("exit code 1".to_owned()),
            log: vec!["INFO starting".to_owned(), "ValueError: no such option".to_owned()],
        },
    }
}
