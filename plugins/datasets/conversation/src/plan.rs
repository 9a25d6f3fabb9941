//! From conversations to samples: the turns within the bounds, the lengths of their answers, and
//! their due times.

use std::rc::Rc;

use dialogue::messages::{count, object};
use dialogue::turns::{Setting, Turn, wait};
use dialogue::words::generator;
use dialogue::{FILE, MOST_TURNS};
use runner_plugin::lengths::{Distribution, Lengths};
use runner_plugin::report::Remarks;
use runner_plugin::{Error, Prompt, Sample, Tokenizer};
use serde_json::json;

use crate::Conversation;
use crate::config::{Config, Format, Length, Outside, Think};

/// Streams of a session's generator.
const OUTPUTS: u64 = 2;
const WAITS: u64 = 1;

pub(crate) struct Plan {
    tokenizer: Rc<dyn Tokenizer>,
    seed: u64,
    least_turns: usize,
    most_turns: usize,
    bounds: Bounds,
    outside: Outside,
    outputs: Outputs,
    think: Pauses,
    /// True if histories lack answers that the file lacks, and the first turn waits too.
    as_recorded: bool,
}

/// Numbers of tokens that a turn must keep to.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    input: (u32, u32),
    output: (u32, u32),
    context: u64,
}

enum Outputs {
    Recorded,
    Run,
    Drawn(Lengths),
}

enum Pauses {
    Recorded,
    None,
    Drawn(Distribution),
}

/// The tokens of a turn, where they are known.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    input: Option<u32>,
    output: Option<u32>,
}

impl Plan {
    pub(crate) fn new(
        config: &Config,
        format: Format,
        seed: u64,
        tokenizer: Rc<dyn Tokenizer>,
    ) -> Result<Self, Error> {
        let sharegpt = format == Format::Sharegpt;
        let bound = |given: Option<u32>, usual: u32, otherwise: u32| {
            given.unwrap_or(if sharegpt { usual } else { otherwise })
        };
        let outputs = match (&config.output_len, format) {
            // These are drawn with the conversation.
            (_, Format::Synthetic) | (None | Some(Setting::Word(Length::Recorded)), _) => {
                Outputs::Recorded
            }
            (Some(Setting::Word(Length::Run)), _) => Outputs::Run,
            (Some(Setting::Drawn(distribution)), _) => {
                Outputs::Drawn(distribution.lengths("output-len", 1..=1 << 20)?)
            }
        };
        let think = match (&config.think_time, format) {
            (_, Format::Synthetic) | (None | Some(Setting::Word(Think::Recorded)), _) => {
                Pauses::Recorded
            }
            (Some(Setting::Word(Think::None)), _) => Pauses::None,
            (Some(Setting::Drawn(distribution)), _) => Pauses::Drawn(distribution.clone()),
        };
        Ok(Self {
            tokenizer,
            seed,
            least_turns: config.min_turns as usize,
            most_turns: config.max_turns.map_or(MOST_TURNS, |turns| turns as usize),
            bounds: Bounds {
                input: (
                    bound(config.min_input_tokens, 4, 0),
                    bound(config.max_input_tokens, 1024, u32::MAX),
                ),
                output: (
                    bound(config.min_output_tokens, 4, 0),
                    config.max_output_tokens.unwrap_or(u32::MAX),
                ),
                context: config.max_context_tokens.map_or(u64::MAX, u64::from),
            },
            outside: config.outside,
            outputs,
            think,
            as_recorded: format == Format::Mlperf,
        })
    }

    /// The samples of a conversation, the root first; `None` if it is dropped, which is then
    /// counted in `remarks`. `number` is the conversation's number in the run.
    pub(crate) fn samples(
        &self,
        session: &str,
        number: u64,
        conversation: Conversation,
        remarks: &mut Remarks,
    ) -> Option<Vec<Sample>> {
        let place = || format!("{session} ({})", conversation.place);
        if let Some(fault) = conversation.fault {
            remarks.dropped(fault, place);
            return None;
        }
        let mut turns = conversation.turns;
        if turns.is_empty() {
            remarks.dropped("no message for the model to answer", place);
            return None;
        }
        let recorded = turns.len();
        turns.truncate(self.most_turns);
        let tokens = self.count(&turns);
        let fitting = if conversation.exempt { None } else { self.fitting(&tokens) };
        if let Some((kept, reason)) = fitting {
            if self.outside == Outside::Drop || kept == 0 {
                remarks.dropped(reason, place);
                return None;
            }
            turns.truncate(kept);
        }
        if turns.len() < self.least_turns && !conversation.exempt {
            remarks.dropped(&format!("fewer than {} turns", self.least_turns), place);
            return None;
        }
        match fitting {
            Some((_, reason)) => remarks.truncated(reason, place),
            None if turns.len() < recorded => {
                remarks.truncated(&format!("more than {} turns", self.most_turns), place);
            }
            None => {}
        }
        let mut waits = generator(self.seed, number, WAITS);
        let mut outputs = generator(self.seed, number, OUTPUTS);
        let mut inner = turns.iter().rev().skip(1);
        let has_gaps = self.as_recorded && inner.any(|turn| turn.answer.is_none());
        // The conversation so far, where a later turn must not hold the server's answer.
        let (mut history, mut is_after_gap) = (Vec::new(), false);
        let mut samples: Vec<Sample> = Vec::with_capacity(turns.len());
        for (index, (turn, tokens)) in turns.into_iter().zip(tokens).enumerate() {
            let delay = match &self.think {
                Pauses::Recorded => turn.delay,
                Pauses::None => 0,
                Pauses::Drawn(distribution) => wait(distribution, &mut waits),
            };
            let output = match &self.outputs {
                Outputs::Recorded => turn.output_tokens.or(tokens.output),
                Outputs::Run => None,
                Outputs::Drawn(lengths) => Some(lengths.draw(&mut outputs)),
            };
            let id = format!("{session}/{index}");
            let waits_first = self.as_recorded && delay > 0;
            if has_gaps {
                history.extend_from_slice(&turn.messages);
            }
            let mut begun = match samples.last() {
                None => Sample {
                    further: waits_first.then(|| json!({ "delay": delay }).to_string()),
                    ..Sample::new(id, Prompt::Messages(turn.messages))
                },
                Some(parent) => Sample::following(id, &parent.id, delay, turn.messages),
            };
            if is_after_gap {
                begun.prompt = Prompt::Messages(history.clone());
            }
            if has_gaps {
                is_after_gap = turn.answer.is_none();
                history.extend(turn.answer.clone());
            }
            let mut parameters = conversation.parameters.clone();
            parameters.extend(turn.parameters);
            samples.push(Sample {
                recorded_answer: turn.answer,
                reference: turn.reference,
                input_tokens: tokens.input,
                output_tokens: output,
                turn: Some(runner_plugin::Turn {
                    session: session.to_owned(),
                    index: index as u32,
                }),
                class: conversation.class.clone(),
                parameters: object(parameters),
                ..begun
            });
        }
        Some(samples)
    }

    /// Tokens of each turn's new messages and, if not empty, of its recorded answer. The first turn
    /// includes the tokens that the model adds around a text.
    fn count(&self, turns: &[Turn]) -> Vec<Tokens> {
        let groups: Vec<_> =
            turns.iter().flat_map(|turn| [&turn.messages[..], turn.answer.as_slice()]).collect();
        let counted = count(&*self.tokenizer, &groups);
        let added = self.tokenizer.describe().added_tokens;
        let pairs = counted.chunks_exact(2).enumerate();
        pairs
            .map(|(index, pair)| Tokens {
                input: pair[0].map(|tokens| if index == 0 { tokens + added } else { tokens }),
                output: pair[1].filter(|tokens| *tokens > 0),
            })
            .collect()
    }

    /// Counts the first turns within the bounds, unless all are, and names the exceeded bound.
    fn fitting(&self, tokens: &[Tokens]) -> Option<(usize, &'static str)> {
        let Bounds { input, output, context: most } = self.bounds;
        let below = |tokens: Option<u32>, least| tokens.is_some_and(|tokens| tokens < least);
        let above = |tokens: Option<u32>, most| tokens.is_some_and(|tokens| tokens > most);
        let mut context = 0;
        tokens.iter().enumerate().find_map(|(index, turn)| {
            context += u64::from(turn.input.unwrap_or(0)) + u64::from(turn.output.unwrap_or(0));
            let bounds = [
                (below(turn.input, input.0), "a turn with fewer tokens than `min-input-tokens`"),
                (above(turn.input, input.1), "a turn with more tokens than `max-input-tokens`"),
                (
                    below(turn.output, output.0),
                    "an answer with fewer tokens than `min-output-tokens`",
                ),
                (
                    above(turn.output, output.1),
                    "an answer with more tokens than `max-output-tokens`",
                ),
                (context > most, "a conversation with more tokens than `max-context-tokens`"),
            ];
            let broken = bounds.into_iter().find(|(is_broken, _)| *is_broken);
            broken.map(|(_, reason)| (index, reason))
        })
    }
}

/// The error if nothing can be measured, with the numbers of conversations read and spared.
pub(crate) fn nothing(read: u64, spares: u64, remarks: &Remarks) -> Error {
    Error::InvalidInput(match (read, spares) {
        (0, 0) => format!("the file `{FILE}` has no conversation of two messages or more"),
        (0, _) => format!(
            "all {spares} conversations of the file `{FILE}` were used for warmup: warm up with fewer requests, or use \
             a larger file"
        ),
        _ => format!(
            "none of {read} conversations can be used ({}): change the bounds, or use another file",
            remarks.reasons()
        ),
    })
}
