//! One pass over the file: the place of each conversation, the conversations that it starts, and
//! the check that each begins. Leaves the further treatment of a conversation to `dag`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use dialogue::FILE;
use dialogue::rows::{parse, wrong};
use runner_plugin::records::{Cut, Records};
use runner_plugin::{Error, File, Reader};
use serde::Deserialize;

use crate::config::WIDEST;

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
pub(super) struct Starts {
    #[serde(default)]
    pub(super) forks: Vec<Fork>,
    #[serde(default)]
    pub(super) spawns: Vec<Spawn>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an id, or {\"child\": \"id\", \"background\": true}")]
pub(super) enum Fork {
    Id(String),
    Full {
        child: String,
        #[serde(default)]
        background: bool,
    },
}

impl Fork {
    pub(super) fn child(&self) -> &str {
        match self {
            Fork::Id(child) | Fork::Full { child, .. } => child,
        }
    }

    pub(super) fn ends(&self) -> bool {
        !matches!(self, Fork::Full { background: true, .. })
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an id, or {\"children\": [\"id\"], \"join_at\": 2}")]
pub(super) enum Spawn {
    Id(String),
    Full { children: Vec<String>, join_at: Option<usize> },
}

impl Spawn {
    pub(super) fn children(&self) -> &[String] {
        match self {
            Spawn::Id(child) => std::slice::from_ref(child),
            Spawn::Full { children, .. } => children,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// The places of the conversations by name, and the names of the conversations that no other
/// starts, in the order of the file. Errors: [`Error::InvalidInput`] if a line is no conversation,
/// if it starts a missing one, or if one never begins.
pub(super) fn pass(file: &Rc<dyn File>) -> Result<(BTreeMap<String, Place>, Vec<String>), Error> {
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
