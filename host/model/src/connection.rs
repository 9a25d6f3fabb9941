//! How a server is connected to: HTTP version, connection reuse, timeouts, trust, and the source of timestamps.
//!
//! These are the settings alone; `load` acts on them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The version of HTTP.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
pub enum Version {
    /// HTTP/1.1: a request at a time on each connection.
    #[default]
    #[serde(rename = "1.1")]
    #[value(name = "1.1")]
    Http1,
    /// HTTP/2: many requests share a connection. Without TLS, the client uses it without negotiation.
    #[serde(rename = "2")]
    #[value(name = "2")]
    Http2,
}

/// Which connection a request takes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// Any that is free.
    #[default]
    KeepAlive,
    /// One that has carried no request before.
    Never,
    /// The one that carried the last request of the same conversation.
    Session,
}

/// The timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Timeouts {
    /// For a connection, in nanoseconds.
    pub connect: Nanos,
    /// For the first token of an answer, from when the request is sent, in nanoseconds; absent
    /// if only the whole request has a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Nanos>,
    /// For the next token of an answer, in nanoseconds.
    pub token_gap: Nanos,
    /// For a whole reply, in nanoseconds.
    pub request: Nanos,
}

/// Which receive timestamps to use.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Timestamps {
    /// The kernel's: when the network gave the bytes to the socket, however late they were read. Where
    /// the system has no such stamps, as [`Timestamps::User`].
    #[default]
    Kernel,
    /// This program's: when they were read.
    User,
}

/// Which certificates to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Trust {
    /// A file of certificates in PEM form that are trusted in addition to the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<PathBuf>,
    /// Whether to accept any certificate. Every result says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}
