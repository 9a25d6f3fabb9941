//! A decode thread: passes each reply's frames to the backend plugin, in batches, and puts the
//! exchange together. It works after the readers and cannot delay them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use crate::run::RunError;
use load::drive::{End, Report};
use load::pace::Signal;
use load::vitals::Vitals;
use model::exchange::{
    Event, Events, Exchange, FailureClass, Kind, Open, Outcome, Reason, Reply, Usage,
};
use model::frame::Frames;
use model::target::Secrets;
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::{Dialect, Meaning, Refusal};

/// How many requests or replies a plugin may spoil in a row before the run ends.
const TOLERATED: u32 = 10;
/// How long an idle decode thread sleeps before it looks for work again.
const REST: Duration = Duration::from_millis(1);
/// Most frames handed to the plugin in one call.
const BATCH: usize = 256;
/// The maximum size of what is decoded from one reply, in bytes: a plugin can return far more than its input.
const ANSWER_BYTES: usize = 64 << 20;
/// The size that an event counts as.
const EVENT_BYTES: usize = 32;
/// Longest message kept of a failure, in bytes.
const MESSAGE_BYTES: usize = 1_000;

/// Counts consecutive failures of a plugin, and ends the run when there are too many.
#[derive(Clone)]
pub struct FailureLimit {
    in_a_row: Arc<AtomicU32>,
    abort_reason: Arc<Mutex<Option<RunError>>>,
    signal: Signal,
}

impl FailureLimit {
    /// For one run.
    pub fn new(signal: Signal) -> Self {
        FailureLimit {
            in_a_row: Arc::default(),
            abort_reason: Arc::default(),
            signal,
        }
    }

    /// The same, but for failures of another kind of call, which are counted separately.
    pub(crate) fn with_own_count(&self) -> Self {
        FailureLimit {
            in_a_row: Arc::default(),
            ..self.clone()
        }
    }

    /// A request was written, or a reply read to its end.
    pub fn reset(&self) {
        if self.in_a_row.load(Ordering::Relaxed) != 0 {
            self.in_a_row.store(0, Ordering::Relaxed);
        }
    }

    /// It failed because of the plugin.
    pub fn count(&self, error: &PluginError) {
        if self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= TOLERATED {
            let reason = format!("{error} ({TOLERATED} times in a row)");
            self.abort(RunError::Aborted(reason));
        }
    }

    /// Ends the run at once, for a reason that will not go away.
    pub fn abort(&self, reason: RunError) {
        self.abort_reason
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .get_or_insert(reason);
        self.signal.stop();
    }

    /// Why the run was ended, if it was. Returned once.
    pub(crate) fn abort_reason(&self) -> Option<RunError> {
        self.abort_reason
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take()
    }
}

/// One decode thread's tools.
pub struct Decoder {
    /// Its own instance of the backend.
    pub dialect: Dialect,
    /// Shared by all of the run.
    pub failures: FailureLimit,
    /// Removed from what the server and the plugin say.
    pub secrets: Secrets,
    /// Output tokens so far, for the progress line: as reported in events, or one per event.
    pub output_tokens: Arc<AtomicU64>,
    /// Gets the progress of decoding, if it is watched.
    pub vitals: Option<Arc<Vitals>>,
}

/// A reply that is being assembled.
#[derive(Default)]
struct Answer {
    state: Vec<u8>,
    events: Vec<Event>,
    output: String,
    reasoning: String,
    tool_calls: String,
    finish: Option<String>,
    usage: Option<Usage>,
    whole: bool,
    decoded: bool,
    last_output: Nanos,
    fault: Option<Fault>,
}

/// Why a reply is not an answer.
struct Fault {
    class: FailureClass,
    reason: Option<Reason>,
    message: String,
}

impl Fault {
    fn new(class: FailureClass, message: String) -> Self {
        Fault {
            class,
            reason: None,
            message,
        }
    }

    /// The server's own word.
    fn refused(class: FailureClass, refusal: Refusal) -> Self {
        Fault {
            class,
            reason: refusal.known_reason(),
            message: refusal.message,
        }
    }
}

impl Decoder {
    /// Decodes until the reports end; hands finished exchanges on.
    pub fn run(mut self, reports: &Receiver<Report>, exchanges: &Sender<Box<Exchange>>) {
        let mut open: HashMap<u64, Answer> = HashMap::new();
        while let Ok(first) = reports.recv() {
            let mut pending = Some(first);
            while let Some(report) = pending.take() {
                match report {
                    Report::Frames {
                        key,
                        mut frames,
                        handed_on,
                        progress,
                    } => {
                        // Frames of the same reply that have piled up go into the same call.
                        while frames.len() < BATCH {
                            match reports.try_recv() {
                                Ok(Report::Frames {
                                    key: same,
                                    frames: more,
                                    ..
                                }) if same == key => frames.append(&more),
                                Ok(other) => {
                                    pending = Some(other);
                                    break;
                                }
                                Err(_) => break,
                            }
                        }
                        let answer = open.entry(key).or_default();
                        self.take(answer, &frames);
                        progress
                            .output
                            .store(answer.last_output.0, Ordering::Release);
                        if let Some(last) = frames.last() {
                            progress.decoded.store(last.at.0, Ordering::Release);
                        }
                        if let Some(vitals) = &self.vitals {
                            vitals.decoded(handed_on);
                        }
                    }
                    Report::Closed { key, exchange, end } => {
                        let answer = open.remove(&key).unwrap_or_default();
                        let exchange = self.close(*exchange, answer, end);
                        if exchanges.send(exchange).is_err() {
                            return;
                        }
                    }
                }
            }
            // Waking up costs more than decoding: whatever arrives in the meantime is taken together.
            if reports.is_empty() {
                std::thread::sleep(REST);
            }
        }
    }

    /// Decodes a batch. Whatever follows an error or the end marker is not part of the answer.
    fn take(&mut self, answer: &mut Answer, frames: &Frames) {
        if answer.fault.is_some() || answer.whole {
            return;
        }
        match self.decode(answer, frames) {
            Ok(()) => {}
            // A batch may be cut anywhere: what came before the faulty frame is not lost.
            Err(error) if frames.len() > 1 && !error.is_misbehaviour() => {
                for frame in frames.each() {
                    if answer.fault.is_some() || answer.whole {
                        return;
                    }
                    if let Err(error) = self.decode(answer, &frame) {
                        self.fault(answer, &frame, &error);
                        return;
                    }
                }
            }
            Err(error) => self.fault(answer, frames, &error),
        }
    }

    fn fault(&self, answer: &mut Answer, frames: &Frames, error: &PluginError) {
        let unfinished = frames.last().is_some_and(|frame| frame.unfinished);
        let class = if error.is_misbehaviour() {
            self.failures.count(error);
            FailureClass::Plugin
        } else if unfinished {
            FailureClass::CutOff
        } else {
            FailureClass::Protocol
        };
        let message = match class {
            FailureClass::CutOff => "the reply ended in the middle of an event".to_owned(),
            _ => error.to_string(),
        };
        answer.fault = Some(Fault::new(class, message));
    }

    fn decode(&mut self, answer: &mut Answer, frames: &Frames) -> Result<(), PluginError> {
        let decoded = self.dialect.decode(&answer.state, frames)?;
        answer.decoded = true;
        answer.state = decoded.state;
        let mut outputs = 0;
        for (frame, meaning) in decoded.events {
            if answer.whole {
                break;
            }
            let event = answer.add(frames.at(frame), meaning);
            if event.kind.is_output() {
                outputs += u64::from(event.tokens.unwrap_or(1));
                answer.last_output = event.at;
            }
            answer.events.push(event);
        }
        self.output_tokens.fetch_add(outputs, Ordering::Relaxed);
        if answer.size() > ANSWER_BYTES {
            return Err(PluginError::Contract {
                plugin: self.dialect.name().to_owned(),
                call: "decode",
                what: format!(
                    "it produces more than {} MiB from one reply",
                    ANSWER_BYTES >> 20
                ),
            });
        }
        Ok(())
    }

    /// The backend's explanation of an error reply; a server may repeat the key, which plugins must not see.
    fn explain(&mut self, status: u16, body: &[u8]) -> Fault {
        match self
            .dialect
            .explain(status, &self.secrets.redact_bytes(body))
        {
            Ok(said) => {
                self.failures.reset();
                Fault::refused(FailureClass::HttpStatus, said)
            }
            Err(error) => {
                self.failures.count(&error);
                Fault::new(FailureClass::HttpStatus, error.to_string())
            }
        }
    }

    /// Puts the exchange together and judges how it went.
    fn close(&mut self, exchange: Open, mut answer: Answer, end: End) -> Box<Exchange> {
        if matches!(end, End::Whole { ends_answer: true })
            && answer.fault.is_none()
            && !answer.whole
            && let Some(at) = exchange.ended
        {
            let event = answer.add(at, Meaning::End);
            answer.events.push(event);
        }
        let class = answer.fault.as_ref().map(|fault| fault.class);
        let is_spoilt = class == Some(FailureClass::Plugin);
        if answer.decoded && !is_spoilt {
            self.failures.reset();
        }
        let fault = match (answer.fault, end) {
            // An event that was cut off says less than the error that cut it.
            (Some(fault), End::Broke(class, message)) if fault.class == FailureClass::CutOff => {
                Some(Fault::new(class, message))
            }
            (Some(fault), _) => Some(fault),
            (None, End::Broke(class, message)) => match answer.whole {
                // The end marker arrived; it does not matter what happens to the connection afterwards.
                true => None,
                false => Some(Fault::new(class, message)),
            },
            (None, End::Status { body, retry_after }) => {
                let status = exchange.status.unwrap_or_default();
                let said = self.explain(status, &body);
                let again = retry_after
                    .map(|wait| format!(" (retry-after: {wait})"))
                    .unwrap_or_default();
                let message = format!("HTTP {status}: {}{again}", said.message);
                Some(Fault { message, ..said })
            }
            (None, End::Whole { .. }) if !answer.whole => Some(Fault::new(
                FailureClass::CutOff,
                "the reply ended without its end marker".to_owned(),
            )),
            (None, End::Whole { .. }) => None,
        };
        let counted = answer.usage.and_then(|usage| usage.output_tokens);
        let has_output = answer.events.iter().any(|event| event.bytes > 0)
            || counted.is_some_and(|tokens| tokens > 0);
        let fault = fault.or_else(|| {
            (!has_output).then(|| {
                let what = "the reply is complete but holds no answer".to_owned();
                Fault::new(FailureClass::Empty, what)
            })
        });
        let mut events = Events::default();
        for event in answer.events {
            events.push(event);
        }
        let reply = Reply {
            events,
            output: answer.output,
            reasoning: answer.reasoning,
            tool_calls: answer.tool_calls,
            finish: answer.finish,
            usage: answer.usage,
        };
        let outcome = match fault {
            None => Outcome::Ok,
            Some(fault) => Outcome::Failed {
                class: fault.class,
                reason: fault.reason,
                message: fit(&self.secrets.redact(&fault.message)),
            },
        };
        Box::new(exchange.finish(reply, outcome))
    }
}

/// A failure without a reason from a server, with its message cut to a length fit for a record.
pub fn failed(class: FailureClass, message: &str) -> Outcome {
    Outcome::Failed {
        class,
        reason: None,
        message: fit(message),
    }
}

/// A message cut to a length fit for a record.
pub fn fit(message: &str) -> String {
    let cut = message.floor_char_boundary(message.len().min(MESSAGE_BYTES));
    message[..cut].to_owned()
}

impl Answer {
    /// How much memory it takes, more or less.
    fn size(&self) -> usize {
        self.output.len()
            + self.reasoning.len()
            + self.tool_calls.len()
            + self.finish.as_ref().map_or(0, String::len)
            + self.events.len() * EVENT_BYTES
    }

    /// Takes one meaning in and gives the event to record of it.
    fn add(&mut self, at: Nanos, meaning: Meaning) -> Event {
        let event = |kind, tokens, bytes: usize| Event {
            at,
            kind,
            tokens,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        };
        match meaning {
            Meaning::Opened => event(Kind::Role, None, 0),
            Meaning::Text(piece) => {
                self.output.push_str(&piece.text);
                event(Kind::Text, piece.tokens, piece.text.len())
            }
            Meaning::Reasoning(piece) => {
                self.reasoning.push_str(&piece.text);
                event(Kind::Reasoning, piece.tokens, piece.text.len())
            }
            Meaning::ToolCall(piece) => {
                self.tool_calls.push_str(&piece.text);
                event(Kind::Tool, piece.tokens, piece.text.len())
            }
            Meaning::Usage(usage) => {
                self.usage = Some(Usage {
                    input_tokens: usage.input_tokens,
                    cached_input_tokens: usage.cached_input_tokens,
                    output_tokens: usage.output_tokens,
                    reasoning_tokens: usage.reasoning_tokens,
                });
                event(Kind::Usage, None, 0)
            }
            Meaning::Finish(word) => {
                self.finish = Some(word);
                event(Kind::Finish, None, 0)
            }
            Meaning::Failure(refusal) => {
                self.fault = Some(Fault::refused(FailureClass::InBandError, refusal));
                event(Kind::Failure, None, 0)
            }
            Meaning::End => {
                self.whole = true;
                event(Kind::End, None, 0)
            }
        }
    }
}
