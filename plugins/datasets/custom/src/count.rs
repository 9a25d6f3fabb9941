//! Counts the tokens of rows, and says which are out of bounds.

use std::collections::BTreeMap;

use runner_plugin::{Message, Prompt, Tokenizer};
use serde_json::Value;

use crate::config::Config;
use crate::conversation;
use crate::row::Draft;
use crate::source::Place;

/// A row that is to become samples.
pub struct CountedRow {
    pub place: Place,
    pub draft: Draft,
    /// Tokens of the first prompt, if they can be counted.
    pub input: Option<u32>,
    /// Tokens of the first prompt as far as they can be counted, for the bounds.
    about: u32,
    pub outputs: Vec<Option<u32>>,
}

pub fn count(
    config: &Config,
    tokenizer: &dyn Tokenizer,
    rows: Vec<(Place, Draft)>,
) -> Vec<CountedRow> {
    let mut chats = chats(tokenizer, &rows).into_iter();
    let fixed = config.output_len;
    // Texts that stand alone, with the tokens around them, and answers, without them, of all rows.
    let (mut alone, mut bare) = (Vec::new(), Vec::new());
    for (_, draft) in &rows {
        match &draft.prompt {
            Prompt::Text(text) => alone.push(text.clone()),
            Prompt::Embedding(texts) => alone.extend(texts.iter().cloned()),
            Prompt::Messages(messages) => bare.push(joined(messages)),
            Prompt::Ranking(candidates) => {
                alone.push(candidates.query.clone());
                alone.extend(candidates.documents.iter().cloned());
            }
            Prompt::Tokens(_) | Prompt::Continuation(_) => {}
        }
        if fixed.is_none() && draft.output_tokens.is_none() {
            for answer in measures(config, draft).flatten() {
                let texts = if draft.pair { &mut alone } else { &mut bare };
                texts.push(conversation::text(answer));
            }
        }
    }
    let mut alone = tokenizer.count(&alone, true).into_iter();
    let mut bare = tokenizer.count(&bare, false).into_iter();
    let mut counted = Vec::with_capacity(rows.len());
    for (place, draft) in rows {
        let mut next = |many: usize| alone.by_ref().take(many).fold(0, u32::saturating_add);
        let (input, about) = match &draft.prompt {
            Prompt::Text(_) => some(next(1)),
            Prompt::Embedding(texts) => some(next(texts.len())),
            Prompt::Ranking(candidates) => some(next(candidates.documents.len() + 1)),
            Prompt::Tokens(ids) => some(u32::try_from(ids.len()).unwrap_or(u32::MAX)),
            Prompt::Messages(_) => {
                let about = bare.next().unwrap_or(0);
                let exact = chats.next().flatten();
                (exact, exact.unwrap_or(about))
            }
            Prompt::Continuation(_) => (None, 0),
        };
        let given = fixed.or(draft.output_tokens);
        let outputs = measures(config, &draft)
            .map(|answer| {
                given.or_else(|| {
                    answer?;
                    let count = if draft.pair { alone.next() } else { bare.next() };
                    // An answer without text, such as a call of a tool, has no length of its own.
                    count.filter(|count| *count > 0)
                })
            })
            .collect();
        counted.push(CountedRow { place, draft, input, about, outputs });
    }
    counted
}

/// Tokens of the rows' conversations by the model's template, in one call of the host for equal
/// tools. All are absent if the template is not known.
fn chats(tokenizer: &dyn Tokenizer, rows: &[(Place, Draft)]) -> Vec<Option<u32>> {
    let mut chats = Vec::new();
    let mut by_tools = BTreeMap::<Option<String>, Vec<usize>>::new();
    for (_, draft) in rows {
        if let Prompt::Messages(messages) = &draft.prompt {
            let tools = draft.tools.as_ref().map(Value::to_string);
            by_tools.entry(tools).or_default().push(chats.len());
            chats.push(messages);
        }
    }
    let mut counts = vec![None; chats.len()];
    if tokenizer.describe().chat {
        for (tools, places) in by_tools {
            let some: Vec<_> = places.iter().map(|at| chats[*at].clone()).collect();
            let counted = tokenizer.count_chat(&some, tools.as_deref());
            for (at, count) in places.into_iter().zip(counted) {
                counts[at] = count;
            }
        }
    }
    counts
}

impl CountedRow {
    pub fn refused(&self, config: &Config) -> Option<String> {
        let output = self.outputs.first().copied().flatten().unwrap_or(0);
        if self.draft.pair && (self.about < 2 || output < 2) {
            return Some("fewer than 2 tokens in the prompt or the answer".to_owned());
        }
        if let Some(least) = config.min_input_tokens.filter(|least| self.about < *least) {
            return Some(format!("fewer than {least} tokens in the prompt"));
        }
        if let Some(most) = config.max_input_tokens.filter(|most| self.about > *most) {
            return Some(format!("more than {most} tokens in the prompt"));
        }
        let total = self.about.saturating_add(output);
        let most = config.max_total_tokens.filter(|most| total > *most)?;
        Some(format!("more than {most} tokens in the prompt and its answer"))
    }
}

fn some(count: u32) -> (Option<u32>, u32) {
    (Some(count), count)
}

/// The recorded answers whose lengths are requested, of each turn.
fn measures<'a>(
    config: &Config,
    draft: &'a Draft,
) -> impl Iterator<Item = Option<&'a Message>> + use<'a> {
    let is_one = !draft.answer_is_reference || config.reference_sets_length;
    answers(draft).map(move |answer| answer.filter(|_| is_one))
}

/// The answers on record, of each turn.
fn answers(draft: &Draft) -> impl Iterator<Item = Option<&Message>> {
    let following = draft.following.iter().map(|turn| turn.answer.as_ref());
    std::iter::once(draft.answer.as_ref()).chain(following)
}

fn joined(messages: &[Message]) -> String {
    let texts: Vec<_> = messages.iter().map(conversation::text).collect();
    texts.join("\n")
}
