//! The writer of one reply in a scripted wire format.

use std::cell::Cell;
use std::sync::Arc;

use super::template::{Template, Values};
use super::{Dialect, FinishWords};
use crate::answer::{Answer, Finish};
use crate::ask::types::Ask;
use crate::truth::Timings;
use crate::wire::types::{Head, Piece, Wire};

impl FinishWords {
    fn word(&self, finish: Finish) -> &str {
        let own = match finish {
            Finish::Stop => &self.stop,
            Finish::Length => &self.length,
        };
        own.as_deref().unwrap_or(finish.name())
    }
}

pub(crate) struct ScriptedWriter {
    dialect: Arc<Dialect>,
    id: String,
    model: String,
    input_tokens: u32,
    cached_tokens: u32,
    index: Cell<u32>,
    tokens: Cell<u32>,
    /// The time when the last of them were due.
    seconds: Cell<f64>,
    /// The engine's own timings until then.
    timings: Cell<Timings>,
}

impl ScriptedWriter {
    pub fn new(dialect: &Arc<Dialect>, ask: &Ask, head: &Head<'_>) -> Self {
        ScriptedWriter {
            dialect: Arc::clone(dialect),
            id: head.id(),
            model: ask.model.as_deref().unwrap_or(head.model).to_owned(),
            input_tokens: ask.prompt_tokens,
            cached_tokens: head.cached_tokens,
            index: Cell::new(0),
            tokens: Cell::new(0),
            seconds: Cell::new(0.0),
            timings: Cell::new(Timings::default()),
        }
    }

    fn values<'a>(&'a self, answer: &'a Answer, from: u32, to: u32) -> Values<'a> {
        Values {
            text: answer.piece(from, to),
            text_so_far: answer.piece(0, to),
            ids: answer.ids(from, to),
            tokens: to,
            index: self.index.get(),
            id: &self.id,
            model: &self.model,
            input_tokens: self.input_tokens,
            cached_tokens: self.cached_tokens,
            output_tokens: answer.tokens,
            finish: self.dialect.finish.word(answer.finish),
            seconds: self.seconds.get(),
            timings: self.timings.get(),
            ..Values::default()
        }
    }

    fn event(&self, template: Option<&Template>, values: &Values<'_>, out: &mut Vec<u8>) {
        let Some(template) = template else { return };
        let mut event = Vec::with_capacity(256);
        template.write(values, &mut event);
        self.dialect.framing.put(&event, out);
        self.index.set(self.index.get() + 1);
    }

    /// The values of an event after the last token, or after the last token that was sent if the
    /// reply broke off. It adds no text.
    fn after<'a>(&'a self, answer: &'a Answer) -> Values<'a> {
        let sent = self.tokens.get();
        Values { output_tokens: sent, ..self.values(answer, sent, sent) }
    }
}

impl Wire for ScriptedWriter {
    fn role(&self, out: &mut Vec<u8>) {
        let values = Values {
            index: self.index.get(),
            id: &self.id,
            model: &self.model,
            input_tokens: self.input_tokens,
            cached_tokens: self.cached_tokens,
            ..Values::default()
        };
        self.event(self.dialect.first.as_ref(), &values, out);
    }

    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        let dialect = &self.dialect;
        let last = dialect.last.as_ref().filter(|_| piece.last);
        self.seconds.set(piece.seconds);
        self.timings.set(piece.timings.unwrap_or_default());
        self.tokens.set(piece.to);
        let values = self.values(answer, piece.from, piece.to);
        self.event(last.or(dialect.event.as_ref()), &values, out);
    }

    fn usage(&self, answer: &Answer, out: &mut Vec<u8>) {
        self.event(self.dialect.usage.as_ref(), &self.after(answer), out);
    }

    fn done(&self, answer: &Answer, out: &mut Vec<u8>) {
        self.event(self.dialect.end.as_ref(), &self.after(answer), out);
    }

    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>) {
        self.seconds.set(all.seconds);
        self.timings.set(all.timings.unwrap_or_default());
        if let Some(template) = &self.dialect.whole {
            template.write(&self.values(answer, 0, answer.tokens), out);
        }
    }
}
