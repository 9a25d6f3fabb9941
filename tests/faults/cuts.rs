//! Replies that end after every number of bytes, of every dialect, streamed and whole.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use model::exchange::Class;
use tempfile::TempDir;

use super::check::{Ending, GIVEN, at_once, check, failure};
use crate::support::process::{Mock, run, runner, words};
use crate::support::raw::{Act, Raw, say};

/// A dialect, as a backend requests it and the mock engine speaks it.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    backend: &'static str,
    config: &'static str,
    /// The target and the request settings of the scenario, in whole tables.
    scenario: &'static str,
    mock: &'static [&'static str],
}

const MODEL: &str = "[target]\nmodel = 'mock'\n";

/// The dialects that the mock engine speaks by itself.
const fn built_in(
    backend: &'static str,
    config: &'static str,
    mock: &'static [&'static str],
) -> Dialect {
    Dialect { backend, config, scenario: MODEL, mock }
}

/// An engine that a script plays, of this name; the model and whether answers have the requested
/// length.
macro_rules! scripted {
    ($engine:literal, $config:literal, $model:literal, $ignore_eos:literal) => {
        Dialect {
            backend: $engine,
            config: $config,
            scenario: concat!(
                "[target]\nmodel = '",
                $model,
                "'\n[request]\nignore-eos = ",
                $ignore_eos,
                "\n"
            ),
            mock: &[
                "--script",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../base/mock/engines/", $engine, ".toml"),
            ],
        }
    };
}

#[rustfmt::skip]
const DIALECTS: [Dialect; 14] = [
    built_in("openai", "route = 'completions'", &[]),
    built_in("openai", "route = 'chat'", &[]),
    built_in("vllm", "", &[]),
    built_in("vllm", "route = 'chat'", &["--reasoning-tokens", "1"]),
    built_in("sglang", "", &[]),
    built_in("sglang", "", &["--incremental"]),
    built_in("sglang", "route = 'chat'", &["--reasoning-field", "reasoning_content"]),
    built_in("lmdeploy", "", &["--generate", "lmdeploy"]),
    built_in("lmdeploy", "route = 'chat'", &["--generate", "lmdeploy"]),
    built_in("lmdeploy", "route = 'generate'", &["--generate", "lmdeploy"]),
    scripted!("gemini", "", "gemini-mock", false),
    scripted!("llamacpp", "", "mock", true),
    scripted!("ollama", "", "mock", false),
    scripted!("tgi", "", "mock", false),
];

/// End of many streams; line ends after it may be missing.
const END: &str = "data: [DONE]";

/// A run of prompts that are all alike, one after the other.
fn one_by_one(place: &Path, dialect: Dialect, url: &str, flags: &str) -> Command {
    let Dialect { backend, config, scenario, .. } = dialect;
    let scenario = format!(
        "{scenario}[backend]\nplugin = 'backends/{backend}.wasm'\n[backend.config]\n{config}\n\
         [dataset]\nplugin = 'datasets/random.wasm'\n[dataset.config]\nlike = 'vllm'\ninput-len = 4\noutput-len = 2\n\
         [load]\narrival = 'closed'\nconcurrency = 1\nwarmup = 0\n"
    );
    std::fs::write(place.join(GIVEN), scenario).unwrap();
    let mut command = runner();
    command.args(["run", GIVEN, "--base-url", url]);
    command.args(words(flags)).current_dir(place);
    command
}

/// Returns every byte of the mock engine's reply to the request of this backend.
fn reply(dialect: Dialect, flags: &str) -> Vec<u8> {
    let listener = Raw::engine(|_| vec![Act::Close]);
    let (place, listening) = (TempDir::new().unwrap(), listener.listen());
    let flags = format!("{flags} --num-prompts 1");
    run(&mut one_by_one(place.path(), dialect, &listening.url, &flags)).with_code(5);
    let requests = listener.requests();
    let request = requests.iter().find(|request| request.starts_with("POST"));
    let last = request.unwrap().replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let mock = Mock::start(&[&["--ttft", "1ms", "--itl", "1ms"], dialect.mock].concat());
    let mut stream = TcpStream::connect(mock.url.trim_start_matches("http://")).unwrap();
    stream.write_all(last.as_bytes()).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    reply
}

/// The place where a stream's last event ends: the end marker, or an object.
fn end(reply: &[u8]) -> usize {
    let after = |what: &str| {
        let what = what.as_bytes();
        let at = reply.windows(what.len()).rposition(|window| window == what);
        Some(at? + what.len())
    };
    let end = after(END).or_else(|| after("}"));
    end.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(reply)))
}

/// The outcome for a reply of this many bytes follows from the bytes that the client has, and
/// nothing else.
fn cut_everywhere(dialect: Dialect, streams: bool) {
    let flags = if streams { "" } else { "--disable-stream" };
    let about = format!("{dialect:?} {flags}");
    let whole = reply(dialect, flags);
    let head = whole.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let done = if streams { end(&whole) } else { whole.len() };
    let (requests, bytes) = (whole.len() + 1, whole.clone());
    let raw = Raw::engine(move |number| vec![say(&bytes[..number as usize]), Act::Close]);
    let (place, listening) = (TempDir::new().unwrap(), raw.listen());
    let flags = format!("{flags} --num-prompts {requests}");
    let ended = run(&mut one_by_one(place.path(), dialect, &listening.url, &flags));
    let after = check(&about, place.path(), &ended, Ending::Finished, None);
    assert_eq!(after.exchanges.len(), requests, "{about}");
    let full = after.exchanges.last().unwrap().clone();
    assert_eq!(full.output.len() + full.reasoning.len(), 2, "{about}: {full:#?}");
    let mut seen = 0;
    for (bytes, exchange) in after.exchanges.iter().enumerate() {
        let about = || format!("{about}: {bytes} of {} bytes: {exchange:#?}", whole.len());
        let wanted = match bytes {
            _ if bytes < head => Some(Class::Reset),
            _ if bytes < done => Some(Class::Truncated),
            _ => None,
        };
        assert_eq!(failure(exchange).map(|(class, _)| class), wanted, "{}", about());
        assert_eq!(exchange.status, (bytes >= head).then_some(200), "{}", about());
        assert_eq!(exchange.first_byte.is_some(), bytes > 0, "{}", about());
        assert!(full.output.starts_with(&exchange.output), "{}", about());
        assert!(full.reasoning.starts_with(&exchange.reasoning), "{}", about());
        assert!(full.events.kind.starts_with(&exchange.events.kind), "{}", about());
        assert!(exchange.events.kind.len() >= seen, "{}", about());
        seen = exchange.events.kind.len();
    }
}

#[test]
fn a_stream_cut_at_any_byte_keeps_its_events() {
    at_once(&DIALECTS, 3, |dialect| cut_everywhere(*dialect, true));
}

#[test]
fn a_whole_reply_cut_at_any_byte_is_no_answer() {
    at_once(&DIALECTS, 3, |dialect| {
        if dialect.mock != ["--incremental"] {
            cut_everywhere(*dialect, false);
        }
    });
}
