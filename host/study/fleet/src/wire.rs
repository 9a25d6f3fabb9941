//! The protocol of a fleet's processes: messages, and the frames that carry them.
//!
//! A frame has three parts. The first is the length of its header and of its body, four bytes each
//! with the highest first. The header is a message as JSON, and the body is bytes of records,
//! mostly empty. This module owns the form of both and the bounds on their sizes. It reads and
//! writes no socket, and knows no order of messages: `rendezvous` and `link` do.

#[cfg(test)]
mod tests;

use model::units::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol. Processes of other versions refuse each other.
pub const PROTOCOL: u32 = 2;
/// Bytes before a frame's header.
const LENGTHS: usize = 8;
/// The largest body, in bytes: small, so that no clock's question waits long behind it.
pub const BODY: usize = 64 << 10;
/// The largest message with figures, in bytes: they come all the time, and are only for display.
pub const FIGURES: usize = 192 << 10;
/// Step in which memory grows for a header, in bytes: a claimed length takes no memory.
const STEP: usize = 64 << 10;

/// A message of either side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// Agent: its identity. The first message of each connection.
    Hello(Hello),
    /// Coordinator: the work. Sent once for each accepted connection.
    Welcome(Box<Welcome>),
    /// Agent: it made the plan.
    Prepared {
        /// The plan's digest, which must be rank 0's.
        plan: String,
        /// Facts of this machine for the record. Under `plan`, the plan's parts, for messages.
        facts: Value,
    },
    /// Coordinator: a question for the agent's clock.
    Ping {
        id: u64,
        /// The time when it was sent, by the coordinator's clock.
        sent: Nanos,
    },
    /// Agent: the answer.
    Pong {
        id: u64,
        /// The time when the question was sent, by the coordinator's clock.
        asked: Nanos,
        /// The time when the question came, by the agent's clock.
        received: Nanos,
        /// The time when the answer was sent, by the agent's clock.
        sent: Nanos,
    },
    /// Agent: connections are open, and the first request is ready.
    Ready,
    /// Coordinator: the run begins at this time.
    Start {
        /// The run's origin, by the agent's clock.
        at: Nanos,
        /// Distance from the coordinator's instant, at most.
        bound: Nanos,
    },
    /// Agent: figures of the run so far.
    Live { figures: Value },
    /// Agent: bytes of its records, in the body.
    Records {
        /// Position in the file, in bytes.
        offset: u64,
    },
    /// Coordinator: it has the records up to here.
    Ack { offset: u64 },
    /// Either: the run ends.
    Interrupt(Interrupt),
    /// Agent: its part of the run has ended, and all its records were acknowledged.
    Finished(Finished),
    /// Coordinator: there will be no run, or this process is no part of it.
    Refused {
        /// The reason, a sentence each.
        reasons: Vec<String>,
    },
    /// Coordinator: the end is on record, and the agent may leave.
    Bye,
}

/// The identity of an agent.
///
/// Later versions may add fields, and all versions read it, so that a version that does not fit is
/// refused by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hello {
    /// Its version of the protocol.
    pub protocol: u32,
    /// Its version of the program.
    pub version: String,
    pub rank: u32,
    /// The number of processes, by its environment.
    pub size: u32,
    /// Its machine's name.
    pub host: String,
    /// A number of this process alone: a second process with the same rank has another.
    pub instance: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Welcome {
    /// The slice of the plan that is the agent's.
    pub index: u32,
    /// The number of slices.
    pub of: u32,
    /// The time when the run began, opaque here.
    pub began: String,
    /// The run of a study, opaque here; absent if the command line alone describes the run.
    pub order: Option<String>,
    /// The number of bytes of the agent's records that the coordinator has.
    pub records: u64,
}

/// The end of a run before its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Interrupt {
    /// Count of interrupts: one stops sending, two give up the replies under way.
    pub times: u32,
    pub why: String,
}

/// The end of an agent's part of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Finished {
    /// The ending, as the run's owner records it.
    pub ending: Value,
    /// The number of bytes of records it wrote.
    pub records: u64,
    /// SHA-256 of those bytes, in hexadecimal.
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub message: Message,
    /// Its bytes beside the message.
    pub body: Vec<u8>,
}

impl From<Message> for Frame {
    fn from(message: Message) -> Self {
        Frame { message, body: Vec::new() }
    }
}

/// Largest headers that one side accepts, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Before an agent has identified itself.
    Hello,
    /// From an agent: figures, facts, endings.
    Agent,
    /// From the coordinator: reasons.
    Coordinator,
}

impl Bound {
    /// The largest header.
    pub fn header(self) -> usize {
        match self {
            Bound::Hello => 4 << 10,
            Bound::Agent | Bound::Coordinator => 4 << 20,
        }
    }

    /// The largest body.
    pub fn body(self) -> usize {
        match self {
            Bound::Hello | Bound::Coordinator => 0,
            Bound::Agent => BODY,
        }
    }
}

/// Bytes that are no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("a message has {found} bytes of {part}; at most {most} are allowed")]
    TooLarge { part: &'static str, found: u64, most: usize },
    #[error("a message cannot be read: {0}")]
    NotAMessage(String),
    #[error(
        "a message of kind `{0}` has a body where none is allowed, or lacks the body that it must have"
    )]
    Body(&'static str),
}

impl Message {
    /// Its kind, as the wire has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::Hello(_) => "hello",
            Message::Welcome(_) => "welcome",
            Message::Prepared { .. } => "prepared",
            Message::Ping { .. } => "ping",
            Message::Pong { .. } => "pong",
            Message::Ready => "ready",
            Message::Start { .. } => "start",
            Message::Live { .. } => "live",
            Message::Records { .. } => "records",
            Message::Ack { .. } => "ack",
            Message::Interrupt(_) => "interrupt",
            Message::Finished(_) => "finished",
            Message::Refused { .. } => "refused",
            Message::Bye => "bye",
        }
    }

    /// Checks that a message of this kind may have a header of this size.
    fn within_its_kind(&self, header: usize) -> Result<(), WireError> {
        match self {
            Message::Live { .. } => within("figures", header as u64, FIGURES),
            _ => Ok(()),
        }
    }
}

impl Frame {
    /// Its bytes. Fails if it is larger than the other side would accept.
    pub fn encode(&self, bound: Bound) -> Result<Vec<u8>, WireError> {
        let header = serde_json::to_vec(&self.message)
            .map_err(|error| WireError::NotAMessage(error.to_string()))?;
        within("header", header.len() as u64, bound.header())?;
        within("body", self.body.len() as u64, bound.body())?;
        self.message.within_its_kind(header.len())?;
        let mut bytes = Vec::with_capacity(LENGTHS + header.len() + self.body.len());
        // Both are below the bounds, which are below 4 GiB.
        bytes.extend((header.len() as u32).to_be_bytes());
        bytes.extend((self.body.len() as u32).to_be_bytes());
        bytes.extend(header);
        bytes.extend(&self.body);
        Ok(bytes)
    }
}

fn within(part: &'static str, found: u64, most: usize) -> Result<(), WireError> {
    if found > most as u64 { Err(WireError::TooLarge { part, found, most }) } else { Ok(()) }
}

/// Puts frames together from bytes as they come.
#[derive(Debug)]
pub struct Decoder {
    bound: Bound,
    held: Vec<u8>,
}

impl Decoder {
    /// A decoder that accepts frames within a bound.
    pub fn new(bound: Bound) -> Self {
        Decoder { bound, held: Vec::new() }
    }

    /// Accepts frames within another bound from now on.
    pub fn widen(&mut self, bound: Bound) {
        self.bound = bound;
    }

    /// Adds bytes. Call [`Self::next`] to its end before, so that one frame and piece are held.
    pub fn feed(&mut self, bytes: &[u8]) {
        // Growing by doubling would hold up to twice a frame.
        if self.held.capacity() - self.held.len() < bytes.len() {
            self.held.reserve_exact(bytes.len().max(STEP));
        }
        self.held.extend_from_slice(bytes);
    }

    /// The next frame, if complete. Fails on bytes that are no frame or too large: close then.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame>, WireError> {
        let Some(lengths) = self.held.first_chunk::<LENGTHS>() else { return Ok(None) };
        let [a, b, c, d, e, f, g, h] = *lengths;
        let header = u32::from_be_bytes([a, b, c, d]);
        let body = u32::from_be_bytes([e, f, g, h]);
        within("header", header.into(), self.bound.header())?;
        within("body", body.into(), self.bound.body())?;
        let header_end = LENGTHS + header as usize;
        let end = header_end + body as usize;
        if self.held.len() < end {
            return Ok(None);
        }
        let message: Message = serde_json::from_slice(&self.held[LENGTHS..header_end])
            .map_err(|error| WireError::NotAMessage(error.to_string()))?;
        message.within_its_kind(header as usize)?;
        if matches!(message, Message::Records { .. }) != (body > 0) {
            return Err(WireError::Body(message.kind()));
        }
        let body = self.held[header_end..end].to_vec();
        self.held.drain(..end);
        // A large message is rare; its memory is not kept for small ones.
        self.held.shrink_to(2 * STEP);
        Ok(Some(Frame { message, body }))
    }
    /// The number of bytes that wait for the rest of their frame.
    pub fn held(&self) -> usize {
        self.held.len()
    }
}
