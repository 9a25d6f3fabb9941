//! The trait of a backend, and its adapter to the component model: state as bytes, batches as
//! single frames.

use std::cell::Cell;

use postcard::ser_flavors::Flavor;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::backend as wit;
use crate::dialect::{explain, openai};
use crate::{Authentication, Call, Control, Credentials, Earlier, Error, Framing, Head, Hmac};
use crate::{
    Meaning, Outgoing, Prepared, Reading, Refusal, Request, Sample, ServedModel, Settings, Step,
    Token, Usage,
};
use crate::{config, export};

/// One unit of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'f> {
    /// The event's name, if the framing has one.
    pub name: Option<&'f str>,
    /// Its bytes.
    pub data: &'f [u8],
}

/// Nothing counted: a backend names the counts that its server reports, and `..Usage::default()`.
impl Default for Usage {
    fn default() -> Self {
        Usage {
            input_tokens: None,
            cached_input_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            draft_tokens: None,
            accepted_draft_tokens: None,
            input_image_tokens: None,
            input_video_tokens: None,
            input_audio_tokens: None,
            output_audio_tokens: None,
        }
    }
}

impl Usage {
    /// The event of the tokens of prompt and answer; absent if the server counts neither.
    pub fn counted(input_tokens: Option<u32>, output_tokens: Option<u32>) -> Option<Meaning> {
        let counts = input_tokens.is_some() || output_tokens.is_some();
        counts.then_some(Meaning::Usage(Usage { input_tokens, output_tokens, ..Usage::default() }))
    }
}

/// The API of an engine: how to write requests and read replies. It never sees the time; the host
/// has timestamped every frame before it is decoded.
pub trait Backend: Sized + 'static {
    /// The user's configuration.
    type Config: DeserializeOwned + JsonSchema;

    /// State that decoding a reply keeps from one frame to the next; `()` if it keeps nothing. At
    /// most 64 KiB when serialised, so do not store the answer's text.
    type State: Default + Serialize + DeserializeOwned;

    /// Opens the backend. The host opens one per thread and uses them interchangeably.
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// The engine's default URL, such as `http://127.0.0.1:8000`.
    fn default_url(&self) -> String;

    /// The request for something other than inference, if supported. The default supports nothing.
    fn control(&self, control: Control) -> Option<Request> {
        let _ = control;
        None
    }

    /// Returns the way in which requests are authenticated, and the place where people keep the
    /// key. The host adds the key; a plugin never sees it. The default is a bearer token from the
    /// variable that most clients read, `OPENAI_API_KEY`.
    ///
    /// The host reads a variable named here if its name ends in `_API_KEY`: a plugin does not
    /// choose among the user's secrets. The user names others with `--api-key-env`.
    fn credentials(&self) -> Credentials {
        Credentials::bearer("OPENAI_API_KEY")
    }

    /// The models in an answer to [`Control::ListModels`]. The default reads the OpenAI API's list.
    fn read_models(&self, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
        openai::read_models(body)
    }

    /// The figures in a successful answer to [`Control::Metrics`], without figures that the engine
    /// does not report. The default returns none.
    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        let _ = body;
        Ok(Vec::new())
    }

    /// Returns the request to each target before the first sample's, if [`encode`](Self::encode)
    /// needs a value of its reply, such as a workspace or an id. The default needs nothing.
    fn prepare(&self) -> Option<Request> {
        None
    }

    /// Reads a successful reply to [`prepare`](Self::prepare): the value of [`Settings::prepared`]
    /// in every later request. The default takes the whole reply, for good.
    fn read_prepared(&self, body: &[u8]) -> Result<Prepared, Error> {
        Ok(Prepared { value: body.to_vec(), lifetime: None })
    }

    /// Writes the request for a sample. Pure: the same sample and settings give the same bytes. A
    /// backend whose [`start`](Self::start) writes another exchange needs none.
    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let _ = (sample, settings);
        let message = "this backend writes no single request, and does not start anything else";
        Err(Error::Other(message.to_owned()))
    }

    /// Writes the request for a sample that continues a conversation whose last reply had a
    /// [carry](Meaning::Carry), such as the server's own id of the conversation. The default
    /// ignores that and sends the whole history.
    fn encode_next(
        &self,
        sample: &Sample,
        settings: &Settings,
        earlier: &Earlier,
    ) -> Result<Request, Error> {
        let _ = earlier;
        self.encode(sample, settings)
    }

    /// Writes the exchange for a sample if it is more than one request: the first of several
    /// ([`Call::Steps`]), or messages over a WebSocket ([`Call::Socket`]). The default is a single
    /// request: [`encode`](Self::encode) or [`encode_next`](Self::encode_next) writes it.
    fn start(
        &self,
        sample: &Sample,
        settings: &Settings,
        earlier: Option<&Earlier>,
    ) -> Result<Call, Error> {
        let request = match earlier {
            None => self.encode(sample, settings),
            Some(earlier) => self.encode_next(sample, settings, earlier),
        };
        request.map(Call::Request)
    }

    /// Returns the way to split the reply to one request into frames. The default is an event
    /// stream if the reply is streamed.
    fn framing(&self, streaming: bool) -> Framing {
        openai::framing(streaming)
    }

    /// The state before the first frame of a successful reply. The default looks at nothing.
    fn begin(&self, head: &Head) -> Result<Self::State, Error> {
        let _ = head;
        Ok(Self::State::default())
    }

    /// Appends the events of one frame. Pure except for `state`, which belongs to the reply.
    fn decode(
        &self,
        state: &mut Self::State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error>;

    /// Returns the number of unread bytes at the end of the decoded frame, with which the next
    /// frame begins. Only for [`Framing::Raw`]; the default has read everything.
    fn unread(&self, state: &Self::State) -> usize {
        let _ = state;
        0
    }

    /// The error in a reply with an error status. The default uses [`explain::refusal`], which
    /// knows the formats that engines and proxies use.
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

/// Bytes that a state is written to, each string in one piece.
struct StateBytes(Vec<u8>);

impl Flavor for StateBytes {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// Writes a reply's state over the previous one; of the same length, nothing is allocated.
pub(crate) fn freeze<S: Serialize>(state: &S, mut before: Vec<u8>) -> Result<Vec<u8>, Error> {
    before.clear();
    postcard::serialize_with_flavor(state, StateBytes(before))
        .map_err(|error| Error::Other(format!("the reply's state cannot be written: {error}")))
}

/// Decodes a batch of frames for the component's `decode`. `meanings` is room for one frame's.
pub(crate) fn decode_batch<'f, B: Backend>(
    backend: &B,
    frozen: Vec<u8>,
    frames: impl ExactSizeIterator<Item = Frame<'f>>,
    meanings: &mut Vec<Meaning>,
) -> Result<wit::Decoded, Error> {
    let mut state: B::State = thaw(&frozen)?;
    let mut events = Vec::with_capacity(frames.len() + 2);
    let mut unread: Vec<u8> = Vec::new();
    for (index, frame) in frames.enumerate() {
        let joined: Vec<u8>;
        let frame = if unread.is_empty() {
            frame
        } else {
            joined = [&unread[..], frame.data].concat();
            Frame { data: &joined, ..frame }
        };
        backend.decode(&mut state, &frame, meanings)?;
        let left = backend.unread(&state).min(frame.data.len());
        if left > 0 || !unread.is_empty() {
            unread = frame.data[frame.data.len() - left..].to_vec();
        }
        let event = |what| wit::Event { frame: index as u32, what };
        // Most frames mean one thing, which takes less to move alone.
        if meanings.len() == 1 {
            events.extend(meanings.pop().map(event));
        } else {
            events.extend(meanings.drain(..).map(event));
        }
    }
    Ok(wit::Decoded {
        events,
        state: freeze(&state, frozen)?,
        unread: u32::try_from(unread.len()).unwrap_or(u32::MAX),
    })
}

fn each(batch: &wit::Frames) -> impl ExactSizeIterator<Item = Frame<'_>> {
    let mut start = 0;
    let mut names = batch.names.iter().peekable();
    batch.ends.iter().enumerate().map(move |(index, end)| {
        let data = &batch.bytes[start..*end as usize];
        start = *end as usize;
        let name = names.next_if(|(of, _)| *of as usize == index);
        Frame { name: name.map(|(_, name)| name.as_str()), data }
    })
}

impl Credentials {
    /// A bearer token, which people keep in this variable.
    pub fn bearer(variable: &str) -> Self {
        Credentials::new(Authentication::Bearer).kept_in(variable)
    }

    /// The key alone in this header, such as `x-api-key`; people keep the key in this variable.
    pub fn header(name: &str, variable: &str) -> Self {
        Credentials::new(Authentication::Header(name.to_owned())).kept_in(variable)
    }

    /// AWS Signature Version 4 for a service, such as `bedrock`, with the key of AWS's own tools.
    pub fn sigv4(service: &str) -> Self {
        Credentials::new(Authentication::Sigv4(service.to_owned()))
    }

    /// A signature by HMAC with a key from this variable, whose value is `SECRET` or `ID:SECRET`.
    pub fn hmac(hmac: Hmac, variable: &str) -> Self {
        Credentials::new(Authentication::Hmac(hmac)).kept_in(variable)
    }

    /// A token that the server gives for the `SECRET` or `ID:SECRET` in this variable.
    pub fn token(token: Token, variable: &str) -> Self {
        Credentials::new(Authentication::Token(token)).kept_in(variable)
    }

    /// Requests without a key.
    pub fn none() -> Self {
        Credentials::new(Authentication::None)
    }

    /// This way, with a key from no usual variable.
    pub fn new(scheme: Authentication) -> Self {
        Credentials { scheme, variable: None, cookies: false }
    }

    fn kept_in(self, variable: &str) -> Self {
        Credentials { variable: Some(variable.to_owned()), ..self }
    }

    /// Has the host keep the cookies of each conversation.
    #[must_use]
    pub fn with_cookies(self) -> Self {
        Credentials { cookies: true, ..self }
    }
}

impl Step {
    /// Sends this at once, and reads its reply in this way.
    pub fn new(request: Request, framing: Framing) -> Self {
        Step { request, framing, delay: 0, accepted: Vec::new(), context: Vec::new() }
    }

    /// Sends it this many nanoseconds after the end of the previous reply.
    #[must_use]
    pub fn after(self, delay: u64) -> Self {
        Step { delay, ..self }
    }

    /// Takes replies of these statuses for answers too.
    #[must_use]
    pub fn accepting(self, statuses: &[u16]) -> Self {
        Step { accepted: statuses.to_vec(), ..self }
    }

    /// Gives this to [`Backend::begin`] when its reply begins, as the head's context.
    #[must_use]
    pub fn with_context(self, context: Vec<u8>) -> Self {
        Step { context, ..self }
    }
}

impl Outgoing {
    /// A text message, to be sent at once.
    pub fn text(text: impl Into<String>) -> Self {
        Outgoing { message: crate::SocketMessage::Text(text.into()), delay: 0, hold: false }
    }

    /// A binary message, to be sent at once.
    pub fn binary(bytes: Vec<u8>) -> Self {
        Outgoing { message: crate::SocketMessage::Binary(bytes), delay: 0, hold: false }
    }

    /// Sends it this many nanoseconds after the previous message's due time.
    #[must_use]
    pub fn after(self, delay: u64) -> Self {
        Outgoing { delay, ..self }
    }

    /// Holds it until a frame means [`Meaning::Proceed`].
    #[must_use]
    pub fn held(self) -> Self {
        Outgoing { hold: true, ..self }
    }
}

/// An opened backend as the component's `codec`.
pub struct Codec<B> {
    backend: B,
    /// Room for the meanings of a frame, empty between two calls.
    meanings: Cell<Vec<Meaning>>,
}

impl<B: Backend> wit::GuestCodec for Codec<B> {
    fn open(config: String) -> Result<wit::Codec, Error> {
        export::hook_panics();
        Ok(wit::Codec::new(Codec {
            backend: B::open(config::parse(&config)?)?,
            meanings: Cell::default(),
        }))
    }

    fn default_url(&self) -> String {
        self.backend.default_url()
    }

    fn control(&self, control: Control) -> Option<Request> {
        self.backend.control(control)
    }

    fn credentials(&self) -> Credentials {
        self.backend.credentials()
    }

    fn read_models(&self, body: Vec<u8>) -> Result<Vec<ServedModel>, Error> {
        self.backend.read_models(&body)
    }

    fn read_metrics(&self, body: Vec<u8>) -> Result<Vec<Reading>, Error> {
        self.backend.read_metrics(&body)
    }

    fn prepare(&self) -> Option<Request> {
        self.backend.prepare()
    }

    fn read_prepared(&self, body: Vec<u8>) -> Result<Prepared, Error> {
        self.backend.read_prepared(&body)
    }

    fn encode(
        &self,
        sample: Sample,
        settings: Settings,
        earlier: Option<Earlier>,
    ) -> Result<Call, Error> {
        self.backend.start(&sample, &settings, earlier.as_ref())
    }

    fn framing(&self, streaming: bool) -> Framing {
        self.backend.framing(streaming)
    }

    fn begin(&self, head: Head) -> Result<Vec<u8>, Error> {
        freeze(&self.backend.begin(&head)?, Vec::new())
    }

    fn decode(&self, state: Vec<u8>, frames: wit::Frames) -> Result<wit::Decoded, Error> {
        let mut meanings = self.meanings.take();
        let decoded = decode_batch(&self.backend, state, each(&frames), &mut meanings);
        meanings.clear();
        self.meanings.set(meanings);
        decoded
    }

    fn explain(&self, status: u16, body: Vec<u8>) -> Refusal {
        self.backend.explain(status, &body)
    }
}
