//! A session under construction: requests in the order of the contract, each after its
//! dependencies.

use std::collections::BTreeMap;

use dialogue::MOST_TURNS;
use dialogue::messages::count;
use runner_plugin::{
    Continuation, Dependency, Error, Message, Point, Prompt, Role, Sample, Tokenizer, Turn,
};

#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) conversation: String,
    /// The request that it continues and depends on; without it, the conversation is fresh.
    pub(crate) parent: Option<usize>,
    pub(crate) messages: Vec<Message>,
    pub(crate) after: Vec<After>,
    pub(crate) answer: Option<Message>,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) class: &'static str,
    pub(crate) parameters: Option<String>,
    pub(crate) arrival: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    pub(crate) request: usize,
    pub(crate) point: Point,
    /// In nanoseconds.
    pub(crate) delay: u64,
}

impl After {
    pub(crate) fn end(request: usize, delay: u64) -> Self {
        Self { request, point: Point::End, delay }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Graph {
    samples: Vec<Sample>,
    turns: BTreeMap<String, u32>,
}

impl Graph {
    /// The sample of a session of one request: a text of the user.
    pub(crate) fn single(
        text: String,
        output_tokens: u32,
        tokenizer: &dyn Tokenizer,
    ) -> Result<Option<Sample>, Error> {
        let mut graph = Self::default();
        let request = Request {
            messages: vec![Message::text(Role::User, text)],
            output_tokens: Some(output_tokens),
            class: "main",
            ..Request::default()
        };
        graph.push(request).map_err(Error::Other)?;
        Ok(graph.finish(tokenizer).pop())
    }

    /// Adds a request, and gives its number. The first request becomes the root.
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

    pub(crate) fn id(&self, request: usize) -> String {
        self.samples.get(request).map_or_else(String::new, |sample| sample.id.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The samples, with the tokens of their new messages. A conversation's first request also
    /// counts the tokens that the model adds around a text.
    pub(crate) fn finish(mut self, tokenizer: &dyn Tokenizer) -> Vec<Sample> {
        let groups: Vec<&[Message]> =
            self.samples.iter().map(|sample| sample.prompt.messages()).collect();
        let counts = count(tokenizer, &groups);
        let added = tokenizer.describe().added_tokens;
        for (sample, tokens) in self.samples.iter_mut().zip(counts) {
            let fresh = matches!(sample.prompt, Prompt::Messages(_));
            sample.input_tokens = tokens.map(|tokens| if fresh { tokens + added } else { tokens });
        }
        self.samples
    }
}
