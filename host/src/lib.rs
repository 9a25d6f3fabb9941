//! The runner as a library. `ARCHITECTURE.md` beside the sources says how the parts hang together.
#![forbid(unsafe_code)]

pub mod cli;
pub mod duration;
pub mod exchange;
pub mod mock;
pub mod units;
