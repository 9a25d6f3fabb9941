//! The stop of an engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::log::SavedLog;
use crate::port::OccupiedPort;

/// The means to end an engine's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// None was left.
    Nothing,
    /// SIGTERM.
    Terminate,
    /// SIGTERM, and SIGKILL after the time that the engine may take.
    Kill,
}

impl std::fmt::Display for Means {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Means::Nothing => "nothing",
            Means::Terminate => "SIGTERM",
            Means::Kill => "SIGKILL",
        })
    }
}

/// A process of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EngineProcess {
    /// Its identifier.
    pub pid: u32,
    /// Its command line, without anything like a secret; absent if it was not visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// It is free again.
    Free,
    /// It is not free; the text names the device and the amount.
    Held(String),
    /// There is no device, or it reports nothing.
    Unknown,
}

/// The stop of an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Stop {
    /// The end of the process that was started; absent if it is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// The means that ended the processes.
    pub needed: Means,
    /// Processes that had left the engine's group, and were ended too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<EngineProcess>,
    /// Processes that were killed and are still there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<EngineProcess>,
    /// The port, if it did not become free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupied: Option<OccupiedPort>,
    /// The devices' memory.
    pub memory: Memory,
    /// Seconds of the whole stop.
    pub took_s: f64,
    /// The saved part of the log.
    pub log: SavedLog,
    /// The last lines of the engine's output, the oldest first.
    pub last_lines: Vec<String>,
}

impl Stop {
    /// True if nothing of the engine is left, so that another can be started in its place.
    pub fn is_clean(&self) -> bool {
        let held = matches!(self.memory, Memory::Held(_));
        self.survivors.is_empty() && self.occupied.is_none() && !held
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
