//! The texts that come from the program itself: its man pages, and its completions for shells.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::COMMAND;
use crate::command::said;
use crate::date::{self, Date};
use crate::project::read;

/// A shell, and the file name that its completions have everywhere.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "runner.bash"),
    ("elvish", "runner.elv"),
    ("fish", "runner.fish"),
    ("powershell", "_runner.ps1"),
    ("zsh", "_runner"),
];

/// A program's texts about itself.
#[derive(Clone, Debug)]
pub struct Texts {
    pub version: String,
    /// Man pages of section 1, by file name, such as `runner.1`.
    pub man: BTreeMap<String, Vec<u8>>,
    /// Completions, by shell.
    pub completions: BTreeMap<&'static str, Vec<u8>>,
}

impl Texts {
    /// Asks a program, which must be one of this machine.
    ///
    /// # Errors
    /// If it does not run, or lacks texts that packages need.
    pub fn of(program: &Path, date: Date) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut pages = Command::new(program);
        pages.args(["man", "--output"]).arg(folder.path());
        said(pages.env(date::VARIABLE, date.seconds().to_string()))
            .context("for another machine's program, name one of this machine with --texts-from")?;
        let mut man = BTreeMap::new();
        for entry in fs::read_dir(folder.path())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            ensure!(name.ends_with(".1"), "`man` wrote {name}: expected NAME.1");
            man.insert(name, read(&entry.path())?);
        }
        ensure!(!man.is_empty(), "`man` wrote no page");
        let version = String::from_utf8(said(Command::new(program).arg("--version"))?)?;
        let version = version.trim().strip_prefix(COMMAND).map(str::trim);
        let version = version.with_context(|| format!("{} is no runner", program.display()))?;
        let mut completions = BTreeMap::new();
        for (shell, _) in SHELLS {
            let script = said(Command::new(program).args(["completions", shell]))?;
            completions.insert(shell, script);
        }
        Ok(Texts { version: version.to_owned(), man, completions })
    }

    /// Completions, by the file name that they have where shells do not decide it.
    pub(crate) fn completion_files(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        SHELLS.iter().filter_map(|(shell, file)| {
            let script = self.completions.get(shell)?;
            Some((*file, script.as_slice()))
        })
    }
}
