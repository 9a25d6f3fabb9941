//! Calling a backend: one [`Dialect`] a thread, each with its own instance.

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker, ResourceAny};

use super::bindings::backend_world::exports::runner::plugin::backend as wit;
use super::bindings::backend_world::{BackendPlugin, BackendPluginPre};
use super::bindings::{log, types};
use super::error::PluginError;
use super::instance::{Configured, Opened, Reopen, World, words};
use super::load::Kind;
use super::sandbox::{Guest, GuestData, Limits};
use crate::frame::Frames;

pub use super::bindings::types::{Message, Prompt, Role, Sample, Settings};
pub use wit::{Framing, Meaning, Request, Usage};

/// Most bytes of state a plugin may keep between two batches of a reply.
const STATE_BYTES: usize = 64 << 10;
/// Header fields that belong to the host.
const HOST_HEADERS: [&str; 8] = [
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "authorization",
    "proxy-authorization",
    "upgrade",
    "te",
];

/// A backend plugin with its configuration: what instances are made from.
pub type Backend = Configured<BackendPlugin>;

/// The events of a batch of frames.
pub struct Decoded {
    /// Index into the batch, and what the frame meant; in the order of the frames.
    pub events: Vec<(usize, Meaning)>,
    /// What to hand to the next batch of the same reply.
    pub state: Vec<u8>,
}

/// One instance of a backend. A trap ends the instance; the next call gets a fresh one.
pub struct Dialect(Opened<BackendPlugin>);

impl World for BackendPlugin {
    const KIND: Kind = Kind::Backend;
    type Ready = BackendPluginPre<Guest>;

    fn limit_ms(limits: &Limits) -> u64 {
        limits.backend_call_ms
    }

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        types::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
        log::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
    }

    fn ready(component: InstancePre<Guest>) -> wasmtime::Result<Self::Ready> {
        BackendPluginPre::new(component)
    }

    fn instantiate(store: &mut Store<Guest>, ready: &Self::Ready) -> wasmtime::Result<Self> {
        ready.instantiate(store)
    }

    fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<[String; 4]> {
        let said = self.runner_plugin_about().call_describe(store)?;
        Ok([said.name, said.version, said.summary, said.config_schema])
    }
}

impl Reopen for BackendPlugin {
    fn open(
        &self,
        store: &mut Store<Guest>,
        from: &Configured<Self>,
    ) -> wasmtime::Result<Result<ResourceAny, types::Error>> {
        self.runner_plugin_backend()
            .codec()
            .call_open(store, &from.config)
    }
}

impl Configured<BackendPlugin> {
    /// A fresh instance, opened with the configuration.
    ///
    /// # Errors
    /// Where the plugin refuses the configuration, cannot be instantiated or traps.
    pub fn open(&self) -> Result<Dialect, PluginError> {
        Opened::new(self).map(Dialect)
    }
}

impl Dialect {
    /// The plugin's name, as asked for.
    pub fn name(&self) -> &str {
        &self.0.from.plugin.asked
    }

    fn call<T>(
        &mut self,
        call: &'static str,
        make: impl FnOnce(wit::GuestCodec<'_>, &mut Store<Guest>, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginError> {
        self.0.call(call, |world, store, codec| {
            make(world.runner_plugin_backend().codec(), store, codec)
        })
    }

    fn contract(&self, call: &'static str, what: String) -> PluginError {
        PluginError::Contract {
            plugin: self.name().to_owned(),
            call,
            what: words(&what),
        }
    }

    /// Where this engine listens when nobody says otherwise.
    ///
    /// # Errors
    /// Where the plugin traps.
    pub fn default_url(&mut self) -> Result<String, PluginError> {
        self.call("default-url", |codec, store, handle| {
            codec.call_default_url(store, handle)
        })
    }

    /// A harmless request whose answer lists the models served.
    ///
    /// # Errors
    /// Where the plugin traps or writes a request it may not.
    pub fn list_models(&mut self) -> Result<Option<Request>, PluginError> {
        let request = self.call("list-models", |codec, store, handle| {
            codec.call_list_models(store, handle)
        })?;
        if let Some(request) = &request {
            self.check_request("list-models", request)?;
        }
        Ok(request)
    }

    /// The model names in an answer to [`Dialect::list_models`].
    ///
    /// # Errors
    /// Where the plugin does not understand the answer, or traps.
    pub fn read_models(&mut self, body: &[u8]) -> Result<Vec<String>, PluginError> {
        self.call("read-models", |codec, store, handle| {
            codec.call_read_models(store, handle, body)
        })?
        .map_err(|error| PluginError::said(self.name(), error))
    }

    /// The request for a sample.
    ///
    /// # Errors
    /// Where the plugin cannot write one, writes one it may not, or traps.
    pub fn encode(&mut self, sample: &Sample, settings: &Settings) -> Result<Request, PluginError> {
        let request = self
            .call("encode", |codec, store, handle| {
                codec.call_encode(store, handle, sample, settings)
            })?
            .map_err(|error| PluginError::said(self.name(), error))?;
        self.check_request("encode", &request)?;
        Ok(request)
    }

    /// How to cut the reply to such a request.
    ///
    /// # Errors
    /// Where the plugin traps.
    pub fn framing(&mut self, streaming: bool) -> Result<Framing, PluginError> {
        self.call("framing", |codec, store, handle| {
            codec.call_framing(store, handle, streaming)
        })
    }

    /// Decodes a batch of frames of one reply, given what the last batch left.
    ///
    /// # Errors
    /// Where the plugin does not understand a frame, breaks its contract, or traps.
    pub fn decode(&mut self, state: &[u8], frames: &Frames) -> Result<Decoded, PluginError> {
        let crossing = wit::Frames {
            bytes: frames.bytes().to_vec(),
            ends: frames.ends().to_vec(),
            names: frames.names().to_vec(),
        };
        let decoded = self
            .call("decode", |codec, store, handle| {
                codec.call_decode(store, handle, state, &crossing)
            })?
            .map_err(|error| PluginError::said(self.name(), error))?;
        if decoded.state.len() > STATE_BYTES {
            return Err(self.contract(
                "decode",
                format!(
                    "it keeps {} bytes of state, at most {STATE_BYTES} are allowed",
                    decoded.state.len()
                ),
            ));
        }
        let mut last = 0;
        let mut events = Vec::with_capacity(decoded.events.len());
        for event in decoded.events {
            let frame = event.frame as usize;
            if frame >= frames.len() || frame < last {
                return Err(self.contract(
                    "decode",
                    format!(
                        "an event names frame {frame} after frame {last} of {}; events must follow the order of their frames",
                        frames.len()
                    ),
                ));
            }
            last = frame;
            events.push((frame, event.what));
        }
        Ok(Decoded {
            events,
            state: decoded.state,
        })
    }

    /// What a reply with an error status says, for people.
    ///
    /// # Errors
    /// Where the plugin traps.
    pub fn explain(&mut self, status: u16, body: &[u8]) -> Result<String, PluginError> {
        self.call("explain", |codec, store, handle| {
            codec.call_explain(store, handle, status, body)
        })
        .map(|text| words(&text))
    }

    /// A request must stay below the target and leave the host's headers alone.
    fn check_request(&self, call: &'static str, request: &Request) -> Result<(), PluginError> {
        let path = &request.path;
        let fault = if !path.starts_with('/') || path.starts_with("//") {
            Some(format!(
                "the path `{}` must begin with one `/`",
                path.escape_debug()
            ))
        } else if path.split(['/', '?']).any(is_parent)
            || path
                .bytes()
                .any(|b| b <= b' ' || b >= 0x7f || b == b'\\' || b == b'#')
        {
            Some(format!(
                "the path `{}` holds `..` or characters that a path may not hold",
                path.escape_debug()
            ))
        } else if !matches!(request.method.as_str(), "GET" | "POST" | "PUT") {
            Some(format!(
                "the method `{}`; a backend may use GET, POST and PUT",
                request.method.escape_debug()
            ))
        } else {
            request.headers.iter().find_map(|(name, value)| {
                if HOST_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                    Some(format!("the header `{name}` belongs to the host"))
                } else if name.is_empty()
                    || !name
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
                    || value.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f)
                {
                    Some(format!(
                        "the header `{}` holds characters that a header may not hold",
                        name.escape_debug()
                    ))
                } else {
                    None
                }
            })
        };
        match fault {
            Some(what) => Err(self.contract(call, what)),
            None => Ok(()),
        }
    }
}

/// Whether a path's segment leads upwards; to servers, an encoded dot is a dot.
fn is_parent(segment: &str) -> bool {
    segment.to_ascii_lowercase().replace("%2e", ".") == ".."
}
