//! The trait of a backend, and its meeting with the component model: state as bytes, batches as single
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
    /// The event's name, where the framing has one.
    pub name: Option<&'f str>,
    /// Its bytes.
    pub data: &'f [u8],
}

/// A server's dialect: how to ask it and how to read its replies. It never learns the time; the host has
/// stamped every frame before it is decoded.
pub trait Backend: Sized + 'static {
    /// What the user may set.
    type Config: DeserializeOwned + JsonSchema;

    /// What one reply's decoding must remember from one frame to the next; `()` where that is nothing.
    /// At most 64 KiB when serialised, so not the answer's text.
    type State: Default + Serialize + DeserializeOwned;

    /// Opens the dialect. The host opens as many as it has threads and uses them interchangeably.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] where settings contradict each other.
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// Where this engine listens when nobody says otherwise, such as `http://127.0.0.1:8000`.
    fn default_url(&self) -> String;

    /// The request that asks a server for something beside answers, where the engine knows such a thing. As it
    /// stands, it knows none.
    fn control(&self, what: Control) -> Option<Request> {
        let _ = what;
        None
    }

    /// The model names in a successful answer to [`Control::ListModels`]. As it stands, the OpenAI API's.
    ///
    /// # Errors
    /// [`Error::Protocol`] where the answer is none.
    fn read_models(&self, body: &[u8]) -> Result<Vec<String>, Error> {
        openai::read_models(body)
    }

    /// The figures in a successful answer to [`Control::Metrics`]; those that the engine does not tell are left
    /// out. As it stands, there are none.
    ///
    /// # Errors
    /// [`Error::Protocol`] where the answer is none.
    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        let _ = body;
        Ok(Vec::new())
    }

    /// Writes the request for a sample. Pure: the same sample and settings give the same bytes.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] where this dialect cannot ask such a thing.
    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error>;

    /// How to cut the reply to such a request. As it stands, an event stream where it is streamed.
    fn framing(&self, streaming: bool) -> Framing {
        openai::framing(streaming)
    }

    /// Appends what one frame means. Pure but for `state`, which is the reply's own.
    ///
    /// # Errors
    /// [`Error::Protocol`] where the frame is not in this dialect.
    fn decode(
        &self,
        state: &mut Self::State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error>;

    /// What a reply with an error status says. As it stands, what [`explain::refusal`] makes of the shapes that
    /// engines and proxies give their errors.
    fn explain(&self, status: u16, body: &[u8]) -> Refusal {
        explain::refusal(status, body)
    }
}

/// Reads a reply's state; no bytes are the state of a reply that has not begun.
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
