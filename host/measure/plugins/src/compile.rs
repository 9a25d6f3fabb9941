//! From a component's bytes to machine code: from a cache, or compiled within a time limit.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::effort::{Effort, Fault};
use super::error::PluginError;
use super::sandbox;
use cache::{Cache, Kind, Lookup};
use model::clock;
use model::plugin::Limits;

/// The stack of each compiling thread, in bytes: deeply nested code needs more than the default.
const STACK: usize = 16 << 20;

/// Facts about how a component was compiled that its user should know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loading {
    /// The time that compiling took; absent if it had been compiled before.
    pub compiled_in: Option<Duration>,
    /// True if the next process will find it compiled.
    pub kept: bool,
    pub warnings: Vec<String>,
}

/// The fate of a compiled plugin from an earlier process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cached {
    Used,
    Replaced,
}

/// A component as machine code, compiled once per process, and facts about its compilation.
pub(super) fn component(
    name: &str,
    digest: &str,
    bytes: Vec<u8>,
    engine: &'static Engine,
    limits: &Limits,
    cached: Cached,
) -> Result<(Component, Loading), PluginError> {
    static COMPILED: Mutex<BTreeMap<String, Component>> = Mutex::new(BTreeMap::new());
    let compiled = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut loading = Loading::default();
    let known = compiled().get(digest).cloned();
    if let Some(component) = known {
        return Ok((component, loading));
    }
    let artifacts = Artifacts::opened().unwrap_or_else(|fault| {
        loading.warnings.push(fault);
        None
    });
    let earlier = artifacts.as_ref().filter(|_| cached == Cached::Used);
    let found = earlier.and_then(|own| own.find(digest, engine).transpose());
    let component = match found {
        Some(Ok(component)) => {
            loading.kept = true;
            component
        }
        found => {
            if let Some(Err(what)) = found {
                loading.warnings.push(format!("plugin `{name}` was recompiled: {what}"));
            }
            let began = clock::since_process_began();
            let effort = Effort::estimate(&bytes).map_err(|fault| match fault {
                Fault::Malformed(cause) => PluginError::not_valid(name, &cause),
                Fault::Beyond(what) => PluginError::Excessive { plugin: name.to_owned(), what },
            })?;
            let limit = Duration::from_millis(limits.compile_ms);
            let component = within(name, bytes, engine, &effort, limit)?;
            let took = clock::since_process_began().since(began);
            loading.compiled_in = Some(took.into());
            loading.kept = artifacts.is_some_and(|own| own.put(digest, &component).is_ok());
            component
        }
    };
    compiled().insert(digest.to_owned(), component.clone());
    Ok((component, loading))
}

/// Compiles on separate threads, as many as there is memory for. A compiler cannot be stopped: one
/// that takes too long is abandoned.
fn within(
    name: &str,
    bytes: Vec<u8>,
    engine: &'static Engine,
    effort: &Effort,
    limit: Duration,
) -> Result<Component, PluginError> {
    let (done, compiled) = mpsc::sync_channel(1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    rayon::ThreadPoolBuilder::new()
        .thread_name(|_| "compiler".into())
        .num_threads(effort.threads(cores))
        .stack_size(STACK)
        // A panic of the compiler drops the channel's end, which is an error below.
        .panic_handler(|_| {})
        .build()
        .map_err(|cause| PluginError::Excessive {
            plugin: name.to_owned(),
            what: format!(
                "the system does not start the threads that compile it ({cause}); free memory, or raise the limit on memory or processes (ulimit)"
            ),
        })?
        .spawn(move || {
            let _ = done.send(Component::new(engine, bytes));
        });
    match compiled.recv_timeout(limit) {
        Ok(Ok(component)) => Ok(component),
        Ok(Err(cause)) => Err(PluginError::not_valid(name, &cause.root_cause().to_string())),
        Err(RecvTimeoutError::Timeout) => Err(PluginError::Excessive {
            plugin: name.to_owned(),
            what: format!(
                "compiling it takes longer than the {} s allowed (raise `compile` under [sandbox] if you trust it)",
                limit.as_secs_f64()
            ),
        }),
        Err(RecvTimeoutError::Disconnected) => {
            Err(PluginError::not_valid(name, "the compiler gave up on it"))
        }
    }
}

// Compiled plugins between processes: compiling takes a tenth of a second or more, reading a
// compiled plugin a few milliseconds. The crate `cache` owns the folder.

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

    /// Looks for a component by the SHA-256 of its file, for the engine that it needs.
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

/// The facts that decide whether compiled code fits the engine of most plugins.
fn engines() -> [u8; 32] {
    static ENGINES: OnceLock<[u8; 32]> = OnceLock::new();
    *ENGINES.get_or_init(|| {
        let mut sum = Sum(Sha256::new());
        let engine = sandbox::plain_engine();
        engine.precompile_compatibility_hash().hash(&mut sum);
        sum.0.finalize().into()
    })
}

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

// The supported versions of the contract, in `wit/` and `wit/frozen`. Within one major version the
// contract only grows, so this version serves every older one.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// 1.0.0, in `wit/`.
    V1,
}

impl Contract {
    /// The one that `wit/` holds.
    pub const NEWEST: Contract = Contract::V1;
    /// All of them, oldest first: the newest of each first number.
    pub const ALL: [Contract; 1] = [Contract::V1];

    pub fn version(self) -> &'static str {
        match self {
            Contract::V1 => "1.0.0",
        }
    }

    /// The contract that serves a component built for a version: the same, or a later one with the
    /// same first number. Else the message names the side to update.
    pub fn serving(version: &str) -> Result<Contract, String> {
        let key = key(version);
        let served = Contract::ALL.into_iter().find(|contract| {
            let own = self::key(contract.version());
            key.len() == own.len() && key[0] == own[0] && key <= own
        });
        if let Some(contract) = served {
            return Ok(contract);
        }
        let spoken: Vec<&str> = Contract::ALL.iter().map(|own| own.version()).collect();
        let spoken = match spoken.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => spoken.concat(),
        };
        Err(if key > self::key(Contract::NEWEST.version()) {
            format!(
                "was built for runner:plugin {version}, but this runner supports {spoken}; update the runner"
            )
        } else {
            format!(
                "was built for runner:plugin {version}, but this runner supports {spoken}; rebuild it with `runner plugin build`, or ask its author for a build against {}",
                Contract::NEWEST.version()
            )
        })
    }
}

fn key(version: &str) -> Vec<u64> {
    version.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
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

    #[test]
    fn error_names_the_side_to_update() {
        for newer in ["1.0.1", "1.1.0", "2.0.0"] {
            let error = Contract::serving(newer).unwrap_err();
            assert!(error.ends_with("update the runner"), "{error}");
            assert!(error.contains(newer) && error.contains("supports 1.0.0"), "{error}");
        }
        for older in ["0.0.9", "0.3.0", "x"] {
            let error = Contract::serving(older).unwrap_err();
            assert!(
                error.ends_with(
                    "rebuild it with `runner plugin build`, or ask its author for a build against 1.0.0"
                ),
                "{error}"
            );
        }
    }
}
