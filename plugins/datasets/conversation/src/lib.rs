//! Conversations of several turns. Each is a session: the first turn is its root, and each further
//! turn follows the answer to its predecessor, after the user's think time. A turn carries only its
//! new messages; the host puts the history before them, with the answers that were given or the
//! recorded ones.
//!
//! This module runs through the conversations and names them; a source reads or draws them, and
//! `plan` makes samples of them. A sample's `input-tokens` count its new messages, without the
//! tokens that a chat template adds.
#![deny(unsafe_code)]

mod config;
mod lines;
mod plan;
mod sharegpt;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value};

use dialogue::sessions::{self, Arrivals, Sessions};
use runner_plugin::report::Remarks;
use runner_plugin::requests::fingerprint;
use runner_plugin::{
    Amount, Dataset, Error, Files, Inputs, Message, Remark, Role, Sample, Tokenizer,
};

use dialogue::rows::{Rows, parse, unknown, wrong};
use dialogue::turns::{Setting, Systems, Turn, lengths, wait};
use dialogue::words::{TextRequest, Writer, generator};
use dialogue::{FILE, MOST_TURNS};
use lines::is_about_the_file;
use plan::Plan;
use runner_plugin::json::BYTE_ORDER_MARK;
use runner_plugin::lengths::{Distribution, Lengths};

pub use config::{Config, Format, Length, Outside, Think};

/// Drawn conversations that may be outside of the bounds one after the other, at most.
const MOST_OUTSIDE: u64 = if cfg!(test) { 1_000 } else { 10_000 };

pub struct Conversations(Sessions);

runner_plugin::export_dataset!(Conversations);

impl Dataset for Conversations {
    type Config = Config;

    fn open(config: Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        config.check()?;
        let (format, lines) = recognise(&*inputs.files, config.format)?;
        config.check_for(format)?;
        let tokenizer: Rc<dyn Tokenizer> = Rc::from(inputs.tokenizer);
        let plan = Plan::new(&config, format, seed, tokenizer.clone())?;
        if lines && config.shuffle == Some(true) {
            return Err(Error::config(
                "`shuffle` works only with a ShareGPT file that is one JSON array; shuffle the lines of this file \
                 beforehand, such as with `shuf`, or leave the key out",
            ));
        }
        let mut remarks = Remarks::default();
        let source: Box<dyn Source> = match format {
            Format::Synthetic => {
                let writer = Writer::open(&*inputs.files)?;
                Box::new(Synthetic::new(&config, seed, tokenizer, writer)?)
            }
            Format::Sharegpt if !lines => {
                let shuffle = config.shuffle.unwrap_or(true);
                let opened = sharegpt::ShareGpt::open(&*inputs.files, shuffle, seed)?;
                let opened = opened.ok_or_else(|| Error::config("there is no file"))?;
                remarks = opened.remarks().clone();
                Box::new(opened)
            }
            _ => Box::new(lines::Lines::open(inputs.files, format)?),
        };
        let planned = Planned {
            source,
            plan,
            endless: format == Format::Synthetic,
            read: 0,
            read_since: 0,
            outside: 0,
            names: BTreeSet::new(),
            arrivals: Arrivals::default(),
        };
        Ok(Self(Sessions::new(Box::new(planned), "conversations", config.repeat, remarks)))
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.0.next(limit)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.0.spare(limit, "conversation-spare")
    }

    fn remarks(&self) -> Vec<Remark> {
        self.0.remarks()
    }
}

/// Conversations as sessions: with their names, their samples and their arrivals.
struct Planned {
    source: Box<dyn Source>,
    plan: Plan,
    /// True if the source never ends.
    endless: bool,
    /// Number of conversations that were read, in all and since the file began the last time, and
    /// of the last ones that were outside of the bounds.
    read: u64,
    read_since: u64,
    outside: u64,
    names: BTreeSet<u64>,
    arrivals: Arrivals,
}

impl sessions::Source for Planned {
    fn next(&mut self, pass: u64, remarks: &mut Remarks) -> Result<Option<Vec<Sample>>, Error> {
        if self.endless && self.outside == MOST_OUTSIDE {
            return Err(plan::nothing(MOST_OUTSIDE, 0, remarks));
        }
        let Some(conversation) = self.source.next()? else { return Ok(None) };
        let number = self.read;
        self.read += 1;
        self.read_since += 1;
        let mut session = match &conversation.name {
            Some(name) => name.clone(),
            None => format!("conversation-{:06}", self.read_since),
        };
        if pass > 1 {
            session = format!("{session}#{pass}");
        } else if conversation.name.is_some() && !self.names.insert(fingerprint(&session)) {
            return Err(Error::InvalidInput(format!(
                "file `{}`, {}: an earlier conversation has the name `{session}` too; put all lines of a conversation \
                 together, and give each conversation its own name",
                dialogue::FILE,
                conversation.place
            )));
        }
        let arrival = conversation.arrival;
        let planned = self.plan.samples(&session, number, conversation, remarks);
        self.outside = if planned.is_some() { 0 } else { self.outside + 1 };
        let mut samples = planned.unwrap_or_default();
        if let (Some(at), Some(root)) = (arrival, samples.first_mut()) {
            let (arrival, is_early) = self.arrivals.next(at);
            root.arrival = Some(arrival);
            if is_early {
                let reason = "a conversation with an earlier timestamp than the previous one; it now arrives with the previous one";
                remarks.repaired(reason, || session);
            }
        }
        Ok(Some(samples))
    }

    fn spare(&mut self) -> Result<Option<Sample>, Error> {
        for _ in 0..MOST_OUTSIDE {
            let Some(conversation) = self.source.spare()? else { break };
            let planned = self.plan.samples("spare", 0, conversation, &mut Remarks::default());
            if let Some(root) = planned.and_then(|planned| planned.into_iter().next()) {
                return Ok(Some(root));
            }
        }
        Ok(None)
    }

    fn rewind(&mut self) -> Result<(), Error> {
        self.read_since = 0;
        self.arrivals.rewind();
        self.source.rewind()
    }

    fn nothing(&self, spares: u64, remarks: &Remarks) -> Error {
        plan::nothing(self.read, spares, remarks)
    }
}

// Sources of conversations, and the detection of a file's format.

#[derive(Debug, Default, PartialEq)]
struct Conversation {
    /// Its name, if it has one of its own.
    pub(crate) name: Option<String>,
    pub(crate) place: String,
    pub(crate) class: Option<String>,
    /// Fields for each of its requests.
    pub(crate) parameters: Map<String, Value>,
    /// The time when it arrives, in nanoseconds from some beginning.
    pub(crate) arrival: Option<u64>,
    pub(crate) turns: Vec<Turn>,
    /// True if the bounds do not matter.
    pub(crate) exempt: bool,
    pub(crate) fault: Option<&'static str>,
}

trait Source {
    /// The next conversation to measure; `None` at the end.
    fn next(&mut self) -> Result<Option<Conversation>, Error>;

    /// A conversation that [`next`](Self::next) does not return.
    fn spare(&mut self) -> Result<Option<Conversation>, Error>;

    /// Begins again, without the [spare](Self::spare) conversations.
    fn rewind(&mut self) -> Result<(), Error>;
}

/// The format of the file `data` by its first line, and true if it has a conversation a line.
fn recognise(files: &dyn Files, format: Option<Format>) -> Result<(Format, bool), Error> {
    let Some(file) = files.open(FILE) else {
        return match format {
            None | Some(Format::Synthetic) => Ok((Format::Synthetic, false)),
            Some(_) => Err(Error::config(format!(
                "no conversation file: pass --dataset-path FILE, or set `{FILE} = \"FILE\"` under [dataset.files], or \
                 `format = \"synthetic\"`"
            ))),
        };
    };
    if format == Some(Format::Synthetic) {
        return Err(Error::config(format!(
            "`format = \"synthetic\"` reads no file: leave `{FILE}` out, or name it `text` for conversations of its \
             words"
        )));
    }
    let beginning = file.read(0, 4096).map_err(Error::InvalidInput)?;
    let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&beginning);
    let array = beginning.trim_ascii_start().first() == Some(&b'[');
    if let Some(format) = format {
        if array && format != Format::Sharegpt {
            return Err(Error::InvalidInput(format!(
                "the file `{FILE}` is one JSON array; this format has an object a line: convert it, such as with \
                 `jq -c '.[]'`"
            )));
        }
        return Ok((format, !array));
    }
    if array {
        return Ok((Format::Sharegpt, false));
    }
    let Some((number, line)) =
        Rows::open(files).and_then(|mut rows| rows.line().transpose()).transpose()?
    else {
        return Err(Error::InvalidInput(format!("the file `{FILE}` is empty")));
    };
    let fields: Map<String, Value> = parse(&line).map_err(|cause| wrong(number, &cause))?;
    let has = |key: &str| fields.contains_key(key);
    let format = if has("conversations") || has("conversation") {
        Format::Sharegpt
    } else if has("conversation_id") && has("role") || is_about_the_file(&fields) {
        Format::Mlperf
    } else if has("turns") || has("session_id") {
        Format::Aiperf
    } else if has("messages") {
        Format::Messages
    } else {
        let expected = "`messages`, with `session_id` and `turns`, with `conversation_id` and `role`, or with \
             `conversations`";
        return Err(unknown(number, expected, &fields));
    };
    Ok((format, true))
}

/// The parts of a session, each with a generator of its own.
const TURNS: u64 = 0;

const WAITS: u64 = 1;

/// Of the texts: two for each turn.
const TEXTS: u64 = 16;

const SPARE: u64 = 0x5fa4_e000;

struct Synthetic {
    seed: u64,
    tokenizer: Rc<dyn Tokenizer>,
    writer: Writer,
    turns: Lengths,
    first: Lengths,
    later: Lengths,
    outputs: Option<Lengths>,
    think: Option<Distribution>,
    systems: Option<Systems>,
    drawn: u64,
    spares: u64,
}

impl Synthetic {
    pub(crate) fn new(
        config: &Config,
        seed: u64,
        tokenizer: Rc<dyn Tokenizer>,
        writer: Writer,
    ) -> Result<Self, Error> {
        let turns = match &config.turns {
            Some(distribution) => distribution.lengths("turns", 1..=MOST_TURNS as u32)?,
            None => Lengths::constant(4),
        };
        let later = lengths("input-len", config.input_len.as_ref(), 128)?;
        let first = match &config.first_input_len {
            None => later.clone(),
            given => lengths("first-input-len", given.as_ref(), 128)?,
        };
        let systems = match &config.system_prompts {
            Some(listed) => Some(Systems::listed(seed, listed)?),
            None => Systems::new(seed, config.system_len.as_ref(), config.system_groups)?,
        };
        Ok(Self {
            seed,
            tokenizer,
            writer,
            turns,
            first,
            later,
            outputs: config.drawn_outputs(Format::Synthetic)?,
            think: match &config.think_time {
                Some(Setting::Drawn(distribution)) => Some(distribution.clone()),
                _ => None,
            },
            systems,
            drawn: 0,
            spares: 0,
        })
    }

    fn draw(&mut self, number: u64) -> Result<Conversation, Error> {
        let mut lengths = generator(self.seed, number, TURNS);
        let mut waits = generator(self.seed, number, WAITS);
        let count = self.turns.draw(&mut lengths);
        let mut wanted = Vec::new();
        let mut turns = Vec::new();
        for index in 0..u64::from(count) {
            let input = if index == 0 { &self.first } else { &self.later };
            let mut text = |part, tokens| {
                wanted.push(TextRequest {
                    random: generator(self.seed, number, TEXTS + 2 * index + part),
                    tokens,
                });
            };
            text(0, input.draw(&mut lengths));
            let output = self.outputs.as_ref().map(|outputs| outputs.draw(&mut lengths));
            text(1, output.unwrap_or(0));
            let think = self.think.as_ref();
            turns.push(Turn {
                delay: think.map_or(0, |think| wait(think, &mut waits)),
                output_tokens: output,
                ..Turn::default()
            });
        }
        let mut texts = self.writer.write(&*self.tokenizer, &wanted)?.into_iter();
        let mut next = || texts.next().unwrap_or_default().0;
        for turn in &mut turns {
            turn.messages.push(Message::text(Role::User, next()));
            let answer = next();
            turn.answer = turn.output_tokens.map(|_| Message::text(Role::Assistant, answer));
        }
        if let Some(systems) = &mut self.systems
            && let Some(first) = turns.first_mut()
        {
            let system = systems.prompt(number, &self.writer, &*self.tokenizer)?;
            if !system.is_empty() {
                first.messages.insert(0, Message::text(Role::System, system));
            }
        }
        Ok(Conversation {
            place: format!("conversation {}", number + 1),
            turns,
            ..Conversation::default()
        })
    }
}

impl Source for Synthetic {
    fn next(&mut self) -> Result<Option<Conversation>, Error> {
        self.drawn += 1;
        self.draw(self.drawn - 1).map(Some)
    }

    /// One question, as long as a first one; it begins like no text of [`next`](Self::next).
    fn spare(&mut self) -> Result<Option<Conversation>, Error> {
        let number = self.spares;
        self.spares += 1;
        let mut lengths = generator(self.seed ^ SPARE, number, TURNS);
        let tokens = self.first.draw(&mut lengths);
        let random = generator(self.seed ^ SPARE, number, TEXTS);
        let wanted = TextRequest { random, tokens };
        let (text, _) = self.writer.apart(&*self.tokenizer, &wanted)?;
        let outputs = self.outputs.as_ref();
        Ok(Some(Conversation {
            turns: vec![Turn {
                messages: vec![Message::text(Role::User, text)],
                output_tokens: outputs.map(|outputs| outputs.draw(&mut lengths)),
                ..Turn::default()
            }],
            exempt: true,
            ..Conversation::default()
        }))
    }

    fn rewind(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
