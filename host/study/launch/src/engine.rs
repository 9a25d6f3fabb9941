//! An engine from its start to its end.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use tokio::time::{Instant, sleep};

use crate::LAUNCH_ID;
use crate::end::{EngineProcess, KILLED_WITHIN, Means, Memory, Prey, Stop};
use crate::exit::{Death, classify};
use crate::leader::{Leader, ended};
use crate::log::Log;
use crate::parent::Watch;
use crate::port::{OccupiedPort, check, check_once};
use crate::process::{Family, Id, Table};
use crate::spec::{Spec, Value, command, write_to};

/// The first pause between two questions whether an engine is ready, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The time that an ended engine's output may take to arrive, if a living process has the pipe.
const ARRIVES_WITHIN: Nanos = Nanos(1_000_000_000);

/// The time that killed processes may take to vanish while their owner leaves.
const AT_ONCE: Duration = Duration::from_secs(3);

/// The state of an engine by a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// It is healthy, and has given a real answer.
    Ready,
    /// It is not ready, for this reason, and may become so.
    NotYet(String),
    /// It will not become ready, for this reason.
    Never(String),
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("engine `{0}` has no launch command")]
    NoCommand(String),
    #[error("engine `{name}` cannot be started in {}: no such folder", path.display())]
    NoDirectory { name: String, path: PathBuf },
    #[error("engine `{name}` cannot be started: {occupied}")]
    Occupied { name: String, occupied: OccupiedPort },
    #[error("engine `{name}` cannot be started: {}: {source}", path.display())]
    File { name: String, path: PathBuf, source: io::Error },
    #[error(
        "engine `{name}` cannot be started: `sh`, which ends it with the runner, does not run: {source}; put `sh` on the PATH"
    )]
    Watch { name: String, source: io::Error },
    #[error("engine `{name}` cannot be started: `{program}`: {source}{}", hint(source))]
    Program { name: String, program: String, source: io::Error },
}

fn hint(source: &io::Error) -> &'static str {
    let is_missing = source.kind() == io::ErrorKind::NotFound;
    if is_missing { "; is it installed, and in a folder of PATH?" } else { "" }
}

/// The reason why an engine did not become ready.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotReady {
    #[error("{0}")]
    Died(Death),
    /// It lives, and took too long or will never be ready.
    #[error("{why}")]
    Lives {
        why: String,
        /// The last lines of its output, the oldest first.
        last_lines: Vec<String>,
    },
}

/// An engine that was started. Dropping it kills it: use [`Engine::stop`] to end it.
pub struct Engine {
    spec: Spec,
    table: Table,
    leader: Leader,
    log: Log,
    family: Family,
    /// Ends it if this process is killed. It goes before the leader is reaped: afterwards the group
    /// may be another's.
    watch: Option<Watch>,
    clock: Clock,
    ready_after_s: Option<f64>,
    stopped: bool,
}

impl Engine {
    /// Starts an engine. Fails, and leaves nothing, if its port, program or log cannot be used.
    pub fn start(spec: Spec) -> Result<Self, StartError> {
        let name = || spec.name.clone();
        let file = |source| StartError::File { name: name(), path: spec.log.clone(), source };
        let table = Table::default();
        let launch = identifier();
        let mut environment = spec.environment.clone();
        environment.push((LAUNCH_ID.to_owned(), Value::Plain(launch.clone())));
        let command =
            command(&spec.command, &environment, &spec.withheld, spec.directory.as_deref());
        let mut command = command.ok_or_else(|| StartError::NoCommand(name()))?;
        if let Some(path) = spec.directory.clone().filter(|path| !path.is_dir()) {
            return Err(StartError::NoDirectory { name: name(), path });
        }
        check(&spec.host, spec.port)
            .map_err(|occupied| StartError::Occupied { name: name(), occupied })?;
        let (reader, writer) = io::pipe().map_err(file)?;
        let pipe = inode(&reader);
        write_to(&mut command, writer).map_err(file)?;
        let log = Log::start(reader, &spec.log, spec.log_limit, spec.last_lines, spec.secrets())
            .map_err(file)?;
        // Before the start, so that no engine is ever without one.
        let mut watch = Watch::begin(&format!("{LAUNCH_ID}={launch}"), spec.stop_timeout)
            .map_err(|source| StartError::Watch { name: name(), source })?;
        let clock = Clock::start();
        let leader = Leader::start(&mut command);
        // Only the engine has its ends of the pipe.
        drop(command);
        let leader = leader.map_err(|source| StartError::Program {
            name: name(),
            program: spec.command[0].clone(),
            source,
        })?;
        let pid = leader.pid();
        watch.over(pid);
        let start = table.process(pid).map_or(0, |process| process.id.start);
        let family = Family { launch, leader: Id { pid, start }, pipe, seen: Default::default() };
        let (watch, ready_after_s, stopped) = (Some(watch), None, false);
        Ok(Engine { spec, table, leader, log, family, watch, clock, ready_after_s, stopped })
    }

    /// The process that was started.
    pub fn pid(&self) -> u32 {
        self.leader.pid()
    }

    /// Seconds from its start to its first real answer, if it gave one.
    pub fn ready_after_s(&self) -> Option<f64> {
        self.ready_after_s
    }

    /// Returns a handle that kills it at once from elsewhere, such as from a signal's thread.
    pub fn killer(&self) -> Killer {
        Killer {
            name: self.spec.name.clone(),
            table: self.table.clone(),
            family: self.family.clone(),
        }
    }

    /// Asks with `check` until it is ready, at longer and longer intervals; a slow check ends with
    /// the time, or the engine. Fails if the engine dies, takes too long, or never will be ready by
    /// the check. Then the engine must still be stopped.
    pub async fn ready(&mut self, mut check: impl AsyncFnMut() -> Check) -> Result<(), NotReady> {
        let deadline = self.clock.instant(self.spec.ready_timeout.into());
        let mut pause = PAUSE.0;
        let mut last = None;
        loop {
            let found = tokio::select! {
                biased;
                _ = self.leader.ended() => break,
                () = tokio::time::sleep_until(deadline) => return Err(self.late(last)),
                found = check() => found,
            };
            match found {
                // Another server may have answered.
                Check::Ready if self.leader.has_ended() => break,
                Check::Ready => {
                    self.ready_after_s = Some(self.clock.now().as_secs_f64());
                    // A process that is seen now is known when its parent is gone.
                    self.family.look(&self.table);
                    return Ok(());
                }
                Check::NotYet(why) => last = Some(why),
                Check::Never(why) => {
                    return Err(self.not_ready(format!("the engine will not become ready: {why}")));
                }
            }
            tokio::select! {
                biased;
                _ = self.leader.ended() => break,
                () = tokio::time::sleep_until(deadline) => return Err(self.late(last)),
                () = sleep(pause) => {}
            }
            pause = (pause * 3 / 2).min(PAUSE.1);
        }
        Err(NotReady::Died(self.death().await))
    }

    fn late(&self, last: Option<String>) -> NotReady {
        let within = self.spec.ready_timeout.as_secs_f64();
        let last = last.as_deref().unwrap_or("it did not answer");
        self.not_ready(format!("the engine was not ready within {within} s: {last}"))
    }

    fn not_ready(&self, why: String) -> NotReady {
        NotReady::Lives { why, last_lines: self.log.last_lines() }
    }

    /// The time from its start to a later instant.
    pub fn since_start(&self, at: Instant) -> Duration {
        at.duration_since(self.clock.instant(Nanos::ZERO))
    }

    /// Resolves when it dies, or never. It may be awaited anywhere, and dropped at any time.
    pub fn death(&self) -> impl Future<Output = Death> + Send + 'static + use<> {
        let before_ready = self.ready_after_s.is_none();
        let (exit, log) = (self.leader.watch(), self.log.clone());
        async move {
            let exit = ended(exit).await;
            arrived(&log).await;
            let (class, evidence) = classify(exit, log.hint().as_ref());
            Death { exit, class, evidence, before_ready, last_lines: log.last_lines() }
        }
    }

    /// Ends it: SIGTERM to its group and to its processes elsewhere, then SIGKILL after its
    /// timeout, until no process is left. Then waits until its port is free, and until `memory`
    /// reports its devices' memory as free.
    ///
    /// A stop that is dropped before it has ended kills the engine at once.
    pub async fn stop(mut self, mut memory: impl AsyncFnMut() -> Memory) -> Stop {
        let clock = Clock::start();
        let patience = self.spec.stop_timeout;
        let ended = self.prey().end(patience).await;
        if ended.survivors.is_empty() {
            self.leader.ended().await;
            self.watch = None;
            self.leader.reap();
        }
        self.stopped = true;
        arrived(&self.log).await;
        let settled = clock.now() + self.spec.settle_timeout.into();
        let mut pause = PAUSE.0;
        let (occupied, memory) = loop {
            let occupied = check_once(&self.table, &self.spec.host, self.spec.port).err();
            let memory = memory().await;
            let free = occupied.is_none() && !matches!(memory, Memory::Held(_));
            if free || clock.now() >= settled {
                break (occupied, memory);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        };
        Stop {
            exit: self.leader.exit(),
            needed: ended.needed,
            survivors: ended.survivors,
            occupied,
            memory,
            took_s: clock.now().as_secs_f64(),
        }
    }

    fn prey(&mut self) -> Prey<'_> {
        Prey { table: &self.table, family: &mut self.family, leader: Some(&mut self.leader) }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        if self.prey().kill(KILLED_WITHIN).survivors.is_empty() {
            self.leader.wait();
            self.watch = None;
            self.leader.reap();
        }
    }
}

/// Kills an engine whose owner leaves without stopping it.
#[derive(Debug)]
pub struct Killer {
    name: String,
    table: Table,
    family: Family,
}

impl Killer {
    /// Sends SIGKILL to the rest of the engine, waits a moment, and describes the result.
    pub fn kill(mut self) -> String {
        let mut prey = Prey { table: &self.table, family: &mut self.family, leader: None };
        let killed = prey.kill(AT_ONCE);
        let left: Vec<String> = killed.survivors.iter().map(EngineProcess::to_string).collect();
        let name = &self.name;
        if !left.is_empty() {
            return format!(
                "engine `{name}` was sent SIGKILL and is still there: {}; end it yourself",
                left.join(", ")
            );
        }
        match killed.needed {
            Means::Nothing => format!("nothing is left of engine `{name}`"),
            _ => format!("engine `{name}` was ended with SIGKILL"),
        }
    }
}

/// Waits until an engine's output is in its log.
async fn arrived(log: &Log) {
    let clock = Clock::start();
    while !log.is_complete() && clock.now() < ARRIVES_WITHIN {
        sleep(Duration::from_millis(5)).await;
    }
}

/// An identifier that no other launch has.
fn identifier() -> String {
    // The seeds of the standard library's hash tables are random.
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

/// Returns the number that identifies a pipe while anybody holds it.
fn inode(pipe: &io::PipeReader) -> Option<u64> {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::File::from(pipe.as_fd().try_clone_to_owned().ok()?);
    Some(file.metadata().ok()?.ino())
}
