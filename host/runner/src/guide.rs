//! The guide for plugin authors that ships with the runner.
//!
//! This module only holds the pages; `cli` prints them. `tests/guide.rs` tests that their code
//! works, and `tests/contract/reference.rs` writes the reference.

pub mod pages;

/// A page of the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Page {
    /// Plugins, their tools, the stable parts, the sandbox
    Start,
    /// The way to support another engine
    Backend,
    /// The way to generate samples
    Dataset,
    /// The way to score answers
    Scorer,
    /// The files of a plugin's test cases
    Cases,
    /// Every type and function of the contract
    Reference,
    /// The engine of the exercise, a script for `runner mock`
    Engine,
    /// A GitHub Actions workflow that tests a plugin's repository
    Workflow,
}

impl Page {
    pub fn text(self) -> &'static str {
        let name = match self {
            Page::Start => "plugins/guide/README.md",
            Page::Backend => "plugins/guide/backend.md",
            Page::Dataset => "plugins/guide/dataset.md",
            Page::Scorer => "plugins/guide/scorer.md",
            Page::Cases => "guide/reference/plugin-cases.md",
            Page::Reference => "plugins/guide/reference.md",
            Page::Engine => "plugins/guide/exercise/engine.toml",
            Page::Workflow => "template/ci/plugin.yml",
        };
        shipped::text(name).unwrap_or_default()
    }
}
