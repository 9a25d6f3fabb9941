//! The lengths of prompts and answers: from the range of a tool, or from distributions. The tools
//! compute the bounds of their ranges in doubles, and so does this.

use std::ops::RangeInclusive;

use runner_plugin::Error;
use runner_plugin::lengths::{Choice, Distribution, Lengths as Drawable, MOST_TOKENS};
use runner_plugin::random::{NumpyGenerator, NumpyLegacy};
use sharegpt_file::Like;

use crate::Config;

#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    pub(crate) kind: Kind,
    /// Tokens that the model adds, subtracted from a drawn prompt length.
    less: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The range of a tool, drawn from its generator.
    Range {
        input: RangeInclusive<u32>,
        output: RangeInclusive<u32>,
    },
    Free(Box<Free>),
}

/// Distributions of lengths, by class, with a generator of their own.
#[derive(Clone, Debug)]
pub(crate) struct Free {
    random: NumpyGenerator,
    choice: Option<Choice>,
    lengths: Vec<(Drawable, Drawable)>,
}

/// Distinguishes the generator of lengths from the generators of prompts.
const LENGTHS: u64 = 0x6c65_6e67_7468_7300;

impl Free {
    fn from_config(config: &Config, seed: u64) -> Result<Self, Error> {
        let each = |name: Option<&str>, input: &Distribution, output: &Distribution| {
            let key = |key: &str| match name {
                Some(name) => format!("classes.{name}.{key}"),
                None => key.to_owned(),
            };
            Ok((
                input.lengths(&key("input-len"), 1..=MOST_TOKENS)?,
                output.lengths(&key("output-len"), 1..=MOST_TOKENS)?,
            ))
        };
        let (input, output) = (&config.input_len, &config.output_len);
        let lengths = if config.classes.is_empty() {
            vec![each(None, input, output)?]
        } else {
            let of_class = config.classes.iter().map(|class| {
                let input = class.input_len.as_ref().unwrap_or(input);
                let output = class.output_len.as_ref().unwrap_or(output);
                each(Some(&class.name), input, output)
            });
            of_class.collect::<Result<_, Error>>()?
        };
        let weights = config.classes.iter().map(|class| class.weight);
        let choice = if config.classes.is_empty() {
            None
        } else {
            Some(Choice::weighted("classes", weights)?)
        };
        Ok(Self { random: NumpyGenerator::new(seed ^ LENGTHS), choice, lengths })
    }

    /// The next class, input length and output length.
    pub(crate) fn draw(&mut self) -> (Option<u16>, u32, u32) {
        let class = self.choice.as_ref().map(|choice| choice.draw(&mut self.random));
        let (input, output) = &self.lengths[class.unwrap_or_default()];
        (
            // There are at most a thousand.
            class.map(|class| class as u16),
            input.draw(&mut self.random),
            output.draw(&mut self.random),
        )
    }

    /// The longest prompt but one in a hundred of its class, and the answer likewise.
    fn long(&self) -> (u32, u32) {
        let long = |length: fn(&(Drawable, Drawable)) -> &Drawable| {
            let each = self.lengths.iter().map(|each| length(each).quantile(0.99));
            each.max().unwrap_or(1)
        };
        (long(|each| &each.0), long(|each| &each.1))
    }

    fn shortest(&self) -> u32 {
        let each = self.lengths.iter().map(|(input, _)| input.quantile(0.0));
        each.min().unwrap_or(1)
    }
}

impl Lengths {
    /// The lengths of a configuration, with a tokenizer that adds `added` tokens around a text.
    pub(crate) fn from_config(config: &Config, added: u32, seed: u64) -> Result<Self, Error> {
        let text = config.form == crate::Form::Text;
        if config.is_free() {
            return Ok(Self {
                kind: Kind::Free(Box::new(Free::from_config(config, seed)?)),
                less: if text { added } else { 0 },
            });
        }
        let constant = |key: &str, length: &Distribution| {
            let length = length.lengths(key, 1..=MOST_TOKENS)?;
            Ok::<_, Error>(length.quantile(0.0))
        };
        let input_len = constant("input-len", &config.input_len)?;
        let output_len = constant("output-len", &config.output_len)?;
        let (input, output) = config.ratios();
        Ok(match config.way() {
            Like::Sglang | Like::Lmdeploy => Self {
                kind: Kind::Range {
                    input: from_ratio(input_len, input),
                    output: from_ratio(output_len, output),
                },
                less: if config.way() == Like::Sglang && text { added } else { 0 },
            },
            Like::Vllm => {
                let around = |length: u32, ratio: f64| {
                    let length = f64::from(length);
                    (length * (1.0 - ratio)).floor() as u32..=(length * (1.0 + ratio)).ceil() as u32
                };
                let inputs = around(input_len.saturating_sub(added), input);
                let outputs = around(output_len, output);
                let longest = u64::from(config.prefix_len) + u64::from(*inputs.end());
                if longest > MOST_TOKENS.into() {
                    return Err(Error::config(format!(
                        "`prefix-len` and `input-len` give prompts of {longest} tokens; expected at most {MOST_TOKENS}"
                    )));
                }
                if config.prefix_len + inputs.start() < 1 {
                    return Err(Error::config(format!(
                        "`input-len` is {input_len}, and with {added} tokens that the model adds and a `range-ratio` of {input} \
                         a prompt could have no tokens: set a larger `input-len` or `prefix-len`, or a smaller \
                         `range-ratio`"
                    )));
                }
                Self {
                    kind: Kind::Range {
                        input: inputs,
                        output: (*outputs.start()).max(1)..=(*outputs.end()).max(1),
                    },
                    less: 0,
                }
            }
        })
    }

    /// The longest drawn prompt; for distributions a long one.
    pub(crate) fn longest(&self) -> u32 {
        match &self.kind {
            Kind::Range { input, .. } => self.shortened(*input.end()),
            Kind::Free(free) => self.shortened(free.long().0),
        }
    }

    /// The longest answer; for distributions a long one.
    pub(crate) fn longest_output(&self) -> u32 {
        match &self.kind {
            Kind::Range { output, .. } => *output.end(),
            Kind::Free(free) => free.long().1,
        }
    }

    /// A length up to which all prompts go, or, in the range of a tool, the longest does.
    pub(crate) fn common(&self) -> u32 {
        match &self.kind {
            Kind::Range { .. } => self.longest(),
            Kind::Free(free) => self.shortened(free.shortest()),
        }
    }

    /// A drawn prompt length without the tokens that the model will add.
    pub(crate) fn shortened(&self, length: u32) -> u32 {
        if self.less == 0 { length } else { length.saturating_sub(self.less).max(1) }
    }
}

fn from_ratio(length: u32, ratio: f64) -> RangeInclusive<u32> {
    ((f64::from(length) * ratio) as u32).max(1)..=length
}

/// One number of a range, drawn.
pub(crate) trait Draw {
    /// Uniform from `range`.
    fn draw(&mut self, range: &RangeInclusive<u32>) -> u32;
}

impl Draw for NumpyLegacy {
    fn draw(&mut self, range: &RangeInclusive<u32>) -> u32 {
        self.randint((*range.start()).into(), u64::from(*range.end()) + 1) as u32
    }
}

impl Draw for NumpyGenerator {
    fn draw(&mut self, range: &RangeInclusive<u32>) -> u32 {
        self.integers((*range.start()).into(), u64::from(*range.end()) + 1) as u32
    }
}
