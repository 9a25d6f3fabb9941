//! The coordinator as its caller sees it: bind, gather, start, watch, finish.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{Board, Command, Context, Hub, LEAVE, Lobby, Timing, lock};
use crate::clock::{ClockStep, Estimate};
use crate::identity;
use crate::records::Incoming;
use crate::rendezvous::{Event, Reason, Rendezvous, Rules, Who};
use crate::token::Token;

/// The number of notes of connections that wait for the hub before they have to.
const NOTES: usize = 1024;
/// The time to wait after the system refused a connection, for example for lack of descriptors.
const RECOVER: Duration = Duration::from_millis(50);

/// Addresses to listen on, and the rules for connections.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The address, such as `0.0.0.0:7433`; port 0 takes a free one.
    pub address: String,
    pub token: Token,
    pub clock: Clock,
    pub timing: Timing,
}

/// The facts for the agents, and the destination of their records.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The time when the run began, opaque here.
    pub began: String,
    /// The run of a study, opaque here.
    pub order: Option<String>,
    /// The existing folder for the agents' records.
    pub records: PathBuf,
    /// The largest number of bytes of records from one agent.
    pub most_records: u64,
}

/// The coordinator cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("the coordinator cannot listen on `{address}`: {cause}")]
    Address { address: String, cause: std::io::Error },
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// The reasons why there is no run, one for each process that prevents it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fleet cannot start:\n  {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  "))]
pub struct Refusal(pub Vec<Reason>);

#[derive(Clone, Debug, PartialEq)]
pub struct ReadyAgent {
    pub who: Who,
    /// The facts that it recorded of its machine.
    pub facts: Value,
    /// The lead of its clock.
    pub clock: Option<Estimate>,
}

/// The end of an agent's part of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub who: Who,
    pub outcome: Outcome,
    /// Its records, as far as they came; absent if none did.
    pub records: Option<PathBuf>,
    /// The number of bytes that came.
    pub bytes: u64,
    /// Its clock at the start.
    pub at_start: Option<Estimate>,
    /// The first moves of its clock.
    pub moves: Vec<ClockStep>,
}

/// The end of an agent's part in the run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It finished, and its records are complete.
    Finished(Value),
    /// It was lost: its records end somewhere, and its remaining requests count as not offered.
    Lost {
        /// The time of its last message, by the coordinator's clock.
        from: Nanos,
        why: String,
    },
    /// It had not finished when the caller asked.
    Unfinished,
}

/// A coordinator that listens.
pub struct Coordinator {
    listener: TcpListener,
    address: SocketAddr,
    identity: Arc<rustls::ServerConfig>,
    clock: Clock,
    timing: Timing,
    commands: mpsc::UnboundedSender<Command>,
    requests: mpsc::UnboundedReceiver<Command>,
}

/// Stops a run from elsewhere, before the start too.
#[derive(Clone)]
pub struct Stopper(mpsc::UnboundedSender<Command>);

impl Stopper {
    /// Ends the run, or prevents it: once stops sending, twice gives up the replies under way.
    pub fn interrupt(&self, why: &str) {
        // A run that has ended needs no stop.
        let _ = self.0.send(Command::Interrupt(why.to_owned()));
    }
}

impl Coordinator {
    /// Listens. Fails if the address cannot be used.
    pub async fn bind(listen: Listen) -> Result<Self, BindError> {
        let Listen { address, token, clock, timing } = listen;
        let failed = |cause| BindError::Address { address: address.clone(), cause };
        let identity = identity::server(&token)?;
        let listener = TcpListener::bind(&address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        // The owner's own wishes, a few in a run.
        let (commands, requests) = mpsc::unbounded_channel();
        Ok(Coordinator { listener, address, identity, clock, timing, commands, requests })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The clock by which it decides.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(self.commands.clone())
    }

    /// Waits until all processes are ready, rank 0 too. Errors: every reason why there is no run.
    pub async fn gather(self, rules: Rules, offer: Offer) -> Result<ReadyFleet, Refusal> {
        let copies: Vec<_> = (0..rules.size)
            .map(|rank| {
                let path = offer.records.join(format!("records-{rank:04}.jsonl.zst"));
                Arc::new(Mutex::new(Incoming::new(&path, offer.most_records)))
            })
            .collect();
        let written: Arc<[AtomicU64]> = copies.iter().map(|_| AtomicU64::new(0)).collect();
        let (hub, notes) = mpsc::channel(NOTES);
        let context = Arc::new(Context {
            identity: self.identity,
            clock: self.clock,
            timing: self.timing,
            hub,
            copies: copies.clone(),
            written: Arc::clone(&written),
        });
        let board = Board::default();
        let (verdict, gathered) = oneshot::channel();
        // A few for each agent, whatever it sends: the state machine limits them.
        let (events, received) = mpsc::unbounded_channel();
        let hub = Hub {
            clock: self.clock,
            machine: Rendezvous::new(rules, self.clock.now()),
            notes,
            commands: self.requests,
            events,
            verdict: Some(verdict),
            board: board.clone(),
            began: offer.began,
            order: offer.order,
            copies: copies.clone(),
            written,
            links: BTreeMap::new(),
        };
        let (stop, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(self.listener, context, stopped));
        tasks.spawn(hub.run());
        let running =
            Running { commands: self.commands, events: received, board, copies, stop, tasks };
        match gathered.await {
            Ok(Ok(agents)) => Ok(ReadyFleet { agents, running }),
            Ok(Err(refusal)) => {
                // The reasons reach all connected processes before everything ends.
                running.finish().await;
                Err(refusal)
            }
            Err(_) => Err(Refusal(vec![Reason::Interrupted("the coordinator ended".to_owned())])),
        }
    }
}

/// Accepts connections, with a limit on handshakes ([`Lobby`]), until it is stopped. Open
/// connections then have time to send waiting messages.
async fn accept(listener: TcpListener, context: Arc<Context>, mut stopped: oneshot::Receiver<()>) {
    let lobby = Lobby::default();
    let mut served = JoinSet::new();
    let mut conn = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((tcp, address)) => {
                    conn += 1;
                    let guest = lobby.enter(conn, address.ip().to_canonical());
                    served.spawn(super::serve(Arc::clone(&context), tcp, address, conn, guest));
                }
                Err(_) => tokio::time::sleep(RECOVER).await,
            },
            Some(_) = served.join_next() => {}
            _ = &mut stopped => break,
        }
    }
    drop(listener);
    let rest = async { while served.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LEAVE, rest).await;
}

/// Everybody is ready.
pub struct ReadyFleet {
    agents: Vec<ReadyAgent>,
    running: Running,
}

impl ReadyFleet {
    /// The agents, by rank.
    pub fn agents(&self) -> &[ReadyAgent] {
        &self.agents
    }

    /// Returns the latest news of each agent, now and during the run.
    pub fn board(&self) -> Board {
        self.running.board()
    }

    /// Ends it without a run, and sends the agents the reason.
    pub async fn stop(self, why: &str) {
        self.running.interrupt(why);
        self.running.finish().await;
    }

    /// Begins the run at an instant of the coordinator's clock that every agent learns in time.
    pub fn start(self, at: Nanos) -> Running {
        let _ = self.running.commands.send(Command::Start(at));
        self.running
    }
}

/// A run under way. When it is dropped, the agents lose their coordinator.
pub struct Running {
    commands: mpsc::UnboundedSender<Command>,
    events: mpsc::UnboundedReceiver<Event>,
    board: Board,
    copies: Vec<Arc<Mutex<Incoming>>>,
    /// Dropped to refuse further connections.
    stop: oneshot::Sender<()>,
    tasks: JoinSet<()>,
}

impl Running {
    /// The next event; [`Event::Over`] is the last. Figures are on the [`Board`] instead.
    pub async fn event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Ends the run: once stops sending, twice gives up the replies under way.
    pub fn interrupt(&self, why: &str) {
        let _ = self.commands.send(Command::Interrupt(why.to_owned()));
    }

    /// Returns the latest news of each agent.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// The number of bytes of each agent's records that have come, by rank.
    pub fn records(&self) -> Vec<u64> {
        self.copies.iter().map(|copy| lock(copy).length()).collect()
    }

    /// The present endings by rank. Agents that have finished may take a moment to leave.
    pub async fn finish(self) -> Vec<Ending> {
        let (answer, endings) = oneshot::channel();
        let _ = self.commands.send(Command::Finish(answer));
        // If the deciding task has failed, the agents' records are there all the same.
        let endings = endings.await.unwrap_or_else(|_| {
            (0..)
                .zip(&self.copies)
                .map(|(rank, copy)| Ending::unknown(Who { rank, host: None }, copy))
                .collect()
        });
        drop(self.stop);
        let mut tasks = self.tasks;
        while tasks.join_next().await.is_some() {}
        endings
    }
}

impl Ending {
    /// The ending of an agent with nothing known but its records.
    pub(super) fn unknown(who: Who, copy: &Mutex<Incoming>) -> Ending {
        let copy = lock(copy);
        Ending {
            who,
            outcome: Outcome::Unfinished,
            records: (copy.length() > 0).then(|| copy.path().to_owned()),
            bytes: copy.length(),
            at_start: None,
            moves: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The deciding task ended early, as in a panic.
    #[tokio::test]
    async fn keeps_agents_records_after_the_deciding_task_failed() {
        let folder = tempfile::tempdir().unwrap();
        let copies = [0, 1].map(|rank| {
            let path = folder.path().join(rank.to_string());
            Arc::new(Mutex::new(Incoming::new(&path, 100)))
        });
        lock(&copies[1]).take(0, b"records").unwrap();
        let (commands, _) = mpsc::unbounded_channel();
        let (_, events) = mpsc::unbounded_channel();
        let (stop, _stopped) = oneshot::channel();
        let running = Running {
            commands,
            events,
            board: Board::default(),
            copies: copies.to_vec(),
            stop,
            tasks: JoinSet::new(),
        };
        let endings = running.finish().await;
        let known: Vec<_> = (endings.iter())
            .map(|ending| (ending.who.rank, ending.bytes, ending.records.is_some()))
            .collect();
        assert_eq!(known, [(0, 0, false), (1, 7, true)]);
        assert!(endings.iter().all(|ending| ending.outcome == Outcome::Unfinished));
    }
}
