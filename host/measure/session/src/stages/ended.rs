//! Reasons why a run did not begin, or has no result.

use plugins::PluginError;
use runs::folder::FolderError;
use scenario::plan::Plan;

use crate::parts::RunError;
use crate::telemetry::NoDevices;

/// The most files that an error names: a folder may have thousands.
const MOST_FILES: usize = 5;

/// The reason why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Create(FolderError),
    #[error(transparent)]
    Write(FolderError),
    #[error(transparent)]
    Devices(#[from] NoDevices),
}

/// The reason why a run that began has no result.
#[derive(Debug, thiserror::Error)]
pub enum NotMeasured {
    #[error(transparent)]
    Ended(RunError),
    /// The dataset refused its input. A dataset knows its files by the scenario's names for them,
    /// the user by their paths.
    #[error("{why} ({})", .files.join(", "))]
    Input { why: RunError, files: Vec<String> },
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// True if the dataset refused its input before it gave a sample.
pub(super) fn is_no_sample(why: &RunError) -> bool {
    matches!(why, RunError::NoSample(error) if matches!(**error, PluginError::Input { .. }))
}

/// Returns the error for a run that ended before its first record.
pub(super) fn unbegun(why: RunError, plan: &Plan) -> NotMeasured {
    let is_input = matches!(&why, RunError::Plugin(PluginError::Input { .. }));
    if !is_input && !is_no_sample(&why) {
        return NotMeasured::Ended(why);
    }
    let files = plan.dataset.files.iter();
    let further = files.len().saturating_sub(MOST_FILES);
    let files = files
        .take(MOST_FILES)
        .map(|(name, file)| format!("`{name}` is {}", file.path.display()))
        .chain((further > 0).then(|| format!("and {further} more")))
        .collect();
    NotMeasured::Input { why, files }
}
