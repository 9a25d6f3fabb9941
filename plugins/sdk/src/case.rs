//! Cases: folders that say what a backend must write and how it must read. Native only; a plugin runs them
//! from a unit test, and anybody can add one without writing Rust.
//!
//! A case is a folder with
//!
//! | file | holds |
//! | --- | --- |
//! | `config.json` | the plugin's configuration; without it `{}` |
//! | `sample.json` | what is asked: `id`, `prompt` (`{"text"}`, `{"messages"}` or `{"tokens"}`), `input-tokens`, `output-tokens`, `reference`, `session` |
//! | `settings.json` | `model`, `streaming`, `ignore-eos`, `temperature`, `extra-body` |
//! | `request.http` | expected: method and path, header fields, an empty line, the body |
//! | `reply.sse`, `reply.lines`, `reply.json` | a reply's body as received; which one, the framing decides |
//! | `events.json` | expected: what the reply's frames mean |
//! | `reply.STATUS.json`, `.html`, `.txt` | instead: the body of an error reply |
//! | `explained.txt` | expected: what the backend says of it |
//! | `error.txt` | expected: the error, `kind: message`, where the configuration, the request or the reply is wrong |
//!
//! The reply is decoded as one batch, frame by frame, and in batches of many sizes; the events must be the
//! same. Run with `BLESS=1`, the expectations are rewritten to what the plugin does; then read the diff.

mod format;
mod frames;

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::backend::decode_batch;
use frames::Cut;

use crate::{Backend, Error, Framing, Meaning, config};

/// The most that a reply's state may take.
const STATE_LIMIT: usize = 64 << 10;

/// Names of expectations, which `BLESS=1` rewrites.
const EXPECTATIONS: [&str; 4] = ["request.http", "events.json", "explained.txt", "error.txt"];

/// Runs every case in a folder of cases.
///
/// # Panics
/// Where a case does not hold, naming each, or where there are none.
pub fn check_backend<B: Backend>(folder: impl AsRef<Path>) {
    let folder = folder.as_ref();
    let bless = env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder's entry").path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "{} holds no case", folder.display());
    let complaints: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let complaint = check_case::<B>(case, bless).err()?;
            Some(format!("{}: {complaint}", case.display()))
        })
        .collect();
    assert!(
        complaints.is_empty(),
        "{} of {} cases do not hold\n\n{}\n\nWhere the new behaviour is meant, run again with BLESS=1.",
        complaints.len(),
        cases.len(),
        complaints.join("\n\n")
    );
}

fn check_case<B: Backend>(case: &Path, bless: bool) -> Result<(), String> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    if let Err(error) = observe::<B>(case, &mut found)? {
        found.push(("error.txt", format::error(&error)));
    }
    let mut complaints = Vec::new();
    for name in EXPECTATIONS {
        let path = case.join(name);
        let expected = fs::read_to_string(&path).ok();
        let actual = found.iter().find(|(known, _)| *known == name);
        let actual = actual.map(|(_, text)| format!("{}\n", text.trim_end_matches('\n')));
        if expected == actual {
            continue;
        }
        if bless {
            let written = match &actual {
                Some(text) => fs::write(&path, text),
                None => fs::remove_file(&path),
            };
            written.map_err(|error| format!("{name}: {error}"))?;
            continue;
        }
        complaints.push(match (expected, actual) {
            (Some(expected), Some(actual)) => difference(name, &expected, &actual),
            (None, Some(actual)) => format!("there is no {name}; found\n{actual}"),
            (Some(expected), None) => format!("nothing came of {name}; expected\n{expected}"),
            (None, None) => continue,
        });
    }
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("\n")),
    }
}

/// Does what the case says and collects what comes of it. The outer error is a fault of the case.
fn observe<B: Backend>(
    case: &Path,
    found: &mut Vec<(&'static str, String)>,
) -> Result<Result<(), Error>, String> {
    let files = format::Files::read(case, &EXPECTATIONS)?;
    let backend = match config::parse(&files.config).and_then(B::open) {
        Ok(backend) => backend,
        Err(error) => return Ok(Err(error)),
    };
    let request = match backend.encode(&files.sample, &files.settings) {
        Ok(request) => request,
        Err(error) => return Ok(Err(error)),
    };
    if backend.encode(&files.sample, &files.settings).as_ref() != Ok(&request) {
        return Err("the same sample and settings gave two different requests".to_owned());
    }
    found.push(("request.http", format::request(&request)));
    if let Some((status, body)) = files.error_reply {
        found.push(("explained.txt", backend.explain(status, &body).message));
        return Ok(Ok(()));
    }
    let Some((framing, body)) = files.reply else {
        return Ok(Ok(()));
    };
    if backend.framing(files.settings.streaming) != framing {
        return Err(format!(
            "for streaming = {} the backend expects framing {:?}, so the reply belongs in {}",
            files.settings.streaming,
            backend.framing(files.settings.streaming),
            match backend.framing(files.settings.streaming) {
                Framing::EventStream => "reply.sse",
                Framing::Lines => "reply.lines",
                Framing::Whole => "reply.json",
                Framing::LengthPrefixed(_) | Framing::Raw => "reply.bin",
            }
        ));
    }
    let frames = frames::cut(framing, &body);
    let (events, error) = decode(&backend, &frames, &mut || frames.len())?;
    for seed in 0..16 {
        // Seed 0 is frame by frame.
        let mut random = seed;
        let mut size = || {
            random = xorshift(random);
            1 + (random % 7) as usize
        };
        let again = decode(&backend, &frames, &mut size)?;
        if again != (events.clone(), error.clone()) {
            return Err(format!(
                "the events depend on how the frames are batched: as one batch\n{}\nin batches\n{}",
                format::events(&events),
                format::events(&again.0)
            ));
        }
    }
    found.push(("events.json", format::events(&events)));
    Ok(error.map_or(Ok(()), Err))
}

/// Events of a reply with the frames they belong to, and the error that ended it.
type Decoded = (Vec<(usize, Meaning)>, Option<Error>);

/// Decodes as the host does: batch by batch, state carried as bytes, and a batch that fails frame by frame,
/// so that what came before the fault counts.
fn decode<B: Backend>(
    backend: &B,
    frames: &[Cut],
    size: &mut dyn FnMut() -> usize,
) -> Result<Decoded, String> {
    let mut events = Vec::new();
    let mut state = Vec::new();
    let mut start = 0;
    let mut single = false;
    while start < frames.len() {
        let size = if single { 1 } else { size().max(1) };
        let end = frames.len().min(start + size);
        match decode_batch(backend, &state, frames[start..end].iter().map(Cut::frame)) {
            Ok(decoded) => {
                let indexed = decoded.events.into_iter();
                events.extend(indexed.map(|event| (start + event.frame as usize, event.what)));
                state = decoded.state;
                start = end;
            }
            Err(error) if end - start == 1 => return Ok((events, Some(error))),
            Err(_) => single = true,
        }
        if state.len() > STATE_LIMIT {
            return Err(format!("the reply's state takes {} bytes", state.len()));
        }
    }
    Ok((events, None))
}

fn xorshift(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}

/// The first line that differs.
fn difference(name: &str, expected: &str, actual: &str) -> String {
    let pairs = expected.lines().map(Some).chain([None]);
    let lines = pairs.zip(actual.lines().map(Some).chain([None]));
    for (number, (expected, actual)) in lines.enumerate() {
        if expected != actual {
            return format!(
                "{name}, line {}\n  expected {}\n  found    {}",
                number + 1,
                expected.unwrap_or("(its end)"),
                actual.unwrap_or("(its end)"),
            );
        }
    }
    format!("{name}: line ends or blank lines differ")
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::{Request, Sample, Settings};

    /// Counts frames, and loses count between batches where the configuration says so.
    struct Counter {
        forgetful: bool,
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct CounterConfig {
        forgetful: bool,
    }

    #[derive(Default, serde::Serialize, serde::Deserialize)]
    struct Counts {
        kept: u32,
        #[serde(skip)]
        lost: u32,
    }

    impl Backend for Counter {
        type Config = CounterConfig;
        type State = Counts;

        fn open(config: CounterConfig) -> Result<Self, Error> {
            Ok(Counter {
                forgetful: config.forgetful,
            })
        }

        fn default_url(&self) -> String {
            String::new()
        }

        fn encode(&self, sample: &Sample, _: &Settings) -> Result<Request, Error> {
            Ok(Request {
                method: "POST".to_owned(),
                path: format!("/{}", sample.id),
                headers: Vec::new(),
                body: Vec::new(),
            })
        }

        fn framing(&self, _: bool) -> Framing {
            Framing::Lines
        }

        fn decode(
            &self,
            counts: &mut Counts,
            frame: &crate::Frame<'_>,
            events: &mut Vec<Meaning>,
        ) -> Result<(), Error> {
            if frame.data == b"bad" {
                return Err(Error::Protocol("bad".to_owned()));
            }
            counts.kept += 1;
            counts.lost += 1;
            let count = if self.forgetful {
                counts.lost
            } else {
                counts.kept
            };
            events.push(Meaning::Finish(count.to_string()));
            Ok(())
        }
    }

    /// What `check_backend` says of a case made of these files; empty where it holds.
    fn complaint(files: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let case = folder.path().join("case");
        fs::create_dir(&case).unwrap();
        for (name, text) in files {
            fs::write(case.join(name), text).unwrap();
        }
        let path = folder.path().to_owned();
        match catch_unwind(|| check_backend::<Counter>(path)) {
            Ok(()) => String::new(),
            Err(panic) => panic.downcast_ref::<String>().unwrap().clone(),
        }
    }

    const SAMPLE: (&str, &str) = ("sample.json", r#"{"id":"1","prompt":{"text":"a"}}"#);
    const SETTINGS: (&str, &str) = (
        "settings.json",
        r#"{"model":"m","streaming":true,"ignore-eos":false}"#,
    );
    const KEEPS: (&str, &str) = ("config.json", r#"{"forgetful":false}"#);
    const REQUEST: (&str, &str) = ("request.http", "POST /1\n");
    const REPLY: (&str, &str) = ("reply.lines", "a\nb\nbad\nc\n");
    const EVENTS: (&str, &str) = (
        "events.json",
        "[\n  {\"frame\":0,\"kind\":\"finish\",\"text\":\"1\"},\n  {\"frame\":1,\"kind\":\"finish\",\"text\":\"2\"}\n]\n",
    );
    const ERROR: (&str, &str) = ("error.txt", "protocol: bad\n");

    #[test]
    fn a_case_holds_with_what_came_before_an_error() {
        let files = [SAMPLE, SETTINGS, KEEPS, REQUEST, REPLY, EVENTS, ERROR];
        assert_eq!(complaint(&files), "");
    }

    #[test]
    fn a_missing_or_wrong_expectation_is_named() {
        let missing = complaint(&[SAMPLE, SETTINGS, KEEPS, REQUEST, REPLY, EVENTS]);
        assert!(
            missing.contains("there is no error.txt; found\nprotocol: bad"),
            "{missing}"
        );
        let request = ("request.http", "POST /2\n");
        let wrong = complaint(&[SAMPLE, SETTINGS, KEEPS, request, REPLY, EVENTS, ERROR]);
        assert!(
            wrong.contains("request.http, line 1\n  expected POST /2\n  found    POST /1"),
            "{wrong}"
        );
    }

    #[test]
    fn events_that_depend_on_the_batches_are_found() {
        let forgets = ("config.json", r#"{"forgetful":true}"#);
        let found = complaint(&[SAMPLE, SETTINGS, forgets, REQUEST, REPLY, EVENTS, ERROR]);
        assert!(
            found.contains("depend on how the frames are batched"),
            "{found}"
        );
    }

    #[test]
    fn files_that_nobody_reads_and_replies_in_the_wrong_framing_are_found() {
        let typo = complaint(&[SAMPLE, SETTINGS, KEEPS, REQUEST, ("event.json", "[]")]);
        assert!(
            typo.contains("event.json: no case has such a file"),
            "{typo}"
        );
        let framing = complaint(&[
            SAMPLE,
            SETTINGS,
            KEEPS,
            REQUEST,
            ("reply.sse", "data: a\n\n"),
        ]);
        assert!(
            framing.contains("the reply belongs in reply.lines"),
            "{framing}"
        );
    }
}
