//! A reply as its reader passes it on: the head, the receiver of the body, and the failures. Every
//! connection of a thread reads into one buffer.

use std::cell::RefCell;
use std::io;

use hyper::HeaderMap;

use super::request::Request;
use model::units::Nanos;

/// Bytes read at once at most. A reply that is behind comes in reads of this size.
const READ_BYTES: usize = 64 << 10;
/// Reads of one connection before the others on its thread get their turn.
pub(super) const READS_IN_A_ROW: usize = 16;

thread_local! {
    /// The buffer into which every connection of this thread reads.
    pub(super) static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// The beginning of a reply.
#[derive(Debug)]
pub struct Head {
    pub status: u16,
    pub headers: HeaderMap,
}

/// Receives a reply's body: the bytes and their instants. An error of the receiver ends the reply.
pub trait Sink {
    /// Takes bytes that came at this instant.
    fn take(&mut self, at: Nanos, bytes: &[u8]) -> Result<(), String>;

    /// Takes the trailer fields, after the last bytes. Most replies have none.
    fn trailers(&mut self, at: Nanos, fields: &HeaderMap) -> Result<(), String> {
        let _ = (at, fields);
        Ok(())
    }
}

/// The reason why a reply has no head.
#[derive(Debug)]
pub enum Unanswered {
    /// The connection broke; the text says why.
    Broke(String),
    /// The connection takes no more requests. Of this one nothing was sent.
    Unsent(Request),
}

/// The reason why the reading of a body ended before its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Broke {
    /// The connection failed or closed, or its bytes are no HTTP.
    Connection(String),
    /// The receiver refused the bytes.
    Refused(String),
}

pub(super) fn broken(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "the connection was reset".to_owned(),
        io::ErrorKind::UnexpectedEof => {
            "the connection was closed without a TLS close_notify".to_owned()
        }
        _ => format!("the connection failed: {error}"),
    }
}
