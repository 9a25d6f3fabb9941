//! Reads TOML key by key. It collects every mistake with its place instead of stopping at the first
//! mistake, and suggests the nearest known name for an unknown key.
//!
//! This crate owns the reading, the located values that it gives ([`Located`]), and the problems.
//! Its callers decide on the keys and the valid values: `scenario` for scenarios, `mock` for
//! scripts.
#![forbid(unsafe_code)]
// A number that the user wrote must not change on its way.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod config;
mod located;
mod problem;
mod reader;
mod size;
mod text;
pub mod toml_text;
mod value;
pub mod words;

pub use config::{Config, ConfigEntry, ConfigTable, ConfigValue};
pub use located::{Located, Place, Source};
pub use problem::{Problem, ScenarioError};
pub use reader::{Reader, Reading, parse_assignment, parse_table};
pub use size::Size;
pub use text::{MOST_BYTES, read_text, read_text_from};
