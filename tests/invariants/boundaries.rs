//! Boundaries between the parts of the code: calls and names that must not be there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use load::backlog::{BOUND, Backlog};
use load::drive::{End, Replies as _};
use load::pace::Signal;
use load::pace::news::newsfeed;
use model::clock::Clock;
use model::connection::Version;
use model::exchange::{Class, Kind, Open, Prepared};
use model::frame::{Framer, Frames, Framing};
use model::units::Nanos;
use plugins::outline::Outline;
use session::decode::failures::FailureLimit;
use session::decode::inbox::Inboxes;
use session::decode::steps::Routes;
use session::decode::{DecodeState, Decoder};
use session::sessions::Sessions;
use session::sessions::memory::Memory;

use crate::support::trial::Trial;

const SCENARIO: &str = r#"
target.model = "mock"
backend.plugin = "backends/openai.wasm"
dataset.plugin = "datasets/random.wasm"
dataset.config = { like = "vllm", input-len = 20, output-len = 5 }
load = { requests = 3, warmup = 0 }
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// (1) A plugin sees no clock, socket, path, variable or credential: no import gives one.
#[test]
fn the_contract_has_no_way_out() {
    let worlds = std::fs::read_to_string(root().join("wit/worlds.wit")).unwrap();
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut world = "";
    for line in worlds.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("world ") {
            world = name.trim_end_matches(" {");
            imports.entry(world).or_default();
        }
        if let Some(name) = line.strip_prefix("import ") {
            imports.entry(world).or_default().insert(name.trim_end_matches(';'));
        }
        assert!(!line.starts_with("include "), "{line}");
    }
    let wanted = BTreeMap::from([
        ("dataset-plugin", BTreeSet::from(["log", "files", "tokenizer"])),
        ("backend-plugin", BTreeSet::from(["log"])),
        ("scorer-plugin", BTreeSet::from(["log", "tokenizer"])),
    ]);
    assert_eq!(imports, wanted);
}

/// (1) Shipped components import nothing else, in any version.
#[test]
fn shipped_components_import_nothing_else() {
    let mut examined = 0;
    for name in shipped::plugins() {
        let outline = Outline::read(&shipped::plugin(name).unwrap()).unwrap();
        let mut allowed = vec!["types", "log"];
        if name.starts_with("datasets/") {
            allowed.extend(["files", "tokenizer"]);
        }
        if name.starts_with("scorers/") {
            allowed.push("tokenizer");
        }
        for import in &outline.imports {
            let interface =
                import.strip_prefix("runner:plugin/").and_then(|rest| rest.split('@').next());
            assert!(interface.is_some_and(|i| allowed.contains(&i)), "{name} imports {import}");
        }
        examined += 1;
    }
    assert!(examined >= 8, "{examined} components ship");
}

/// (1) The host adds the API key after `encode`: requests stay the same, and no file holds it.
#[tokio::test(start_paused = true)]
async fn the_key_goes_to_the_server_and_nowhere_else() {
    const KEY: &str = "sk-do-not-tell-7391";
    let locked = format!("api-key = '{KEY}'");
    let open = Trial::new(SCENARIO).run().await;
    let trial = Trial::new(SCENARIO).against(&locked);
    assert_eq!(trial.run().await.failures(), [0, 1, 2].map(|index| (index, Class::HttpStatus)));
    let admitted = trial.api_key(KEY).run().await;
    assert_eq!(admitted.failures(), []);
    for (with, without) in admitted.exchanges.iter().zip(&open.exchanges) {
        assert_eq!(with.sample.request_digest, without.sample.request_digest);
    }
    let mut files = 0;
    for entry in std::fs::read_dir(admitted.folder()).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(KEY));
        files += 1;
    }
    assert!(files >= 5, "{files} files");
    for exchange in &admitted.exchanges {
        assert!(!serde_json::to_string(exchange).unwrap().contains(KEY));
    }
}

/// (2) Receive times precede plugin code: a reply decoded late has the times of its reading.
#[test]
fn decoding_late_moves_no_instant() {
    let resolved = Trial::new(SCENARIO).resolve();
    let data = |text: &str| {
        format!(
            r#"{{"id":"c","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#
        )
    };
    let pieces = [
        (1_000, data("one")),
        (2_500, data(" two")),
        (2_500, data(" three")),
        (7_000, "[DONE]".to_owned()),
    ];
    let mut exchange = Box::new(open_exchange());
    exchange.sent = Some(Nanos(500));
    let folder = tempfile::tempdir().unwrap();
    let backlog = Backlog::new(Clock::start(), BOUND);
    let output_tokens = Arc::new(AtomicU64::new(0));
    let mut decoder = Decoder {
        dialect: resolved.parts.backend.open().unwrap(),
        spare: Frames::default(),
        shared: DecodeState::new(
            FailureLimit::new(Signal::for_task()),
            Routes::new(resolved.parts.places(), Version::Http1, resolved.parts.secrets.clone()),
            Arc::clone(&output_tokens),
            None,
            &backlog,
            folder.path(),
        ),
    };
    let (announcer, _newsfeed) = newsfeed(&Signal::for_task());
    let (sessions, _events) = Sessions::new(announcer, Memory::new(u64::MAX), (1, false));
    let (inboxes, queue) = Inboxes::new(&backlog, true, &sessions);
    let reply = inboxes.open(1);
    let mut framer = Framer::new(Framing::EventStream);
    for (at, data) in pieces {
        let mut frames = Frames::default();
        framer.push(Nanos(at), format!("data: {data}\n\n").as_bytes(), &mut frames).unwrap();
        let held = backlog.queue(frames.memory());
        reply.frames(frames, Nanos::ZERO, held);
    }
    reply.closed(exchange, End::Whole { ends_answer: false });
    // All frames come together, and then the end.
    assert!(decoder.work(&queue.recv().unwrap()).is_none());
    let exchange = decoder.work(&queue.recv().unwrap()).unwrap();
    assert_eq!(backlog.bytes(), 0, "everything is let go");
    assert_eq!(exchange.output, "one two three");
    let texts: Vec<u64> = exchange
        .events
        .iter()
        .filter(|event| event.kind == Kind::Text)
        .map(|event| event.at.0)
        .collect();
    assert_eq!(texts, [1_000, 2_500, 2_500]);
    assert_eq!(exchange.events.at.last(), Some(&Nanos(7_000)));
    assert_eq!(output_tokens.load(Ordering::Relaxed), 3);
}

fn open_exchange() -> Open {
    let sample = serde_json::json!({ "id": "a", "request-bytes": 1, "request-digest": "00" });
    Prepared::new(0, serde_json::from_value(sample).unwrap()).due(Nanos(500), None).open()
}
