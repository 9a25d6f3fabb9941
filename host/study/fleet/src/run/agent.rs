//! A process that sends a part of the requests. It makes its slice of the plan; rank 0 starts it.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::link::{self, Join, JoinError, Member, Reporter, host_name};
use crate::place::Place;
use crate::token::Token;
use load::transport::Dial;
use model::clock::Clock;
use model::private;
use model::units::Nanos;
use runs::environment::Environment;
use runs::record;
use scenario::plan::Slice;
use serde::{Deserialize, Serialize};
use serde_json::json;
use session::gate::{Gate, Stage};
use session::live::Live;
use session::{CheckedRun, LoadedRun, Record, ResolvedRun, Source, Threads, resolve};
use tokio::sync::oneshot;

use super::connections::{Connections, version};
use super::coordinator::{FleetError, Interrupts, Settings, make};
use super::plan::{digest, parts};
use super::view::{Local, LocalPart};

/// The interval at which to check for signals.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time between two messages with figures.
const TELL_EVERY: Nanos = Nanos(1_000_000_000);

/// The file in an agent's folder for results that rank 0 did not receive.
pub(super) const PART: &str = "part.json";

/// An agent's part of the run beside its records, as rank 0 receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct AgentPart {
    /// The start instant by this process's clock.
    pub start: Nanos,
    /// Measurements beside its records.
    pub part: session::Part,
}

/// A process that has joined a fleet, and prepares its part.
pub struct Agent {
    member: Member,
    started: jiff::Timestamp,
    local: Option<Local>,
    clock: Clock,
    work: Work,
    connections: Connections,
}

impl Agent {
    /// Joins the fleet; `local` is rank 0's own agent. Fails if rank 0 is away or does not take it.
    pub fn join(
        settings: &Settings,
        place: Place,
        token: Token,
        local: Option<Local>,
    ) -> Result<Self, FleetError> {
        let connections = Connections::start()?;
        make(&settings.scratch)?;
        let work = Work::new(&settings.scratch, &place)?;
        let clock = Clock::start();
        let join = Join {
            place,
            token,
            version: version()?,
            host: host_name(),
            clock,
            patience: settings.wait,
            timing: settings.timing(),
        };
        let member = connections.wait(link::Agent::join(join))?;
        let Ok(started) = member.began().parse() else {
            let error = FleetError::NoTime(member.began().to_owned());
            connections.wait(member.decline(vec![error.to_string()]));
            return Err(error);
        };
        Ok(Agent { member, started, local, clock, work, connections })
    }

    /// The run of a study; `None` if the command line alone describes the run.
    pub fn order(&self) -> Option<&str> {
        self.member.order()
    }

    /// Resolves this process's slice. Fails if the scenario is wrong, or a file cannot be read.
    pub fn resolve(&self, mut source: Source) -> Result<ResolvedRun, FleetError> {
        let (index, of) = self.member.slice();
        source.slice = Some(Slice { index, of });
        resolve(&source).map_err(FleetError::Faults)
    }

    /// Reports that this process cannot take part, with the reason. Rank 0 then starts nothing.
    pub fn decline(self, why: String) {
        self.connections.wait(self.member.decline(vec![why]));
    }

    /// Waits for the start, makes this process's part of the load, and hands everything over to
    /// rank 0. Fails if rank 0 is gone: then this process's part is kept on its own disk. Or if the
    /// load ended early, which rank 0 knows by then.
    pub fn make(
        self,
        checked: CheckedRun,
        connect: &Dial,
        environment: Environment,
        interrupts: &impl Interrupts,
    ) -> Result<(), FleetError> {
        let Agent { mut member, started, local, clock, work, connections, .. } = self;
        let facts = json!({"environment": environment, "plan": parts(&checked.plan)});
        member.prepared(&digest(&checked.plan)?, facts);
        let record = Record {
            output: work.0.clone(),
            // It is part of the salt, so all processes have the same.
            started,
            environment,
            repeat: None,
        };
        let gate = Gate::new(clock);
        // Rank 0 reads the devices for all: they are the engine's, not each load machine's.
        let run = checked.without_devices().begin(record, Threads)?;
        let run = run.behind(gate.clone());
        if let Some(local) = &local {
            let _ = local.set(LocalPart {
                gate: gate.clone(),
                live: Arc::clone(run.live()),
                threads: run.threads().clone(),
            });
        }
        interrupts.watch(run.signal());
        let folder = run.folder().path().to_owned();
        member.records(&folder.join(record::FILE));
        let (signal, live) = (run.signal().clone(), Arc::clone(run.live()));
        let reporter = member.reporter();
        let (done, ended) = oneshot::channel();
        let (loaded, talked) = std::thread::scope(|scope| {
            let loading = scope.spawn(|| {
                let loaded = run.load_now(connect);
                let _ = done.send(());
                loaded
            });
            let talk = Messages { member: &mut member, gate: &gate, interrupts };
            let talked = connections.wait(async {
                tokio::select! {
                    talked = talk.until(ended) => talked,
                    never = report(&reporter, &live) => match never {},
                }
            });
            if talked.is_err() {
                // There will be no run, or nobody to send it to.
                if *gate.stages().borrow() >= Stage::Measuring {
                    signal.stop()
                } else {
                    signal.abort()
                }
            }
            let loaded: LoadedRun =
                loading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (loaded, talked)
        });
        let ending = interrupts.over();
        // The last figures.
        reporter.tell(live.state().figures());
        let kept = loaded.keep(&ending);
        let part = json!(AgentPart { start: gate.start().unwrap_or_default(), part: kept.part() });
        let (ended, written) = kept.ended();
        let released = talked.and_then(|()| connections.wait(member.finish(part.clone())));
        released.map_err(|why| {
            let has_measured = *gate.stages().borrow() >= Stage::Measuring;
            let kept = has_measured.then(|| {
                // Without it, only the records can show their clock.
                let _ = private::replace(&folder.join(PART), part.to_string().as_bytes());
                work.keep();
                folder
            });
            FleetError::NotHandedOver { why, kept }
        })?;
        ended?;
        Ok(written?)
    }
}

/// Sends figures until dropped: once a second, and in the measurement as each of its seconds ends,
/// so that the figures of all processes are of one instant.
async fn report(reporter: &Reporter, live: &Live) -> Infallible {
    loop {
        let state = live.state();
        reporter.tell(state.figures());
        let into = state.elapsed().map_or(0, |elapsed| elapsed.0 % TELL_EVERY.0);
        tokio::time::sleep(Nanos(TELL_EVERY.0 - into).into()).await;
    }
}

/// The messages between an agent and rank 0 during the load.
struct Messages<'t, I> {
    member: &'t mut Member,
    gate: &'t Gate,
    interrupts: &'t I,
}

impl<I: Interrupts> Messages<'_, I> {
    /// Exchanges messages until the load has ended.
    async fn until(self, mut ended: oneshot::Receiver<()>) -> Result<(), JoinError> {
        let Messages { member, gate, interrupts } = self;
        let mut stages = gate.stages();
        tokio::select! {
            _ = &mut ended => return Ok(()),
            // Warming up may take long, or not end where the engine does not answer.
            why = member.refused() => return Err(why),
            // Who asks the server waits until the others are warm; the start shows that they are.
            _ = stages.wait_for(|stage| *stage >= Stage::Warm) => {}
        }
        let start = tokio::select! {
            _ = &mut ended => {
                if interrupts.count() > 0 {
                    member.interrupt("somebody stopped it");
                }
                return Ok(());
            }
            start = member.ready() => start?,
        };
        gate.others_are_warm();
        gate.start_at(start.at);
        let mut ordered = 0;
        let mut handled = interrupts.count();
        loop {
            tokio::select! {
                _ = &mut ended => break,
                stop = member.interrupted(ordered) => {
                    ordered = stop.times;
                    while interrupts.count() < ordered.min(2) {
                        handled += 1;
                        interrupts.interrupt(&stop.why);
                    }
                    handled = handled.max(interrupts.count());
                }
                () = tokio::time::sleep(LOOK_EVERY) => {
                    if interrupts.count() > handled {
                        handled = interrupts.count();
                        member.interrupt("somebody stopped it");
                    }
                }
            }
        }
        if interrupts.count() > handled {
            // The load was over before the next look.
            member.interrupt("somebody stopped it");
        }
        Ok(())
    }
}

/// A folder of this process, which goes when it ends well.
struct Work(PathBuf);

impl Work {
    fn new(scratch: &Path, place: &Place) -> Result<Self, FleetError> {
        let name = format!("rank-{}-{}", place.rank, std::process::id());
        let folder = scratch.join(name);
        make(&folder)?;
        Ok(Work(folder))
    }

    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
