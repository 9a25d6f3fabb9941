//! The way back from decoding to reading, if replies decide the next request.

use crate::transport::Request;
use crate::transport::websocket::Message;
use model::frame::Framing;
use model::identity::Field;
use model::units::Nanos;

pub enum Course {
    /// Its reply is the answer.
    One,
    /// The reply may name a next request.
    Steps(Box<First>),
    /// The request opens a WebSocket, over which these messages are sent.
    Socket(Vec<Outgoing>),
}

pub struct First {
    /// Statuses, beside success, whose replies are decoded.
    pub accepted: Vec<u16>,
    /// The context that goes along with the head of its reply.
    pub context: Vec<u8>,
    /// Header fields that each further request carries too, unless it has one of the name.
    pub fields: Vec<Field>,
}

/// The kind of an exchange that has a way back from decoding to reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of several requests.
    Steps,
    /// Over a WebSocket.
    Socket,
}

pub enum Demand {
    /// Send this next request of the exchange.
    Step(Box<Step>),
    /// Send this message too, after the waiting messages.
    Send(Outgoing),
    /// Send the messages that are held, up to the next one that holds.
    Proceed,
    /// Send nothing more: the answer is complete, or never will be.
    Ended,
}

pub struct Step {
    /// Makes the request ready when it is sent, as a signature holds for minutes.
    pub request: Box<dyn FnOnce() -> Request + Send>,
    /// The number of the place that it goes to: a target's, or another host's after them.
    pub place: u32,
    /// The host, if it is not the exchange's target.
    pub host: Option<String>,
    pub framing: Framing,
    /// The time between the end of the previous reply and its sending.
    pub delay: Nanos,
    /// As of the first request.
    pub accepted: Vec<u16>,
    pub context: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub message: Message,
    /// Time after the message before it was due, when this one is due.
    pub delay: Nanos,
    /// True if it is held, with those behind it, until the answer says to proceed.
    pub hold: bool,
}
