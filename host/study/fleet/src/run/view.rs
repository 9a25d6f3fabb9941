//! The display of a fleet on rank 0 while it runs: the last figures of all processes, combined as
//! one run, and the reporting processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::link::{Board, Latest};
use crate::rendezvous::Who;
use load::thread_group::ThreadGroup;
use load::vitals::WatchedThread;
use model::clock::Clock;
use model::units::Nanos;
use session::gate::Gate;
use session::live::figures::{Figures, State};
use session::live::snapshot::{Agent, Standing};
use session::live::{Agents, Live, Snapshot};

/// A process whose last figures are older is silent: it sends them every second.
const SILENT: Nanos = Nanos(5_000_000_000);

/// The part of the run that rank 0 makes itself.
pub struct LocalPart {
    pub(super) gate: Gate,
    pub(super) live: Arc<Live>,
    pub(super) threads: ThreadGroup,
}

/// Rank 0's own part, once it waits for the others.
pub type Local = Arc<OnceLock<LocalPart>>;

/// The number of an agent's figures, and the figures; nothing if they could not be read.
type Reading = (u64, Option<Arc<Figures>>);

/// All processes of a fleet, as rank 0 shows them.
pub(super) struct View {
    board: Board,
    clock: Clock,
    size: u32,
    local: Local,
    /// The last figures that were read, by rank.
    read: Mutex<BTreeMap<u32, Reading>>,
}

impl View {
    /// A view of `size` processes, by the coordinator's clock.
    pub(super) fn new(board: Board, clock: Clock, size: u32, local: Local) -> Self {
        View { board, clock, size, local, read: Mutex::default() }
    }

    /// The last figures of a process.
    fn figures(&self, latest: &Latest) -> Option<Arc<Figures>> {
        let sent = latest.figures.as_ref()?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, figures) = read.entry(latest.who.rank).or_default();
        if *number != latest.number {
            (*number, *figures) = (latest.number, Figures::read(sent).map(Arc::new));
        }
        figures.clone()
    }
}

impl Agents for View {
    fn snapshot(&self) -> Snapshot {
        let (board, now) = (self.board.read(), self.clock.now());
        let known: BTreeMap<u32, (&Latest, Option<Arc<Figures>>)> =
            (board.iter()).map(|(rank, latest)| (*rank, (latest, self.figures(latest)))).collect();
        let parts = known.values().filter_map(|(latest, own)| Some((own.as_deref()?, latest.lost)));
        // Each part adds up by itself, so the whole does.
        let whole = State::together(parts).unwrap_or_default();
        let agents = (0..self.size).map(|rank| match known.get(&rank) {
            Some((latest, figures)) => agent(latest, figures.as_deref(), now),
            None => {
                let who = Who { rank, host: None };
                agent(&Latest { who, ..Latest::default() }, None, now)
            }
        });
        Snapshot { agents: agents.collect(), ..whole.snapshot() }
    }

    fn enlist(&self, thread: WatchedThread) {
        if let Some(local) = self.local.get() {
            local.live.enlist(thread);
        }
    }
}

/// A process at its last message.
fn agent(latest: &Latest, figures: Option<&Figures>, now: Nanos) -> Agent {
    let age = figures.map(|_| now.since(latest.at));
    let standing = match (latest.lost, latest.finished, age) {
        (true, _, _) => Standing::Lost,
        (false, true, _) => Standing::Finished,
        (false, false, Some(age)) if age <= SILENT => Standing::Reporting,
        (false, false, _) => Standing::Silent,
    };
    Agent {
        rank: latest.who.rank,
        host: latest.who.host.clone(),
        standing,
        age: age.filter(|_| !latest.finished),
        answered: figures.map_or(0, Figures::answered),
        failed: figures.map_or(0, Figures::failed),
        in_flight: (figures.filter(|_| !latest.lost)).map(Figures::in_flight),
        load: (figures.filter(|_| standing == Standing::Reporting)).and_then(Figures::load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest(at_s: u64, lost: bool, finished: bool) -> Latest {
        Latest {
            who: Who { rank: 3, host: Some("load3".to_owned()) },
            figures: Some(Arc::new(Live::default().state().figures())),
            number: 1,
            at: Nanos(at_s * 1_000_000_000),
            finished,
            lost,
        }
    }

    #[test]
    fn distinguishes_reporting_and_silent_processes() {
        let now = Nanos(100_000_000_000);
        for (latest, standing, age_s) in [
            (latest(99, false, false), Standing::Reporting, Some(1)),
            (latest(90, false, false), Standing::Silent, Some(10)),
            (latest(90, true, false), Standing::Lost, Some(10)),
            (latest(90, false, true), Standing::Finished, None),
        ] {
            let figures = Figures::read(latest.figures.as_ref().unwrap()).unwrap();
            let seen = agent(&latest, Some(&figures), now);
            let age = age_s.map(|s: u64| Nanos(s * 1_000_000_000));
            assert_eq!((seen.standing, seen.age), (standing, age));
            assert_eq!(seen.in_flight.is_none(), standing == Standing::Lost);
        }
        let nothing = agent(&latest(99, false, false), None, now);
        assert_eq!((nothing.standing, nothing.age), (Standing::Silent, None));
    }

    /// Before the first report, every process counts as silent.
    #[test]
    fn processes_are_silent_before_their_first_report() {
        let fleet = View::new(Board::default(), Clock::start(), 3, Local::default());
        let seen = fleet.snapshot();
        assert_eq!((seen.counts.answered, seen.counts.elapsed), (0, None));
        let silent = |agent: &Agent| agent.standing == Standing::Silent && agent.host.is_none();
        assert_eq!(seen.agents.len(), 3);
        assert!(seen.agents.iter().all(silent));
    }
}
