//! Compiled plugins between processes: compiling takes a tenth of a second or more, reading a
//! compiled plugin a few milliseconds.
//!
//! This module owns the form of a compiled plugin in the [`cache`], and its fit to the engine. That
//! crate owns the folder, and detects changed files.

use std::hash::{Hash, Hasher};
use std::io;
use std::sync::OnceLock;

use cache::{Cache, Kind, Lookup};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::sandbox;

const COMPILED: Kind = Kind {
    magic: b"runner artifact1",
    name: "a compiled plugin",
    source: "component",
    maker: "compiler",
};

/// The compiled plugins of earlier processes.
pub(super) struct Artifacts(Cache);

impl Artifacts {
    /// Those in the folder that was set, if any and if it can be created.
    pub fn opened() -> Result<Option<Self>, String> {
        Ok(Cache::opened(&COMPILED, engines())?.map(Artifacts))
    }

    /// Looks for a component by the SHA-256 of its file, for the engine that it needs; absent if it
    /// is not there.
    pub fn find(&self, digest: &str, engine: &Engine) -> Result<Option<Component>, String> {
        let bytes = match self.0.find(digest) {
            Lookup::Whole(bytes) => bytes,
            Lookup::Nothing => return Ok(None),
            Lookup::Wrong(what) => return Err(what),
        };
        let wrong = |cause| self.0.wrong(digest, &format!("cannot be loaded: {cause}"));
        deserialize(engine, &bytes).map(Some).map_err(wrong)
    }

    pub fn put(&self, digest: &str, component: &Component) -> io::Result<()> {
        let bytes = component.serialize().map_err(io::Error::other)?;
        self.0.put(digest, &bytes)
    }
}

#[allow(unsafe_code)]
fn deserialize(engine: &Engine, payload: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes must come from `Component::serialize`. This program wrote them, for this
    // component and an engine of this configuration. They are unchanged: the header holds both, and
    // the digest of the bytes. A header can be forged only by someone who may write to the file.
    // That is only this user (`cache` checks it), who can run any machine code anyway.
    unsafe { Component::deserialize(engine, payload) }
}

/// The facts that decide whether compiled code fits an engine: version, settings and processor.
/// They describe the engine of most plugins; wasmtime refuses code that does not fit the other.
fn engines() -> [u8; 32] {
    static ENGINES: OnceLock<[u8; 32]> = OnceLock::new();
    *ENGINES.get_or_init(|| {
        let mut sum = Sum(Sha256::new());
        let engine = sandbox::plain_engine();
        engine.precompile_compatibility_hash().hash(&mut sum);
        sum.0.finalize().into()
    })
}

/// A SHA-256 of hashed values.
struct Sum(Sha256);

impl Hasher for Sum {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Part of the digest; nobody asks for it.
    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::hex;

    /// A component, and the digest it goes by.
    fn made(number: u32) -> (String, Component) {
        let text = format!(
            "(component (core module $m (func (export \"f\") (result i32) i32.const {number})))"
        );
        let bytes = wat::parse_str(text).unwrap();
        let component = Component::new(sandbox::plain_engine(), &bytes).unwrap();
        (hex(&Sha256::digest(&bytes)), component)
    }

    #[test]
    fn foreign_bytes_are_not_loaded_as_a_plugin() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path(), &COMPILED, engines());
        let artifacts = Artifacts(cache.unwrap().unwrap());
        let find = |digest: &str| artifacts.find(digest, sandbox::plain_engine());
        let ((digest, component), (other, _)) = (made(1), made(2));
        assert!(find(&digest).unwrap().is_none());
        artifacts.put(&digest, &component).unwrap();
        assert!(find(&digest).unwrap().is_some());
        assert!(find(&other).unwrap().is_none());

        // wasmtime refuses bytes that are no compiled plugin.
        artifacts.0.put(&other, b"no machine code").unwrap();
        let path = artifacts.0.path(&other).display().to_string();
        let error = find(&other).err().unwrap();
        let began = format!("its cached form {path} cannot be loaded: ");
        assert!(error.starts_with(&began), "{error}");
    }
}
