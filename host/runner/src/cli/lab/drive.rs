//! One start of a lab: the engine, its runs one after another, and what each came to in the
//! journal.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use tokio::runtime::Runtime;

use super::super::failure::{Exit, Failure};
use super::super::interrupt::Interrupt;
use super::super::measure::{Place, measured};
use super::super::print::tell;
use super::super::watch::Watching;
use super::engine::{Running, Starter, is_of_machine};
use super::journal::OpenJournal;
use super::machine::Devices;
use super::overlay::Scenarios;
use lab::journal::{
    End, Facts, Failed, Finished, Outcome, Ready, Running as Begins, Starting, Stopped,
};
use lab::{Event, Lab, Measured, Results, RunKey, Start, Trial};
use launch::{Leftover, State};
use model::clock::Clock;
use model::private;
use model::redact::Known;
use result::finding::Verdict;
use session::resolve;

/// The folder of runs, in the lab's.
const RUNS: &str = "runs";
/// The folder of engines' logs, in the lab's.
const LOGS: &str = "logs";

/// A lab that runs.
pub(super) struct LabRun<'b> {
    lab: &'b Lab,
    scenarios: &'b Scenarios,
    folder: &'b Path,
    watching: &'b Watching,
    interrupt: &'b Interrupt,
    runtime: Questions,
    markers: PathBuf,
    home: Option<PathBuf>,
    devices: Devices,
}

/// The runtime on which engines are asked. When it is dropped, it does not wait for a question that
/// a server leaves without an answer.
struct Questions(Option<Runtime>);

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

impl<'b> LabRun<'b> {
    /// A lab in this folder. Leftovers are found by the markers, in one folder for all labs of a
    /// user. The paths of the lab file start from `home`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub(super) fn new(
        lab: &'b Lab,
        scenarios: &'b Scenarios,
        folder: &'b Path,
        markers: PathBuf,
        home: Option<&'b Path>,
        watching: &'b Watching,
        interrupt: &'b Interrupt,
    ) -> Result<Self, Failure> {
        for place in [RUNS, LOGS] {
            let place = folder.join(place);
            private::folder(&place).map_err(|cause| {
                Failure::new(
                    Exit::Input,
                    format!("cannot create `{}`: {cause}", place.display()),
                )
            })?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| Failure::new(Exit::Bug, format!("no runtime: {cause}")))?;
        interrupt.between_runs(Some("stopping the engine"));
        Ok(LabRun {
            lab,
            scenarios,
            folder,
            watching,
            interrupt,
            runtime: Questions(Some(runtime)),
            markers,
            home: home.map(Path::to_owned),
            devices: Devices::here(),
        })
    }

    fn starter(&self) -> Starter<'_> {
        Starter {
            runtime: &self.runtime,
            logs: self.folder.join(LOGS),
            markers: self.markers.clone(),
            home: self.home.clone(),
            devices: self.devices.clone(),
            secrets: &self.lab.secrets,
            withheld: self.scenarios.key_variables(),
            interrupt: self.interrupt,
        }
    }

    /// Ends what a lab that was killed left behind.
    ///
    /// # Errors
    /// If the markers cannot be read.
    pub(super) fn clean_up(&self) -> Result<(), Failure> {
        let found = self.runtime.block_on(launch::clean_up(&self.markers));
        let found = found.map_err(|cause| {
            Failure::new(
                Exit::Input,
                format!(
                    "the folder of running engines `{}` is not used: {cause}; name a folder of your own with --cache-dir",
                    self.markers.display()
                ),
            )
        })?;
        let others = |leftover: &&Leftover| !matches!(leftover.state, State::InUse { .. });
        for leftover in found.iter().filter(others) {
            tell(format_args!("note: {leftover}"));
        }
        Ok(())
    }

    /// Starts an engine, makes its runs, and stops it. What happens goes into the journal.
    ///
    /// # Errors
    /// If the journal cannot be written, or the machine is at fault: nothing can be measured then.
    pub(super) fn start(
        &self,
        start: &Start,
        journal: &mut OpenJournal,
        results: &mut Results,
    ) -> Result<(), Failure> {
        let (trial, round) = (&start.trial, start.round);
        let described = &self.lab.engines[trial.engine];
        let label = self.lab.label(trial);
        tell(format_args!("== {label}, round {round} =="));
        let starter = self.starter();
        journal.add(
            &Event::Starting(Starting {
                at: now(),
                trial: trial.id.clone(),
                round,
                label: label.clone(),
                command: self.shown(trial, described),
            }),
            results,
        )?;
        let clock = Clock::start();
        let question = self.scenarios.question(self.lab, trial)?;
        let log = format!("{}-{round}.log", trial.id);
        let running = match starter.start(described, trial, &log, &question) {
            Ok(running) => running,
            Err(end) => {
                return self.failed(start, end, clock.now().as_secs_f64(), journal, results);
            }
        };
        let (devices, driver) = self.devices.facts();
        let facts = Facts {
            version: starter.version(described, trial),
            devices,
            driver,
            ..Facts::default()
        };
        let seconds = clock.now().as_secs_f64();
        tell(format_args!(
            "{} answers after {}",
            described.name,
            lab::estimate::in_words(seconds)
        ));
        let ready = Ready {
            trial: trial.id.clone(),
            round,
            seconds,
            facts,
        };
        journal.add(&Event::Ready(ready), results)?;
        let made = self.runs(start, &running, journal, results);
        let (end, seconds) = running.stop(&starter, &described.name);
        let stopped = Stopped {
            trial: trial.id.clone(),
            round,
            seconds,
            end,
        };
        let noted = journal.add(&Event::Stopped(stopped), results);
        made.and(noted)
    }

    /// A trial's command as it is written down.
    fn shown(&self, trial: &Trial, described: &lab::Engine) -> String {
        Known::new(&self.lab.secrets).redact(&trial.recorded(described))
    }

    fn failed(
        &self,
        start: &Start,
        end: End,
        seconds: f64,
        journal: &mut OpenJournal,
        results: &mut Results,
    ) -> Result<(), Failure> {
        let class = end.class;
        let why = end.exit.clone().unwrap_or_default();
        for line in &end.log {
            tell(format_args!("  | {line}"));
        }
        if why.is_empty() {
            tell(class.words())
        } else {
            tell(format_args!("{}: {why}", class.words()))
        }
        let failed = Failed {
            trial: start.trial.id.clone(),
            round: start.round,
            seconds,
            end,
        };
        journal.add(&Event::Failed(failed), results)?;
        if class.is_of_trial() || self.interrupt.came() {
            Ok(())
        } else {
            Err(Failure::new(
                Exit::Input,
                format!(
                    "{}: {why}; mend that, and run the same command to go on",
                    class.words()
                ),
            ))
        }
    }

    fn runs(
        &self,
        start: &Start,
        running: &Running,
        journal: &mut OpenJournal,
        results: &mut Results,
    ) -> Result<(), Failure> {
        for run in &start.runs {
            if self.interrupt.came() || running.ended().is_some() {
                break;
            }
            self.run(start, run, running, journal, results)?;
        }
        Ok(())
    }

    fn run(
        &self,
        start: &Start,
        run: &RunKey,
        running: &Running,
        journal: &mut OpenJournal,
        results: &mut Results,
    ) -> Result<(), Failure> {
        tell(format_args!("-- {} --", run.scenario));
        let source = self.scenarios.source(self.lab, &start.trial, run)?;
        let begins = Begins {
            at: now(),
            run: run.clone(),
            folder: RUNS.to_owned(),
        };
        journal.add(&Event::Running(begins), results)?;
        let clock = Clock::start();
        let within = self.folder.join(RUNS);
        let place = Place {
            within: &within,
            repeat: None,
            overseer: Some(running),
        };
        let made = resolve(&source)
            .map_err(Failure::from)
            .and_then(|resolved| measured(resolved, place, self.watching, self.interrupt));
        self.interrupt.done();
        let seconds = clock.now().as_secs_f64();
        let mut folder = RUNS.to_owned();
        let went_well = made.as_ref().is_ok_and(|measured| {
            measured.ended.is_ok() && measured.summary.verdict != Verdict::Invalid
        });
        let ended = if went_well || self.interrupt.came() {
            running.ended()
        } else {
            running.ended_by_now()
        };
        let outcome = match (made, ended) {
            (Ok(measured), ended) => {
                let name = measured.folder.path().file_name().unwrap_or_default();
                folder = format!("{RUNS}/{}", name.to_string_lossy());
                match (ended, measured.ended) {
                    _ if self.interrupt.came() => Outcome::Stopped("interrupted".to_owned()),
                    (Some(end), _) => Outcome::Died(end),
                    (None, Err(error)) => Outcome::Failed(error.to_string()),
                    (None, Ok(())) => {
                        let summary = &measured.summary;
                        let findings = summary.findings.iter();
                        let findings = findings
                            .map(|finding| format!("{}: {}", finding.id.name(), finding.seen));
                        Outcome::Measured(Measured::of(
                            summary,
                            self.lab.objective.as_ref(),
                            findings.collect(),
                        ))
                    }
                }
            }
            (Err(_), _) if self.interrupt.came() => Outcome::Stopped("interrupted".to_owned()),
            (Err(_), Some(end)) => Outcome::Died(end),
            (Err(failure), None) if is_of_machine(&failure) => {
                let stopped = Outcome::Stopped(failure.words());
                self.finished(run, folder, seconds, stopped, journal, results)?;
                return Err(failure);
            }
            (Err(failure), None) => Outcome::Failed(failure.words()),
        };
        self.finished(run, folder, seconds, outcome, journal, results)
    }

    fn finished(
        &self,
        run: &RunKey,
        folder: String,
        seconds: f64,
        outcome: Outcome,
        journal: &mut OpenJournal,
        results: &mut Results,
    ) -> Result<(), Failure> {
        match &outcome {
            Outcome::Measured(measured) => {
                let figure = self.lab.objective.as_ref().and_then(|objective| {
                    let measure = objective.measures().into_iter().next()?;
                    Some(format!(", {measure} {:.4}", measured.value(&measure)?))
                });
                tell(format_args!(
                    "{}: {}{}",
                    run.scenario,
                    measured.verdict.name(),
                    figure.unwrap_or_default()
                ));
            }
            Outcome::Failed(why) | Outcome::Stopped(why) => {
                tell(format_args!("{}: {why}", run.scenario));
            }
            Outcome::Died(end) => {
                for line in &end.log {
                    tell(format_args!("  | {line}"));
                }
                let exit = end.exit.as_deref().unwrap_or_default();
                tell(format_args!(
                    "{}: {} ({exit})",
                    run.scenario,
                    end.class.words()
                ));
            }
        }
        let finished = Finished {
            run: run.clone(),
            folder,
            seconds,
            outcome,
        };
        journal.add(&Event::Finished(finished), results)
    }
}

impl Drop for LabRun<'_> {
    fn drop(&mut self) {
        self.interrupt.between_runs(None);
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_an_answer_holds_nobody_up() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let (answer, answered) = std::sync::mpsc::channel::<()>();
        runtime.spawn_blocking(move || answered.recv());
        drop(Questions(Some(runtime)));
        // A runtime that is dropped as usual waits for the answer, which comes afterwards.
        drop(answer);
    }
}
