//! Replays traces of production traffic: the arrivals of requests, the lengths of prompts and
//! answers, their sessions, and the blocks that prompts share. The texts are made up, since traces
//! have none, but for rows that hold their own.
//!
//! | format | times | blocks | sessions |
//! | --- | --- | --- | --- |
//! | `mooncake` | milliseconds | 512 tokens, the last one partial | `session_id`, with deltas |
//! | `bailian` | seconds | 16 tokens | `parent_chat_id` |
//! | `weka` | seconds of a session | `block_size`, whole ones only | one a line, with sub-agents |
//! | `tracelab` | times of events | by the split of each prompt | `session_id` |
//! | `burstgpt` | seconds | none | `Session ID` |
//! | `azure` | dates | none | none |
//! | `vllm-timed` | seconds | 16 tokens | none |
//!
//! # Shared to the token
//! A block's tokens are a function of the seed, the scope of its hash id, the hash id, the block's
//! size and the tokenizer (`content`). They come from a set of tokens that never merge with each
//! other (`words`), so an equal block has equal tokens everywhere. A prompt's text tokenizes to its
//! blocks' tokens one after the other. A partial block is the beginning of the whole one. Tokens
//! without a hash id are content of their own: a function of the seed, the row or session, and the
//! position.
//!
//! # Sessions
//! Rows of Mooncake's format that name a session are deltas, as AIPerf reads them. If one row's
//! hash ids begin with the previous row's in its session, every row of that session holds its whole
//! prompt instead.
//!
//! With `replay = "sessions"` a session's requests follow its first one, each after the end of its
//! predecessor and the recorded pause. The pause is the time from the end of that reply to the next
//! request, if the trace records the end (Weka, TraceLab, BurstGPT). Otherwise it is the time
//! between the two requests, which includes the recorded reply.
//!
//! # Memory
//! One pass over the file checks all of it, and keeps twenty-four bytes for each row. Samples are
//! made one by one.
#![forbid(unsafe_code)]

mod config;
mod content;
mod formats;
mod index;
mod replay;
mod source;
#[cfg(test)]
mod tests;
mod words;

use runner_plugin::requests::fill;
use runner_plugin::{Amount, Dataset, Error, Inputs, Remark, Sample};

use config::invalid;
use formats::Format;
use index::Pass;
use replay::Player;
use source::Source;

pub use config::{Config, Form, Labels, Name, Replay, TooLong, Window, WrongBlocks};

const FILE: &str = "data";

pub struct Trace {
    player: Player,
    spares: u64,
}

impl Dataset for Trace {
    type Config = Config;

    fn open(config: Config, seed: u64, _: Amount, inputs: Inputs) -> Result<Self, Error> {
        config.check()?;
        let Some(file) = inputs.files.open(FILE) else {
            return Err(invalid(format!(
                "no trace: pass --dataset-path FILE, or set `{FILE} = \"FILE\"` under [dataset.files]"
            )));
        };
        if config.form == Form::Tokens && inputs.tokenizer.describe().approximate {
            return Err(invalid(
                "`as = \"tokens\"` needs the ids of the model's own tokenizer: pass --tokenizer, or send text".to_owned(),
            ));
        }
        open(config, seed, file, inputs.tokenizer).map_err(|error| match error {
            Error::InvalidInput(cause) => {
                Error::InvalidInput(format!("the file `{FILE}`: {cause}"))
            }
            other => other,
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        fill(limit, || self.player.next())
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        fill(limit, || {
            self.spares += 1;
            Ok(Some(self.player.spare(self.spares - 1)))
        })
    }

    fn remarks(&self) -> Vec<Remark> {
        self.player.notes.list()
    }
}

fn open(
    config: Config,
    seed: u64,
    file: Box<dyn runner_plugin::File>,
    tokenizer: Box<dyn runner_plugin::Tokenizer>,
) -> Result<Trace, Error> {
    let mut source = Source::new(file);
    let mut place = source.beginning()?;
    let first = loop {
        match source.line(place)? {
            None => return Err(Error::InvalidInput("it is empty".to_owned())),
            Some((line, _)) if !line.trim_ascii().is_empty() => break line,
            Some((_, next)) => place = next,
        }
    };
    let format = Format::detect(&first, &config)?;
    let replay = config.replay.unwrap_or(if format.in_sessions() {
        Replay::Sessions
    } else {
        Replay::Timestamps
    });
    if config.form == Form::Tokens && format.name == Name::Mooncake && replay == Replay::Sessions {
        return Err(invalid(
            "`as = \"tokens\"` cannot continue conversations, which `replay = \"sessions\"` does with Mooncake's \
             sessions: send text"
                .to_owned(),
        ));
    }
    let mut player = Player::new(source, format, config, replay, seed, tokenizer)?;
    let pass = Pass {
        format: &player.format,
        config: &player.config,
        replay,
        seed,
        tokenizer: &*player.tokenizer,
    };
    player.index = pass.index(&mut player.source, &mut player.notes)?;
    Ok(Trace { player, spares: 0 })
}
