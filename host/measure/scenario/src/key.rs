//! Facts about each key of a scenario besides its type: documentation, flag, default, plan,
//! comparability.
//!
//! A key is declared once, in its [`table!`](crate::table); everything else reads
//! [`keys`].

use std::sync::LazyLock;

use crate::Fate;
use crate::field::Field;
use crate::scenario::Scenario;

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    Scenario::declare(Key::default(), &mut keys);
    keys
});

/// Every key of a scenario, in the order of its tables.
pub fn keys() -> &'static [Key] {
    &KEYS
}

/// Names that other tools give to keys, each with ours.
pub(crate) fn aliases() -> Vec<(&'static str, &'static str)> {
    let keys = keys().iter();
    keys.flat_map(|key| key.theirs.iter().map(|theirs| (*theirs, key.name()))).collect()
}

#[derive(Clone, Debug, Default)]
pub struct Key {
    /// Its full name: `timeouts.connect`; names of the user's choice as `target.headers.NAME`.
    pub path: String,
    /// Its documentation, in paragraphs; the first is one sentence.
    pub about: Vec<String>,
    /// Description of its value: `a duration such as "30s"`.
    pub expected: String,
    /// The names of its possible values, each with its documentation; empty for other types.
    pub words: Vec<(&'static str, &'static str)>,
    /// The value that holds where it is absent, as TOML.
    pub default: Option<String>,
    /// The default for people, when it is not a single value.
    pub otherwise: Option<&'static str>,
    pub flag: Option<Flag>,
    /// Names that other tools have for it.
    pub theirs: &'static [&'static str],
    /// Place in the plan, if any, and the effect on comparisons if two plans differ there.
    pub plan: Option<(&'static str, Fate)>,
    /// True if it is declared to have no place in the plan.
    pub unplanned: bool,
    /// Description of the expected value in messages, where the type does not say it well.
    pub(crate) expects: Option<&'static str>,
    /// True if it is `true` or `false`, so that its flag takes no value.
    pub switch: bool,
    pub many: bool,
    pub(crate) check: Option<Check>,
}

/// A check of a value; its message states the expected form.
pub(crate) type Check = fn(&str) -> Result<(), String>;

#[derive(Clone, Debug, Default)]
pub struct Flag {
    pub long: &'static str,
    /// Name of its value in the help.
    pub value_name: &'static str,
    /// The heading that help puts it below.
    pub heading: &'static str,
    pub alias: Option<&'static str>,
    /// Separator of several values in one word.
    pub delimiter: Option<char>,
    /// True if it takes every word that follows it.
    pub words: bool,
    /// True if its value may begin with a minus sign.
    pub negative: bool,
    /// True if its value is kept out of help and messages.
    pub secret: bool,
    /// The flags that cannot be given together with it.
    pub conflicts: Vec<&'static str>,
    /// The help of a switch that sets `false`.
    pub inverted: Option<&'static str>,
    /// The unit of a number that has none.
    pub unit: Option<&'static str>,
}

impl Flag {
    /// The environment variable that stands for it.
    pub fn variable(&self) -> String {
        let name = self.long.replace('-', "_").to_uppercase();
        format!("RUNNER_{name}")
    }

    /// A value as it was written, with its unit; a percentage of a share as a number.
    pub fn spelled(&self, text: &str) -> String {
        if SHARES.contains(&self.value_name)
            && text.trim_end().ends_with('%')
            && let Ok(share) = model::number::share(text)
        {
            return share.to_string();
        }
        match self.unit {
            Some(unit) if text.parse::<f64>().is_ok() => format!("{text}{unit}"),
            _ => text.to_owned(),
        }
    }
}

/// Names of flags' values that are shares of a whole.
const SHARES: [&str; 2] = ["SHARE", "PROBABILITY"];

pub mod heading {
    pub(crate) const TARGET: &str = "Target";
    pub(crate) const REQUESTS: &str = "Requests";
    pub(crate) const LOAD: &str = "Load";
    pub(crate) const CONNECTIONS: &str = "Connections";
    pub(crate) const RESULT: &str = "Result";
    /// All of them, in the order of help.
    pub const ALL: [&str; 5] = [TARGET, REQUESTS, LOAD, CONNECTIONS, RESULT];
}

pub(crate) fn plan(path: &'static str, fate: Fate) -> Key {
    Key { plan: Some((path, fate)), ..Key::default() }
}

pub(crate) fn unplanned() -> Key {
    Key { unplanned: true, ..Key::default() }
}

impl Key {
    pub(crate) fn flag(
        mut self,
        long: &'static str,
        value_name: &'static str,
        heading: &'static str,
    ) -> Self {
        self.flag = Some(Flag { long, value_name, heading, ..Flag::default() });
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Flag)) -> Self {
        self.flag.as_mut().map(change);
        self
    }

    /// Gives it a flag without a value, which sets `true`.
    pub(crate) fn switch(self, long: &'static str, heading: &'static str) -> Self {
        self.flag(long, "", heading)
    }

    pub(crate) fn inverted(self, about: &'static str) -> Self {
        self.with(|flag| flag.inverted = Some(about))
    }

    pub(crate) fn alias(self, alias: &'static str) -> Self {
        self.with(|flag| flag.alias = Some(alias))
    }

    pub(crate) fn delimiter(self, delimiter: char) -> Self {
        self.with(|flag| flag.delimiter = Some(delimiter))
    }

    pub(crate) fn words(self) -> Self {
        self.with(|flag| flag.words = true)
    }

    pub(crate) fn negative(self) -> Self {
        self.with(|flag| flag.negative = true)
    }

    pub(crate) fn secret(self) -> Self {
        self.with(|flag| flag.secret = true)
    }

    pub(crate) fn conflicts(self, other: &'static str) -> Self {
        self.with(|flag| flag.conflicts.push(other))
    }

    pub(crate) fn unit(self, unit: &'static str) -> Self {
        self.with(|flag| flag.unit = Some(unit))
    }

    pub(crate) fn otherwise(mut self, words: &'static str) -> Self {
        self.otherwise = Some(words);
        self
    }

    pub(crate) fn theirs(mut self, names: &'static [&'static str]) -> Self {
        self.theirs = names;
        self
    }

    pub(crate) fn expects(mut self, expected: &'static str) -> Self {
        self.expects = Some(expected);
        self
    }

    /// Fills in the facts of its table: the lines of its documentation, and its default.
    pub(crate) fn documented(mut self, lines: &[&str], default: Option<String>) -> Self {
        let text: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        self.about = text
            .split(|line| line.is_empty())
            .map(|paragraph| paragraph.join(" "))
            .filter(|paragraph| !paragraph.is_empty())
            .collect();
        self.default = default;
        self
    }

    pub fn check(&self, text: &str) -> Result<(), String> {
        self.check.map_or(Ok(()), |check| check(text))
    }

    /// Its last name: `connect`.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('.').map_or(self.path.as_str(), |(_, name)| name)
    }

    /// The table it belongs to: `timeouts`; empty for a key at the top.
    pub fn table(&self) -> &str {
        self.path.split_once('.').map_or("", |(table, _)| table)
    }

    /// Returns the default for people: its value without quotes and brackets, or a text.
    pub fn absent(&self) -> Option<&str> {
        let value = self.default.as_deref();
        self.otherwise.or(value.map(|value| value.trim_matches(['"', '[', ']'])))
    }
}
