//! One connection at the coordinator: its handshake, the questions about its clock, and its
//! records.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::Guest;
use super::hub::Note;
use super::{Reader, write};
use super::{Timing, WAITING, blocking, lock};
use crate::clock::Exchange;
use crate::records::{Incoming, RecordsError};
use crate::rendezvous::{Conn, Input};
use crate::wire::{Bound, Frame, Hello, Message};

/// The time that a closing connection may take to send waiting messages, and its peer to close it.
const LINGER: Duration = Duration::from_secs(1);

/// State that all connections of a coordinator share.
pub(super) struct Context {
    pub(super) identity: Arc<rustls::ServerConfig>,
    pub(super) clock: Clock,
    pub(super) timing: Timing,
    pub(super) hub: mpsc::Sender<Note>,
    /// The copies of records, by rank.
    pub(super) copies: Vec<Arc<Mutex<Incoming>>>,
    /// The number of written bytes of them, by rank: reading that waits for no disk.
    pub(super) written: Arc<[AtomicU64]>,
}

type Stream = tokio_rustls::server::TlsStream<TcpStream>;
type PeerReader = Reader<tokio::io::ReadHalf<Stream>>;

/// Serves a connection from its first byte to its last.
pub(super) async fn serve(
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
    /// Serves the agent until the connection breaks, and returns the reason; nothing if the hub
    /// closed it.
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
