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
use crate::load::Property;
use crate::meaning::Figure;

/// The most requests of a run, and tokens of a prompt or an answer.
const MOST: u64 = 1_000_000_000;

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
    /// The work that the client is asked to do.
    pub asks: Asks,
    /// The figures and properties that it judges.
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

/// The part that a case belongs to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The load that the client offers.
    Load,
    /// Streams whose truth is known.
    Streams,
    /// Faults, and which replies count as successes.
    Faults,
}

/// The work that a client is asked to do.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Asks {
    /// The number of requests to measure.
    pub requests: u64,
    /// The number in flight of a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// Requests a second of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The distribution of the times between requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Tokens of each prompt.
    pub input_len: u64,
    /// Tokens of each answer.
    pub output_len: u64,
    /// Tokens that all prompts begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_len: Option<u64>,
    /// Requests before the measured ones.
    #[serde(default)]
    pub warm_up: u64,
    /// The seeds of its runs, one run for each.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
}

impl Asks {
    /// True if requests wait for others instead of a time.
    pub fn is_closed(&self) -> bool {
        self.rate.is_none()
    }
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// A distribution of the times between requests.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// All the same.
    Constant,
    /// Exponential.
    Poisson,
}

/// The figures and properties that a case judges.
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
    /// The time in milliseconds.
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
    /// Reads a case; `file` is its path, whose last part is the case's name.
    ///
    /// # Errors
    /// The mistake in it.
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
        if let Some(rate) = asks.rate
            && !(rate.is_finite() && rate > 0.0)
        {
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
                figure
                    .quantity
                    .meaning(word)
                    .map_err(|error| wrong(&format!("`expected.{figure}`: {error}")))?;
            }
        }
        Ok(case)
    }

    /// The part that it belongs to.
    pub fn part(&self) -> Part {
        part(&self.name).unwrap_or(Part::Streams)
    }

    /// Its engine's script, as TOML.
    pub fn script(&self) -> String {
        self.engine.to_string()
    }
}

impl std::fmt::Display for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Arrivals::Constant => "constant",
            Arrivals::Poisson => "Poisson",
        })
    }
}

/// Checks a number of requests or of tokens, so that sums of them stay within bounds.
///
/// # Errors
/// The number that was expected.
pub(crate) fn few(number: u64) -> Result<(), String> {
    if number > MOST {
        return Err(format!("expected at most {MOST}, found {number}"));
    }
    Ok(())
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

impl Part {
    /// Its name as people read it.
    pub fn title(self) -> &'static str {
        match self {
            Part::Load => "Offered load",
            Part::Streams => "Streams of known truth",
            Part::Faults => "Faults",
        }
    }
}
