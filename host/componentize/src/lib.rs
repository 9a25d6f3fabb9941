//! From a crate's sources to a component: which Rust of this machine compiles for WebAssembly, and what makes
//! its module a component.
//!
//! This crate owns that path and prints nothing. It leaves what a plugin is to `plugins`. `xtask` builds with it what ships, `runner plugin build` what
//! others write, so that both are built the same way.
#![forbid(unsafe_code)]

mod encode;
mod toolchain;

pub use encode::{EncodeError, encode, exports, imports};
pub use toolchain::{Build, Chosen, Target, Toolchain, ToolchainError, Wanted, has_target};
