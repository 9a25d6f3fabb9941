//! Reading the files of a case, and collecting their mistakes.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::store::Store;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub path: PathBuf,
    /// The mistake, and the expectation.
    pub what: String,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

pub struct Files<'a> {
    pub store: Store,
    mistakes: &'a mut Vec<Mistake>,
    /// Files that other files of the case refer to.
    pub named: Vec<PathBuf>,
}

impl<'a> Files<'a> {
    /// Mistakes are added to `mistakes`.
    pub fn new(store: Store, mistakes: &'a mut Vec<Mistake>) -> Self {
        Files { store, mistakes, named: Vec::new() }
    }

    /// Records a mistake of a file, or of the case if the name is empty.
    pub fn mistake(&mut self, file: &str, what: impl Into<String>) {
        self.mistakes.push(Mistake { path: self.store.place(file), what: what.into() });
    }

    /// Records a mistake because of which there is no result.
    pub fn refuse<T>(&mut self, file: &str, what: impl Into<String>) -> Option<T> {
        self.mistake(file, what);
        None
    }

    /// A file's bytes; `None` if there is no such file.
    pub fn bytes(&mut self, file: &str) -> Option<Vec<u8>> {
        match self.store.read(file) {
            Ok(bytes) => Some(bytes),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
            Err(cause) => self.refuse(file, format!("cannot be read: {cause}")),
        }
    }

    /// A file's text; `None` if there is no such file, or it cannot be read.
    pub fn text(&mut self, file: &str) -> Option<String> {
        let text = String::from_utf8(self.bytes(file)?);
        text.map_err(|cause| self.mistake(file, format!("is not UTF-8: {}", cause.utf8_error())))
            .ok()
    }

    /// The bytes of a file that another file refers to.
    pub fn beside(&mut self, file: &str) -> Option<Vec<u8>> {
        self.named.push(self.store.place(file));
        let bytes = self.bytes(file);
        if !self.store.has(file) {
            self.mistake(file, "the file does not exist, but sample.json names it");
        }
        bytes
    }

    pub fn json<T: DeserializeOwned>(&mut self, file: &str) -> Option<T> {
        let read = serde_json::from_str(&self.text(file)?);
        read.map_err(|cause| self.mistake(file, cause.to_string())).ok()
    }

    pub fn toml<T: DeserializeOwned>(&mut self, file: &str) -> Option<T> {
        let read = toml::from_str(&self.text(file)?);
        read.map_err(|cause| self.mistake(file, cause.to_string().trim_end())).ok()
    }

    pub fn config(&mut self) -> Value {
        let table: toml::Table = self.toml("config.toml").unwrap_or_default();
        let config = as_json(toml::Value::Table(table));
        config.map_err(|what| self.mistake("config.toml", what)).unwrap_or_default()
    }

    pub fn names(&mut self) -> Vec<String> {
        self.store.names().map_err(|what| self.mistake("", what)).unwrap_or_default()
    }
}

/// TOML as JSON; a value that JSON cannot express is a mistake.
fn as_json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .ok_or_else(|| {
                format!("{number} cannot be passed to a plugin: JSON has no such number")
            })?
            .into(),
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(values) => {
            values.into_iter().map(as_json).collect::<Result<Vec<_>, _>>()?.into()
        }
        toml::Value::Table(table) => Value::Object(
            table
                .into_iter()
                .map(|(key, value)| Ok((key, as_json(value)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}
