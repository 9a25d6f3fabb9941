//! Components built for 0.2.0: what they import, and their types in those of the newest version. Requests for
//! something that 0.2.0 cannot express are errors, never silently dropped.

use wasmtime::component::{HasSelf, Linker, Resource};

use super::super::bindings::backend_world::exports::runner::plugin::backend as newest;
use super::super::bindings::dataset_world::exports::runner::plugin::dataset::Amount;
use super::super::bindings::scorer_world::exports::runner::plugin::scorer as newest_scorer;
use super::super::bindings::v0_2::backend_world::exports::runner::plugin::backend;
use super::super::bindings::v0_2::scorer_world::exports::runner::plugin::scorer;
use super::super::bindings::v0_2::{files, log, tokenizer, types};
use super::super::bindings::{self, types as now};
use super::super::sandbox::{Guest, OpenFile};

/// Adds the imports of a 0.2.0 dataset, which include those of every other kind.
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

/// The number of samples that an older dataset knows by `count`: its samples do not depend on each other, so each of
/// them is a session.
pub fn count(amount: Amount) -> Option<u64> {
    match amount {
        Amount::Samples(count) | Amount::Sessions(count) => Some(count),
        Amount::Unknown => None,
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
            turn: sample.turn.map(|turn| now::Turn {
                session: turn.session,
                index: turn.index,
            }),
            class: sample.class,
            arrival: sample.arrival,
            adapter: sample.adapter,
            parameters: sample.parameters,
        }
    }
}

impl From<types::Message> for now::Message {
    fn from(message: types::Message) -> Self {
        let media = |media: types::Media| now::Media {
            media_type: media.media_type,
            bytes: media.bytes,
        };
        now::Message {
            role: match message.role {
                types::Role::System => now::Role::System,
                types::Role::Developer => now::Role::Developer,
                types::Role::User => now::Role::User,
                types::Role::Assistant => now::Role::Assistant,
                types::Role::Tool => now::Role::Tool,
            },
            parts: (message.parts.into_iter())
                .map(|part| match part {
                    types::Part::Text(text) => now::Part::Text(text),
                    types::Part::Image(image) => now::Part::Image(media(image)),
                    types::Part::Audio(audio) => now::Part::Audio(media(audio)),
                })
                .collect(),
            extra: message.extra,
        }
    }
}

/// What cannot be passed to a 0.2.0 backend.
fn beyond(what: &str) -> now::Error {
    super::beyond(super::Contract::V0_2, what)
}

/// A sample for a backend.
///
/// # Errors
/// What 0.2.0 cannot express in it.
pub fn sample(sample: &now::Sample) -> Result<types::Sample, now::Error> {
    Ok(types::Sample {
        id: sample.id.clone(),
        prompt: match &sample.prompt {
            now::Prompt::Text(text) => types::Prompt::Text(text.clone()),
            now::Prompt::Tokens(tokens) => types::Prompt::Tokens(tokens.clone()),
            now::Prompt::Messages(messages) => {
                types::Prompt::Messages(messages.iter().map(message).collect::<Result<_, _>>()?)
            }
            now::Prompt::Continuation(_) => return Err(beyond("continued conversations")),
            now::Prompt::Embedding(_) => return Err(beyond("texts to embed")),
            now::Prompt::Ranking(_) => return Err(beyond("texts to rank")),
        },
        input_tokens: sample.input_tokens,
        output_tokens: sample.output_tokens,
        reference: sample.reference.clone(),
        turn: sample.turn.as_ref().map(|turn| types::Turn {
            session: turn.session.clone(),
            index: turn.index,
        }),
        class: sample.class.clone(),
        arrival: sample.arrival,
        adapter: sample.adapter.clone(),
        parameters: sample.parameters.clone(),
    })
}

fn message(message: &now::Message) -> Result<types::Message, now::Error> {
    let media = |media: &now::Media| types::Media {
        media_type: media.media_type.clone(),
        bytes: media.bytes.clone(),
    };
    let parts = message.parts.iter().map(|part| {
        Ok(match part {
            now::Part::Text(text) => types::Part::Text(text.clone()),
            now::Part::Image(image) => types::Part::Image(media(image)),
            now::Part::Audio(audio) => types::Part::Audio(media(audio)),
            now::Part::Answer(_) => return Err(beyond("answers within prompts")),
        })
    });
    Ok(types::Message {
        role: match message.role {
            now::Role::System => types::Role::System,
            now::Role::Developer => types::Role::Developer,
            now::Role::User => types::Role::User,
            now::Role::Assistant => types::Role::Assistant,
            now::Role::Tool => types::Role::Tool,
        },
        parts: parts.collect::<Result<_, _>>()?,
        extra: message.extra.clone(),
    })
}

impl From<&now::Settings> for types::Settings {
    fn from(settings: &now::Settings) -> Self {
        let sampling = &settings.sampling;
        types::Settings {
            model: settings.model.clone(),
            streaming: settings.streaming,
            output_tokens: settings.output_tokens,
            min_output_tokens: settings.min_output_tokens,
            ignore_eos: settings.ignore_eos,
            sampling: types::Sampling {
                temperature: sampling.temperature,
                top_p: sampling.top_p,
                top_k: sampling.top_k,
                min_p: sampling.min_p,
                frequency_penalty: sampling.frequency_penalty,
                presence_penalty: sampling.presence_penalty,
                repetition_penalty: sampling.repetition_penalty,
                seed: sampling.seed,
                stop: sampling.stop.clone(),
            },
            extra_body: settings.extra_body.clone(),
        }
    }
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
            backend::Framing::Raw => newest::Framing::Raw,
            backend::Framing::LengthPrefixed(prefix) => {
                newest::Framing::LengthPrefixed(newest::LengthPrefix {
                    skip: prefix.skip,
                    width: prefix.width,
                    adjust: 0,
                    little_endian: prefix.little_endian,
                })
            }
        }
    }
}

impl From<newest::Control> for backend::Control {
    fn from(control: newest::Control) -> Self {
        match control {
            newest::Control::Health => backend::Control::Health,
            newest::Control::ListModels => backend::Control::ListModels,
            newest::Control::FlushCache => backend::Control::FlushCache,
            newest::Control::Metrics => backend::Control::Metrics,
        }
    }
}

impl From<backend::Reading> for newest::Reading {
    fn from(reading: backend::Reading) -> Self {
        use backend::ServerMetric as Old;
        use newest::ServerMetric as New;
        newest::Reading {
            metric: match reading.metric {
                Old::FinishedRequests => New::FinishedRequests,
                Old::RunningRequests => New::RunningRequests,
                Old::WaitingRequests => New::WaitingRequests,
                Old::InputTokens => New::InputTokens,
                Old::OutputTokens => New::OutputTokens,
                Old::PrefixCacheQueries => New::PrefixCacheQueries,
                Old::PrefixCacheHits => New::PrefixCacheHits,
                Old::KvCacheUsage => New::KvCacheUsage,
                Old::Preemptions => New::Preemptions,
            },
            value: reading.value,
        }
    }
}

/// A model of which nothing but its name is known.
pub fn served(name: String) -> newest::ServedModel {
    newest::ServedModel {
        name,
        root: None,
        context_tokens: None,
    }
}

/// A backend that does not say how requests are authenticated: as most servers have it.
pub fn credentials() -> newest::Credentials {
    newest::Credentials {
        scheme: newest::Authentication::Bearer,
        variable: None,
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
            backend::Meaning::Failure(refusal) => newest::Meaning::Failure(refusal.into()),
            backend::Meaning::End => newest::Meaning::End,
        }
    }
}

impl From<backend::Refusal> for newest::Refusal {
    fn from(refusal: backend::Refusal) -> Self {
        use backend::Reason as Old;
        use newest::Reason as New;
        newest::Refusal {
            reason: match refusal.reason {
                Old::Overloaded => New::Overloaded,
                Old::Unavailable => New::Unavailable,
                Old::TooLong => New::TooLong,
                Old::UnknownModel => New::UnknownModel,
                Old::Unauthorised => New::Unauthorised,
                Old::Invalid => New::Invalid,
                Old::Internal => New::Internal,
                Old::Other => New::Other,
            },
            message: refusal.message,
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

impl From<&newest_scorer::Exchange> for scorer::Exchange {
    fn from(exchange: &newest_scorer::Exchange) -> Self {
        use newest_scorer::CountSource as Source;
        scorer::Exchange {
            id: exchange.id.clone(),
            reference: exchange.reference.clone(),
            turn: exchange.turn.as_ref().map(|turn| types::Turn {
                session: turn.session.clone(),
                index: turn.index,
            }),
            class: exchange.class.clone(),
            requested_tokens: exchange.requested_tokens,
            output: exchange.output.clone(),
            reasoning: exchange.reasoning.clone(),
            tool_calls: exchange.tool_calls.clone(),
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

    fn asked(prompt: now::Prompt) -> now::Sample {
        now::Sample {
            id: "1".to_owned(),
            prompt,
            after: Vec::new(),
            recorded_answer: None,
            input_tokens: Some(3),
            output_tokens: Some(9),
            reference: None,
            turn: None,
            class: Some("c".to_owned()),
            arrival: Some(7),
            adapter: Some("l".to_owned()),
            parameters: None,
        }
    }

    #[test]
    fn what_can_be_said_is_said() {
        let older = sample(&asked(now::Prompt::Tokens(vec![1, 2]))).unwrap();
        assert_eq!(older.adapter.as_deref(), Some("l"));
        assert_eq!((older.arrival, older.output_tokens), (Some(7), Some(9)));
        let back = now::Sample::from(older);
        assert!(matches!(back.prompt, now::Prompt::Tokens(ids) if ids == [1, 2]));
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        let ranking = now::Candidates {
            query: String::new(),
            documents: Vec::new(),
        };
        for (prompt, what) in [
            (now::Prompt::Embedding(Vec::new()), "texts to embed"),
            (now::Prompt::Ranking(ranking), "texts to rank"),
        ] {
            let Err(now::Error::InvalidConfig(said)) = sample(&asked(prompt)) else {
                panic!("it was translated");
            };
            assert!(
                said.contains("0.2.0, which has no") && said.contains(what),
                "{said}"
            );
        }
    }
}
