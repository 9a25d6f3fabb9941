//! Looking at a plugin without a run: what a file imports, what it says of itself, and what an instance of it
//! takes.
//!
//! It reads no clock: whoever times the making of instances is told when one begins and when it is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::backend::Backend;
use super::dataset::Dataset;
use super::error::PluginError;
use super::imports::{self, Import};
use super::instance::{Configured, Info, World};
use super::load::{Plugin, SearchPath};
use super::locate::{self, Reference};
use super::outline::Outline;
use super::sandbox::{Grants, LogBook};
use super::scorer::Scorer;
use model::hex;
use model::plugin::Kind;
use model::plugin::Limits;
use tokenizer::Tokenizer;

/// How many instances are made to see what making one takes.
const INSTANCES: usize = 9;

/// A file before it is compiled.
#[derive(Clone, Debug)]
pub struct Outside {
    /// Where it was found: a path, or `shipped`.
    pub origin: String,
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 of it, in hexadecimal.
    pub digest: String,
    /// What it imports; absent where it is no component, or cannot be read.
    pub imports: Option<Vec<Import>>,
}

/// An instance that has done nothing but to say what it is.
#[derive(Clone, Debug)]
pub struct AtRest {
    /// What it says of itself.
    pub info: Info,
    /// Its linear memory, in bytes.
    pub memory_bytes: u64,
}

/// When an instance is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It is about to be made.
    Before,
    /// It is there, ready for its first call.
    After,
}

/// Reads a file without compiling it.
///
/// # Errors
/// Where it is not found or not readable.
pub fn outside(asked: &str, search: &SearchPath) -> Result<Outside, PluginError> {
    let name = Reference::parse(asked)?.name;
    let (origin, bytes) = locate::bytes(name, search, &Limits::default())?;
    let outline = (bytes.get(6) == Some(&1)).then(|| Outline::read(&bytes).ok());
    Ok(Outside {
        origin,
        size: bytes.len() as u64,
        digest: hex(&Sha256::digest(&bytes)),
        imports: outline.flatten().map(|outline| imports::of(&outline)),
    })
}

/// What a plugin says of itself.
///
/// # Errors
/// Where it cannot be instantiated or traps.
pub fn describe(plugin: &Plugin) -> Result<Info, PluginError> {
    let grants = grants();
    let plugin = plugin.clone();
    let none = &serde_json::json!({});
    match plugin.kind {
        Kind::Backend => Backend::new(plugin, none, grants)?.describe(),
        Kind::Dataset => Dataset::new(plugin, none, grants)?.describe(),
        Kind::Scorer => Scorer::new(plugin, none, grants)?.describe(),
    }
}

/// Makes instances of a plugin, telling when, and says what one of them holds when it has described itself.
///
/// # Errors
/// Where it cannot be instantiated or traps.
pub fn at_rest(plugin: &Plugin, tell: &mut dyn FnMut(Moment)) -> Result<AtRest, PluginError> {
    let grants = grants();
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
    Ok(AtRest {
        info,
        memory_bytes: live.store.data().memory_bytes(),
    })
}

/// The limits of a run that says nothing of them, no files, and a tokenizer of bytes.
fn grants() -> Grants {
    Grants {
        limits: Limits::default(),
        log: LogBook::default(),
        files: Arc::new(BTreeMap::new()),
        tokenizer: Arc::new(Tokenizer::bytes()),
        seed: 0,
    }
}
