//! Rank 0: gathers the processes, gives them one instant to begin at, and makes one run of what
//! they measured.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::fleet::link::{Coordinator, Gathered, Listen, Offer, Outcome, Refusal, Running, Stopper};
use ::fleet::place::Place;
use ::fleet::rendezvous::{Event, Rules};
use ::fleet::token::Token;
use model::clock::Clock;
use model::units::Nanos;
use runs::environment::Environment;
use session::stages::Begun;
use session::{Ending, Record, Threads, resolve};

use super::super::conclude::conclude;
use super::super::dashboard::screen;
use super::super::failure::{Exit, Failure};
use super::super::interrupt::Interrupt;
use super::super::measure::teller;
use super::super::output::print;
use super::super::print::tell;
use super::super::sources::{source_of, text};
use super::super::watch::Watching;
use super::agent::take_part;
use super::bundle::{Documents, offered};
use super::gathered::together;
use super::others::{Fleet, Own, locked};
use super::{Connections, Run, build, make};

/// Time between the moment when all processes hear of the start instant and that instant.
const LEAD: Nanos = Nanos(2_000_000_000);
/// Time to add if the server's cache is flushed in between.
const FLUSH: Nanos = Nanos(5_000_000_000);
/// The most bytes of records that one agent may send: those of tens of millions of requests.
const MOST_RECORDS: u64 = 32 << 30;
/// The interval at which signals are looked for before the start.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time to wait, once all are ready, for clocks that are not known well enough.
const MEASURE: Duration = Duration::from_secs(30);

/// Coordinates, and takes part.
pub(super) fn exec(
    args: &Run,
    place: &Place,
    token: &Token,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let watching = args.watch.begin()?;
    let lines = args.output.lines()?;
    let scenario = text(&args.scenarios)?;
    let (source, notes) = source_of(scenario.clone(), &args.flags)?;
    for note in notes {
        tell(format_args!("note: {note}"));
    }
    let resolved = resolve(&source)?;
    resolved.remarks.iter().for_each(tell);
    let connect = resolved.dial()?;
    let checked = resolved.check_now(&connect.afresh(), teller())?;
    let trace = checked.parts.trace.clone();
    let (files, roles) = offered(&checked)?;
    let record = Record {
        output: args.output.within.output_dir.clone(),
        started: jiff::Timestamp::now(),
        environment: Environment::look(std::env::args(), None, plugins::Contract::NEWEST.version()),
        repeat: None,
    };
    let documents = Documents {
        scenario,
        started: record.started.to_string(),
        files: roles,
    };
    let run = checked.begin(record, Threads)?;
    let records = run.folder().path().join("agents");
    make(&records)?;
    let offer = Offer {
        documents: serde_json::json!(documents),
        files,
        records: records.clone(),
        most_records: MOST_RECORDS,
    };
    let made = gather_and_run(args, place, token, (interrupt, &watching), &run, offer);
    let (endings, start) = match made {
        Ok(made) => made,
        Err(failure) => {
            let _ = std::fs::remove_dir_all(&records);
            run.folder().discard_unbegun();
            return Err(failure);
        }
    };
    interrupt.between_runs(None);
    interrupt.assessing();
    let plan = run.plan().clone();
    let unknown = |ending: &::fleet::link::Ending| ending.outcome == Outcome::Unfinished;
    let is_known = !endings.iter().any(unknown);
    let elsewhere = together(run.folder().path(), &plan, &trace, start, endings)?;
    match is_known {
        // They are in the run's own file now.
        true => drop(std::fs::remove_dir_all(&records)),
        // Without its clock, an agent's instants may be wrong there.
        false => tell(format_args!(
            "note: the agents' records are also kept as they came, in {}",
            records.display()
        )),
    }
    let ending = Ending {
        at: jiff::Timestamp::now().to_string(),
        interrupted: interrupt.came(),
    };
    let kept = run.made_elsewhere(elsewhere, &ending);
    let assessed = kept
        .measured()?
        .assess_until(|| interrupt.ends_assessment());
    let measured = assessed?.summarise()?;
    print(&measured.summary, &args.output, lines, &measured.folder)?;
    interrupt.done();
    Ok(ExitCode::from(conclude(measured, interrupt, &args.output)?))
}

/// Gathers all processes, this one among them, and has them make the load. Gives how each ended,
/// and the start instant.
fn gather_and_run(
    args: &Run,
    place: &Place,
    token: &Token,
    (interrupt, watching): (&Interrupt, &Watching),
    run: &Begun<Threads>,
    offer: Offer,
) -> Result<(Vec<::fleet::link::Ending>, Nanos), Failure> {
    let connections = Connections::start()?;
    let build = build()?;
    let clock = Clock::start();
    let listen = Listen {
        address: format!("[::]:{}", place.port),
        token: token.clone(),
        clock,
        timing: args.timing(),
    };
    let coordinator = connections.wait(async {
        match Coordinator::bind(listen.clone()).await {
            Ok(coordinator) => Ok(coordinator),
            // A machine without IPv6.
            Err(_) => {
                let address = format!("0.0.0.0:{}", place.port);
                Coordinator::bind(Listen { address, ..listen }).await
            }
        }
    });
    let coordinator = coordinator.map_err(|error| Failure::new(Exit::Input, error.to_string()))?;
    let port = coordinator.address().port();
    tell(format_args!(
        "fleet of {}: rank 0 listens on port {port}",
        place.size
    ));
    let made_here = Own::default();
    let own = Place {
        host: "127.0.0.1".to_owned(),
        port,
        ..place.clone()
    };
    interrupt.between_runs(Some("ending the fleet"));
    let own_token = token.clone();
    std::thread::scope(|scope| {
        let seen = Arc::clone(&made_here);
        let agent = scope.spawn(move || {
            take_part(args, own, own_token, interrupt, &|part| {
                *locked(&seen) = Some(part)
            })
        });
        let stopper = coordinator.stopper();
        let gathered = connections.wait(gather(
            args,
            place,
            coordinator,
            offer,
            interrupt,
            &stopper,
            build,
        ));
        let gathered = match gathered {
            Ok(gathered) => gathered,
            Err(refusal) => {
                // What is wrong with the scenario on this machine is told by this machine's own
                // agent.
                let own = agent
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let refused = if interrupt.came() {
                    Exit::Interrupted
                } else {
                    Exit::Target
                };
                let words =
                    Failure::several(refused, refusal.0.iter().map(ToString::to_string).collect());
                return Err(own
                    .err()
                    .filter(|own| {
                        own.number() != Exit::Target as u8
                            && own.number() != Exit::Interrupted as u8
                    })
                    .unwrap_or(words));
            }
        };
        for member in gathered.members() {
            if let Some(clock) = &member.clock {
                let bound = clock.bound.0 as f64 / 1e3;
                tell(format_args!(
                    "{} is ready; its clock is known to {bound:.0} µs",
                    member.who
                ));
            }
        }
        let lead = if run.plan().control.flush_cache {
            LEAD + FLUSH
        } else {
            LEAD
        };
        let shown = Fleet::new(gathered.board(), clock, place.size, Arc::clone(&made_here));
        run.live().made_by(Arc::new(shown));
        let devices = match run.watch_devices(clock) {
            Ok(devices) => devices,
            Err(error) => {
                connections.wait(gathered.stop("rank 0 cannot read the devices"));
                let _ = agent.join();
                return Err(error.into());
            }
        };
        // What shows the run belongs to the part that is made here: both end together.
        let threads =
            (locked(&made_here).as_ref()).map_or(run.threads().clone(), |own| own.threads.clone());
        let folder = run.folder().path();
        let onlooker = watching.look_at(folder, run.plan(), run.live(), &threads, interrupt);
        let start = clock.now() + lead;
        let mut running = gathered.start(start);
        let mut said = Said::default();
        connections.wait(follow(place.size, &mut running, &made_here, &mut said));
        let endings = connections.wait(running.finish());
        run.leave_devices(devices);
        drop(onlooker);
        said.release();
        let own = agent
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if let Err(failure) = own {
            tell(format_args!("note: rank 0's own part: {}", failure.words()));
        }
        Ok((endings, start))
    })
}

/// Lines about the fleet: printed at once, or where the dashboard is up, once it has gone.
#[derive(Default)]
struct Said(Vec<String>);

impl Said {
    fn tell(&mut self, words: String) {
        if screen::is_up() {
            self.0.push(words)
        } else {
            tell(words)
        }
    }

    fn release(self) {
        self.0.iter().for_each(tell);
    }
}

/// Waits until all are ready, or somebody interrupts.
async fn gather(
    args: &Run,
    place: &Place,
    coordinator: Coordinator,
    offer: Offer,
    interrupt: &Interrupt,
    stopper: &Stopper,
    build: String,
) -> Result<Gathered, Refusal> {
    let nanos = Nanos::from;
    let rules = Rules {
        version: build,
        size: place.size,
        hosts: Vec::new(),
        arrive: nanos(args.fleet_wait.0),
        // Plugins are compiled and targets waited for meanwhile.
        prepare: nanos(args.fleet_wait.0 * 2),
        settle: Nanos(2_000_000_000),
        grace: nanos(args.fleet_grace.0),
        // The clocks must be known to a tenth of this.
        smallest: nanos(args.clock_error.0 * 10),
        answers: u64::from(args.timing().first),
        measure: nanos(MEASURE),
    };
    let gathering = coordinator.gather(rules, offer);
    tokio::pin!(gathering);
    let mut stopped = false;
    loop {
        tokio::select! {
            gathered = &mut gathering => return gathered,
            () = tokio::time::sleep(LOOK_EVERY) => {
                if interrupt.came() && !stopped {
                    stopped = true;
                    stopper.interrupt("interrupted");
                }
            }
        }
    }
}

/// Follows the run until every agent has finished or is lost.
async fn follow(size: u32, running: &mut Running, own: &Own, said: &mut Said) {
    let mut left = size;
    let mut own_is_left = true;
    loop {
        match running.event().await {
            Some(Event::Lost { who, why, .. }) => {
                left -= 1;
                said.tell(format!(
                    "lost {who}: {why}; the others go on, and the run will be invalid"
                ));
            }
            Some(Event::ClockMoved { who, moved }) => {
                let by = moved.by as f64 / 1e6;
                said.tell(format!("the clock of {who} moved by {by:.3} ms"));
            }
            Some(Event::Interrupted { who, why }) => {
                said.tell(format!("{who} stops the fleet: {why}"));
            }
            Some(Event::Finished { rank, .. }) => {
                left -= 1;
                own_is_left &= rank != 0;
            }
            Some(Event::Live { .. }) => {}
            Some(Event::Over) | None => return,
        }
        // Whoever asks the server for its metrics waits for the others.
        if left == u32::from(own_is_left)
            && let Some(own) = &*locked(own)
        {
            own.gate.others_are_drained();
        }
    }
}
