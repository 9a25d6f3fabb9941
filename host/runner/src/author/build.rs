//! From a project to its component, in any language.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use componentize::{Interfaces, encode, interfaces};
use sha2::{Digest, Sha256};
use toolchain::Target;

use super::project::{Project, Sources};
use super::{AuthorError, Language, c, editor, fresh, javascript, python, rust, tool};
use model::hex;

pub use super::tool::{Shell, ShowOutput};

/// A component that was built.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Component {
    pub name: String,
    /// Its language; absent if only its module was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The compiler, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiler: Option<&'static str>,
    /// True if it was built before, from the same sources.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    pub path: PathBuf,
    pub size_bytes: u64,
    pub sha256: String,
    pub imports: BTreeSet<String>,
}

/// The component of an earlier build of the same sources, in a language whose compiler writes
/// different bytes each time. The compiler puts random numbers and the machine's clock into the
/// component, and no setting changes that.
fn kept(project: &Project, path: &Path) -> Result<Option<Component>, AuthorError> {
    let Sources::Files { language, .. } = &project.sources else { return Ok(None) };
    let differs = matches!(language, Language::Python | Language::Javascript);
    if !differs || !fresh::is_current(project) {
        return Ok(None);
    }
    let component = std::fs::read(path).map_err(AuthorError::system("read", path))?;
    let built = finish(project.name.clone(), &component, path.to_owned())?;
    Ok(Some(Component { language: Some(*language), kept: true, ..built }))
}

/// Compiles a project, and turns the output into a component. `target` applies only to Rust.
pub fn build(
    project: &Project,
    target: Target,
    shell: Shell<'_>,
) -> Result<Component, AuthorError> {
    let path = project.component();
    if let Some(folder) = path.parent() {
        tool::make_folder(folder)?;
    }
    let absolute = tool::absolute(path.clone())?;
    editor::prepare(project, Some(shell))?;
    if let Some(kept) = kept(project, &path)? {
        return Ok(kept);
    }
    let sources = fresh::sources(project);
    let mut compiler = None;
    let (language, made, tool) = match &project.sources {
        Sources::Crate { module } => {
            let (module, chosen) = rust::compile(project, module, target, shell)?;
            compiler = Some(chosen.toolchain.name());
            (Language::Rust, module, "cargo")
        }
        Sources::Files { language, kind, entry } => {
            let (made, tool) = match language {
                Language::Python => {
                    python::compile(project, *kind, entry, &absolute, shell)?;
                    (absolute, "componentize-py")
                }
                Language::Javascript => {
                    javascript::compile(project, *kind, entry, &absolute, shell)?;
                    (absolute, "componentize-qjs")
                }
                // Only Rust has crates; a manifest never names Rust.
                Language::C | Language::Rust => {
                    (c::compile(project, *kind, entry, shell)?, "clang")
                }
            };
            (*language, made, tool)
        }
    };
    let module = read(&made, tool)?;
    let built = finish(project.name.clone(), &module, path)?;
    fresh::record(project, sources, &built.sha256)?;
    Ok(Component { language: Some(language), compiler, ..built })
}

/// Turns a module from another tool into a component. The module must contain the contract, which
/// bindings of `wit-bindgen` embed. A component is left unchanged.
pub fn wrap(module: &Path, output: Option<&Path>) -> Result<Component, AuthorError> {
    let bytes = std::fs::read(module).map_err(AuthorError::system("read", module))?;
    let stem = module.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.strip_suffix(".core").unwrap_or(&stem).to_owned();
    let path = output
        .map_or_else(|| module.with_file_name(format!("{name}.component.wasm")), Path::to_owned);
    finish(name, &bytes, path)
}

fn finish(name: String, module: &[u8], path: PathBuf) -> Result<Component, AuthorError> {
    let refused = |cause| AuthorError::Encode { name: name.clone(), cause };
    let component = encode(module).map_err(refused)?;
    let Interfaces { imports, exports } = interfaces(&component).map_err(refused)?;
    if !exports.iter().any(|name| name.starts_with("runner:plugin/")) {
        return Err(AuthorError::NoPlugin { name });
    }
    tool::write(&path, &component)?;
    Ok(Component {
        name,
        language: None,
        compiler: None,
        kept: false,
        path,
        size_bytes: component.len() as u64,
        sha256: hex(&Sha256::digest(&component)),
        imports,
    })
}

fn read(made: &Path, tool: &'static str) -> Result<Vec<u8>, AuthorError> {
    std::fs::read(made).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => AuthorError::Nothing { tool, path: made.to_owned() },
        _ => AuthorError::system("read", made)(cause),
    })
}
