//! A plugin author's tools, as far as they need no sandbox: a project from a template, and the project's
//! component.
//!
//! [`template`] and [`keys`] are pure; [`project`] reads what a folder says of itself; [`build`] calls the
//! compilers. Loading and testing what comes of it is `plugin`'s, printing it `cli`'s.

mod c;
mod javascript;
mod python;
mod rust;
mod tool;

pub mod build;
pub mod error;
pub mod keys;
pub mod name;
pub mod project;
pub mod template;

pub use error::AuthorError;

/// A language that plugins are written in.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
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
    /// Every language.
    pub const ALL: [Language; 4] = [
        Language::Rust,
        Language::Python,
        Language::Javascript,
        Language::C,
    ];

    /// Its name on the command line and in folders.
    pub fn key(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Python => "python",
            Language::Javascript => "javascript",
            Language::C => "c",
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Language::Rust => "Rust",
            Language::Python => "Python",
            Language::Javascript => "JavaScript",
            Language::C => "C",
        }
    }
}
