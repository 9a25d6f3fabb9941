//! Calling a backend: one [`Dialect`] per thread, each with its own instance.

mod path;
mod world;

use wasmtime::Store;
use wasmtime::component::ResourceAny;

use super::bindings::backend_world::exports::runner::plugin::backend as wit;
use super::error::PluginError;
use super::instance::{Configured, Opened, words};
use super::sandbox::Guest;
use model::frame::Frames;
use world::BackendWorld;

pub use super::bindings::types::{
    Media, Message, Part, Prompt, Role, Sample, Sampling, Settings, Turn,
};
pub use wit::{
    Control, Framing, LengthPrefix, Meaning, Output, Reading, Reason, Refusal, Request,
    ServerMetric, Usage,
};

/// Most bytes of state a plugin may keep between two batches of a reply.
const STATE_BYTES: usize = 64 << 10;
/// The same where the framing is raw: the state holds a frame that is not complete, which may be as large as those
/// that the host cuts.
const RAW_STATE_BYTES: usize = model::frame::FRAME_BYTES;
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

/// A backend plugin with its configuration, from which instances are made.
pub type Backend = Configured<BackendWorld>;

/// Everything left to the server.
impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: None,
            top_p: None,
            top_k: None,
            min_p: None,
            frequency_penalty: None,
            presence_penalty: None,
            repetition_penalty: None,
            seed: None,
            stop: Vec::new(),
        }
    }
}

impl From<Framing> for model::frame::Framing {
    fn from(framing: Framing) -> Self {
        match framing {
            Framing::EventStream => Self::EventStream,
            Framing::Lines => Self::Lines,
            Framing::LengthPrefixed(prefix) => Self::LengthPrefixed(model::frame::LengthPrefix {
                skip: prefix.skip.into(),
                width: prefix.width.into(),
                little_endian: prefix.little_endian,
            }),
            Framing::Whole => Self::Whole,
            Framing::Raw => Self::Raw,
        }
    }
}

impl Refusal {
    /// Why the server refused; absent if its reply does not say.
    pub fn known_reason(&self) -> Option<model::exchange::Reason> {
        use model::exchange::Reason as Known;
        Some(match self.reason {
            Reason::Overloaded => Known::Overloaded,
            Reason::Unavailable => Known::Unavailable,
            Reason::TooLong => Known::TooLong,
            Reason::UnknownModel => Known::UnknownModel,
            Reason::Unauthorised => Known::Unauthorised,
            Reason::Invalid => Known::Invalid,
            Reason::Internal => Known::Internal,
            Reason::Other => return None,
        })
    }
}

/// The events of a batch of frames.
pub struct Decoded {
    /// Index into the batch, and the meaning of the frame; in the order of the frames.
    pub events: Vec<(usize, Meaning)>,
    /// The state to pass to the next batch of the same reply.
    pub state: Vec<u8>,
}

/// One instance of a backend. A trap ends the instance; the next call gets a fresh one.
pub struct Dialect(Opened<BackendWorld>);

impl Configured<BackendWorld> {
    /// A fresh instance, opened with the configuration.
    ///
    /// # Errors
    /// If the plugin rejects the configuration, cannot be instantiated or traps.
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
        make: impl FnOnce(&BackendWorld, &mut Store<Guest>, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginError> {
        self.0.call(call, make)
    }

    fn contract(&self, call: &'static str, what: String) -> PluginError {
        PluginError::Contract {
            plugin: self.name().to_owned(),
            call,
            what: words(&what),
        }
    }

    /// The engine's default URL.
    ///
    /// # Errors
    /// If the plugin traps.
    pub fn default_url(&mut self) -> Result<String, PluginError> {
        self.call("default-url", |world, store, handle| {
            world.default_url(store, handle)
        })
    }

    /// The request for something other than inference, if the engine supports it.
    ///
    /// # Errors
    /// If the plugin traps or writes a request that is not allowed.
    pub fn control(&mut self, what: Control) -> Result<Option<Request>, PluginError> {
        let request = self.call("control", |world, store, handle| {
            world.control(store, handle, what)
        })?;
        if let Some(request) = &request {
            self.check_request("control", request)?;
        }
        Ok(request)
    }

    /// The figures in an answer to [`Control::Metrics`].
    ///
    /// # Errors
    /// If the plugin does not understand the answer, returns a figure that is not finite, or traps.
    pub fn read_metrics(&mut self, body: &[u8]) -> Result<Vec<Reading>, PluginError> {
        let readings = self
            .call("read-metrics", |world, store, handle| {
                world.read_metrics(store, handle, body)
            })?
            .map_err(|error| PluginError::said(self.name(), error))?;
        match readings.iter().find(|reading| !reading.value.is_finite()) {
            None => Ok(readings),
            Some(reading) => Err(self.contract(
                "read-metrics",
                format!("the figure {:?} is {}", reading.metric, reading.value),
            )),
        }
    }

    /// The model names in an answer to [`Control::ListModels`].
    ///
    /// # Errors
    /// If the plugin does not understand the answer, or traps.
    pub fn read_models(&mut self, body: &[u8]) -> Result<Vec<String>, PluginError> {
        self.call("read-models", |world, store, handle| {
            world.read_models(store, handle, body)
        })?
        .map_err(|error| PluginError::said(self.name(), error))
    }

    /// The request for a sample.
    ///
    /// # Errors
    /// If the plugin cannot write one, writes one that is not allowed, or traps.
    pub fn encode(&mut self, sample: &Sample, settings: &Settings) -> Result<Request, PluginError> {
        let request = self
            .call("encode", |world, store, handle| {
                world.encode(store, handle, sample, settings)
            })?
            .map_err(|error| PluginError::said(self.name(), error))?;
        self.check_request("encode", &request)?;
        Ok(request)
    }

    /// How to split the reply to such a request into frames.
    ///
    /// # Errors
    /// If the plugin traps.
    pub fn framing(&mut self, streaming: bool) -> Result<Framing, PluginError> {
        let framing = self.call("framing", |world, store, handle| {
            world.framing(store, handle, streaming)
        })?;
        match framing {
            Framing::LengthPrefixed(prefix)
                if prefix.skip > 16 || !matches!(prefix.width, 1 | 2 | 4 | 8) =>
            {
                Err(self.contract(
                    "framing",
                    format!(
                        "a length of {} bytes after {}: a length must have 1, 2, 4 or 8 bytes, with at most 16 bytes before it",
                        prefix.width, prefix.skip
                    ),
                ))
            }
            framing => Ok(framing),
        }
    }

    /// Decodes a batch of frames of one reply, given the state after the previous batch.
    ///
    /// # Errors
    /// If the plugin does not understand a frame, breaks its contract, or traps.
    pub fn decode(&mut self, state: &[u8], frames: &Frames) -> Result<Decoded, PluginError> {
        let crossing = wit::Frames {
            bytes: frames.bytes().to_vec(),
            ends: frames.ends().to_vec(),
            names: frames.names().to_vec(),
        };
        let decoded = self
            .call("decode", |world, store, handle| {
                world.decode(store, handle, state, &crossing)
            })?
            .map_err(|error| PluginError::said(self.name(), error))?;
        if decoded.state.len() > STATE_BYTES {
            self.check_large_state(decoded.state.len())?;
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

    /// A large state is fine where it holds an incomplete frame.
    fn check_large_state(&mut self, bytes: usize) -> Result<(), PluginError> {
        let is_raw = [true, false]
            .into_iter()
            .any(|streaming| matches!(self.framing(streaming), Ok(Framing::Raw)));
        let most = if is_raw { RAW_STATE_BYTES } else { STATE_BYTES };
        if bytes <= most {
            return Ok(());
        }
        Err(self.contract(
            "decode",
            format!("it keeps {bytes} bytes of state, at most {most} are allowed"),
        ))
    }

    /// The error in a reply with an error status.
    ///
    /// # Errors
    /// If the plugin traps.
    pub fn explain(&mut self, status: u16, body: &[u8]) -> Result<Refusal, PluginError> {
        self.call("explain", |world, store, handle| {
            world.explain(store, handle, status, body)
        })
        .map(|refusal| Refusal {
            message: words(&refusal.message),
            ..refusal
        })
    }

    /// Checks that a request stays below the target's URL and does not set the host's headers.
    fn check_request(&self, call: &'static str, request: &Request) -> Result<(), PluginError> {
        let path = &request.path;
        let fault = if !path.starts_with('/') || path.starts_with("//") {
            Some(format!(
                "the path `{}` must begin with one `/`",
                path.escape_debug()
            ))
        } else if let Some(fault) = path::fault(path) {
            let shown = words(path);
            Some(format!("the path `{}` {fault}", shown.escape_debug()))
        } else if !matches!(request.method.as_str(), "GET" | "POST" | "PUT") {
            Some(format!(
                "the method `{}` is not allowed; a backend may use GET, POST and PUT",
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
                        "the header `{}` contains characters that are not allowed in a header",
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
