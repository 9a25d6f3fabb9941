//! The trait of a backend, and its adapter to the component model: state as bytes, batches as single
//! frames.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::backend as wit;
use crate::dialect::{explain, openai};
use crate::{Control, Error, Framing, Meaning, Reading, Refusal, Request, Sample, Settings};
use crate::{config, export};

/// One unit of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'f> {
    /// The event's name, if the framing has one.
    pub name: Option<&'f str>,
    /// Its bytes.
    pub data: &'f [u8],
}

/// The API of an engine: how to write requests and read replies. It never sees the time; the host has
/// timestamped every frame before it is decoded.
pub trait Backend: Sized + 'static {
    /// The user's configuration.
    type Config: DeserializeOwned + JsonSchema;

    /// What decoding a reply must remember from one frame to the next; `()` if nothing.
    /// At most 64 KiB when serialised, so do not store the answer's text.
    type State: Default + Serialize + DeserializeOwned;

    /// Opens the backend. The host opens one per thread and uses them interchangeably.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if settings contradict each other.
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// The engine's default URL, such as `http://127.0.0.1:8000`.
    fn default_url(&self) -> String;

    /// The request for something other than inference, if the engine supports it. The default supports
    /// nothing.
    fn control(&self, what: Control) -> Option<Request> {
        let _ = what;
        None
    }

    /// The model names in a successful answer to [`Control::ListModels`]. The default reads the OpenAI API's list.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the answer cannot be parsed.
    fn read_models(&self, body: &[u8]) -> Result<Vec<String>, Error> {
        openai::read_models(body)
    }

    /// The figures in a successful answer to [`Control::Metrics`], without those that the engine does not
    /// report. The default returns none.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the answer cannot be parsed.
    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        let _ = body;
        Ok(Vec::new())
    }

    /// Writes the request for a sample. Pure: the same sample and settings give the same bytes.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if this engine does not support such a request.
    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error>;

    /// How to split the reply into frames. The default is an event stream if the reply is streamed.
    fn framing(&self, streaming: bool) -> Framing {
        openai::framing(streaming)
    }

    /// Appends the events of one frame. Pure except for `state`, which belongs to the reply.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the frame is not in this engine's format.
    fn decode(
        &self,
        state: &mut Self::State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error>;

    /// The error in a reply with an error status. The default uses [`explain::refusal`], which knows the formats that
    /// engines and proxies use.
    fn explain(&self, status: u16, body: &[u8]) -> Refusal {
        explain::refusal(status, body)
    }
}

/// Reads a reply's state; empty bytes are the state of a reply that has not begun.
pub(crate) fn thaw<S: Default + DeserializeOwned>(bytes: &[u8]) -> Result<S, Error> {
    if bytes.is_empty() {
        return Ok(S::default());
    }
    postcard::from_bytes(bytes)
        .map_err(|error| Error::Other(format!("the reply's state does not read back: {error}")))
}

/// Writes a reply's state.
pub(crate) fn freeze<S: Serialize>(state: &S) -> Result<Vec<u8>, Error> {
    postcard::to_allocvec(state)
        .map_err(|error| Error::Other(format!("the reply's state cannot be written: {error}")))
}

/// Decodes a batch of frames: what the component's `decode` does.
pub(crate) fn decode_batch<'f, B: Backend>(
    backend: &B,
    state: &[u8],
    frames: impl ExactSizeIterator<Item = Frame<'f>>,
) -> Result<wit::Decoded, Error> {
    let mut state: B::State = thaw(state)?;
    let mut events = Vec::with_capacity(frames.len() + 2);
    let mut meanings = Vec::new();
    for (index, frame) in frames.enumerate() {
        backend.decode(&mut state, &frame, &mut meanings)?;
        events.extend(meanings.drain(..).map(|what| wit::Event {
            frame: index as u32,
            what,
        }));
    }
    Ok(wit::Decoded {
        events,
        state: freeze(&state)?,
    })
}

/// The frames of a batch, one by one.
fn each(batch: &wit::Frames) -> impl ExactSizeIterator<Item = Frame<'_>> {
    let mut start = 0;
    let mut names = batch.names.iter().peekable();
    batch.ends.iter().enumerate().map(move |(index, end)| {
        let data = &batch.bytes[start..*end as usize];
        start = *end as usize;
        let name = names.next_if(|(of, _)| *of as usize == index);
        Frame {
            name: name.map(|(_, name)| name.as_str()),
            data,
        }
    })
}

/// An opened backend as the component's `codec`.
pub struct Codec<B>(B);

impl<B: Backend> wit::GuestCodec for Codec<B> {
    fn open(config: String) -> Result<wit::Codec, Error> {
        export::hook_panics();
        Ok(wit::Codec::new(Codec(B::open(config::parse(&config)?)?)))
    }

    fn default_url(&self) -> String {
        self.0.default_url()
    }

    fn control(&self, what: Control) -> Option<Request> {
        self.0.control(what)
    }

    fn read_models(&self, body: Vec<u8>) -> Result<Vec<String>, Error> {
        self.0.read_models(&body)
    }

    fn read_metrics(&self, body: Vec<u8>) -> Result<Vec<Reading>, Error> {
        self.0.read_metrics(&body)
    }

    fn encode(&self, sample: Sample, settings: Settings) -> Result<Request, Error> {
        self.0.encode(&sample, &settings)
    }

    fn framing(&self, streaming: bool) -> Framing {
        self.0.framing(streaming)
    }

    fn decode(&self, state: Vec<u8>, frames: wit::Frames) -> Result<wit::Decoded, Error> {
        decode_batch(&self.0, &state, each(&frames))
    }

    fn explain(&self, status: u16, body: Vec<u8>) -> Refusal {
        self.0.explain(status, &body)
    }
}
