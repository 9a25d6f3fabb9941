//! Processes that a killed runner left behind: found by their markers, and ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::end::Prey;
use crate::marker::Marker;
use crate::process::Table;
use crate::stop::{EngineProcess, Needed};

/// No engine of a marker is waited for longer than this to end by itself: nobody needs it any more.
const LONGEST_PATIENCE_S: f64 = 60.0;

/// An engine that has a marker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Leftover {
    /// The marker's file.
    pub marker: PathBuf,
    /// The engine's name; absent, as what follows, where the marker cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The port on which it was to listen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The file of its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Its state, and the end of its processes.
    pub state: State,
}

/// The state of an engine that has a marker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum State {
    /// The runner that started it lives, so it was left alone. So was its marker.
    InUse {
        /// The process of that runner.
        owner: u32,
    },
    /// None of its processes was left. The marker is gone too.
    Gone,
    /// It was ended. The marker is gone too.
    Ended {
        /// The means that were needed.
        needed: Needed,
        /// Processes of it that had left its group.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outside: Vec<EngineProcess>,
    },
    /// It was killed, and some of it is still there. So is its marker.
    Remains {
        /// Processes that are still there.
        survivors: Vec<EngineProcess>,
    },
    /// Its processes cannot be seen from here, so nothing was done.
    Unknown {
        /// The reason, and what to do.
        why: String,
    },
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name.as_deref().unwrap_or("?");
        match &self.state {
            State::InUse { owner } => {
                write!(f, "engine `{name}` belongs to the runner of process {owner}, which lives")
            }
            State::Gone => write!(f, "of engine `{name}` of an earlier run nothing was left"),
            State::Ended { needed, .. } => {
                write!(f, "engine `{name}` of an earlier run was ended with {needed}")
            }
            State::Remains { survivors } => {
                let pids: Vec<String> = survivors.iter().map(EngineProcess::to_string).collect();
                write!(
                    f,
                    "engine `{name}` of an earlier run was killed, and is still there: {}",
                    pids.join(", ")
                )
            }
            State::Unknown { why } => write!(f, "{}: {why}", self.marker.display()),
        }
    }
}

/// Ends the engines of this folder's markers whose runners have ended, and says what became of
/// each. An engine whose runner lives is left alone. All are ended at once, so many take no longer
/// than one.
///
/// # Errors
/// If the folder cannot be read, or if another user could have put markers there: then nothing is
/// ended. One that does not exist holds no markers.
pub async fn clean_up(markers: &Path) -> io::Result<Vec<Leftover>> {
    let mut ended = JoinSet::new();
    for path in Marker::all(markers)? {
        ended.spawn(async move { one(&Table::default(), path).await });
    }
    let mut found = Vec::new();
    while let Some(one) = ended.join_next().await {
        found.push(one.map_err(io::Error::other)?);
    }
    found.sort_by(|a, b| a.marker.cmp(&b.marker));
    Ok(found)
}

async fn one(table: &Table, path: PathBuf) -> Leftover {
    let mut marker = match Marker::read(&path) {
        Ok(marker) => marker,
        Err(why) => {
            return Leftover {
                state: State::Unknown {
                    why: format!(
                        "this marker of an engine cannot be read: {why}; end the engine if it runs, and remove the file"
                    ),
                },
                marker: path,
                name: None,
                port: None,
                log: None,
            };
        }
    };
    let state = match obstacle(table, &marker) {
        Some(state) => state,
        None => end(table, &mut marker).await,
    };
    if matches!(state, State::Gone | State::Ended { .. }) {
        // A marker that stays is looked at again, and then nothing is found.
        let _ = fs::remove_file(&path);
    }
    Leftover {
        marker: path,
        name: Some(marker.name),
        port: Some(marker.port),
        log: Some(marker.log),
        state,
    }
}

/// Returns the reason why an engine is not searched for.
fn obstacle(table: &Table, marker: &Marker) -> Option<State> {
    let boot = table.boot();
    if boot.is_none() || table.processes().is_none() {
        let pid = marker.family.leader.map_or(0, |leader| leader.pid);
        let why = format!(
            "this system does not show its processes; see whether process {pid} runs `{}`, end it, and remove the file",
            marker.command.join(" ")
        );
        return Some(State::Unknown { why });
    }
    if marker.boot != boot {
        return Some(State::Gone);
    }
    if marker.namespace != table.namespace() {
        let why = "the engine was started in another container; clean up there, or remove the file";
        return Some(State::Unknown { why: why.to_owned() });
    }
    table.lives(marker.owner).then_some(State::InUse { owner: marker.owner.pid })
}

async fn end(table: &Table, marker: &mut Marker) -> State {
    let patience = marker.stop_timeout_s.clamp(0.0, LONGEST_PATIENCE_S);
    let mut prey = Prey { table, family: &mut marker.family, leader: None };
    let ended = prey.end(Duration::from_secs_f64(patience)).await;
    match (ended.needed, ended.survivors.is_empty()) {
        (_, false) => State::Remains { survivors: ended.survivors },
        (Needed::Nothing, true) => State::Gone,
        (needed, true) => State::Ended { needed, outside: ended.outside },
    }
}
