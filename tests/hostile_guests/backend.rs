//! Calls of the hostile backend.

use plugins::PluginError;
use plugins::backend::{Authentication, Control, Dialect, Earlier, Fold, Head, Meaning};
use serde_json::{Value, json};

use super::fixture::{
    self, BACKEND, DEEDS, backend, contract, fails, frames, grants, roomy, sample, settings,
    trapped,
};

/// A call that fails.
type Call = fn(&mut Dialect) -> PluginError;

/// A codec that does `extra` where it meets a `!`.
pub(super) fn touchy(call: &str, key: &str, deed: &str) -> Value {
    json!({"call": call, key: deed, "only-on": "!"})
}

pub(super) fn head() -> Head {
    Head {
        status: 200,
        headers: vec![("x-words".to_owned(), "!".to_owned())],
        streaming: true,
        context: Vec::new(),
    }
}

#[track_caller]
pub(super) fn is_well(dialect: &mut Dialect) {
    let call = dialect.encode(&sample("fine"), &settings(), None).unwrap();
    assert_eq!(call.as_request().path, "/v1/completions");
    let events = dialect.decode(&mut Fold::default(), &mut frames(&["ab", "c"])).unwrap();
    let texts: Vec<(usize, &str)> = events
        .iter()
        .filter_map(|(frame, meaning)| match meaning {
            Meaning::Text(piece) => Some((*frame, piece.text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(texts, [(0, "ab"), (1, "c")]);
}

#[test]
fn a_failure_in_encode_costs_the_instance_alone() {
    for (deed, cause) in DEEDS {
        let mut dialect = fixture::dialect(&touchy("encode", "misbehave", deed));
        for _ in 0..2 {
            let error = fails(dialect.encode(&sample("bad!"), &settings(), None));
            trapped(&error, BACKEND, "encode", cause);
            assert!(error.is_misbehaviour());
            is_well(&mut dialect);
        }
    }
}

#[test]
fn a_failure_in_decode_costs_the_instance_alone() {
    for (deed, cause) in DEEDS {
        let mut dialect = fixture::dialect(&touchy("decode", "misbehave", deed));
        let error = fails(dialect.decode(&mut Fold::default(), &mut frames(&["a", "!"])));
        trapped(&error, BACKEND, "decode", cause);
        is_well(&mut dialect);
    }
}

#[test]
fn a_failure_in_explain_replaces_the_explanation() {
    for (deed, cause) in DEEDS {
        let mut dialect = fixture::dialect(&touchy("explain", "misbehave", deed));
        trapped(&fails(dialect.explain(500, b"!")), BACKEND, "explain", cause);
        assert_eq!(dialect.explain(500, b"").unwrap().message, "status 500");
    }
}

#[test]
fn a_failure_elsewhere_is_named_with_the_call() {
    let calls: [(&str, Call); 7] = [
        ("default-url", |dialect| fails(dialect.default_url())),
        ("control", |dialect| fails(dialect.control(Control::Health))),
        ("read-models", |dialect| fails(dialect.read_models(b""))),
        ("read-metrics", |dialect| fails(dialect.read_metrics(b""))),
        ("framing", |dialect| fails(dialect.framing(true))),
        ("credentials", |dialect| fails(dialect.credentials())),
        ("begin", |dialect| fails(dialect.begin(&head()))),
    ];
    for (call, made) in calls {
        let mut dialect = fixture::dialect(&json!({"call": call, "misbehave": "loop"}));
        trapped(&made(&mut dialect), BACKEND, call, DEEDS[0].1);
        is_well(&mut dialect);
    }
}

#[test]
fn a_backend_that_cannot_be_opened_has_an_error() {
    for (deed, cause) in DEEDS {
        let config = json!({"call": "open", "misbehave": deed});
        let error = fails(backend(&config, grants(&config)).open());
        trapped(&error, BACKEND, "open", cause);
    }
    let config = json!({"call": "open", "answer": "refuse"});
    let error = fails(backend(&config, grants(&config)).open());
    assert!(matches!(error, PluginError::Config { .. }), "{error:?}");
    let expected = "plugin `guests/hostile-backend.wasm` refuses its configuration: key `call`: refused on purpose";
    assert_eq!(error.to_string(), expected);
    let config = json!({"cal": "open"});
    let error = fails(backend(&config, grants(&config)).open());
    assert!(
        matches!(&error, PluginError::Config { message, .. } if message.starts_with("key `cal`: unknown field")),
        "{error:?}"
    );
}

#[test]
fn words_without_end_are_cut_and_cannot_steer_a_terminal() {
    let mut dialect = fixture::dialect(&touchy("encode", "answer", "shout"));
    let error = fails(dialect.encode(&sample("!"), &settings(), None));
    assert!(matches!(error, PluginError::Other { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.len() < 2_100, "{} bytes", text.len());
    assert!(!text.contains('\u{1b}'));
    assert!(text.contains("shout"));
    is_well(&mut dialect);
}

#[test]
fn an_answer_above_the_limit_is_not_taken() {
    let cause = "it returned more data than the 4 MiB allowed in one call";
    let calls: [(&str, Call); 7] = [
        ("default-url", |dialect| fails(dialect.default_url())),
        ("read-models", |dialect| fails(dialect.read_models(b"!"))),
        ("encode", |dialect| fails(dialect.encode(&sample("!"), &settings(), None))),
        ("decode", |dialect| fails(dialect.decode(&mut Fold::default(), &mut frames(&["!"])))),
        ("explain", |dialect| fails(dialect.explain(500, b"!"))),
        ("credentials", |dialect| fails(dialect.credentials())),
        ("begin", |dialect| fails(dialect.begin(&head()))),
    ];
    for (call, made) in calls {
        let config = json!({"call": call, "answer": "huge"});
        let mut dialect = backend(&config, roomy(&config)).open().unwrap();
        trapped(&made(&mut dialect), BACKEND, call, cause);
    }
    // Strings and lists take room in the host even where they are empty.
    for call in ["read-models", "encode", "decode"] {
        let config = json!({"call": call, "answer": "million"});
        let mut dialect = backend(&config, roomy(&config)).open().unwrap();
        let error = match call {
            "read-models" => fails(dialect.read_models(b"")),
            "encode" => fails(dialect.encode(&sample("!"), &settings(), None)),
            _ => fails(dialect.decode(&mut Fold::default(), &mut frames(&["!"]))),
        };
        trapped(&error, BACKEND, call, cause);
    }
}

#[test]
fn a_text_that_is_none_is_not_taken() {
    let calls: [(&str, Call); 2] = [
        ("default-url", |dialect| fails(dialect.default_url())),
        ("decode", |dialect| fails(dialect.decode(&mut Fold::default(), &mut frames(&["!"])))),
    ];
    for (call, made) in calls {
        let mut dialect = fixture::dialect(&json!({"call": call, "answer": "no-text"}));
        for _ in 0..2 {
            let cause = "invalid utf-8 sequence of 1 bytes from index 1";
            trapped(&made(&mut dialect), BACKEND, call, cause);
        }
    }
}

#[test]
fn a_flood_of_log_lines_of_many_instances_is_bounded() {
    let config = json!({"call": "decode", "misbehave": "flood-log-and-panic", "only-on": "!"});
    let grants = grants(&config);
    let log = grants.log.clone();
    let mut dialect = backend(&config, grants).open().unwrap();
    for _ in 0..3 {
        fails(dialect.decode(&mut Fold::default(), &mut frames(&["!"])));
    }
    let lines = log.drain();
    assert!(lines.len() < 1_100, "{} lines", lines.len());
    assert!(lines.iter().all(|line| line.len() < 4_200));
    assert!(lines.iter().all(|line| !line.chars().any(char::is_control)));
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.ends_with("it wrote 29003 more lines, which were dropped"))
            .count(),
        1
    );
}

#[test]
fn an_abort_is_not_blamed_on_an_earlier_panic() {
    let config = touchy("encode", "misbehave", "panic");
    let grants = grants(&config);
    let mut panicking = backend(&config, grants.clone()).open().unwrap();
    let says = "a panic on purpose";
    trapped(&fails(panicking.encode(&sample("!"), &settings(), None)), BACKEND, "encode", says);
    let config = touchy("encode", "misbehave", "abort");
    let mut aborting = backend(&config, grants).open().unwrap();
    let says = "it aborted without a message";
    trapped(&fails(aborting.encode(&sample("!"), &settings(), None)), BACKEND, "encode", says);
}

#[test]
fn results_of_decode_are_checked() {
    for (answer, texts, says) in [
        (
            "frame-outside",
            &["!"][..],
            "an event names frame 1 after frame 0 of 1; events must follow the order of their frames",
        ),
        (
            "frame-backwards",
            &["a", "b", "!"],
            "an event names frame 0 after frame 1 of 3; events must follow the order of their frames",
        ),
        ("large-state", &["!"][..], "it keeps 65537 bytes of state, at most 65536 are allowed"),
        (
            "large-carry",
            &["!"],
            "it carries 65537 bytes to the next request, at most 65536 are allowed",
        ),
        (
            "negative-timing",
            &["!"],
            "the timing `decode` is -0.000000001 ms; a duration must be finite and not negative",
        ),
        (
            "timing-of-nothing",
            &["!"],
            "the timing `decode` is NaN ms; a duration must be finite and not negative",
        ),
        (
            "endless-timing",
            &["!"],
            "the timing `decode` is inf ms; a duration must be finite and not negative",
        ),
        (
            "uneven-steps",
            &["!"],
            "the list `steps-by-accepted` adds up to 3; expected 4, the number of `steps`",
        ),
        (
            "long-steps",
            &["!"],
            "the list `steps-by-accepted` has 1025 entries, at most 1024 are allowed",
        ),
        (
            "wrong-count",
            &["!"],
            "it counts `Image tokens`; a name is in kebab-case, such as `image-tokens`, with at most 64 bytes",
        ),
        (
            "long-count",
            &["!"],
            "it counts `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`; a name is in kebab-case, such as `image-tokens`, with at most 64 bytes",
        ),
        (
            "wrong-clean-up",
            &["!"],
            "the method `CONNECT` is not allowed; a backend may use GET, POST, PUT and DELETE",
        ),
        ("unread", &["!"], "it leaves 1 bytes unread, which only the framing `raw` allows"),
    ] {
        let mut dialect = fixture::dialect(&touchy("decode", "answer", answer));
        let error = fails(dialect.decode(&mut Fold::default(), &mut frames(texts)));
        contract(&error, BACKEND, "decode", says);
        assert!(error.is_misbehaviour());
        is_well(&mut dialect);
    }
}

#[test]
fn the_key_goes_where_a_key_may_go() {
    let credentials = |config: &Value| {
        let mut dialect = backend(config, grants(config)).open().unwrap();
        dialect.credentials()
    };
    for name in ["x-api-key", "Authorization", "authorization", "api_key"] {
        let scheme = credentials(&json!({"key-header": name})).unwrap().scheme;
        assert!(matches!(&scheme, Authentication::Header(found) if found == name), "{scheme:?}");
    }
    for (config, what) in [
        ("host", "`host` as the header of the key"),
        ("Content-Length", "`Content-Length` as the header of the key"),
        ("connection", "`connection` as the header of the key"),
        ("TE", "`TE` as the header of the key"),
        ("", "`` as the header of the key"),
        ("x key", "`x key` as the header of the key"),
        ("x\r\nhost", "`x\\r\\nhost` as the header of the key"),
    ] {
        let error = fails(credentials(&json!({"key-header": config})));
        contract(&error, BACKEND, "credentials", &format!("it names {what}"));
    }
    assert!(credentials(&json!({"aws-service": "bedrock"})).is_ok());
    for service in ["", "bed rock", "a/b", "x\n"] {
        let error = fails(credentials(&json!({"aws-service": service})));
        let shown = service.escape_debug();
        let says = format!("it names `{shown}` as the service of AWS");
        contract(&error, BACKEND, "credentials", &says);
    }
}

#[test]
fn values_of_the_last_reply_reach_the_next_request() {
    let config = json!({"spill": true});
    let grants = grants(&config);
    let log = grants.log.clone();
    let mut dialect = backend(&config, grants).open().unwrap();
    let earlier = Earlier { carry: b"ABC".to_vec(), messages: 2 };
    let written = dialect.encode(&sample("fine"), &settings(), Some(&earlier));
    assert_eq!(written.unwrap().as_request().path, "/v1/completions");
    let lines = log.drain();
    let says = "Some(Earlier { carry: [65, 66, 67], messages: 2 })";
    assert!(lines.iter().any(|line| line.ends_with(says)), "{lines:?}");
}

/// Returns the error about a request that the backend may not write, whatever it is for.
fn refusal(config: &Value) -> String {
    let mut dialect = backend(config, grants(config)).open().unwrap();
    let asking = fails(dialect.encode(&sample("x"), &settings(), None));
    let controlling = fails(dialect.control(Control::FlushCache));
    match (asking, controlling) {
        (
            PluginError::Contract { plugin, call: "encode", what },
            PluginError::Contract { call: "control", what: other, .. },
        ) if plugin == BACKEND && what == other => what,
        errors => panic!("{config}: {errors:?}"),
    }
}

#[test]
fn a_request_stays_below_the_target() {
    for path in ["", "x", "//other-host/", "http://other-host/", "other-host:80", "@other-host/"] {
        let expected = format!("the path `{path}` must begin with one `/`");
        assert_eq!(refusal(&json!({"path": path})), expected);
    }
    let upward = "leads upwards";
    let character = "contains a character that a path must escape";
    for (path, fault) in [
        ("/../x", upward),
        ("/a/..", upward),
        ("/a/../x?y", upward),
        ("/%2e%2E/x", upward),
        ("/.%2e/x", upward),
        ("/a//b", "has an empty segment (`//`)"),
        ("/a%2", "has a `%` that is no escape"),
        ("/a\\..\\b", character),
        ("/a b", character),
        ("/a#b", character),
        ("/ä", character),
        ("/x HTTP/1.1\r\nhost: other\r\n\r\n", character),
        ("/\0", character),
    ] {
        let message = refusal(&json!({"path": path}));
        assert!(message.starts_with("the path `/"), "{message}");
        assert!(message.contains(&format!("` {fault}")), "{path:?}: {message}");
    }
    let steering = refusal(&json!({"path": "\u{1b}[2J"}));
    assert!(!steering.contains('\u{1b}'), "{steering}");
    let endless = refusal(&json!({"path": "x".repeat(1 << 20)}));
    assert!(endless.len() <= 2_000, "{} bytes", endless.len());
}

#[test]
fn a_request_has_one_of_four_methods() {
    for method in ["PATCH", "CONNECT", "get", "", "GET /x\r\n"] {
        assert_eq!(
            refusal(&json!({"method": method})),
            format!(
                "the method `{}` is not allowed; a backend may use GET, POST, PUT and DELETE",
                method.escape_debug()
            )
        );
    }
}

#[test]
fn the_hosts_headers_are_the_hosts() {
    for name in [
        "Host",
        "Authorization",
        "authorization",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Proxy-Authorization",
        "Upgrade",
        "TE",
    ] {
        let expected = format!("the header `{name}` belongs to the host");
        assert_eq!(refusal(&json!({"header": [name, "x"]})), expected);
    }
    for (name, value) in [
        ("", "x"),
        ("x y", "x"),
        ("x:", "x"),
        ("x\r\nauthorization", "x"),
        ("x", "a\r\nauthorization: Bearer b"),
        ("x", "a\nb"),
        ("x", "\0"),
        ("x", "\u{7f}"),
    ] {
        assert_eq!(
            refusal(&json!({"header": [name, value]})),
            format!(
                "the header `{}` contains characters that are not allowed in a header",
                name.escape_debug()
            )
        );
    }
}

/// The number of threads of this process that have that name.
fn threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread that has just ended has no name any more.
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|found| found.trim_end() == name).count()
}

#[test]
fn a_hundred_dead_instances_leave_no_thread_behind() {
    let mut dialect = fixture::dialect(&json!({"call": "encode", "misbehave": "abort"}));
    for _ in 0..100 {
        fails(dialect.encode(&sample("x"), &settings(), None));
        assert_eq!(threads("sandbox-ticker"), 1);
    }
}
