//! Makes samples of the rows that `index` kept, one after the other, independent of the number per
//! call. Owns a sample's dependencies and its prompt's tokens; holds one session, and the piece of
//! the file around it.

use std::collections::{BTreeMap, BTreeSet};

use runner_plugin::report::Remarks;
use runner_plugin::{
    Continuation, Dependency, Error, Message, Part, Prompt, Role, Sample, Tokenizer, Turn,
};

use crate::config::{Answers, Config, Form, Name, Replay, TooLong};
use crate::content::{self, Kind, Run, hash, stream};
use crate::formats::weka::{self, Session};
use crate::formats::{Content, Format, Row};
use crate::index::{AFTER, Entry, Index, NEVER, REASONS};
use crate::source::{Place, Source};
use crate::words::Words;

pub(crate) struct Player {
    pub(crate) source: Source,
    pub(crate) format: Format,
    pub(crate) config: Config,
    pub(crate) replay: Replay,
    pub(crate) seed: u64,
    pub(crate) words: Words,
    pub(crate) tokenizer: Box<dyn Tokenizer>,
    pub(crate) index: Index,
    pub(crate) notes: Remarks,
    /// Tokens that the chat template adds to the first question, and to a later one and its answer.
    template: [u32; 2],
    /// Texts of samples that are not measured.
    pub(crate) spares: BTreeSet<String>,
    state: State,
}

#[derive(Default)]
struct State {
    /// Entries that were given out.
    at: usize,
    /// The session of the last one, and the samples that were given out of it.
    group: Option<u32>,
    given: Vec<SentSample>,
    /// A session in one line that has further requests.
    open: Option<Open>,
    /// The prompt before, by session, of traces that split prompts. No more runs than rows.
    splits: BTreeMap<u32, Vec<Run>>,
    /// The last arrival: on the trace's clock, and on the run's.
    last: Option<(u64, u64)>,
    /// Requests that were given out, by session.
    turns: Vec<u32>,
    /// The session whose rest is left out.
    cut: Option<u32>,
}

struct SentSample {
    id: String,
    name: Option<i64>,
    ended: Option<i64>,
}

struct Frame {
    id: String,
    line: u32,
    /// The number of its own stream.
    own: u64,
    group: u32,
    after: Vec<Dependency>,
    turn: Option<Turn>,
    arrival: Option<u64>,
}

impl Player {
    pub(crate) fn new(
        source: Source,
        format: Format,
        config: Config,
        replay: Replay,
        seed: u64,
        tokenizer: Box<dyn Tokenizer>,
    ) -> Result<Self, Error> {
        let words = Words::new(&*tokenizer, config.form)?;
        let is_live = config.answers == Answers::Live;
        let template = if is_live { template(&*tokenizer, &words) } else { [0; 2] };
        Ok(Self {
            template,
            source,
            format,
            config,
            replay,
            seed,
            words,
            tokenizer,
            index: Index::default(),
            notes: Remarks::default(),
            spares: BTreeSet::new(),
            state: State::default(),
        })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Sample>, Error> {
        loop {
            if let Some(mut open) = self.state.open.take() {
                let sample = self.of_open(&mut open)?;
                if sample.is_some() {
                    self.state.open = Some(open);
                    return Ok(sample);
                }
            }
            let Some(entry) = self.index.entries.get(self.state.at).copied() else {
                return Ok(None);
            };
            self.state.at += 1;
            if self.format.name == Name::Weka && self.replay == Replay::Sessions {
                self.open(entry)?;
                continue;
            }
            let line = self.index.line(&entry);
            if self.replay == Replay::Sessions && self.state.cut == Some(entry.group) {
                self.notes.dropped(AFTER, || format!("line {line}"));
                continue;
            }
            let sample = self.of_row(entry)?;
            let spare = matches!(&sample.prompt, Prompt::Text(text) if self.spares.contains(text));
            if !spare {
                return Ok(Some(sample));
            }
            // Its successors would wait for a sample that was not returned.
            self.state.cut = Some(entry.group);
            let reason = "a prompt that was used for warm-up";
            self.notes.dropped(reason, || format!("line {line}"));
        }
    }

    /// A sample that is not measured, with the lengths of one of the trace's requests.
    pub(crate) fn spare(&mut self, number: u64) -> Sample {
        let sizes = &self.index.sizes;
        let (input, output) = match sizes.len() {
            0 => (16, 16),
            length => sizes[number as usize % length],
        };
        let most = self.config.max_input.unwrap_or(u32::MAX);
        let runs = [Run {
            stream: stream(Kind::Spare, &[number]),
            from: 0,
            length: input.min(most).saturating_sub(1),
        }];
        let mut sample = self.made_up(format!("spare-{}", number + 1), &runs, true);
        sample.output_tokens = Some(output.min(self.config.max_output.unwrap_or(u32::MAX)));
        if let Prompt::Text(text) = &sample.prompt {
            self.spares.insert(text.clone());
        }
        sample
    }

    /// A sample of a line, or of a request within one.
    fn of_row(&mut self, entry: Entry) -> Result<Sample, Error> {
        let line = self.index.line(&entry);
        let wrong = |cause: String| {
            Error::InvalidInput(format!("line {line} changed while it was in use: {cause}"))
        };
        let (mut row, id, own) = if let Some(request) = self.index.request(&entry).copied() {
            let bytes = self.source.bytes(entry.offset(), request.length.into())?;
            let thread = &self.index.threads[entry.group as usize];
            let mut row = weka::row(&bytes, &thread.layout, request.place).map_err(wrong)?;
            row.session = Some(thread.name.clone());
            let id = format!("line-{line}-{}", request.place + 1);
            (row, id, request.place)
        } else {
            let offset = entry.offset();
            let read = self.source.line(Place { offset, line })?;
            let bytes = read.map(|(bytes, _)| bytes).unwrap_or_default();
            let row = self.format.row(&bytes, line).map_err(wrong)?;
            (row, format!("line-{line}"), line)
        };
        let named = row.session.as_deref();
        if named.is_some_and(|session| self.index.whole.contains(&hash(session))) {
            row.delta = false;
        }
        let session = row.session.clone().or_else(|| {
            let root = self.index.roots.get(entry.group as usize)?;
            row.link.map(|_| root.to_string())
        });
        let time = (entry.time != NEVER).then_some(entry.time);
        let (mut after, mut arrival) = (Vec::new(), None);
        if self.replay == Replay::Timestamps {
            arrival = time.map(|time| self.arrival(time, line));
        } else if self.state.group == Some(entry.group) {
            after.extend(self.dependency(&row, time, line));
        } else {
            self.state.group = Some(entry.group);
            self.state.given.clear();
            self.state.splits.clear();
            arrival = time.map(|time| self.config.scaled(time.saturating_sub(self.index.base)));
        }
        if self.replay == Replay::Sessions {
            let ended = time.map(|time| time.saturating_add(row.took.unwrap_or_default()));
            // Only trees of requests go back to an earlier one than the last.
            if row.link.is_none() {
                self.state.given.clear();
            }
            self.state.given.push(SentSample {
                id: id.clone(),
                name: row.link.map(|link| link.name),
                ended,
            });
        }
        let turn = session.map(|session| Turn { session, index: self.turn(entry.group) });
        let frame = Frame { id, line, own: own.into(), group: entry.group, after, turn, arrival };
        Ok(self.sample(row, frame))
    }

    /// Returns the number of the next request within its session.
    fn turn(&mut self, group: u32) -> u32 {
        let turns = &mut self.state.turns;
        let at = group as usize;
        if turns.len() <= at {
            turns.resize(at + 1, 0);
        }
        turns[at] += 1;
        turns[at] - 1
    }

    /// Returns the dependency of a further row: on the named request, or on its predecessor.
    fn dependency(&mut self, row: &Row, time: Option<i64>, line: u32) -> Option<Dependency> {
        let parent = row.link.and_then(|link| link.parent);
        let named = parent
            .and_then(|parent| {
                let mut given = self.state.given.iter();
                given.find(|given| given.name == Some(parent))
            })
            .or(self.state.given.last())?;
        let recorded = time.zip(named.ended).map(|(time, ended)| time.saturating_sub(ended));
        let id = named.id.clone();
        let delay = self.pause(row.wait.or(recorded).unwrap_or_default(), line);
        Some(Dependency::end(id, delay))
    }

    /// A pause of the trace in the run, at most as long as configured.
    fn pause(&mut self, nanos: i64, line: u32) -> u64 {
        self.capped(self.config.scaled(nanos), line)
    }

    fn capped(&mut self, pause: u64, line: u32) -> u64 {
        let longest = self.config.longest_pause();
        if pause > longest {
            let reason = "a pause longer than `max-idle`";
            self.notes.truncated(reason, || format!("line {line}"));
        }
        pause.min(longest)
    }

    fn arrival(&mut self, time: i64, line: u32) -> u64 {
        let due = self.config.scaled(time.saturating_sub(self.index.base));
        let (before, arrived) = self.state.last.unwrap_or_default();
        let arrival = arrived.saturating_add(self.capped(due.saturating_sub(before), line));
        self.state.last = Some((due, arrival));
        arrival
    }

    fn sample(&mut self, row: Row, frame: Frame) -> Sample {
        if let Some(repaired) = row.repaired {
            self.notes.repaired(repaired, || format!("line {}", frame.line));
        }
        if row.pictures {
            let reason = "the images of a request: the trace has only their number";
            self.notes.dropped(reason, || format!("line {}", frame.line));
        }
        let most = self.config.max_input.unwrap_or(u32::MAX);
        let delta = row.delta && self.replay == Replay::Sessions;
        let own = [hash(row.session.as_deref().unwrap_or_default()), frame.own];
        let mut sample = match row.content {
            Content::Text(text) => self.recorded(frame.id.clone(), text, most, frame.line),
            Content::Messages(messages) => {
                let counted = self.tokenizer.count_chat(
                    std::slice::from_ref(&messages),
                    row.parameters.get("tools").map(ToString::to_string).as_deref(),
                );
                Sample {
                    input_tokens: counted.first().copied().flatten().filter(|_| !delta),
                    ..Sample::new(frame.id.clone(), Prompt::Messages(messages))
                }
            }
            Content::Runs(mut runs) => {
                if delta {
                    let is_later = !frame.after.is_empty() && !row.anew;
                    let own = self.template[usize::from(is_later)];
                    let length = content::length(&runs).saturating_sub(own).max(1);
                    content::cut(&mut runs, length);
                }
                self.cut(frame.id.clone(), runs, most, frame.line)
            }
            Content::Tokens(length) => {
                let stream = match &row.session {
                    Some(session) if !row.delta => stream(Kind::Session, &[hash(session)]),
                    _ => stream(Kind::Row, &own),
                };
                let run = Run { stream, from: 0, length };
                self.cut(frame.id.clone(), vec![run], most, frame.line)
            }
            Content::Split { prefix, fresh } => {
                let runs = self.split(prefix, fresh, &own, frame.group);
                self.cut(frame.id.clone(), runs, most, frame.line)
            }
        };
        sample.output_tokens = row.output.map(|output| {
            let longest = self.config.max_output.unwrap_or(u32::MAX);
            if output > longest {
                let reason = "an answer longer than `max-output`";
                self.notes.truncated(reason, || format!("line {}", frame.line));
            }
            output.min(longest)
        });
        if delta {
            let parent = frame.after.first().filter(|_| !row.anew);
            sample = self.continued(sample, &own, parent);
        }
        sample.after = frame.after;
        sample.turn = frame.turn;
        sample.arrival = frame.arrival;
        sample.class = row.class;
        sample.recorded_duration = row.took.and_then(|took| u64::try_from(took).ok());
        if !row.parameters.is_empty() {
            sample.parameters = Some(serde_json::Value::Object(row.parameters).to_string());
        }
        sample
    }

    /// A session's prompt: the beginning of the previous one, and a run of its own.
    fn split(&mut self, prefix: u32, fresh: u32, own: &[u64; 2], group: u32) -> Vec<Run> {
        let runs = self.state.splits.entry(group).or_default();
        content::cut(runs, prefix);
        let found = content::length(runs);
        let rest = [
            // Cached tokens outside the previous prompt: its answer, or tokens of other sessions.
            Run { stream: stream(Kind::Session, &own[..1]), from: found, length: prefix - found },
            Run { stream: stream(Kind::Round, own), from: 0, length: fresh },
        ];
        runs.extend(rest.into_iter().filter(|run| run.length > 0));
        runs.clone()
    }

    /// A made-up prompt, cut if it is too long.
    fn cut(&mut self, id: String, mut runs: Vec<Run>, most: u32, line: u32) -> Sample {
        if content::length(&runs) > most {
            content::cut(&mut runs, most);
            let reason = "a prompt longer than `max-input`";
            self.notes.truncated(reason, || format!("line {line}"));
        }
        self.made_up(id, &runs, false)
    }

    fn made_up(&self, id: String, runs: &[Run], marked: bool) -> Sample {
        let words = content::indices(&self.words, self.seed, runs);
        let length = content::length(runs) + u32::from(marked);
        let (prompt, added) = match self.config.form {
            Form::Text => (Prompt::Text(self.words.text(marked, words)), self.words.added),
            Form::Tokens => (Prompt::Tokens(self.words.ids(marked, words)), 0),
        };
        Sample { input_tokens: Some(length + added), ..Sample::new(id, prompt) }
    }

    /// A recorded prompt, cut if it is too long.
    fn recorded(&mut self, id: String, text: String, most: u32, line: u32) -> Sample {
        let mut texts = [text];
        let mut count = self.tokenizer.count(&texts, true).first().copied();
        if count.is_some_and(|count| count > most) {
            let mut ids = self.tokenizer.encode(&texts, false);
            if let Some(ids) = ids.first_mut() {
                ids.truncate(most.saturating_sub(self.words.added).max(1) as usize);
            }
            texts = [self.tokenizer.decode(&ids).pop().unwrap_or_default()];
            count = self.tokenizer.count(&texts, true).first().copied();
            let reason = "a prompt longer than `max-input`";
            self.notes.truncated(reason, || format!("line {line}"));
        }
        let [text] = texts;
        Sample { input_tokens: count, ..Sample::new(id, Prompt::Text(text)) }
    }

    /// A turn that is a delta: a conversation, or a continuation of one. An answer is made up for
    /// runs whose histories do not take the model's own.
    fn continued(&self, mut sample: Sample, own: &[u64; 2], parent: Option<&Dependency>) -> Sample {
        let messages = match sample.prompt {
            Prompt::Text(text) => vec![Message::text(Role::User, text)],
            Prompt::Messages(messages) => messages,
            other => {
                sample.prompt = other;
                return sample;
            }
        };
        sample.recorded_answer = sample.output_tokens.map(|length| {
            let run = Run { stream: stream(Kind::Answer, own), from: 0, length };
            let words = content::indices(&self.words, self.seed, std::slice::from_ref(&run));
            Message {
                role: Role::Assistant,
                parts: vec![Part::Text(self.words.text(false, words))],
                extra: None,
            }
        });
        sample.prompt = match parent {
            None => Prompt::Messages(messages),
            Some(parent) => {
                Prompt::Continuation(Continuation { parent: parent.sample.clone(), messages })
            }
        };
        sample
    }
}

/// Counts the tokens that the chat template adds to a first question, and to a later one with the
/// answer before it; 0 where the template is not known.
fn template(tokenizer: &dyn Tokenizer, words: &Words) -> [u32; 2] {
    let text = words.text(false, 0..8);
    let own = tokenizer.count(std::slice::from_ref(&text), false).first().copied();
    let message = |role| Message::text(role, text.clone());
    let first = vec![message(Role::User)];
    let later = vec![message(Role::User), message(Role::Assistant), message(Role::User)];
    let counted = tokenizer.count_chat(&[first, later], None);
    let (Some(own), [Some(first), Some(later)]) = (own, counted.as_slice()) else { return [0; 2] };
    [first.saturating_sub(own), later.saturating_sub(first + 2 * own)]
}

// Sessions with all requests in one line: the requests that stay, and their samples, one after the
// other. Holds the line while its samples are made.

struct Open {
    line: Vec<u8>,
    number: u32,
    session: Session,
    stays: Vec<bool>,
    at: usize,
}

impl Player {
    fn open(&mut self, entry: Entry) -> Result<(), Error> {
        let number = self.index.line(&entry);
        let place = Place { offset: entry.offset(), line: number };
        let line = self.source.line(place)?.map(|(line, _)| line).unwrap_or_default();
        let wrong = |cause: String| Error::InvalidInput(format!("line {}: {cause}", number));
        let mut session = Session::parse(&line, &self.config).map_err(wrong)?;
        let mut out = vec![false; session.nodes.len()];
        let limited = self.config.max_input.or(self.config.max_output).is_some();
        if limited && self.config.on_too_long == TooLong::Drop {
            for (at, node) in session.nodes.iter().enumerate() {
                let row = weka::row(&line[node.range.clone()], &session.layout, at as u32);
                let row = row.map_err(wrong)?;
                let over = |most: Option<u32>, tokens: Option<u32>| {
                    most.zip(tokens).is_some_and(|(most, tokens)| tokens > most)
                };
                let reason = if over(self.config.max_input, row.content.tokens()) {
                    REASONS[1]
                } else if over(self.config.max_output, row.output) {
                    REASONS[2]
                } else {
                    continue;
                };
                out[at] = true;
                self.notes.dropped(reason, || format!("line {number}"));
            }
        }
        let stays = weka::without(&mut session.nodes, &out);
        for (stays, out) in stays.iter().zip(&out) {
            if !stays && !out {
                self.notes.dropped(AFTER, || format!("line {number}"));
            }
        }
        self.state.open = Some(Open { line, number, session, stays, at: 0 });
        Ok(())
    }

    fn of_open(&mut self, open: &mut Open) -> Result<Option<Sample>, Error> {
        while open.stays.get(open.at) == Some(&false) {
            open.at += 1;
        }
        let Some(node) = open.session.nodes.get(open.at) else { return Ok(None) };
        let at = open.at;
        open.at += 1;
        let row = weka::row(&open.line[node.range.clone()], &open.session.layout, at as u32)
            .map_err(|cause| Error::InvalidInput(format!("line {}: {cause}", open.number)))?;
        let id = |at: usize| format!("line-{}-{}", open.number, at + 1);
        let mut after = Vec::with_capacity(node.after.len());
        for (on, delay) in &node.after {
            after.push(Dependency::end(id(*on), self.pause(*delay, open.number)));
        }
        let frame = Frame {
            id: id(at),
            line: open.number,
            own: at as u64,
            group: 0,
            after,
            turn: Some(Turn {
                session: open.session.threads[node.thread].clone(),
                index: node.index,
            }),
            arrival: None,
        };
        Ok(Some(self.sample(row, frame)))
    }
}
