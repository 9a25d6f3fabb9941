//! What the three kinds of plugin have in common once loaded: a store, an instance in it,
//! and the rule that a trap costs the instance, never the run.

use wasmtime::Store;
use wasmtime::component::{Component, Linker};

use super::error::PluginError;
use super::load::Plugin;
use super::sandbox::{self, Grants, Guest};

/// The longest text a plugin may say of itself or of an error, in bytes; more is cut.
pub(super) const WORDS: usize = 2_000;

/// A live instance: the store owns everything the guest holds.
pub(super) struct Live<World> {
    pub store: Store<Guest>,
    pub world: World,
}

/// Makes an instance of a world, ready for its first call.
///
/// `link` adds the world's imports, `make` instantiates.
pub(super) fn instantiate<World>(
    plugin: &Plugin,
    grants: &Grants,
    limit_ms: u64,
    link: impl FnOnce(&mut Linker<Guest>) -> wasmtime::Result<()>,
    make: impl FnOnce(&mut Store<Guest>, &Component, &Linker<Guest>) -> wasmtime::Result<World>,
) -> Result<Live<World>, PluginError> {
    let mut linker = Linker::new(sandbox::engine());
    let mut store = sandbox::store(&plugin.asked, grants);
    sandbox::arm(&mut store, limit_ms);
    let world = link(&mut linker)
        .and_then(|()| make(&mut store, &plugin.component, &linker))
        .map_err(|error| refused(plugin, &error))?;
    Ok(Live { store, world })
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

/// Reads what a plugin says of itself.
pub(super) fn info(
    plugin: &Plugin,
    name: &str,
    version: &str,
    summary: &str,
    schema: &str,
) -> Result<Info, PluginError> {
    let config_schema = serde_json::from_str(schema).map_err(|cause| PluginError::Contract {
        plugin: plugin.asked.clone(),
        call: "describe",
        what: format!("its configuration schema is no JSON: {cause}"),
    })?;
    Ok(Info {
        name: words(name),
        version: words(version),
        summary: words(summary),
        config_schema,
    })
}
