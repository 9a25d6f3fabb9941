//! Reading replies with the backends that ship, as components in the sandbox.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use plugins::PluginError;
use plugins::backend::{Backend, Dialect, Fold, Head};
use plugins::load::{SearchPath, load};
use plugins::sandbox::{Grants, Limits, LogBook};
use runner_plugin::Error;
use tokenizer::Tokenizer;

use crate::backend::{CONFIGURED, Question, Read, ReplyKind, batches, frames, read};

/// An answer read in the sandbox: the result is the native one, without a fault of the plugin.
pub fn component(data: &[u8]) {
    thread_local! {
        static DIALECTS: RefCell<BTreeMap<usize, Dialect>> = const { RefCell::new(BTreeMap::new()) };
    }
    let question = Question::new(data);
    let native = read(&question);
    DIALECTS.with_borrow_mut(|dialects| {
        let dialect = dialects
            .entry(question.configured)
            .or_insert_with(|| open(CONFIGURED[question.configured]));
        match (question.of, native) {
            (ReplyKind::Reply { streaming }, Read::Events(expected, end)) => {
                let framing = dialect.framing(streaming).expect("it says how");
                let frames = frames(framing.into(), question.body);
                let mut events = Vec::new();
                let mut fold = Fold::new(dialect.begin(&head(streaming)).expect("it begins"));
                let mut ended = Ok(());
                let mut before = 0;
                for mut batch in batches(&frames, question.seed) {
                    let length = batch.len();
                    match dialect.decode(&mut fold, &mut batch) {
                        Ok(decoded) => {
                            let indices = decoded.into_iter();
                            events
                                .extend(indices.map(|(frame, meaning)| (before + frame, meaning)));
                            before += length;
                        }
                        Err(error) => {
                            ended = Err(error);
                            break;
                        }
                    }
                }
                same(&expected, &events);
                compare(end, ended);
            }
            (ReplyKind::Error { status }, Read::Refusal(expected)) => {
                let refusal = dialect.explain(status, question.body).expect("it explains");
                assert_eq!(format!("{:?}", expected.reason), format!("{:?}", refusal.reason));
                same_text(&expected.message, &refusal.message);
            }
            (ReplyKind::Models, Read::Models(expected)) => {
                compare(expected, dialect.read_models(question.body));
            }
            (ReplyKind::Metrics, Read::Metrics(expected)) => {
                compare(expected, dialect.read_metrics(question.body));
            }
            (of, read) => unreachable!("{of:?} read as {read:?}"),
        }
    });
}

/// The head of a reply; the backends look only at its `streaming`.
fn head(streaming: bool) -> Head {
    Head { status: 200, headers: Vec::new(), streaming, context: Vec::new() }
}

fn open((name, config): (&str, &str)) -> Dialect {
    let search = SearchPath { scenario: None, folders: Vec::new(), shipped: shipped::PLUGINS };
    let plugin = load(&format!("backends/{name}.wasm"), &search)
        .expect("the component is built: `cargo xtask plugins`");
    let grants = Grants {
        // Time is not checked: the machine may be busy.
        limits: Limits { backend_call_ms: 600_000, ..Limits::default() },
        log: LogBook::default(),
        files: Arc::new(BTreeMap::new()),
        tokenizer: Arc::new(Tokenizer::bytes()),
        seed: 1,
    };
    let config = serde_json::from_str(config).expect("the configuration is JSON");
    Backend::new(plugin, &config, grants).and_then(|backend| backend.open()).expect("it opens")
}

/// Compares values of the two sides' bindings, whose types differ.
fn same(expected: &impl Debug, seen: &impl Debug) {
    assert_eq!(format!("{expected:?}"), format!("{seen:?}"));
}

fn compare<T: Debug, U: Debug>(expected: Result<T, Error>, seen: Result<U, PluginError>) {
    match (expected, seen) {
        (Ok(expected), Ok(seen)) => same(&expected, &seen),
        (Err(Error::Protocol(expected)), Err(PluginError::Protocol { message, .. })) => {
            same_text(&expected, &message)
        }
        (expected, seen) => panic!("natively {expected:?}, as a component {seen:?}"),
    }
}

/// A message of a plugin, which the host shortens and makes fit for a terminal.
fn same_text(expected: &str, seen: &str) {
    let plain = |c: &char| c.is_alphanumeric();
    assert_eq!(expected.chars().any(|c| plain(&c)), seen.chars().any(|c| plain(&c)));
    assert!(
        expected
            .chars()
            .filter(plain)
            .zip(seen.chars().filter(plain))
            .take(1000)
            .all(|(a, b)| a == b),
        "natively {expected:?}, as a component {seen:?}"
    );
}
