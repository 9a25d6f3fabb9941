//! Turns a compiler's core module into a component.
//!
//! This crate owns the encoding, and lists a component's imports and exports. It does not depend on
//! the kind of plugin and prints nothing. It leaves finding the compiler to `toolchain`. `xtask`
//! runs the binary, because it has no other use for these dependencies; `runner plugin build` calls
//! the library, so that both build in the same way.
#![forbid(unsafe_code)]

mod encode;

pub use encode::{EncodeError, encode, exports, imports};
