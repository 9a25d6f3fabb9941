//! From a reference to a plugin, a name with or without a pinned digest, to its bytes. Names are
//! resolved in one place, [`bytes`]: add other sources there.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::PluginError;
use model::plugin::{Kind, Limits};

const PIN: &str = "@sha256:";
const DIGITS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    pub name: &'a str,
    /// The SHA-256 that it must have, in lower-case hexadecimal.
    pub digest: Option<String>,
}

impl<'a> Reference<'a> {
    /// Parses a reference. Fails if the pinned digest is malformed.
    pub fn parse(text: &'a str) -> Result<Self, PluginError> {
        let Some((name, digest)) = text.rsplit_once(PIN) else {
            if let Some((name, digits)) = text.rsplit_once('@')
                && digits.len() == DIGITS
                && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            {
                return Err(PluginError::Pin {
                    plugin: name.to_owned(),
                    what: "lacks `sha256:` before its digits".to_owned(),
                });
            }
            return Ok(Reference { name: text, digest: None });
        };
        let malformed = |what: String| PluginError::Pin { plugin: name.to_owned(), what };
        if let Some(other) = digest.chars().find(|digit| !digit.is_ascii_hexdigit()) {
            return Err(malformed(format!("contains {other:?}, which is not hexadecimal")));
        }
        if digest.len() != DIGITS {
            return Err(malformed(format!("has {}", digest.len())));
        }
        Ok(Reference { name, digest: Some(digest.to_ascii_lowercase()) })
    }
}

/// Components inside the program, by name, with functions that unpack their bytes.
pub type Shipped = &'static [(&'static str, fn() -> Vec<u8>)];

/// The folders in which plugins are searched for, in addition to the path as given.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// The scenario's folder, if it came from a file.
    pub scenario: Option<PathBuf>,
    pub folders: Vec<PathBuf>,
    /// The components that ship inside the program, by name.
    pub shipped: Shipped,
}

/// A name's bytes and their place: as given, by the scenario, in the search path, or shipped.
pub(super) fn bytes(
    name: &str,
    search: &SearchPath,
    limits: &Limits,
) -> Result<(String, Vec<u8>), PluginError> {
    // A folder of plugins need not sort them by kind: `backends/NAME.wasm` is also NAME.wasm in it.
    let flat =
        Kind::ALL.iter().find_map(|kind| name.strip_prefix(kind.folder())?.strip_prefix('/'));
    let folders = search.folders.iter();
    let candidates = std::iter::once(PathBuf::from(name))
        .chain(search.scenario.iter().map(|folder| folder.join(name)))
        .chain(folders.clone().map(|folder| folder.join(name)))
        .chain(flat.iter().flat_map(|flat| folders.clone().map(move |folder| folder.join(flat))));
    for path in candidates {
        match read(&path, limits.component_bytes) {
            Ok(Some(bytes)) => return Ok((path.display().to_string(), bytes)),
            Ok(None) => return Err(too_large(&path, limits.component_bytes)),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) if path.is_dir() => return Err(a_folder(&path)),
            Err(cause) => {
                return Err(PluginError::Unreadable { plugin: path.display().to_string(), cause });
            }
        }
    }
    if let Some((_, unpack)) = search.shipped.iter().find(|(own, _)| *own == name) {
        return Ok(("shipped".to_owned(), unpack()));
    }
    Err(not_found(name, search))
}

/// Reads a file; returns nothing if it is larger than allowed.
fn read(path: &Path, limit: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

fn too_large(path: &Path, limit: u64) -> PluginError {
    PluginError::Excessive {
        plugin: path.display().to_string(),
        what: format!(
            "its file is larger than the {limit} bytes allowed (raise `component` under [sandbox] if you trust it)"
        ),
    }
}

/// A folder where a component is expected: often the project that it is built from.
fn a_folder(path: &Path) -> PluginError {
    let what = match super::case::component(path) {
        Ok(component) => format!("name its component, `{}`", component.display()),
        Err(_) => "name a .wasm file in it, or search it for plugins with --plugin-path".to_owned(),
    };
    PluginError::Folder { plugin: path.display().to_string(), what }
}

fn not_found(wanted: &str, search: &SearchPath) -> PluginError {
    let folders: Vec<String> = search
        .scenario
        .iter()
        .chain(&search.folders)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| format!("`{}`", folder.display()))
        .collect();
    let searched =
        if folders.is_empty() { String::new() } else { format!(" or in {}", folders.join(", ")) };
    let names: Vec<&str> = search.shipped.iter().map(|(name, _)| *name).collect();
    let nearest = names
        .iter()
        .map(|name| {
            // Also `vllm` for `backends/vllm.wasm`.
            let short = name.rsplit('/').next().unwrap_or(name);
            let short = short.strip_suffix(".wasm").unwrap_or(short);
            let closeness = |name| strsim::jaro_winkler(name, wanted);
            (closeness(name).max(closeness(short)), name)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let nearest = match nearest {
        _ if names.is_empty() => {
            " (this runner was built without plugins; `cargo xtask plugins` builds them)".to_owned()
        }
        Some((closeness, name)) if closeness > 0.8 => format!("; did you mean `{name}`?"),
        _ => format!("; shipped plugins: {}", names.join(", ")),
    };
    PluginError::NotFound { name: wanted.to_owned(), searched, nearest }
}
