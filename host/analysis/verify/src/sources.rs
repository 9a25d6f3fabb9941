//! A client's own figures: reads them from the files that it left, by its profile.
//!
//! It reads the stated values and fills in nothing but the zeros that a client says it leaves out.
//! The formats of other tools are `audit`'s; here are the three plain ones: JSON, JSON lines, and
//! text.

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde_json::Value;

use crate::meaning::{Quantity, statistic};
use crate::profile::{Claim, Fold, Profile, Unit};
use audit::claim::{self, Claim as Audited, Stated};
use result::figure::Statistic;

const MOST_BYTES: usize = claim::MOST_BYTES;

/// The sources that a client left, by name.
#[derive(Debug, Default)]
pub struct Sources(BTreeMap<String, Content>);

#[derive(Debug)]
enum Content {
    Json(Vec<Value>),
    Lines(Vec<Value>),
    Text(String),
    Claim(Box<Audited>),
    /// The reason why there is nothing in it.
    Unreadable(String),
}

impl Sources {
    /// Reads the content of the profile's sources; one that is missing has none, with the reason.
    pub fn read(profile: &Profile, contents: &BTreeMap<String, Result<Vec<u8>, String>>) -> Self {
        let sources = profile.sources.iter().map(|source| {
            let missing = Err("it was not looked for".to_owned());
            let content = match contents.get(&source.name).unwrap_or(&missing) {
                Ok(bytes) if bytes.len() > MOST_BYTES => {
                    Content::Unreadable(format!("it is larger than {} MiB", MOST_BYTES >> 20))
                }
                Ok(bytes) => {
                    parse(&source.name, &source.reader, bytes).unwrap_or_else(Content::Unreadable)
                }
                Err(why) => Content::Unreadable(why.clone()),
            };
            (source.name.clone(), content)
        });
        Sources(sources.collect())
    }

    /// A figure; `None` if the client does not state it. A missing figure is zero if the client
    /// leaves zeros out. Errors: the reason why its source cannot be read.
    pub fn figure(
        &self,
        profile: &Profile,
        name: &str,
        wanted: Option<Statistic>,
    ) -> Result<Option<Stated>, String> {
        let Some(claim) = profile.figures.get(name) else { return Ok(None) };
        let source = profile.source(claim)?;
        let quantity = profile.quantity(name)?;
        let content = self.0.get(&source.name).ok_or("its source was not read")?;
        let unit = scale(quantity, claim.unit);
        let own = wanted.map(|wanted| {
            let name = wanted.to_string();
            claim.names.get(&name).cloned().unwrap_or(name)
        });
        let filled = |text: &str| match &own {
            Some(own) => text.replace("{statistic}", own),
            None => text.to_owned(),
        };
        let at = claim.at.as_deref().map(filled).unwrap_or_default();
        let exact = |value: f64| Stated { value: value * unit, rounding: 0.0 };
        let reading = match content {
            Content::Unreadable(why) => return Err(format!("source `{}`: {why}", source.name)),
            Content::Json(values) | Content::Lines(values) => {
                let many = at.contains('*') || matches!(content, Content::Lines(_));
                let mut found = Vec::new();
                let mut elements = 0;
                for value in values {
                    let parts: Vec<&str> = at.split('/').skip(1).collect();
                    walk(value, &parts, &mut found, &mut elements);
                }
                match (claim.fold, wanted) {
                    (Some(Fold::Count), _) => {
                        Some(Stated { value: elements as f64, rounding: 0.0 })
                    }
                    (Some(fold), _) => folded(fold, &found).map(exact),
                    (None, Some(wanted)) if many => statistic(wanted, found).map(exact),
                    (None, _) => found.last().copied().map(exact),
                }
            }
            Content::Text(text) => {
                let pattern = claim.pattern.as_deref().map(filled).unwrap_or_default();
                let pattern = Regex::new(&pattern).map_err(|error| error.to_string())?;
                let last = pattern.captures_iter(text).last();
                let group = last.and_then(|found| found.get(1)).map(|group| group.as_str());
                group.and_then(|digits| stated(digits, unit))
            }
            Content::Claim(audited) => of_claim(audited, claim, quantity, name, wanted),
        };
        Ok(reading.or_else(|| claim.zero_is_left_out.then(|| exact(0.0))))
    }
}

fn scale(quantity: Quantity, unit: Option<Unit>) -> f64 {
    match quantity {
        quantity if quantity.is_latency() => unit.map_or(1.0, Unit::millis),
        Quantity::Duration => unit.map_or(1.0, |unit| unit.millis() / 1e3),
        _ => 1.0,
    }
}

fn parse(name: &str, reader: &str, bytes: &[u8]) -> Result<Content, String> {
    let text = || String::from_utf8_lossy(bytes);
    let json = |text: &str| serde_json::from_str(text).map_err(|why| format!("no JSON: {why}"));
    match reader {
        "text" => Ok(Content::Text(text().into_owned())),
        "json" => Ok(Content::Json(vec![json(&text())?])),
        "json-lines" => {
            let text = text();
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            Ok(Content::Lines(lines.map(json).collect::<Result<_, _>>()?))
        }
        tool => {
            let document = claim::read(name, bytes).map_err(|errors| {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                errors.join("; ")
            })?;
            let claim = document.claims.into_iter().next_back().ok_or("no result in it")?;
            if tool != "audit" && claim.tool.name() != tool {
                let other = claim.tool.name();
                return Err(format!("expected a result of {tool}, found one of {other}"));
            }
            Ok(Content::Claim(Box::new(claim)))
        }
    }
}

/// Collects the numbers at a pointer whose parts may be `*`, and counts the elements there.
fn walk(value: &Value, parts: &[&str], found: &mut Vec<f64>, elements: &mut usize) {
    let Some((part, rest)) = parts.split_first() else {
        if !value.is_null() {
            *elements += 1;
        }
        let number = match value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_f64(),
        };
        found.extend(number);
        return;
    };
    let below = |value: &Value| walk(value, rest, found, elements);
    match value {
        Value::Array(list) if *part == "*" => list.iter().for_each(below),
        Value::Object(map) if *part == "*" => map.values().for_each(below),
        Value::Array(list) => {
            let index = part.parse::<usize>().ok();
            index.and_then(|index| list.get(index)).into_iter().for_each(below);
        }
        Value::Object(map) => {
            let key = part.replace("~1", "/").replace("~0", "~");
            map.get(&key).into_iter().for_each(below);
        }
        _ => {}
    }
}

fn folded(fold: Fold, values: &[f64]) -> Option<f64> {
    match fold {
        Fold::Sum => (!values.is_empty()).then(|| values.iter().sum()),
        Fold::Count => Some(values.len() as f64),
        Fold::Mean => statistic(Statistic::Mean, values.to_vec()),
        Fold::Max => statistic(Statistic::Max, values.to_vec()),
        Fold::Last => values.last().copied(),
    }
}

/// A number as it was written, and half of its last digit.
fn stated(digits: &str, unit: f64) -> Option<Stated> {
    let digits = digits.trim().replace(',', "");
    let value: f64 = digits.parse().ok()?;
    let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
    let places = i32::try_from(decimals.min(18)).unwrap_or(18);
    // A count is written in full.
    let rounding = if decimals == 0 { 0.0 } else { 0.5 * 10_f64.powi(-places) };
    Some(Stated { value: value * unit, rounding: rounding * unit })
}

fn of_claim(
    audited: &Audited,
    claim: &Claim,
    quantity: Quantity,
    name: &str,
    wanted: Option<Statistic>,
) -> Option<Stated> {
    // A latency of the client's own name, such as `ttft-from-due`, is not in a claim.
    let is_own = claim.of.is_some() && name != quantity.name();
    let key = match quantity {
        Quantity::OutputRate => "throughput.output-tokens-per-s".to_owned(),
        Quantity::RequestRate => "throughput.requests-per-s".to_owned(),
        Quantity::Duration => "throughput.duration-s".to_owned(),
        quantity if quantity.is_latency() => {
            let wanted = wanted?;
            let name = if is_own { name } else { quantity.name() };
            format!("{name}.{wanted}")
        }
        quantity => quantity.name().to_owned(),
    };
    audited.stated(&key).or_else(|| {
        let value = statistic(wanted?, audited.values(quantity.name()))?;
        Some(Stated { value, rounding: 0.0 })
    })
}
