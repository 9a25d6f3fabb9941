use super::*;
use plugins::backend::{Continuation, Dependency, Part, Role, Turn};

fn said(role: Role, text: &str) -> Message {
    Message {
        role,
        parts: vec![Part::Text(text.to_owned())],
        extra: None,
    }
}

fn sample(id: &str, prompt: Prompt) -> Sample {
    Sample {
        id: id.to_owned(),
        prompt,
        after: Vec::new(),
        recorded_answer: None,
        input_tokens: None,
        output_tokens: Some(8),
        reference: None,
        turn: None,
        class: None,
        arrival: None,
        adapter: None,
        parameters: None,
    }
}

fn next(id: &str, parent: &str, text: &str, delay: u64) -> Sample {
    let prompt = Prompt::Continuation(Continuation {
        parent: parent.to_owned(),
        messages: vec![said(Role::User, text)],
    });
    let after = vec![Dependency {
        sample: parent.to_owned(),
        point: Point::End,
        delay,
    }];
    Sample {
        after,
        ..sample(id, prompt)
    }
}

fn drawn(samples: Vec<Sample>) -> Drawn {
    let numbered = (0..).zip(samples);
    Drawn {
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

fn rows(format: Format, drawn: &Drawn) -> Result<Vec<Value>, String> {
    let tokenizer = Tokenizer::bytes();
    Exporter::new(format, &tokenizer, true).rows(drawn)
}

#[test]
fn a_request_that_stands_alone() {
    let mut alone = sample("a", Prompt::Text("Hi".into()));
    alone.class = Some("chat".into());
    alone.reference = Some("\"yes\"".into());
    alone.parameters = Some(r#"{"top_k":3}"#.into());
    let mut one = drawn(vec![alone]);
    one.requests[0].sent.prompt = Prompt::Text("Run 1. Hi".into());
    assert_eq!(
        rows(Format::Runner, &one).unwrap(),
        [
            json!({"id": "a", "prompt": "Hi", "output_tokens": 8, "class": "chat", "reference": "yes",
            "parameters": {"top_k": 3}, "timestamp": 1.5})
        ]
    );
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
}

#[test]
fn a_conversation_has_delays_and_answers_on_record() {
    let mut first = sample("s/0", Prompt::Messages(vec![said(Role::User, "One?")]));
    first.recorded_answer = Some(said(Role::Assistant, "1"));
    first.turn = Some(Turn {
        session: "s".into(),
        index: 0,
    });
    let talk = drawn(vec![first, next("s/1", "s/0", "Two?", 250_000_000)]);
    let user = |text: &str| json!({"role": "user", "content": text});
    assert_eq!(
        rows(Format::Runner, &talk).unwrap(),
        [
            json!({"session_id": "s", "messages": [user("One?")], "output_length": 8, "timestamp": 1.5}),
            json!({"session_id": "s", "messages": [{"role": "assistant", "content": "1"}, user("Two?")],
                "output_length": 8, "delay": 250.0}),
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
    assert!(
        refused.contains("`s/0`") && refused.contains("--tokenizer"),
        "{refused}"
    );
}

#[test]
fn what_a_format_cannot_express_is_refused_by_the_samples_name() {
    let root = || sample("r", Prompt::Text("Hi".into()));
    let fork = drawn(vec![root(), next("a", "r", "x", 0), next("b", "r", "y", 0)]);
    for format in [Format::Runner, Format::Aiperf] {
        let refused = rows(format, &fork).unwrap_err();
        assert!(
            refused.starts_with("sample `b`: sessions that fork"),
            "{refused}"
        );
    }
    let tokens = drawn(vec![sample("t", Prompt::Tokens(vec![1, 2]))]);
    assert!(
        rows(Format::Vllm, &tokens)
            .unwrap_err()
            .contains("token ids")
    );
    assert!(rows(Format::Aiperf, &tokens).is_err());
    let row = &rows(Format::Runner, &tokens).unwrap()[0];
    assert_eq!(row["prompt"], json!([1, 2]));
}
