//! Adding the records on a lost agent's own disk to the run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use model::exchange::{Exchange, Phase};
use model::private;
use model::units::Nanos;
use result::summary::{Agent, Client, Fleet, Summary};
use runs::folder::{RunFolder, Status};
use runs::record::{self, Part};
use scenario::plan::{Plan, Slice};

use super::agent::{AgentPart, PART};
use super::coordinator::FleetError;
use super::plan::digest;

/// A folder for records during the merge.
const MERGING: &str = "merging";

/// An agent whose records were added.
pub struct MergedAgent {
    pub name: String,
    /// The number of records that were new to the run.
    pub came: usize,
    /// The number of records that the run already had.
    pub known: usize,
    /// True if the agent stopped before its last request, and so still counts as lost.
    pub is_lost: bool,
}

/// Adds the records of lost agents to a run, and computes its summary again. `taken` gets each.
/// Fails if a folder cannot be read or written, or does not belong to the run.
pub fn merge(
    path: &Path,
    agents: &[PathBuf],
    taken: impl Fn(&MergedAgent),
) -> Result<(RunFolder, Summary), FleetError> {
    let folder = RunFolder::at(path);
    let plan = folder.plan()?;
    let Some(fleet) = folder.facts()?.fleet else {
        return Err(wrong(format!(
            "`{}` is not the run of a fleet: it has no fleet.json; give the run's folder on rank 0 first, then the folders of lost agents",
            path.display()
        )));
    };
    let status = folder.status()?.ok_or_else(|| {
        wrong(format!("the run in `{}` has not ended: it has no status.json", path.display()))
    })?;
    let mut run = Run { folder, plan, fleet, status };
    for path in agents {
        taken(&run.take_in(path)?);
        run.note()?;
    }
    let folder = run.folder;
    let summary = folder.summarize(&folder.facts()?)?;
    folder.write(&summary)?;
    Ok((folder, summary))
}

fn wrong(message: String) -> FleetError {
    FleetError::Merge(message)
}

struct Run {
    folder: RunFolder,
    plan: Plan,
    fleet: Fleet,
    status: Status,
}

/// A request, for all processes: its phase and its number.
type Key = (Phase, u64);

/// The facts about a request without the clock: they distinguish requests of two runs.
#[derive(PartialEq)]
struct RequestFacts {
    due: Nanos,
    sent: Option<Nanos>,
    ended: Option<Nanos>,
    digest: String,
}

impl RequestFacts {
    fn new(exchange: &Exchange) -> Self {
        let since = |at: Option<Nanos>| at.map(|at| at.since(exchange.due));
        RequestFacts {
            due: exchange.due,
            sent: since(exchange.sent),
            ended: since(exchange.ended),
            digest: exchange.sample.request_digest.clone(),
        }
    }

    fn is_same(&self, other: &RequestFacts) -> bool {
        (self.sent, self.ended, &self.digest) == (other.sent, other.ended, &other.digest)
    }
}

impl Run {
    fn take_in(&mut self, path: &Path) -> Result<MergedAgent, FleetError> {
        let theirs = agent_folder(path)?;
        let rank = self.rank_of(&theirs.plan()?, path)?;
        let ended = theirs.status()?;
        if let Some(ended) = &ended
            && ended.started != self.status.started
        {
            return Err(wrong(format!(
                "`{}` is of a run that began at {}, but the run in `{}` began at {}; give the agent's folder of this run",
                path.display(),
                ended.started,
                self.folder.path().display(),
                self.status.started
            )));
        }
        let mut seen: HashMap<Key, RequestFacts> = HashMap::new();
        for exchange in theirs.read()? {
            let exchange = exchange?;
            seen.insert((exchange.phase, exchange.index), RequestFacts::new(&exchange));
        }
        let (ahead, known) = self.ahead(&theirs, &seen, path)?;
        let measured = self.rewrite(&theirs, ahead, &seen)?;
        let came = seen.len() - known;
        let agent = &mut self.fleet.agents[rank as usize];
        let planned = (agent.lost.as_ref()).and_then(|lost| Some(lost.unknown? + agent.records));
        agent.records = measured;
        agent.merged = true;
        agent.client = theirs.facts()?.client;
        let whole = |status: &Status| {
            !status.interrupted && status.error.is_none() && status.records.is_some()
        };
        match &ended {
            Some(status) if whole(status) => agent.lost = None,
            // Requests that it did not send any more are known.
            Some(status) => {
                self.status.unsent += status.unsent;
                agent.error.clone_from(&status.error);
                if let Some(lost) = &mut agent.lost {
                    lost.unknown = None;
                }
            }
            None => {
                if let Some(lost) = &mut agent.lost {
                    lost.unknown = planned.map(|all| all.saturating_sub(measured));
                }
            }
        }
        Ok(MergedAgent { name: agent.name(), came, known, is_lost: agent.lost.is_some() })
    }

    /// Finds the lost agent that has this plan.
    fn rank_of(&self, theirs: &Plan, path: &Path) -> Result<u32, FleetError> {
        let (path, run) = (path.display(), self.folder.path().display());
        let Some(Slice { index, of }) = theirs.slice else {
            return Err(wrong(format!(
                "`{path}` is a whole run, expected an agent's part; agents that lost rank 0 print its folder, such as runs/.fleet/rank-1-4711"
            )));
        };
        let size = self.fleet.agents.len();
        // Rank 0 reads the devices for all.
        let same = |plan: &Plan| digest(&Plan { device_metrics: None, ..plan.clone() });
        let agent = self.fleet.agents.get(index as usize);
        let Some(agent) = agent.filter(|_| of as usize == size) else {
            return Err(wrong(format!(
                "`{path}` is rank {index} of {of}, and the run in `{run}` has {size} processes"
            )));
        };
        if same(theirs)? != same(&self.plan)? {
            return Err(wrong(format!(
                "`{path}` has another plan than `{run}`: it is of another run; `runner compare` shows the differences"
            )));
        }
        match agent {
            Agent { merged: true, .. } => {
                Err(wrong(format!("the records of rank {index} are in `{run}` already")))
            }
            Agent { lost: None, .. } => {
                Err(wrong(format!("rank {index} was not lost: `{run}` has all of its records")))
            }
            _ => Ok(index),
        }
    }

    /// The lead of an agent's clock, and the number of its records in the run, which must be equal.
    fn ahead(
        &self,
        theirs: &RunFolder,
        seen: &HashMap<Key, RequestFacts>,
        path: &Path,
    ) -> Result<(i128, usize), FleetError> {
        let (mut ahead, mut known, mut first) = (None, 0, None);
        for exchange in self.folder.read()? {
            let exchange = exchange?;
            let ours = RequestFacts::new(&exchange);
            if (exchange.phase, exchange.index) == (Phase::Measure, 0) {
                first = Some(ours.due);
            }
            let Some(theirs) = seen.get(&(exchange.phase, exchange.index)) else { continue };
            if !theirs.is_same(&ours) {
                return Err(wrong(format!(
                    "request {} differs between `{}` and `{}`: the folder is of another run",
                    exchange.index,
                    path.display(),
                    self.folder.path().display()
                )));
            }
            known += 1;
            ahead = Some(i128::from(theirs.due.0) - i128::from(ours.due.0));
        }
        if let Some(ahead) = ahead {
            return Ok((ahead, known));
        }
        // No record came during the run: both sides have the begin by their own clocks.
        let part = std::fs::read(theirs.path().join(PART)).ok();
        let part = part.and_then(|part| serde_json::from_slice::<AgentPart>(&part).ok());
        let began = first.map(|due| due.since(self.plan.first_due()));
        match (part.map(|part| part.start), began) {
            (Some(start), Some(began)) if start > Nanos::ZERO => {
                Ok((i128::from(start.0) - i128::from(began.0), 0))
            }
            _ => Err(wrong(format!(
                "none of the records in `{}` is in the run, and its clock is unknown: its records cannot be brought to the run's clock",
                path.display()
            ))),
        }
    }

    /// Writes the run's records again, with an agent's; returns the number of its measured ones.
    fn rewrite(
        &mut self,
        theirs: &RunFolder,
        ahead: i128,
        seen: &HashMap<Key, RequestFacts>,
    ) -> Result<u64, FleetError> {
        let merging = self.folder.path().join(MERGING);
        let unable = |cause: std::io::Error| {
            wrong(format!(
                "cannot write in `{}`: {cause}; the run's records are unchanged",
                merging.display()
            ))
        };
        if merging.exists() {
            std::fs::remove_dir_all(&merging).map_err(unable)?;
        }
        private::create_folder(&merging).map_err(unable)?;
        let (ours, theirs) = (self.folder.path(), theirs.path());
        let except = seen.keys().copied().collect();
        let parts = [
            Part { path: ours.join(record::FILE), ahead: 0, except },
            Part { path: theirs.join(record::FILE), ahead, ..Part::default() },
        ];
        let made = record::merge(&merging, &parts);
        let placed = made.map_err(FleetError::from).and_then(|made| {
            let (from, to) = (merging.join(record::FILE), self.folder.path().join(record::FILE));
            std::fs::rename(from, to).map_err(unable)?;
            Ok(made)
        });
        let _ = std::fs::remove_dir_all(&merging);
        let (written, counts) = placed?;
        self.status.records = Some(written);
        Ok(counts[1])
    }

    /// Writes the changed files beside the records.
    fn note(&self) -> Result<(), FleetError> {
        self.folder.write(&self.status)?;
        self.folder.write(&self.fleet)?;
        let clients = self.fleet.agents.iter();
        let clients: Vec<Client> = clients.filter_map(|agent| agent.client.clone()).collect();
        if let Some(client) = Client::worst(clients) {
            self.folder.write(&client)?;
        }
        Ok(())
    }
}

/// The folder of an agent's part: this one, or the single run in it.
fn agent_folder(path: &Path) -> Result<RunFolder, FleetError> {
    match &runs::folder::runs(path)?[..] {
        [one] => Ok(one.clone()),
        several => Err(wrong(format!(
            "`{}` has {} runs; give the folder of one agent's part",
            path.display(),
            several.len()
        ))),
    }
}
