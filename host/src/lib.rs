//! The runner as a library. `ARCHITECTURE.md` beside the sources says how the parts hang together.
#![forbid(unsafe_code)]

pub mod duration;
pub mod exchange;
pub mod scenario;
pub mod units;
