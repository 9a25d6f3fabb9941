//! Ends processes: asks them to end, then kills them, and never touches a stranger.

use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use rustix::process::{Signal, test_kill_process_group};

use crate::exit::Exit;
use crate::leader::Leader;
use crate::port::OccupiedPort;
use crate::process::{Family, Id, Process, Table, raw};

/// The time that killed processes may take to vanish: some wait for a device or a disk.
pub(crate) const KILLED_WITHIN: Duration = Duration::from_secs(15);

/// The first pause between two looks, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

pub(crate) struct Prey<'e> {
    pub table: &'e Table,
    pub family: &'e mut Family,
    /// The process that leads the group, if it is a child of this process. Then no other process
    /// has its identifier, and a signal goes to the group as a whole.
    pub leader: Option<&'e mut Leader>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub needed: Means,
    /// Processes that are still there.
    pub survivors: Vec<EngineProcess>,
}

impl Prey<'_> {
    /// Sends SIGTERM, waits, sends SIGKILL, and waits.
    pub async fn end(&mut self, patience: Duration) -> End {
        let mut needed = Means::Nothing;
        for (signal, within) in [(Signal::TERM, patience), (Signal::KILL, KILLED_WITHIN)] {
            let clock = Clock::start();
            let mut signalled: Vec<Id> = Vec::new();
            let mut pause = PAUSE.0;
            loop {
                let alive = self.look();
                if alive.is_empty() {
                    return End { needed, survivors: Vec::new() };
                }
                let new =
                    |process: &&Process| signal == Signal::KILL || !signalled.contains(&process.id);
                let new: Vec<Process> = alive.iter().filter(new).cloned().collect();
                if !new.is_empty() {
                    let is_kill = signal == Signal::KILL;
                    needed = if is_kill { Means::Kill } else { Means::Terminate };
                    self.signal(&new, signal);
                    signalled.extend(new.iter().map(|process| process.id));
                }
                if clock.now() >= Nanos::from(within) {
                    break;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
        let alive = self.look();
        End { needed, survivors: self.describe(&alive) }
    }

    /// Kills at once, without a runtime: for an engine that is dropped, or whose owner leaves.
    pub fn kill(&mut self, within: Duration) -> End {
        let clock = Clock::start();
        let mut needed = Means::Nothing;
        loop {
            let alive = self.look();
            if alive.is_empty() || clock.now() >= Nanos::from(within) {
                return End { needed, survivors: self.describe(&alive) };
            }
            needed = Means::Kill;
            self.signal(&alive, Signal::KILL);
            std::thread::sleep(PAUSE.0);
        }
    }

    fn look(&mut self) -> Vec<Process> {
        if let Some(members) = self.family.look(self.table) {
            return members;
        }
        // Where the system shows no processes, only the group is known.
        let Some(leader) = &mut self.leader else { return Vec::new() };
        leader.reap();
        let lives = leader.exit().is_none()
            || raw(leader.pid()).is_some_and(|group| test_kill_process_group(group).is_ok());
        let group = Process {
            id: Id { pid: leader.pid(), start: 0 },
            parent: 0,
            group: leader.pid(),
            ended: false,
        };
        lives.then_some(group).into_iter().collect()
    }

    fn signal(&self, processes: &[Process], signal: Signal) {
        let held = self.leader.as_ref().filter(|leader| leader.holds_group());
        let in_group = |process: &Process| held.is_some_and(|leader| process.group == leader.pid());
        if let Some(leader) = held
            && processes.iter().any(in_group)
        {
            leader.signal_group(signal);
        }
        for process in processes.iter().filter(|process| !in_group(process)) {
            self.table.signal(process.id, signal);
        }
    }

    fn describe(&self, processes: &[Process]) -> Vec<EngineProcess> {
        processes.iter().map(|process| self.table.describe(process.id.pid)).collect()
    }
}

/// The means to end an engine's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// None was left.
    Nothing,
    /// SIGTERM.
    Terminate,
    /// SIGTERM, and SIGKILL after the time that the engine may take.
    Kill,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineProcess {
    pub pid: u32,
    /// Its command line, without anything like a secret; absent if it was not visible.
    pub command: Option<String>,
}

impl std::fmt::Display for EngineProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.command {
            Some(command) => write!(f, "process {} (`{command}`)", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// The memory of an engine's devices after its processes have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It is free again.
    Free,
    /// It is not free; the text names the device and the amount.
    Held(String),
    /// There is no device, or it reports nothing.
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// The end of the process that was started; absent if it is still there.
    pub exit: Option<Exit>,
    pub needed: Means,
    /// Processes that were killed and are still there.
    pub survivors: Vec<EngineProcess>,
    /// The port, if it did not become free.
    pub occupied: Option<OccupiedPort>,
    pub memory: Memory,
    /// Seconds of the whole stop.
    pub took_s: f64,
}

impl Stop {
    /// True if nothing of the engine is left, so that another can be started in its place.
    pub fn is_clean(&self) -> bool {
        self.left().is_none()
    }

    /// Describes the remains of the engine. Nothing if it is clean.
    pub fn left(&self) -> Option<String> {
        let mut left: Vec<String> = self.survivors.iter().map(EngineProcess::to_string).collect();
        left.extend(self.occupied.as_ref().map(OccupiedPort::to_string));
        if let Memory::Held(reason) = &self.memory {
            left.push(reason.clone());
        }
        (!left.is_empty()).then(|| left.join("; "))
    }
}
