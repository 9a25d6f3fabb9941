//! Workflow files, read as GitHub reads them.

use serde_json::Value;

use super::{read, root};

/// A workflow: its text, with the parts that YAML drops, and its contents.
pub struct Workflow {
    pub name: String,
    pub text: String,
    pub contents: Value,
}

impl Workflow {
    pub fn read(name: &str) -> Self {
        let text = read(root().join(".github/workflows").join(name));
        let contents =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text, contents }
    }

    pub fn all() -> Vec<Self> {
        let folder = std::fs::read_dir(root().join(".github/workflows")).unwrap();
        let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.map(|name| Self::read(&name)).collect()
    }

    pub fn jobs(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.contents["jobs"].as_object().unwrap().iter()
    }

    pub fn steps(&self) -> Vec<(&str, &Value)> {
        let mut steps = Vec::new();
        for (name, job) in self.jobs() {
            for step in job["steps"].as_array().unwrap() {
                steps.push((name.as_str(), step));
            }
        }
        steps
    }
}

/// A list that may be written as one word.
pub fn list(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(word) => vec![word.clone()],
        Value::Array(words) => {
            (words.iter()).map(|word| word.as_str().unwrap().to_owned()).collect()
        }
        other => panic!("expected a word or a list of words, found {other}"),
    }
}

pub fn expressions(text: &str) -> Vec<&str> {
    let parts = text.split("${{").skip(1);
    parts.map(|part| part.split("}}").next().unwrap().trim()).collect()
}
