//! `runner fleet merge`: takes into a run what a lost agent has on its own disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::FalseyValueParser;
use model::exchange::{Exchange, Phase};
use model::private;
use model::units::Nanos;
use report::{json, text};
use result::summary::Client;
use result::summary::fleet::{Agent, Fleet};
use runs::folder::{RunFolder, Status};
use runs::record::{self, Part};
use scenario::plan::{Plan, Slice};

use super::super::failure::{Exit, Failure};
use super::super::print::{tell, write_json, write_stdout};
use super::agent::{PART, Told};
use super::bundle::digest;

/// A folder for records that are being put together.
const MERGING: &str = "merging";

/// Add the records of lost agents to a fleet's run
///
/// An agent that lost rank 0 keeps its records on its own machine, and says in which folder. Copy
/// that folder here: this command puts its records to those of the run, by the run's clock, and
/// makes the summary and the verdict anew. The folder must be of the same run, and of a rank that
/// was lost. Answers that come in are counted as the server counts them; they are not judged by
/// scorers, for which there is `runner score`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        scp -r load2:runs/.fleet/rank-1-4711 .\n  \
        runner fleet merge runs/20260102-030405-chat rank-1-4711\n\n\
        Exit codes: 0 done, 3 a folder cannot be read or is of another run")]
pub(super) struct Args {
    /// The run's folder, on rank 0
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The folder that a lost agent named, or the run's folder in it
    #[arg(value_name = "AGENT_FOLDER", required = true)]
    agents: Vec<PathBuf>,
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON", value_parser = FalseyValueParser::new())]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// If a folder cannot be read or written, or does not belong to the run.
pub(super) fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let folder = RunFolder::at(&args.run);
    let plan = folder.plan()?;
    let Some(fleet) = folder.facts()?.fleet else {
        return Err(wrong(format!(
            "`{}` is not the run of a fleet: it has no fleet.json; give the run's folder on rank 0 first, then those of lost agents",
            args.run.display()
        )));
    };
    let status = folder.status()?.ok_or_else(|| {
        wrong(format!(
            "the run in `{}` has not ended: it has no status.json",
            args.run.display()
        ))
    })?;
    let mut run = Run {
        folder,
        plan,
        fleet,
        status,
    };
    for path in &args.agents {
        run.take_in(path)?;
    }
    let folder = &run.folder;
    let summary = folder.summarize(&folder.facts()?)?;
    folder.write_summary(&summary)?;
    if args.json {
        let json = json::json(&summary)
            .map_err(|cause| Failure::new(Exit::Bug, format!("cannot write JSON: {cause}")))?;
        write_json(&json)?;
    } else {
        write_stdout(&text::short(&summary))?
    }
    tell(format_args!("records: {}", folder.path().display()));
    Ok(ExitCode::SUCCESS)
}

fn wrong(words: String) -> Failure {
    Failure::new(Exit::Input, words)
}

/// A fleet's run.
struct Run {
    folder: RunFolder,
    plan: Plan,
    fleet: Fleet,
    status: Status,
}

/// A request, for all processes: its phase and its number.
type Key = (Phase, u64);

/// The known facts about a request whatever the clock: it tells requests of two runs apart.
#[derive(PartialEq)]
struct Seen {
    due: Nanos,
    sent: Option<Nanos>,
    ended: Option<Nanos>,
    digest: String,
}

impl Seen {
    fn of(exchange: &Exchange) -> Self {
        let since = |at: Option<Nanos>| at.map(|at| at.since(exchange.due));
        Seen {
            due: exchange.due,
            sent: since(exchange.sent),
            ended: since(exchange.ended),
            digest: exchange.sample.request_digest.clone(),
        }
    }

    fn is(&self, other: &Seen) -> bool {
        (self.sent, self.ended, &self.digest) == (other.sent, other.ended, &other.digest)
    }
}

impl Run {
    /// Takes in the records of one agent, and notes it.
    fn take_in(&mut self, path: &Path) -> Result<(), Failure> {
        let theirs = agent_folder(path)?;
        let of_agent = theirs.plan()?;
        let rank = self.rank_of(&of_agent, path)?;
        let ended = theirs.status()?;
        if let Some(ended) = &ended
            && ended.started != self.status.started
        {
            return Err(wrong(format!(
                "`{}` is of a run that began at {}, and the one in `{}` began at {}: give the agent's folder of this run",
                path.display(),
                ended.started,
                self.folder.path().display(),
                self.status.started
            )));
        }
        let mut seen: HashMap<Key, Seen> = HashMap::new();
        for exchange in theirs.read()? {
            let exchange = exchange?;
            seen.insert((exchange.phase, exchange.index), Seen::of(&exchange));
        }
        let (ahead, known) = self.ahead(&theirs, &seen, path)?;
        let measured = self.rewrite(&theirs, ahead, &seen)?;
        let came = seen.len() - known;
        let agent = &mut self.fleet.agents[rank as usize];
        let held = (agent.lost.as_ref()).and_then(|lost| Some(lost.unknown? + agent.records));
        agent.records = measured;
        agent.merged = true;
        agent.client = theirs.facts()?.client;
        let whole = |status: &Status| {
            !status.interrupted && status.error.is_none() && status.records.is_some()
        };
        match &ended {
            Some(status) if whole(status) => agent.lost = None,
            // It knows what it did not send any more.
            Some(status) => {
                self.status.unsent += status.unsent;
                agent.error.clone_from(&status.error);
                if let Some(lost) = &mut agent.lost {
                    lost.unknown = None;
                }
            }
            None => {
                if let Some(lost) = &mut agent.lost {
                    lost.unknown = held.map(|held| held.saturating_sub(measured));
                }
            }
        }
        let left = match &agent.lost {
            None => "it has all that it sent",
            Some(_) => "it was stopped before it had sent all, and still counts as lost",
        };
        tell(format_args!(
            "{}: {came} further records, {known} were there; {left}",
            agent.name()
        ));
        self.note()
    }

    /// Finds the lost agent that has this plan.
    fn rank_of(&self, theirs: &Plan, path: &Path) -> Result<u32, Failure> {
        let (path, run) = (path.display(), self.folder.path().display());
        let Some(Slice { index, of }) = theirs.slice else {
            return Err(wrong(format!(
                "`{path}` is a whole run and not an agent's part of one; agents that lost rank 0 say where theirs is, as in runs/.fleet/rank-1-4711"
            )));
        };
        let size = self.fleet.agents.len();
        let same = |plan: &Plan| {
            // Rank 0 reads the devices for all.
            digest(&Plan {
                device_metrics: None,
                ..plan.clone()
            })
        };
        let agent = self.fleet.agents.get(index as usize);
        let Some(agent) = agent.filter(|_| of as usize == size) else {
            return Err(wrong(format!(
                "`{path}` is rank {index} of {of}, and the run in `{run}` has {size} processes"
            )));
        };
        if same(theirs)? != same(&self.plan)? {
            return Err(wrong(format!(
                "`{path}` has another plan than `{run}`: it is of another run; `runner compare` says what differs"
            )));
        }
        match agent {
            Agent { merged: true, .. } => Err(wrong(format!(
                "the records of rank {index} were taken into `{run}` already"
            ))),
            Agent { lost: None, .. } => Err(wrong(format!(
                "rank {index} was not lost: `{run}` has all of its records"
            ))),
            _ => Ok(index),
        }
    }

    /// The lead of an agent's clock over the run's, and how many of its records the run has.
    /// They must be the same.
    fn ahead(
        &self,
        theirs: &RunFolder,
        seen: &HashMap<Key, Seen>,
        path: &Path,
    ) -> Result<(i128, usize), Failure> {
        let (mut ahead, mut known, mut first) = (None, 0, None);
        for exchange in self.folder.read()? {
            let exchange = exchange?;
            let ours = Seen::of(&exchange);
            if (exchange.phase, exchange.index) == (Phase::Measure, 0) {
                first = Some(ours.due);
            }
            let Some(theirs) = seen.get(&(exchange.phase, exchange.index)) else {
                continue;
            };
            if !theirs.is(&ours) {
                return Err(wrong(format!(
                    "request {} in `{}` is another than in `{}`: the folder is of another run",
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
        // None of them came during the run: both say when it began by their own clocks.
        let told = std::fs::read(theirs.path().join(PART)).ok();
        let told = told.and_then(|told| serde_json::from_slice::<Told>(&told).ok());
        let began = first.map(|due| due.since(self.plan.first_due()));
        match (told.map(|told| told.start), began) {
            (Some(start), Some(began)) if start > Nanos::ZERO => {
                Ok((i128::from(start.0) - i128::from(began.0), 0))
            }
            _ => Err(wrong(format!(
                "none of the records in `{}` is in the run, and nothing says how its clock was set: its records cannot be brought to the run's clock",
                path.display()
            ))),
        }
    }

    /// Writes the run's records anew, with those of an agent. Gives how many measured ones the
    /// agent has.
    fn rewrite(
        &mut self,
        theirs: &RunFolder,
        ahead: i128,
        seen: &HashMap<Key, Seen>,
    ) -> Result<u64, Failure> {
        let merging = self.folder.path().join(MERGING);
        let unable = |cause: std::io::Error| {
            wrong(format!(
                "cannot write in `{}`: {cause}; the run's records are as they were",
                merging.display()
            ))
        };
        if merging.exists() {
            std::fs::remove_dir_all(&merging).map_err(unable)?;
        }
        private::create_folder(&merging).map_err(unable)?;
        let parts = [
            Part {
                path: self.folder.path().join(record::FILE),
                ahead: 0,
                except: seen.keys().copied().collect(),
            },
            Part {
                path: theirs.path().join(record::FILE),
                ahead,
                ..Part::default()
            },
        ];
        let made = record::merge(&merging, &parts);
        let placed = made
            .map_err(|error| wrong(error.to_string()))
            .and_then(|made| {
                let (from, to) = (
                    merging.join(record::FILE),
                    self.folder.path().join(record::FILE),
                );
                std::fs::rename(from, to).map_err(unable)?;
                Ok(made)
            });
        let _ = std::fs::remove_dir_all(&merging);
        let (written, counts) = placed?;
        self.status.records = Some(written);
        Ok(counts[1])
    }

    /// Writes what changed beside the records.
    fn note(&self) -> Result<(), Failure> {
        self.folder.end(&self.status)?;
        self.folder.write_fleet(&self.fleet)?;
        let clients = self.fleet.agents.iter();
        let clients: Vec<Client> = clients.filter_map(|agent| agent.client.clone()).collect();
        if let Some(client) = Client::worst(clients) {
            self.folder.write_client(&client)?;
        }
        Ok(())
    }
}

/// The folder of an agent's part: this one, or the one in it.
fn agent_folder(path: &Path) -> Result<RunFolder, Failure> {
    let found = runs::folder::runs(path)?;
    match &found[..] {
        [one] => Ok(one.clone()),
        several => Err(wrong(format!(
            "`{}` has {} runs; give the folder of one agent's part",
            path.display(),
            several.len()
        ))),
    }
}
