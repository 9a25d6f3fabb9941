//! From a crate's sources to a component: finds a Rust that compiles for WebAssembly, and turns its module into a
//! component.
//!
//! It does not depend on the kind of plugin and prints nothing. `xtask` uses it to build the shipped plugins, `runner
//! plugin build` those of other authors, so that both are built in the same way.
#![forbid(unsafe_code)]

mod encode;

pub use encode::{EncodeError, encode, exports, imports};
