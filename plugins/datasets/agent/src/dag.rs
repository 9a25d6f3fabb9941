//! Conversations with branches, in the format `dag_jsonl` of AIPerf
//! (<https://docs.nvidia.com/aiperf/benchmark-modes/conversation-dag-benchmarks>): one a line, and
//! a turn may start others of the file. A fork inherits the history; a spawned conversation starts
//! fresh, and a later turn waits for it.
//!
//! The file is passed over once, and only where its conversations are is kept. A session is a
//! conversation that no other conversation starts, with all conversations that it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use dialogue::FILE;
use dialogue::messages::{messages, object};
use dialogue::rows::{nanoseconds, parse, wrong};
use dialogue::sessions::Source;
use runner_plugin::report::Remarks;
use runner_plugin::{Error, File, Files, Point, Reader, Role, Sample, Tokenizer};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{Config, DEEPEST, WIDEST};
use crate::graph::{After, Graph, Request};
use crate::source::{named, rows};
use runner_plugin::records::{Cut, Records};

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
        let (places, order) = pass(&file)?;
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

// One pass over the file: the place of each conversation, the conversations that it starts, and
// the check that each begins. Leaves the further treatment of a conversation to `dag`.

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

#[derive(Default, Deserialize)]
struct Starts {
    #[serde(default)]
    forks: Vec<Fork>,
    #[serde(default)]
    spawns: Vec<Spawn>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an id, or {\"child\": \"id\", \"background\": true}")]
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
        !matches!(self, Fork::Full { background: true, .. })
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an id, or {\"children\": [\"id\"], \"join_at\": 2}")]
enum Spawn {
    Id(String),
    Full { children: Vec<String>, join_at: Option<usize> },
}

impl Spawn {
    fn children(&self) -> &[String] {
        match self {
            Spawn::Id(child) => std::slice::from_ref(child),
            Spawn::Full { children, .. } => children,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    line: u64,
    offset: u64,
    length: u32,
}

/// The places of the conversations by name, and the names of the conversations that no other
/// starts, in the order of the file. Errors: [`Error::InvalidInput`] if a line is no conversation,
/// if it starts a missing one, or if one never begins.
fn pass(file: &Rc<dyn File>) -> Result<(BTreeMap<String, Place>, Vec<String>), Error> {
    let mut places = BTreeMap::new();
    let mut order = Vec::new();
    let mut started: BTreeMap<String, u64> = BTreeMap::new();
    let mut starts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut records = Records::new(Box::new(Reader::new(Rc::clone(file))), Cut::Lines);
    loop {
        let next = records.next_record().map_err(|cause| {
            Error::InvalidInput(format!("file `{FILE}`, {}: {cause}", records.place()))
        })?;
        let Some(record) = next else { break };
        let (number, line) = (record.line, record.bytes);
        let wrong = |cause: String| wrong(number, &cause);
        let place = Place { line: number, offset: record.offset, length: line.len() as u32 };
        let outline: Outline = parse(&line).map_err(wrong)?;
        check(&outline).map_err(wrong)?;
        let turns = outline.turns.iter();
        let forks = turns.clone().flat_map(|turn| &turn.forks).map(Fork::child);
        let spawns = turns.flat_map(|turn| &turn.spawns).flat_map(Spawn::children);
        let all = forks.chain(spawns.map(String::as_str));
        for child in all.chain(outline.pre_session_spawns.iter().map(String::as_str)) {
            started.entry(child.to_owned()).or_insert(number);
            let children = starts.entry(outline.session_id.clone()).or_default();
            children.push(child.to_owned());
        }
        if places.insert(outline.session_id.clone(), place).is_some() {
            return Err(wrong(format!(
                "an earlier conversation has the id `{}` too; give each conversation its own `session_id`",
                outline.session_id
            )));
        }
        order.push(outline.session_id);
    }
    if let Some((child, line)) = started.iter().find(|(child, _)| !places.contains_key(*child)) {
        return Err(wrong(
            *line,
            &format!("it starts the conversation `{child}`, which is not in the file"),
        ));
    }
    order.retain(|id| !started.contains_key(id));
    if order.is_empty() && !places.is_empty() {
        return Err(Error::InvalidInput(format!(
            "the file `{FILE}` has no first conversation: another one starts each of them"
        )));
    }
    check_circles(&places, &starts, &order)?;
    Ok((places, order))
}

fn check_circles(
    places: &BTreeMap<String, Place>,
    starts: &BTreeMap<String, Vec<String>>,
    roots: &[String],
) -> Result<(), Error> {
    let mut lost: BTreeSet<&String> = places.keys().collect();
    let mut open: Vec<&String> = roots.iter().collect();
    while let Some(id) = open.pop() {
        if lost.remove(id) {
            open.extend(starts.get(id).into_iter().flatten());
        }
    }
    if let Some((id, place)) =
        lost.iter().filter_map(|id| places.get_key_value(*id)).min_by_key(|(_, place)| place.line)
    {
        return Err(wrong(
            place.line,
            &format!(
                "the conversation `{id}` never begins: the conversations before it start each other in a circle; remove one \
                     of its `forks` or `spawns`"
            ),
        ));
    }
    Ok(())
}

fn check(outline: &Outline) -> Result<(), String> {
    if outline.orchestrator {
        let cause = "`orchestrator` is not supported: leave this line out, and each conversation that it starts \
                     becomes a session";
        return Err(cause.to_owned());
    }
    let count = outline.turns.len();
    if count == 0 {
        return Err("`turns` is empty; expected at least one".to_owned());
    }
    for (index, turn) in outline.turns.iter().enumerate() {
        if index + 1 < count && turn.forks.iter().any(Fork::ends) {
            return Err(format!(
                "`turns[{index}].forks`: a fork ends its conversation, and {} turns follow: write {{\"child\": \"…\", \
                 \"background\": true}} to continue",
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
            if let Spawn::Full { join_at: Some(join), .. } = spawn
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
