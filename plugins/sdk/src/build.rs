//! Constructors for the contract's records, whose many fields mostly stay empty.

use std::cell::RefCell;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::bindings::scorer as wit;
use crate::inputs::HostTokenizer;
use crate::{
    Body, Continuation, Dependency, Error, Exchange, Media, Message, Output, Part, Point, Prompt,
    Request, Role, Sample, Sampling, Score, ServedModel, Settings, Tokenizer, config, export,
};

impl Sample {
    /// A sample with only an id and a prompt. Set further fields on it, or with
    /// `Sample { output_tokens: Some(64), ..Sample::new(id, prompt) }`.
    pub fn new(id: impl Into<String>, prompt: Prompt) -> Self {
        Sample {
            id: id.into(),
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

    /// The next turn of a conversation, due `delay` nanoseconds after the reply to `parent` ends.
    pub fn following(
        id: impl Into<String>,
        parent: &str,
        delay: u64,
        messages: Vec<Message>,
    ) -> Self {
        let continuation = Continuation { parent: parent.to_owned(), messages };
        Sample {
            after: vec![Dependency::end(parent, delay)],
            ..Sample::new(id, Prompt::Continuation(continuation))
        }
    }

    /// Roughly its size in bytes: prompt, recorded answer and fields. A dataset's list of samples
    /// is limited, so a dataset with large samples returns fewer at [`ENOUGH`](crate::ENOUGH).
    pub fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        let message = |message: &Message| -> usize {
            let parts = message.parts.iter().map(|part| match part {
                Part::Text(text) => text.len(),
                Part::Image(media) | Part::Audio(media) | Part::Video(media) => media.bytes.len(),
                Part::Answer(_) => 0,
            });
            parts.sum::<usize>() + message.extra.as_ref().map_or(0, String::len)
        };
        let messages = |messages: &[Message]| messages.iter().map(message).sum::<usize>();
        let prompt = match &self.prompt {
            Prompt::Text(text) => text.len(),
            Prompt::Tokens(ids) => 4 * ids.len(),
            Prompt::Messages(_) | Prompt::Continuation(_) => messages(self.prompt.messages()),
            Prompt::Embedding(each) => texts(each),
            Prompt::Ranking(candidates) => candidates.query.len() + texts(&candidates.documents),
        };
        let beside = [&self.reference, &self.parameters];
        let beside = beside.into_iter().flatten().map(String::len);
        prompt + messages(self.recorded_answer.as_slice()) + beside.sum::<usize>()
    }
}

impl Prompt {
    /// Names its content, for messages: `texts to embed`.
    pub fn kind(&self) -> &'static str {
        match self {
            Prompt::Text(_) => "text",
            Prompt::Messages(_) => "conversations",
            Prompt::Tokens(_) => "token ids",
            Prompt::Continuation(_) => "the next messages of conversations",
            Prompt::Embedding(_) => "texts to embed",
            Prompt::Ranking(_) => "texts to rank",
        }
    }

    /// The messages that it sends; none of a prompt that is no conversation.
    pub fn messages(&self) -> &[Message] {
        match self {
            Prompt::Messages(messages) => messages,
            Prompt::Continuation(continuation) => &continuation.messages,
            _ => &[],
        }
    }
}

impl Dependency {
    /// On the end of the reply to a sample, and this long after it, in nanoseconds.
    pub fn end(sample: impl Into<String>, delay: u64) -> Self {
        Dependency { sample: sample.into(), point: Point::End, delay }
    }
}

impl Output {
    /// A piece of the first answer, without a count of its tokens.
    pub fn text(text: impl Into<String>) -> Self {
        Output { text: text.into(), tokens: None, choice: 0 }
    }

    /// The same of a text that is there and not empty: servers send an empty one with a role.
    pub fn some(text: Option<String>) -> Option<Self> {
        text.filter(|text| !text.is_empty()).map(Self::text)
    }
}

impl ServedModel {
    /// A model with only its name known.
    pub fn named(name: impl Into<String>) -> Self {
        ServedModel { name: name.into(), root: None, context_tokens: None }
    }
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Message { role, parts: vec![Part::Text(text.into())], extra: None }
    }
}

impl Media {
    /// The content of a `data:` URL of base64, such as `data:image/png;base64,iVBORw0KGgo=`.
    pub fn of_data_url(url: &str) -> Option<Self> {
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        let media_type = head.strip_suffix(";base64")?;
        Some(Media { media_type: media_type.to_owned(), bytes: bytes_of_base64(data)? })
    }

    /// Content from base64, with padding or without; `None` if it is not base64.
    pub fn of_base64(media_type: impl Into<String>, text: &str) -> Option<Self> {
        Some(Media { media_type: media_type.into(), bytes: bytes_of_base64(text)? })
    }

    /// The bytes in base64, with padding.
    pub fn base64(&self) -> String {
        BASE64.encode(&self.bytes)
    }

    /// The content as a `data:` URL, the form in which engines accept images inside JSON.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.base64())
    }
}

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

impl Settings {
    /// Settings of whole replies, with everything else left to the server.
    pub fn new(model: &str) -> Self {
        Settings {
            model: model.to_owned(),
            streaming: false,
            output_tokens: None,
            min_output_tokens: None,
            ignore_eos: false,
            sampling: Sampling::default(),
            extra_body: None,
            prepared: Vec::new(),
            further: None,
        }
    }

    /// The model name to send: the sample's adapter if it has one, otherwise the model.
    pub fn model_for<'a>(&'a self, sample: &'a Sample) -> &'a str {
        sample.adapter.as_deref().unwrap_or(&self.model)
    }

    /// Output tokens to request: the sample's value, otherwise the run's.
    pub fn output_tokens_for(&self, sample: &Sample) -> Option<u32> {
        sample.output_tokens.or(self.output_tokens)
    }

    /// Lays overrides over a body: the sample's parameters, and then the user's `extra-body`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] and [`Error::InvalidConfig`] if one of them is not a JSON object.
    pub fn lay_over(&self, body: &mut Body, sample: &Sample) -> Result<(), Error> {
        body.merge(sample.parameters.as_deref()).map_err(|error| {
            let Error::InvalidConfig(message) = error else { return error };
            Error::InvalidInput(format!("the parameters of sample {}: {message}", sample.id))
        })?;
        body.merge(self.extra_body.as_deref()).map_err(|error| {
            let Error::InvalidConfig(message) = error else { return error };
            Error::InvalidConfig(format!("key `extra-body`: {message}"))
        })?;
        Ok(())
    }
}

impl Request {
    /// A GET request for a path.
    pub fn get(path: impl Into<String>) -> Self {
        Request {
            method: "GET".to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A POST request without a body, which triggers an action of the server.
    pub fn post(path: impl Into<String>) -> Self {
        Request { method: "POST".to_owned(), ..Request::get(path) }
    }

    /// A DELETE request for a path.
    pub fn delete(path: impl Into<String>) -> Self {
        Request { method: "DELETE".to_owned(), ..Request::get(path) }
    }

    /// A name as one segment of a path: everything but letters, digits and `-._~` is
    /// percent-encoded (RFC 3986).
    pub fn segment(name: &str) -> String {
        let encoded = |byte: u8| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        };
        name.bytes().map(encoded).collect()
    }

    /// Adds a header field; its name is in lower case.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A POST request with a JSON body.
    pub fn json(path: impl Into<String>, body: &Body) -> Self {
        Request {
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_bytes(),
            ..Request::post(path)
        }
    }
}

impl Error {
    /// The mistake in a configuration: [`Error::InvalidConfig`].
    pub fn config(message: impl Into<String>) -> Self {
        Error::InvalidConfig(message.into())
    }

    /// The mistake in a file or a sample: [`Error::InvalidInput`].
    pub fn input(message: impl Into<String>) -> Self {
        Error::InvalidInput(message.into())
    }
}

/// Base64 as in RFC 4648; input may lack its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes of base64 as in RFC 4648, with padding or without; `None` if it is not base64.
pub(crate) fn bytes_of_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// Scores answers. It reads the records after the run, so it cannot disturb the measurement.
pub trait Scorer: Sized + 'static {
    /// The user's configuration.
    type Config: DeserializeOwned + JsonSchema;

    /// Opens the scorer.
    fn open(config: Self::Config, tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error>;

    /// Scores of one exchange; none if it cannot be scored. The host computes the mean of each.
    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error>;

    /// Scores of the run as a whole, for measures that are not a mean.
    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        Ok(Vec::new())
    }
}

/// An opened scorer as the component's `judge`.
pub struct Judge<S>(RefCell<S>);

impl<S: Scorer> wit::GuestJudge for Judge<S> {
    fn open(config: String) -> Result<wit::Judge, Error> {
        export::hook_panics();
        let scorer = S::open(config::parse(&config)?, Box::new(HostTokenizer))?;
        Ok(wit::Judge::new(Judge(RefCell::new(scorer))))
    }

    fn score(&self, exchange: Exchange) -> Result<Vec<Score>, Error> {
        self.0.borrow_mut().score(&exchange)
    }

    fn finish(&self) -> Result<Vec<Score>, Error> {
        self.0.borrow_mut().finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_become_data_urls() {
        let url = |bytes: &[u8]| {
            let media = Media { media_type: "image/png".to_owned(), bytes: bytes.to_vec() };
            media.data_url()
        };
        assert_eq!(url(b""), "data:image/png;base64,");
        assert_eq!(url(b"f"), "data:image/png;base64,Zg==");
        assert_eq!(url(b"fo"), "data:image/png;base64,Zm8=");
        assert_eq!(url(b"foo"), "data:image/png;base64,Zm9v");
        assert_eq!(url(b"\xff\xfe\xfd\xfc"), "data:image/png;base64,//79/A==");
    }

    #[test]
    fn names_become_segments_of_a_path() {
        assert_eq!(Request::segment("claude-3_a.b~c"), "claude-3_a.b~c");
        assert_eq!(Request::segment("nova:0/é?"), "nova%3A0%2F%C3%A9%3F");
    }

    #[test]
    fn data_urls_become_pictures() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm8", b"fo"),
            ("Zm9v", b"foo"),
            ("+/8A", &[0xfb, 0xff, 0]),
        ] {
            let media = Media::of_data_url(&format!("data:image/png;base64,{text}"));
            let media = media.map(|media| (media.media_type, media.bytes));
            assert_eq!(media, Some(("image/png".to_owned(), bytes.to_vec())));
        }
        for url in [
            "data:image/png;base64,Z",
            "data:image/png;base64,Zm9vZ",
            "data:image/png;base64,Zm9-",
            "data:image/png;base64,Z m8",
            "data:text/plain,a",
            "https://example.org/a.png",
        ] {
            assert!(Media::of_data_url(url).is_none(), "{url}");
        }
    }

    #[test]
    fn the_user_overrides_the_sample_and_the_sample_the_plugin() {
        let mut sample = Sample::new("1", Prompt::Text("a".to_owned()));
        let mut settings = Settings {
            streaming: true,
            extra_body: Some(r#"{"c":3}"#.to_owned()),
            ..Settings::new("m")
        };
        sample.parameters = Some(r#"{"b":2,"c":2}"#.to_owned());
        let mut body = Body::new();
        body.set("a", 1).set("b", 1);
        settings.lay_over(&mut body, &sample).unwrap();
        assert_eq!(body.to_bytes(), br#"{"a":1,"b":2,"c":3}"#);
        sample.parameters = Some("[]".to_owned());
        let error = settings.lay_over(&mut body, &sample).unwrap_err();
        assert!(matches!(error, Error::InvalidInput(message) if message.contains("sample 1")));
        sample.parameters = None;
        settings.extra_body = Some("[]".to_owned());
        let error = settings.lay_over(&mut body, &sample).unwrap_err();
        assert!(matches!(error, Error::InvalidConfig(message) if message.contains("extra-body")));
    }
}
