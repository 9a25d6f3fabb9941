//! What the three kinds of plugin have in common once loaded: a store, an instance in it,
//! and the rule that a trap costs the instance, never the run.

use std::marker::PhantomData;

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker, ResourceAny};

use super::bindings::types;
use super::contract::Contract;
use super::error::PluginError;
use super::load::{Kind, Plugin};
use super::sandbox::{self, Grants, Guest, Limits, arm, trapped};

/// The longest text a plugin may say of itself or of an error, in bytes; more is cut.
pub(super) const WORDS: usize = 2_000;

/// A world of `wit/`, as the bindings make it.
pub trait World: Sized {
    /// The kind of its plugins.
    const KIND: Kind;

    /// How long a call may take, in milliseconds.
    fn limit_ms(limits: &Limits) -> u64;

    /// Adds its imports.
    ///
    /// # Errors
    /// Where two imports have one name.
    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()>;

    /// Makes an instance.
    ///
    /// # Errors
    /// Where the component does not fit the world.
    fn instantiate(
        store: &mut Store<Guest>,
        component: InstancePre<Guest>,
        contract: Contract,
    ) -> wasmtime::Result<Self>;

    /// Name, version, summary and configuration schema, as the plugin says them.
    ///
    /// # Errors
    /// Where the plugin traps.
    fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<[String; 4]>;
}

/// A plugin of a kind with its configuration: what instances are made from.
pub struct Configured<W> {
    pub(super) plugin: Plugin,
    pub(super) config: String,
    grants: Grants,
    world: PhantomData<fn() -> W>,
}

impl<W> Clone for Configured<W> {
    fn clone(&self) -> Self {
        Configured {
            plugin: self.plugin.clone(),
            config: self.config.clone(),
            grants: self.grants.clone(),
            world: PhantomData,
        }
    }
}

/// A live instance: the store owns everything the guest holds.
pub(super) struct Live<W> {
    pub store: Store<Guest>,
    pub world: W,
    limit_ms: u64,
}

impl<W: World> Configured<W> {
    /// Takes a loaded plugin with this configuration, a JSON object.
    ///
    /// # Errors
    /// Where the plugin is of another kind.
    pub fn new(
        plugin: Plugin,
        config: &serde_json::Value,
        grants: Grants,
    ) -> Result<Self, PluginError> {
        if plugin.kind != W::KIND {
            return Err(PluginError::WrongKind {
                plugin: plugin.asked,
                found: plugin.kind.name(),
                expected: W::KIND.name(),
                place: format!("[{}]", W::KIND.name()),
            });
        }
        Ok(Configured {
            plugin,
            config: config.to_string(),
            grants,
            world: PhantomData,
        })
    }

    /// The plugin it is made from.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// What the plugin says of itself.
    ///
    /// # Errors
    /// Where it cannot be instantiated or traps.
    pub fn describe(&self) -> Result<Info, PluginError> {
        let mut live = self.instantiate()?;
        let [name, version, summary, schema] =
            live.call("describe", |world, store| world.describe(store))?;
        let config_schema =
            serde_json::from_str(&schema).map_err(|cause| PluginError::Contract {
                plugin: self.plugin.asked.clone(),
                call: "describe",
                what: format!("its configuration schema is no JSON: {cause}"),
            })?;
        Ok(Info {
            name: words(&name),
            version: words(&version),
            summary: words(&summary),
            config_schema,
        })
    }

    /// Makes an instance, ready for its first call.
    pub(super) fn instantiate(&self) -> Result<Live<W>, PluginError> {
        let limit_ms = W::limit_ms(&self.grants.limits);
        let mut linker = Linker::new(sandbox::engine());
        let mut store = sandbox::store(&self.plugin.asked, &self.grants);
        arm(&mut store, limit_ms);
        let world = W::link(&mut linker)
            .and_then(|()| linker.instantiate_pre(&self.plugin.component))
            .and_then(|component| W::instantiate(&mut store, component, self.plugin.contract))
            .map_err(|error| refused(&self.plugin, &error))?;
        Ok(Live {
            store,
            world,
            limit_ms,
        })
    }
}

impl<W> Live<W> {
    /// Makes one call under the limits of the run.
    pub(super) fn call<T>(
        &mut self,
        call: &'static str,
        make: impl FnOnce(&W, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> Result<T, PluginError> {
        arm(&mut self.store, self.limit_ms);
        make(&self.world, &mut self.store)
            .map_err(|error| trapped(&self.store, call, self.limit_ms, &error))
    }
}

/// A world whose instances are opened with their configuration alone, and so at any time again.
pub trait Reopen: World {
    /// Opens the resource that the other calls are made on.
    ///
    /// # Errors
    /// Where the plugin traps; within, where it refuses the configuration.
    fn open(
        &self,
        store: &mut Store<Guest>,
        from: &Configured<Self>,
    ) -> wasmtime::Result<Result<ResourceAny, types::Error>>;
}

/// An opened instance. A trap ends it; the next call gets a fresh one.
pub(super) struct Opened<W> {
    pub from: Configured<W>,
    live: Option<(Live<W>, ResourceAny)>,
}

impl<W: Reopen> Opened<W> {
    /// Opens a first instance.
    pub fn new(from: &Configured<W>) -> Result<Self, PluginError> {
        let live = Some(open(from)?);
        Ok(Opened {
            from: from.clone(),
            live,
        })
    }

    /// Makes one call. An error of the sandbox ends the instance.
    pub fn call<T>(
        &mut self,
        call: &'static str,
        make: impl FnOnce(&W, &mut Store<Guest>, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginError> {
        let (mut live, handle) = match self.live.take() {
            Some(live) => live,
            None => open(&self.from)?,
        };
        let value = live.call(call, |world, store| make(world, store, handle))?;
        self.live = Some((live, handle));
        Ok(value)
    }
}

fn open<W: Reopen>(from: &Configured<W>) -> Result<(Live<W>, ResourceAny), PluginError> {
    let mut live = from.instantiate()?;
    let opened = live
        .call("open", |world, store| world.open(store, from))?
        .map_err(|error| PluginError::said(&from.plugin.asked, error))?;
    Ok((live, opened))
}

fn refused(plugin: &Plugin, error: &wasmtime::Error) -> PluginError {
    let text = format!("{error:#}");
    if let Some(import) = text
        .split('`')
        .nth(1)
        .filter(|_| text.contains("matching implementation was not found"))
    {
        return PluginError::WrongWorld {
            plugin: plugin.asked.clone(),
            what: format!(
                "imports `{import}`, which a {} may not use: plugins see no clock, socket, path, variable or randomness; its author must build it without",
                plugin.kind.name()
            ),
        };
    }
    PluginError::WrongWorld {
        plugin: plugin.asked.clone(),
        what: format!(
            "does not fit the world `{}-plugin`: {text}",
            plugin.kind.name()
        ),
    }
}

/// Cuts a plugin's words to a length fit for a message, and takes control characters out.
pub(super) fn words(text: &str) -> String {
    let end = text.floor_char_boundary(text.len().min(WORDS));
    text[..end]
        .chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect::<String>()
        .trim()
        .to_owned()
}

/// What a plugin says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Short name.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// One line for people.
    pub summary: String,
    /// JSON Schema of its configuration.
    pub config_schema: serde_json::Value,
}
