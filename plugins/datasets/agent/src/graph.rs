//! A session under construction: requests in the order of the contract, each after its
//! dependencies.

use std::collections::BTreeMap;

use dialogue::MOST_TURNS;
use dialogue::messages::count;
use runner_plugin::{Continuation, Dependency, Message, Point, Prompt, Sample, Tokenizer, Turn};

/// A request of a session.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// The conversation that it belongs to.
    pub(crate) conversation: String,
    /// The request whose conversation it continues and on which it depends; a fresh conversation if
    /// absent.
    pub(crate) parent: Option<usize>,
    pub(crate) messages: Vec<Message>,
    pub(crate) after: Vec<After>,
    pub(crate) answer: Option<Message>,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) class: &'static str,
    pub(crate) parameters: Option<String>,
    pub(crate) arrival: Option<u64>,
}

/// A request that must come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    pub(crate) request: usize,
    pub(crate) point: Point,
    /// In nanoseconds.
    pub(crate) delay: u64,
}

impl After {
    /// On the end of a reply.
    pub(crate) fn end(request: usize, delay: u64) -> Self {
        Self { request, point: Point::End, delay }
    }
}

/// The requests of a session so far.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    samples: Vec<Sample>,
    /// The number of turns that each conversation has.
    turns: BTreeMap<String, u32>,
}

impl Graph {
    /// Adds a request, and gives its number. The first request becomes the root.
    ///
    /// # Errors
    /// If the session has too many.
    pub(crate) fn push(&mut self, request: Request) -> Result<usize, String> {
        if self.samples.len() == MOST_TURNS {
            return Err(format!(
                "the session has more than {MOST_TURNS} requests, or contains itself: make it smaller"
            ));
        }
        let next = self.turns.entry(request.conversation.clone()).or_insert(0);
        let index = *next;
        *next += 1;
        let prompt = match request.parent {
            None => Prompt::Messages(request.messages),
            Some(parent) => Prompt::Continuation(Continuation {
                parent: self.id(parent),
                messages: request.messages,
            }),
        };
        let after = request.after.iter().map(|after| Dependency {
            sample: self.id(after.request),
            point: after.point,
            delay: after.delay,
        });
        self.samples.push(Sample {
            after: after.collect(),
            recorded_answer: request.answer,
            output_tokens: request.output_tokens,
            class: Some(request.class.to_owned()),
            parameters: request.parameters,
            arrival: request.arrival,
            turn: Some(Turn { session: request.conversation.clone(), index }),
            ..Sample::new(format!("{}/{index}", request.conversation), prompt)
        });
        Ok(self.samples.len() - 1)
    }

    /// The id of a request's sample.
    pub(crate) fn id(&self, request: usize) -> String {
        self.samples.get(request).map_or_else(String::new, |sample| sample.id.clone())
    }

    /// The number of requests.
    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The samples, with the tokens of their new messages. A conversation's first request also
    /// counts the tokens that the model adds around a text.
    pub(crate) fn finish(mut self, tokenizer: &dyn Tokenizer) -> Vec<Sample> {
        let groups: Vec<&[Message]> = self.samples.iter().map(messages).collect();
        let counts = count(tokenizer, &groups);
        let added = tokenizer.describe().added_tokens;
        for (sample, tokens) in self.samples.iter_mut().zip(counts) {
            let fresh = matches!(sample.prompt, Prompt::Messages(_));
            sample.input_tokens = tokens.map(|tokens| if fresh { tokens + added } else { tokens });
        }
        self.samples
    }
}

/// The new messages of a sample.
fn messages(sample: &Sample) -> &[Message] {
    match &sample.prompt {
        Prompt::Messages(messages) => messages,
        Prompt::Continuation(next) => &next.messages,
        _ => &[],
    }
}
