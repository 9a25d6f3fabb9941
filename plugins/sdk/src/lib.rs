//! Write a plugin for runner: implement one trait, name the type in one macro, compile for
//! `wasm32-unknown-unknown`.
//!
//! | kind | trait | macro |
//! | --- | --- | --- |
//! | an engine's API | [`Backend`] | [`export_backend!`] |
//! | a source of samples | [`Dataset`] | [`export_dataset!`] |
//! | a scorer of answers | [`Scorer`] | [`export_scorer!`] |
//!
//! A plugin is an ordinary library crate. Compiled natively it runs its unit tests, and the macros
//! export nothing; compiled for WebAssembly it is a component that imports `runner:plugin`
//! interfaces and nothing else. So a plugin has only what these interfaces offer: no clock, no
//! environment, no network, no randomness except from its seed (`std::time::Instant::now()`
//! compiles, but panics).
//!
//! The configuration is a type that derives [`serde::Deserialize`] and [`schemars::JsonSchema`];
//! its doc comments become the user's help. Start it with
//! `#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]`.
//!
//! A panic ends the call it happened in, and its message reaches the user's log. Return an
//! [`Error`] for everything that a user or a server can cause.
#![warn(missing_docs)]
#![deny(unsafe_code)]

mod backend;
#[doc(hidden)]
pub mod bindings;
mod body;
mod build;
mod config;
mod dataset;
pub mod date;
pub mod dialect;
mod export;
mod form;
mod inputs;
pub mod json;
pub mod lengths;
pub mod log;
pub mod random;
pub mod records;
mod refuse;
pub mod report;
pub mod requests;
mod timings;
pub mod words;

pub use {schemars, serde, serde_json};

pub use backend::{Backend, Frame};
pub use bindings::backend::{
    Authentication, Call, Control, Credentials, Digest, Earlier, Embedded,
};
pub use bindings::backend::{Encoding, Framing, Hmac, Outgoing, Socket, Sound, Step};
pub use bindings::backend::{Head, LengthPrefix, Meaning, Output, Ranked, Reading, Reason};
pub use bindings::backend::{Message as SocketMessage, Timings, Token, Usage};
pub use bindings::backend::{Prepared, Refusal, Request, ServedModel, ServerMetric, Speculation};
pub use bindings::dataset::{Amount, Remark, Treatment};
pub use bindings::host::tokenizer::Facts;
pub use bindings::host::types::{Candidates, Continuation, Dependency, Error, Media, Message};
pub use bindings::host::types::{Part, Point, Prompt, Role, Sample, Sampling, Settings, Turn};
pub use bindings::scorer::{Count, CountSource, Exchange, Score};
pub use body::Body;
pub use build::Scorer;
pub use config::{check_prefix, parse, schema};
pub use dataset::{Dataset, ENOUGH, Inputs};
pub use form::Form;
pub use inputs::{File, Files, Reader, Tokenizer};
pub use refuse::Setting;

#[doc(hidden)]
pub mod glue {
    //! Used by the export macros. Not for direct use by plugins.
    pub use crate::backend::Codec;
    pub use crate::build::Judge;
    pub use crate::dataset::Generator;
    pub use crate::export::info;
}
