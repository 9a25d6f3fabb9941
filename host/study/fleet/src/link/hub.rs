//! The coordinator's deciding task: it feeds the state machine, and carries out its actions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use tokio::sync::{mpsc, oneshot};

use super::Board;
use super::coordinator::{Ending, Outcome, ReadyAgent, Refusal};
use super::lock;
use crate::records::Incoming;
use crate::rendezvous::{Action, Conn, Event, Input, Rendezvous, Step};
use crate::wire::{Frame, Hello, Message, Welcome};

/// The interval at which to check deadlines.
const TICK: Duration = Duration::from_millis(20);
/// The time that agents that have finished may take to leave.
pub(super) const LEAVE: Duration = Duration::from_secs(3);

/// A note from a connection to the hub.
pub(super) enum Note {
    /// A connection has the token and names its process.
    Greeting {
        conn: Conn,
        hello: Hello,
        /// Frames to send to it.
        out: mpsc::Sender<Frame>,
        /// To be used if it is welcome, and dropped if not.
        accept: oneshot::Sender<()>,
        /// To be dropped when the connection is to end.
        leash: oneshot::Sender<()>,
    },
    /// An input for the state machine.
    Input(Input),
}

pub(super) enum Command {
    Start(Nanos),
    Interrupt(String),
    /// All agents' endings, and the end of the hub.
    Finish(oneshot::Sender<Vec<Ending>>),
}

/// The answer to the caller that waits for all.
pub(super) type Verdict = oneshot::Sender<Result<Vec<ReadyAgent>, Refusal>>;

struct Link {
    out: mpsc::Sender<Frame>,
    accept: Option<oneshot::Sender<()>>,
    _leash: oneshot::Sender<()>,
}

pub(super) struct Hub {
    pub(super) clock: Clock,
    pub(super) machine: Rendezvous,
    pub(super) notes: mpsc::Receiver<Note>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    /// The state machine limits them: a few for each agent, whatever it sends.
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) verdict: Option<Verdict>,
    pub(super) board: Board,
    pub(super) began: String,
    pub(super) order: Option<String>,
    pub(super) copies: Vec<Arc<Mutex<Incoming>>>,
    /// The number of written bytes of them. While a disk is slow the copies are locked, and nobody
    /// here waits for a disk.
    pub(super) written: Arc<[AtomicU64]>,
    pub(super) links: Links,
}

/// The connections that greeted.
#[derive(Default)]
pub(super) struct Links(BTreeMap<Conn, Link>);

impl Hub {
    /// Decides until the caller has the endings or is gone.
    pub(super) async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let input = tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Start(at)) => Input::Start(at),
                    Some(Command::Interrupt(why)) => Input::Interrupt(why),
                    Some(Command::Finish(answer)) => return self.finish(answer).await,
                    None => return,
                },
                Some(note) = self.notes.recv() => self.note(note),
                _ = tick.tick() => Input::Tick,
            };
            self.decide(input);
        }
    }

    fn note(&mut self, note: Note) -> Input {
        match note {
            Note::Greeting { conn, hello, out, accept, leash } => {
                let link = Link { out, accept: Some(accept), _leash: leash };
                self.links.0.insert(conn, link);
                Input::Hello(conn, hello)
            }
            Note::Input(input) => {
                if let Input::Broken(conn, _) = &input {
                    self.links.0.remove(conn);
                }
                input
            }
        }
    }

    fn decide(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for action in self.machine.on(self.clock.now(), input) {
                if let Some((conn, why)) = self.act(action) {
                    inputs.push(Input::Broken(conn, why));
                }
            }
        }
    }

    /// Carries out an action of the state machine; returns a connection that it broke, if any.
    fn act(&mut self, action: Action) -> Option<(Conn, String)> {
        match action {
            Action::Welcome(conn, rank) => {
                let welcome = Welcome {
                    index: rank,
                    of: self.machine.seats().len() as u32,
                    began: self.began.clone(),
                    order: self.order.clone(),
                    records: self.written[rank as usize].load(Ordering::Relaxed),
                };
                if let Some(link) = self.links.0.get_mut(&conn) {
                    link.accept.take().map(|accept| accept.send(()));
                }
                return self.send(conn, Message::Welcome(Box::new(welcome)));
            }
            Action::Forget(rank) => {
                if let Err(error) = lock(&self.copies[rank as usize]).forget() {
                    let conn = self.machine.conn(rank)?;
                    return Some((conn, error.to_string()));
                }
            }
            Action::Send(conn, message) => return self.send(conn, message),
            Action::Close(conn) => drop(self.links.0.remove(&conn)),
            Action::Gathered => {
                let agents = self.agents();
                self.verdict.take().map(|verdict| verdict.send(Ok(agents)));
            }
            Action::GaveUp(reasons) => {
                self.verdict.take().map(|verdict| verdict.send(Err(Refusal(reasons))));
            }
            Action::Event(Event::Live { rank, figures }) => {
                let who = &self.machine.seats()[rank as usize].who;
                self.board.figures(who, figures, self.clock.now());
            }
            Action::Event(event) => {
                match &event {
                    Event::Lost { who, .. } => self.board.lost(who),
                    Event::Finished { rank, .. } => {
                        self.board.finished(&self.machine.seats()[*rank as usize].who);
                    }
                    _ => {}
                }
                // A caller that does not listen any more has dropped it.
                let _ = self.events.send(event);
            }
        }
        None
    }

    /// Sends to a peer. A peer with too many waiting messages is cut off, and may come back.
    fn send(&mut self, conn: Conn, message: Message) -> Option<(Conn, String)> {
        let link = self.links.0.get(&conn)?;
        link.out.try_send(message.into()).err()?;
        self.links.0.remove(&conn);
        Some((conn, "it does not read its messages".to_owned()))
    }

    fn agents(&self) -> Vec<ReadyAgent> {
        let now = self.clock.now();
        let agent = |seat: &crate::rendezvous::Seat| ReadyAgent {
            who: seat.who.clone(),
            facts: seat.facts.clone().unwrap_or_default(),
            clock: seat.clock.at(now),
        };
        self.machine.seats().iter().map(agent).collect()
    }

    /// Reports the present endings, and lets finished agents leave.
    async fn finish(mut self, answer: oneshot::Sender<Vec<Ending>>) {
        let ending = |(seat, copy): (&crate::rendezvous::Seat, &Arc<Mutex<Incoming>>)| {
            let copy = lock(copy);
            Ending {
                who: seat.who.clone(),
                outcome: match (&seat.lost, seat.step, &seat.ending) {
                    (Some((from, why)), _, _) => Outcome::Lost { from: *from, why: why.clone() },
                    (None, Step::Finished, Some(ending)) => Outcome::Finished(ending.clone()),
                    _ => Outcome::Unfinished,
                },
                records: (copy.length() > 0).then(|| copy.path().to_owned()),
                bytes: copy.length(),
                at_start: seat.at_start,
                moves: seat.clock.moves().0.to_vec(),
            }
        };
        let endings = self.machine.seats().iter().zip(&self.copies).map(ending).collect();
        let left = async {
            while !self.links.0.is_empty()
                && let Some(note) = self.notes.recv().await
            {
                let input = self.note(note);
                self.decide(input);
            }
        };
        let _ = tokio::time::timeout(LEAVE, left).await;
        let _ = answer.send(endings);
    }
}
