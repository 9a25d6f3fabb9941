//! From a plugin's name to a compiled component with known kind and version.

use model::hex;

use sha2::{Digest, Sha256};
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::compile::{Cached, Contract};
use super::error::PluginError;
use super::locate::{self, Reference};
use super::outline::Outline;
use super::{compile, imports, sandbox};
use model::plugin::{Kind, Limits};

pub use super::compile::Loading;
pub use super::locate::{SearchPath, Shipped};

/// A component that was found, checked and compiled.
#[derive(Clone)]
pub struct Plugin {
    pub name: String,
    /// The place where it was found: a path, or `shipped`.
    pub origin: String,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    pub size: u64,
    pub kind: Kind,
    pub loading: Loading,
    /// The version of the contract that it uses.
    pub contract: Contract,
    pub(super) component: Component,
}

/// Finds, reads and compiles a plugin, under the default limits.
pub fn load(name: &str, search: &SearchPath) -> Result<Plugin, PluginError> {
    load_within(name, search, &Limits::default())
}

/// Finds, reads and compiles a plugin by its name, or its name and digest: `NAME@sha256:HEX`.
pub fn load_within(
    name: &str,
    search: &SearchPath,
    limits: &Limits,
) -> Result<Plugin, PluginError> {
    loaded(name, search, limits, Cached::Used)
}

/// The same, but compiles the plugin in any case; the next process finds it compiled.
pub fn load_anew(name: &str, search: &SearchPath, limits: &Limits) -> Result<Plugin, PluginError> {
    loaded(name, search, limits, Cached::Replaced)
}

fn loaded(
    name: &str,
    search: &SearchPath,
    limits: &Limits,
    cached: Cached,
) -> Result<Plugin, PluginError> {
    let reference = Reference::parse(name)?;
    let name = reference.name;
    let (origin, bytes) = locate::bytes(name, search, limits)?;
    let digest = hex(&Sha256::digest(&bytes));
    if let Some(pinned) = reference.digest.filter(|pinned| *pinned != digest) {
        return Err(PluginError::OtherDigest {
            plugin: name.to_owned(),
            origin,
            pinned,
            found: digest,
        });
    }
    let size = bytes.len() as u64;
    check_container(name, &bytes)?;
    let outline = Outline::read(&bytes).map_err(|cause| PluginError::not_valid(name, &cause))?;
    if let Some(what) = outline.beyond(limits) {
        let plugin = name.to_owned();
        return Err(PluginError::Excessive { plugin, what });
    }
    let refused = |ours_too| match imports::refused(&outline, ours_too) {
        Some(what) => Err(PluginError::WrongWorld { plugin: name.to_owned(), what }),
        None => Ok(()),
    };
    refused(false)?;
    let engine = sandbox::engine(&outline.imports);
    let (component, loading) = compile::component(name, &digest, bytes, engine, limits, cached)?;
    let (kind, contract) = kind_of(name, &component)?;
    refused(true)?;
    Ok(Plugin { name: name.to_owned(), origin, digest, size, kind, loading, contract, component })
}

/// Distinguishes the ways in which a file can fail to be a component, before compiling it.
fn check_container(name: &str, bytes: &[u8]) -> Result<(), PluginError> {
    let what = match bytes {
        [b'\0', b'a', b's', b'm', 0x01, 0, 0, 0, ..] => {
            "is a core WebAssembly module, not a component; wrap it with `wasm-tools component new`"
        }
        [b'\0', b'a', b's', b'm', _, _, 1, 0, ..] => return Ok(()),
        [] => "is an empty file",
        _ => "is not a WebAssembly file",
    };
    Err(PluginError::NotComponent { plugin: name.to_owned(), what: what.to_owned() })
}

/// Its kind and its version of the contract, from its exports.
fn kind_of(name: &str, component: &Component) -> Result<(Kind, Contract), PluginError> {
    let exports: Vec<String> = component
        .component_type()
        .exports(component.engine())
        .filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentInstance(_)))
        .map(|(name, _)| name.to_owned())
        .collect();
    let wrong = |what: String| PluginError::WrongWorld { plugin: name.to_owned(), what };
    for kind in Kind::ALL {
        let interface = format!("runner:plugin/{}@", kind.name());
        let version = exports.iter().find_map(|name| name.strip_prefix(&interface));
        if let Some(version) = version {
            return Ok((kind, Contract::serving(version).map_err(wrong)?));
        }
    }
    Err(wrong(format!(
        "is a component, but not a runner plugin: it exports {}, but must export runner:plugin/dataset, backend or scorer@{}",
        if exports.is_empty() { "no interface".to_owned() } else { exports.join(", ") },
        Contract::NEWEST.version()
    )))
}
