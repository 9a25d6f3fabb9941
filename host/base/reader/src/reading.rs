//! The state while one text is read: its problems, its possible keys, and its unknown keys.

use std::cell::RefCell;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeString;

use crate::located::{Located, Place, Source};
use crate::problem::Problem;
use crate::words::list;
use model::nearest;

/// The most unknown keys that are noted.
const MOST_UNKNOWN: usize = 1_000;

/// The state that all readers of one text share: the text, and the problems found so far.
pub struct Reading {
    origin: Origin,
    problems: RefCell<Vec<Problem>>,
    /// The possible keys, with the paths of their tables, so that a message can name the table of a
    /// misplaced key.
    possible: RefCell<Vec<(String, &'static str)>>,
    unknown: RefCell<Vec<Unknown>>,
    sections: RefCell<BTreeMap<String, Place>>,
}

/// The origin of a text.
pub enum Origin {
    /// A file, so that places are parts of its text.
    Text(Source),
    /// A flag, which is the place of everything in it.
    Flag(String),
}

struct Unknown {
    table: String,
    key: Located<String>,
    known: Vec<&'static str>,
}

impl Reading {
    /// Nothing read yet.
    pub fn new(origin: Origin) -> Self {
        Reading {
            origin,
            problems: RefCell::default(),
            possible: RefCell::default(),
            unknown: RefCell::default(),
            sections: RefCell::default(),
        }
    }

    /// The place of a part of the text.
    pub fn place(&self, span: std::ops::Range<usize>) -> Place {
        match &self.origin {
            Origin::Text(source) => Place::Text { source: source.clone(), span: span.into() },
            Origin::Flag(flag) => Place::Flag(flag.clone()),
        }
    }

    /// Adds a problem.
    pub fn report(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Notes that a table may have a key.
    pub fn note_key(&self, table: &str, key: &'static str) {
        let mut possible = self.possible.borrow_mut();
        if !possible.iter().any(|(in_table, known)| in_table == table && *known == key) {
            possible.push((table.to_owned(), key));
        }
    }

    /// Notes where a table begins.
    pub fn begin(&self, table: String, at: std::ops::Range<usize>) {
        self.sections.borrow_mut().insert(table, self.place(at));
    }

    /// Notes an unknown key; `known` has the possible keys of its table.
    pub fn note_unknown(&self, table: &str, key: &Spanned<DeString<'_>>, known: &[&'static str]) {
        let mut unknown = self.unknown.borrow_mut();
        if unknown.len() == MOST_UNKNOWN {
            return;
        }
        unknown.push(Unknown {
            table: table.to_owned(),
            key: Located::new(key.get_ref().to_string(), self.place(key.span())),
            known: known.to_vec(),
        });
    }

    /// Returns where the tables that were read begin, by path.
    pub fn sections(&self) -> BTreeMap<String, Place> {
        self.sections.borrow().clone()
    }

    /// All problems. `aliases` are names that other tools use, with ours.
    pub fn finish(self, aliases: &[(&str, &str)]) -> Vec<Problem> {
        let possible = self.possible.into_inner();
        let mut problems = self.problems.into_inner();
        for Unknown { table, key, known } in self.unknown.into_inner() {
            let ours =
                aliases.iter().find(|(theirs, _)| *theirs == key.value).map(|(_, ours)| *ours);
            let home = |name: &str| {
                let found = possible.iter().find(|(_, possible)| *possible == name);
                found.map(|(home, name)| (in_table(home), *name))
            };
            let (written, here) = (&key.value, in_table(&table));
            let meant_here = ours.filter(|ours| known.contains(ours));
            let near = || nearest(written, known.iter().copied());
            // A table's name with a letter less is no table.
            let slip = || {
                let is_table = possible.iter().any(|(table, _)| table == written);
                near().filter(|_| is_table)
            };
            let problem = if let Some(meant) = slip() {
                Problem::new(format!("unknown key `{written}` {here}; did you mean `{meant}`?"))
            } else if let Some((home, _)) = home(written) {
                Problem::new(format!("unknown key `{written}` {here}; it belongs {home}"))
            } else if let Some(meant) = meant_here.or_else(near) {
                Problem::new(format!("unknown key `{written}`; did you mean `{meant}`?"))
            } else if let Some((home, name)) = ours.and_then(home) {
                Problem::new(format!("unknown key `{written}`; did you mean `{name}` {home}?"))
            } else {
                Problem::new(format!("unknown key `{written}`"))
                    .help(format!("the keys {here} are {}", list(&known)))
            };
            problems.push(problem.at(key.place, "not a key here"));
        }
        problems
    }
}

/// A table's name in a message.
fn in_table(path: &str) -> String {
    if path.is_empty() { "at the top".to_owned() } else { format!("in [{path}]") }
}
