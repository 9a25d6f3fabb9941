//! A plugin author's tools that need no sandbox: creating a project from a template, and building
//! its component.
//!
//! [`template`] and [`keys`] are pure; [`project`] reads a project folder; [`build`] calls the
//! compilers. `plugin` loads and tests the result, `cli` prints it.

mod c;
mod declarations;
mod javascript;
mod python;
mod rust;
mod tool;

pub mod build;
pub mod editor;
pub mod error;
pub mod fresh;
pub mod keys;
pub mod project;
pub mod template;

pub use error::AuthorError;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A language that plugins are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// Rust, with the SDK
    Rust,
    /// Python, with componentize-py
    Python,
    /// JavaScript, with componentize-qjs
    Javascript,
    /// C, with clang
    C,
}

impl Language {
    /// Its name on the command line and in folders.
    pub fn key(self) -> String {
        self.name().to_lowercase()
    }

    pub fn name(self) -> &'static str {
        match self {
            Language::Rust => "Rust",
            Language::Python => "Python",
            Language::Javascript => "JavaScript",
            Language::C => "C",
        }
    }
}
