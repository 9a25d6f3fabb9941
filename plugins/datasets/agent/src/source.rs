//! The common part of the sources of sessions, and the detection of a file's format.

use dialogue::FILE;
use dialogue::rows::{Rows, parse, unknown, wrong};
use runner_plugin::{Error, Files};
use serde_json::{Map, Value};

use crate::config::Format;

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
