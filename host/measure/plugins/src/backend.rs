//! Calling a backend: one [`Dialect`] per thread, each with its own instance.

mod grpc;
mod hmac;
mod request;
mod socket;
mod step;
mod token;
mod usage;

use std::borrow::Cow;

use wasmtime::Store;
use wasmtime::component::{Linker, ResourceAny};

use super::awaited::exported;
use super::bindings::backend_world::exports::runner::plugin::backend as wit;
use super::bindings::backend_world::{BackendPlugin, BackendPluginPre};
use super::bindings::{log, types};
use super::error::{PluginError, clean_text};
use super::instance::{CallResult, Configured, OpenInstance, Reopen, World, by_bindings};
use super::sandbox::{Guest, GuestData};
use model::frame::Frames;
use model::plugin::{Kind, Limits};
use model::target::Target;
use request::{HOST_HEADERS, fault_of_fields};
use step::STATE_BYTES;

pub use super::bindings::types::{
    Candidates, Continuation, Dependency, Media, Message, Part, Point, Prompt, Role, Sample,
    Sampling, Settings, Turn,
};
pub use request::fault as path_fault;
pub use wit::Message as SocketMessage;
pub use wit::{
    Authentication, Call, Control, Credentials, Digest, Earlier, Embedded, Encoding, Framing, Head,
    Hmac, LengthPrefix, Meaning, Outgoing, Output, Prepared, Ranked, Reading, Reason, Refusal,
    Request, ServedModel, ServerMetric, Socket, Sound, Speculation, Step, Timings, Token, Usage,
};

/// Most bytes that a plugin may leave unread if the framing is raw: as large as the host's frames.
const UNREAD_BYTES: usize = model::frame::FRAME_BYTES;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside {
    Control(Control),
    /// The one before the first sample's.
    Prepare,
}

/// Requests other than inference, by their names in the contract.
pub const ASIDES: [(&str, Aside); 5] = [
    ("health", Aside::Control(Control::Health)),
    ("list-models", Aside::Control(Control::ListModels)),
    ("flush-cache", Aside::Control(Control::FlushCache)),
    ("metrics", Aside::Control(Control::Metrics)),
    ("prepare", Aside::Prepare),
];

/// A backend's statements about its server and the user's key.
#[derive(Clone, Debug)]
pub struct Outside {
    pub default_url: String,
    pub credentials: Credentials,
    /// The requests other than inference that the engine supports.
    pub controls: Vec<(&'static str, Request)>,
}

pub type Backend = Configured<BackendPlugin>;

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

impl Prompt {
    /// The samples whose answers stand in its own messages.
    pub fn quotes(&self) -> Vec<&str> {
        let messages = match self {
            Prompt::Messages(messages) => messages,
            Prompt::Continuation(next) => &next.messages,
            _ => return Vec::new(),
        };
        let parts = messages.iter().flat_map(|message| &message.parts);
        let quoted = parts.filter_map(|part| match part {
            Part::Answer(of) => Some(of.as_str()),
            _ => None,
        });
        quoted.collect()
    }
}

impl Sample {
    pub fn bare(id: &str, prompt: Prompt) -> Self {
        Sample {
            id: id.to_owned(),
            prompt,
            after: Vec::new(),
            recorded_answer: None,
            audio_duration: None,
            recorded_duration: None,
            further: None,
            input_tokens: None,
            output_tokens: None,
            reference: None,
            turn: None,
            class: None,
            arrival: None,
            adapter: None,
            parameters: None,
        }
    }
}

impl Settings {
    pub fn bare(model: &str, streaming: bool) -> Self {
        Settings {
            model: model.to_owned(),
            streaming,
            output_tokens: None,
            min_output_tokens: None,
            ignore_eos: false,
            sampling: Sampling::default(),
            extra_body: None,
            prepared: Vec::new(),
            further: None,
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
                adjust: prefix.adjust,
                little_endian: prefix.little_endian,
            }),
            Framing::Grpc => Self::Grpc,
            Framing::Whole => Self::Whole,
            Framing::Raw => Self::Raw,
        }
    }
}

impl Call {
    /// The call as one request: the first of several, or a WebSocket's handshake and messages.
    pub fn as_request(&self) -> Cow<'_, Request> {
        match self {
            Call::Request(request) | Call::Steps(Step { request, .. }) => Cow::Borrowed(request),
            Call::Socket(socket) => {
                let messages = socket.messages.iter();
                let bytes = messages.flat_map(|outgoing| outgoing.message.as_bytes());
                Cow::Owned(Request {
                    method: "GET".to_owned(),
                    path: socket.path.clone(),
                    headers: socket.headers.clone(),
                    body: bytes.copied().collect(),
                })
            }
        }
    }

    /// Takes the result of [`as_request`](Self::as_request).
    pub fn into_request(self) -> Request {
        match self {
            Call::Request(request) | Call::Steps(Step { request, .. }) => request,
            Call::Socket(_) => self.as_request().into_owned(),
        }
    }
}

impl SocketMessage {
    /// The message's bytes; of a text, its UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            SocketMessage::Text(text) => text.as_bytes(),
            SocketMessage::Binary(bytes) => bytes,
        }
    }
}

impl Reason {
    /// The reason as a record has it; absent if the server's reply does not say.
    pub fn known(self) -> Option<model::exchange::Reason> {
        use model::exchange::Reason as Known;
        Some(match self {
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

/// The state that is kept of a reply from one batch of frames to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    pub state: Vec<u8>,
    /// Bytes that the plugin left unread. They come again, in front of the next bytes.
    unread: Vec<u8>,
    /// True if bytes may be left unread; absent if the plugin's own framing says so.
    is_raw: Option<bool>,
}

impl Fold {
    pub fn new(state: Vec<u8>) -> Self {
        Fold { state, ..Fold::default() }
    }

    /// The same for a reply whose framing is known to be raw or not.
    pub fn framed(self, is_raw: bool) -> Self {
        Fold { is_raw: Some(is_raw), ..self }
    }

    /// Returns the number of bytes that cross to the plugin with each batch, beside the batch.
    pub fn bytes(&self) -> usize {
        self.state.len() + self.unread.len()
    }
}

/// Calls a method of `codec`, as in the contract.
macro_rules! call {
    ($dialect:ident, $name:literal, $call:ident($($argument:expr),*)) => {
        $dialect.0.call($name, |world, store, handle| {
            let codec = world.runner_plugin_backend().codec();
            let name = concat!("[method]codec.", $name);
            exported!(store, "backend", name, codec, $call(handle $(, $argument)*))
        })
    };
}

impl World for BackendPlugin {
    const KIND: Kind = Kind::Backend;

    by_bindings!(BackendPluginPre<Guest>);

    fn limit_ms(limits: &Limits) -> u64 {
        limits.backend_call_ms
    }

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        types::add_to_linker::<Guest, GuestData>(linker, |guest| guest)?;
        log::add_to_linker::<Guest, GuestData>(linker, |guest| guest)
    }
}

impl Reopen for BackendPlugin {
    fn open(&self, store: &mut Store<Guest>, from: &Configured<Self>) -> CallResult<ResourceAny> {
        let codec = self.runner_plugin_backend().codec();
        exported!(store, "backend", "[static]codec.open", codec, call_open(&from.config))
    }
}

/// One instance of a backend. A trap ends the instance; the next call gets a fresh one.
pub struct Dialect(OpenInstance<BackendPlugin>);

impl Configured<BackendPlugin> {
    /// A fresh instance, opened with the configuration.
    pub fn open(&self) -> Result<Dialect, PluginError> {
        OpenInstance::new(self).map(Dialect)
    }
}

impl Dialect {
    /// The plugin's name, as asked for.
    pub fn name(&self) -> &str {
        &self.0.from.plugin.name
    }

    fn contract(&self, call: &'static str, what: String) -> PluginError {
        PluginError::Contract { plugin: self.name().to_owned(), call, what: clean_text(&what) }
    }

    pub fn default_url(&mut self) -> Result<String, PluginError> {
        call!(self, "default-url", call_default_url())
    }

    /// The request for something other than inference, if the engine supports it.
    pub fn control(&mut self, what: Control) -> Result<Option<Request>, PluginError> {
        self.aside(Aside::Control(what))
    }

    /// The request to each target before the first sample's, if the backend needs one.
    pub fn prepare(&mut self) -> Result<Option<Request>, PluginError> {
        self.aside(Aside::Prepare)
    }

    /// A request other than inference, if the backend has it.
    pub fn aside(&mut self, what: Aside) -> Result<Option<Request>, PluginError> {
        let (name, request) = match what {
            Aside::Control(what) => ("control", call!(self, "control", call_control(what))?),
            Aside::Prepare => ("prepare", call!(self, "prepare", call_prepare())?),
        };
        if let Some(request) = &request {
            self.check_request(name, request)?;
        }
        Ok(request)
    }

    /// The value in a successful reply to [`Aside::Prepare`].
    pub fn read_prepared(&mut self, body: &[u8]) -> Result<Prepared, PluginError> {
        let prepared = call!(self, "read-prepared", call_read_prepared(body))?
            .map_err(|error| PluginError::from_plugin(self.name(), error))?;
        self.check_size("read-prepared", "prepares", &prepared.value, "")?;
        Ok(prepared)
    }

    /// The part of a reply to a control request that the plugin reads: over gRPC, the message.
    pub(crate) fn control_message<'b>(&mut self, reply: &'b [u8]) -> Result<&'b [u8], PluginError> {
        match self.framing(true)? {
            Framing::Grpc => grpc::message(reply).map_err(|message| {
                PluginError::from_plugin(self.name(), types::Error::Protocol(message))
            }),
            _ => Ok(reply),
        }
    }

    /// The figures in an answer to [`Control::Metrics`].
    pub fn read_metrics(&mut self, body: &[u8]) -> Result<Vec<Reading>, PluginError> {
        let body = self.control_message(body)?;
        let readings = call!(self, "read-metrics", call_read_metrics(body))?
            .map_err(|error| PluginError::from_plugin(self.name(), error))?;
        let wrong = readings.iter().find(|reading| !reading.value.is_finite());
        let fault = wrong.map(|it| format!("the figure {:?} is {}", it.metric, it.value));
        self.check("read-metrics", fault)?;
        Ok(readings)
    }

    /// Returns how requests are authenticated, and where people keep the key.
    pub fn credentials(&mut self) -> Result<Credentials, PluginError> {
        let credentials = call!(self, "credentials", call_credentials())?;
        let fault = match &credentials.scheme {
            Authentication::Header(name) => {
                let letters = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
                let is_name = !name.is_empty() && name.bytes().all(letters);
                let is_hosts = HOST_HEADERS
                    .into_iter()
                    .any(|own| own != "authorization" && own.eq_ignore_ascii_case(name));
                (!is_name || is_hosts)
                    .then(|| format!("it names `{}` as the header of the key", name.escape_debug()))
            }
            Authentication::Sigv4(service) => {
                let letters = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
                let is_name = !service.is_empty() && service.bytes().all(letters);
                let shown = service.escape_debug();
                (!is_name).then(|| format!("it names `{shown}` as the service of AWS"))
            }
            Authentication::Hmac(hmac) => hmac::fault(hmac),
            Authentication::Token(token) => token::fault(token),
            Authentication::Bearer | Authentication::None => None,
        };
        self.check("credentials", fault)?;
        Ok(credentials)
    }

    /// The models in an answer to [`Control::ListModels`].
    pub fn read_models(&mut self, body: &[u8]) -> Result<Vec<ServedModel>, PluginError> {
        let body = self.control_message(body)?;
        call!(self, "read-models", call_read_models(body))?
            .map_err(|error| PluginError::from_plugin(self.name(), error))
    }

    /// Writes the call for a sample; `earlier` is the state that the last reply before it left.
    pub fn encode(
        &mut self,
        sample: &Sample,
        settings: &Settings,
        earlier: Option<&Earlier>,
    ) -> Result<Call, PluginError> {
        let call = call!(self, "encode", call_encode(sample, settings, earlier))?
            .map_err(|error| PluginError::from_plugin(self.name(), error))?;
        self.check_request("encode", &call.as_request())?;
        let fault = match &call {
            Call::Request(_) => None,
            Call::Steps(step) => step::fault_of_first(step),
            Call::Socket(socket) => socket::fault(socket),
        };
        self.check("encode", fault)?;
        Ok(call)
    }

    /// Returns how to split the reply to such a request into frames.
    pub fn framing(&mut self, streaming: bool) -> Result<Framing, PluginError> {
        let framing = call!(self, "framing", call_framing(streaming))?;
        self.check("framing", step::fault_of_framing(&framing))?;
        Ok(framing)
    }

    /// The state before the first frame of a reply with a success status.
    pub fn begin(&mut self, head: &Head) -> Result<Vec<u8>, PluginError> {
        let state = call!(self, "begin", call_begin(head))?
            .map_err(|error| PluginError::from_plugin(self.name(), error))?;
        self.check_size("begin", "keeps", &state, " of state")?;
        Ok(state)
    }

    /// Decodes a batch of frames of one reply. Returns events in the order of their frames, each
    /// with the index of its frame. After an error, `fold` is unchanged.
    pub fn decode(
        &mut self,
        fold: &mut Fold,
        frames: &mut Frames,
    ) -> Result<Vec<(usize, Meaning)>, PluginError> {
        let mut joined: Frames;
        let frames = if fold.unread.is_empty() {
            frames
        } else {
            joined = frames.clone();
            joined.prepend(&fold.unread);
            &mut joined
        };
        let state = &*fold.state;
        let (bytes, ends, names) = frames.take_parts();
        let crossing = wit::Frames { bytes, ends, names };
        let decoded = call!(self, "decode", call_decode(state, &crossing));
        frames.put_back((crossing.bytes, crossing.ends, crossing.names));
        let decoded = decoded?.map_err(|error| PluginError::from_plugin(self.name(), error))?;
        self.check_size("decode", "keeps", &decoded.state, " of state")?;
        let unread = decoded.unread as usize;
        if unread > 0 {
            self.check_unread(unread, frames.bytes().len(), fold.is_raw)?;
        }
        let mut last = 0;
        for event in &decoded.events {
            let frame = event.frame as usize;
            if frame >= frames.len() || frame < last {
                let all = frames.len();
                let what = format!(
                    "an event names frame {frame} after frame {last} of {all}; events must follow the order of their frames"
                );
                return Err(self.contract("decode", what));
            }
            last = frame;
            let fault = match &event.what {
                Meaning::Carry(bytes) if bytes.len() > STATE_BYTES => Some(format!(
                    "it carries {} bytes to the next request, at most {STATE_BYTES} are allowed",
                    bytes.len()
                )),
                Meaning::Count((name, _)) => usage::wrong_name(name),
                Meaning::CleanUp(request) => fault_of_fields(request),
                Meaning::Timings(timings) => usage::wrong_timing(timings),
                Meaning::Audio(sound) => usage::wrong_length(sound),
                Meaning::Speculation(speculation) => usage::wrong_steps(speculation),
                Meaning::Next(next) => step::fault(next).or_else(|| fault_of_fields(&next.request)),
                Meaning::Send(outgoing) => socket::fault_of_message(outgoing),
                _ => None,
            };
            self.check("decode", fault)?;
        }
        // Events take as much room as these pairs, so they stay where they are.
        let events = decoded.events.into_iter();
        let events = events.map(|event| (event.frame as usize, event.what));
        let events = events.collect();
        fold.state = decoded.state;
        let left = frames.bytes().len() - unread;
        fold.unread = frames.bytes()[left..].to_vec();
        Ok(events)
    }

    fn is_raw(&mut self) -> bool {
        [true, false]
            .into_iter()
            .any(|streaming| matches!(self.framing(streaming), Ok(Framing::Raw)))
    }

    /// Checks that bytes are left only if the framing is raw, and never more than there were.
    fn check_unread(
        &mut self,
        unread: usize,
        given: usize,
        is_raw: Option<bool>,
    ) -> Result<(), PluginError> {
        let is_raw = is_raw.unwrap_or_else(|| self.is_raw());
        let what = if !is_raw {
            format!("it leaves {unread} bytes unread, which only the framing `raw` allows")
        } else if unread > given {
            format!("it leaves {unread} bytes unread of a batch of {given}")
        } else if unread > UNREAD_BYTES {
            format!("it leaves {unread} bytes unread, at most {UNREAD_BYTES} are allowed")
        } else {
            return Ok(());
        };
        Err(self.contract("decode", what))
    }

    pub fn explain(&mut self, status: u16, body: &[u8]) -> Result<Refusal, PluginError> {
        call!(self, "explain", call_explain(status, body))
            .map(|refusal| Refusal { message: clean_text(&refusal.message), ..refusal })
    }

    /// Returns the facts that a user sees before a run, as opened with its configuration.
    pub fn outside(&mut self) -> Result<Outside, PluginError> {
        let default_url = self.default_url()?;
        if let Err(error) = Target::parse(&default_url) {
            return Err(self.contract("default-url", error.to_string()));
        }
        let credentials = self.credentials()?;
        let mut controls = Vec::new();
        for (word, aside) in ASIDES {
            if let Some(request) = self.aside(aside)? {
                controls.push((word, request));
            }
        }
        Ok(Outside { default_url, credentials, controls })
    }

    /// Checks that a request stays below the target's URL and does not set the host's headers.
    fn check_request(&self, call: &'static str, request: &Request) -> Result<(), PluginError> {
        let fault = request::fault_of_path(&request.path).or_else(|| fault_of_fields(request));
        self.check(call, fault)
    }

    /// Checks the size of bytes that the host keeps for the plugin.
    fn check_size(
        &self,
        call: &'static str,
        verb: &str,
        kept: &[u8],
        of: &str,
    ) -> Result<(), PluginError> {
        let bytes = kept.len();
        let fault = (bytes > STATE_BYTES)
            .then(|| format!("it {verb} {bytes} bytes{of}, at most {STATE_BYTES} are allowed"));
        self.check(call, fault)
    }

    fn check(&self, call: &'static str, fault: Option<String>) -> Result<(), PluginError> {
        fault.map_or(Ok(()), |what| Err(self.contract(call, what)))
    }
}
