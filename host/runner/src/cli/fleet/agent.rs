//! A process that sends a part of the requests. It decides nothing: rank 0 says what to send and
//! when to begin.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::fleet::link::{Agent, Join, JoinError, Joined, Reporter};
use ::fleet::place::Place;
use ::fleet::token::Token;
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
use session::{Checked, Ending, Loaded, Record, Threads, resolve};
use tokio::sync::oneshot;

use super::super::dashboard::screen;
use super::super::failure::{Exit, Failure};
use super::super::interrupt::Interrupt;
use super::super::measure::{raise_descriptors, teller};
use super::super::print::tell;
use super::bundle::{Documents, digest, parts};
use super::others::Part;
use super::own::Own;
use super::{Connections, Run, build, host_name, make};
use load::transport::Dial;

/// The most bytes of files that are kept between runs.
const MOST_FILES: u64 = 64 << 30;
/// The interval at which signals are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time between two messages with figures.
const TELL_EVERY: Nanos = Nanos(1_000_000_000);

/// The file in an agent's folder that has what rank 0 did not hear.
pub(super) const PART: &str = "part.json";

/// The way an agent's part of the run ended, as rank 0 hears it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Told {
    /// The start instant by this process's clock.
    pub start: Nanos,
    /// Measurements beside its records.
    pub part: session::Part,
}

/// Takes part, as a process of its own.
pub(super) fn exec(
    args: &Run,
    place: Place,
    token: Token,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    take_part(args, place, token, interrupt, &|_| {})?;
    if interrupt.came() {
        Ok(ExitCode::from(Exit::Interrupted as u8))
    } else {
        Ok(ExitCode::SUCCESS)
    }
}

/// Takes part: joins, prepares, waits for the start, makes its part of the load, and hands
/// everything over. `gated` gets that part as soon as it can be watched.
///
/// # Errors
/// If it cannot join, cannot prepare, or rank 0 is gone; or if its load ended early, of which rank
/// 0 knows by then.
pub(super) fn take_part(
    args: &Run,
    place: Place,
    token: Token,
    interrupt: &Interrupt,
    gated: &dyn Fn(Part),
) -> Result<(), Failure> {
    let connections = Connections::start()?;
    let scratch = args.scratch();
    make(&scratch)?;
    let work = Work::new(&scratch, &place)?;
    let clock = Clock::start();
    let is_coordinator = place.rank == 0;
    let store = scratch.join("files");
    let join = Join {
        place,
        token,
        version: build()?,
        host: host_name(),
        clock,
        store: store.clone(),
        most_files: MOST_FILES,
        patience: args.fleet_wait.0,
        timing: args.timing(),
    };
    let mut joined = connections.wait(Agent::join(join)).map_err(refused)?;
    let (checked, connect, documents) = match prepare(args, &joined, &work.0, is_coordinator) {
        Ok(prepared) => prepared,
        Err(failure) => {
            connections.wait(joined.decline(vec![failure.words()]));
            return Err(failure);
        }
    };
    let files = joined.files().len();
    if !is_coordinator && files > 0 {
        tell(format_args!(
            "note: the {files} files that rank 0 sent stay in {} for later runs, where this user alone can read them",
            store.display()
        ));
    }
    let descriptors = raise_descriptors(&checked.plan);
    let contract = plugins::Contract::NEWEST.version();
    let environment = Environment::look(std::env::args(), descriptors, contract);
    let facts = json!({"environment": environment, "plan": parts(&checked.plan)});
    joined.prepared(&digest(&checked.plan)?, facts);
    let record = Record {
        output: work.0.clone(),
        // It is part of the salt, so all processes have the same.
        started: (documents.started.parse()).unwrap_or_else(|_| jiff::Timestamp::now()),
        environment,
        repeat: None,
    };
    let gate = Gate::new(clock);
    // Rank 0 reads the devices once for all: the plan's are the engine's, and not each load
    // machine's own.
    let run = checked.without_devices().begin(record, Threads)?;
    let run = run.behind(gate.clone());
    gated(Part {
        gate: gate.clone(),
        live: Arc::clone(run.live()),
        threads: run.threads().clone(),
    });
    interrupt.watch(run.signal());
    let folder = run.folder().path().to_owned();
    joined.records(&folder.join(record::FILE));
    let (signal, live) = (run.signal().clone(), Arc::clone(run.live()));
    let reporter = joined.reporter();
    let (done, ended) = oneshot::channel();
    let (loaded, talked) = std::thread::scope(|scope| {
        let loading = scope.spawn(|| {
            let loaded = run.load_now(&connect);
            let _ = done.send(());
            loaded
        });
        let talk = Messages {
            joined: &mut joined,
            gate: &gate,
            interrupt,
        };
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
        let loaded: Loaded = loading
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (loaded, talked)
    });
    interrupt.done();
    // What was seen in the end.
    reporter.tell(live.state().figures());
    let kept = loaded.keep(&Ending {
        at: jiff::Timestamp::now().to_string(),
        interrupted: interrupt.came(),
    });
    let told = json!(Told {
        start: gate.start().unwrap_or_default(),
        part: kept.part(),
    });
    let (ended, written) = kept.ended();
    let released = talked.and_then(|()| connections.wait(joined.finish(told.clone())));
    released.map_err(|why| {
        if *gate.stages().borrow() >= Stage::Measuring {
            // Without it, the records alone must say by which clock they are.
            let _ = private::replace(&folder.join(PART), told.to_string().as_bytes());
            tell(format_args!("what this process measured is in {}", folder.display()));
            tell(format_args!(
                "to take it into the run, copy that folder to the machine of rank 0: runner fleet merge RUN {}",
                folder.file_name().unwrap_or_default().display()
            ));
            work.keep();
        }
        refused(why)
    })?;
    ended?;
    Ok(written?)
}

/// Makes the run that rank 0 describes, and asks the target.
fn prepare(
    args: &Run,
    joined: &Joined,
    work: &Path,
    is_coordinator: bool,
) -> Result<(Checked, Dial, Documents), Failure> {
    let documents: Documents =
        serde_json::from_value(joined.documents().clone()).map_err(|cause| {
            let words = format!("rank 0 sent documents that this process cannot read: {cause}");
            Failure::new(Exit::Bug, words)
        })?;
    let mut source = documents
        .clone()
        .source(&args.flags, joined.files(), work)?;
    let (index, of) = joined.slice();
    source.slice = Some(Slice { index, of });
    let own = if is_coordinator || args.trust_rank_0 {
        None
    } else {
        Some(Own::of(&args.scenarios, &args.flags)?)
    };
    if let Some(own) = &own {
        own.check(&source, work)?;
    }
    let resolved = resolve(&source)?;
    if let Some(own) = &own {
        own.check_targets(&resolved, &source)?;
    }
    if !is_coordinator {
        // Which key goes where is this machine's too; rank 0 has said it already.
        resolved.remarks.iter().for_each(tell);
    }
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    Ok((checked, connect, documents))
}

/// Sends figures as long as it is not dropped: once a second, and in the measurement as each of its
/// seconds ends, so that those of all processes are of one instant.
async fn report(reporter: &Reporter, live: &Live) -> Infallible {
    loop {
        let state = live.state();
        reporter.tell(state.figures());
        let into = state
            .elapsed()
            .map_or(0, |elapsed| elapsed.0 % TELL_EVERY.0);
        tokio::time::sleep(Nanos(TELL_EVERY.0 - into).into()).await;
    }
}

/// The messages between an agent and rank 0 during the load.
struct Messages<'t> {
    joined: &'t mut Joined,
    gate: &'t Gate,
    interrupt: &'t Interrupt,
}

impl Messages<'_> {
    /// Talks until the load has been made.
    async fn until(self, mut ended: oneshot::Receiver<()>) -> Result<(), JoinError> {
        let Messages {
            joined,
            gate,
            interrupt,
        } = self;
        let mut stages = gate.stages();
        tokio::select! {
            _ = &mut ended => return Ok(()),
            // Warming up may take long, or not end where the engine does not answer.
            why = joined.refused() => return Err(why),
            // Whoever asks the server waits until the others are warm; that they are is known with
            // the start.
            _ = stages.wait_for(|stage| *stage >= Stage::Warm) => {}
        }
        let start = tokio::select! {
            _ = &mut ended => {
                if interrupt.came() {
                    joined.interrupt("somebody stopped it");
                }
                return Ok(());
            }
            start = joined.ready() => start?,
        };
        gate.others_are_warm();
        gate.start_at(start.at);
        let mut heard = 0;
        let mut told = interrupt.count();
        loop {
            tokio::select! {
                _ = &mut ended => break,
                stop = joined.interrupted(heard) => {
                    heard = stop.times;
                    while interrupt.count() < heard.min(2) {
                        // The dashboard of rank 0 shows it.
                        if !screen::is_up() {
                            tell(format_args!("stopped by the fleet: {}", stop.why));
                        }
                        told += 1;
                        interrupt.raise();
                    }
                    told = told.max(interrupt.count());
                }
                () = tokio::time::sleep(LOOK_EVERY) => {
                    if interrupt.count() > told {
                        told = interrupt.count();
                        joined.interrupt("somebody stopped it");
                    }
                }
            }
        }
        if interrupt.count() > told {
            // The load was over before the next look.
            joined.interrupt("somebody stopped it");
        }
        Ok(())
    }
}

/// A folder of this process, which goes when it ends well.
struct Work(PathBuf);

impl Work {
    fn new(scratch: &Path, place: &Place) -> Result<Self, Failure> {
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
        // What cannot be removed is in nobody's way.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The reason why a process takes no part.
fn refused(error: JoinError) -> Failure {
    match &error {
        JoinError::Interrupted(_) => Failure::new(Exit::Interrupted, error.to_string()),
        JoinError::Unable(_) => Failure::new(Exit::Input, error.to_string()),
        _ => Failure::new(Exit::Target, error.to_string()),
    }
}
