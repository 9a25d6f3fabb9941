//! What a plugin's unit tests need to run it natively: [`files`] and [`tokenizer`]s in place of the host's. What
//! a plugin must give is said by its cases, which `runner plugin test` runs in the sandbox.
//!
//! For tests only; nothing here goes into a component.
#![forbid(unsafe_code)]

pub mod files;
pub mod tokenizer;
