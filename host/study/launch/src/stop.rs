//! The stop of an engine.

use crate::exit::Exit;
use crate::port::OccupiedPort;

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

/// A process of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineProcess {
    /// Its identifier.
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

/// The stop of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// The end of the process that was started; absent if it is still there.
    pub exit: Option<Exit>,
    /// The means that ended the processes.
    pub needed: Means,
    /// Processes that were killed and are still there.
    pub survivors: Vec<EngineProcess>,
    /// The port, if it did not become free.
    pub occupied: Option<OccupiedPort>,
    /// The devices' memory.
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
