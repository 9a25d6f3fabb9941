//! Unit tests, which run natively and so are quicker than cases: `cargo test`.

use runner_plugin::{Backend, Frame, Meaning, Prompt, Sample, Sampling, Settings};

use super::{Config, Plugin};

fn plugin() -> Plugin {
    Plugin::open(Config::default()).expect("a valid configuration")
}

#[test]
fn a_text_becomes_a_message() {
    let sample = Sample::new("1", Prompt::Text("Why?".to_owned()));
    let settings = Settings {
        model: "tiny".to_owned(),
        streaming: false,
        output_tokens: Some(8),
        min_output_tokens: None,
        ignore_eos: true,
        sampling: Sampling::default(),
        extra_body: None,
        prepared: Vec::new(),
        further: None,
    };
    let request = plugin().encode(&sample, &settings).expect("a request");
    let body = String::from_utf8(request.body).expect("text");
    assert_eq!(request.path, "/v1/chat/completions");
    assert!(body.contains(r#""messages":[{"role":"user","content":"Why?"}]"#));
    assert!(body.contains(r#""ignore_eos":true"#));
}

#[test]
fn the_end_marker_ends_a_reply() {
    let (mut state, mut events) = (Default::default(), Vec::new());
    let frame = Frame { name: None, data: b"[DONE]" };
    plugin().decode(&mut state, &frame, &mut events).expect("events");
    assert_eq!(events, [Meaning::End]);
}
