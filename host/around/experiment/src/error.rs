//! Reasons why a lab cannot begin or go on.

use std::io;
use std::path::{Path, PathBuf};

use lab::journal::Ending;
use session::Faults;

/// The reason why a lab cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Mistakes in the lab file, in a scenario, or in what the lab sets in one.
    #[error("{}", words(.0))]
    Faults(Faults),
    /// Two scenarios cannot be told apart.
    #[error("two scenarios of the lab are called `{0}`; give them different names")]
    SameName(String),
    /// The lab asks for a scenario that it does not have: a bug.
    #[error("there is no scenario `{0}`")]
    NoScenario(String),
    /// The earlier figures cannot be used.
    #[error("`page.previous` = \"{name}\": {why}")]
    Previous {
        /// Their name in the lab file.
        name: String,
        /// The reason.
        why: String,
    },
    /// The folder is not a lab's.
    #[error(
        "cannot read `{}`: {why}; run the lab first, or name its folder with --resume",
        .path.display()
    )]
    NoLab {
        /// The file that says what the lab is.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file or a folder of the lab.
    #[error("cannot {does} `{}`: {cause}", .path.display())]
    File {
        /// The attempt, as a verb.
        does: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// Another process conducts the lab of this folder.
    #[error(
        "another `runner lab` works in `{}`; wait until it is done, or choose another --output-dir",
        .0.display()
    )]
    Taken(PathBuf),
    /// The journal is damaged, or of another version.
    #[error("`{}` cannot be read: {why}; choose another --output-dir to begin anew", .path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// What happened cannot be noted.
    #[error("cannot write the lab's journal: {0}; free some space, and go on with --resume")]
    Unwritten(io::Error),
    /// Engines that were left behind cannot be looked for.
    #[error(
        "the folder of running engines `{}` is not used: {cause}; name a folder of your own with --cache-dir",
        .path.display()
    )]
    Markers {
        /// The folder of the markers.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
    /// The machine cannot start an engine.
    #[error("{}: {why}; mend that, and run the same command to go on", .class.words())]
    Machine {
        /// The way in which the engine ended.
        class: Ending,
        /// The reason.
        why: String,
    },
    /// The system gave no runtime to ask engines on.
    #[error("no runtime: {0}")]
    Runtime(io::Error),
}

impl Error {
    /// The error of a file or folder that could not be created, opened, read or written.
    pub(crate) fn file(does: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Error::File { does, path, cause }
    }
}

impl From<Faults> for Error {
    fn from(faults: Faults) -> Self {
        Error::Faults(faults)
    }
}

/// Faults, in a line.
pub(crate) fn words(faults: &Faults) -> String {
    let problems = faults.scenario.iter().map(ToString::to_string);
    let errors = faults.plugins.iter().map(ToString::to_string);
    problems.chain(errors).collect::<Vec<_>>().join("; ")
}
