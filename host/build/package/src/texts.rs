//! The texts that come from the program itself: its man pages, and its completions for shells.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::COMMAND;
use crate::project::read;

/// A shell, and the file name that its completions have everywhere.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "runner.bash"),
    ("elvish", "runner.elv"),
    ("fish", "runner.fish"),
    ("powershell", "_runner.ps1"),
    ("zsh", "_runner"),
];

/// What a program says about itself.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Its version.
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
    /// If it does not run, or does not have what packages need.
    pub fn of(program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        said(program, &["man", "--output"], Some(folder.path()))?;
        let mut man = BTreeMap::new();
        for entry in fs::read_dir(folder.path())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            ensure!(name.ends_with(".1"), "`man` wrote {name}: expected NAME.1");
            man.insert(name, read(&entry.path())?);
        }
        ensure!(!man.is_empty(), "`man` wrote no page");
        let mut texts = Texts::without_man(program)?;
        texts.man = man;
        Ok(texts)
    }

    /// The same without man pages.
    ///
    /// # Errors
    /// If the program does not run, or does not have completions.
    pub fn without_man(program: &Path) -> Result<Self> {
        let version = String::from_utf8(said(program, &["--version"], None)?)?;
        let version = version.trim().strip_prefix(COMMAND).map(str::trim);
        let mut texts = Texts {
            version: version.context("it is no runner")?.to_owned(),
            ..Texts::default()
        };
        for (shell, _) in SHELLS {
            let script = said(program, &["completions", shell], None)?;
            texts.completions.insert(shell, script);
        }
        Ok(texts)
    }

    /// Completions, by the file name that they have where shells do not decide it.
    pub(crate) fn completion_files(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        SHELLS.iter().filter_map(|(shell, file)| {
            let script = self.completions.get(shell)?;
            Some((*file, script.as_slice()))
        })
    }
}

/// Runs the program, and returns what it prints.
fn said(program: &Path, words: &[&str], last: Option<&Path>) -> Result<Vec<u8>> {
    let asked = || format!("`{} {}`", program.display(), words.join(" "));
    let output = Command::new(program)
        .args(words)
        .args(last)
        .output()
        .with_context(|| {
            format!(
                "{} does not start; for another machine's program, name one of this machine with --texts-from",
                asked()
            )
        })?;
    ensure!(
        output.status.success(),
        "{}: {}",
        asked(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}
