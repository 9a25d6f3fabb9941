//! TOML values one by one: their types, their conversion, and the faults that prevent it.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::config::{Config, ConfigEntry, ConfigTable, ConfigValue};
use crate::located::{Located, Place};
use crate::problem::Problem;
use crate::reader::Reading;

pub(crate) fn take_value<'a, 'i, T>(
    reading: &Reading,
    name: &str,
    value: &'a Spanned<DeValue<'i>>,
    expected: &str,
    take: impl FnOnce(&'a DeValue<'i>) -> Result<T, Option<String>>,
) -> Option<Located<T>> {
    let place = reading.place(value.span());
    let reason = match take(value.get_ref()) {
        Ok(taken) => return Some(Located::new(taken, place)),
        Err(reason) => reason,
    };
    let message = match reason {
        None => format!("`{name}`: expected {expected}, found {}", found(value.get_ref())),
        Some(reason) => format!("`{name}`: expected {expected}, but {reason}"),
    };
    reading.report(Problem::new(message).at(place, format!("expected {expected}")));
    None
}

/// Converts a value as its type defines, or reports why that is not possible.
pub(crate) fn deserialized<T: DeserializeOwned>(
    reading: &Reading,
    name: &str,
    value: &Spanned<DeValue<'_>>,
) -> Option<Located<T>> {
    let error = match T::deserialize(ValueDeserializer::from(value.clone())) {
        Ok(taken) => return Some(Located::new(taken, reading.place(value.span()))),
        Err(error) => error,
    };
    let place = reading.place(error.span().unwrap_or(value.span()));
    let message = format!("`{name}`: {}", error.message());
    reading.report(Problem::new(message).at(place, "here"));
    None
}

/// A TOML integer as far as 128 bits reach.
pub fn integer(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A TOML integer or float; a decimal text that is too large for a float is no number.
pub fn number(value: &DeValue<'_>) -> Option<f64> {
    if let Some(integer) = integer(value) {
        return Some(integer as f64);
    }
    let text = value.as_float()?.as_str();
    let number = text.parse::<f64>().ok()?;
    (number.is_finite() || text.contains("inf") || text.contains("nan")).then_some(number)
}

/// Describes a TOML value for people; short values are repeated.
fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.chars().count() <= 40 => format!("the string {text:?}"),
        DeValue::String(_) => "a long string".to_owned(),
        DeValue::Integer(integer) => format!("the integer {integer}"),
        DeValue::Float(float) => format!("the number {float}"),
        DeValue::Boolean(boolean) => format!("{boolean}"),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// The most keys of a table of free form.
const MOST_KEYS: usize = 10_000;

pub(crate) fn config_table(
    reading: &Reading,
    path: &str,
    table: &DeTable<'_>,
    place: Option<Place>,
) -> ConfigTable {
    if table.len() > MOST_KEYS {
        let words = format!("`{path}`: expected at most {MOST_KEYS} keys, found {}", table.len());
        reading.report(Problem::new(words).at(place.clone(), "too many keys"));
        return ConfigTable::new(place);
    }
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut config = ConfigTable::new(place);
    for (key, value) in entries {
        let name = format!("{path}.{}", key.get_ref());
        if let Some(value) = config_value(reading, &name, value) {
            let key = Located::new(key.get_ref().to_string(), reading.place(key.span()));
            config.put(ConfigEntry { key, value });
        }
    }
    config
}

/// A free-form value; `None`, and a problem, if JSON has no such thing.
fn config_value(
    reading: &Reading,
    name: &str,
    value: &Spanned<DeValue<'_>>,
) -> Option<ConfigValue> {
    let expected = "a value that JSON can express";
    take_value(reading, name, value, expected, |taken| match taken {
        DeValue::String(text) => Ok(Config::Scalar(text.as_ref().into())),
        DeValue::Boolean(boolean) => Ok(Config::Scalar((*boolean).into())),
        DeValue::Datetime(datetime) => Ok(Config::Scalar(datetime.to_string().into())),
        DeValue::Integer(_) => {
            let integer = integer(taken);
            let unsigned = integer.and_then(|n| u64::try_from(n).ok()).map(Into::into);
            let signed = || integer.and_then(|n| i64::try_from(n).ok()).map(Into::into);
            unsigned.or_else(signed).map(Config::Scalar).ok_or(None)
        }
        DeValue::Float(_) => number(taken)
            .and_then(serde_json::Number::from_f64)
            .map(|number| Config::Scalar(number.into()))
            .ok_or(None),
        DeValue::Array(items) => Ok(Config::List(
            items.iter().filter_map(|item| config_value(reading, name, item)).collect(),
        )),
        DeValue::Table(table) => {
            let place = reading.place(value.span());
            Ok(Config::Table(config_table(reading, name, table, Some(place))))
        }
    })
}
