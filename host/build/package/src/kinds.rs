//! The kinds of packages. Each has a module that names its contents. Formulas are made of archives,
//! not of a program.

pub mod archive;
pub mod deb;
pub mod formula;
pub mod image;
pub mod npm;
pub mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};

use crate::product::Product;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Archive,
    Wheel,
    /// A package for Debian and Ubuntu.
    Deb,
    /// Packages for npm.
    Npm,
    Image,
}

impl Kind {
    /// Every kind, in the order in which they are made.
    pub const ALL: [Kind; 5] = [Kind::Archive, Kind::Wheel, Kind::Deb, Kind::Npm, Kind::Image];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Archive => "archive",
            Kind::Wheel => "wheel",
            Kind::Deb => "deb",
            Kind::Npm => "npm",
            Kind::Image => "image",
        }
    }

    /// Makes the packages of this kind, and writes them into a folder.
    ///
    /// # Errors
    /// If the product lacks a file that the kind needs, or the folder cannot be written.
    pub fn make(self, product: &Product, folder: &Path) -> Result<Vec<PathBuf>> {
        let files = match self {
            Kind::Archive => archive::make(product)?,
            Kind::Wheel => wheel::make(product)?,
            Kind::Deb => deb::make(product)?,
            Kind::Npm => npm::make(product)?,
            Kind::Image => image::make(product)?,
        };
        write(files, folder)
    }
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match Kind::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => Ok(kind),
            None => bail!(
                "no kind of package `{name}`; expected all, formula, {}",
                Kind::ALL.map(Kind::name).join(", ")
            ),
        }
    }
}

/// A package: its file name and its bytes.
pub type Package = (String, Vec<u8>);

fn write(packages: Vec<Package>, folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let write = |(name, bytes): Package| {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    };
    packages.into_iter().map(write).collect()
}
