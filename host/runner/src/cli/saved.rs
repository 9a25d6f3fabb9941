//! A sweep or a search on disk: one JSON file in its folder, which is written anew after each run,
//! and its page.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::destination::replace;
use super::failure::{Exit, Failure};
use super::flags::Flags;
use super::output::Within;
use super::print::{json, tell};
use super::resume;
use super::scenario::show;
use super::sources::{Text, source_of, text};
use model::hex;
use model::redact::Known;
use report::document::Document;
use report::search::{Saved as File, Searched};
use report::sweep::Sweep;
use report::workload::Workload;
use runs::Reported;
use runs::folder::RunFolder;
use session::Source;

/// The folder for the result, and the form in which it is printed.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Keep {
    #[command(flatten)]
    within: Within,
    /// The scenario that the folder holds.
    #[arg(skip)]
    pub(super) scenario: Option<Text>,
    /// Print the result as JSON instead of text
    #[arg(long, env = "RUNNER_JSON", help_heading = "Result")]
    pub(super) json: bool,
}

impl Keep {
    /// The folder for results.
    pub(super) fn output_dir(&self) -> &Path {
        &self.within.output_dir
    }

    /// The scenario whose load is varied, with its text. Prints the notes on the flags.
    pub(super) fn source(
        &self,
        named: &[String],
        flags: &Flags,
    ) -> Result<(Source, Option<Text>), Failure> {
        let text = match &self.scenario {
            Some(kept) => Some(kept.clone()),
            None => text(named)?,
        };
        let (source, notes) = source_of(text.clone(), flags)?;
        for note in notes {
            tell(format_args!("note: {note}"));
        }
        Ok((source, text))
    }

    /// The folder to resume with its data, or a new folder for a `kind` of study.
    pub(super) fn open<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        resume: Option<&Path>,
        source: &Source,
        words: Vec<String>,
        text: Option<&Text>,
    ) -> Result<(StudyFolder, Option<T>), Failure> {
        if let Some(folder) = resume {
            let saved = StudyFolder::new(folder, kind, source);
            let state = saved.read()?;
            return Ok((saved, Some(state)));
        }
        let model = source.scenario.target.model.as_ref();
        let model = model.map(|model| model.value.as_str());
        let title = source.folder_title(source.title_but_for_load(), model);
        let name = format!("{title} {kind}");
        let folder = RunFolder::create(&self.within.output_dir, &name, &jiff::Timestamp::now())?;
        let marked = Known::new(session::marked_secrets(source));
        resume::keep(folder.path(), words, text, &marked)?;
        Ok((StudyFolder::new(folder.path(), kind, source), None))
    }
}

pub(super) struct StudyFolder {
    folder: PathBuf,
    kind: &'static str,
    scenario: String,
    /// Its title, without the load.
    title: String,
}

impl StudyFolder {
    fn new(folder: &Path, kind: &'static str, source: &Source) -> Self {
        StudyFolder {
            folder: folder.to_owned(),
            kind,
            scenario: digest(source),
            title: source.title_but_for_load(),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.kind))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn tell(&self) {
        tell(format_args!("{}: {}", self.kind, self.folder.display()));
    }

    pub(super) fn interrupted(&self) -> ExitCode {
        tell(format_args!(
            "interrupted; resume with `runner {} --resume {}`",
            self.kind,
            self.folder.display()
        ));
        Exit::Interrupted.into()
    }

    /// Reports that the saved state differs from the flags in this part.
    pub(super) fn differs(&self, other: &str) -> Failure {
        let (kind, folder) = (self.kind, self.folder.display());
        let message =
            format!("the {kind} in `{folder}` has other {other}; give its original flags");
        Failure::command_line(message)
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let path = self.file();
        let instead = format!("a folder that has a {}.json", self.kind);
        let wrong = |cause: &dyn Display| resume::impossible(&path, cause, &instead);
        let text = std::fs::read(&path).map_err(|cause| wrong(&cause))?;
        let file: File<T> = serde_json::from_slice(&text).map_err(|cause| wrong(&cause))?;
        if file.scenario == self.scenario {
            Ok(file.state)
        } else {
            Err(Failure::input(format!(
                "`{}` is of another scenario; give its original scenario and flags",
                self.folder.display()
            )))
        }
    }

    pub(super) fn write<T: Serialize>(&self, state: &T) -> Result<(), Failure> {
        let file = File { scenario: self.scenario.clone(), title: self.title.clone(), state };
        replace(&self.file(), json(&file)?.as_bytes())
    }

    /// Writes the page beside it, as one HTML file. The folders of its runs lie in its folder.
    pub(super) fn draw<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r str>,
        page: impl Fn(&str, Option<&Workload>) -> Document,
    ) -> Result<(), Failure> {
        let workload = titled(&self.folder, runs, &self.title);
        let text = page(&self.title, workload.as_ref()).html();
        replace(&self.folder.join(format!("{}.html", self.kind)), text.as_bytes())
    }
}

fn titled<'r>(
    folder: &Path,
    runs: impl IntoIterator<Item = &'r str>,
    title: &str,
) -> Option<Workload> {
    let first = workload(folder, runs)?;
    Some(Workload { name: title.to_owned(), ..first })
}

/// Returns the workload of the first of these runs that can be read.
pub(super) fn workload<'r>(
    folder: &Path,
    runs: impl IntoIterator<Item = &'r str>,
) -> Option<Workload> {
    Some(Workload::new(&first(folder, runs)?))
}

/// The text block of the first of these runs in a folder that can be read, on one screen.
#[cfg(feature = "studies")]
pub(super) fn block<'r>(folder: &Path, runs: impl IntoIterator<Item = &'r str>) -> Option<String> {
    Some(report::text::short(&first(folder, runs)?.summary))
}

fn first<'r>(folder: &Path, runs: impl IntoIterator<Item = &'r str>) -> Option<Reported> {
    let mut runs = runs.into_iter().filter(|run| !run.is_empty());
    runs.find_map(|run| RunFolder::at(&folder.join(run)).reported().ok())
}

/// The page of the sweep or the search that is saved in a folder; nothing if none is.
pub(super) fn page(folder: &Path) -> Result<Option<Document>, Failure> {
    if let Some(sweep) = file::<Sweep>(&folder.join("sweep.json"))? {
        let title = sweep.title.clone();
        let sweep = sweep.state;
        let workload = titled(folder, sweep.folders(), &title);
        return Ok(Some(report::sweep::page(&sweep, &title, workload.as_ref())));
    }
    let searched = file::<Searched>(&folder.join("search.json"))?;
    Ok(searched.map(|searched| {
        let title = searched.title.clone();
        let searched = searched.state;
        let workload = titled(folder, searched.folders(), &title);
        report::search::page(&searched, &title, workload.as_ref())
    }))
}

fn file<T: DeserializeOwned>(path: &Path) -> Result<Option<File<T>>, Failure> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        // Neither is there where a file is no folder.
        Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(Failure::read("", path)(cause)),
    };
    serde_json::from_slice(&text).map(Some).map_err(Failure::read("", path))
}

fn digest(source: &Source) -> String {
    hex(&Sha256::digest(show::shown(source.clone())))
}
