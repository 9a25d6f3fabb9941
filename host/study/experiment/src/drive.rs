//! The order of a lab: starts one after another, and in each the engine, its runs, and their
//! outcomes in the journal.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use lab::journal::{
    End, Facts, Failed, Finished, Outcome, Ready, Running as Begins, Starting, Stopped,
};
use lab::{Event, Lab, LabEnd, Measured, Next, Results, RunKey, Start, Trial};
use model::clock::Clock;
use model::private;
use result::finding::Verdict;

use crate::engine::{Place, Starter};
use crate::error::Error;
use crate::folder::OpenJournal;
use crate::now;
use crate::running::{Progress, Running};
use crate::scenarios::Scenarios;
use launch::Check;
use model::exchange::Phase;
use runs::environment::Environment;
use session::check::CheckError;
use session::preflight::PreflightError;
use session::{Ending, MeasuredRun, Record, Source, Threads, resolve};

/// The folder of runs, in the lab's.
const RUNS: &str = "runs";

pub struct Experiment<'b, B> {
    lab: &'b Lab,
    scenarios: &'b Scenarios,
    /// The folder of runs.
    within: PathBuf,
    caller: &'b B,
    starter: Starter<'b, B>,
}

impl<'b, B: Caller> Experiment<'b, B> {
    /// A lab in its folder. Fails if the folder cannot be written.
    pub fn new(
        lab: &'b Lab,
        scenarios: &'b Scenarios,
        place: Place,
        caller: &'b B,
    ) -> Result<Self, Error> {
        let within = place.folder.join(RUNS);
        private::folder(&within).map_err(Error::file("create", &within))?;
        Ok(Experiment {
            lab,
            scenarios,
            within,
            caller,
            starter: Starter::new(caller, place, &lab.secrets, scenarios.key_variables())?,
        })
    }

    /// Waits for the end of the engine of a killed lab. Then makes start after start, with a look
    /// at the results after each, until no start remains or the user wants to stop. A stopped lab
    /// returns no end. Fails if the journal cannot be written, the look fails, or this machine
    /// cannot measure anything.
    pub fn conduct(
        &self,
        journal: &mut OpenJournal,
        mut look: impl FnMut(&Results) -> Result<(), B::Failure>,
    ) -> Result<Option<LabEnd>, B::Failure> {
        if journal.was_killed() {
            self.starter.wait_for_ports(&self.lab.engines);
        }
        let scenarios = self.scenarios.all();
        loop {
            let starts = match lab::next(self.lab, scenarios, journal.results()) {
                Next::Run(starts) => starts,
                Next::Done(end) => return Ok(Some(end)),
            };
            let Some(start) = starts.first() else { return Ok(None) };
            let remaining = lab::progress(self.lab, scenarios, journal.results());
            self.caller.tell(Progress::Remaining(remaining));
            self.start(start, journal)?;
            look(journal.results())?;
            if self.caller.is_interrupted() {
                return Ok(None);
            }
        }
    }

    /// Starts an engine, measures its runs, and stops it. The journal records each step.
    fn start(&self, start: &Start, journal: &mut OpenJournal) -> Result<(), B::Failure> {
        let (trial, round) = (&start.trial, start.round);
        let described = &self.lab.engines[trial.engine];
        let label = self.lab.label(trial);
        self.caller.tell(Progress::Starting(&label, round));
        journal.add(&Event::Starting(Starting {
            at: now().to_string(),
            trial: trial.id.clone(),
            round,
            label,
            command: self.lab.shown_command(trial),
        }))?;
        let clock = Clock::start();
        let question = self.scenarios.question(self.lab, trial)?;
        let log = format!("{}-{round}.log", trial.id);
        let running = match self.starter.start(described, trial, &log, &question) {
            Ok(running) => running,
            Err(end) => {
                let (trial, seconds) = (trial.id.clone(), clock.now().as_secs_f64());
                let failed = Failed { trial, round, seconds, end };
                return Ok(self.failed(failed, journal)?);
            }
        };
        let (devices, driver) = self.starter.devices();
        let facts = Facts {
            version: self.starter.version(described, trial),
            devices,
            driver,
            ..Facts::default()
        };
        let seconds = clock.now().as_secs_f64();
        self.caller.tell(Progress::Ready(&described.name, seconds));
        journal.add(&Event::Ready(Ready {
            trial: trial.id.clone(),
            round,
            seconds,
            ready_after_s: running.ready_after_s(),
            facts,
        }))?;
        let made = start.runs.iter().try_for_each(|run| {
            let goes_on = !self.caller.is_interrupted() && !running.is_dead();
            if goes_on { self.run(trial, run, &running, journal) } else { Ok(()) }
        });
        let (end, seconds) = self.starter.stop(running, &described.name);
        let noted =
            journal.add(&Event::Stopped(Stopped { trial: trial.id.clone(), round, seconds, end }));
        made.and(noted.map_err(B::Failure::from))
    }

    /// Notes that an engine did not start. Fails if the trial is not at fault.
    fn failed(&self, failed: Failed, journal: &mut OpenJournal) -> Result<(), Error> {
        let End { class, exit, .. } = &failed.end;
        let (class, why) = (*class, exit.clone().unwrap_or_default());
        self.caller.tell(Progress::NotStarted(&failed.end));
        journal.add(&Event::Failed(failed))?;
        if class.is_of_trial() || self.caller.is_interrupted() {
            Ok(())
        } else {
            Err(Error::Machine(class, why))
        }
    }

    fn run(
        &self,
        trial: &Trial,
        run: &RunKey,
        running: &Running,
        journal: &mut OpenJournal,
    ) -> Result<(), B::Failure> {
        self.caller.tell(Progress::Running(&run.scenario));
        let source = self.scenarios.source(self.lab, trial, run)?;
        journal.add(&Event::Running(Begins {
            at: now().to_string(),
            run: run.clone(),
            folder: RUNS.to_owned(),
        }))?;
        let clock = Clock::start();
        let order = Order::new(trial, run);
        let made = self.caller.measure(&source, &order, &self.within, running);
        let seconds = clock.now().as_secs_f64();
        let folder = match &made {
            Ok(measured) => {
                running.gave_token(measured.first_token);
                let name = measured.folder.path().file_name().unwrap_or_default();
                format!("{RUNS}/{}", name.to_string_lossy())
            }
            Err(_) => RUNS.to_owned(),
        };
        let (outcome, failure) = self.outcome(made, running);
        let objective = self.lab.objective.as_ref();
        self.caller.tell(Progress::Finished(&run.scenario, &outcome, objective));
        journal.add(&Event::Finished(Finished { run: run.clone(), folder, seconds, outcome }))?;
        failure.map_or(Ok(()), Err)
    }

    /// Returns the outcome of a run, with the error that ends the lab if the machine is at fault.
    fn outcome(
        &self,
        made: Result<session::MeasuredRun, NoResult<B::Failure>>,
        running: &Running,
    ) -> (Outcome, Option<B::Failure>) {
        let went_well = made.as_ref().is_ok_and(|measured| {
            measured.ended.is_ok() && measured.summary.verdict != Verdict::Invalid
        });
        let ended = if went_well || self.caller.is_interrupted() {
            running.ended()
        } else {
            running.ended_by_now()
        };
        // An interrupt may come while the engine's end is waited for.
        if self.caller.is_interrupted() {
            return (Outcome::Stopped("interrupted".to_owned()), None);
        }
        match (made, ended) {
            (_, Some(end)) => (Outcome::Died(end), None),
            (Ok(measured), None) => (self.measured(&measured, running), None),
            (Err(NoResult::Run(why)), None) => (Outcome::Failed(why), None),
            (Err(NoResult::Machine { failure, message }), None) => {
                (Outcome::Stopped(message), Some(failure))
            }
        }
    }

    fn measured(&self, measured: &session::MeasuredRun, running: &Running) -> Outcome {
        if let Err(error) = &measured.ended {
            return Outcome::Failed(error.to_string());
        }
        let summary = &measured.summary;
        let findings = summary.findings.iter();
        let findings = findings.map(|finding| format!("{}: {}", finding.id.name(), finding.seen));
        let objective = self.lab.objective.as_ref();
        let measured = Measured::new(summary, objective, findings.collect());
        Outcome::Measured(measured.started(running.ready_after_s(), running.first_token_after_s()))
    }
}

/// The program that conducts a lab.
pub trait Caller {
    /// The error that ends the lab.
    type Failure: From<Error>;

    /// Measures a scenario, in a folder of its own within this one. The run ends early if the
    /// engine dies. `order` describes the scenario to another process with the same lab file
    /// ([`Scenarios::ordered`](crate::Scenarios::ordered)). Fails if there is no result.
    fn measure(
        &self,
        scenario: &Source,
        order: &Order,
        within: &Path,
        engine: &Running,
    ) -> Result<MeasuredRun, NoResult<Self::Failure>>;

    /// Takes note of what happens.
    fn tell(&self, progress: Progress<'_>);

    /// True if the user wants to stop.
    fn is_interrupted(&self) -> bool;

    /// Sets or removes the clean-up, with its message, of an interrupt that does not wait.
    fn before_leaving(&self, clean_up: Option<Box<dyn FnOnce() -> String + Send>>);
}

/// A run of a lab, for a process that has the same lab file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Order {
    /// The trial's engine, by its position.
    engine: usize,
    /// Its model, by its position.
    model: usize,
    /// The row of each of the engine's dimensions.
    choice: Vec<usize>,
    run: RunKey,
}

impl Order {
    pub(crate) fn new(trial: &Trial, run: &RunKey) -> Self {
        let Trial { engine, model, ref choice, .. } = *trial;
        Order { engine, model, choice: choice.clone(), run: run.clone() }
    }

    /// The trial and the run; `None` if the lab has no such trial.
    pub(crate) fn read(&self, lab: &Lab) -> Option<(Trial, &RunKey)> {
        let described = lab.engines.get(self.engine)?;
        lab.models.get(self.model)?;
        let dimensions = &described.dimensions;
        let mut chosen = self.choice.iter().zip(dimensions);
        let is_there = self.choice.len() == dimensions.len()
            && chosen.all(|(row, dimension)| *row < dimension.rows.len());
        is_there.then_some(())?;
        let trial = lab.trial(self.engine, self.model, &self.choice)?;
        (trial.id == self.run.trial).then_some((trial, &self.run))
    }
}

pub enum NoResult<F> {
    /// The run is at fault, for this reason; others may go well.
    Run(String),
    /// The machine or the input is at fault: nothing can be measured.
    Machine {
        /// The error that ends the lab.
        failure: F,
        /// The same as text, for the journal.
        message: String,
    },
}

/// The runtime to ask engines on. Dropped, it does not wait for an unanswered question.
pub(crate) struct Questions(Option<Runtime>);

impl Questions {
    /// A runtime of one thread. Fails if the system gives none.
    pub(crate) fn new() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| Questions(Some(runtime))).map_err(Error::Runtime)
    }
}

impl Deref for Questions {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Asks an engine one real question. An engine that does not answer yet may do so later.
pub(crate) async fn ask(question: Source, environment: Environment) -> Check {
    let answer = tokio::task::spawn_blocking(move || answered(&question, environment));
    match answer.await {
        Ok(Ok(())) => Check::Ready,
        Ok(Err(why)) => Check::NotYet(why),
        Err(_) => Check::Never("the question could not be asked".to_owned()),
    }
}

/// Checks that one request is answered: like a run, in a folder that is removed.
fn answered(question: &Source, environment: Environment) -> Result<(), String> {
    let resolved = resolve(question).map_err(|faults| faults.to_string())?;
    let connect = resolved.dial().map_err(|error| error.to_string())?;
    let checked = resolved.check_now(&connect.afresh(), |_| {});
    let checked = checked.map_err(|error| match error {
        CheckError::Preflight(PreflightError::Faults(faults)) => faults.to_string(),
        other => other.to_string(),
    })?;
    let place = tempfile::tempdir().map_err(|cause| cause.to_string())?;
    let record =
        Record { output: place.path().to_owned(), started: now(), environment, repeat: None };
    let run = checked.begin(record, Threads).map_err(|error| error.to_string())?;
    let ending = Ending { at: now().to_string(), interrupted: false };
    let measured = run.load_now(&connect).finish(&ending).map_err(|error| error.to_string())?;
    let all = measured.folder.read().map_err(|error| error.to_string())?;
    let mut measures = all.flatten().filter(|exchange| exchange.phase == Phase::Measure);
    match measures.next() {
        Some(exchange) if exchange.is_ok() => Ok(()),
        Some(exchange) => Err(format!("its answer was {}", exchange.outcome.class().name())),
        None => Err("it did not answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_runtime_abandons_a_question() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (answer, answered) = std::sync::mpsc::channel::<()>();
        runtime.spawn_blocking(move || answered.recv());
        drop(Questions(Some(runtime)));
        // A runtime that is dropped as usual waits for the answer, which comes afterwards.
        drop(answer);
    }
}
