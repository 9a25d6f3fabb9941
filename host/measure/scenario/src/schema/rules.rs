//! The parts of a schema, its single constraints, and the messages for values that break them.

use serde_json::{Map, Value};

use model::nearest;
use reader::words::{found, joined, list, plain, written};
use reader::{Config, Located, Place, Problem};

/// A schema that is not merely `true` or `false`.
pub type Rules = Map<String, Value>;

/// A value of a configuration, with its name and place.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub name: &'a str,
    pub place: Option<&'a Place>,
    pub value: &'a Config,
}

pub(crate) fn unknown_key(full: &str, key: &Located<String>, known: &[&str]) -> Problem {
    let problem = match nearest(&key.value, known.iter().copied()) {
        Some(near) => {
            Problem::new(format!("unknown key `{full}`; did you mean `{}`?", plain(near)))
        }
        None => {
            let known: Vec<_> = known.iter().take(40).map(|key| plain(key)).collect();
            Problem::new(format!("unknown key `{full}`"))
                .help(format!("the keys here are {}", list(&known)))
        }
    };
    problem.at(key.place.clone(), "not a key here")
}

pub fn properties(rules: &Rules) -> impl Iterator<Item = (&str, &Value)> {
    let properties = rules.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(key, schema)| (key.as_str(), schema))
}

pub(crate) fn branches<'s>(
    rules: &'s Rules,
    keyword: &str,
) -> impl Iterator<Item = &'s Value> + use<'s> {
    rules.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn constants(rules: &Rules) -> Option<Vec<&Value>> {
    let single = rules.get("const").map(|constant| vec![constant]);
    single.or_else(|| Some(rules.get("enum")?.as_array()?.iter().collect()))
}

/// Bounds of a number or of a string's length.
pub fn range(rules: &Rules, subject: Subject<'_>, scalar: &Value) -> Option<Problem> {
    let bound = |keyword: &str| rules.get(keyword).and_then(Value::as_f64);
    if let Some(text) = scalar.as_str() {
        let length = text.chars().count() as f64;
        let least = bound("minLength").filter(|least| length < *least);
        let most = bound("maxLength").filter(|most| length > *most);
        let expected = least
            .map(|least| format!("a string of at least {least} characters"))
            .or_else(|| Some(format!("a string of at most {} characters", most?)))?;
        return Some(wrong(subject, &expected));
    }
    let number = scalar.as_f64()?;
    // The range of the type if the schema only gives it as a format; usize has 32 bits in a
    // component.
    let (lowest, highest) = match rules.get("format").and_then(Value::as_str) {
        Some("uint32" | "uint") => (Some(0.0), Some(f64::from(u32::MAX))),
        Some("int32" | "int") => (Some(f64::from(i32::MIN)), Some(f64::from(i32::MAX))),
        Some("uint64") => (Some(0.0), None),
        _ => (None, None),
    };
    type Breaks = fn(&f64, &f64) -> bool;
    let limits = [
        (bound("minimum").or(lowest), "at least", f64::lt as Breaks),
        (bound("maximum").or(highest), "at most", f64::gt),
        (bound("exclusiveMinimum"), "more than", f64::le),
        (bound("exclusiveMaximum"), "less than", f64::ge),
    ];
    let (limit, relation, _) = limits
        .into_iter()
        .find(|(limit, _, breaks)| limit.is_some_and(|limit| breaks(&number, &limit)))?;
    Some(wrong(subject, &format!("{relation} {}", limit?)))
}

pub fn one_of(subject: Subject<'_>, allowed: &[&Value]) -> Problem {
    let Subject { name, place, value } = subject;
    let choices: Vec<_> = allowed.iter().map(|constant| written(constant)).collect();
    let one_of = if choices.len() > 1 { "one of " } else { "" };
    let expected = format!("{one_of}{}", joined(&choices, "and"));
    let hint =
        near(value, allowed).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let message = format!("`{name}`: expected {expected}, found {}{hint}", found(value));
    Problem::new(message).at(place.cloned(), format!("expected {expected}"))
}

/// The constant that a string was probably meant to be.
pub fn near(value: &Config, allowed: &[&Value]) -> Option<String> {
    let Config::Scalar(Value::String(text)) = value else { return None };
    nearest(text, allowed.iter().filter_map(|constant| constant.as_str())).map(plain)
}

pub fn wrong(Subject { name, place, value }: Subject<'_>, expected: &str) -> Problem {
    let message = format!("`{name}`: expected {expected}, found {}", found(value));
    Problem::new(message).at(place.cloned(), format!("expected {expected}"))
}

/// JSON Schema's name for the kind of a value.
pub fn kind(value: &Config) -> &'static str {
    match value {
        Config::List(_) => "array",
        Config::Table(_) => "object",
        Config::Scalar(Value::String(_)) => "string",
        Config::Scalar(Value::Bool(_)) => "boolean",
        Config::Scalar(Value::Number(number)) if number.is_f64() => "number",
        Config::Scalar(Value::Number(_)) => "integer",
        Config::Scalar(_) => "null",
    }
}

pub(crate) fn kind_in_words(kind: &str) -> Option<String> {
    let words = match kind {
        "array" => "a list",
        "object" => "a table",
        "string" => "a string",
        "boolean" => "`true` or `false`",
        "number" => "a number",
        "integer" => "a whole number",
        _ => return None,
    };
    Some(words.to_owned())
}
