//! Plugins: finding, loading and calling them. The only part that knows wasmtime.
//!
//! [`load`] turns a name into a [`Plugin`]; [`backend`], [`dataset`] and [`scorer`] call one.
//!
//! This crate owns the host's side of the contract, and the [`sandbox`], which limits a plugin. It
//! leaves the meaning of a plugin's answers to the caller.
//!
//! **Decoding is a fold.** `decode(state, frames) -> (events, state)`: the state is opaque bytes
//! that the host keeps for the reply, empty at first. So any thread's instance can take the next
//! batch, and a trap loses only one exchange. A failed batch is repeated frame by frame, to keep
//! the events before the fault. Frames go in batches: waking a thread costs more than decoding.
//!
//! **The sandbox.** One engine serves the process, with epochs for deadlines (a tick every 10 ms).
//! Each instance has a store with limits on memory, tables, time and data. Imports are bound once
//! for all instances, so an instance takes microseconds. After a trap it is dead, and the next call
//! makes a new one. NaNs are canonical, so results do not depend on the processor.
//!
//! **The host's work for a plugin is charged to its call.** Texts are tokenized in portions of 1
//! MiB, with a look at the clock between them. Calls that ran too long raise `plugin-overruns`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]

mod awaited;
pub mod backend;
pub mod case;
pub mod chat;
pub mod dataset;
pub mod examine;
pub mod imports;
pub mod load;
pub mod outline;
pub mod sandbox;
pub mod scorer;

mod bindings;
mod compile;
mod effort;
mod error;
mod file;
mod instance;
mod limits;
mod locate;
mod streams;
mod tokens;
mod wasi;

pub use compile::Contract;
pub use error::PluginError;
pub use instance::Info;
pub use load::Plugin;
