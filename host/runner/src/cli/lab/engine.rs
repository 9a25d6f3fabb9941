//! A trial's engine: started, asked until it answers, and stopped. What runs already is only asked.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use launch::{Check, Class, Death, NotReady, Spec, StartError};
use load::transport::Dial;
use model::exchange::Phase;
use runs::environment::Environment;
use session::live::Snapshot;
use session::{Ending as RunEnding, Record, Source, Threads, resolve};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::super::failure::{Exit, Failure};
use super::super::interrupt::Interrupt;
use super::super::measure::Overseer;
use super::super::print::tell;
use super::machine::{Before, Devices};
use lab::journal::{End, Ending};
use lab::{Engine as Described, Trial};

/// The interval at which to look for an interrupt while an engine starts.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time that the death of an engine may take to be noticed.
const NOTICED_WITHIN: Duration = Duration::from_secs(3);
/// The time that a command may take that prints a version.
const VERSION_WITHIN: Duration = Duration::from_secs(60);

/// An engine that answers.
pub(super) struct Running {
    started: Option<launch::Engine>,
    before: Before,
    death: Arc<OnceLock<Death>>,
    /// While it is there, a thread waits for the engine's death.
    _waits: Option<oneshot::Sender<()>>,
}

/// The way an engine is started.
pub(super) struct Starter<'s> {
    /// The runtime that waits.
    pub runtime: &'s Runtime,
    /// The folder of logs.
    pub logs: PathBuf,
    /// The folder of the markers by which leftovers are found.
    pub markers: PathBuf,
    /// The folder that a lab file's paths start from.
    pub home: Option<PathBuf>,
    /// The machine's devices.
    pub devices: Devices,
    /// Secrets of the lab file.
    pub secrets: &'s [String],
    /// Variables of ours that engines do not inherit.
    pub withheld: Vec<String>,
    /// The switch that ends the wait.
    pub interrupt: &'s Interrupt,
}

impl Starter<'_> {
    /// Starts an engine and waits until it answers the question.
    ///
    /// # Errors
    /// How it ended instead.
    pub(super) fn start(
        &self,
        described: &Described,
        trial: &Trial,
        log: &str,
        question: &Source,
    ) -> Result<Running, End> {
        let machine = |words: String| End {
            class: Ending::Machine,
            exit: Some(words),
            log: Vec::new(),
        };
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
        let mut engine = launch::Engine::start(spec).map_err(|error| End {
            class: match &error {
                StartError::Occupied { .. } => Ending::PortTaken,
                StartError::Program { .. } | StartError::NoCommand(_) => Ending::NoCommand,
                StartError::NoDirectory { .. } => Ending::NoCommand,
                StartError::File { .. } => Ending::Machine,
            },
            exit: Some(error.to_string()),
            log: Vec::new(),
        })?;
        let killer = engine.killer();
        (self.interrupt).before_leaving(Some(Box::new(move || killer.kill())));
        let ready = self.runtime.block_on(async {
            tokio::select! {
                ready = engine.ready(async || ask(question.clone()).await) => Some(ready.map(drop)),
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
            None => End {
                class: Ending::Interrupted,
                exit: None,
                log: Vec::new(),
            },
        };
        let stopped = self
            .runtime
            .block_on(engine.stop(async || self.devices.memory(&before)));
        self.interrupt.before_leaving(None);
        if let Some(left) = stopped.left() {
            tell(format_args!(
                "warning: of {} there is left: {left}",
                described.name
            ));
        }
        Err(failed)
    }

    fn wait_for_other(&self, described: &Described, question: &Source) -> Result<Running, End> {
        let waiting = async {
            let asked = async {
                loop {
                    match ask(question.clone()).await {
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
        let end = |class, exit| End {
            class,
            exit,
            log: Vec::new(),
        };
        match self.runtime.block_on(waiting) {
            Some(Ok(())) => Ok(Running {
                started: None,
                before: self.devices.look(),
                death: Arc::default(),
                _waits: None,
            }),
            Some(Err(why)) => Err(end(Ending::NotReady, Some(why))),
            None => Err(end(Ending::Interrupted, None)),
        }
    }

    /// Resolves when the user wants to stop.
    async fn interrupted(&self) {
        while !self.interrupt.came() {
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
    pub(super) fn version(&self, described: &Described, trial: &Trial) -> Option<String> {
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
                tell(format_args!(
                    "note: the version of {} is not known: {why}",
                    described.name
                ));
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
    /// The way it ended by itself, if it did.
    pub(super) fn ended(&self) -> Option<End> {
        self.death.get().map(of_death)
    }

    /// The same after a run that went wrong: the engine's death is noticed a little after its
    /// connections have broken.
    pub(super) fn ended_by_now(&self) -> Option<End> {
        let looks = NOTICED_WITHIN.as_millis() / LOOK_EVERY.as_millis();
        for _ in 0..looks {
            if self.started.is_none() || self.death.get().is_some() {
                break;
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
        self.ended()
    }

    /// Stops it, if the lab started it. Gives how it ended, and how long that took in seconds.
    pub(super) fn stop(self, starter: &Starter<'_>, name: &str) -> (End, f64) {
        let ended = self.ended();
        let Some(engine) = self.started else {
            let end = End {
                class: Ending::Stopped,
                exit: None,
                log: Vec::new(),
            };
            return (end, 0.0);
        };
        let stopped = starter
            .runtime
            .block_on(engine.stop(async || starter.devices.memory(&self.before)));
        starter.interrupt.before_leaving(None);
        if let Some(left) = stopped.left() {
            tell(format_args!("warning: of {name} there is left: {left}"));
        }
        let end = ended.unwrap_or_else(|| End {
            class: Ending::Stopped,
            exit: stopped.exit.map(|exit| exit.to_string()),
            log: Vec::new(),
        });
        (end, stopped.took_s)
    }
}

impl Overseer for Running {
    fn stops(&self, _: &Snapshot) -> bool {
        self.death.get().is_some()
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

/// Asks an engine one real question. What does not answer yet may do so later.
async fn ask(question: Source) -> Check {
    let asked = tokio::task::spawn_blocking(move || answered(&question));
    match asked.await {
        Ok(Ok(())) => Check::Ready,
        Ok(Err(why)) => Check::NotYet(why),
        Err(_) => Check::Never("the question could not be asked".to_owned()),
    }
}

/// Checks that one request is answered: checked and measured as any run, in a folder that is
/// removed.
fn answered(question: &Source) -> Result<(), String> {
    let words = |failure: Failure| failure.words();
    let resolved = resolve(question).map_err(|faults| words(faults.into()))?;
    let connect: Dial = resolved.dial().map_err(|error| words(error.into()))?;
    let checked = resolved
        .check_now(&connect.afresh(), |_| {})
        .map_err(|error| words(error.into()))?;
    let place = tempfile::tempdir().map_err(|cause| cause.to_string())?;
    let record = Record {
        output: place.path().to_owned(),
        started: jiff::Timestamp::now(),
        environment: Environment::look(std::env::args(), None, plugins::Contract::NEWEST.version()),
        repeat: None,
    };
    let run = checked
        .begin(record, Threads)
        .map_err(|error| words(error.into()))?;
    let ending = RunEnding {
        at: jiff::Timestamp::now().to_string(),
        interrupted: false,
    };
    let measured = run
        .load_now(&connect)
        .finish(&ending)
        .map_err(|error| words(error.into()))?;
    let all = measured.folder.read().map_err(|error| error.to_string())?;
    let mut measures = all
        .flatten()
        .filter(|exchange| exchange.phase == Phase::Measure);
    match measures.next() {
        Some(exchange) if exchange.is_ok() => Ok(()),
        Some(exchange) => Err(format!(
            "its answer was {}",
            exchange.outcome.class().name()
        )),
        None => Err("it did not answer".to_owned()),
    }
}

/// True if a failure of the command line is the machine's fault for a lab, false if it is the
/// run's.
pub(super) fn is_of_machine(failure: &Failure) -> bool {
    failure.number() == Exit::Input as u8 || failure.number() == Exit::Bug as u8
}
