//! What can go wrong between an author's folder and a component.

use std::path::{Path, PathBuf};

use componentize::EncodeError;
use toolchain::ToolchainError;

/// Why a project is not made or not built.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    /// There is something already where the project is to be.
    #[error(
        "`{}` is there already and not empty; give another name, or another folder with --path",
        .0.display()
    )]
    Occupied(PathBuf),
    /// No template serves.
    #[error("there is no template for a {kind} in {language}; there is one in {others}")]
    NoTemplate {
        /// The kind.
        kind: &'static str,
        /// The language.
        language: &'static str,
        /// The languages that have one.
        others: String,
    },
    /// The system refuses.
    #[error("cannot {what} `{}`: {cause}", .path.display())]
    System {
        /// What was tried, such as `write`.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The folder holds no project.
    #[error("`{}` holds no plugin project: {expected}", .folder.display())]
    NoProject {
        /// The folder.
        folder: PathBuf,
        /// What was expected, and what to do.
        expected: String,
    },
    /// A file of the project is wrong.
    #[error("`{}`: {what}", .file.display())]
    Project {
        /// The file.
        file: PathBuf,
        /// What is wrong and what was expected.
        what: String,
    },
    /// A compiler is missing.
    #[error("{0}")]
    Missing(String),
    /// No Rust compiles for WebAssembly.
    #[error("{0}")]
    Toolchain(#[from] ToolchainError),
    /// A compiler failed; it said why on stderr.
    #[error("{tool} failed ({how}); it says why above")]
    Tool {
        /// Its name.
        tool: &'static str,
        /// Its exit code or signal.
        how: String,
    },
    /// A compiler left nothing, or something else.
    #[error("{tool} left no `{}`", .path.display())]
    Nothing {
        /// Its name.
        tool: &'static str,
        /// What it was to write.
        path: PathBuf,
    },
    /// The contract's text does not give bindings.
    #[error("the bindings cannot be made of `{}`: {what}", .folder.display())]
    Bindings {
        /// The folder with the contract.
        folder: PathBuf,
        /// Why.
        what: String,
    },
    /// It is a component, and not a plugin.
    #[error(
        "`{name}` was compiled, but is no plugin: it exports nothing of runner:plugin; in Rust, end lib.rs with \
         `runner_plugin::export_backend!(TYPE)`, or the macro of its kind; elsewhere, compile it with bindings of \
         the interface"
    )]
    NoPlugin {
        /// The plugin's name.
        name: String,
    },
    /// What was compiled does not become a component.
    #[error("`{name}` was compiled, but does not become a component: {cause}")]
    Encode {
        /// The plugin's name.
        name: String,
        /// Why.
        cause: EncodeError,
    },
}

impl AuthorError {
    /// Wraps an error of the system.
    pub(super) fn system(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |cause| AuthorError::System { what, path, cause }
    }
}
