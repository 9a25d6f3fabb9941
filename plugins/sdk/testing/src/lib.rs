//! Inputs with which a plugin's unit tests run it natively: [`files`] and [`tokenizer`]s in place
//! of the host's. A plugin's expected output is defined by its cases, which `runner plugin test`
//! runs in the sandbox.
//!
//! For tests only; nothing here becomes part of a component.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod files;
pub mod tokenizer;
