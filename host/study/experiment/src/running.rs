//! An engine that answers, and its end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, io};

use lab::journal::{End, Ending, Outcome};
use launch::{Class, Death, NotReady};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::machine::Baseline;
use lab::estimate;
use lab::objective::Objective;
use model::duration::roughly;

/// The interval at which to look for an interrupt, or for an engine's death.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time that the death of an engine may take to be noticed.
const NOTICED_WITHIN: Duration = Duration::from_secs(3);

#[derive(Default)]
pub struct Running {
    /// Its processes, if the lab started it.
    pub(crate) started: Option<launch::Engine>,
    /// The devices before it was started.
    pub(crate) before: Baseline,
    first_token_after_s: OnceLock<f64>,
    death: Arc<OnceLock<Death>>,
    /// Keeps a thread that waits for the engine's death.
    _waits: Option<oneshot::Sender<()>>,
}

impl Running {
    /// An engine of the lab. A thread of its own waits for its death, because runs block this one.
    pub(crate) fn started(engine: launch::Engine, before: Baseline) -> io::Result<Self> {
        let death = Arc::default();
        let waits = wait(engine.death(), &death)?;
        Ok(Running { started: Some(engine), death, _waits: Some(waits), ..Running::other(before) })
    }

    /// An engine that runs without the lab.
    pub(crate) fn other(before: Baseline) -> Self {
        Running { before, ..Running::default() }
    }

    /// Seconds from the start of its process until it answered; `None` if the lab did not start it.
    pub(crate) fn ready_after_s(&self) -> Option<f64> {
        self.started.as_ref()?.ready_after_s()
    }

    /// Seconds from the start of its process until the first token of its first run, of the warm-up
    /// or of the measurement. `None` before that, and if the lab did not start it.
    pub(crate) fn first_token_after_s(&self) -> Option<f64> {
        self.first_token_after_s.get().copied()
    }

    /// Records the time of a run's first token. The first run with a token counts.
    pub(crate) fn gave_token(&self, first: Option<Instant>) {
        if let Some((engine, at)) = self.started.as_ref().zip(first) {
            let after = engine.since_start(at).as_secs_f64();
            self.first_token_after_s.get_or_init(|| after);
        }
    }

    /// True if it has ended by itself.
    pub fn is_dead(&self) -> bool {
        self.death.get().is_some()
    }

    /// The end of the engine, if it ended by itself.
    pub(crate) fn ended(&self) -> Option<End> {
        self.death.get().map(of_death)
    }

    /// The end of the engine after a failed run: death shows after the connections have broken.
    pub(crate) fn ended_by_now(&self) -> Option<End> {
        let looks = NOTICED_WITHIN.as_millis() / LOOK_EVERY.as_millis();
        for _ in 0..looks {
            if self.started.is_none() || self.is_dead() {
                break;
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
        self.ended()
    }
}

/// Waits for an engine's death on a thread that ends with the sender.
fn wait(
    death: impl Future<Output = Death> + Send + 'static,
    seen: &Arc<OnceLock<Death>>,
) -> io::Result<oneshot::Sender<()>> {
    let (sender, gone) = oneshot::channel::<()>();
    let seen = Arc::clone(seen);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("engine".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                death = death => drop(seen.set(death)),
                _ = gone => {}
            }
        });
    })?;
    Ok(sender)
}

pub(crate) fn ended(class: Ending, exit: Option<String>) -> End {
    End { class, exit, log: Vec::new() }
}

fn of_death(death: &Death) -> End {
    let class = match death.class {
        Class::OutOfMemory | Class::OutOfDeviceMemory => Ending::OutOfMemory,
        Class::PortTaken => Ending::PortTaken,
        _ if death.before_ready => Ending::DiedBeforeReady,
        _ => Ending::Died,
    };
    let evidence = death.evidence.iter().map(|line| format!(": {line}"));
    End {
        class,
        exit: Some(format!("{}, {}{}", death.exit, death.class, evidence.collect::<String>())),
        log: death.last_lines.clone(),
    }
}

pub(crate) fn of_not_ready(not_ready: &NotReady) -> End {
    match not_ready {
        NotReady::Died(death) => of_death(death),
        NotReady::Lives { why, last_lines } => {
            End { class: Ending::NotReady, exit: Some(why.clone()), log: last_lines.clone() }
        }
    }
}

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
