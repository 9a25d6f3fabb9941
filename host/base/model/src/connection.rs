//! Settings of connections to a server: HTTP version, reuse, timeouts, trust, and the source of
//! timestamps. `load` acts on them.

use std::path::PathBuf;

use crate::units::Nanos;

crate::words! {
    /// The version of HTTP.
    pub enum Version {
        /// HTTP/1.1: a request at a time on each connection.
        Http1 = "1.1",
        /// HTTP/2: many requests share a connection. Without TLS, the client uses it without
        /// negotiation.
        Http2 = "2",
    }
    default Http1
}

crate::words! {
    /// The connection that a request takes.
    pub enum Reuse {
        /// Any free connection.
        KeepAlive = "keep-alive",
        /// A connection that has carried no request before.
        Never = "never",
        /// The connection of the last request of the same conversation.
        Session = "session",
    }
    default KeepAlive
}

crate::words! {
    /// The order in which the sides of a paired run are measured.
    pub enum PairOrder {
        /// One after the other, with a part of the requests in each turn.
        Turns = "turns",
        /// All at once, with the same due times.
        Together = "together",
    }
}

/// The timeouts.
#[model::apply(model::document!)]
#[derive(Copy, Eq)]
pub struct Timeouts {
    /// For a connection, in nanoseconds.
    pub connect: Nanos,
    /// For the first token of an answer, from the sending of its request, in nanoseconds; absent if
    /// only the whole request has a timeout.
    pub first_token: Option<Nanos>,
    /// For the next token of an answer, in nanoseconds.
    pub token_gap: Nanos,
    /// For a whole reply, in nanoseconds.
    pub request: Nanos,
}

crate::words! {
    /// The source of receive timestamps.
    pub enum Timestamps {
        /// The kernel's: when the network gave the bytes to the socket, however late they were
        /// read. Where the system has no such stamps, as user.
        Kernel = "kernel",
        /// This program's: when they were read.
        User = "user",
    }
    default Kernel
}

/// The certificates to trust.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Trust {
    /// A file of certificates in PEM form that are trusted in addition to the system's.
    pub ca_cert: Option<PathBuf>,
    /// True to accept any certificate. Every result says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}
