//! Components built for 0.1.0: what they import, and their types in those of the newest version. Requests
//! for something that 0.1.0 cannot express are errors, never silently dropped.

use wasmtime::component::{HasSelf, Linker, Resource};

use super::super::bindings::backend_world::exports::runner::plugin::backend as newest;
use super::super::bindings::scorer_world::exports::runner::plugin::scorer as newest_scorer;
use super::super::bindings::v0_1::backend_world::exports::runner::plugin::backend;
use super::super::bindings::v0_1::scorer_world::exports::runner::plugin::scorer;
use super::super::bindings::v0_1::{files, log, tokenizer, types};
use super::super::bindings::{self, types as now};
use super::super::sandbox::{Guest, OpenFile};

/// Adds the imports of a 0.1.0 dataset, which include those of every other kind.
///
/// # Errors
/// If two imports have the same name.
pub fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    types::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    log::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    files::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    tokenizer::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)
}

impl types::Host for Guest {}

impl log::Host for Guest {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        use bindings::log::Level;
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        bindings::log::Host::write(self, level, message)
    }
}

impl files::Host for Guest {}

impl files::HostFile for Guest {
    fn open(&mut self, name: String) -> wasmtime::Result<Option<Resource<OpenFile>>> {
        bindings::files::HostFile::open(self, name)
    }

    fn size(&mut self, file: Resource<OpenFile>) -> wasmtime::Result<u64> {
        bindings::files::HostFile::size(self, file)
    }

    fn read(
        &mut self,
        file: Resource<OpenFile>,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, String>> {
        bindings::files::HostFile::read(self, file, offset, length)
    }

    fn drop(&mut self, file: Resource<OpenFile>) -> wasmtime::Result<()> {
        bindings::files::HostFile::drop(self, file)
    }
}

impl tokenizer::Host for Guest {
    fn describe(&mut self) -> wasmtime::Result<tokenizer::Facts> {
        let facts = bindings::tokenizer::Host::describe(self)?;
        Ok(tokenizer::Facts {
            vocabulary_size: facts.vocabulary_size,
            base_size: facts.base_size,
            added_tokens: facts.added_tokens,
            special: facts.special,
            approximate: facts.approximate,
        })
    }

    fn encode(&mut self, texts: Vec<String>, special: bool) -> wasmtime::Result<Vec<Vec<u32>>> {
        bindings::tokenizer::Host::encode(self, texts, special)
    }

    fn count(&mut self, texts: Vec<String>, special: bool) -> wasmtime::Result<Vec<u32>> {
        bindings::tokenizer::Host::count(self, texts, special)
    }

    fn decode(&mut self, tokens: Vec<Vec<u32>>) -> wasmtime::Result<Vec<String>> {
        bindings::tokenizer::Host::decode(self, tokens)
    }
}

impl From<types::Error> for now::Error {
    fn from(error: types::Error) -> Self {
        match error {
            types::Error::InvalidConfig(said) => now::Error::InvalidConfig(said),
            types::Error::InvalidInput(said) => now::Error::InvalidInput(said),
            types::Error::Protocol(said) => now::Error::Protocol(said),
            types::Error::Other(said) => now::Error::Other(said),
        }
    }
}

/// A sample from a dataset.
impl From<types::Sample> for now::Sample {
    fn from(sample: types::Sample) -> Self {
        now::Sample {
            id: sample.id,
            prompt: match sample.prompt {
                types::Prompt::Text(text) => now::Prompt::Text(text),
                types::Prompt::Tokens(tokens) => now::Prompt::Tokens(tokens),
                types::Prompt::Messages(messages) => {
                    now::Prompt::Messages(messages.into_iter().map(Into::into).collect())
                }
            },
            after: Vec::new(),
            recorded_answer: None,
            input_tokens: sample.input_tokens,
            output_tokens: sample.output_tokens,
            reference: sample.reference,
            // Its turns have no numbers: they come in order.
            turn: sample
                .session
                .map(|session| now::Turn { session, index: 0 }),
            class: None,
            arrival: None,
            adapter: None,
            parameters: None,
        }
    }
}

impl From<types::Message> for now::Message {
    fn from(message: types::Message) -> Self {
        now::Message {
            role: match message.role {
                types::Role::System => now::Role::System,
                types::Role::User => now::Role::User,
                types::Role::Assistant => now::Role::Assistant,
                types::Role::Tool => now::Role::Tool,
            },
            parts: vec![now::Part::Text(message.content)],
            extra: None,
        }
    }
}

/// What cannot be passed to a 0.1.0 backend.
fn beyond(what: &str) -> now::Error {
    super::beyond(super::Contract::V0_1, what)
}

/// A sample for a backend.
///
/// # Errors
/// What 0.1.0 cannot express in it.
pub fn sample(sample: &now::Sample, settings: &now::Settings) -> Result<types::Sample, now::Error> {
    if sample.adapter.is_some() {
        return Err(beyond("adapters"));
    }
    Ok(types::Sample {
        id: sample.id.clone(),
        prompt: match &sample.prompt {
            now::Prompt::Text(text) => types::Prompt::Text(text.clone()),
            now::Prompt::Tokens(tokens) => types::Prompt::Tokens(tokens.clone()),
            now::Prompt::Messages(messages) => {
                types::Prompt::Messages(messages.iter().map(message).collect::<Result<_, _>>()?)
            }
            now::Prompt::Continuation(_) | now::Prompt::Embedding(_) | now::Prompt::Ranking(_) => {
                return Err(beyond("prompts of this kind"));
            }
        },
        input_tokens: sample.input_tokens,
        // If only the run sets it, 0.1.0 has no other place for it.
        output_tokens: sample.output_tokens.or(settings.output_tokens),
        reference: sample.reference.clone(),
        session: sample.turn.as_ref().map(|turn| turn.session.clone()),
    })
}

fn message(message: &now::Message) -> Result<types::Message, now::Error> {
    let [now::Part::Text(content)] = message.parts.as_slice() else {
        return Err(beyond("messages of several parts or of anything but text"));
    };
    if message.extra.is_some() {
        return Err(beyond("further fields of messages"));
    }
    Ok(types::Message {
        role: match message.role {
            now::Role::System => types::Role::System,
            now::Role::User => types::Role::User,
            now::Role::Assistant => types::Role::Assistant,
            now::Role::Tool => types::Role::Tool,
            now::Role::Developer => return Err(beyond("role `developer`")),
        },
        content: content.clone(),
    })
}

/// Settings for a backend.
///
/// # Errors
/// What 0.1.0 cannot express in them.
pub fn settings(settings: &now::Settings, of: &now::Sample) -> Result<types::Settings, now::Error> {
    let sampling = &settings.sampling;
    let others = [
        sampling.top_p,
        sampling.min_p,
        sampling.frequency_penalty,
        sampling.presence_penalty,
        sampling.repetition_penalty,
    ];
    if others.iter().any(Option::is_some)
        || sampling.top_k.is_some()
        || sampling.seed.is_some()
        || !sampling.stop.is_empty()
    {
        return Err(beyond(
            "sampling but the temperature (until then, put the server's own fields under extra-body)",
        ));
    }
    if settings.min_output_tokens.is_some() {
        return Err(beyond("minimum number of output tokens"));
    }
    Ok(types::Settings {
        model: settings.model.clone(),
        streaming: settings.streaming,
        ignore_eos: settings.ignore_eos,
        temperature: sampling.temperature,
        extra_body: match (&of.parameters, &settings.extra_body) {
            (Some(_), _) => return Err(beyond("parameters of a single sample")),
            (None, extra) => extra.clone(),
        },
    })
}

impl From<backend::Request> for newest::Request {
    fn from(request: backend::Request) -> Self {
        newest::Request {
            method: request.method,
            path: request.path,
            headers: request.headers,
            body: request.body,
        }
    }
}

impl From<backend::Framing> for newest::Framing {
    fn from(framing: backend::Framing) -> Self {
        match framing {
            backend::Framing::EventStream => newest::Framing::EventStream,
            backend::Framing::Lines => newest::Framing::Lines,
            backend::Framing::Whole => newest::Framing::Whole,
        }
    }
}

impl From<backend::Decoded> for newest::Decoded {
    fn from(decoded: backend::Decoded) -> Self {
        let event = |event: backend::Event| newest::Event {
            frame: event.frame,
            what: event.what.into(),
        };
        newest::Decoded {
            events: decoded.events.into_iter().map(event).collect(),
            state: decoded.state,
            unread: 0,
        }
    }
}

impl From<backend::Meaning> for newest::Meaning {
    fn from(meaning: backend::Meaning) -> Self {
        let output = |piece: backend::Output| newest::Output {
            text: piece.text,
            tokens: piece.tokens,
            choice: 0,
        };
        match meaning {
            backend::Meaning::Opened => newest::Meaning::Opened,
            backend::Meaning::Text(piece) => newest::Meaning::Text(output(piece)),
            backend::Meaning::Reasoning(piece) => newest::Meaning::Reasoning(output(piece)),
            backend::Meaning::ToolCall(piece) => newest::Meaning::ToolCall(output(piece)),
            backend::Meaning::Usage(usage) => newest::Meaning::Usage(newest::Usage {
                input_tokens: usage.input_tokens,
                cached_input_tokens: usage.cached_input_tokens,
                output_tokens: usage.output_tokens,
                reasoning_tokens: usage.reasoning_tokens,
                ..newest::Usage::default()
            }),
            backend::Meaning::Finish(word) => newest::Meaning::Finish(word),
            backend::Meaning::Failure(message) => newest::Meaning::Failure(refusal(message)),
            backend::Meaning::End => newest::Meaning::End,
        }
    }
}

/// Frames for a backend.
pub fn frames(frames: &newest::Frames) -> backend::Frames {
    backend::Frames {
        bytes: frames.bytes.clone(),
        ends: frames.ends.clone(),
        names: frames.names.clone(),
    }
}

/// 0.1.0 does not tell why.
pub fn refusal(message: String) -> newest::Refusal {
    newest::Refusal {
        reason: newest::Reason::Other,
        message,
    }
}

impl From<&newest_scorer::Exchange> for scorer::Exchange {
    fn from(exchange: &newest_scorer::Exchange) -> Self {
        use newest_scorer::CountSource as Source;
        scorer::Exchange {
            id: exchange.id.clone(),
            reference: exchange.reference.clone(),
            requested_tokens: exchange.requested_tokens,
            output: exchange.output.clone(),
            reasoning: exchange.reasoning.clone(),
            output_tokens: exchange.output_tokens.map(|count| scorer::Count {
                tokens: count.tokens,
                source: match count.source {
                    Source::Usage => scorer::CountSource::Usage,
                    Source::Pieces => scorer::CountSource::Pieces,
                    Source::Length => scorer::CountSource::Length,
                    Source::Retokenized => scorer::CountSource::Retokenized,
                },
            }),
            finish: exchange.finish.clone(),
        }
    }
}

impl From<scorer::Score> for newest_scorer::Score {
    fn from(score: scorer::Score) -> Self {
        newest_scorer::Score {
            name: score.name,
            value: score.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> now::Sample {
        now::Sample {
            id: "1".to_owned(),
            prompt: now::Prompt::Messages(vec![now::Message {
                role: now::Role::User,
                parts: vec![now::Part::Text("a".to_owned())],
                extra: None,
            }]),
            after: Vec::new(),
            recorded_answer: None,
            input_tokens: Some(3),
            output_tokens: None,
            reference: None,
            turn: Some(now::Turn {
                session: "s".to_owned(),
                index: 2,
            }),
            class: Some("c".to_owned()),
            arrival: Some(7),
            adapter: None,
            parameters: None,
        }
    }

    fn given_settings() -> now::Settings {
        now::Settings {
            model: "m".to_owned(),
            streaming: true,
            output_tokens: Some(9),
            min_output_tokens: None,
            ignore_eos: false,
            sampling: now::Sampling {
                temperature: Some(0.5),
                ..now::Sampling::default()
            },
            extra_body: None,
        }
    }

    #[test]
    fn what_can_be_said_is_said() {
        let older = sample(&asked(), &given_settings()).unwrap();
        assert_eq!(older.session.as_deref(), Some("s"));
        assert_eq!(
            (older.input_tokens, older.output_tokens),
            (Some(3), Some(9))
        );
        let types::Prompt::Messages(messages) = older.prompt else {
            panic!("it was a conversation");
        };
        assert_eq!(messages[0].content, "a");
        assert_eq!(
            settings(&given_settings(), &asked()).unwrap().temperature,
            Some(0.5)
        );
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        type Change = fn(&mut now::Sample, &mut now::Settings);
        let picture = || now::Media {
            media_type: "image/png".to_owned(),
            bytes: Vec::new(),
        };
        let changes: [(Change, &str); 7] = [
            (|asked, _| asked.adapter = Some("l".to_owned()), "adapters"),
            (
                |asked, _| asked.parameters = Some("{}".to_owned()),
                "parameters",
            ),
            (|_, told| told.sampling.top_k = Some(3), "temperature"),
            (
                |_, told| told.sampling.stop = vec!["x".to_owned()],
                "temperature",
            ),
            (|_, told| told.min_output_tokens = Some(3), "minimum number"),
            (
                |asked, _| {
                    let now::Prompt::Messages(messages) = &mut asked.prompt else {
                        return;
                    };
                    messages[0].role = now::Role::Developer;
                },
                "developer",
            ),
            (
                |asked, _| {
                    let now::Prompt::Messages(messages) = &mut asked.prompt else {
                        return;
                    };
                    messages[0].extra = Some("{}".to_owned());
                },
                "further fields",
            ),
        ];
        let refused = |asked: &now::Sample, told: &now::Settings| {
            let translated = sample(asked, told).and_then(|_| settings(told, asked));
            match translated.map(|_| ()) {
                Err(now::Error::InvalidConfig(said)) => said,
                other => panic!("it was translated: {other:?}"),
            }
        };
        for (change, what) in changes {
            let (mut asked, mut told) = (asked(), given_settings());
            change(&mut asked, &mut told);
            let said = refused(&asked, &told);
            assert!(said.contains(what) && said.contains("0.3.0"), "{said}");
        }
        let mut shown = asked();
        shown.prompt = now::Prompt::Messages(vec![now::Message {
            role: now::Role::User,
            parts: vec![now::Part::Image(picture())],
            extra: None,
        }]);
        assert!(refused(&shown, &given_settings()).contains("anything but text"));
    }
}
