//! A profile: the start command of a client, the place of its result, and the claim of each of its
//! figures.
//!
//! A profile is TOML, and does not judge the client: `definition` quotes the client's own
//! documentation, and the cases show whether it holds.

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde::Deserialize;

use crate::FileError;
use crate::meaning::{Meaning, Quantity};
use crate::types::{Arrivals, Asks, few};

/// A client, as its profile describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Profile {
    /// Its name on the command line.
    pub name: String,
    /// Its name as people write it.
    pub title: String,
    pub home: Option<String>,
    /// The way to install it, shown where its program is missing.
    pub install: Option<String>,
    pub version: Option<Version>,
    /// The program and its arguments, with placeholders.
    pub command: Vec<String>,
    /// Arguments that only some cases need.
    #[serde(default)]
    pub arguments: Vec<Arguments>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The places where it leaves its measurements.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
    pub figures: BTreeMap<String, Claim>,
    /// Its requests beside its task.
    #[serde(default)]
    pub load: Offers,
    /// Cases that it cannot run, and figures that it lacks in some.
    #[serde(default)]
    pub cannot: Vec<Cannot>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Version {
    pub command: Vec<String>,
    /// A regular expression whose first group is the version, in the command's output.
    pub pattern: Option<String>,
}

/// Arguments that are added where the case calls for them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Arguments {
    pub when: When,
    pub add: Vec<String>,
}

/// A trait of a case that calls for arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// An open loop: `{rate}` is known.
    Rate,
    /// A closed loop: `{concurrency}` is known.
    Concurrency,
    /// Equal times between requests.
    Constant,
    /// Exponential times between requests.
    Poisson,
    /// A prefix that all prompts share: `{prefix-len}` is known.
    Prefix,
    /// Requests before the measured ones.
    WarmUp,
}

/// A place where a client leaves its measurements.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Source {
    /// Its name; `stdout` and `stderr` are the client's outputs.
    pub name: String,
    /// The file: a path below `{folder}` whose parts may have `*`; `**` is any number of folders.
    /// Of several, the newest counts.
    pub file: Option<String>,
    /// Its format: `json`, `json-lines`, `text`, `audit`, or a tool that `runner audit` reads.
    pub reader: String,
}

/// The claim of a figure, and the place where it stands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Claim {
    /// The quantity, where the figure's own name is none.
    pub of: Option<String>,
    /// The definition: a word, or several; the first known one counts.
    pub definition: OneOrMore,
    /// The definitions that a time per output token or a throughput is computed from, where these
    /// differ from the client's other figures.
    #[serde(default)]
    pub uses: BTreeMap<String, OneOrMore>,
    /// The statistics of a latency that it states.
    #[serde(default)]
    pub statistics: Vec<String>,
    /// The source; the first if absent.
    pub from: Option<String>,
    /// The place in JSON: a pointer, with `*` for every member and `{statistic}`.
    pub at: Option<String>,
    /// The place in text: a regular expression with one group, and `{statistic}`.
    pub pattern: Option<String>,
    /// The client's own names of statistics.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    pub unit: Option<Unit>,
    /// The way to make one number of many.
    pub fold: Option<Fold>,
    /// True if the client leaves the figure out where it is zero.
    #[serde(default)]
    pub zero_is_left_out: bool,
    /// The error that the client's own documentation states: `5ms` or `2%`.
    pub error: Option<String>,
    pub words: Option<String>,
    /// The place of these words.
    #[serde(rename = "where")]
    pub place: Option<String>,
}

/// A word, or a list of words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        OneOrMore::More(Vec::new())
    }
}

impl OneOrMore {
    pub fn to_vec(&self) -> Vec<String> {
        match self {
            OneOrMore::One(word) => vec![word.clone()],
            OneOrMore::More(words) => words.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl Unit {
    pub fn millis(self) -> f64 {
        match self {
            Unit::S => 1e3,
            Unit::Ms => 1.0,
            Unit::Us => 1e-3,
            Unit::Ns => 1e-6,
        }
    }
}

/// A way to make one number of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    Sum,
    /// Their number.
    Count,
    Mean,
    Max,
    Last,
}

/// The offers of a client, and its requests beside its task.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Offers {
    /// Requests of its own before it measures, which its figures leave out.
    pub warm_up: u64,
    /// Requests of its own that only try the server, which its figures leave out too.
    pub probes: u64,
    /// True if it says that it sends failed requests again.
    pub retries: bool,
    /// The distributions that it offers.
    pub arrivals: Vec<Arrivals>,
    /// True if the same seed gives the same prompts, and another one others.
    pub seeded: bool,
}

impl Default for Offers {
    fn default() -> Self {
        Offers {
            warm_up: 0,
            probes: 0,
            retries: false,
            arrivals: vec![Arrivals::Poisson],
            seeded: true,
        }
    }
}

/// Cases that a client cannot run, or figures that it lacks in them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cannot {
    /// Names of cases; one that ends in `*` is a beginning.
    pub cases: Vec<String>,
    /// The figures that it lacks there; all, and so the case, if absent.
    #[serde(default)]
    pub figures: Vec<String>,
    pub why: String,
}

/// The values of a command's placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// The values that a case's work gives.
    pub fn new(asks: &Asks, seed: u64) -> Self {
        let mut values = Values::default();
        values.set("requests", asks.requests);
        values.set("input-len", asks.input_len);
        values.set("output-len", asks.output_len);
        values.set("warm-up", asks.warm_up);
        values.set("seed", seed);
        if let Some(concurrency) = asks.concurrency {
            values.set("concurrency", concurrency);
        }
        if let Some(rate) = asks.rate {
            values.set("rate", rate);
            values.set("duration", (asks.requests as f64 / rate).ceil());
        }
        if let Some(prefix) = asks.prefix_len {
            values.set("prefix-len", prefix);
        }
        values
    }

    pub fn set(&mut self, name: &'static str, value: impl ToString) {
        self.0.insert(name, value.to_string());
    }

    /// Fills the placeholders of a text. Errors: a placeholder that has no value here.
    pub fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            filled += before;
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                filled += &from[..1];
                rest = after;
                continue;
            }
            let (name, after) = from
                .strip_prefix('{')
                .and_then(|inside| inside.split_once('}'))
                .ok_or_else(|| format!("`{text}`: an unmatched brace; write {{{{ or }}}}"))?;
            let value = self.0.get(name).ok_or_else(|| {
                let known: Vec<&str> = self.0.keys().copied().collect();
                format!("`{{{name}}}` has no value here; known are {}", known.join(", "))
            })?;
            filled += value;
            rest = after;
        }
        Ok(filled + rest)
    }
}

impl Profile {
    /// Reads a profile; `file` is for messages. Errors: the mistake in it.
    pub fn read(file: &str, text: &str) -> Result<Self, FileError> {
        let profile: Profile = toml::from_str(text).map_err(|error| FileError::new(file, error))?;
        profile.check().map_err(|error| FileError::new(file, error))?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), String> {
        if self.command.is_empty() {
            return Err("`command`: expected a program and its arguments".into());
        }
        if self.sources.is_empty() {
            return Err("`source`: expected at least one".into());
        }
        for (name, number) in [("warm-up", self.load.warm_up), ("probes", self.load.probes)] {
            few(number).map_err(|expected| format!("`load.{name}`: {expected}"))?;
        }
        for source in &self.sources {
            let is_stream = ["stdout", "stderr"].contains(&source.name.as_str());
            if is_stream == source.file.is_some() {
                let name = &source.name;
                return Err(format!(
                    "source `{name}`: expected `file`, or the name stdout or stderr"
                ));
            }
        }
        for (name, claim) in &self.figures {
            let wrong = |error: String| format!("`figures.{name}`: {error}");
            // The figure's own definition, before the others that its meaning rests on.
            let quantity = self.quantity(name).map_err(wrong)?;
            Meaning::default().define(quantity, &claim.definition.to_vec()).map_err(wrong)?;
        }
        for (name, claim) in &self.figures {
            let wrong = |error: String| format!("`figures.{name}`: {error}");
            self.meaning(name).map_err(wrong)?;
            let source = self.source(claim).map_err(wrong)?;
            let quantity = self.quantity(name).map_err(wrong)?;
            if quantity.is_latency() && claim.statistics.is_empty() {
                return Err(wrong("expected `statistics`".into()));
            }
            for statistic in &claim.statistics {
                statistic.parse::<result::figure::Statistic>().map_err(wrong)?;
            }
            match source.reader.as_str() {
                "json" | "json-lines" if claim.at.is_none() => {
                    return Err(wrong("expected `at`, where it stands in the JSON".into()));
                }
                "text" => {
                    let pattern = claim.pattern.as_deref();
                    let pattern = pattern.ok_or_else(|| wrong("expected `pattern`".into()))?;
                    let tried = pattern.replace("{statistic}", "x");
                    Regex::new(&tried).map_err(|error| wrong(error.to_string()))?;
                }
                _ => {}
            }
        }
        if let Some(pattern) = self.version.as_ref().and_then(|v| v.pattern.as_deref()) {
            Regex::new(pattern).map_err(|error| format!("`version.pattern`: {error}"))?;
        }
        Ok(())
    }

    /// The quantity of a figure of this profile. Errors: the quantities that there are.
    pub fn quantity(&self, name: &str) -> Result<Quantity, String> {
        let quantity = self.figures.get(name).and_then(|claim| claim.of.as_deref());
        quantity.unwrap_or(name).parse()
    }

    /// The source of a claim. Errors: the sources that there are.
    pub fn source(&self, claim: &Claim) -> Result<&Source, String> {
        let Some(from) = &claim.from else {
            return self.sources.first().ok_or_else(|| "there is no source".into());
        };
        let found = self.sources.iter().find(|source| source.name == *from);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.sources.iter().map(|source| &*source.name).collect();
            format!("no source `{from}`; there are {}", names.join(", "))
        })
    }

    /// The claim of a figure: its own definition, and for its gaps the definitions of the client's
    /// other figures. Errors: the definition that there is none of.
    pub fn meaning(&self, name: &str) -> Result<Meaning, String> {
        let claim = self.figures.get(name).ok_or("there is no such figure")?;
        let mut meaning = Meaning::default();
        for quantity in [
            Quantity::Ttft,
            Quantity::E2e,
            Quantity::OutputTokens,
            Quantity::InputTokens,
            Quantity::Successful,
        ] {
            if let Some(other) = self.figures.get(quantity.name()) {
                meaning.define(quantity, &other.definition.to_vec())?;
            }
        }
        meaning.from_due = false;
        for (used, words) in &claim.uses {
            let used: Quantity = match used.as_str() {
                "tokens" => Quantity::OutputTokens,
                "successes" => Quantity::Successful,
                other => other.parse()?,
            };
            meaning.define(used, &words.to_vec())?;
        }
        meaning.define(self.quantity(name)?, &claim.definition.to_vec())?;
        Ok(meaning)
    }

    /// The reason why it cannot run a case, if it cannot.
    pub fn cannot_run(&self, case: &str) -> Option<&str> {
        let mut whole = self.cannot.iter().filter(|cannot| cannot.figures.is_empty());
        whole.find(|cannot| cannot.has(case)).map(|cannot| cannot.why.as_str())
    }

    /// The reason why it lacks a figure in a case, if it does.
    pub fn lacks(&self, case: &str, figure: &str) -> Option<&str> {
        let of_case = self.cannot.iter().filter(|cannot| cannot.has(case));
        let of_figure = of_case.filter(|cannot| cannot.figures.iter().any(|own| own == figure));
        of_figure.map(|cannot| cannot.why.as_str()).next()
    }

    /// The command for a case, ready to run. Errors: a placeholder without a value.
    pub fn command_for(&self, asks: &Asks, values: &Values) -> Result<Vec<String>, String> {
        let added = self.arguments.iter().filter(|arguments| match arguments.when {
            When::Rate => asks.rate.is_some(),
            When::Concurrency => asks.concurrency.is_some(),
            When::Constant => asks.arrivals == Some(Arrivals::Constant),
            When::Poisson => asks.arrivals == Some(Arrivals::Poisson),
            When::Prefix => asks.prefix_len.is_some(),
            When::WarmUp => asks.warm_up > 0,
        });
        let added = added.flat_map(|arguments| &arguments.add);
        let words = self.command.iter().chain(added);
        words.map(|word| values.fill(word)).collect()
    }
}

impl Version {
    /// The version in its command's output.
    pub fn find(&self, text: &str) -> Option<String> {
        let pattern = self.pattern.as_deref().unwrap_or(r"(\d+\.\d+\S*)");
        let pattern = Regex::new(pattern).ok()?;
        let found = pattern.captures(text)?.get(1)?;
        Some(found.as_str().trim().to_owned())
    }
}

impl Cannot {
    fn has(&self, case: &str) -> bool {
        self.cases.iter().any(|name| match name.strip_suffix('*') {
            Some(beginning) => case.starts_with(beginning),
            None => name == case,
        })
    }
}
