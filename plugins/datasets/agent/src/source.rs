//! The common part of the sources of sessions, and the detection of a file's format.

use std::rc::Rc;

use dialogue::FILE;
use dialogue::rows::{Rows, parse, unknown, wrong};
use runner_plugin::{Error, Files, Tokenizer};
use serde_json::{Map, Value};

use crate::config::Format;
use dialogue::words::{CountedText, TextRequest, Writer, generator};

pub(crate) fn named(name: &str, pass: u64) -> String {
    match pass {
        0 | 1 => name.to_owned(),
        _ => format!("{name}#{pass}"),
    }
}

/// The lines of the file `data`, which exists.
pub(crate) fn rows(files: &dyn Files) -> Result<Rows, Error> {
    Rows::open(files).ok_or_else(|| {
        Error::config(format!(
            "no file of agents: pass --dataset-path FILE, or set `{FILE} = \"FILE\"` under [dataset.files], or \
             `format = \"synthetic\"`"
        ))
    })
}

/// The format of the file `data`, by its first line; `synthetic` if there is none.
pub(crate) fn recognise(files: &dyn Files, format: Option<Format>) -> Result<Format, Error> {
    match (format, files.open(FILE).is_some()) {
        (None | Some(Format::Synthetic), false) => return Ok(Format::Synthetic),
        (Some(Format::Synthetic), true) => {
            return Err(Error::config(format!(
                "`format = \"synthetic\"` reads no file: leave `{FILE}` out, or name it `text` for agents that speak \
                 its words"
            )));
        }
        (Some(format), _) => {
            rows(files)?;
            return Ok(format);
        }
        (None, true) => {}
    }
    let Some((number, line)) = rows(files)?.line()? else {
        return Err(Error::InvalidInput(format!("the file `{FILE}` is empty")));
    };
    let fields: Map<String, Value> = parse(&line).map_err(|cause| wrong(number, &cause))?;
    let has = |key: &str| fields.contains_key(key);
    if has("input_prompt_length") {
        Ok(Format::Trie)
    } else if has("spans") || has("resourceSpans") || has("attributes") {
        Ok(Format::Otel)
    } else if has("session_id") {
        Ok(Format::Dag)
    } else {
        let expected = "`session_id` and `turns`, with `spans`, `attributes` or `resourceSpans`, or with \
             `input_prompt_length`";
        Err(unknown(number, expected, &fields))
    }
}

/// Parts of a session from here on are texts; lower parts draw lengths and waits.
const TEXTS: u64 = 1 << 32;

/// The texts of a session.
pub(crate) struct Texts {
    seed: u64,
    session: u64,
    wanted: Vec<TextRequest>,
    written: std::vec::IntoIter<CountedText>,
    learning: bool,
}

impl Texts {
    /// A text of this many tokens; empty while the session is visited for the first time.
    pub(crate) fn text(&mut self, tokens: u32) -> String {
        if self.learning {
            let part = TEXTS + self.wanted.len() as u64;
            self.wanted
                .push(TextRequest { random: generator(self.seed, self.session, part), tokens });
            return String::new();
        }
        self.written.next().unwrap_or_default().0
    }
}

/// Goes through a session twice with `build`, which must ask for the same texts both times.
pub(crate) fn with_texts<T>(
    seed: u64,
    session: u64,
    writer: &Writer,
    tokenizer: &Rc<dyn Tokenizer>,
    mut build: impl FnMut(&mut Texts) -> Result<T, String>,
) -> Result<Result<T, String>, Error> {
    let mut texts = Texts {
        seed,
        session,
        wanted: Vec::new(),
        written: Vec::new().into_iter(),
        learning: true,
    };
    if let Err(cause) = build(&mut texts) {
        return Ok(Err(cause));
    }
    texts.written = writer.write(&**tokenizer, &texts.wanted)?.into_iter();
    texts.learning = false;
    Ok(build(&mut texts))
}
