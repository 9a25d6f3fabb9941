//! Turns a compiler's output into a component: core modules are wrapped, components are kept
//! unchanged.

use std::collections::BTreeSet;

use wasmparser::{Encoding, Parser, Payload};
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::{Resolve, WorldId, WorldKey};

/// The module that older toolchains import WASI from.
const OLD_WASI: &str = "wasi_snapshot_preview1";

/// The reason why a file cannot be turned into a component.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// It is not WebAssembly.
    #[error("it is not a WebAssembly file: {0}")]
    NotWasm(String),
    /// It imports WASI 0.1, the version before components, which needs an adapter.
    #[error(
        "the module imports `{import}` of `wasi_snapshot_preview1`, which plugins cannot use: compile for \
         wasm32-unknown-unknown (or wasm32-wasip2), and remove code that uses files, clocks, random numbers or \
         environment variables"
    )]
    OldWasi {
        /// The first function that it imports from there.
        import: String,
    },
    #[error("the module cannot be turned into a component: {0}")]
    Refused(String),
}

/// Turns a compiler's output into a component. A component is returned unchanged.
///
/// # Errors
/// If it is not WebAssembly, needs an adapter, or does not contain the types of a world.
pub fn encode(module: &[u8]) -> Result<Vec<u8>, EncodeError> {
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(|error| EncodeError::NotWasm(error.to_string()))? {
            Payload::Version { encoding: Encoding::Component, .. } => return Ok(module.to_vec()),
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.map_err(|error| EncodeError::NotWasm(error.to_string()))?;
                    if import.module == OLD_WASI {
                        return Err(EncodeError::OldWasi { import: import.name.to_owned() });
                    }
                }
                break;
            }
            _ => {}
        }
    }
    let encoded = ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| EncodeError::Refused(format!("{error:#}")))
}

/// The interfaces and functions that a component imports, as `package/interface@version`.
///
/// # Errors
/// If it is not a component.
pub fn imports(component: &[u8]) -> Result<BTreeSet<String>, EncodeError> {
    let (resolve, world) = decoded(component)?;
    Ok(names(&resolve, resolve.worlds[world].imports.keys()))
}

/// The interfaces and functions that a component exports, as `package/interface@version`.
///
/// # Errors
/// If it is not a component.
pub fn exports(component: &[u8]) -> Result<BTreeSet<String>, EncodeError> {
    let (resolve, world) = decoded(component)?;
    Ok(names(&resolve, resolve.worlds[world].exports.keys()))
}

fn names<'k>(resolve: &Resolve, keys: impl Iterator<Item = &'k WorldKey>) -> BTreeSet<String> {
    keys.map(|key| resolve.name_world_key(key)).collect()
}

fn decoded(component: &[u8]) -> Result<(Resolve, WorldId), EncodeError> {
    let decoded = wit_component::decode(component)
        .map_err(|error| EncodeError::Refused(format!("{error:#}")))?;
    match decoded {
        DecodedWasm::Component(resolve, world) => Ok((resolve, world)),
        DecodedWasm::WitPackage(..) => Err(EncodeError::Refused("it is a WIT package".to_owned())),
    }
}
