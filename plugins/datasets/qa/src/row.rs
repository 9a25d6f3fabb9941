//! A row of a file, and the columns that a task expects in it.

use records::Place;
use runner_plugin::report::shortened;
use serde_json::{Map, Value};

#[derive(Clone, Debug)]
pub struct Row {
    pub place: Place,
    pub fields: Map<String, Value>,
}

impl Row {
    /// A column that may be missing; none if it is null or an empty text.
    pub fn any(&self, name: &str) -> Option<&Value> {
        let value = self.fields.get(name)?;
        (!value.is_null() && value.as_str() != Some("")).then_some(value)
    }

    pub fn value(&self, name: &str) -> Result<&Value, String> {
        self.any(name).ok_or_else(|| {
            if self.fields.contains_key(name) {
                format!("column `{name}`: expected a value, found none")
            } else {
                format!("expected the column `{name}`; {}", self.columns())
            }
        })
    }

    pub fn text(&self, name: &str) -> Result<&str, String> {
        let value = self.value(name)?;
        value.as_str().ok_or_else(|| unexpected(name, "a text", value))
    }

    /// A column of a text or a number, as text.
    pub fn label(&self, name: &str) -> Result<String, String> {
        match self.value(name)? {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            other => Err(unexpected(name, "a text or a number", other)),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let value = self.value(name)?;
        texts(value).ok_or_else(|| unexpected(name, "a list of texts", value))
    }

    /// The subject in a column, or `only`, the subject of a file that does not name its own.
    pub fn subject(
        &self,
        column: &str,
        only: Option<&str>,
        example: &str,
    ) -> Result<String, String> {
        match (self.any(column), only) {
            (Some(_), _) => self.text(column).map(str::to_owned),
            (None, Some(only)) => Ok(only.to_owned()),
            (None, None) => Err(format!(
                "expected the column `{column}`, or the file's {column} in the configuration, such as `subjects = \
                 [\"{example}\"]`; {}",
                self.columns()
            )),
        }
    }

    pub fn columns(&self) -> String {
        let names: Vec<_> = self.fields.keys().take(20).map(|name| format!("`{name}`")).collect();
        match names.len() {
            0 => "the row has none".to_owned(),
            _ => format!("the row has {}", names.join(", ")),
        }
    }
}

pub fn texts(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}

pub fn unexpected(name: &str, expected: &str, found: &Value) -> String {
    let found = shortened(&found.to_string(), 60);
    format!("column `{name}`: expected {expected}, found {found}")
}

/// A text without white space around it, as Python's `str.strip` removes it.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// True if Python's `str.isspace` holds for a character.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}
