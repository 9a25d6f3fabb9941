//! Conversations with branches, in the format `dag_jsonl` of AIPerf
//! (<https://docs.nvidia.com/aiperf/benchmark-modes/conversation-dag-benchmarks>): one a line, and a turn may start
//! others of the file. A fork inherits the history; what is spawned starts fresh, and a later turn waits for it.
//!
//! The file is passed over once, and only where its conversations are is kept. A session is a conversation that no other
//! one starts, with all that it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::rc::Rc;

use dialogue::FILE;
use dialogue::messages::{messages, object};
use dialogue::rows::{nanoseconds, parse, wrong};
use runner_plugin::report::Remarks;
use runner_plugin::{Error, File, Files, Point, Reader, Role, Sample, Tokenizer};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{Config, DEEPEST, WIDEST};
use crate::graph::{After, Graph, Request};
use crate::source::{Source, named, rows};

/// What a line starts.
#[derive(Deserialize)]
struct Outline {
    session_id: String,
    #[serde(default)]
    turns: Vec<Starts>,
    #[serde(default)]
    pre_session_spawns: Vec<String>,
    #[serde(default)]
    orchestrator: bool,
}

/// What a turn starts.
#[derive(Default, Deserialize)]
struct Starts {
    #[serde(default)]
    forks: Vec<Fork>,
    #[serde(default)]
    spawns: Vec<Spawn>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected an id, or {\"child\": \"id\", \"background\": true}"
)]
enum Fork {
    Id(String),
    Full {
        child: String,
        #[serde(default)]
        background: bool,
    },
}

impl Fork {
    fn child(&self) -> &str {
        match self {
            Fork::Id(child) | Fork::Full { child, .. } => child,
        }
    }

    fn ends(&self) -> bool {
        !matches!(
            self,
            Fork::Full {
                background: true,
                ..
            }
        )
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected an id, or {\"children\": [\"id\"], \"join_at\": 2}"
)]
enum Spawn {
    Id(String),
    Full {
        children: Vec<String>,
        join_at: Option<usize>,
    },
}

impl Spawn {
    fn children(&self) -> &[String] {
        match self {
            Spawn::Id(child) => std::slice::from_ref(child),
            Spawn::Full { children, .. } => children,
        }
    }
}

/// A line.
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

/// Where a conversation is in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    line: u64,
    offset: u64,
    length: u32,
}

/// How a conversation begins.
#[derive(Clone, Copy)]
enum Origin {
    Root,
    /// Inherits the history of a request.
    Fork(usize),
    /// Starts after a request.
    Spawn(usize),
    /// Starts with the first output of a request.
    Beside(usize),
}

/// Sessions in the order of the file; spare ones from its end.
pub(crate) struct Dag {
    file: Box<dyn File>,
    config: Rc<Config>,
    tokenizer: Rc<dyn Tokenizer>,
    places: BTreeMap<String, Place>,
    roots: Vec<String>,
    front: usize,
    back: usize,
}

impl Dag {
    /// Passes over the file.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if a line is no conversation, or starts one that is not there.
    pub(crate) fn open(
        files: &dyn Files,
        config: Rc<Config>,
        tokenizer: Rc<dyn Tokenizer>,
    ) -> Result<Self, Error> {
        rows(files)?;
        let Some(file) = files.open(FILE) else {
            return Err(Error::InvalidInput(format!("the file `{FILE}` is gone")));
        };
        let mut places = BTreeMap::new();
        let mut order = Vec::new();
        let mut started: BTreeMap<String, u64> = BTreeMap::new();
        let mut reader = BufReader::with_capacity(1 << 20, Reader::new(&*file));
        let (mut offset, mut number) = (0, 0);
        loop {
            let mut line = Vec::new();
            let read = reader.read_until(b'\n', &mut line).map_err(|error| {
                Error::InvalidInput(format!("the file `{FILE}` cannot be read: {error}"))
            })?;
            if read == 0 {
                break;
            }
            number += 1;
            let place = Place {
                line: number,
                offset,
                length: u32::try_from(read)
                    .map_err(|_| wrong(number, "the line has more than four gigabytes"))?,
            };
            offset += read as u64;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let outline: Outline = parse(&line).map_err(|what| wrong(number, &what))?;
            check(&outline).map_err(|what| wrong(number, &what))?;
            let turns = outline.turns.iter();
            let forks = turns.clone().flat_map(|turn| &turn.forks).map(Fork::child);
            let spawns = turns
                .flat_map(|turn| &turn.spawns)
                .flat_map(Spawn::children);
            let all = forks.chain(spawns.map(String::as_str));
            for child in all.chain(outline.pre_session_spawns.iter().map(String::as_str)) {
                started.entry(child.to_owned()).or_insert(number);
            }
            if places.insert(outline.session_id.clone(), place).is_some() {
                return Err(wrong(
                    number,
                    &format!(
                        "there is a conversation `{}` before this one: give each another `session_id`",
                        outline.session_id
                    ),
                ));
            }
            order.push(outline.session_id);
        }
        drop(reader);
        if let Some((child, line)) = started
            .iter()
            .find(|(child, _)| !places.contains_key(*child))
        {
            return Err(wrong(
                *line,
                &format!("it starts the conversation `{child}`, which is not in the file"),
            ));
        }
        order.retain(|id| !started.contains_key(id));
        if order.is_empty() && !places.is_empty() {
            return Err(Error::InvalidInput(format!(
                "every conversation of the file `{FILE}` is started by another one, so none is the first"
            )));
        }
        Ok(Self {
            file,
            config,
            tokenizer,
            places,
            front: 0,
            back: order.len(),
            roots: order,
        })
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
        const MOST: u32 = 4 << 20;
        let Some(place) = self.places.get(id).copied() else {
            return Err(Error::Other(format!("there is no conversation `{id}`")));
        };
        let mut line = Vec::with_capacity(place.length as usize);
        while line.len() < place.length as usize {
            let missing = place.length - line.len() as u32;
            let read = self
                .file
                .read(place.offset + line.len() as u64, missing.min(MOST))
                .map_err(Error::InvalidInput)?;
            if read.is_empty() {
                return Err(wrong(
                    place.line,
                    "the file became shorter while it was read",
                ));
            }
            line.extend(read);
        }
        let conversation = parse(&line).map_err(|what| wrong(place.line, &what))?;
        Ok((place.line, conversation))
    }
}

/// Checks what starts where.
fn check(outline: &Outline) -> Result<(), String> {
    if outline.orchestrator {
        return Err(
            "`orchestrator` is not supported: leave this line out, and each conversation that it starts becomes a \
             session"
                .to_owned(),
        );
    }
    let count = outline.turns.len();
    if count == 0 {
        return Err("`turns` is empty; expected at least one".to_owned());
    }
    for (index, turn) in outline.turns.iter().enumerate() {
        if index + 1 < count && turn.forks.iter().any(Fork::ends) {
            return Err(format!(
                "`turns[{index}].forks`: a fork ends its conversation, and {} turns follow: write {{\"child\": \"…\", \
                 \"background\": true}} to go on",
                count - index - 1
            ));
        }
        let children = turn.spawns.iter().flat_map(Spawn::children).count() + turn.forks.len();
        if children > WIDEST as usize {
            return Err(format!(
                "`turns[{index}]` starts {children} conversations; expected at most {WIDEST}"
            ));
        }
        for spawn in &turn.spawns {
            if let Spawn::Full {
                join_at: Some(join),
                ..
            } = spawn
                && !(index + 1..count).contains(join)
            {
                return Err(format!(
                    "`turns[{index}].spawns`: `join_at` is {join}; expected a later turn of {count}, counted from 0"
                ));
            }
        }
    }
    Ok(())
}

impl Source for Dag {
    fn next(&mut self, pass: u64, remarks: &mut Remarks) -> Result<Option<Vec<Sample>>, Error> {
        if self.front >= self.back {
            return Ok(None);
        }
        self.front += 1;
        self.session(&self.roots[self.front - 1], pass, remarks)
            .map(Some)
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

/// A session under construction.
struct Walk<'a> {
    dag: &'a Dag,
    root: String,
    graph: Graph,
    names: BTreeSet<String>,
    remarks: &'a mut Remarks,
}

impl Walk<'_> {
    /// Adds a conversation and what it starts; gives its last request.
    fn conversation(&mut self, id: &str, origin: Origin, depth: u32) -> Result<usize, Error> {
        let (line, conversation) = self.dag.read(id)?;
        if depth > DEEPEST {
            return Err(wrong(
                line,
                &format!(
                    "the conversation `{id}` is started {depth} levels deep, or starts itself; expected at most \
                     {DEEPEST} levels"
                ),
            ));
        }
        let name = self.name(id, origin);
        let isolated = match conversation.context_mode.as_deref() {
            None | Some("deltas_without_responses") => false,
            Some("message_array_with_responses") => true,
            Some(other) => {
                return Err(wrong(
                    line,
                    &format!(
                        "`context_mode` is `{other}`; expected `deltas_without_responses` or \
                         `message_array_with_responses`"
                    ),
                ));
            }
        };
        let mut last = None;
        // What a turn waits for beside the one before it.
        let mut joins: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, mut turn) in conversation.turns.into_iter().enumerate() {
            let starts = std::mem::take(&mut turn.starts);
            let joined = joins.remove(&index).unwrap_or_default();
            let request = self
                .request(turn, &name, origin, last, &joined, isolated)
                .and_then(|request| self.graph.push(request))
                .map_err(|what| wrong(line, &format!("`turns[{index}]`: {what}")))?;
            last = Some(request);
            if index == 0 {
                for child in &conversation.pre_session_spawns {
                    self.conversation(child, Origin::Beside(request), depth + 1)?;
                    let reason = "a conversation before the first turn, which now starts with its first output";
                    self.remarks
                        .repaired(reason, || format!("`{child}` of `{id}`"));
                }
            }
            for fork in &starts.forks {
                self.conversation(fork.child(), Origin::Fork(request), depth + 1)?;
            }
            for spawn in &starts.spawns {
                let at = match spawn {
                    Spawn::Full {
                        join_at: Some(at), ..
                    } => *at,
                    _ => index + 1,
                };
                for child in spawn.children() {
                    let end = self.conversation(child, Origin::Spawn(request), depth + 1)?;
                    joins.entry(at).or_default().push(end);
                }
            }
        }
        last.ok_or_else(|| wrong(line, "`turns` is empty; expected at least one"))
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
        let answered = messages
            .last()
            .is_some_and(|last| last.role == Role::Assistant);
        let answer = if answered { messages.pop() } else { None };
        if messages.is_empty() {
            return Err("`messages` has nothing that the model could answer".to_owned());
        }
        let delay = self
            .dag
            .config
            .delay(nanoseconds("delay", turn.delay / 1e3)?);
        let (parent, mut after) = match (last, origin) {
            (Some(last), _) => ((!isolated).then_some(last), vec![After::end(last, delay)]),
            (None, Origin::Root) => (None, Vec::new()),
            (None, Origin::Fork(from)) => (Some(from), vec![After::end(from, delay)]),
            (None, Origin::Spawn(from)) => (None, vec![After::end(from, delay)]),
            (None, Origin::Beside(from)) => {
                let after = After {
                    request: from,
                    point: Point::FirstOutput,
                    delay,
                };
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
            let reason = "a turn with a model of its own, which now goes to that of the run";
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
