//! Configurations that are wrong, settings without a place, and replies that a simple reader gets
//! wrong.

use runner_plugin::{Meaning, Prompt, Sampling};
use serde_json::json;

use super::*;

fn config(value: Value) -> Config {
    runner_plugin::parse(&value.to_string()).expect("a configuration")
}

fn open(value: Value) -> Template {
    Template::open(config(value)).expect("no mistakes")
}

fn mistakes(value: Value) -> Vec<String> {
    check::mistakes(&config(value))
}

/// Of a backend whose events have these places.
fn with_events(events: Value) -> Template {
    open(json!({"path": "/a", "body": {"p": "{prompt}"}, "events": events}))
}

fn settings() -> Settings {
    Settings { streaming: true, ..Settings::new("m") }
}

fn text() -> Sample {
    Sample::new("1", Prompt::Text("Hello".to_owned()))
}

fn read(backend: &Template, frames: &[&str]) -> Vec<Meaning> {
    let mut state = State::default();
    let mut events = Vec::new();
    for data in frames {
        let frame = Frame { name: None, data: data.as_bytes() };
        backend.decode(&mut state, &frame, &mut events).expect("an event");
    }
    events
}

/// The texts of the pieces, each on its own.
fn texts(events: &[Meaning]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Meaning::Text(piece) => Some(piece.text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_keys() {
    let found = mistakes(json!({
        "path": "infer",
        "stream-path": "/{prompt}",
        "method": "GET",
        "headers": {"Host": "a", "authorization": "b", "x y": "c", "x": "\n"},
        "body": {"a": ["{colour}"], "b": {"c": "{stop} and more"}},
        "framing": "length-prefixed",
        "length-prefix": {"skip": 17, "width": 3},
        "events": {
            "text": ["text", "/a/*/b", {"at": "/~2", "when": "x", "is": 1}],
            "tokens": "/a", "tokens-so-far": "/b",
        },
        "default-url": "localhost",
        "health": "/{model}",
        "models": {"path": "", "name": "id"},
        "metrics": {"path": "//"},
        "authentication": {"header": "host"},
        "api-key-variable": "SECRET",
    }));
    let keys: Vec<&str> = found.iter().filter_map(|message| message.split('`').nth(1)).collect();
    assert_eq!(
        keys,
        [
            "path",
            "stream-path",
            "method",
            "headers.Host",
            "headers.authorization",
            "headers.x",
            "headers.x y",
            "body.a[0]",
            "body.b.c",
            "body",
            "length-prefix.skip",
            "length-prefix.width",
            "events.text",
            "events.text",
            "events.text.at",
            "events.text.when",
            "events.tokens-so-far",
            "events.done",
            "default-url",
            "health",
            "models.path",
            "models.name",
            "metrics.path",
            "authentication.header",
            "api-key-variable",
        ],
        "{found:#?}"
    );
    let opened = Template::open(config(json!({"events": {"text": "/a"}})));
    let Err(Error::InvalidConfig(message)) = opened else {
        panic!("it must not open");
    };
    for key in ["path", "body", "events.done"] {
        assert!(message.contains(&format!("key `{key}`: missing")), "{message}");
    }
}

#[test]
fn keys_that_do_not_go_together_are_mistakes() {
    let base =
        json!({"path": "/a", "body": {"p": "{prompt}"}, "events": {"text": "/t", "done": "X"}});
    let with = |key: &str, value: Value| {
        let mut config = base.clone();
        config[key] = value;
        mistakes(config)
    };
    assert_eq!(mistakes(base.clone()), [""; 0]);
    assert_eq!(with("length-prefix", json!({})).len(), 1);
    assert_eq!(with("framing", json!("length-prefixed")).len(), 1);
    let mut whole = base.clone();
    whole["framing"] = json!("whole");
    whole["stream-body"] = json!({"a": 1});
    assert_eq!(mistakes(whole).len(), 2, "`stream-body` and `events.done`");
}

#[test]
fn every_setting_without_a_place_is_refused_by_name() {
    let backend = with_events(json!({"text": "/t", "done": "X"}));
    let mut everything = settings();
    everything.streaming = false;
    everything.output_tokens = Some(4);
    everything.ignore_eos = true;
    everything.sampling = Sampling {
        temperature: Some(0.0),
        top_p: Some(0.5),
        min_p: Some(0.5),
        frequency_penalty: Some(0.5),
        presence_penalty: Some(0.5),
        repetition_penalty: Some(0.5),
        seed: Some(1),
        ..Sampling::default()
    };
    let sample = Sample { adapter: Some("l".to_owned()), ..text() };
    let Err(Error::InvalidConfig(message)) = backend.encode(&sample, &everything) else {
        panic!("it must be refused");
    };
    for expected in [
        "--output-tokens, or the dataset's length of answers: `body` has no `{max-tokens}`",
        "--temperature: `body` has no `{temperature}`",
        "--top-p: `body` has no `{top-p}`",
        "--min-p: `body` has no `{min-p}`",
        "--frequency-penalty: `body` has no `{frequency-penalty}`",
        "--presence-penalty: `body` has no `{presence-penalty}`",
        "--repetition-penalty: `body` has no `{repetition-penalty}`",
        "--sampling-seed: `body` has no `{seed}`",
        "--lora-modules: ",
        "--disable-ignore-eos",
        "--disable-stream: ",
    ] {
        assert!(message.contains(expected), "{expected} in {message}");
    }
    assert!(backend.encode(&text(), &settings()).is_ok());
}

#[test]
fn a_prompt_goes_to_the_place_of_its_kind() {
    let backend = open(json!({
        "path": "/m/{model}/{adapter}",
        "body": {"p": "{prompt}", "m": "{messages}", "i": "{token-ids}"},
        "events": {"text": "/t", "done": "X"},
    }));
    let request = |prompt, adapter: Option<&str>| {
        let mut sample = Sample::new("1", prompt);
        sample.adapter = adapter.map(str::to_owned);
        let request = backend.encode(&sample, &settings())?;
        let body = String::from_utf8(request.body).expect("text");
        Ok::<_, Error>((request.path, body))
    };
    let on = |body: &str| ("/m/m/l%2F1".to_owned(), body.to_owned());
    let messages = vec![runner_plugin::Message::text(runner_plugin::Role::User, "b")];
    for (prompt, body) in [
        (Prompt::Text("a".to_owned()), r#"{"p":"a"}"#),
        (Prompt::Messages(messages), r#"{"m":[{"role":"user","content":"b"}]}"#),
        (Prompt::Tokens(vec![7]), r#"{"i":[7]}"#),
    ] {
        assert_eq!(request(prompt, Some("l/1")).unwrap(), on(body));
    }
    let none = request(Prompt::Text("a".to_owned()), None);
    assert!(
        matches!(none, Err(Error::InvalidConfig(message)) if message.contains("--lora-modules"))
    );
    let texts = request(Prompt::Embedding(vec!["a".to_owned()]), Some("l"));
    assert!(
        matches!(texts, Err(Error::InvalidConfig(message)) if message.contains("texts to embed"))
    );
}

#[test]
fn a_minimum_stands_in_for_ignoring_the_end() {
    let body = |body: Value, more: Value| {
        let backend = open(json!({
            "path": "/a", "body": body, "ignore-eos-body": more, "events": {"text": "/t", "done": "X"},
        }));
        let mut exact = settings();
        exact.ignore_eos = true;
        exact.output_tokens = Some(4);
        exact.min_output_tokens = Some(1);
        let request = backend.encode(&text(), &exact).expect("a request");
        String::from_utf8(request.body).expect("text")
    };
    let least = json!({"p": "{prompt}", "max": "{max-tokens}", "min": "{min-tokens}"});
    assert_eq!(body(least.clone(), json!({})), r#"{"p":"Hello","max":4,"min":4}"#);
    assert_eq!(body(least, json!({"end": -1})), r#"{"p":"Hello","max":4,"min":1,"end":-1}"#);
    let both =
        json!({"p": "{prompt}", "max": "{max-tokens}", "min": "{min-tokens}", "i": "{ignore-eos}"});
    assert_eq!(body(both, json!({})), r#"{"p":"Hello","max":4,"min":1,"i":true}"#);
}

#[test]
fn a_rewritten_cumulative_text_adds_only_its_new_end() {
    let backend = with_events(json!({"text": "/t", "cumulative": true, "done": "X"}));
    // Half a character is U+FFFD, of three bytes, until the other half makes it one of two.
    let frames = [
        r#"{"t":"caf\ufffd"}"#,
        r#"{"t":"café"}"#,
        r#"{"t":"café "}"#,
        r#"{"t":"café"}"#,
        r#"{"t":"café ☕"}"#,
        r#"{"t":"cafe ☕!!"}"#,
        "X",
    ];
    let events = read(&backend, &frames);
    assert_eq!(texts(&events), ["caf", "é", " ", "", "☕", "!"]);
    assert_eq!(events.last(), Some(&Meaning::End));
    // A list of three places is not one place with a condition.
    let backend = with_events(json!({"text": ["/a", "/b", "/c"], "done": "X"}));
    assert_eq!(texts(&read(&backend, &[r#"{"c":"x"}"#])), ["x"]);
    // Half a character that is never completed is part of the answer.
    let backend =
        with_events(json!({"text": "/t", "finish": "/f", "cumulative": true, "done": "X"}));
    let events = read(&backend, &[r#"{"t":"a\ufffd"}"#, r#"{"t":"a\ufffd","f":"length"}"#]);
    assert_eq!(texts(&events), ["a", "\u{fffd}"]);
}

#[test]
fn values_of_another_type_are_not_read() {
    let backend = with_events(json!({"text": "/t", "tokens": "/n", "done": "X"}));
    for (frame, expected) in [
        (r#"{"n":-1}"#, "a number of tokens at `/n`, got `-1`"),
        (r#"{"n":4294967296}"#, "a number of tokens at `/n`"),
    ] {
        let frame = Frame { name: None, data: frame.as_bytes() };
        let error = backend.decode(&mut State::default(), &frame, &mut Vec::new());
        let Err(Error::Protocol(error)) = error else {
            panic!("{expected}: {error:?}");
        };
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_error_is_one_only_if_it_says_something() {
    let backend =
        with_events(json!({"text": "/t", "error": ["/error", "/problem/what"], "done": "X"}));
    for quiet in
        [r#"{"t":"a","error":null}"#, r#"{"t":"a","error":""}"#, r#"{"t":"a","error":false}"#]
    {
        assert_eq!(texts(&read(&backend, &[quiet])), ["a"], "{quiet}");
    }
    let failed = read(&backend, &[r#"{"problem":{"what":"the queue is full"}}"#]);
    assert!(
        matches!(&failed[..], [Meaning::Failure(failure)] if failure.message == "the queue is full"),
        "{failed:?}"
    );
    assert_eq!(backend.explain(404, b"nothing here").message, "nothing here");
}

#[test]
fn models_are_found_where_the_configuration_says() {
    let models = |models: Value, body: &str| {
        let backend = open(json!({
            "path": "/a", "body": {"p": "{prompt}"}, "events": {"text": "/t", "done": "X"}, "models": models,
        }));
        backend.read_models(body.as_bytes())
    };
    let named = |name| ServedModel::named(name);
    assert_eq!(models(json!({}), r#"{"data":[{"id":"a"}]}"#).unwrap(), [named("a")]);
    assert_eq!(
        models(json!({"list": "", "name": ""}), r#"["a","b"]"#).unwrap(),
        [named("a"), named("b")]
    );
    assert!(matches!(models(json!({}), "[]"), Err(Error::Protocol(_))));
}
