//! Errors between an author's folder and a component.

use std::path::{Path, PathBuf};

use componentize::EncodeError;
use toolchain::ToolchainError;

/// The reason why a project cannot be created or built.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    #[error(
        "`{}` already exists and is not empty; choose another name, or another folder with --path",
        .0.display()
    )]
    Occupied(PathBuf),
    #[error("there is no template for a {kind} in {language}; choose one of {others}")]
    NoTemplate { kind: &'static str, language: &'static str, others: String },
    #[error("cannot {operation} `{}`: {cause}", .path.display())]
    System { operation: &'static str, path: PathBuf, cause: std::io::Error },
    #[error("`{}` is not a plugin project: {expected}", .folder.display())]
    NoProject { folder: PathBuf, expected: String },
    #[error("`{}`: {mistake}", .file.display())]
    Project { file: PathBuf, mistake: String },
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Toolchain(#[from] ToolchainError),
    #[error("{tool} failed ({how}); see its output above")]
    Tool { tool: &'static str, how: String },
    #[error("{tool} did not write `{}`", .path.display())]
    Nothing { tool: &'static str, path: PathBuf },
    #[error("cannot generate bindings from `{}`: {mistake}", .folder.display())]
    Bindings { folder: PathBuf, mistake: String },
    #[error(
        "`{name}` was compiled, but is not a plugin: it exports nothing of runner:plugin; in Rust, end lib.rs with \
         `runner_plugin::export_backend!(TYPE)`, or the macro of its kind; elsewhere, compile it with bindings of \
         the interface"
    )]
    NoPlugin { name: String },
    #[error("`{name}` was compiled, but cannot be turned into a component: {cause}")]
    Encode { name: String, cause: EncodeError },
}

impl AuthorError {
    pub(super) fn system(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |cause| AuthorError::System { operation, path, cause }
    }
}
