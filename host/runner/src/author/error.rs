//! Errors between an author's folder and a component.

use std::path::{Path, PathBuf};

use componentize::EncodeError;
use toolchain::ToolchainError;

/// The reason why a project cannot be created or built.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    /// The project's folder is not empty.
    #[error(
        "`{}` already exists and is not empty; choose another name, or another folder with --path",
        .0.display()
    )]
    Occupied(PathBuf),
    /// There is no such template.
    #[error("there is no template for a {kind} in {language}; choose one of {others}")]
    NoTemplate {
        kind: &'static str,
        language: &'static str,
        /// The languages that have a template.
        others: String,
    },
    /// An error of the system.
    #[error("cannot {operation} `{}`: {cause}", .path.display())]
    System {
        /// The operation, such as `write`.
        operation: &'static str,
        path: PathBuf,
        cause: std::io::Error,
    },
    /// The folder is not a project.
    #[error("`{}` is not a plugin project: {expected}", .folder.display())]
    NoProject {
        folder: PathBuf,
        /// The expectation, and the advice.
        expected: String,
    },
    /// A file of the project is wrong.
    #[error("`{}`: {mistake}", .file.display())]
    Project {
        file: PathBuf,
        /// The mistake and the expectation.
        mistake: String,
    },
    #[error("{0}")]
    Missing(String),
    /// No Rust can compile for WebAssembly.
    #[error("{0}")]
    Toolchain(#[from] ToolchainError),
    /// A compiler failed; it printed the reason to stderr.
    #[error("{tool} failed ({how}); see its output above")]
    Tool {
        tool: &'static str,
        /// Its exit code or signal.
        how: String,
    },
    /// A compiler did not write its output.
    #[error("{tool} did not write `{}`", .path.display())]
    Nothing { tool: &'static str, path: PathBuf },
    /// The bindings cannot be generated from the contract.
    #[error("cannot generate bindings from `{}`: {mistake}", .folder.display())]
    Bindings {
        /// The folder with the contract.
        folder: PathBuf,
        mistake: String,
    },
    /// It is a component, but not a plugin.
    #[error(
        "`{name}` was compiled, but is not a plugin: it exports nothing of runner:plugin; in Rust, end lib.rs with \
         `runner_plugin::export_backend!(TYPE)`, or the macro of its kind; elsewhere, compile it with bindings of \
         the interface"
    )]
    NoPlugin { name: String },
    /// The compiled module cannot be turned into a component.
    #[error("`{name}` was compiled, but cannot be turned into a component: {cause}")]
    Encode { name: String, cause: EncodeError },
}

impl AuthorError {
    /// Wraps an error of the system.
    pub(super) fn system(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |cause| AuthorError::System { operation, path, cause }
    }
}
