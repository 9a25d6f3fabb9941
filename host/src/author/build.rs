//! From a project to its component, in whatever language.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use componentize::{Target, encode, imports};
use sha2::{Digest, Sha256};

use super::project::{Project, Sources};
use super::tool;
use super::{AuthorError, Language, c, javascript, python, rust};
use crate::plugin::load::hex;

pub use super::tool::{Shell, Talk};

/// A component that was built.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Built {
    /// The plugin's name.
    pub name: String,
    /// In what it is written.
    pub language: Language,
    /// Which compiler, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiler: Option<&'static str>,
    /// Where it lies.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// What it imports.
    pub imports: BTreeSet<String>,
}

/// Compiles a project, and makes a component of what comes of it. `target` is for Rust alone.
///
/// # Errors
/// Where a compiler is missing or fails, and where what it made is no component.
pub fn build(project: &Project, target: Target, shell: Shell<'_>) -> Result<Built, AuthorError> {
    let path = project.component();
    if let Some(folder) = path.parent() {
        tool::make_folder(folder)?;
    }
    let absolute = std::path::absolute(&path).map_err(AuthorError::system("find", &path))?;
    let mut compiler = None;
    let (language, made, tool) = match &project.sources {
        Sources::Crate { module } => {
            let (module, chosen) = rust::compile(project, module, target, shell)?;
            compiler = Some(chosen.toolchain.name());
            (Language::Rust, module, "cargo")
        }
        Sources::Files {
            language,
            kind,
            entry,
        } => {
            let (made, tool) = match language {
                Language::Python => {
                    python::compile(project, *kind, entry, &absolute, shell)?;
                    (absolute, "componentize-py")
                }
                Language::Javascript => {
                    javascript::compile(project, *kind, entry, &absolute, shell)?;
                    (absolute, "componentize-qjs")
                }
                // A crate is what Rust has, and no manifest says otherwise.
                Language::C | Language::Rust => {
                    (c::compile(project, *kind, entry, shell)?, "clang")
                }
            };
            (*language, made, tool)
        }
    };
    let component = read(&made, tool)?;
    let component = encode(&component).map_err(|cause| AuthorError::Encode {
        name: project.name.clone(),
        cause,
    })?;
    std::fs::write(&path, &component).map_err(AuthorError::system("write", &path))?;
    let imports = imports(&component).map_err(|cause| AuthorError::Encode {
        name: project.name.clone(),
        cause,
    })?;
    Ok(Built {
        name: project.name.clone(),
        language,
        compiler,
        path,
        size_bytes: component.len() as u64,
        sha256: hex(&Sha256::digest(&component)),
        imports,
    })
}

fn read(made: &Path, tool: &'static str) -> Result<Vec<u8>, AuthorError> {
    std::fs::read(made).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => AuthorError::Nothing {
            tool,
            path: made.to_owned(),
        },
        _ => AuthorError::system("read", made)(cause),
    })
}
