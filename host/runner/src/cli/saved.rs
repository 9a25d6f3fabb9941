//! A sweep or a search on disk: one JSON file in its folder, which is written anew after each run.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::failure::{Exit, Failure};
use super::scenario::show;
use model::hex;
use session::Source;

/// What the file holds.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File<T> {
    /// SHA-256 of the scenario with its flags, as `runner scenario show` prints it.
    scenario: String,
    /// How far it is.
    state: T,
}

/// Where it is saved.
pub(super) struct Saved {
    folder: PathBuf,
    file: &'static str,
    scenario: String,
}

impl Saved {
    /// Of this scenario, in that file of a folder.
    pub(super) fn new(folder: &Path, file: &'static str, source: &Source) -> Self {
        Saved {
            folder: folder.to_owned(),
            file,
            scenario: digest(source),
        }
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was saved there.
    ///
    /// # Errors
    /// If the folder holds nothing of the kind, or something of another scenario.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let path = self.folder.join(self.file);
        let wrong = |cause: String| {
            let (path, file) = (path.display(), self.file);
            Failure::new(
                Exit::Input,
                format!("cannot go on with `{path}`: {cause}; name a folder that has a {file}"),
            )
        };
        let text = std::fs::read(&path).map_err(|cause| wrong(cause.to_string()))?;
        let file: File<T> =
            serde_json::from_slice(&text).map_err(|cause| wrong(cause.to_string()))?;
        match file.scenario == self.scenario {
            true => Ok(file.state),
            false => Err(Failure::new(
                Exit::Input,
                format!(
                    "`{}` is of another scenario; give the scenario and the flags it began with",
                    self.folder.display()
                ),
            )),
        }
    }

    /// Writes how far it is, completely or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write<T: Serialize>(&self, state: &T) -> Result<(), Failure> {
        let path = self.folder.join(self.file);
        let cannot = |cause: String| {
            Failure::new(
                Exit::Input,
                format!("cannot write `{}`: {cause}", path.display()),
            )
        };
        let file = File {
            scenario: self.scenario.clone(),
            state,
        };
        let mut text =
            serde_json::to_vec_pretty(&file).map_err(|cause| cannot(cause.to_string()))?;
        text.push(b'\n');
        replace(&path, &text)
    }
}

/// Writes a file completely or not at all.
///
/// # Errors
/// If it cannot be written.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let mut next = path.as_os_str().to_owned();
    next.push(".new");
    let next = Path::new(&next);
    let written = std::fs::File::create(next)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(next, path));
    written.map_err(|cause| {
        Failure::new(
            Exit::Input,
            format!("cannot write `{}`: {cause}", path.display()),
        )
    })
}

fn digest(source: &Source) -> String {
    hex(&Sha256::digest(show::shown(source.clone())))
}
