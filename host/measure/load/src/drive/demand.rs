//! The way back from decoding to reading, for exchanges in which what came decides what is sent
//! next. Exchanges of one request have none of it.

use crate::transport::websocket::Message;
use model::units::Nanos;

/// How an exchange goes on after its first request.
pub enum Course {
    /// Its reply is the answer.
    One,
    /// The request opens a WebSocket, over which these messages are sent.
    Socket(Vec<Outgoing>),
}

/// What decoding asks of reading.
#[derive(Debug)]
pub enum Demand {
    /// Send this message too, after those that wait.
    Send(Outgoing),
    /// Send the messages that are held, up to the next one that holds.
    Proceed,
    /// Send nothing more: the answer is complete, or never will be.
    Ended,
}

/// A message to send over a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The message.
    pub message: Message,
    /// Time after the message before it was due, when this one is due.
    pub delay: Nanos,
    /// True if it is held, with those behind it, until the answer says to proceed.
    pub hold: bool,
}
