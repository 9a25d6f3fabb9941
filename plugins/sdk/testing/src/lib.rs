//! What a plugin's unit tests need to run it natively: [`files`] and [`tokenizer`]s in place of the host's, and
//! [`cases`], golden folders that say what a dataset must give.
//!
//! For tests only; nothing here goes into a component.
#![forbid(unsafe_code)]

pub mod cases;
pub mod files;
pub mod tokenizer;
