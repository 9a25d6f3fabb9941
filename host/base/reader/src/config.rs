//! Free-form tables: configuration for a plugin or fields for the server, in their own terms.
//!
//! Keeps the order and the place of every key; the meaning of the keys is up to the plugin,
//! see [`check_config`](super::check_config).

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::located::{Located, Place};

/// A free-form table, such as `[backend.config]`, in the order in which it was written.
#[derive(Clone, Debug, Default)]
pub struct ConfigTable {
    /// The start of the table, if it is part of a text.
    pub place: Option<Place>,
    entries: Vec<ConfigEntry>,
}

#[derive(Clone, Debug)]
pub struct ConfigEntry {
    pub key: Located<String>,
    pub value: ConfigValue,
}

pub type ConfigValue = Located<Config>;

/// A value that JSON can express.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Config {
    Scalar(Value),
    List(Vec<ConfigValue>),
    Table(ConfigTable),
}

impl Config {
    /// From JSON that was given in one place, as in a flag. JSON's `null` stays a scalar.
    pub fn from_json(value: Value, place: &Place) -> Self {
        match value {
            Value::Array(items) => Config::List(
                items
                    .into_iter()
                    .map(|item| Located::new(Config::from_json(item, place), place.clone()))
                    .collect(),
            ),
            Value::Object(map) => Config::Table(ConfigTable::from_json(map, place)),
            scalar => Config::Scalar(scalar),
        }
    }

    pub fn to_json(&self) -> Value {
        match self {
            Config::Scalar(scalar) => scalar.clone(),
            Config::List(items) => items.iter().map(|item| item.value.to_json()).collect(),
            Config::Table(table) => Value::Object(table.to_json()),
        }
    }
}

impl ConfigTable {
    pub fn new(place: Option<Place>) -> Self {
        ConfigTable { place, entries: Vec::new() }
    }

    /// From a JSON object that was given in one place.
    pub fn from_json(map: serde_json::Map<String, Value>, place: &Place) -> Self {
        let entries = map
            .into_iter()
            .map(|(key, value)| ConfigEntry {
                key: Located::new(key, place.clone()),
                value: Located::new(Config::from_json(value, place), place.clone()),
            })
            .collect();
        ConfigTable { place: Some(place.clone()), entries }
    }

    /// Sets `key`, and replaces its earlier value.
    pub fn set(&mut self, key: &str, value: Located<Value>) {
        let Located { value, place } = value;
        let value = Located::new(Config::from_json(value, &place), place.clone());
        self.put(ConfigEntry { key: Located::new(key.to_owned(), place), value });
    }

    /// Adds an entry, and replaces one with the same key.
    pub fn put(&mut self, entry: ConfigEntry) {
        match self.entries.iter_mut().find(|known| known.key.value == entry.key.value) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    pub fn get(&self, key: &str) -> Option<&ConfigEntry> {
        self.entries.iter().find(|entry| entry.key.value == key)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, ConfigEntry> {
        self.entries.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn to_json(&self) -> serde_json::Map<String, Value> {
        self.iter().map(|entry| (entry.key.value.clone(), entry.value.value.to_json())).collect()
    }

    /// This table with `over` laid on it, key by key and table by table; other values are replaced.
    pub fn overlay(mut self, over: ConfigTable) -> Self {
        for entry in over.entries {
            let below = self.entries.iter_mut().find(|below| below.key.value == entry.key.value);
            match (below, entry) {
                (
                    Some(ConfigEntry {
                        value: Located { value: Config::Table(below), .. }, ..
                    }),
                    ConfigEntry { value: Located { value: Config::Table(over), .. }, .. },
                ) => *below = std::mem::take(below).overlay(over),
                (Some(below), entry) => *below = entry,
                (None, entry) => self.entries.push(entry),
            }
        }
        self.place = self.place.or(over.place);
        self
    }

    /// The place of the value at the path; list items are named by their position. The empty path
    /// is the table itself.
    pub fn place_of(&self, path: &[&str]) -> Option<&Place> {
        let [first, rest @ ..] = path else { return self.place.as_ref() };
        place_within(&self.get(first)?.value, rest)
    }
}

fn place_within<'a>(value: &'a ConfigValue, path: &[&str]) -> Option<&'a Place> {
    match (path, &value.value) {
        ([], _) => Some(&value.place),
        (path, Config::Table(table)) => table.place_of(path),
        ([first, rest @ ..], Config::List(items)) => {
            place_within(items.get(first.parse::<usize>().ok()?)?, rest)
        }
        (_, Config::Scalar(_)) => None,
    }
}

impl Serialize for ConfigTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|entry| (&entry.key, &entry.value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table(value: Value, flag: &str) -> ConfigTable {
        let Value::Object(map) = value else { panic!("a table is expected") };
        ConfigTable::from_json(map, &Place::Flag(flag.to_owned()))
    }

    #[test]
    fn lays_tables_over_each_other_key_by_key() {
        let below = table(json!({"z": 1, "deep": {"x": 1, "y": [1, 2]}, "a": 1}), "--below");
        let over = table(json!({"deep": {"y": [3], "w": 4}, "a": {"b": 2}, "new": true}), "--over");
        let both = below.overlay(over);
        let wanted = r#"{"z":1,"deep":{"x":1,"y":[3],"w":4},"a":{"b":2},"new":true}"#;
        assert_eq!(serde_json::to_string(&both).unwrap(), wanted);
        assert_eq!(Value::Object(both.to_json()), serde_json::to_value(&both).unwrap());
        let place = |path: &[&str]| both.place_of(path).map(ToString::to_string);
        assert_eq!(place(&["deep", "x"]).as_deref(), Some("--below"));
        assert_eq!(place(&["deep", "y", "0"]).as_deref(), Some("--over"));
        assert_eq!(place(&["deep", "y", "1"]), None);
        assert_eq!(place(&["z", "no"]), None);
    }

    #[test]
    fn a_key_is_set_once() {
        let mut config = table(json!({"input-len": 64, "like": "vllm"}), "--file");
        config.set("input-len", Located::flag("--random-input-len", json!(1024)));
        assert_eq!(Value::Object(config.to_json()), json!({"input-len": 1024, "like": "vllm"}));
        assert_eq!(config.get("input-len").unwrap().key.place.to_string(), "--random-input-len");
    }
}
