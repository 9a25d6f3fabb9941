//! Turns a compiler's core module into a component.
//!
//! This crate owns the encoding, and lists a component's imports and exports. It does not depend on
//! the kind of plugin and prints nothing. It leaves finding the compiler to `toolchain`. `xtask`
//! runs the binary, because it has no other use for these dependencies; `runner plugin build` calls
//! the library, so that both build in the same way.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use wasmparser::{Encoding, Parser, Payload};
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::WorldKey;

/// The module that older toolchains import WASI from.
const OLD_WASI: &str = "wasi_snapshot_preview1";

/// The reason why a file cannot be turned into a component.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("it is not a WebAssembly file: {0}")]
    NotWasm(String),
    /// It imports WASI 0.1, the version before components, which needs an adapter.
    #[error(
        "the module imports `{import}` of `wasi_snapshot_preview1`, which plugins cannot use: compile for \
         wasm32-unknown-unknown (or wasm32-wasip2), and remove code that uses files, clocks, random numbers or \
         environment variables"
    )]
    OldWasi { import: String },
    #[error("the module cannot be turned into a component: {0}")]
    Refused(String),
}

/// Turns a compiler's output into a component. A component is returned unchanged. Fails if it is
/// not WebAssembly, needs an adapter, or does not contain the types of a world.
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

/// The interfaces and functions of a component, as `package/interface@version`.
#[derive(Debug)]
pub struct Interfaces {
    pub imports: BTreeSet<String>,
    pub exports: BTreeSet<String>,
}

pub fn interfaces(component: &[u8]) -> Result<Interfaces, EncodeError> {
    let decoded = wit_component::decode(component)
        .map_err(|error| EncodeError::Refused(format!("{error:#}")))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(EncodeError::Refused("it is a WIT package".to_owned()));
    };
    let world = &resolve.worlds[world];
    let name = |key: &WorldKey| resolve.name_world_key(key);
    let imports = world.imports.keys().map(name).collect();
    Ok(Interfaces { imports, exports: world.exports.keys().map(name).collect() })
}
