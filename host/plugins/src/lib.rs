//! Plugins: finding, loading and calling them. The only part that knows wasmtime.
//!
//! [`load`] turns a name into a [`Plugin`]; [`backend`], [`dataset`] and [`scorer`] call one.
//!
//! This crate owns the host's side of the contract, and the [`sandbox`] that decides what a plugin may use. It leaves
//! the meaning of a plugin's answers to the caller.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests write files and read clocks"
    )
)]

mod artifacts;
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
mod contract;
mod effort;
mod error;
mod instance;
mod limits;
mod locate;
mod tokens;
mod wasi;

pub use contract::Contract;
pub use error::PluginError;
pub use instance::Info;
pub use load::Plugin;
