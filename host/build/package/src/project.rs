//! The project as packages describe it: its version, its licence and the texts at its root.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

/// The facts of the checkout that packages are made from.
#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
    pub version: String,
    /// Its licence, as SPDX writes it.
    pub license: String,
    /// The address of its repository, if it has one: `https://github.com/OWNER/NAME`.
    pub repository: Option<String>,
    pub license_text: Vec<u8>,
    /// `README.md`.
    pub readme: Vec<u8>,
    /// `CHANGELOG.md`.
    pub changelog: Vec<u8>,
}

impl Project {
    /// Reads it from a checkout.
    ///
    /// # Errors
    /// If a file is missing, or the workspace has no version or licence.
    pub fn read(root: &Path) -> Result<Self> {
        let manifest = read_table(&root.join("Cargo.toml"))?;
        let package = |key: &str| {
            let package = manifest.get("workspace")?.get("package")?;
            package.get(key)?.as_str().map(str::to_owned)
        };
        let required = |key| {
            package(key).with_context(|| format!("Cargo.toml has no `workspace.package.{key}`"))
        };
        Ok(Project {
            version: required("version")?,
            license: required("license")?,
            repository: package("repository"),
            license_text: read(&root.join("LICENSE"))?,
            readme: read(&root.join("README.md"))?,
            changelog: read(&root.join("CHANGELOG.md"))?,
            root: root.to_owned(),
        })
    }

    /// The metadata of the Python module in this checkout, if there is one: the table `project` of
    /// its `pyproject.toml`.
    pub(crate) fn python(&self) -> Result<Option<Table>> {
        let path = self.python_folder().join("pyproject.toml");
        if !path.exists() {
            return Ok(None);
        }
        let project = read_table(&path)?.remove("project");
        let Some(Value::Table(project)) = project else {
            anyhow::bail!("{} has no table `project`", path.display());
        };
        Ok(Some(project))
    }

    /// The folder of the Python module.
    pub(crate) fn python_folder(&self) -> PathBuf {
        self.root.join("host/python")
    }
}

/// Reads a file, and says which if it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// Reads a file in TOML.
pub(crate) fn read_table(path: &Path) -> Result<Table> {
    let text = String::from_utf8(read(path)?).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| format!("reading {}", path.display()))
}
