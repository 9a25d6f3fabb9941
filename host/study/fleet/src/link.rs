//! Real sockets: the coordinator that listens, agents that connect, and their connections.
//!
//! [`Coordinator`] and [`Agent`] drive the state machines of [`crate::rendezvous`]. This module
//! owns connections, their bounds and their timing; it decides nothing about the run. Connections
//! break and come back without the caller's doing, until [`Timing::grace`] is over.
//!
//! ```text
//! coordinator                                agent
//! bind, gather ------------- Welcome ------> join: slice, the time when the run began
//!    |        <------------- Prepared ------ prepared: the plan's digest
//!    |        <------------- Ready --------- ready, which waits
//! start(at) ---------------- Start --------> the instant, by the agent's own clock
//! event, board   <---------- Live, Records - reporter, records
//! interrupt ---------------- Interrupt ----> interrupted
//! finish      <------------- Finished ------ finish
//! ```
//!
//! Bounds: handshakes under way at the same time ([`HANDSHAKES`]), their time, sizes of messages
//! ([`crate::wire::Bound`]), messages that wait for a peer ([`WAITING`]), records of an agent
//! ([`Offer::most_records`]). A peer that does not read is cut off.
//!
//! A runtime on which other work blocks answers no questions, and silence counts as a broken
//! connection. So the caller gives this module a runtime on a thread of its own.

mod agent;
mod coordinator;
mod driver;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::clock::Exchange;
use crate::records::{Incoming, RecordsError};
use crate::rendezvous::{Action, Conn, Event, Input, Rendezvous, Step, Who};
use crate::wire::{Bound, Decoder, Frame, Hello, Message, Welcome};
use model::clock::Clock;
use model::units::Nanos;

pub use agent::{Agent, Join, JoinError, Member, Reporter, Start};
pub use coordinator::{
    BindError, Coordinator, Ending, Listen, Offer, Outcome, ReadyAgent, ReadyFleet, Refusal,
    Running, Stopper,
};

/// The number of messages that may wait for one peer.
pub const WAITING: usize = 256;

/// The times of connections.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A handshake, up to the greeting.
    pub handshake: Duration,
    /// A connection's first byte, which an agent sends at once.
    pub first_byte: Duration,
    /// Between questions about a clock, which also show that the peer is alive.
    pub ping: Duration,
    /// Between the first questions, which make the estimate good.
    pub first_pings: Duration,
    /// The number of first questions.
    pub first: u32,
    /// Without any message the connection counts as broken.
    pub silence: Duration,
    /// The longest absence of an agent; it ends its own run a [`Self::silence`] later.
    pub grace: Duration,
    /// The longest pause between two attempts to connect. The first ones are shorter.
    pub retry: Duration,
    /// The interval at which to look at the records' file.
    pub records: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            handshake: Duration::from_secs(10),
            first_byte: Duration::from_secs(3),
            ping: Duration::from_secs(1),
            first_pings: Duration::from_millis(20),
            first: 16,
            silence: Duration::from_secs(10),
            grace: Duration::from_secs(20),
            retry: Duration::from_secs(2),
            records: Duration::from_millis(250),
        }
    }
}

/// This machine's name, by which others know it and may reach it.
pub fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = kernel.ok().or_else(|| std::env::var("HOSTNAME").ok());
    let name = name.map(|name| name.trim().to_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unnamed".to_owned())
}

/// Runs blocking work on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down; nobody waits for this any more.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Locks data that a panic cannot leave in pieces: a holder's changes are complete or not begun.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The last figures of all agents. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<BTreeMap<u32, Latest>>>);

/// The latest news of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latest {
    pub who: Who,
    /// Its figures, opaque here; absent before the first.
    pub figures: Option<Arc<Value>>,
    /// The number of figures that came: the same number stands for the same figures.
    pub number: u64,
    /// The time when the last figures came, by the coordinator's clock.
    pub at: Nanos,
    /// True if its part of the run has ended and is complete here.
    pub finished: bool,
    /// True if it is gone for good.
    pub lost: bool,
}

impl Board {
    /// Returns the latest news of each agent that has sent any, by rank.
    pub fn read(&self) -> BTreeMap<u32, Latest> {
        lock(&self.0).clone()
    }

    fn figures(&self, who: &Who, figures: Value, at: Nanos) {
        self.change(who, |latest| {
            latest.figures = Some(Arc::new(figures));
            latest.number += 1;
            latest.at = at;
        });
    }

    fn finished(&self, who: &Who) {
        self.change(who, |latest| latest.finished = true);
    }

    fn lost(&self, who: &Who) {
        self.change(who, |latest| latest.lost = true);
    }

    fn change(&self, who: &Who, change: impl FnOnce(&mut Latest)) {
        let mut board = lock(&self.0);
        let latest = board.entry(who.rank).or_default();
        change(latest);
        // A process that was started again may be on another machine.
        latest.who.clone_from(who);
    }
}

/// The number of bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Reads frames. Dropping a call of [`Self::next`] loses nothing.
struct Reader<R> {
    half: R,
    decoder: Decoder,
    chunk: Vec<u8>,
    clock: Clock,
    at: Nanos,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    fn new(half: R, bound: Bound, clock: Clock) -> Self {
        Reader { half, decoder: Decoder::new(bound), chunk: vec![0; CHUNK], clock, at: clock.now() }
    }

    fn widen(&mut self, bound: Bound) {
        self.decoder.widen(bound);
    }

    /// The next frame, and the time when its last bytes were read; or the reason why there is none.
    async fn next(&mut self) -> Result<(Frame, Nanos), String> {
        loop {
            if let Some(frame) = self.decoder.next().map_err(|error| error.to_string())? {
                return Ok((frame, self.at));
            }
            match self.half.read(&mut self.chunk).await {
                Ok(0) => return Err("the connection was closed".to_owned()),
                Ok(read) => {
                    self.at = self.clock.now();
                    self.decoder.feed(&self.chunk[..read]);
                }
                Err(error) => {
                    return Err(match (crate::identity::meaning(&error), error.kind()) {
                        (Some(meaning), _) => meaning.to_owned(),
                        // A killed process sends nothing, and the library's message is for its own
                        // users.
                        (None, std::io::ErrorKind::UnexpectedEof) => "the connection ended without notice, as when a process is killed or its machine goes down".to_owned(),
                        (None, _) => error.to_string(),
                    });
                }
            }
        }
    }
}

/// Writes frames until there can be no more messages, and closes. Bytes of records wait
/// for all messages, so that an answer about a clock is not held up.
async fn write<W: AsyncWrite + Unpin>(
    mut half: W,
    mut messages: mpsc::Receiver<Frame>,
    mut bulk: mpsc::Receiver<Frame>,
    clock: Clock,
    bound: Bound,
    patience: Duration,
) -> Result<(), String> {
    loop {
        let frame = tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(message) => message,
                None => break,
            },
            Some(frame) = bulk.recv() => frame,
        };
        let bytes = stamped(frame, clock.now()).encode(bound).map_err(|error| error.to_string())?;
        let sent = timeout(patience, async {
            half.write_all(&bytes).await?;
            half.flush().await
        });
        match sent.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("it took no message for {} s", patience.as_secs())),
        }
    }
    // The other side may be gone already.
    let _ = timeout(patience, half.shutdown()).await;
    Ok(())
}

/// Questions and answers about a clock say when they were written.
fn stamped(mut frame: Frame, now: Nanos) -> Frame {
    if let Message::Ping { sent, .. } | Message::Pong { sent, .. } = &mut frame.message {
        *sent = now;
    }
    frame
}

// Connections that have not proved their identity: their limit, and the connection to close for
// the next.
//
// Whoever can reach the port can open connections. A connection beyond the limit is let in, and
// another is closed: the oldest silent connection, else the oldest. So connections that are only
// held open keep no agent out, and one address cannot take the places of all.

/// The number of connections that may be in their handshake at the same time.
pub const HANDSHAKES: usize = 64;

/// Handshakes under way from one address, at most; the processes of a large machine come from one.
const MOST_OF_ADDRESS: usize = HANDSHAKES / 2;

/// The connections in their handshake, the oldest first.
#[derive(Clone, Default)]
struct Lobby(Arc<Mutex<Vec<Waiting>>>);

struct Waiting {
    conn: Conn,
    address: IpAddr,
    spoke: bool,
    /// Dropped to close the connection.
    _leash: oneshot::Sender<()>,
}

/// The place of a connection in its handshake; dropping it frees the place.
struct Guest {
    lobby: Lobby,
    conn: Conn,
}

impl Lobby {
    /// Lets a connection in, perhaps for another. The receiver ends when this one is closed.
    fn enter(&self, conn: Conn, address: IpAddr) -> (Guest, oneshot::Receiver<()>) {
        let (leash, sent_away) = oneshot::channel();
        let mut waiting = lock(&self.0);
        let is_same = |other: &Waiting| other.address == address;
        let crowded = waiting.iter().filter(|other| is_same(other)).count() >= MOST_OF_ADDRESS;
        if crowded || waiting.len() >= HANDSHAKES {
            let may_go = |other: &&Waiting| !crowded || is_same(other);
            let mut candidates = waiting.iter().filter(may_go);
            let oldest = candidates.clone().next().map(|other| other.conn);
            let silent = candidates.find(|other| !other.spoke);
            if let Some(goes) = silent.map(|other| other.conn).or(oldest) {
                waiting.retain(|other| other.conn != goes);
            }
        }
        waiting.push(Waiting { conn, address, spoke: false, _leash: leash });
        let guest = Guest { lobby: self.clone(), conn };
        (guest, sent_away)
    }
}

impl Guest {
    fn spoke(&self) {
        let mut waiting = lock(&self.lobby.0);
        if let Some(own) = waiting.iter_mut().find(|other| other.conn == self.conn) {
            own.spoke = true;
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        lock(&self.lobby.0).retain(|other| other.conn != self.conn);
    }
}

/// The time that a closing connection may take to send waiting messages, and its peer to close it.
const LINGER: Duration = Duration::from_secs(1);

/// State that all connections of a coordinator share.
struct Context {
    identity: Arc<rustls::ServerConfig>,
    clock: Clock,
    timing: Timing,
    hub: mpsc::Sender<Note>,
    /// The copies of records, by rank.
    copies: Vec<Arc<Mutex<Incoming>>>,
    /// The number of written bytes of them, by rank: reading that waits for no disk.
    written: Arc<[AtomicU64]>,
}

type Stream = tokio_rustls::server::TlsStream<TcpStream>;

type PeerReader = Reader<tokio::io::ReadHalf<Stream>>;

/// Serves a connection from its first byte to its last.
async fn serve(
    context: Arc<Context>,
    tcp: TcpStream,
    address: SocketAddr,
    conn: Conn,
    (guest, sent_away): (Guest, oneshot::Receiver<()>),
) {
    let greeted = tokio::select! {
        greeted = timeout(context.timing.handshake, greet(&context, tcp, &guest)) => greeted,
        _ = sent_away => return,
    };
    let (hello, mut reader, half) = match greeted {
        Ok(Ok(greeted)) => greeted,
        Ok(Err(Some(why))) => {
            let stranger = Input::Stranger(address.to_string(), why);
            let _ = context.hub.send(Note::Input(stranger)).await;
            return;
        }
        // A silent connection: a probe of a port, or an agent that comes again.
        Ok(Err(None)) | Err(_) => return,
    };
    drop(guest);
    let (out, messages) = mpsc::channel(WAITING);
    // A coordinator sends only messages.
    let (_, none) = mpsc::channel(1);
    let (clock, silence) = (context.clock, context.timing.silence);
    let writer = write(half, messages, none, clock, Bound::Coordinator, silence);
    let mut writer = tokio::spawn(writer);
    let (accept, accepted) = oneshot::channel();
    let (leash, mut closed) = oneshot::channel();
    let rank = hello.rank;
    let greeting = Note::Greeting { conn, hello, out: out.clone(), accept, leash };
    if context.hub.send(greeting).await.is_err() {
        return;
    }
    let copy = context.copies.get(rank as usize).cloned();
    if let (Ok(()), Some(copy)) = (accepted.await, copy) {
        reader.widen(Bound::Agent);
        let written = &context.written[rank as usize];
        let peer = Peer { context: &context, conn, copy, written, out: &out };
        if let Some(why) = peer.converse(&mut reader, &mut writer, &mut closed).await {
            let _ = context.hub.send(Note::Input(Input::Broken(conn, why))).await;
        }
    }
    // Waiting messages are still sent: a refusal, or leave to go. Meanwhile input is read, because
    // the system would throw away sent data if the connection were closed with unread input.
    drop(out);
    if !writer.is_finished() {
        let _ = timeout(LINGER, &mut writer).await;
        let rest = async { while reader.next().await.is_ok() {} };
        let _ = timeout(LINGER, rest).await;
    }
    writer.abort();
}

/// The handshake and the greeting; returns the error, or none if the connection just ended.
async fn greet(
    context: &Context,
    tcp: TcpStream,
    guest: &Guest,
) -> Result<(Hello, PeerReader, tokio::io::WriteHalf<Stream>), Option<String>> {
    // Messages are small, and their instants matter.
    tcp.set_nodelay(true).map_err(|_| None)?;
    match timeout(context.timing.first_byte, tcp.peek(&mut [0])).await {
        Ok(Ok(1..)) => guest.spoke(),
        Ok(Ok(0) | Err(_)) | Err(_) => return Err(None),
    }
    let accepting = TlsAcceptor::from(Arc::clone(&context.identity)).accept(tcp);
    let stream =
        accepting.await.map_err(|error| crate::identity::meaning(&error).map(str::to_owned))?;
    let (read, half) = tokio::io::split(stream);
    let mut reader = Reader::new(read, Bound::Hello, context.clock);
    match reader.next().await {
        Ok((Frame { message: Message::Hello(hello), .. }, _)) => Ok((hello, reader, half)),
        Ok((frame, _)) => {
            Err(Some(format!("it began with a message of kind `{}`", frame.message.kind())))
        }
        Err(why) => Err(Some(format!("it has the token and did not greet: {why}"))),
    }
}

struct Peer<'a> {
    context: &'a Context,
    conn: Conn,
    copy: Arc<Mutex<Incoming>>,
    written: &'a AtomicU64,
    out: &'a mpsc::Sender<Frame>,
}

impl Peer<'_> {
    /// Serves the agent until the connection breaks; returns the reason, unless the hub closed it.
    async fn converse(
        &self,
        reader: &mut PeerReader,
        writer: &mut JoinHandle<Result<(), String>>,
        closed: &mut oneshot::Receiver<()>,
    ) -> Option<String> {
        let timing = self.context.timing;
        let mut questions = 0_u64;
        let mut last_contact = self.context.clock.now();
        let mut ping = Box::pin(sleep(Duration::ZERO));
        loop {
            tokio::select! {
                frame = reader.next() => match frame {
                    Ok((frame, at)) => {
                        last_contact = at;
                        if let Err(why) = self.take(frame, at).await {
                            return Some(why);
                        }
                    }
                    Err(why) => return Some(why),
                },
                () = &mut ping => {
                    if self.context.clock.now().since(last_contact) > timing.silence.into() {
                        return Some(format!("it sent nothing for {} s", timing.silence.as_secs()));
                    }
                    let first = questions < u64::from(timing.first);
                    ping = Box::pin(sleep(if first { timing.first_pings } else { timing.ping }));
                    let question = Message::Ping { id: questions, sent: Nanos::ZERO };
                    questions += 1;
                    if self.out.try_send(question.into()).is_err() {
                        return Some("it does not read its messages".to_owned());
                    }
                }
                ended = &mut *writer => {
                    let why = ended.ok().and_then(Result::err);
                    return Some(why.unwrap_or_else(|| "the connection was closed".to_owned()));
                }
                _ = &mut *closed => return None,
            }
        }
    }

    async fn tell(&self, input: Input) -> Result<(), String> {
        let sent = self.context.hub.send(Note::Input(input)).await;
        sent.map_err(|_| "the coordinator has ended".to_owned())
    }

    async fn take(&self, frame: Frame, arrived: Nanos) -> Result<(), String> {
        match frame.message {
            Message::Pong { asked, received, sent, .. } => {
                let exchange = Exchange { origin: asked, received, sent, arrived };
                self.tell(Input::Clock(self.conn, exchange)).await
            }
            Message::Records { offset } => {
                let copy = Arc::clone(&self.copy);
                match blocking(move || lock(&copy).take(offset, &frame.body)).await {
                    Ok(offset) => {
                        self.written.fetch_max(offset, Ordering::Relaxed);
                        self.tell(Input::Records(self.conn)).await?;
                        let ack = Message::Ack { offset }.into();
                        self.out.send(ack).await.map_err(|error| error.to_string())
                    }
                    // The connection that comes back repairs it.
                    Err(error @ RecordsError::Gap { .. }) => Err(error.to_string()),
                    Err(error) => self.tell(Input::Failed(self.conn, error.to_string())).await,
                }
            }
            Message::Finished(finished) => {
                let copy = Arc::clone(&self.copy);
                let (written, sha256) = (finished.records, finished.sha256.clone());
                let whole = blocking(move || lock(&copy).check(written, &sha256)).await;
                let input = match whole {
                    Ok(()) => Input::Finished(self.conn, finished),
                    Err(error) => Input::Failed(self.conn, error.to_string()),
                };
                self.tell(input).await
            }
            other => self.tell(Input::Message(self.conn, other)).await,
        }
    }
}

/// The interval at which to check deadlines.
const TICK: Duration = Duration::from_millis(20);

/// The time that agents that have finished may take to leave.
const LEAVE: Duration = Duration::from_secs(3);

/// A note from a connection to the hub.
enum Note {
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

enum Command {
    Start(Nanos),
    Interrupt(String),
    /// All agents' endings, and the end of the hub.
    Finish(oneshot::Sender<Vec<Ending>>),
}

/// The answer to the caller that waits for all.
type Verdict = oneshot::Sender<Result<Vec<ReadyAgent>, Refusal>>;

struct Link {
    out: mpsc::Sender<Frame>,
    accept: Option<oneshot::Sender<()>>,
    _leash: oneshot::Sender<()>,
}

struct Hub {
    clock: Clock,
    machine: Rendezvous,
    notes: mpsc::Receiver<Note>,
    commands: mpsc::UnboundedReceiver<Command>,
    /// The state machine limits them: a few for each agent, whatever it sends.
    events: mpsc::UnboundedSender<Event>,
    verdict: Option<Verdict>,
    board: Board,
    began: String,
    order: Option<String>,
    copies: Vec<Arc<Mutex<Incoming>>>,
    /// The number of their written bytes: a slow disk locks copies, and nobody here waits for one.
    written: Arc<[AtomicU64]>,
    /// The connections that greeted.
    links: BTreeMap<Conn, Link>,
}

impl Hub {
    /// Decides until the caller has the endings or is gone.
    async fn run(mut self) {
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
                self.links.insert(conn, link);
                Input::Hello(conn, hello)
            }
            Note::Input(input) => {
                if let Input::Broken(conn, _) = &input {
                    self.links.remove(conn);
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
                if let Some(link) = self.links.get_mut(&conn) {
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
            Action::Close(conn) => drop(self.links.remove(&conn)),
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
        let link = self.links.get(&conn)?;
        link.out.try_send(message.into()).err()?;
        self.links.remove(&conn);
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
        let ending = |(seat, copy): (&crate::rendezvous::Seat, &Arc<Mutex<Incoming>>)| Ending {
            outcome: match (&seat.lost, seat.step, &seat.ending) {
                (Some((from, why)), _, _) => Outcome::Lost { from: *from, why: why.clone() },
                (None, Step::Finished, Some(ending)) => Outcome::Finished(ending.clone()),
                _ => Outcome::Unfinished,
            },
            at_start: seat.at_start,
            moves: seat.clock.moves().0.to_vec(),
            ..Ending::unknown(seat.who.clone(), copy)
        };
        let endings = self.machine.seats().iter().zip(&self.copies).map(ending).collect();
        let left = async {
            while !self.links.is_empty()
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
