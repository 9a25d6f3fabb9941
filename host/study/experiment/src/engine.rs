//! A trial's engine: started, asked until it answers, and stopped. An engine that runs already is
//! only asked.

use std::path::PathBuf;
use std::time::Duration;

use lab::journal::{End, Ending};
use lab::{Engine as Described, Trial};
use launch::{Check, Spec, StartError, Stop, Value};
use model::clock::Clock;
use model::private;
use runs::environment::Environment;
use session::Source;

use crate::drive::{Caller, Questions, ask};
use crate::error::Error;
use crate::machine::{Baseline, Devices};
use crate::running::{LOOK_EVERY, Progress, Running, ended, of_not_ready};

/// The folder of engines' logs, in the lab's.
const LOGS: &str = "logs";
/// The time that a killed engine may take to vanish.
const ENDED_WITHIN: Duration = Duration::from_secs(15);
/// The time that a command may take to print a version.
const VERSION_WITHIN: Duration = Duration::from_secs(60);

pub struct Place {
    pub folder: PathBuf,
    /// The folder that the lab file's paths start from.
    pub home: Option<PathBuf>,
    /// The machine and the program.
    pub environment: Environment,
}

/// The starter of engines, which asks them and stops them too.
pub(crate) struct Starter<'b, B> {
    caller: &'b B,
    place: Place,
    logs: PathBuf,
    runtime: Questions,
    devices: Devices,
    secrets: &'b [String],
    /// Variables of ours that engines do not inherit.
    withheld: Vec<String>,
}

impl<'b, B: Caller> Starter<'b, B> {
    /// The starter of a lab's engines, which keeps secrets out of their logs, and these variables
    /// from them. Fails if the folder of logs cannot be made, or there is no runtime to wait on.
    pub(crate) fn new(
        caller: &'b B,
        place: Place,
        secrets: &'b [String],
        withheld: Vec<String>,
    ) -> Result<Self, Error> {
        let logs = place.folder.join(LOGS);
        private::folder(&logs).map_err(Error::file("create", &logs))?;
        Ok(Starter {
            caller,
            place,
            logs,
            runtime: Questions::new()?,
            devices: Devices::here(),
            secrets,
            withheld,
        })
    }

    /// The names of the machine's devices, and their driver's version.
    pub(crate) fn devices(&self) -> (Vec<String>, Option<String>) {
        self.devices.facts()
    }

    /// Waits until a killed lab's engine has ended: its ports are free, or it had its time to stop.
    pub(crate) fn wait_for_ports(&self, engines: &[Described]) {
        for engine in engines.iter().filter(|engine| engine.launch.is_some()) {
            let clock = Clock::start();
            let within = (engine.stop_timeout + ENDED_WITHIN).into();
            while launch::check_port(&engine.host, engine.port).is_err()
                && clock.now() < within
                && !self.caller.is_interrupted()
            {
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }

    /// Starts an engine and waits for its answer to the question. Errors: the end of the engine.
    pub(crate) fn start(
        &self,
        described: &Described,
        trial: &Trial,
        log: &str,
        question: &Source,
    ) -> Result<Running, End> {
        let machine = |message: String| ended(Ending::Machine, Some(message));
        let Some(command) = trial.command(described) else {
            return self.wait_for_other(described, question);
        };
        let environment = environment(described, trial).map_err(machine)?;
        let address = (&described.host, described.port);
        let spec = Spec {
            environment,
            withheld: self.withheld.clone(),
            secrets: self.secrets.to_vec(),
            directory: self.directory(described),
            ready_timeout: described.ready_timeout,
            stop_timeout: described.stop_timeout,
            ..Spec::new(&described.name, command, address, self.logs.join(log))
        };
        let before = self.devices.look();
        let _entered = self.runtime.enter();
        let mut engine = launch::Engine::start(spec).map_err(|error| {
            let class = match &error {
                StartError::Occupied { .. } => Ending::PortTaken,
                StartError::Program { .. } | StartError::NoCommand(_) => Ending::NoCommand,
                StartError::NoDirectory { .. } => Ending::NoCommand,
                StartError::File { .. } | StartError::Watch { .. } => Ending::Machine,
            };
            ended(class, Some(error.to_string()))
        })?;
        let killer = engine.killer();
        (self.caller).before_leaving(Some(Box::new(move || killer.kill())));
        let ready = self.runtime.block_on(async {
            tokio::select! {
                ready = engine.ready(async || self.ask(question).await) => Some(ready.map(drop)),
                () = self.interrupted() => None,
            }
        });
        let failed = match ready {
            Some(Ok(())) => {
                return Running::started(engine, before)
                    .map_err(|cause| machine(cause.to_string()));
            }
            Some(Err(not_ready)) => of_not_ready(&not_ready),
            None => ended(Ending::Interrupted, None),
        };
        self.end(engine, &before, &described.name);
        Err(failed)
    }

    /// Stops an engine, if the lab started it. Returns its end, and the seconds that it took.
    pub(crate) fn stop(&self, running: Running, name: &str) -> (End, f64) {
        let death = running.ended();
        let Some(engine) = running.started else { return (ended(Ending::Stopped, None), 0.0) };
        let stopped = self.end(engine, &running.before, name);
        let exit = stopped.exit.map(|exit| exit.to_string());
        let end = death.unwrap_or_else(|| ended(Ending::Stopped, exit));
        (end, stopped.took_s)
    }

    /// Ends the processes of an engine, and returns their end.
    fn end(&self, engine: launch::Engine, before: &Baseline, name: &str) -> Stop {
        let stopped = self.runtime.block_on(engine.stop(async || self.devices.memory(before)));
        self.caller.before_leaving(None);
        if let Some(left) = stopped.left() {
            let message = format!("{name} left processes: {left}");
            self.caller.tell(Progress::Warning(message));
        }
        stopped
    }

    /// Waits until an engine that the lab does not start answers.
    fn wait_for_other(&self, described: &Described, question: &Source) -> Result<Running, End> {
        let waiting = async {
            let answer = async {
                loop {
                    match self.ask(question).await {
                        Check::Ready => return Ok(()),
                        Check::Never(why) => return Err(why),
                        Check::NotYet(_) => tokio::time::sleep(LOOK_EVERY * 10).await,
                    }
                }
            };
            tokio::select! {
                answer = answer => Some(answer),
                () = self.interrupted() => None,
                () = tokio::time::sleep(described.ready_timeout) => Some(Err("it does not answer".to_owned())),
            }
        };
        match self.runtime.block_on(waiting) {
            Some(Ok(())) => Ok(Running::other(self.devices.look())),
            Some(Err(why)) => Err(ended(Ending::NotReady, Some(why))),
            None => Err(ended(Ending::Interrupted, None)),
        }
    }

    async fn ask(&self, question: &Source) -> Check {
        ask(question.clone(), self.place.environment.clone()).await
    }

    /// Resolves when the user wants to stop.
    async fn interrupted(&self) {
        while !self.caller.is_interrupted() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The folder to start an engine in: paths in the lab file are relative to the lab file.
    fn directory(&self, described: &Described) -> Option<PathBuf> {
        let dir = described.dir.as_ref()?;
        Some(self.place.home.as_ref().map_or_else(|| PathBuf::from(dir), |home| home.join(dir)))
    }

    /// Returns the engine's version as a command prints it.
    pub(crate) fn version(&self, described: &Described, trial: &Trial) -> Option<String> {
        let command = trial.version_command(described)?;
        // In the engine's folder and with its environment.
        let environment = environment(described, trial).unwrap_or_default();
        let (directory, withheld) = (self.directory(described), &self.withheld);
        let directory = directory.as_deref();
        let version = launch::version(&command, &environment, withheld, directory, VERSION_WITHIN);
        let tell = |why: &String| {
            let message = format!("the version of {} is not known: {why}", described.name);
            self.caller.tell(Progress::Note(message));
        };
        self.runtime.block_on(version).inspect_err(tell).ok()
    }
}

/// The variables of a trial's engine. A value from outside the lab file may be a secret, and so may
/// a variable with a secret's name.
fn environment(described: &Described, trial: &Trial) -> Result<Vec<(String, Value)>, String> {
    let written = |name: &str, value: &str| {
        let mut own = trial.env.iter();
        own.any(|(key, text)| key == name && text == value) && !model::redact::is_secret(name)
    };
    let environment = trial.environment(described, |name| std::env::var(name).ok())?;
    let values = environment.into_iter().map(|(name, value)| {
        let is_plain = written(&name, &value);
        (name, if is_plain { Value::Plain(value) } else { Value::Secret(value) })
    });
    Ok(values.collect())
}
