//! What the three kinds of plugin have in common once loaded: a store, an instance in it,
//! and the rule that a trap costs the instance, never the run.

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker, ResourceAny};

use super::bindings::types;
use super::contract::Contract;
use super::error::PluginError;
use super::load::{Kind, Plugin};
use super::sandbox::{self, Grants, Guest, Limits, arm, trapped};
use super::wasi;

/// The longest text a plugin may say of itself or of an error, in bytes; more is cut.
pub(super) const WORDS: usize = 2_000;

/// A world of `wit/`, as the bindings make it.
pub trait World: Sized {
    /// The kind of its plugins.
    const KIND: Kind;

    /// A component with its imports bound and its exports found: all that an instance does not need of its own.
    type Ready: Clone;

    /// How long a call may take, in milliseconds.
    fn limit_ms(limits: &Limits) -> u64;

    /// Adds its imports.
    ///
    /// # Errors
    /// Where two imports have one name.
    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()>;

    /// Finds its exports in a component.
    ///
    /// # Errors
    /// Where the component does not fit the world.
    fn ready(component: InstancePre<Guest>, contract: Contract) -> wasmtime::Result<Self::Ready>;

    /// Makes an instance.
    ///
    /// # Errors
    /// Where the plugin traps as it starts, or takes more than it may.
    fn instantiate(store: &mut Store<Guest>, ready: &Self::Ready) -> wasmtime::Result<Self>;

    /// Name, version, summary and configuration schema, as the plugin says them.
    ///
    /// # Errors
    /// Where the plugin traps.
    fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<[String; 4]>;
}

/// A component that is ready to be instantiated, in the version of the contract that it was built for.
#[derive(Clone)]
pub enum Versions<A, B> {
    /// Of 0.1.0.
    V0_1(A),
    /// Of 0.2.0.
    V0_2(B),
}

/// What a world does alike in every version of the contract: finding a component's exports, making an instance,
/// asking for its name plate. The bindings have types of their own for each version and world, with nothing in
/// common but their names.
macro_rules! of_each_version {
    ($v0_1:ty, $v0_2:ty) => {
        type Ready = $crate::plugin::instance::Versions<$v0_1, $v0_2>;

        fn ready(
            component: wasmtime::component::InstancePre<Guest>,
            contract: $crate::plugin::Contract,
        ) -> wasmtime::Result<Self::Ready> {
            use $crate::plugin::{Contract, instance::Versions};
            Ok(match contract {
                Contract::V0_1 => Versions::V0_1(<$v0_1>::new(component)?),
                Contract::V0_2 => Versions::V0_2(<$v0_2>::new(component)?),
            })
        }

        fn instantiate(store: &mut Store<Guest>, ready: &Self::Ready) -> wasmtime::Result<Self> {
            use $crate::plugin::instance::Versions;
            Ok(match ready {
                Versions::V0_1(ready) => Self::V0_1(ready.instantiate(store)?),
                Versions::V0_2(ready) => Self::V0_2(ready.instantiate(store)?),
            })
        }

        fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<[String; 4]> {
            Ok(match self {
                Self::V0_1(plugin) => {
                    let said = plugin.runner_plugin_about().call_describe(store)?;
                    [said.name, said.version, said.summary, said.config_schema]
                }
                Self::V0_2(plugin) => {
                    let said = plugin.runner_plugin_about().call_describe(store)?;
                    [said.name, said.version, said.summary, said.config_schema]
                }
            })
        }
    };
}
pub(super) use of_each_version;

/// What a call gives: the sandbox's word around the plugin's.
pub(super) type Said<T> = wasmtime::Result<Result<T, types::Error>>;

/// A plugin of a kind with its configuration: what instances are made from. Everything that all instances
/// share is done once, so that making one costs little.
pub struct Configured<W: World> {
    pub(super) plugin: Plugin,
    pub(super) config: String,
    grants: Grants,
    ready: W::Ready,
}

impl<W: World> Clone for Configured<W> {
    fn clone(&self) -> Self {
        Configured {
            plugin: self.plugin.clone(),
            config: self.config.clone(),
            grants: self.grants.clone(),
            ready: self.ready.clone(),
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
    /// Where the plugin is of another kind, or does not fit the world of its kind.
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
        let mut linker = Linker::new(sandbox::engine());
        let ready = W::link(&mut linker)
            .and_then(|()| wasi::link(&mut linker, &plugin.component))
            .and_then(|()| linker.instantiate_pre(&plugin.component))
            .and_then(|component| W::ready(component, plugin.contract))
            .map_err(|error| refused(&plugin, &error))?;
        Ok(Configured {
            plugin,
            config: config.to_string(),
            grants,
            ready,
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
        self.described(&mut self.instantiate()?)
    }

    /// What the plugin says of itself, in an instance that is there.
    pub(super) fn described(&self, live: &mut Live<W>) -> Result<Info, PluginError> {
        let [name, version, summary, schema] =
            live.call("describe", |world, store| world.describe(store))?;
        let config_schema =
            serde_json::from_str(&schema).map_err(|cause| PluginError::Contract {
                plugin: self.plugin.asked.clone(),
                call: "describe",
                what: format!("its configuration schema is not JSON: {cause}"),
            })?;
        Ok(Info {
            name: words(&name),
            version: words(&version),
            summary: words(&summary),
            config_schema,
        })
    }

    /// Makes an instance, and lets go of it: what it costs can be measured, and whether it can be made be known.
    ///
    /// # Errors
    /// Where the plugin traps as it starts, or takes more than it may.
    pub fn instance(&self) -> Result<(), PluginError> {
        self.instantiate().map(drop)
    }

    /// Makes an instance, ready for its first call.
    pub(super) fn instantiate(&self) -> Result<Live<W>, PluginError> {
        let limit_ms = W::limit_ms(&self.grants.limits);
        let mut store = sandbox::store(&self.plugin.asked, &self.grants);
        arm(&mut store, limit_ms);
        let world = W::instantiate(&mut store, &self.ready)
            .map_err(|error| trapped(&mut store, "instantiate", limit_ms, &error))?;
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
            .map_err(|error| trapped(&mut self.store, call, self.limit_ms, &error))
    }
}

/// A world whose instances are opened with their configuration alone, and so at any time again.
pub trait Reopen: World {
    /// Opens the resource that the other calls are made on.
    ///
    /// # Errors
    /// Where the plugin traps; within, where it refuses the configuration.
    fn open(&self, store: &mut Store<Guest>, from: &Configured<Self>) -> Said<ResourceAny>;
}

/// An opened instance. A trap ends it; the next call gets a fresh one.
pub(super) struct Opened<W: World> {
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
                "imports `{import}`, which a {} cannot use; its author must build it without this import",
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
