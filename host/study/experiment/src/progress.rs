//! The progress of a lab, as its user reads it.

use std::fmt;

use lab::estimate;
use lab::journal::{End, Outcome};
use lab::objective::Objective;
use model::duration::roughly;

/// Something that happens while a lab is conducted. Its text may have several lines.
pub enum Progress<'p> {
    /// An engine is about to be started, and this work remains.
    Remaining(estimate::Progress),
    /// The engine of the trial with this label is started in this round.
    Starting(&'p str, u32),
    /// The engine did not start.
    NotStarted(&'p End),
    /// The engine with this name answers after this number of seconds.
    Ready(&'p str, f64),
    /// A run of this scenario begins.
    Running(&'p str),
    /// The run of this scenario has ended. A measured run shows the objective's figure.
    Finished(&'p str, &'p Outcome, Option<&'p Objective>),
    /// The lab lacks something, or made a choice by itself.
    Note(String),
    /// Something may mislead the runs that follow.
    Warning(String),
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Remaining(progress) => progress.fmt(f),
            Progress::Starting(label, round) => write!(f, "== {label}, round {round} =="),
            Progress::NotStarted(end) => {
                log(f, end)?;
                f.write_str(end.class.label())?;
                match end.exit.as_deref().unwrap_or_default() {
                    "" => Ok(()),
                    why => write!(f, ": {why}"),
                }
            }
            Progress::Ready(engine, seconds) => {
                write!(f, "{engine} answers after {}", roughly(*seconds))
            }
            Progress::Running(scenario) => write!(f, "-- {scenario} --"),
            Progress::Finished(scenario, Outcome::Measured(measured), objective) => {
                write!(f, "{scenario}: {}", measured.verdict.name())?;
                let measures = objective.map(Objective::measures).unwrap_or_default();
                let first = measures.first();
                match first.and_then(|measure| Some((measure, measured.value(measure)?))) {
                    Some((measure, value)) => write!(f, ", {measure} {value:.4}"),
                    None => Ok(()),
                }
            }
            Progress::Finished(scenario, Outcome::Failed(why) | Outcome::Stopped(why), _) => {
                write!(f, "{scenario}: {why}")
            }
            Progress::Finished(scenario, Outcome::Died(end), _) => {
                log(f, end)?;
                let exit = end.exit.as_deref().unwrap_or_default();
                write!(f, "{scenario}: {} ({exit})", end.class.label())
            }
            Progress::Note(message) => write!(f, "note: {message}"),
            Progress::Warning(message) => write!(f, "warning: {message}"),
        }
    }
}

fn log(f: &mut fmt::Formatter<'_>, end: &End) -> fmt::Result {
    end.log.iter().try_for_each(|line| writeln!(f, "  | {line}"))
}
