#![doc = include_str!("../ARCHITECTURE.md")]
// The one exception argues for itself: `plugin::artifacts`.
#![deny(unsafe_code)]

pub mod arrival;
pub mod assess;
pub mod cli;
pub mod clock;
pub mod decode;
pub mod drive;
pub mod duration;
pub mod environment;
pub mod exchange;
pub mod finding;
pub mod folder;
pub mod frame;
pub mod guide;
pub mod metric;
pub mod mock;
pub mod pace;
pub mod plan;
pub mod plugin;
pub mod preflight;
pub mod prepare;
pub mod record;
pub mod report;
pub mod resolve;
pub mod run;
pub mod scenario;
pub mod shipped;
pub mod stats;
pub mod summary;
pub mod target;
pub mod timings;
pub mod tokenizer;
pub mod transport;
pub mod units;
pub mod vitals;
