//! Decoding: passes each reply's frames to the backend plugin, in batches, and puts the exchange
//! together. It works after the readers and cannot delay them, except by making them wait when it
//! is too far behind ([`backlog`](load::backlog)).
//!
//! [`inbox`] takes the frames from readers, [`answer`] collects their meanings, and [`spool`] holds
//! answers if memory is short. [`way_back`] carries demands to readers, [`steps`] sends next
//! requests, [`threads`] runs the work, and [`failures`] limits failures.

mod answer;
pub mod failures;
mod gateway;
pub mod inbox;
pub mod steps;
pub mod threads;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::lock;
use crate::parts::RunError;
use answer::Answer;
use failures::{FailureLimit, failed, fit};
use inbox::{Beginning, Ending, Inbox, InboxItem, PartialAnswer};
use load::backlog::Backlog;
use load::drive::demand::{Demand, Kind, Outgoing};
use load::drive::{End, SPARE_BYTES};
use load::transport::websocket::Message;
use load::vitals::Vitals;
use model::exchange::{Class, Exchange, Outcome, Reason, Reply};
use model::frame::Frames;
use model::target::Secrets;
use model::units::Nanos;
use plugins::backend::{Dialect, Fold, Meaning, Refusal, SocketMessage, Step};
use plugins::{PluginError, backend};
use result::metric::count::{self, Count};
use runs::record::RecordError;
use steps::Routes;

/// The maximum size of the decoded answer of one reply, in bytes; a server can send for ever.
const ANSWER_BYTES: usize = 32 << 20;
/// An answer may be larger than its input by this factor before its size is the plugin's fault.
const INFLATION: usize = 4;
/// A larger state is an incomplete frame of a framing that only the plugin knows. It crosses to the
/// plugin and back with every batch, so the next batch waits for half as many bytes, not each read.
const LARGE_STATE_BYTES: usize = 64 << 10;
/// The part of the backlog's bound that answers may take before they are written to disk: 1/4.
const ANSWERS_SHARE: usize = 4;
/// The most names of counts of an exchange.
const COUNTS: usize = 32;
/// The smallest part of an answer that is written to disk.
const SPOOLED_BYTES: usize = 1 << 10;

/// A decoder: an instance of the backend, and the state that it shares with the others.
pub struct Decoder {
    pub dialect: Dialect,
    pub shared: Arc<DecodeState>,
    /// Empty frames, in which waiting frames are put together.
    pub spare: Frames,
}

/// The state that the decode threads of a run share.
pub struct DecodeState {
    pub failures: FailureLimit,
    /// The places of next requests; its secrets are removed from the server's and plugin's texts.
    pub routes: Routes,
    /// Output tokens so far, for the progress line: as reported in events, or one per event.
    pub output_tokens: Arc<AtomicU64>,
    /// Gets the progress of decoding, if it is watched.
    pub vitals: Option<Arc<Vitals>>,
    pub backlog: Arc<Backlog>,
    /// The memory of all answers under way, in bytes.
    answers: AtomicUsize,
    spool: Spool,
}

impl DecodeState {
    /// For one run that is kept in this folder.
    pub fn new(
        failures: FailureLimit,
        routes: Routes,
        output_tokens: Arc<AtomicU64>,
        vitals: Option<Arc<Vitals>>,
        backlog: &Arc<Backlog>,
        folder: &std::path::Path,
    ) -> Arc<Self> {
        Arc::new(DecodeState {
            failures,
            routes,
            output_tokens,
            vitals,
            backlog: Arc::clone(backlog),
            answers: AtomicUsize::new(0),
            spool: Spool::new(folder),
        })
    }
}

/// The reason why a reply is not an answer.
struct Fault {
    class: Class,
    reason: Option<Reason>,
    message: String,
}

impl Fault {
    fn new(class: Class, message: String) -> Self {
        Fault { class, reason: None, message }
    }

    fn refused(class: Class, refusal: Refusal) -> Self {
        Fault { class, reason: refusal.reason.known(), message: refusal.message }
    }
}

impl Decoder {
    /// Decodes a reply's next batch of frames, or puts the exchange together once it has ended.
    pub fn work(&mut self, inbox: &Arc<Inbox>) -> Option<Box<Exchange>> {
        let sessions = &inbox.sessions;
        load::thread_group::trip("decode");
        let mut exchange = None;
        match inbox.take(&mut self.spare) {
            Some(InboxItem::Frames(mut batch)) => {
                let mut unfinished = lock(&inbox.answer);
                if let Some(beginning) = &batch.beginning {
                    self.begin(&mut unfinished.answer, beginning);
                }
                match inbox.way_back.get().map(|open| open.kind) {
                    None => {}
                    Some(Kind::Steps) => unfinished.answer.is_of_steps = true,
                    Some(Kind::Socket) => unfinished.answer.demands = Some(Vec::new()),
                }
                self.take(&mut unfinished.answer, &mut batch.frames);
                self.answer_back(&mut unfinished.answer, inbox);
                self.count(&mut unfinished);
                if inbox.followed.first_output
                    && let Some(at) = unfinished.answer.first_output.take()
                {
                    sessions.first_output(inbox.key, at);
                }
                let progress = &inbox.progress;
                let output = unfinished.answer.last_output;
                progress.output.store(output.0, Ordering::Release);
                if let Some(last) = batch.frames.last() {
                    progress.decoded.store(last.at.0, Ordering::Release);
                }
                if let Some(vitals) = &self.shared.vitals {
                    vitals.decoded(batch.handed_on);
                }
                if batch.is_joined {
                    batch.frames.clear();
                    self.spare = batch.frames;
                } else {
                    let spares = &self.shared.backlog.spares;
                    spares.put_back(batch.frames, SPARE_BYTES);
                }
            }
            Some(InboxItem::Turned(beginning)) => {
                let mut unfinished = lock(&inbox.answer);
                if let Some(beginning) = &beginning {
                    self.begin(&mut unfinished.answer, beginning);
                }
                self.turn(&mut unfinished.answer, inbox);
                self.count(&mut unfinished);
            }
            Some(InboxItem::Ending(closed)) => {
                let mut unfinished = lock(&inbox.answer);
                let mut answer = std::mem::take(&mut unfinished.answer);
                let carry = answer.carry.take();
                let closed = self.close(inbox.key, closed, answer);
                if inbox.followed.end {
                    sessions.over(inbox.key, &closed, carry);
                }
                exchange = Some(closed);
                self.count(&mut unfinished);
            }
            None => {}
        }
        inbox.put_back();
        exchange
    }

    /// Counts the memory of an answer, and makes it smaller if all of them together take too much.
    fn count(&self, unfinished: &mut PartialAnswer) {
        let shared = &*self.shared;
        let before = unfinished.held.bytes();
        let mut now = unfinished.answer.memory();
        // Wraps where it shrank, and is right in the sum.
        let change = now.wrapping_sub(before);
        let all = shared.answers.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
        if all > shared.backlog.bound() / ANSWERS_SHARE {
            if let Err(cause) = unfinished.answer.spool(&shared.spool, SPOOLED_BYTES) {
                let path = shared.spool.folder.clone();
                let error = RecordError::Write { path, cause };
                shared.failures.abort(RunError::Record(error));
            }
            let less = unfinished.answer.memory();
            shared.answers.fetch_sub(now - less, Ordering::Relaxed);
            now = less;
        }
        unfinished.held.set(now);
    }

    /// Shows the plugin the head of a reply, and keeps the overhead that a gateway states there.
    fn begin(&mut self, answer: &mut Answer, beginning: &Beginning) {
        let overhead = gateway::overhead(&beginning.head.headers);
        answer.gateway_overhead = overhead.or(answer.gateway_overhead);
        match self.dialect.begin(&beginning.head) {
            Ok(state) => answer.fold = Some(Fold::new(state).framed(beginning.is_raw)),
            Err(error) => self.fault(answer, &Frames::default(), &error),
        }
    }

    /// Decodes a batch. Whatever follows an error or the end marker is not part of the answer.
    fn take(&mut self, answer: &mut Answer, frames: &mut Frames) {
        if answer.fault.is_some() || answer.whole {
            return;
        }
        let kept = answer.fold.as_ref().map_or(0, Fold::bytes);
        if kept <= LARGE_STATE_BYTES && answer.waiting.is_empty() {
            return self.take_now(answer, frames);
        }
        answer.waiting.append(frames);
        if answer.waiting.bytes().len() >= kept / 2 {
            self.take_waiting(answer);
        }
    }

    /// One of several replies is read and decoded: gives the reader its next order.
    fn turn(&mut self, answer: &mut Answer, inbox: &Inbox) {
        self.take_waiting(answer);
        let next = answer.next.take();
        let mut next = next.filter(|_| answer.fault.is_none() && !answer.whole);
        if next.is_some() {
            answer.followed += 1;
            if answer.followed >= steps::MOST {
                let what = format!("the answer is not complete after {} requests", steps::MOST);
                answer.fault = Some(Fault::new(Class::Protocol, what));
                next = None;
            }
        }
        if let Err(fault) = inbox.way_back.demand(&self.shared.routes, next) {
            answer.fault = Some(fault);
        }
    }

    /// Keeps the next request that a reply names, for when the reply has ended.
    fn name(&self, answer: &mut Answer, step: Step) -> Result<(), PluginError> {
        if !answer.is_of_steps {
            let what = "it names a `next` request, but the exchange began with one request alone";
            return Err(self.broken(what));
        }
        if answer.next.is_some() {
            return Err(self.broken("it names a second `next` request in one reply"));
        }
        answer.next = Some(Box::new(step));
        Ok(())
    }

    fn broken(&self, what: &str) -> PluginError {
        PluginError::Contract {
            plugin: self.dialect.name().to_owned(),
            call: "decode",
            what: what.to_owned(),
        }
    }

    /// Keeps a number that the server counts.
    fn note(&self, answer: &mut Answer, name: String, count: u64) -> Result<(), PluginError> {
        if answer.counts.len() < COUNTS || answer.counts.contains_key(&name) {
            answer.counts.insert(name, count);
            return Ok(());
        }
        Err(self.broken(&format!("it reports more than {COUNTS} named counts in one exchange")))
    }

    /// Passes the demands of the last messages to the reader of a WebSocket.
    fn answer_back(&mut self, answer: &mut Answer, inbox: &Inbox) {
        let Some(demands) = answer.demands.take() else { return };
        // The next message may answer the waiting one, so the queue is not waited for.
        self.take_waiting(answer);
        for demand in demands {
            inbox.way_back.send(demand);
        }
        if answer.whole || answer.fault.is_some() {
            inbox.way_back.send(Demand::Ended);
        }
    }

    /// Keeps the demand of a message of a WebSocket until its batch is decoded.
    fn demand(&self, answer: &mut Answer, demand: Demand) -> Result<(), PluginError> {
        let Some(demands) = &mut answer.demands else {
            let what = "it returns `send` or `proceed`, but the exchange is not over a WebSocket";
            return Err(self.broken(what));
        };
        demands.push(demand);
        Ok(())
    }

    fn take_waiting(&mut self, answer: &mut Answer) {
        let mut waiting = std::mem::take(&mut answer.waiting);
        if !waiting.is_empty() && answer.fault.is_none() && !answer.whole {
            self.take_now(answer, &mut waiting);
        }
    }

    fn take_now(&mut self, answer: &mut Answer, frames: &mut Frames) {
        match self.decode(answer, frames) {
            Ok(()) => {}
            // A batch may be cut anywhere: frames before the faulty one are not lost.
            Err(error) if frames.len() > 1 && !error.is_misbehaviour() => {
                for mut frame in frames.each() {
                    if answer.fault.is_some() || answer.whole {
                        return;
                    }
                    if let Err(error) = self.decode(answer, &mut frame) {
                        self.fault(answer, &frame, &error);
                        return;
                    }
                }
            }
            Err(error) => self.fault(answer, frames, &error),
        }
    }

    fn fault(&self, answer: &mut Answer, frames: &Frames, error: &PluginError) {
        let (class, message) = if error.is_misbehaviour() {
            self.shared.failures.count(answer.place, error);
            (Class::Plugin, error.to_string())
        } else if frames.last().is_some_and(|frame| frame.unfinished) {
            (Class::Truncated, "the reply ended in the middle of an event".to_owned())
        } else {
            (Class::Protocol, error.to_string())
        };
        answer.fault = Some(Fault::new(class, message));
    }

    fn decode(&mut self, answer: &mut Answer, frames: &mut Frames) -> Result<(), PluginError> {
        let fold = answer.fold.get_or_insert_default();
        let events = self.dialect.decode(fold, frames)?;
        let mut outputs = 0;
        for (frame, meaning) in events {
            if answer.whole {
                break;
            }
            match meaning {
                Meaning::Send(message) => {
                    self.demand(answer, Demand::Send(outgoing(message)))?;
                }
                Meaning::Proceed => self.demand(answer, Demand::Proceed)?,
                Meaning::Next(step) => self.name(answer, step)?,
                Meaning::Count((name, count)) => self.note(answer, name, count)?,
                meaning => {
                    let event = answer.add(frames.at(frame), meaning);
                    if let Some(event) = event.filter(|event| event.kind.is_output()) {
                        outputs += u64::from(event.tokens.unwrap_or(1));
                    }
                }
            }
        }
        self.shared.output_tokens.fetch_add(outputs, Ordering::Relaxed);
        answer.received += frames.bytes().len();
        if answer.size() > ANSWER_BYTES && answer.size() / INFLATION < answer.received {
            let what = format!("the reply is longer than {} MiB", ANSWER_BYTES >> 20);
            answer.fault = Some(Fault::new(Class::Protocol, what));
        } else if answer.size() > ANSWER_BYTES {
            let what = format!("it produces more than {} MiB from one reply", ANSWER_BYTES >> 20);
            return Err(self.broken(&what));
        }
        Ok(())
    }

    /// The backend's explanation of an error reply, without the key, which a server may repeat.
    fn explain(&mut self, (place, secrets): (u64, &Secrets), status: u16, body: &[u8]) -> Fault {
        match self.dialect.explain(status, &secrets.redact_bytes(body)) {
            Ok(refusal) => Fault::refused(Class::HttpStatus, refusal),
            Err(error) => {
                self.shared.failures.count(place, &error);
                Fault::new(Class::HttpStatus, error.to_string())
            }
        }
    }

    /// Puts the exchange together and judges its outcome.
    fn close(&mut self, key: u64, closed: Ending, mut answer: Answer) -> Box<Exchange> {
        let Ending { exchange, end, .. } = closed;
        let shared = Arc::clone(&self.shared);
        let cookies = shared.routes.cookies(&exchange.request.prepared, key);
        let secrets = shared.routes.secrets_with(cookies.as_ref());
        self.take_waiting(&mut answer);
        if let Some(request) = answer.clean_up.take() {
            let target = exchange.request.prepared.target;
            shared.routes.clean_up(target, cookies.as_ref(), *request);
        }
        if let Some(cookies) = &cookies {
            cookies.close();
        }
        if let End::Whole { ends_answer } = end
            && (ends_answer || answer.ends_with_body)
            && answer.fault.is_none()
            && !answer.whole
            && let Some(at) = exchange.ended
        {
            answer.add(at, Meaning::End);
        }
        let fault = match (answer.fault.take(), end) {
            // An event that was cut off says less than the error that cut it.
            (Some(fault), End::Broke(class, message)) if fault.class == Class::Truncated => {
                Some(Fault::new(class, message))
            }
            (Some(fault), _) => Some(fault),
            // Once the end marker has arrived, a later failure of the connection does not matter.
            (None, End::Broke(..)) if answer.whole => None,
            (None, End::Broke(class, message)) => Some(Fault::new(class, message)),
            (None, End::Status { body, retry_after }) => {
                let status = exchange.status.unwrap_or_default();
                if status == 401 {
                    let target = exchange.request.prepared.target;
                    self.shared.routes.refused(target, exchange.sent.unwrap_or(Nanos::ZERO));
                }
                let refusal = self.explain((answer.place, &secrets), status, &body);
                let again =
                    retry_after.map(|wait| format!(" (retry-after: {wait})")).unwrap_or_default();
                // Redirects are left to the backend, which sees their `location`.
                let redirected = if matches!(status, 301 | 302 | 303 | 307 | 308) {
                    "; redirects are not followed: give the URL that answers as --base-url, or have the backend accept this status in a step"
                } else {
                    ""
                };
                let message = format!("HTTP {status}: {}{again}{redirected}", refusal.message);
                Some(Fault { message, ..refusal })
            }
            (None, End::Whole { .. }) if !answer.whole => {
                let what = "the reply ended without its end marker".to_owned();
                Some(Fault::new(Class::Truncated, what))
            }
            (None, End::Whole { .. }) => None,
        };
        let fault = fault.or_else(|| {
            let what = "the reply is complete but holds no answer".to_owned();
            (!answer.has_output()).then(|| Fault::new(Class::Empty, what))
        });
        let (reply, fault) = match answer.into_reply() {
            Ok(reply) => (secrets.redacted_reply(reply), fault),
            Err(cause) => {
                let path = self.shared.spool.folder.clone();
                let error = RecordError::Read { path, cause };
                let lost = format!("this client lost the answer: {error}");
                self.shared.failures.abort(RunError::Record(error));
                (Reply::default(), Some(Fault::new(Class::Interrupted, lost)))
            }
        };
        let outcome = match fault {
            None => Outcome::Ok,
            Some(fault) => Outcome::Incomplete {
                class: fault.class,
                reason: fault.reason,
                message: fit(&secrets.redact(&fault.message)),
            },
        };
        let forces_length = exchange.request.prepared.forces_length;
        let mut exchange = Box::new(exchange.finish(reply, outcome));
        if forces_length && let Some(short) = short(&exchange) {
            exchange.outcome = short;
        }
        exchange
    }
}

/// Returns the outcome of a complete answer that is shorter, by the server's own count, than its
/// forced length. A count of text that was tokenized again is rarely exact, and not used.
fn short(exchange: &Exchange) -> Option<Outcome> {
    let length = exchange.sample.output_tokens.filter(|_| exchange.is_ok())?;
    let Count { tokens, .. } = count::output(exchange, None)?;
    let what = format!(
        "the answer ended after {tokens} of {length} tokens, although its length was forced"
    );
    (tokens < length).then(|| failed(Class::Short, &what))
}

// The way back from decoding to the reader of an exchange whose reply decides what to send next.

#[derive(Default)]
struct WayBack(OnceLock<Open>);

struct Open {
    target: u32,
    kind: Kind,
    reader: UnboundedSender<Demand>,
    /// The reader's thread, which may be napping.
    thread: Thread,
}

impl WayBack {
    /// Opens it to the reader that runs on the calling thread.
    fn open(&self, target: u32, kind: Kind) -> UnboundedReceiver<Demand> {
        let (reader, demands) = unbounded_channel();
        let thread = std::thread::current();
        let _ = self.0.set(Open { target, kind, reader, thread });
        demands
    }

    fn get(&self) -> Option<&Open> {
        self.0.get()
    }

    fn send(&self, demand: Demand) {
        if let Some(Open { reader, thread, .. }) = self.0.get() {
            // A reader that is gone has given the exchange up.
            let _ = reader.send(demand);
            thread.unpark();
        }
    }
}

/// A message of a backend, to be sent.
pub(crate) fn outgoing(outgoing: backend::Outgoing) -> Outgoing {
    Outgoing {
        message: match outgoing.message {
            SocketMessage::Text(text) => Message::Text(text),
            SocketMessage::Binary(bytes) => Message::Binary(bytes),
        },
        delay: Nanos(outgoing.delay),
        hold: outgoing.hold,
    }
}

/// The folder into which parts of answers are put.
pub(crate) struct Spool {
    folder: PathBuf,
    state: Mutex<State>,
}

/// The size from which a new file is begun. The old one is gone when its last part was read.
const FILE_BYTES: u64 = 64 << 20;

#[derive(Default)]
struct State {
    file: Option<Arc<File>>,
    end: u64,
}

#[derive(Debug)]
struct Extent {
    file: Arc<File>,
    at: u64,
    length: usize,
}

impl Spool {
    /// In this folder. Nothing is created before it is needed.
    pub(crate) fn new(folder: &Path) -> Self {
        Spool { folder: folder.to_owned(), state: Mutex::default() }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<Extent> {
        let mut state = lock(&self.state);
        if state.end >= FILE_BYTES {
            *state = State::default();
        }
        let State { file, end } = &mut *state;
        let file = match file {
            Some(file) => file,
            None => file.insert(Arc::new(tempfile::tempfile_in(&self.folder)?)),
        };
        file.write_all_at(bytes, *end)?;
        let extent = Extent { file: Arc::clone(file), at: *end, length: bytes.len() };
        *end += bytes.len() as u64;
        Ok(extent)
    }
}

impl Extent {
    /// Reads the part, which is not needed again.
    fn read(self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.length];
        self.file.read_exact_at(&mut bytes, self.at)?;
        Ok(bytes)
    }
}
