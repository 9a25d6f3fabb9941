//! From a component's bytes to machine code: from the cache of this process or an earlier one, or
//! compiled within a time limit.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use wasmtime::Engine;
use wasmtime::component::Component;

use super::artifacts::Artifacts;
use super::effort::{Effort, Fault};
use super::error::PluginError;
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
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

/// The fate of a compiled plugin from an earlier process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cached {
    Used,
    Replaced,
}

/// A component as machine code, and facts about its compilation. Each is compiled once per process:
/// the scenarios of a folder share their plugins.
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

/// Compiles on separate threads, as many as there is memory for. A compiler cannot be stopped; one
/// that takes too long is abandoned, and ends with the process.
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
