//! Examines a plugin without a run: imports, description, and the memory of an instance. It reads
//! no clock: a callback tells the caller when the making of an instance begins and ends.

use sha2::{Digest, Sha256};

use super::backend::{self, Backend};
use super::dataset::Dataset;
use super::error::PluginError;
use super::imports::{self, Import};
use super::instance::{Configured, Info, World};
use super::load::{Plugin, SearchPath};
use super::locate::{self, Reference};
use super::outline::Outline;
use super::sandbox::Grants;
use super::scorer::Scorer;
use model::hex;
use model::plugin::{Kind, Limits};

/// The number of instances made to measure the cost of making one.
const INSTANCES: usize = 9;

/// A file before it is compiled.
#[derive(Clone, Debug)]
pub struct Outside {
    /// The place where it was found: a path, or `shipped`.
    pub origin: String,
    pub size: u64,
    /// SHA-256 of it, in hexadecimal.
    pub digest: String,
    /// Its imports; absent if it is not a component, or cannot be read.
    pub imports: Option<Vec<Import>>,
}

/// An instance that has only described itself.
#[derive(Clone, Debug)]
pub struct AtRest {
    pub info: Info,
    pub memory_bytes: u64,
}

/// The moment relative to the making of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    /// It is there, ready for its first call.
    After,
}

/// Reads a file without compiling it.
pub fn outside(reference: &str, search: &SearchPath) -> Result<Outside, PluginError> {
    let name = Reference::parse(reference)?.name;
    let (origin, bytes) = locate::bytes(name, search, &Limits::default())?;
    let outline = (bytes.get(6) == Some(&1)).then(|| Outline::read(&bytes).ok());
    Ok(Outside {
        origin,
        size: bytes.len() as u64,
        digest: hex(&Sha256::digest(&bytes)),
        imports: outline.flatten().map(|outline| imports::list(&outline)),
    })
}

pub fn describe(plugin: &Plugin) -> Result<Info, PluginError> {
    describe_with(plugin, Grants::bare(Limits::default()))
}

pub(super) fn describe_with(plugin: &Plugin, grants: Grants) -> Result<Info, PluginError> {
    let plugin = plugin.clone();
    let none = &serde_json::json!({});
    match plugin.kind {
        Kind::Backend => Backend::new(plugin, none, grants)?.describe(),
        Kind::Dataset => Dataset::new(plugin, none, grants)?.describe(),
        Kind::Scorer => Scorer::new(plugin, none, grants)?.describe(),
    }
}

/// The facts about a backend before a run; absent of others, and if it needs a configuration.
pub fn server(plugin: &Plugin) -> Result<Option<backend::Outside>, PluginError> {
    if plugin.kind != Kind::Backend {
        return Ok(None);
    }
    let grants = Grants::bare(Limits::default());
    let backend = Backend::new(plugin.clone(), &serde_json::json!({}), grants)?;
    match backend.open().and_then(|mut dialect| dialect.outside()) {
        Ok(outside) => Ok(Some(outside)),
        Err(PluginError::Config { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes instances of a plugin, reporting when, and measures the memory of one at rest.
pub fn at_rest(plugin: &Plugin, tell: &mut dyn FnMut(Moment)) -> Result<AtRest, PluginError> {
    let grants = Grants::bare(Limits::default());
    let plugin = plugin.clone();
    let none = &serde_json::json!({});
    match plugin.kind {
        Kind::Backend => rest(&Backend::new(plugin, none, grants)?, tell),
        Kind::Dataset => rest(&Dataset::new(plugin, none, grants)?, tell),
        Kind::Scorer => rest(&Scorer::new(plugin, none, grants)?, tell),
    }
}

fn rest<W: World>(
    plugin: &Configured<W>,
    tell: &mut dyn FnMut(Moment),
) -> Result<AtRest, PluginError> {
    for _ in 1..INSTANCES {
        tell(Moment::Before);
        let live = plugin.instantiate()?;
        tell(Moment::After);
        drop(live);
    }
    let mut live = plugin.instantiate()?;
    let info = plugin.described(&mut live)?;
    Ok(AtRest { info, memory_bytes: live.store.data().memory_bytes() })
}
