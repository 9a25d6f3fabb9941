//! From a plugin's name as the user gives it to a compiled component whose kind and
//! version are known.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::contract::Contract;
use super::error::PluginError;
use super::sandbox;
use crate::shipped;

/// What a plugin does.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Makes samples.
    Dataset,
    /// Writes requests and reads replies.
    Backend,
    /// Judges answers.
    Scorer,
}

impl Kind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Dataset => "dataset",
            Kind::Backend => "backend",
            Kind::Scorer => "scorer",
        }
    }

    /// The folder such plugins ship in.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Dataset => "datasets",
            Kind::Backend => "backends",
            Kind::Scorer => "scorers",
        }
    }

    const ALL: [Kind; 3] = [Kind::Dataset, Kind::Backend, Kind::Scorer];
}

/// A component that was found, checked and compiled.
#[derive(Clone)]
pub struct Plugin {
    /// The name it was asked for by.
    pub asked: String,
    /// Where it was found: a path, or `shipped`.
    pub origin: String,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// What it does.
    pub kind: Kind,
    /// The version of the contract that it is spoken to in.
    pub contract: Contract,
    pub(super) component: Component,
}

/// Where plugins are looked for, beside the path as given.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// The scenario's folder, if it came from a file.
    pub scenario: Option<PathBuf>,
    /// Folders named by the user, in order.
    pub folders: Vec<PathBuf>,
}

/// Finds, reads and compiles a plugin.
///
/// Looked for in this order: the path as given, the scenario's folder, the folders of the
/// search path, the components that ship inside the runner.
///
/// # Errors
/// Where it is not found, not readable, no component, or of another world or version.
pub fn load(asked: &str, search: &SearchPath) -> Result<Plugin, PluginError> {
    let (origin, bytes) = find(asked, search)?;
    let digest = hex(&Sha256::digest(&bytes));
    let size = bytes.len() as u64;
    check_container(asked, &bytes)?;
    let component = compile(asked, &digest, &bytes)?;
    let (kind, contract) = kind_of(asked, &component)?;
    Ok(Plugin {
        asked: asked.to_owned(),
        origin,
        digest,
        size,
        kind,
        contract,
        component,
    })
}

/// Compiles a component, once a process: the scenarios of a folder share their plugins.
fn compile(asked: &str, digest: &str, bytes: &[u8]) -> Result<Component, PluginError> {
    static COMPILED: Mutex<BTreeMap<String, Component>> = Mutex::new(BTreeMap::new());
    let compiled = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = compiled().get(digest).cloned();
    if let Some(component) = known {
        return Ok(component);
    }
    let component =
        Component::new(sandbox::engine(), bytes).map_err(|cause| PluginError::NotComponent {
            plugin: asked.to_owned(),
            what: format!(
                "is not a valid WebAssembly component: {}",
                cause.root_cause()
            ),
        })?;
    compiled().insert(digest.to_owned(), component.clone());
    Ok(component)
}

fn find(asked: &str, search: &SearchPath) -> Result<(String, Vec<u8>), PluginError> {
    let candidates = std::iter::once(PathBuf::from(asked))
        .chain(search.scenario.iter().map(|folder| folder.join(asked)))
        .chain(search.folders.iter().map(|folder| folder.join(asked)));
    for path in candidates {
        match std::fs::read(&path) {
            Ok(bytes) => return Ok((path.display().to_string(), bytes)),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
            Err(cause) => {
                return Err(PluginError::Unreadable {
                    plugin: path.display().to_string(),
                    cause,
                });
            }
        }
    }
    if let Some(bytes) = shipped::plugin(asked) {
        return Ok(("shipped".to_owned(), bytes.to_vec()));
    }
    Err(not_found(asked, search))
}

fn not_found(asked: &str, search: &SearchPath) -> PluginError {
    let folders: Vec<String> = search
        .scenario
        .iter()
        .chain(&search.folders)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| format!("`{}`", folder.display()))
        .collect();
    let searched = if folders.is_empty() {
        String::new()
    } else {
        format!(" or in {}", folders.join(", "))
    };
    let names: Vec<&str> = shipped::plugins().collect();
    let nearest = names
        .iter()
        .map(|name| (strsim::jaro_winkler(name, asked), name))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let nearest = match nearest {
        _ if names.is_empty() => {
            " (this runner was built without plugins; `cargo xtask plugins` builds them)".to_owned()
        }
        Some((closeness, name)) if closeness > 0.8 => format!("; did you mean `{name}`?"),
        _ => format!("; shipped are {}", names.join(", ")),
    };
    PluginError::NotFound {
        asked: asked.to_owned(),
        searched,
        nearest,
    }
}

/// Tells apart the ways a file can be no component, before the compiler is asked.
fn check_container(asked: &str, bytes: &[u8]) -> Result<(), PluginError> {
    let what = match bytes {
        [b'\0', b'a', b's', b'm', 0x01, 0, 0, 0, ..] => {
            "is a core WebAssembly module, not a component; wrap it with `wasm-tools component new`"
        }
        [b'\0', b'a', b's', b'm', _, _, 1, 0, ..] => return Ok(()),
        [] => "is an empty file",
        _ => "is not a WebAssembly file",
    };
    Err(PluginError::NotComponent {
        plugin: asked.to_owned(),
        what: what.to_owned(),
    })
}

/// What it does, and in which version of the contract: it says so by its exports.
fn kind_of(asked: &str, component: &Component) -> Result<(Kind, Contract), PluginError> {
    let engine = sandbox::engine();
    let exports: Vec<String> = component
        .component_type()
        .exports(engine)
        .filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentInstance(_)))
        .map(|(name, _)| name.to_owned())
        .collect();
    let wrong = |what: String| PluginError::WrongWorld {
        plugin: asked.to_owned(),
        what,
    };
    for kind in Kind::ALL {
        let interface = format!("runner:plugin/{}@", kind.name());
        let version = exports
            .iter()
            .find_map(|name| name.strip_prefix(&interface));
        if let Some(version) = version {
            return Ok((kind, Contract::serving(version).map_err(wrong)?));
        }
    }
    Err(wrong(format!(
        "is a component, but no runner plugin: it exports {}, expected one of runner:plugin/dataset, backend or scorer@{}",
        if exports.is_empty() {
            "no interface".to_owned()
        } else {
            exports.join(", ")
        },
        Contract::NEWEST.version()
    )))
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
