//! A trial's engine: started, asked until it answers, and stopped. What runs already is only asked.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lab::journal::{End, Ending};
use lab::{Engine as Described, Trial};
use launch::{Check, Class, Death, Leftover, NotReady, Spec, StartError, State, Stopped};
use runs::environment::Environment;
use session::Source;
use tokio::sync::oneshot;

use crate::bench::Bench;
use crate::error::Error;
use crate::machine::{Before, Devices};
use crate::progress::Progress;
use crate::question::{Questions, ask};

/// The interval at which to look for an interrupt while an engine starts.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time that the death of an engine may take to be noticed.
const NOTICED_WITHIN: Duration = Duration::from_secs(3);
/// The time that a command may take that prints a version.
const VERSION_WITHIN: Duration = Duration::from_secs(60);

/// An engine that answers.
pub struct Running {
    started: Option<launch::Engine>,
    before: Before,
    death: Arc<OnceLock<Death>>,
    /// While it is there, a thread waits for the engine's death.
    _waits: Option<oneshot::Sender<()>>,
}

/// The way an engine is started.
pub(crate) struct Starter<'b, B> {
    /// The bench, which may end the wait.
    pub bench: &'b B,
    /// The runtime that waits.
    pub runtime: Questions,
    /// The folder of logs.
    pub logs: PathBuf,
    /// The folder of the markers by which leftovers are found.
    pub markers: PathBuf,
    /// The folder that a lab file's paths start from.
    pub home: Option<PathBuf>,
    /// The place of the questions.
    pub environment: Environment,
    /// The machine's devices.
    pub devices: Devices,
    /// Secrets of the lab file.
    pub secrets: &'b [String],
    /// Variables of ours that engines do not inherit.
    pub withheld: Vec<String>,
}

impl<B: Bench> Starter<'_, B> {
    /// Ends what a lab that was killed left behind.
    ///
    /// # Errors
    /// If the markers cannot be read.
    pub(crate) fn clean_up(&self) -> Result<(), Error> {
        let found = self.runtime.block_on(launch::clean_up(&self.markers));
        let found = found.map_err(|cause| Error::Markers {
            path: self.markers.clone(),
            cause,
        })?;
        let others = |leftover: &&Leftover| !matches!(leftover.state, State::InUse { .. });
        for leftover in found.iter().filter(others) {
            self.bench.tell(Progress::Leftover(leftover));
        }
        Ok(())
    }

    /// Starts an engine and waits until it answers the question.
    ///
    /// # Errors
    /// How it ended instead.
    pub(crate) fn start(
        &self,
        described: &Described,
        trial: &Trial,
        log: &str,
        question: &Source,
    ) -> Result<Running, End> {
        let machine = |words: String| ended(Ending::Machine, Some(words));
        let Some(command) = trial.command(described) else {
            return self.wait_for_other(described, question);
        };
        let environment = environment(described, trial).map_err(machine)?;
        let mut spec = Spec::new(
            &described.name,
            command,
            (&described.host, described.port),
            self.logs.join(log),
            &self.markers,
        );
        spec.environment = environment;
        spec.withheld.clone_from(&self.withheld);
        spec.secrets = self.secrets.to_vec();
        spec.directory = self.directory(described);
        spec.ready_timeout = described.ready_timeout;
        spec.stop_timeout = described.stop_timeout;
        let before = self.devices.look();
        let _entered = self.runtime.enter();
        let mut engine = launch::Engine::start(spec).map_err(|error| {
            let class = match &error {
                StartError::Occupied { .. } => Ending::PortTaken,
                StartError::Program { .. } | StartError::NoCommand(_) => Ending::NoCommand,
                StartError::NoDirectory { .. } => Ending::NoCommand,
                StartError::File { .. } => Ending::Machine,
            };
            ended(class, Some(error.to_string()))
        })?;
        let killer = engine.killer();
        (self.bench).before_leaving(Some(Box::new(move || killer.kill())));
        let ready = self.runtime.block_on(async {
            tokio::select! {
                ready = engine.ready(async || self.ask(question).await) => Some(ready.map(drop)),
                () = self.interrupted() => None,
            }
        });
        let failed = match ready {
            Some(Ok(())) => {
                let death = Arc::default();
                let waits =
                    wait(engine.death(), &death).map_err(|cause| machine(cause.to_string()))?;
                return Ok(Running {
                    started: Some(engine),
                    before,
                    death,
                    _waits: Some(waits),
                });
            }
            Some(Err(not_ready)) => of_not_ready(&not_ready),
            None => ended(Ending::Interrupted, None),
        };
        self.stop(engine, &before, &described.name);
        Err(failed)
    }

    /// Stops an engine, and tells what is left of it.
    fn stop(&self, engine: launch::Engine, before: &Before, name: &str) -> Stopped {
        let stopped = self
            .runtime
            .block_on(engine.stop(async || self.devices.memory(before)));
        self.bench.before_leaving(None);
        if let Some(left) = stopped.left() {
            self.bench.tell(Progress::StillThere {
                engine: name,
                left: &left,
            });
        }
        stopped
    }

    /// Waits until an engine answers that the lab does not start.
    fn wait_for_other(&self, described: &Described, question: &Source) -> Result<Running, End> {
        let waiting = async {
            let asked = async {
                loop {
                    match self.ask(question).await {
                        Check::Ready => return Ok(()),
                        Check::Never(why) => return Err(why),
                        Check::NotYet(_) => tokio::time::sleep(LOOK_EVERY * 10).await,
                    }
                }
            };
            tokio::select! {
                asked = asked => Some(asked),
                () = self.interrupted() => None,
                () = tokio::time::sleep(described.ready_timeout) => Some(Err("it does not answer".to_owned())),
            }
        };
        match self.runtime.block_on(waiting) {
            Some(Ok(())) => Ok(Running {
                started: None,
                before: self.devices.look(),
                death: Arc::default(),
                _waits: None,
            }),
            Some(Err(why)) => Err(ended(Ending::NotReady, Some(why))),
            None => Err(ended(Ending::Interrupted, None)),
        }
    }

    async fn ask(&self, question: &Source) -> Check {
        ask(question.clone(), self.environment.clone()).await
    }

    /// Resolves when the user wants to stop.
    async fn interrupted(&self) {
        while !self.bench.is_interrupted() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The folder that an engine is started in: what the lab file says is relative to the lab file.
    fn directory(&self, described: &Described) -> Option<PathBuf> {
        let dir = described.dir.as_ref()?;
        Some(match &self.home {
            Some(home) => home.join(dir),
            None => PathBuf::from(dir),
        })
    }

    /// Returns the engine's version as a command prints it.
    pub(crate) fn version(&self, described: &Described, trial: &Trial) -> Option<String> {
        let command = trial.version_command(described)?;
        // Where the engine runs, and as it runs.
        let environment = environment(described, trial).unwrap_or_default();
        let directory = self.directory(described);
        let asked = launch::version(
            &command,
            &environment,
            &self.withheld,
            directory.as_deref(),
            VERSION_WITHIN,
        );
        match self.runtime.block_on(asked) {
            Ok(version) => Some(version),
            Err(why) => {
                self.bench.tell(Progress::NoVersion {
                    engine: &described.name,
                    why: &why.to_string(),
                });
                None
            }
        }
    }
}

/// The variables of a trial's engine. A value that is not written in the lab file itself is ours,
/// and may be a secret; so may one whose name says so.
fn environment(
    described: &Described,
    trial: &Trial,
) -> Result<Vec<(String, launch::Value)>, String> {
    let written = |name: &str, value: &str| {
        let mut own = trial.env.iter();
        own.any(|(key, text)| key == name && text == value) && !model::redact::is_secret(name)
    };
    let environment = trial.environment(described, |name| std::env::var(name).ok())?;
    let values = environment.into_iter().map(|(name, value)| {
        if written(&name, &value) {
            (name, launch::Value::Plain(value))
        } else {
            (name, launch::Value::Secret(value))
        }
    });
    Ok(values.collect())
}

impl Running {
    /// True if it has ended by itself.
    pub fn is_dead(&self) -> bool {
        self.death.get().is_some()
    }

    /// The way it ended by itself, if it did.
    pub(crate) fn ended(&self) -> Option<End> {
        self.death.get().map(of_death)
    }

    /// The same after a run that went wrong: the engine's death is noticed a little after its
    /// connections have broken.
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

    /// Stops it, if the lab started it. Gives how it ended, and how long that took in seconds.
    pub(crate) fn stop<B: Bench>(self, starter: &Starter<'_, B>, name: &str) -> (End, f64) {
        let death = self.ended();
        let Some(engine) = self.started else {
            return (ended(Ending::Stopped, None), 0.0);
        };
        let stopped = starter.stop(engine, &self.before, name);
        let exit = stopped.exit.map(|exit| exit.to_string());
        let end = death.unwrap_or_else(|| ended(Ending::Stopped, exit));
        (end, stopped.took_s)
    }
}

/// Waits for an engine's death on a thread of its own, because runs block this one. The thread ends
/// with the sender.
fn wait(
    death: impl Future<Output = Death> + Send + 'static,
    seen: &Arc<OnceLock<Death>>,
) -> std::io::Result<oneshot::Sender<()>> {
    let (sender, gone) = oneshot::channel::<()>();
    let seen = Arc::clone(seen);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("engine".into())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    death = death => drop(seen.set(death)),
                    _ = gone => {}
                }
            });
        })?;
    Ok(sender)
}

/// An end without a log.
fn ended(class: Ending, exit: Option<String>) -> End {
    End {
        class,
        exit,
        log: Vec::new(),
    }
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
        exit: Some(format!(
            "{}, {}{}",
            death.exit,
            death.class,
            evidence.collect::<String>()
        )),
        log: death.last_lines.clone(),
    }
}

fn of_not_ready(not_ready: &NotReady) -> End {
    match not_ready {
        NotReady::Died(death) => of_death(death),
        other => End {
            class: Ending::NotReady,
            exit: Some(other.to_string()),
            log: other.last_lines().to_vec(),
        },
    }
}
