//! Files that `runner plugin new` writes: templates, the contract, and the Rust SDK with its lock
//! file.

include!(concat!(env!("OUT_DIR"), "/kit.rs"));
