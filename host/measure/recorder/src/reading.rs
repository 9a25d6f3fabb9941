//! The thread that makes rows of requests and their replies.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use model::units::Nanos;
use plugins::backend::Dialect;
use serde_json::Value;
use tokenizer::Tokenizer;

use crate::answer::{self, Answer};
use crate::chain::{BLOCK, Digest, Key, Units};
use crate::counts::{Count, Counts};
use crate::form::{ClientRequest, Content, Form};
use crate::row::{Row, WHOLE_PROMPTS};
use crate::sessions::{Place, Repeated, Sessions, Signs};
use crate::tap::{BodyCopy, Event, RequestHead};
use crate::{Coarseness, RowFile};

/// Requests whose replies have not ended; beyond this number the oldest are given up.
const RUNNING: usize = 65_536;
/// Blocks of all these requests: 512 MiB.
const RUNNING_BLOCKS: usize = 64 << 20;
/// Blocks of a row: a prompt of 16 million tokens. A server may state any number.
const ROW_BLOCKS: usize = 256 << 10;

/// Purposes of digests.
const HEADER: u8 = b'h';
const REPLY: u8 = b'r';
const MESSAGE: u8 = b'm';
const ANSWER: u8 = b'a';

pub(crate) struct Reader {
    pub(crate) dialect: Dialect,
    pub(crate) forms: Vec<Form>,
}

pub(crate) struct Reading {
    pub(crate) readers: Vec<Reader>,
    pub(crate) tokenizer: Option<Tokenizer>,
    /// Bytes of a token where no tokenizer counts.
    pub(crate) bytes_of_token: usize,
    pub(crate) coarseness: Coarseness,
    pub(crate) key: Key,
    pub(crate) counts: Arc<Counts>,
    pub(crate) file: RowFile,
    pub(crate) state: State,
}

#[derive(Default)]
pub(crate) struct State {
    running: BTreeMap<u64, Running>,
    running_blocks: usize,
    sessions: Sessions,
    models: HashMap<Digest, usize>,
    /// The reason why the last row could not be written, until one can.
    trouble: Option<String>,
}

struct Running {
    /// The backend that reads the reply; absent where the log has read it.
    reader: Option<usize>,
    arrived: Nanos,
    request: ClientRequest,
    /// The ids of the prompt's blocks, and its tokens by the text.
    blocks: Vec<u64>,
    tokens: u32,
    counted: Option<u32>,
    place: Place,
    /// Tokens of the exchange before, if the prompt repeats it.
    repeated: Option<u32>,
}

impl Reading {
    /// Makes rows until no event can come any more.
    pub(crate) fn run(mut self, events: &Receiver<Event>, mut tell: impl FnMut(&str)) -> RowFile {
        while let Ok(event) = events.recv() {
            match event {
                Event::Began(number, head, body) => self.began(number, &head, &body),
                Event::Ended(number, reply, body, ended) => {
                    self.ended(number, reply, &body, ended, &mut tell);
                }
            }
        }
        self.file
    }

    /// Reads a request by the form of its route.
    pub(crate) fn began(&mut self, number: u64, head: &RequestHead, body: &BodyCopy) {
        let fits = |reader: &Reader| {
            reader.forms.iter().find(|form| form.fits(head.method.as_str(), &head.path)).cloned()
        };
        let found = self.readers.iter().enumerate();
        let found = found.filter_map(|(place, reader)| Some((place, fits(reader)?))).next();
        let Some((reader, form)) = found else { return self.counts.add(Count::UnknownRoute) };
        if body.is_lost {
            return self.counts.add(Count::TooLarge);
        }
        let plain = answer::plain(head.encoding.as_deref(), &body.bytes);
        let request = plain.and_then(|plain| form.read(&head.path, &plain));
        let Some(request) = request else { return self.counts.add(Count::UnknownForm) };
        self.begin(number, Some(reader), head, request);
    }

    pub(crate) fn begin(
        &mut self,
        number: u64,
        reader: Option<usize>,
        head: &RequestHead,
        mut request: ClientRequest,
    ) {
        let (units, counted) = self.units(&request.prompt);
        let mut blocks = self.key.blocks(&units);
        blocks.truncate(ROW_BLOCKS);
        let tokens = units.tokens();
        let whole = tokens as usize / BLOCK;
        let ends = self.ends(&request.prompt);
        let answer = last_answer(&request.prompt).map(|text| self.answer_digest(&text));
        // Nothing of the text is needed any more.
        request.prompt = Content::default();
        let digest = |purpose, value: &[u8]| self.key.digest(purpose, &Digest::default(), value);
        let named = |value: &Option<Vec<u8>>| value.as_ref().map(|value| digest(HEADER, value));
        let signs = Signs {
            header: named(&head.session),
            parent: named(&head.parent),
            previous: request.previous.as_ref().map(|id| digest(REPLY, id.as_bytes())),
            ends: &ends,
            blocks: &blocks[..whole.min(blocks.len())],
            at: head.arrived,
        };
        let place = self.state.sessions.place(&signs);
        let arrived = head.arrived;
        self.state.running_blocks += blocks.len();
        let repeated = place.before.filter(|before| Some(before.answer) == answer);
        let repeated = repeated.map(|before| before.tokens);
        let running =
            Running { reader, arrived, request, blocks, tokens, counted, place, repeated };
        self.state.running.insert(number, running);
        // The end of a request may have been dropped, so the oldest may never end.
        while self.state.running.len() > RUNNING || self.state.running_blocks > RUNNING_BLOCKS {
            let Some(oldest) = self.state.running.keys().next().copied() else { break };
            self.take(oldest);
            self.counts.add(Count::Behind);
        }
    }

    fn take(&mut self, number: u64) -> Option<Running> {
        let running = self.state.running.remove(&number)?;
        self.state.running_blocks -= running.blocks.len();
        Some(running)
    }

    /// The prompt as blocks are cut from it, and its tokens if a tokenizer counts them.
    fn units(&self, prompt: &Content) -> (Units, Option<u32>) {
        let tokens = |ids: &[u32]| (Units::of_tokens(ids), Some(ids.len() as u32));
        if let Content::Tokens(ids) = prompt {
            return tokens(ids);
        }
        if let Some(tokenizer) = &self.tokenizer {
            let (text, is_chat) = match prompt {
                Content::Messages { messages, tools } => {
                    let extra = serde_json::Map::new();
                    let text = tokenizer.render_chat(messages, tools.as_ref(), &extra);
                    (text.unwrap_or_else(|_| plain_text(prompt)), true)
                }
                _ => (plain_text(prompt), false),
            };
            if let Ok([ids]) = tokenizer.encode(&[text], !is_chat).as_deref() {
                return tokens(ids);
            }
        }
        let bytes = plain_text(prompt).into_bytes();
        (Units { bytes, of_token: self.bytes_of_token }, None)
    }

    /// Digests of all messages up to each, or of the text.
    fn ends(&self, prompt: &Content) -> Vec<Digest> {
        let mut before = Digest::default();
        let mut next = |text: &str| {
            before = self.key.digest(MESSAGE, &before, text.as_bytes());
            before
        };
        match prompt {
            Content::Messages { messages, tools } => {
                let tools = tools.iter().map(ToString::to_string);
                let texts = tools.chain(messages.iter().map(ToString::to_string));
                texts.map(|text| next(&text)).collect()
            }
            // A text does not show where an earlier prompt ended.
            Content::Text(_) | Content::Tokens(_) => Vec::new(),
        }
    }

    /// Reads the reply to a request, and writes the row of both.
    pub(crate) fn ended(
        &mut self,
        number: u64,
        reply: Option<(u16, HeaderMap)>,
        body: &BodyCopy,
        ended: Nanos,
        tell: &mut impl FnMut(&str),
    ) {
        let Some(mut running) = self.take(number) else { return };
        let status = reply.as_ref().map(|(status, _)| *status);
        let is_streaming = running.request.is_streaming.unwrap_or_else(|| {
            let kind = reply.as_ref().and_then(|(_, head)| head.get(CONTENT_TYPE)?.to_str().ok());
            kind.is_some_and(|kind| kind.contains("event-stream") || kind.contains("ndjson"))
        });
        running.request.is_streaming = Some(is_streaming);
        let success = reply.filter(|(status, _)| is_success(*status));
        let reader = running.reader;
        let answer = reader.and_then(|reader| self.answer(reader, success, body, is_streaming));
        let row = self.row(number, running, (status, answer), ended);
        self.write(&row, tell);
    }

    /// Writes the row of a request whose answer is known.
    pub(crate) fn answered(
        &mut self,
        number: u64,
        answer: (Option<u16>, Option<Answer>),
        ended: Nanos,
        tell: &mut impl FnMut(&str),
    ) {
        let Some(running) = self.take(number) else { return };
        let row = self.row(number, running, answer, ended);
        self.write(&row, tell);
    }

    fn row(
        &mut self,
        number: u64,
        running: Running,
        (status, answer): (Option<u16>, Option<Answer>),
        ended: Nanos,
    ) -> Row {
        let Running { arrived, request, blocks, tokens, counted, place, repeated, .. } = running;
        let is_refused = status.is_some_and(|status| !is_success(status));
        let is_broken = status.is_none()
            || answer.as_ref().is_some_and(|answer| answer.is_failure || !answer.is_complete);
        let answer = answer.unwrap_or_default();
        let id = answer.id.as_ref();
        let id = id.map(|id| self.key.digest(REPLY, &Digest::default(), id.as_bytes()));
        // The server's count is the truth about its tokens; of a failed request it gives none.
        let is_counted = answer.input_tokens.is_some() && answer.output_tokens.is_some();
        if !is_refused && !is_broken && !is_counted {
            self.counts.add(Count::Uncounted);
        }
        if answer.input_tokens.zip(counted).is_some_and(|(server, own)| server != own) {
            self.counts.add(Count::Differs);
        }
        let input = answer.input_tokens.unwrap_or(counted.unwrap_or(tokens));
        let output = match request.limit.filter(|_| is_refused || is_broken) {
            // The request asked for this many, and a replay asks again.
            Some(limit) => limit,
            None => answer.output_tokens.unwrap_or_else(|| self.tokens(&answer.text)),
        };
        let is_repeatable = !is_refused && !is_broken && !answer.has_reasoning;
        let before = is_repeatable.then(|| Repeated {
            tokens: input.saturating_add(output),
            answer: self.answer_digest(&answer.content),
        });
        self.state.sessions.ended(place, ended, id, before);
        let new = repeated.and_then(|repeated| input.checked_sub(repeated)).filter(|new| *new > 0);
        for (count, holds) in [(Count::Refused, is_refused), (Count::Broken, is_broken)] {
            if holds {
                self.counts.add(count);
            }
        }
        let Coarseness { time, tokens: step } = self.coarseness;
        let coarse = |count: u32| count.div_ceil(step.get()).saturating_mul(step.get());
        let (input, output) = (coarse(input), coarse(output));
        let micros = |at: Nanos| micros(at, time);
        let seconds = |at: Nanos| micros(at.since(arrived)) / 1e6;
        let session = place.session;
        Row {
            timestamp: micros(arrived) / 1e3,
            session_id: match place.thread {
                0 => session.to_string(),
                thread => format!("{session}.{thread}"),
            },
            context_mode: WHOLE_PROMPTS.to_owned(),
            input_length: input,
            output_length: output,
            new_length: new.map(coarse),
            hash_ids: self.fitted(number, blocks, tokens, input),
            block_size: BLOCK,
            delay: place.after.map(|end| micros(arrived.since(end)) / 1e3),
            api_time: seconds(ended),
            ttft: answer.first.map(seconds),
            cached: answer.cached_tokens,
            model: request.model.as_ref().map(|model| self.model(model)),
            stream: request.is_streaming.unwrap_or(false),
            status,
            broken: is_broken,
            media: request.media,
            extra: request.options,
        }
    }

    fn answer(
        &mut self,
        reader: usize,
        reply: Option<(u16, HeaderMap)>,
        body: &BodyCopy,
        is_streaming: bool,
    ) -> Option<Answer> {
        let (status, headers) = reply?;
        if body.is_lost {
            self.counts.add(Count::TooLarge);
            return None;
        }
        let dialect = &mut self.readers[reader].dialect;
        let answer = answer::read(dialect, (status, &headers), body, is_streaming);
        if answer.is_none() {
            self.counts.add(Count::UnknownReply);
        }
        answer
    }

    /// An id for each block of a prompt of `input` tokens; blocks beyond the text have their own.
    fn fitted(&self, number: u64, mut ids: Vec<u64>, tokens: u32, input: u32) -> Vec<u64> {
        // The last block may be partial, and then it is another one if the counts differ.
        if tokens != input {
            ids.truncate(tokens as usize / BLOCK);
        }
        let count = (input as usize).div_ceil(BLOCK).min(ROW_BLOCKS);
        ids.truncate(count);
        ids.extend((ids.len()..count).map(|block| self.key.unique(number, block)));
        ids
    }

    fn answer_digest(&self, text: &str) -> Digest {
        self.key.digest(ANSWER, &Digest::default(), text.trim().as_bytes())
    }

    fn tokens(&self, text: &str) -> u32 {
        let counted = self.tokenizer.as_ref();
        let counted = counted.and_then(|own| own.count(&[text.to_owned()], false).ok());
        let counted = counted.and_then(|counts| counts.first().copied());
        counted.unwrap_or_else(|| text.len().div_ceil(self.bytes_of_token) as u32)
    }

    fn model(&mut self, name: &str) -> String {
        /// Models that have a number of their own.
        const MOST: usize = 1000;
        let digest = self.key.digest(HEADER, &Digest::default(), name.as_bytes());
        let next = self.state.models.len();
        let number = match self.state.models.get(&digest) {
            Some(number) => *number,
            None if next < MOST => *self.state.models.entry(digest).or_insert(next),
            None => MOST,
        };
        format!("model-{}", number + 1)
    }

    fn write(&mut self, row: &Row, tell: &mut impl FnMut(&str)) {
        let Ok(mut line) = serde_json::to_vec(row) else { return };
        line.push(b'\n');
        match self.file.write(&line) {
            Ok(()) => {
                self.counts.add(Count::Rows);
                if self.state.trouble.take().is_some() {
                    tell("rows can be written again");
                }
            }
            Err(cause) => {
                self.counts.add(Count::Unwritten);
                let cause = cause.to_string();
                if self.state.trouble.as_ref() != Some(&cause) {
                    tell(&format!(
                        "warning: rows are lost, because they cannot be written: {cause}"
                    ));
                    self.state.trouble = Some(cause);
                }
            }
        }
    }
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// The text of the last answer in a conversation, without its tool calls.
fn last_answer(prompt: &Content) -> Option<String> {
    let Content::Messages { messages, .. } = prompt else { return None };
    let is_answer = |message: &&Value| {
        matches!(message["role"].as_str(), Some("assistant" | "model" | "chatbot"))
    };
    let message = messages.iter().rfind(is_answer)?;
    let content = message.get("content").or_else(|| message.get("parts"));
    Some(match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect()
        }
        _ => String::new(),
    })
}

/// Microseconds, rounded to a multiple of `step`.
fn micros(time: Nanos, step: Nanos) -> f64 {
    let step = step.0.max(1_000) as f64;
    (time.0 as f64 / step).round() * step / 1e3
}

/// All texts of a prompt, with their places, so that a longer conversation begins with a shorter.
fn plain_text(prompt: &Content) -> String {
    let mut text = String::new();
    match prompt {
        Content::Text(only) => text.push_str(only),
        Content::Tokens(_) => {}
        Content::Messages { messages, tools } => {
            tools.iter().for_each(|tools| append(tools, &mut text));
            for message in messages {
                append(message, &mut text);
                text.push('\n');
            }
        }
    }
    text
}

fn append(value: &Value, text: &mut String) {
    match value {
        Value::String(own) => {
            text.push_str(own);
            text.push(' ');
        }
        Value::Array(items) => items.iter().for_each(|item| append(item, text)),
        Value::Object(fields) => fields.values().for_each(|field| append(field, text)),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}
