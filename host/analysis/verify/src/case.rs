//! A case: the client's task, the server's behaviour, and the figures that show whether the client
//! understood.
//!
//! A case is TOML. Its table `engine` is a script of the mock engine, which this crate does not
//! interpret. `expected` gives the value of each definition if the server is on time, so that a
//! reader of the file sees the distance between them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use model::duration::Span;

use crate::FileError;
use crate::meaning::Figure;
use crate::types::{Asks, Part, Property, few};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// Its name: the file's, without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// Its events, in a line.
    pub title: String,
    /// The reason why it matters, and the mistakes of other tools.
    pub why: String,
    pub asks: Asks,
    pub judges: Judges,
    /// The tolerance of figures; counts are always exact.
    #[serde(default)]
    pub tolerance: Tolerance,
    #[serde(default)]
    pub engine: toml::Table,
    /// Values by each definition if the server is on time: milliseconds, or a count.
    #[serde(default)]
    pub expected: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Judges {
    /// Figures of the client: `ttft` for its mean and its median, or `ttft.p99`.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Properties of the load that it offered.
    #[serde(default)]
    pub load: Vec<Property>,
}

/// The largest difference of an exact time.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Tolerance {
    /// The absolute part.
    pub time: Span,
    /// The share of the time, which is added.
    pub share: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Tolerance { time: Span(std::time::Duration::from_millis(5)), share: 0.02 }
    }
}

impl Tolerance {
    pub fn millis(&self) -> f64 {
        self.time.0.as_secs_f64() * 1e3
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} + {} %", self.time, self.share * 100.0)
    }
}

impl Case {
    /// Reads a case; `file` is its path, whose last part is its name. Errors: the mistake in it.
    pub fn read(file: &str, text: &str) -> Result<Self, FileError> {
        let wrong = |message: &dyn std::fmt::Display| FileError::new(file, message);
        let mut case: Case = toml::from_str(text).map_err(|error| wrong(&error))?;
        let name = file.rsplit('/').next().unwrap_or(file);
        case.name = name.strip_suffix(".toml").unwrap_or(name).to_owned();
        if part(&case.name).is_none() {
            return Err(wrong(&"expected a name that begins with load-, stream- or fault-"));
        }
        let asks = &case.asks;
        if asks.concurrency.is_some() == asks.rate.is_some() {
            return Err(wrong(&"`asks`: expected either `concurrency` or `rate`"));
        }
        if asks.rate.is_some() != asks.arrivals.is_some() {
            return Err(wrong(&"`asks`: `arrivals` belongs to `rate`; give both"));
        }
        if asks.requests == 0 || asks.seeds.is_empty() {
            return Err(wrong(&"`asks`: expected at least one request and one seed"));
        }
        if let Some(rate) = asks.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            let words = format!("`asks.rate`: expected a number above 0, found {rate}");
            return Err(wrong(&words));
        }
        for (name, number) in [
            ("requests", Some(asks.requests)),
            ("concurrency", asks.concurrency),
            ("input-len", Some(asks.input_len)),
            ("output-len", Some(asks.output_len)),
            ("prefix-len", asks.prefix_len),
            ("warm-up", Some(asks.warm_up)),
        ] {
            few(number.unwrap_or(0))
                .map_err(|expected| wrong(&format!("`asks.{name}`: {expected}")))?;
        }
        for (figure, by) in &case.expected {
            let figure: Figure = figure.parse().map_err(|error| wrong(&error))?;
            for word in by.keys() {
                let known = figure.quantity.meaning(word);
                known.map_err(|error| wrong(&format!("`expected.{figure}`: {error}")))?;
            }
        }
        Ok(case)
    }

    pub fn part(&self) -> Part {
        part(&self.name).unwrap_or(Part::Streams)
    }

    /// Its engine's script, as TOML.
    pub fn script(&self) -> String {
        self.engine.to_string()
    }
}

fn part(name: &str) -> Option<Part> {
    let (part, _) = name.split_once('-')?;
    match part {
        "load" => Some(Part::Load),
        "stream" => Some(Part::Streams),
        "fault" => Some(Part::Faults),
        _ => None,
    }
}
