//! Reasons why a lab cannot begin or continue.

use std::io;
use std::path::{Path, PathBuf};

use lab::journal::Ending;
use session::Faults;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Mistakes in the lab file, in a scenario, or in the lab's keys for one.
    #[error("{0}")]
    Faults(Faults),
    #[error("two scenarios of the lab are called `{0}`; give them different names")]
    SameName(String),
    /// A run of a scenario that the lab does not have: a bug.
    #[error("there is no scenario `{0}`")]
    NoScenario(String),
    /// Another process ordered a run that this process's lab does not have.
    #[error("rank 0 measures another lab; every process of a fleet needs the same lab file")]
    OtherLab,
    /// A file that does not describe a lab, for this reason.
    #[error("cannot read `{}`: {}; run the lab first, or name its folder with --resume", .0.display(), .1)]
    NoLab(PathBuf, String),
    /// An attempt, as a verb, on a file or a folder of the lab.
    #[error("cannot {} `{}`: {}", .0, .1.display(), .2)]
    File(&'static str, PathBuf, io::Error),
    #[error(
        "another `runner lab` works in `{}`; wait until it is done, or choose another --output-dir",
        .0.display()
    )]
    Taken(PathBuf),
    #[error("`{}` cannot be read: {}; choose another --output-dir to start again", .0.display(), .1)]
    Journal(PathBuf, String),
    #[error("cannot write the lab's journal: {0}; free some space, and continue with --resume")]
    Unwritten(io::Error),
    /// A machine that cannot start an engine, for this reason.
    #[error("{}: {}; correct that, and run the same command to continue", .0.label(), .1)]
    Machine(Ending, String),
    #[error("no runtime: {0}")]
    Runtime(io::Error),
}

impl Error {
    /// The error of an attempt on a file or a folder, from its cause.
    pub(crate) fn file(does: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Error::File(does, path, cause)
    }
}

impl From<Faults> for Error {
    fn from(faults: Faults) -> Self {
        Error::Faults(faults)
    }
}
