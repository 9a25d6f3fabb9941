//! The runner as a library. `ARCHITECTURE.md` beside the sources says how the parts hang together.
#![forbid(unsafe_code)]

pub mod exchange;
pub mod finding;
pub mod metric;
pub mod report;
pub mod stats;
pub mod summary;
pub mod units;
