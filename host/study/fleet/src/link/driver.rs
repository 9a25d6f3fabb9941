//! The agent's one task: it connects, repeats messages that a broken connection may have lost,
//! answers about the clock, and sends figures and records.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use serde_json::Value;
use tokio::io::ReadHalf;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::agent::JoinError;
use super::{Reader, Timing, WAITING, blocking, lock, write};
use crate::identity::{TOKENS_DIFFER, meaning, name};
use crate::records::{NOTHING, Outgoing, RecordsError, WINDOW, seal};
use crate::rendezvous::Agent as State;
use crate::wire::{BODY, Bound, Finished, Frame, Hello, Interrupt, Message, Welcome};

/// The first pause between two attempts to connect; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The number of pieces of records that may be under way, so that a piece never waits for a place.
const PIECES: usize = WINDOW as usize / BODY + 2;

pub(super) enum Command {
    Prepared(String, Value),
    Ready,
    Decline(Vec<String>),
    Records(PathBuf),
    Interrupt(String),
    Finish(Value),
    /// The records' file is complete, and this is its length and digest.
    Sealed(Value, Result<(u64, String), RecordsError>),
}

/// The state for the caller.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) welcome: Option<Welcome>,
    pub(super) start: Option<(Nanos, Nanos)>,
    pub(super) interrupt: Option<Interrupt>,
    pub(super) released: bool,
    /// The reason why the driver ended before its time.
    pub(super) failure: Option<JoinError>,
}

pub(super) struct Driver {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) identity: Arc<rustls::ClientConfig>,
    pub(super) hello: Hello,
    pub(super) clock: Clock,
    pub(super) timing: Timing,
    pub(super) patience: Duration,
    pub(super) state: State,
    pub(super) records: Option<Records>,
    /// The time of the coordinator's last message, or of the driver's begin.
    pub(super) last_contact: Nanos,
    /// The sender of the driver's commands to itself.
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) requests: mpsc::UnboundedReceiver<Command>,
    pub(super) view: watch::Sender<View>,
    pub(super) figures: watch::Receiver<Option<Value>>,
}

/// The file of records, and its part under way.
pub(super) struct Records {
    path: PathBuf,
    outgoing: Arc<Mutex<Outgoing>>,
}

enum End {
    /// The run is over for this agent.
    Done,
    /// It may be made again.
    Broken(String),
}

/// Sends messages and pieces on the present connection.
struct Out {
    messages: mpsc::Sender<Frame>,
    bulk: mpsc::Sender<Frame>,
}

impl Out {
    async fn send(&self, message: Message) -> Result<(), End> {
        let sent = self.messages.send(message.into()).await;
        sent.map_err(|_| End::Broken("the connection was closed".to_owned()))
    }
}

type Stream = tokio_rustls::client::TlsStream<TcpStream>;

impl Driver {
    /// Keeps in touch until the coordinator has everything, or there is no hope for that.
    pub(super) async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let before = self.last_contact;
            let why = match self.connect().await {
                Ok(stream) => match self.converse(stream).await {
                    End::Done => return,
                    End::Broken(why) => why,
                },
                // Another run may have the address meanwhile: an agent of a run waits for its own.
                Err(why) if why == TOKENS_DIFFER && self.state.welcome.is_none() => {
                    return self.fail(JoinError::Tokens(self.address()));
                }
                Err(why) => why,
            };
            if self.last_contact > before {
                pause = FIRST_PAUSE;
            }
            let known = self.state.welcome.is_some();
            let patience =
                if known { self.timing.grace + self.timing.silence } else { self.patience };
            if self.clock.now().since(self.last_contact) >= patience.into() {
                let after = patience.as_secs();
                return self.fail(if known {
                    JoinError::Lost { after, why }
                } else {
                    JoinError::Unreachable { address: self.address(), after, why }
                });
            }
            sleep(pause).await;
            pause = (pause * 2).min(self.timing.retry);
        }
    }

    fn address(&self) -> String {
        let host = &self.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        format!("{host}:{}", self.port)
    }

    fn fail(&self, failure: JoinError) {
        self.view.send_modify(|view| view.failure = Some(failure));
    }

    async fn connect(&self) -> Result<Stream, String> {
        let connecting = async {
            let tcp = TcpStream::connect((self.host.as_str(), self.port)).await;
            let tcp = tcp.map_err(|error| error.to_string())?;
            tcp.set_nodelay(true).map_err(|error| error.to_string())?;
            let config = Arc::clone(&self.identity);
            let stream = TlsConnector::from(config).connect(name(), tcp).await;
            stream.map_err(|error| meaning(&error).map_or(error.to_string(), str::to_owned))
        };
        timeout(self.timing.handshake, connecting).await.unwrap_or_else(|_| {
            Err(format!("the handshake took longer than {} s", self.timing.handshake.as_secs()))
        })
    }

    /// Uses a connection until it ends.
    async fn converse(&mut self, stream: Stream) -> End {
        let (read, half) = tokio::io::split(stream);
        let mut reader = Reader::new(read, Bound::Coordinator, self.clock);
        let (messages, waiting) = mpsc::channel(WAITING);
        let (bulk, pieces) = mpsc::channel(PIECES);
        let (clock, silence) = (self.clock, self.timing.silence);
        let writer = write(half, waiting, pieces, clock, Bound::Agent, silence);
        let mut writer = tokio::spawn(writer);
        let out = Out { messages, bulk };
        let end = tokio::select! {
            end = self.exchange(&mut reader, &out) => end,
            ended = &mut writer => {
                let why = ended.ok().and_then(Result::err);
                End::Broken(why.unwrap_or_else(|| "the connection was closed".to_owned()))
            }
        };
        drop(out);
        if let End::Done = end {
            let _ = timeout(silence, &mut writer).await;
        }
        writer.abort();
        end
    }

    async fn exchange(&mut self, reader: &mut Reader<ReadHalf<Stream>>, out: &Out) -> End {
        if let Err(end) = out.send(Message::Hello(self.hello.clone())).await {
            return end;
        }
        let mut welcomed = false;
        let began = self.clock.now();
        let mut tick = tokio::time::interval(self.timing.records);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let step = tokio::select! {
                frame = reader.next() => match frame {
                    Ok((frame, at)) => {
                        self.last_contact = at;
                        welcomed |= matches!(frame.message, Message::Welcome(_));
                        self.take(frame, at, out).await
                    }
                    Err(why) => Err(End::Broken(why)),
                },
                Some(command) = self.requests.recv(), if welcomed => self.obey(command, out).await,
                Ok(()) = self.figures.changed(), if welcomed => self.report(out).await,
                _ = tick.tick() => {
                    let silence = self.clock.now().since(self.last_contact.max(began));
                    if silence > self.timing.silence.into() {
                        let seconds = self.timing.silence.as_secs();
                        Err(End::Broken(format!("it sent nothing for {seconds} s")))
                    } else if welcomed {
                        self.pump(out).await
                    } else {
                        Ok(())
                    }
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Sends the last figures, if they were not sent.
    async fn report(&mut self, out: &Out) -> Result<(), End> {
        let figures = self.figures.borrow_and_update().clone();
        match figures {
            Some(figures) => out.send(Message::Live { figures }).await,
            None => Ok(()),
        }
    }

    /// Carries out a command of the caller.
    async fn obey(&mut self, command: Command, out: &Out) -> Result<(), End> {
        match command {
            Command::Prepared(plan, facts) => out.send(self.state.prepare(plan, facts)).await,
            Command::Ready => out.send(self.state.set_ready()).await,
            Command::Decline(reasons) => out.send(self.state.decline(reasons)).await,
            Command::Interrupt(why) => out.send(self.state.stop(why)).await,
            Command::Records(path) => {
                let outgoing = Outgoing::new(&path, self.state.acknowledged);
                let outgoing = Arc::new(Mutex::new(outgoing));
                self.records = Some(Records { path, outgoing });
                self.pump(out).await
            }
            Command::Finish(ending) => {
                let path = self.records.as_ref().map(|records| records.path.clone());
                let commands = self.commands.clone();
                // A large file takes a while, in which questions about the clock are answered.
                tokio::spawn(async move {
                    let sealed = match path {
                        Some(path) => blocking(move || seal(&path)).await,
                        None => Ok((0, NOTHING.to_owned())),
                    };
                    let _ = commands.send(Command::Sealed(ending, sealed));
                });
                Ok(())
            }
            Command::Sealed(ending, sealed) => {
                let (records, sha256) = sealed.map_err(|error| self.unable(error.to_string()))?;
                self.state.finish(Finished { ending, records, sha256 });
                // The ending is noted: it is repeated after a broken connection.
                if self.figures.has_changed().unwrap_or(false) {
                    self.report(out).await?;
                }
                self.pump(out).await?;
                self.end(out).await
            }
        }
    }

    fn unable(&self, why: String) -> End {
        self.fail(JoinError::Unable(why));
        End::Done
    }

    /// Sends the ending, once all records are acknowledged.
    async fn end(&self, out: &Out) -> Result<(), End> {
        match self.state.ending() {
            Some(ending) => out.send(ending).await,
            None => Ok(()),
        }
    }

    /// Sends records as far as the file has them and the window allows.
    async fn pump(&mut self, out: &Out) -> Result<(), End> {
        let Some(records) = &self.records else { return Ok(()) };
        // Where the writer is behind, the next acknowledgement or look at the file continues.
        while let Ok(place) = out.bulk.try_reserve() {
            let outgoing = Arc::clone(&records.outgoing);
            match blocking(move || lock(&outgoing).piece()).await {
                Ok(Some((offset, body))) => {
                    place.send(Frame { message: Message::Records { offset }, body });
                }
                Ok(None) => break,
                Err(error) => return Err(self.unable(error.to_string())),
            }
        }
        Ok(())
    }

    async fn take(&mut self, frame: Frame, received: Nanos, out: &Out) -> Result<(), End> {
        match frame.message {
            Message::Ping { id, sent: asked } => {
                // The writer fills in the time of sending.
                let sent = Nanos::ZERO;
                return out.send(Message::Pong { id, asked, received, sent }).await;
            }
            message => {
                let kind = message.kind();
                self.state.on(message).map_err(End::Broken)?;
                match kind {
                    "welcome" => self.welcomed(out).await?,
                    "ack" => {
                        if let Some(records) = &self.records {
                            lock(&records.outgoing).acknowledge(self.state.acknowledged);
                        }
                        self.pump(out).await?;
                        self.end(out).await?;
                    }
                    _ => {}
                }
            }
        }
        let state = &self.state;
        self.view.send_modify(|view| {
            view.start = state.start;
            view.interrupt = state.interrupt.clone();
            view.released = state.released;
            view.failure = state.refused.clone().map(JoinError::Refused);
        });
        if state.refused.is_some() || state.released { Err(End::Done) } else { Ok(()) }
    }

    /// A new connection: repeats the facts, and sends the records from where they stopped.
    async fn welcomed(&mut self, out: &Out) -> Result<(), End> {
        let Some(welcome) = self.state.welcome.clone() else { return Ok(()) };
        if let Some(records) = &mut self.records {
            let outgoing = Outgoing::new(&records.path, self.state.acknowledged);
            records.outgoing = Arc::new(Mutex::new(outgoing));
        }
        self.view.send_modify(|view| view.welcome = Some(welcome));
        for message in self.state.again() {
            out.send(message).await?;
        }
        self.pump(out).await
    }
}
