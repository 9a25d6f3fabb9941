//! The reasons why a process takes no part in a fleet's run, or its part ends without a result.

use std::io;
use std::path::{Path, PathBuf};

use crate::link::{BindError, JoinError, Refusal};
use runs::folder::FolderError;
use runs::record::RecordError;
use session::parts::RunError;
use session::{BeginError, Faults};

/// The reason why there is no run, or no part of it.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("cannot {operation}: {cause}")]
    System {
        /// The request, as a verb with its object.
        operation: String,
        cause: io::Error,
    },
    #[error("cannot make the folder `{path}`: {cause}; give a writable one with --output-dir")]
    Folder { path: PathBuf, cause: io::Error },
    /// Rank 0 cannot listen.
    #[error(transparent)]
    Listen(#[from] BindError),
    #[error("cannot write the plan: {0}")]
    Plan(#[from] serde_json::Error),
    /// Processes are in the way of the run.
    #[error(transparent)]
    Refused(Refusal),
    /// Somebody interrupted this process before the run began.
    #[error(transparent)]
    Interrupted(Refusal),
    /// Rank 0 cannot be reached, or does not take this process.
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("{why}")]
    NotHandedOver {
        /// The end of rank 0.
        why: JoinError,
        /// The folder with the measurements of this process, if there are any.
        kept: Option<PathBuf>,
    },
    #[error(
        "rank 0 gave `{0}` as the time when the run began; expected a time such as 2026-01-02T03:04:05Z"
    )]
    NoTime(String),
    /// The scenario cannot be resolved.
    #[error("{0}")]
    Faults(Faults),
    /// The named folders are not a fleet's run and its lost parts, or cannot be brought together;
    /// the text is the whole message.
    #[error("{0}")]
    Merge(String),
    /// The run's folder cannot be made.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The run, or this process's part of it, ended early.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The records cannot be brought together.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// A file of the run, or of a part of it, cannot be read or written.
    #[error(transparent)]
    Keep(#[from] FolderError),
}

/// Wraps the system's error for this operation.
pub(super) fn unable(operation: impl Into<String>) -> impl FnOnce(io::Error) -> FleetError {
    let operation = operation.into();
    move |cause| FleetError::System { operation, cause }
}

/// Makes a folder that only this user can read, with its parents.
pub(super) fn make(path: &Path) -> Result<(), FleetError> {
    model::private::folder(path)
        .map_err(|cause| FleetError::Folder { path: path.to_owned(), cause })
}
