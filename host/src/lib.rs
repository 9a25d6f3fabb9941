//! The runner as a library. `ARCHITECTURE.md` beside the sources says how the parts hang together.
#![forbid(unsafe_code)]

pub mod exchange;
pub mod stats;
pub mod units;
