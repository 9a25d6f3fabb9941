//! A dataset built for exactly runner:plugin 0.1.0: the lines of a file, counted by the host's
//! tokenizer, as turns of two conversations. See `frozen-backend` for what it is for.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, unsafe_code)]

use std::cell::Cell;

use serde_json::json;

wit_bindgen::generate!({
    path: "../../../wit/frozen/0.1.0",
    world: "dataset-plugin",
    generate_all,
});

use exports::runner::plugin::about;
use exports::runner::plugin::dataset::{Generator, Guest, GuestGenerator};
use runner::plugin::types::{Error, Message, Prompt, Role, Sample};
use runner::plugin::{files::File, log, tokenizer};

struct Frozen;

impl about::Guest for Frozen {
    fn describe() -> about::Info {
        about::Info {
            name: "frozen".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: env!("CARGO_PKG_DESCRIPTION").to_owned(),
            config_schema: json!({"type": "object", "additionalProperties": false}).to_string(),
        }
    }
}

struct Lines {
    lines: Vec<String>,
    given: Cell<usize>,
}

impl Guest for Frozen {
    type Generator = Lines;
}

impl GuestGenerator for Lines {
    fn open(_config: String, seed: u64, count: Option<u64>) -> Result<Generator, Error> {
        log::write(log::Level::Info, &format!("seed {seed}, count {count:?}"));
        let file =
            File::open("data").ok_or_else(|| Error::InvalidConfig("no file `data`".to_owned()))?;
        let length = u32::try_from(file.size()).unwrap_or(u32::MAX);
        let bytes = file.read(0, length).map_err(Error::InvalidInput)?;
        let text =
            String::from_utf8(bytes).map_err(|error| Error::InvalidInput(error.to_string()))?;
        let lines = Lines {
            lines: text.lines().map(str::to_owned).collect(),
            given: Cell::new(0),
        };
        Ok(Generator::new(lines))
    }

    fn next(&self, limit: u32) -> Result<Vec<Sample>, Error> {
        let start = self.given.get();
        let end = self.lines.len().min(start + limit as usize);
        self.given.set(end);
        let texts = &self.lines[start..end];
        let counts = tokenizer::count(texts, true);
        let samples = texts.iter().zip(counts).enumerate();
        Ok(samples
            .map(|(offset, (text, tokens))| Sample {
                id: format!("line-{}", start + offset),
                prompt: Prompt::Messages(vec![Message {
                    role: Role::User,
                    content: text.clone(),
                }]),
                input_tokens: Some(tokens),
                output_tokens: Some(8),
                reference: Some(json!(text).to_string()),
                session: Some(format!("session-{}", (start + offset) % 2)),
            })
            .collect())
    }

    fn spare(&self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.next(limit)
    }
}

export!(Frozen);
