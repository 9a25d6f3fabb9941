//! The guide for authors of plugins, as it ships inside the runner: pages of text, and a reference made from
//! the contract.
//!
//! Responsible for having them; printing them is `cli`'s. That their code works is a test of the whole
//! (`tests/guide.rs`).

pub mod pages;
pub mod reference;

/// A page of the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Page {
    /// What a plugin is, its tools, what is stable, the sandbox
    Start,
    /// How to speak to another engine
    Backend,
    /// Where requests' contents come from
    Dataset,
    /// How to judge answers
    Scorer,
    /// Every type and function of the contract
    Reference,
    /// The exercise's engine, a script for `runner mock`
    Engine,
    /// A workflow that tests a plugin's repository, for GitHub Actions
    Workflow,
}

impl Page {
    /// Its text.
    pub fn text(self) -> &'static str {
        match self {
            Page::Start => include_str!("../../../plugins/guide/README.md"),
            Page::Backend => include_str!("../../../plugins/guide/backend.md"),
            Page::Dataset => include_str!("../../../plugins/guide/dataset.md"),
            Page::Scorer => include_str!("../../../plugins/guide/scorer.md"),
            Page::Reference => include_str!("../../../plugins/guide/reference.md"),
            Page::Engine => include_str!("../../../plugins/guide/exercise/engine.toml"),
            Page::Workflow => include_str!("../../../plugins/template/ci/plugin.yml"),
        }
    }
}
