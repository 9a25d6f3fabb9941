//! The program for one target, with all that goes into its packages.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::date::Date;
use crate::elf::Elf;
use crate::notices::notices;
use crate::project::{Project, read};
use crate::target::Target;
use crate::texts::Texts;
use crate::tree::Level;

/// The file of the bill of materials.
pub const SBOM: &str = "runner.cyclonedx.json";
/// The file of the notices.
pub const NOTICES: &str = "THIRD-PARTY.txt";
/// Place of the certificates of authorities in most distributions.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

#[derive(Clone, Debug)]
pub struct Product {
    pub project: Project,
    /// The machine that the program is for.
    pub target: Target,
    pub elf: Elf,
    pub path: PathBuf,
    /// Its bytes.
    pub program: Vec<u8>,
    pub texts: Texts,
    /// The bill of materials, as CycloneDX writes it in JSON; packages without one have no such file.
    pub sbom: Option<Vec<u8>>,
    /// The licences of the code inside; packages without a bill of materials have none.
    pub notices: Option<Vec<u8>>,
    /// The certificates of authorities that go into an image.
    pub certificates: PathBuf,
    /// The date of every file.
    pub date: Date,
    /// Effort of compression.
    pub level: Level,
}

impl Product {
    /// Reads a binary and puts the rest beside it.
    ///
    /// # Errors
    /// If the binary cannot be read, is for another target, or has another version.
    pub fn new(
        project: Project,
        binary: &Path,
        target: Option<&str>,
        texts: Texts,
        date: Date,
    ) -> Result<Self> {
        let program = read(binary)?;
        let elf = Elf::read(&program).with_context(|| binary.display().to_string())?;
        let target = Target::of(&elf, target)?;
        ensure!(
            texts.version == project.version,
            "the program has version {}, and Cargo.toml {}: build it again",
            texts.version,
            project.version
        );
        Ok(Product {
            project,
            target,
            elf,
            path: binary.to_owned(),
            program,
            texts,
            sbom: None,
            notices: None,
            certificates: CERTIFICATES.into(),
            date,
            level: Level::default(),
        })
    }

    /// Adds the bill of materials, and the notices of the packages that it lists.
    ///
    /// # Errors
    /// If a notice cannot be read.
    pub fn with_sbom(mut self, sbom: Vec<u8>) -> Result<Self> {
        self.notices = Some(notices(&self.project.root, &self.target.to_string(), &sbom)?);
        self.sbom = Some(sbom);
        Ok(self)
    }

    /// The documents about the contents, by file name.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let documents = [(SBOM, &self.sbom), (NOTICES, &self.notices)];
        documents.into_iter().filter_map(|(name, bytes)| Some((name, bytes.as_deref()?)))
    }

    /// The name of the archive without its ending, and of the folder in it.
    pub(crate) fn release_name(&self) -> String {
        format!("runner-{}-{}", self.project.version, self.target)
    }
}
