//! From what a compiler wrote to a component.
//!
//! This crate owns the encoding, and reading back what a component imports and exports. It knows no plugin's kind;
//! which compiler writes the module is `toolchain`'s. The binary is for `xtask`, which has no use for these
//! dependencies otherwise; `runner plugin build` calls the library.
#![forbid(unsafe_code)]

mod encode;

pub use encode::{EncodeError, encode, exports, imports};
