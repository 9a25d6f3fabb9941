//! Failures of the command line with several places: each has its sentence and its exit code once.
//! An error of one place carries its message to [`Failure`] itself.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::failure::{Exit, Failure};
use runs::folder::FolderError;

/// A failure of the command line.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("--chart {0} only works with --format svg or --format png")]
    Chart(String),
    /// Neither scenarios nor flags name a workload.
    #[error(
        "nothing to {to}: name a scenario (such as scenarios/quickstart.toml), or describe the run with flags (--backend and --dataset-name){otherwise}"
    )]
    Nothing { to: &'static str, otherwise: &'static str },
    #[error(
        "{count} {of}s were named, but {parts} do not say which {of} they belong to; give one {} at a time",
        of.to_uppercase()
    )]
    Several { count: usize, of: &'static str, parts: &'static str },
    #[error("`{0}` is the preset of a {1}: use `runner {1} --preset {0}`")]
    PresetOf(String, &'static str),
    #[error("cannot read {noun}`{}`: {cause}", path.display())]
    CannotRead {
        /// A noun before the path, with a space, where it is needed.
        noun: &'static str,
        path: PathBuf,
        cause: String,
    },
    #[error("cannot write `{}`: {cause}{advice}", path.display())]
    CannotWrite { path: PathBuf, cause: String, advice: String },
    #[error("cannot resume `{}`: {cause}; name {instead}", path.display())]
    CannotResume { path: PathBuf, cause: String, instead: String },
    #[error("{0}; give a writable folder with --output-dir")]
    NoFolder(FolderError),
    #[error(
        "no sample was answered in both `{}` and `{}`; compare runs of one dataset with one seed",
        run.display(),
        baseline.display()
    )]
    NothingInCommon { run: PathBuf, baseline: PathBuf },
    #[error("`{}` has no answer to judge: no measured request was answered", run.display())]
    NoAnswer { run: PathBuf },
    #[error("{count} answers could not be scored; the first error: {first}")]
    Unscored { count: u64, first: String },
    /// An operation that fails only through a bug or the system.
    #[error("cannot {to}: {cause}")]
    Cannot { to: &'static str, cause: String },
}

impl CliError {
    pub(super) fn read<E: Display>(noun: &'static str, path: &Path) -> impl Fn(E) -> Self {
        move |cause| CliError::CannotRead { noun, path: path.to_owned(), cause: cause.to_string() }
    }

    pub(super) fn write<E: Display>(path: &Path, advice: &str) -> impl Fn(E) -> Self {
        move |cause| CliError::CannotWrite {
            path: path.to_owned(),
            cause: cause.to_string(),
            advice: advice.to_owned(),
        }
    }

    pub(super) fn cannot<E: Display>(to: &'static str) -> impl Fn(E) -> Self {
        move |cause| CliError::Cannot { to, cause: format!("{cause:#}") }
    }

    fn exit(&self) -> Exit {
        match self {
            CliError::Chart(_)
            | CliError::Nothing { .. }
            | CliError::Several { .. }
            | CliError::PresetOf(..) => Exit::CommandLine,
            CliError::CannotRead { .. }
            | CliError::CannotWrite { .. }
            | CliError::CannotResume { .. }
            | CliError::NoFolder(_)
            | CliError::NothingInCommon { .. }
            | CliError::NoAnswer { .. } => Exit::Input,
            CliError::Unscored { .. } => Exit::Plugin,
            CliError::Cannot { .. } => Exit::Bug,
        }
    }
}

impl From<CliError> for Failure {
    fn from(error: CliError) -> Self {
        Failure::new(error.exit(), error.to_string())
    }
}
