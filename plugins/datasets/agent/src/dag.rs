//! Conversations with branches, in the format `dag_jsonl` of AIPerf
//! (<https://docs.nvidia.com/aiperf/benchmark-modes/conversation-dag-benchmarks>): one a line, and
//! a turn may start others of the file. A fork inherits the history; a spawned conversation starts
//! fresh, and a later turn waits for it.
//!
//! The file is passed over once, and only where its conversations are is kept. A session is a
//! conversation that no other conversation starts, with all conversations that it starts.

mod outline;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use dialogue::FILE;
use dialogue::messages::{messages, object};
use dialogue::rows::{nanoseconds, parse, wrong};
use dialogue::sessions::Source;
use runner_plugin::report::Remarks;
use runner_plugin::{Error, File, Files, Point, Role, Sample, Tokenizer};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{Config, DEEPEST};
use crate::graph::{After, Graph, Request};
use crate::source::{named, rows};
use outline::{Place, Spawn, Starts};

#[derive(Deserialize)]
struct Conversation {
    #[serde(default)]
    turns: Vec<Turn>,
    #[serde(default)]
    pre_session_spawns: Vec<String>,
    context_mode: Option<String>,
}

#[derive(Deserialize)]
struct Turn {
    messages: Vec<Value>,
    model: Option<String>,
    max_tokens: Option<u32>,
    tools: Option<Vec<Value>>,
    extra: Option<Map<String, Value>>,
    #[serde(default)]
    delay: f64,
    #[serde(flatten)]
    starts: Starts,
}

/// The beginning of a conversation.
#[derive(Clone, Copy)]
enum Origin {
    Root,
    /// Inherits the history of a request.
    Fork(usize),
    Spawn(usize),
    /// Starts with the first output of a request.
    Beside(usize),
}

/// Sessions in the order of the file; spare ones from its end.
pub(crate) struct Dag {
    file: Rc<dyn File>,
    config: Rc<Config>,
    tokenizer: Rc<dyn Tokenizer>,
    places: BTreeMap<String, Place>,
    roots: Vec<String>,
    front: usize,
    back: usize,
}

impl Dag {
    pub(crate) fn open(
        files: &dyn Files,
        config: Rc<Config>,
        tokenizer: Rc<dyn Tokenizer>,
    ) -> Result<Self, Error> {
        rows(files)?;
        let Some(file) = files.open(FILE) else {
            return Err(Error::InvalidInput(format!("the file `{FILE}` is gone")));
        };
        let file = Rc::from(file);
        let (places, order) = outline::pass(&file)?;
        Ok(Self { file, config, tokenizer, places, front: 0, back: order.len(), roots: order })
    }

    fn session(&self, id: &str, pass: u64, remarks: &mut Remarks) -> Result<Vec<Sample>, Error> {
        let mut walk = Walk {
            dag: self,
            root: named(id, pass),
            graph: Graph::default(),
            names: BTreeSet::new(),
            remarks,
        };
        walk.conversation(id, Origin::Root, 0)?;
        Ok(walk.graph.finish(&*self.tokenizer))
    }

    fn read(&self, id: &str) -> Result<(u64, Conversation), Error> {
        let Some(place) = self.places.get(id).copied() else {
            return Err(Error::Other(format!("there is no conversation `{id}`")));
        };
        let line = self.file.read_all(place.offset, place.length.into());
        let conversation = line.and_then(|line| parse(&line));
        let conversation = conversation.map_err(|cause| wrong(place.line, &cause))?;
        Ok((place.line, conversation))
    }
}

impl Source for Dag {
    fn next(&mut self, pass: u64, remarks: &mut Remarks) -> Result<Option<Vec<Sample>>, Error> {
        if self.front >= self.back {
            return Ok(None);
        }
        self.front += 1;
        self.session(&self.roots[self.front - 1], pass, remarks).map(Some)
    }

    /// From the end of the file, and at most half of it.
    fn spare(&mut self) -> Result<Option<Sample>, Error> {
        if self.back <= self.roots.len().div_ceil(2).max(self.front) {
            return Ok(None);
        }
        self.back -= 1;
        let samples = self.session(&self.roots[self.back], 1, &mut Remarks::default())?;
        Ok(samples.into_iter().next())
    }

    fn rewind(&mut self) -> Result<(), Error> {
        self.front = 0;
        Ok(())
    }
}

struct Walk<'a> {
    dag: &'a Dag,
    root: String,
    graph: Graph,
    names: BTreeSet<String>,
    remarks: &'a mut Remarks,
}

impl Walk<'_> {
    /// Adds a conversation and the conversations that it starts; gives its last request.
    fn conversation(&mut self, id: &str, origin: Origin, depth: u32) -> Result<usize, Error> {
        let (line, conversation) = self.dag.read(id)?;
        let wrong = |cause: String| wrong(line, &cause);
        if depth > DEEPEST {
            return Err(wrong(format!(
                "the conversation `{id}` is started {depth} levels deep, or starts itself; expected at most \
                 {DEEPEST} levels"
            )));
        }
        let name = self.name(id, origin);
        let isolated = match conversation.context_mode.as_deref() {
            None | Some("deltas_without_responses") => false,
            Some("message_array_with_responses") => true,
            Some(other) => {
                return Err(wrong(format!(
                    "`context_mode` is `{other}`; expected `deltas_without_responses` or \
                     `message_array_with_responses`"
                )));
            }
        };
        let mut last = None;
        // The requests that a turn waits for, beside the previous turn.
        let mut joins: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, mut turn) in conversation.turns.into_iter().enumerate() {
            let starts = std::mem::take(&mut turn.starts);
            let joined = joins.remove(&index).unwrap_or_default();
            let request = self
                .request(turn, &name, origin, last, &joined, isolated)
                .and_then(|request| self.graph.push(request))
                .map_err(|cause| wrong(format!("`turns[{index}]`: {cause}")))?;
            last = Some(request);
            if index == 0 {
                for child in &conversation.pre_session_spawns {
                    self.conversation(child, Origin::Beside(request), depth + 1)?;
                    let reason = "a conversation before the first turn; it now starts with that turn's first output";
                    self.remarks.repaired(reason, || format!("`{child}` of `{id}`"));
                }
            }
            for fork in &starts.forks {
                self.conversation(fork.child(), Origin::Fork(request), depth + 1)?;
            }
            for spawn in &starts.spawns {
                let at = match spawn {
                    Spawn::Full { join_at: Some(at), .. } => *at,
                    _ => index + 1,
                };
                for child in spawn.children() {
                    let end = self.conversation(child, Origin::Spawn(request), depth + 1)?;
                    joins.entry(at).or_default().push(end);
                }
            }
        }
        last.ok_or_else(|| wrong("`turns` is empty; expected at least one".to_owned()))
    }

    /// The name of a conversation, which may be started several times.
    fn name(&mut self, id: &str, origin: Origin) -> String {
        let name = match origin {
            Origin::Root => self.root.clone(),
            _ => format!("{}:{id}", self.root),
        };
        let mut unique = name.clone();
        let mut times = 1;
        while !self.names.insert(unique.clone()) {
            times += 1;
            unique = format!("{name}~{times}");
        }
        unique
    }

    fn request(
        &mut self,
        turn: Turn,
        name: &str,
        origin: Origin,
        last: Option<usize>,
        joined: &[usize],
        isolated: bool,
    ) -> Result<Request, String> {
        let mut messages = messages(turn.messages)?;
        let answered = messages.last().is_some_and(|last| last.role == Role::Assistant);
        let answer = if answered { messages.pop() } else { None };
        if messages.is_empty() {
            return Err("`messages` has no message for the model to answer".to_owned());
        }
        let delay = self.dag.config.delay(nanoseconds("delay", turn.delay / 1e3)?);
        let (parent, mut after) = match (last, origin) {
            (Some(last), _) => ((!isolated).then_some(last), vec![After::end(last, delay)]),
            (None, Origin::Root) => (None, Vec::new()),
            (None, Origin::Fork(from)) => (Some(from), vec![After::end(from, delay)]),
            (None, Origin::Spawn(from)) => (None, vec![After::end(from, delay)]),
            (None, Origin::Beside(from)) => {
                let after = After { request: from, point: Point::FirstOutput, delay };
                (None, vec![after])
            }
        };
        after.extend(joined.iter().map(|end| After::end(*end, delay)));
        let mut parameters = Map::new();
        if let Some(tools) = turn.tools.filter(|tools| !tools.is_empty()) {
            parameters.insert("tools".to_owned(), Value::Array(tools));
        }
        parameters.extend(turn.extra.unwrap_or_default());
        if turn.max_tokens == Some(0) {
            return Err("`max_tokens` is 0; expected at least 1".to_owned());
        }
        if turn.model.is_some() {
            let reason = "a turn with its own model, now sent to the run's model";
            self.remarks.repaired(reason, || name.to_owned());
        }
        Ok(Request {
            conversation: name.to_owned(),
            parent,
            messages,
            after,
            answer,
            output_tokens: turn.max_tokens,
            class: match origin {
                Origin::Root => "main",
                Origin::Fork(_) => "fork",
                Origin::Spawn(_) | Origin::Beside(_) => "sub-agent",
            },
            parameters: object(parameters),
            arrival: None,
        })
    }
}
