//! The interface of all sources of prompts.

use std::collections::VecDeque;

use runner_plugin::report::Remarks;
use runner_plugin::{Error, Prompt, Tokenizer};

use crate::lengths::{Draw, Kind, Lengths};
use crate::{Form, Recipe};

/// Tokens of prompts after which a call returns, so that any request fits into a plugin's memory.
pub(crate) const ENOUGH_TOKENS: usize = 1 << 20;

pub(crate) trait Source {
    /// At most `limit` further prompts to measure, or [`ENOUGH_TOKENS`]; none ends the sequence.
    fn next(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error>;

    /// At most `limit` prompts, made in such a way that [`next`](Self::next) is unlikely to return
    /// one of them. The caller ensures that it never does. Fewer when they have [`ENOUGH_TOKENS`].
    fn spare(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error>;

    /// Returns remarks on prompts that were left out or changed so far, if it counts them.
    fn remarks(&self) -> Option<&Remarks> {
        None
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) content: Content,
    pub(crate) input_tokens: u32,
    pub(crate) answer: AnswerRequest,
}

/// The settings for the answer to a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnswerRequest {
    pub(crate) output_tokens: u32,
    pub(crate) class: Option<u16>,
}

impl AnswerRequest {
    pub(crate) fn spare(output_tokens: u32) -> Self {
        Self { output_tokens, class: None }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Content {
    Text(String),
    Tokens(Vec<u32>),
}

impl From<Content> for Prompt {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Prompt::Text(text),
            Content::Tokens(ids) => Prompt::Tokens(ids),
        }
    }
}

/// Prompts of token ids in the form that is sent. The tokens of a text are counted as the server
/// counts them, so they differ from the drawn length where texts are not adjusted.
pub(crate) fn formed(
    tokenizer: &dyn Tokenizer,
    making: Recipe,
    prompts: Vec<(Vec<u32>, AnswerRequest)>,
) -> Vec<Entry> {
    let (ids, answer): (Vec<_>, Vec<_>) = prompts.into_iter().unzip();
    let (contents, inputs): (Vec<_>, Vec<_>) = match making.form {
        Form::Tokens => {
            let inputs = ids.iter().map(|ids| ids.len() as u32).collect();
            (ids.into_iter().map(Content::Tokens).collect(), inputs)
        }
        Form::Text => {
            let texts =
                if making.exact { super::texts(tokenizer, ids) } else { tokenizer.decode(&ids) };
            let inputs = tokenizer.count(&texts, true);
            (texts.into_iter().map(Content::Text).collect(), inputs)
        }
    };
    contents
        .into_iter()
        .zip(inputs)
        .zip(answer)
        .map(|((content, input_tokens), answer)| Entry { content, input_tokens, answer })
        .collect()
}

/// Prompts to draw at once if the measured number is unknown, and after the measured ones.
const BLOCK: u64 = 1024;

/// The drawn values of a prompt. Small, because a run may measure millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) input: u32,
    pub(crate) answer: AnswerRequest,
    pub(crate) offset: u32,
}

/// Drafts, in blocks: all input lengths, all output lengths, and all offsets of all measured
/// prompts. The tools draw in this order, so the numbers are the same.
#[derive(Debug)]
pub(crate) struct Drafts {
    lengths: Lengths,
    /// Offsets are below this; none are drawn if it is 0.
    offsets: u32,
    /// The number of drafts in the first block.
    first: Option<u64>,
    drawn: u64,
    ready: VecDeque<Draft>,
}

impl Drafts {
    pub(crate) fn new(lengths: Lengths, offsets: u32, count: Option<u64>) -> Self {
        Self { lengths, offsets, first: count, drawn: 0, ready: VecDeque::new() }
    }

    pub(crate) fn lengths(&self) -> &Lengths {
        &self.lengths
    }

    /// Draws a block if none is ready.
    pub(crate) fn fill(&mut self, random: &mut impl Draw) {
        if !self.ready.is_empty() {
            return;
        }
        let size = self.first.take().filter(|first| *first > 0).unwrap_or(BLOCK);
        self.drawn += size;
        self.ready = (0..size)
            .map(|_| Draft { input: 0, answer: AnswerRequest::spare(0), offset: 0 })
            .collect();
        match &mut self.lengths.kind {
            Kind::Range { input, output } => {
                for draft in &mut self.ready {
                    draft.input = random.draw(input);
                }
                for draft in &mut self.ready {
                    draft.answer.output_tokens = random.draw(output);
                }
            }
            Kind::Free(free) => {
                for draft in &mut self.ready {
                    (draft.answer.class, draft.input, draft.answer.output_tokens) = free.draw();
                }
            }
        }
        for draft in &mut self.ready {
            draft.input = self.lengths.shortened(draft.input);
        }
        if self.offsets > 0 {
            for draft in &mut self.ready {
                draft.offset = random.draw(&(0..=self.offsets - 1));
            }
        }
    }

    /// The next of the block, and which prompt it is of, counted from 0.
    pub(crate) fn next(&mut self, random: &mut impl Draw) -> Option<(u64, Draft)> {
        self.fill(random);
        let index = self.drawn - self.ready.len() as u64;
        Some((index, self.ready.pop_front()?))
    }
}

#[cfg(test)]
mod tests {
    use runner_plugin::{Dataset, Error, Sample};
    use runner_plugin_testing::datasets::{self, cases, invalid_config};
    use runner_plugin_testing::files::Named;
    use runner_plugin_testing::tokenizer::{Pairs, StandIn};

    use crate::Random;

    fn open(config: &str, stand_in: bool, files: Named) -> Result<Random, Error> {
        if stand_in {
            datasets::open(config, 1, None, files, StandIn)
        } else {
            datasets::open(config, 1, None, files, Pairs)
        }
    }

    #[test]
    fn prompts_that_do_not_fit_into_memory_are_refused() {
        for (config, expected) in cases(
            r#"
            {"input-len": 4000000000} => `input-len` is 4000000000; expected at most 4194304
            {"output-len": 4000000000} => `output-len` is 4000000000; expected at most 4194304
            {"like": "vllm", "prefix-len": 4000000000} => `prefix-len` is 4000000000; expected at most 4194304
            {"like": "vllm", "prefix-len": 4194304, "input-len": 10} => `prefix-len` and `input-len` give prompts of 41943
            "#,
        ) {
            let message = invalid_config(open(config, false, Named::default()));
            assert!(message.contains(expected), "{message}");
        }
    }

    /// Wide distributions and long prompts come few at a time, of every source.
    #[test]
    fn long_prompts_come_few_at_a_time() {
        let drawn = r#"{"input-len": {"distribution": "lognormal", "median": 800, "sigma": 50, "max": 700000}"#;
        let text = || Named::default().with_bytes("text", "words of a text ".repeat(100));
        for (more, stand_in, files) in [
            ("}", true, Named::default()),
            ("}", false, Named::default()),
            (r#", "like": "vllm"}"#, false, Named::default()),
            ("}", true, text()),
        ] {
            let mut dataset = open(&format!("{drawn}{more}"), stand_in, files).unwrap();
            let spares = dataset.spare(64).unwrap();
            assert!((1..10).contains(&spares.len()), "{more}: {}", spares.len());
            let samples = dataset.next(64).unwrap();
            let bytes: usize = samples.iter().map(Sample::bytes).sum();
            assert!(!samples.is_empty() && bytes < 32 << 20, "{more}: {bytes}");
        }
    }
}
