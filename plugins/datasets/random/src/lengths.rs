//! The ranges from which the lengths of prompts and answers are drawn. The tools compute the bounds in doubles, and so
//! does this.

use std::ops::RangeInclusive;

use runner_plugin::Error;
use runner_plugin::random::{NumpyGenerator, NumpyLegacy};
use sharegpt_file::Like;

use crate::config::{Config, invalid};

/// Lengths in tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) input: RangeInclusive<u32>,
    pub(crate) output: RangeInclusive<u32>,
    /// What is subtracted from a drawn prompt length, since the model will add this many tokens around it.
    less: u32,
}

impl Lengths {
    /// The lengths of a configuration, with a tokenizer that adds `added` tokens around a text.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if a prompt could be empty.
    pub(crate) fn of(config: &Config, added: u32) -> Result<Self, Error> {
        let (input, output) = config.ratios();
        let text = config.form == crate::config::Form::Text;
        Ok(match config.like {
            Like::Sglang | Like::Lmdeploy => Self {
                input: from_ratio(config.input_len, input),
                output: from_ratio(config.output_len, output),
                less: if config.like == Like::Sglang && text {
                    added
                } else {
                    0
                },
            },
            Like::Vllm => {
                let around = |length: u32, ratio: f64| {
                    let length = f64::from(length);
                    (length * (1.0 - ratio)).floor() as u32..=(length * (1.0 + ratio)).ceil() as u32
                };
                let real = config.input_len.saturating_sub(added);
                let lengths = Self {
                    input: around(real, input),
                    output: {
                        let range = around(config.output_len, output);
                        (*range.start()).max(1)..=(*range.end()).max(1)
                    },
                    less: 0,
                };
                if config.prefix_len + lengths.input.start() < 1 {
                    return Err(invalid(format!(
                        "`input-len` is {}, and with {added} tokens that the model adds and a `range-ratio` of {input} \
                         a prompt could have no tokens: set a larger `input-len` or `prefix-len`, or a smaller \
                         `range-ratio`",
                        config.input_len
                    )));
                }
                lengths
            }
        })
    }

    /// The longest prompt, as it is drawn.
    pub(crate) fn longest(&self) -> u32 {
        self.shortened(*self.input.end())
    }

    /// The longest answer.
    pub(crate) fn longest_output(&self) -> u32 {
        *self.output.end()
    }

    /// A drawn prompt length without the tokens that the model will add.
    pub(crate) fn shortened(&self, length: u32) -> u32 {
        if self.less == 0 {
            length
        } else {
            length.saturating_sub(self.less).max(1)
        }
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
