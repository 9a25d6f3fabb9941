//! Sources of conversations, and the detection of a file's format.

use dialogue::FILE;
use dialogue::rows::{Rows, parse, unknown, wrong};
use dialogue::turns::Turn;
use runner_plugin::json::BYTE_ORDER_MARK;
use runner_plugin::{Error, Files};
use serde_json::{Map, Value};

use crate::config::Format;
use crate::lines::is_about_the_file;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Conversation {
    /// Its name, if it has one of its own.
    pub(crate) name: Option<String>,
    pub(crate) place: String,
    pub(crate) class: Option<String>,
    /// Fields for each of its requests.
    pub(crate) parameters: Map<String, Value>,
    /// The time when it arrives, in nanoseconds from some beginning.
    pub(crate) arrival: Option<u64>,
    pub(crate) turns: Vec<Turn>,
    /// True if the bounds do not matter.
    pub(crate) exempt: bool,
    pub(crate) fault: Option<&'static str>,
}

pub(crate) trait Source {
    /// The next conversation to measure; `None` at the end.
    fn next(&mut self) -> Result<Option<Conversation>, Error>;

    /// A conversation that [`next`](Self::next) does not return.
    fn spare(&mut self) -> Result<Option<Conversation>, Error>;

    /// Begins again, without the [spare](Self::spare) conversations.
    fn rewind(&mut self) -> Result<(), Error>;
}

/// The format of the file `data`, by its first line, and whether it has one conversation or message
/// a line.
pub(crate) fn recognise(
    files: &dyn Files,
    format: Option<Format>,
) -> Result<(Format, bool), Error> {
    let Some(file) = files.open(FILE) else {
        return match format {
            None | Some(Format::Synthetic) => Ok((Format::Synthetic, false)),
            Some(_) => Err(Error::config(format!(
                "no conversation file: pass --dataset-path FILE, or set `{FILE} = \"FILE\"` under [dataset.files], or \
                 `format = \"synthetic\"`"
            ))),
        };
    };
    if format == Some(Format::Synthetic) {
        return Err(Error::config(format!(
            "`format = \"synthetic\"` reads no file: leave `{FILE}` out, or name it `text` for conversations of its \
             words"
        )));
    }
    let beginning = file.read(0, 4096).map_err(Error::InvalidInput)?;
    let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&beginning);
    let array = beginning.trim_ascii_start().first() == Some(&b'[');
    if let Some(format) = format {
        if array && format != Format::Sharegpt {
            return Err(Error::InvalidInput(format!(
                "the file `{FILE}` is one JSON array; this format has an object a line: convert it, such as with \
                 `jq -c '.[]'`"
            )));
        }
        return Ok((format, !array));
    }
    if array {
        return Ok((Format::Sharegpt, false));
    }
    let Some((number, line)) =
        Rows::open(files).and_then(|mut rows| rows.line().transpose()).transpose()?
    else {
        return Err(Error::InvalidInput(format!("the file `{FILE}` is empty")));
    };
    let fields: Map<String, Value> = parse(&line).map_err(|cause| wrong(number, &cause))?;
    let has = |key: &str| fields.contains_key(key);
    let format = if has("conversations") || has("conversation") {
        Format::Sharegpt
    } else if has("conversation_id") && has("role") || is_about_the_file(&fields) {
        Format::Mlperf
    } else if has("turns") || has("session_id") {
        Format::Aiperf
    } else if has("messages") {
        Format::Messages
    } else {
        let expected = "`messages`, with `session_id` and `turns`, with `conversation_id` and `role`, or with \
             `conversations`";
        return Err(unknown(number, expected, &fields));
    };
    Ok((format, true))
}
