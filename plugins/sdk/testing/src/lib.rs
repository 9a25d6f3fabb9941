//! Runs a plugin natively in its unit tests: [`datasets`] with [`files`] and [`tokenizer`]s in
//! place of the host's. Cases define a plugin's expected output; `runner plugin test` runs them in
//! the sandbox.
//!
//! For tests only; nothing here becomes part of a component.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod datasets;
pub mod files;
pub mod tokenizer;
