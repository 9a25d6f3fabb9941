//! Lists of loads as people write them, and the order of their runs.

use std::cmp::Ordering;
use std::fmt;

use model::random::mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Load;

/// Loads that a list may have.
pub const MOST: usize = 1000;

/// The load of a run of a sweep. It is written as a number, or as `inf` where all requests come at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Written", try_from = "Written")]
pub enum At {
    /// So much of it.
    Load(f64),
    /// A rate without a limit: all requests are due at the beginning.
    Unlimited,
}

impl At {
    /// As a number; infinite without a limit.
    pub fn number(self) -> f64 {
        match self {
            At::Load(load) => load,
            At::Unlimited => f64::INFINITY,
        }
    }

    fn compare(&self, other: &At) -> Ordering {
        self.number().total_cmp(&other.number())
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Load(load) => write!(f, "{load}"),
            At::Unlimited => f.write_str("inf"),
        }
    }
}

/// A load in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Word(String),
}

impl From<At> for Written {
    fn from(at: At) -> Self {
        match at {
            At::Load(load) => Written::Number(load),
            At::Unlimited => Written::Word("inf".into()),
        }
    }
}

impl TryFrom<Written> for At {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(load) if load > 0.0 && load.is_finite() => Ok(At::Load(load)),
            Written::Word(word) if word == "inf" => Ok(At::Unlimited),
            Written::Number(load) => Err(format!("expected a load above 0, found {load}")),
            Written::Word(word) => Err(format!("expected a number or `inf`, found `{word}`")),
        }
    }
}

/// A list of loads: items with commas between them, each of these kinds:
///
/// - a load: `4`, `2.5`, or `inf` for a rate without a limit,
/// - a range with its step, both ends included: `1:16:1`,
/// - a geometric series with its factor, up to its end: `1..64x2` is 1, 2, 4, 8, 16, 32 and 64.
///
/// The loads come in ascending order, each once. Numbers of requests and sessions are whole.
/// Errors: every mistake, as text.
pub fn series(load: Load, text: &str) -> Result<Vec<At>, Vec<String>> {
    let (mut loads, mut mistakes) = (Vec::new(), Vec::new());
    for item in text.split(',').map(str::trim) {
        if item.is_empty() {
            mistakes.push(format!("`{text}`: expected a load between the commas"));
            continue;
        }
        match read(load, item) {
            Ok(read) => loads.extend(read),
            Err(mistake) => mistakes.push(format!("`{item}`: {mistake}")),
        }
    }
    loads.sort_by(At::compare);
    loads.dedup();
    if loads.len() > MOST {
        mistakes.push(format!(
            "`{text}`: a sweep has at most {MOST} loads, and these are {}",
            loads.len()
        ));
    }
    if mistakes.is_empty() { Ok(loads) } else { Err(mistakes) }
}

fn read(load: Load, item: &str) -> Result<Vec<At>, String> {
    if item == "inf" {
        return match load {
            Load::Rate => Ok(vec![At::Unlimited]),
            Load::Concurrency | Load::Sessions => {
                Err(format!("a number of {load} must have a limit"))
            }
        };
    }
    let number = |text: &str| match text.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e9 => {
            if load.is_whole() && number.fract() != 0.0 {
                Err(format!("expected a whole number of {load}, found `{}`", text.trim()))
            } else {
                Ok(number)
            }
        }
        _ => Err(format!(
            "expected a number above 0 and at most 1e9, found `{}`; write 4, 1:16:1 or 1..64x2",
            text.trim()
        )),
    };
    if let Some((from, rest)) = item.split_once("..") {
        let Some((to, factor)) = rest.split_once('x') else {
            return Err("expected a factor, as in `1..64x2`".into());
        };
        let (from, to) = (number(from)?, number(to)?);
        let factor = factor.trim().parse::<f64>().ok();
        let Some(factor) = factor.filter(|factor| *factor > 1.0 && *factor <= 1e6) else {
            return Err("expected a factor above 1, as in `1..64x2`".into());
        };
        ascending(from, to)?;
        let place = |place: i32| from * factor.powi(place);
        return take(load, to, place);
    }
    if item.contains(':') {
        let parts: Vec<&str> = item.split(':').collect();
        let [from, to, by] = parts[..] else {
            return Err("expected a range with its step, as in `1:16:1`".into());
        };
        let (from, to, by) = (number(from)?, number(to)?, number(by)?);
        ascending(from, to)?;
        return take(load, to, |place| from + by * f64::from(place));
    }
    Ok(vec![At::Load(number(item)?)])
}

fn ascending(from: f64, to: f64) -> Result<(), String> {
    if from <= to { Ok(()) } else { Err(format!("the end, {to}, is before the beginning, {from}")) }
}

/// The loads at places from 0 on, up to the end; a load just beyond it by rounding counts as the
/// end.
fn take(load: Load, to: f64, at: impl Fn(i32) -> f64) -> Result<Vec<At>, String> {
    let mut loads = Vec::new();
    for place in 0..=MOST as i32 {
        let exact = at(place);
        if exact > to * (1.0 + 1e-9) {
            return Ok(loads);
        }
        let near = if (exact / to - 1.0).abs() < 1e-9 { to } else { exact };
        // Twelve digits, so that 0.1 + 0.2 is 0.3; whole where it must be.
        let neat = if load.is_whole() {
            near.round()
        } else {
            format!("{near:.11e}").parse().unwrap_or(near)
        };
        loads.push(At::Load(neat));
    }
    Err(format!("these are more than {MOST} loads"))
}

/// A run of a sweep.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Run {
    /// Its number, from 1.
    pub number: u32,
    /// Its load.
    pub at: At,
    /// The number of the repeat, from 1.
    pub repeat: u32,
    /// Its seed, which no other run of the sweep has.
    pub seed: u64,
}

/// The runs of a sweep in the order in which they are made: from the lowest load to the highest,
/// and then again for the next repeat. So a slow change of the machine affects all loads, and shows
/// between the repeats instead of posing as a property of one load. An engine that breaks under the
/// highest load has been measured at all others by then.
pub fn order(loads: &[At], repeats: u32, seed: u64) -> Vec<Run> {
    let mut loads = loads.to_vec();
    loads.sort_by(At::compare);
    let all = (1..=repeats).flat_map(|repeat| loads.iter().map(move |at| (repeat, *at)));
    (1..)
        .zip(all)
        .map(|(number, (repeat, at))| Run {
            number,
            at,
            repeat,
            seed: mix(mix(seed) ^ u64::from(number)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(load: Load, text: &str) -> Vec<f64> {
        let loads = series(load, text).unwrap();
        loads.into_iter().map(At::number).collect()
    }

    #[test]
    fn lists_ranges_and_series_are_read() {
        let rates = |text| numbers(Load::Rate, text);
        assert_eq!(rates("4,1, 2.5 ,4"), [1.0, 2.5, 4.0]);
        assert_eq!(rates("1:4:1"), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(rates("0.1:0.5:0.1"), [0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(rates("1:4:2"), [1.0, 3.0]);
        assert_eq!(rates("1..64x2"), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert_eq!(rates("1..10x3"), [1.0, 3.0, 9.0]);
        assert_eq!(rates("0.5,1..4x2,inf"), [0.5, 1.0, 2.0, 4.0, f64::INFINITY]);
        assert_eq!(rates("1..10x1.1").len(), 25);
        assert_eq!(numbers(Load::Concurrency, "1..8x1.5"), [1.0, 2.0, 3.0, 5.0, 8.0]);
    }

    #[test]
    fn all_mistakes_are_listed_at_once() {
        let text = "0,-1,x,1:2,5:1:1,1..9,1..9x1,nan,,1:1e9:0.1,9..1x2";
        let mistakes = series(Load::Rate, text).unwrap_err();
        let wanted = [
            "`0`: expected a number above 0",
            "`-1`: expected a number above 0",
            "`x`: expected a number above 0",
            "`1:2`: expected a range with its step",
            "`5:1:1`: the end, 1, is before",
            "`1..9`: expected a factor",
            "`1..9x1`: expected a factor above 1",
            "`nan`: expected a number",
            "expected a load between the commas",
            "`1:1e9:0.1`: these are more than 1000 loads",
            "`9..1x2`: the end, 1, is before",
        ];
        assert_eq!(mistakes.len(), wanted.len(), "{mistakes:#?}");
        for (mistake, wanted) in mistakes.iter().zip(wanted) {
            assert!(mistake.contains(wanted), "{mistake}: {wanted}");
        }
        let whole = series(Load::Sessions, "1.5,inf").unwrap_err();
        assert!(whole[0].contains("a whole number of sessions, found `1.5`"), "{whole:?}");
        assert!(whole[1].contains("must have a limit"), "{whole:?}");
        let many = series(Load::Rate, "1:900:1,1000.5:1900.5:1").unwrap_err();
        assert!(many[0].contains("at most 1000 loads"), "{many:?}");
    }

    #[test]
    fn repeats_are_interleaved_and_each_run_has_a_seed() {
        let loads = series(Load::Rate, "2,1,inf").unwrap();
        let runs = order(&loads, 2, 7);
        let shown: Vec<String> =
            (runs.iter()).map(|run| format!("{}@{}", run.repeat, run.at)).collect();
        assert_eq!(shown, ["1@1", "1@2", "1@inf", "2@1", "2@2", "2@inf"]);
        let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 6);
        let json = serde_json::to_string(&runs).unwrap();
        assert!(json.contains(r#""at":"inf""#), "{json}");
        assert_eq!(serde_json::from_str::<Vec<Run>>(&json).unwrap(), runs);
        for wrong in ["0.0", "-1", "\"fast\"", "null"] {
            assert!(serde_json::from_str::<At>(wrong).is_err(), "{wrong}");
        }
    }
}
