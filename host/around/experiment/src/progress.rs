//! The progress of a lab, as a person reads it.

use std::fmt;

use lab::estimate::{self, in_words};
use lab::journal::{End, Outcome};
use lab::objective::Objective;
use launch::Leftover;

/// Something that happens while a lab is conducted. Its text may have several lines.
pub enum Progress<'p> {
    /// An engine is about to be started, and this is left to do.
    Remaining(estimate::Progress),
    /// The engine of a trial is started.
    Starting {
        /// The trial's name in tables.
        label: &'p str,
        /// The round.
        round: u32,
    },
    /// The engine did not start.
    NotStarted(&'p End),
    /// The engine answers.
    Ready {
        /// Its name.
        engine: &'p str,
        /// The time that it took, in seconds.
        seconds: f64,
    },
    /// The engine's version is not known.
    NoVersion {
        /// Its name.
        engine: &'p str,
        /// The reason.
        why: &'p str,
    },
    /// A run of this scenario begins.
    Running(&'p str),
    /// A run has ended.
    Finished {
        /// Its scenario.
        scenario: &'p str,
        /// Its outcome.
        outcome: &'p Outcome,
        /// The lab's objective, whose figure is of interest.
        objective: Option<&'p Objective>,
    },
    /// Something of a stopped engine is still there.
    StillThere {
        /// Its name.
        engine: &'p str,
        /// The processes, the port or the memory.
        left: &'p str,
    },
    /// A lab that was killed left an engine behind.
    Leftover(&'p Leftover),
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Remaining(progress) => progress.fmt(f),
            Progress::Starting { label, round } => write!(f, "== {label}, round {round} =="),
            Progress::NotStarted(end) => {
                log(f, end)?;
                f.write_str(end.class.words())?;
                match end.exit.as_deref().unwrap_or_default() {
                    "" => Ok(()),
                    why => write!(f, ": {why}"),
                }
            }
            Progress::Ready { engine, seconds } => {
                write!(f, "{engine} answers after {}", in_words(*seconds))
            }
            Progress::NoVersion { engine, why } => {
                write!(f, "note: the version of {engine} is not known: {why}")
            }
            Progress::Running(scenario) => write!(f, "-- {scenario} --"),
            Progress::Finished {
                scenario,
                outcome,
                objective,
            } => match outcome {
                Outcome::Measured(measured) => {
                    write!(f, "{scenario}: {}", measured.verdict.name())?;
                    let measures = objective.map(Objective::measures).unwrap_or_default();
                    let first = measures.first();
                    match first.and_then(|measure| Some((measure, measured.value(measure)?))) {
                        Some((measure, value)) => write!(f, ", {measure} {value:.4}"),
                        None => Ok(()),
                    }
                }
                Outcome::Failed(why) | Outcome::Stopped(why) => write!(f, "{scenario}: {why}"),
                Outcome::Died(end) => {
                    log(f, end)?;
                    let exit = end.exit.as_deref().unwrap_or_default();
                    write!(f, "{scenario}: {} ({exit})", end.class.words())
                }
            },
            Progress::StillThere { engine, left } => {
                write!(f, "warning: of {engine} there is left: {left}")
            }
            Progress::Leftover(leftover) => write!(f, "note: {leftover}"),
        }
    }
}

fn log(f: &mut fmt::Formatter<'_>, end: &End) -> fmt::Result {
    end.log
        .iter()
        .try_for_each(|line| writeln!(f, "  | {line}"))
}
