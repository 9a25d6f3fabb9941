//! Packages of the program for people to install, made of one built binary.
//!
//! This crate owns the formats, and the rules for each file in them: its place, its owner, and that
//! the same inputs give the same bytes. It leaves the program's texts (man pages, completions) to
//! the program, which is asked for them, and publishing to people with the rights.
//!
//! A package is a [`tree`] of files in a container. Nothing in a tree depends on the machine that
//! makes it: entries are sorted, their owner is root, and their time is the [`date`](date::Date) of
//! the last commit.
#![allow(
    clippy::disallowed_methods,
    reason = "packages are for everybody to read, and no part of a run"
)]
#![forbid(unsafe_code)]

pub mod binary;
mod command;
pub mod date;
pub mod elf;
pub mod kinds;
pub mod notices;
pub mod product;
pub mod project;
pub mod sbom;
pub mod sums;
pub mod target;
pub mod texts;
pub mod tree;
pub mod version;

pub use kinds::Kind;
pub use product::Product;

/// The name of the distribution, wherever packages have names. The command is `runner`.
pub const PACKAGE_NAME: &str = "runner-llm";
/// The same in file names and module names of Python.
pub const PYTHON_NAME: &str = "runner_llm";
/// The name of the command.
pub const COMMAND: &str = "runner";
/// One line about the program.
pub const SUMMARY: &str = "Benchmark runner for LLM serving engines";
