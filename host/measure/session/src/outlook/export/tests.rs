use super::*;
use crate::sessions::history::text_message;
use plugins::backend::{Dependency, Turn};

fn sample(id: &str, prompt: Prompt) -> Sample {
    Sample { output_tokens: Some(8), ..Sample::bare(id, prompt) }
}

fn next(id: &str, parent: &str, text: &str, delay: u64) -> Sample {
    let prompt = Prompt::Continuation(Continuation {
        parent: parent.to_owned(),
        messages: vec![text_message(Role::User, text)],
    });
    let after = vec![Dependency { sample: parent.to_owned(), point: Point::End, delay }];
    Sample { after, ..sample(id, prompt) }
}

fn drawn(samples: Vec<Sample>) -> DrawnSession {
    let numbered = (0..).zip(samples);
    DrawnSession {
        due: Some(Nanos(1_500_000)),
        requests: numbered
            .map(|(index, given)| Request {
                index,
                sent: given.clone(),
                output_tokens: given.output_tokens,
                given,
                is_estimate: false,
                input_tokens: None,
                digest: String::new(),
                bytes: 0,
                fault: None,
                tokens: None,
            })
            .collect(),
    }
}

fn rows(format: Format, drawn: &DrawnSession) -> Result<Vec<Value>, String> {
    let tokenizer = Tokenizer::bytes();
    Exporter::new(format, &tokenizer, true).rows(drawn)
}

#[test]
fn exports_a_single_request() {
    let mut alone = sample("a", Prompt::Text("Hi".into()));
    alone.class = Some("chat".into());
    alone.reference = Some("\"yes\"".into());
    alone.parameters = Some(r#"{"top_k":3}"#.into());
    let mut one = drawn(vec![alone]);
    one.requests[0].sent.prompt = Prompt::Text("Run 1. Hi".into());
    for format in [Format::Vllm, Format::Aiperf] {
        let refused = rows(format, &one).unwrap_err();
        assert!(refused.ends_with("has no place for the parameter `top_k`"), "{refused}");
    }
    assert_eq!(
        rows(Format::Runner, &one).unwrap(),
        [
            json!({"id": "a", "prompt": "Hi", "output_tokens": 8, "class": "chat", "reference": "yes",
            "parameters": {"top_k": 3}, "timestamp": 1.5})
        ]
    );
    one.requests[0].given.parameters = None;
    one.requests[0].sent.parameters = None;
    assert_eq!(
        rows(Format::Vllm, &one).unwrap(),
        [json!({"prompt": "Run 1. Hi", "output_tokens": 8})]
    );
    assert_eq!(
        rows(Format::Aiperf, &one).unwrap(),
        [json!({"text": "Run 1. Hi", "output_length": 8, "timestamp": 1.5})]
    );
    let tokenizer = Tokenizer::bytes();
    let untimed = Exporter::new(Format::Aiperf, &tokenizer, false).rows(&one);
    assert!(untimed.unwrap()[0].get("timestamp").is_none());
    one.requests[0].given.adapter = Some("lora".into());
    one.requests[0].sent.adapter = Some("lora".into());
    for format in [Format::Vllm, Format::Aiperf] {
        assert!(rows(format, &one).unwrap_err().contains("an adapter"));
    }
}

/// A row must keep these, so that the bytes are the same when it is read again.
#[test]
fn exports_parts_parameter_order_and_embeddings() {
    let text = |text: &str| Part::Text(text.to_owned());
    let mut talk = sample(
        "a",
        Prompt::Messages(vec![Message {
            parts: vec![text("a"), text("b")],
            ..text_message(Role::User, "")
        }]),
    );
    talk.parameters = Some(r#"{"temperature":0.5,"tools":[{"type":"function"}]}"#.into());
    let [row] = &rows(Format::Runner, &drawn(vec![talk])).unwrap()[..] else {
        panic!("expected one row")
    };
    assert_eq!(
        row["messages"][0]["content"],
        json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    );
    assert_eq!(
        row["parameters"].to_string(),
        r#"{"temperature":0.5,"tools":[{"type":"function"}]}"#
    );
    let texts = Prompt::Embedding(vec!["a".into(), "b".into()]);
    let row = &rows(Format::Runner, &drawn(vec![sample("e", texts)])).unwrap()[0];
    assert_eq!(row["embedding"], json!(["a", "b"]));
}

#[test]
fn replay_flags_match_the_dataset() {
    let tokenizer = Tokenizer::bytes();
    let one = |id: &str| {
        drawn(vec![sample(
            id,
            Prompt::Messages(vec![text_message(Role::System, "s"), text_message(Role::User, "u")]),
        )])
    };
    let text = drawn(vec![sample("t", Prompt::Text("Hi".into()))]);
    let talk = drawn(vec![
        sample("s/0", Prompt::Messages(vec![text_message(Role::User, "One?")])),
        next("s/1", "s/0", "Two?", 0),
    ]);
    let mut custom = Exporter::new(Format::Runner, &tokenizer, false);
    custom.rows(&one("a")).unwrap();
    custom.rows(&text).unwrap();
    assert_eq!(
        custom.replay("f").as_deref(),
        Some("--dataset-name custom --dataset-path f --warmup-requests 0")
    );
    let refused = custom.rows(&talk).unwrap_err();
    assert!(
        refused.contains("is for the dataset `conversation`, and earlier rows are for `custom`"),
        "{refused}"
    );
    let said_twice =
        Prompt::Messages(vec![text_message(Role::User, "One?"), text_message(Role::User, "Two?")]);
    custom.rows(&drawn(vec![sample("b", said_twice)])).unwrap();
    assert!(custom.replay("f").unwrap().contains("turns=last"));
    // A conversation of one turn is read by both.
    let mut conversation = Exporter::new(Format::Runner, &tokenizer, true);
    let rows = conversation.rows(&one("a")).unwrap();
    assert_eq!(rows[0]["output_length"], 8);
    conversation.rows(&talk).unwrap();
    assert_eq!(
        conversation.replay("f").as_deref(),
        Some(
            "--dataset-name conversation --dataset-path f --warmup-requests 0 --set dataset.config.format=aiperf \
             --arrival dataset"
        )
    );
    assert_eq!(Exporter::new(Format::Vllm, &tokenizer, true).replay("f"), None);
}

#[test]
fn exports_delays_and_recorded_answers() {
    let mut first = sample("s/0", Prompt::Messages(vec![text_message(Role::User, "One?")]));
    first.recorded_answer = Some(text_message(Role::Assistant, "1"));
    first.turn = Some(Turn { session: "s".into(), index: 0 });
    let mut second = next("s/1", "s/0", "Two?", 250_000_000);
    second.recorded_answer = Some(text_message(Role::Assistant, "2"));
    let talk = drawn(vec![first, second]);
    let user = |text: &str| json!({"role": "user", "content": text});
    assert_eq!(
        rows(Format::Runner, &talk).unwrap(),
        [
            json!({"session_id": "s", "messages": [user("One?")], "output_length": 8, "timestamp": 1.5}),
            json!({"session_id": "s", "messages": [{"role": "assistant", "content": "1"}, user("Two?"),
                {"role": "assistant", "content": "2"}], "output_length": 8, "delay": 250.0}),
        ]
    );
    assert_eq!(
        rows(Format::Aiperf, &talk).unwrap(),
        [json!({"session_id": "s", "turns": [
            {"messages": [user("One?")], "output_length": 8, "timestamp": 1.5},
            {"messages": [user("Two?")], "output_length": 8, "delay": 250.0},
        ]})]
    );
    let refused = rows(Format::Vllm, &talk).unwrap_err();
    assert!(refused.contains("`s/0`") && refused.contains("--tokenizer"), "{refused}");
}

#[test]
fn refusal_names_the_sample() {
    let root = || sample("r", Prompt::Text("Hi".into()));
    let fork = drawn(vec![root(), next("a", "r", "x", 0), next("b", "r", "y", 0)]);
    for format in [Format::Runner, Format::Aiperf] {
        let refused = rows(format, &fork).unwrap_err();
        assert!(
            refused.starts_with("sample `b`: this format holds only linear conversations"),
            "{refused}"
        );
    }
    for (parameters, adapter, expected) in [
        (Some(r#"{"top_k":1}"#), None, "no place for the parameter `top_k`"),
        (Some(r#"{"tools":[]}"#), None, "its parameters differ"),
        (None, Some("lora"), "no place for an adapter"),
    ] {
        let mut last = next("a", "r", "x", 0);
        last.parameters = parameters.map(str::to_owned);
        last.adapter = adapter.map(str::to_owned);
        let refused = rows(Format::Runner, &drawn(vec![root(), last])).unwrap_err();
        assert!(refused.starts_with("sample `a`") && refused.contains(expected), "{refused}");
    }
    let tokens = drawn(vec![sample("t", Prompt::Tokens(vec![1, 2]))]);
    assert!(rows(Format::Vllm, &tokens).unwrap_err().contains("token ids"));
    assert!(rows(Format::Aiperf, &tokens).is_err());
    let row = &rows(Format::Runner, &tokens).unwrap()[0];
    assert_eq!(row["prompt"], json!([1, 2]));
}
