//! Code that datasets of conversations share.
//!
//! | module | owns |
//! | --- | --- |
//! | [`messages`] | messages in the JSON of the OpenAI API, with pictures and tool calls |
//! | [`turns`] | from a list of messages to the turns that are asked, with their recorded answers |
//! | [`words`] | texts of a given number of tokens, drawn from a seed |
//! | [`rows`] | the lines of a file, and errors that name them |
//! | [`systems`] | system prompts that sessions share |
//! | [`draw`] | independent generators for the parts of a session |
//! | [`sessions`] | the sessions of a run, in the order of their source |
//! | [`spares`] | first requests of sessions that are not measured |
//! | [`setting`] | keys that take a word or a distribution |
//!
//! The conversations, and the way in which their requests depend on each other, are the plugin's to
//! decide.
#![forbid(unsafe_code)]

pub mod messages;
pub mod rows;
pub mod sessions;
pub mod turns;
pub mod words;

/// The scenario's name for the file of a dataset.
pub const FILE: &str = "data";

/// The most turns of a session: enough for agents, and a bound on the memory of a line.
pub const MOST_TURNS: usize = 10_000;

/// The longest wait between two requests, in seconds: 30 days.
pub const LONGEST_WAIT: f64 = 2_592_000.0;

/// The longest text that is drawn, in tokens.
pub const LONGEST: u32 = 1 << 20;
