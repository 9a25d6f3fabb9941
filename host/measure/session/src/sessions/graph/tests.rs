//! Sessions on instants that are written down.

use super::*;
use crate::sessions::history::text_message;
use plugins::backend::{Continuation, Dependency, Role};

const LIVE: Policy =
    Policy { history: History::Live, after_failure: AfterFailure::Drop, by_last: false };

fn sample(id: &str, prompt: Prompt, after: &[(&str, Point, u64)]) -> Sample {
    let after = after.iter().map(|(sample, point, delay)| Dependency {
        sample: (*sample).to_owned(),
        point: *point,
        delay: *delay,
    });
    Sample {
        after: after.collect(),
        recorded_answer: Some(text_message(Role::Assistant, &format!("recorded {id}"))),
        input_tokens: Some(1),
        ..Sample::bare(id, prompt)
    }
}

fn next(parent: &str, messages: Vec<Message>) -> Prompt {
    Prompt::Continuation(Continuation { parent: parent.to_owned(), messages })
}

fn turn(id: &str, parent: &str, delay: u64) -> Sample {
    let prompt = next(parent, vec![text_message(Role::User, &format!("ask {id}"))]);
    sample(id, prompt, &[(parent, Point::End, delay)])
}

fn root(id: &str) -> Sample {
    sample(id, Prompt::Text(format!("ask {id}")), &[])
}

fn graph(samples: Vec<Sample>, policy: Policy) -> Graph {
    let numbered = (10..).zip(samples).collect();
    Graph::new(numbered, policy).unwrap()
}

fn given(text: &str) -> Option<ReplyContent> {
    Some(ReplyContent { answer: text_message(Role::Assistant, text), carry: None })
}

fn texts(composed: &ComposedSample) -> Vec<String> {
    let Prompt::Messages(messages) = &composed.sample.prompt else {
        panic!("it is a conversation");
    };
    let text = |message: &Message| match &message.parts[..] {
        [Part::Text(text)] => text.clone(),
        other => panic!("one text, not {other:?}"),
    };
    messages.iter().map(text).collect()
}

#[test]
fn turn_contains_the_live_answers() {
    let mut graph = graph(vec![root("a"), turn("b", "a", 30), turn("c", "b", 5)], LIVE);
    graph.compose(0).unwrap();
    let steps = graph.over(0, Nanos(100), given("one"));
    assert_eq!(steps.ready, [1]);
    assert_eq!(graph.due(1), Nanos(130));
    let second = graph.compose(1).unwrap();
    assert_eq!(texts(&second), ["ask a", "one", "ask b"]);
    assert_eq!(second.parents, [10]);
    // The dataset counted only the turn's own tokens.
    assert_eq!(second.sample.input_tokens, None);
    assert_eq!(graph.over(1, Nanos(200), given("two")).ready, [2]);
    let third = graph.compose(2).unwrap();
    assert_eq!(texts(&third), ["ask a", "one", "ask b", "two", "ask c"]);
    let history = third.history.unwrap();
    assert_eq!((history.continues, history.answers, history.recorded), (11, 2, 0));
    assert!(!graph.is_over());
    graph.over(2, Nanos(300), given("three"));
    assert!(graph.is_over());
}

#[test]
fn join_waits_for_the_last_dependency() {
    let part = |of: &str| Message {
        parts: vec![Part::Answer(of.to_owned())],
        ..text_message(Role::User, "")
    };
    let join = sample(
        "j",
        next("a", vec![part("x"), part("y")]),
        &[("a", Point::End, 0), ("x", Point::End, 10), ("y", Point::End, 0)],
    );
    let agent = |id| sample(id, Prompt::Text(format!("ask {id}")), &[("a", Point::End, 0)]);
    let mut graph = graph(vec![root("a"), agent("x"), agent("y"), join], LIVE);
    graph.compose(0).unwrap();
    assert_eq!(graph.over(0, Nanos(100), given("go")).ready, [1, 2]);
    graph.compose(1).unwrap();
    graph.compose(2).unwrap();
    assert!(graph.over(2, Nanos(150), given("found y")).ready.is_empty());
    assert_eq!(graph.over(1, Nanos(400), given("found x")).ready, [3]);
    assert_eq!(graph.due(3), Nanos(410));
    let joined = graph.compose(3).unwrap();
    assert_eq!(texts(&joined), ["ask a", "go", "found x", "found y"]);
    assert_eq!(joined.released, Some(Nanos(100)));
    assert_eq!(joined.parents, [10, 11, 12]);
}

#[test]
fn dependents_of_a_failure_need_a_recorded_answer() {
    let going_on = Policy { after_failure: AfterFailure::Continue, ..LIVE };
    let mut samples = vec![root("a"), turn("b", "a", 0), turn("c", "b", 0)];
    samples[0].recorded_answer = None;
    let mut graph = graph(samples, going_on);
    graph.compose(0).unwrap();
    assert_eq!(graph.over(0, Nanos(5), None).dropped, [1, 2]);
    assert!(graph.is_over());
}

#[test]
fn first_output_releases_followers() {
    let early = sample("e", Prompt::Text("early".to_owned()), &[("a", Point::FirstOutput, 7)]);
    let mut graph = graph(vec![root("a"), early], LIVE);
    graph.compose(0).unwrap();
    assert!(graph.watches_first_output(0));
    assert_eq!(graph.first_output(0, Nanos(20)), [1]);
    assert_eq!(graph.due(1), Nanos(27));
    assert!(!graph.watches_first_output(0));
    assert!(graph.over(0, Nanos(90), given("x")).ready.is_empty());
}

#[test]
fn tool_results_carry_the_ids_of_live_calls() {
    let with = |message: Message, extra: &str| Message { extra: Some(extra.to_owned()), ..message };
    let calls = |id: &str| format!(r#"{{"tool_calls":[{{"id":"{id}"}}]}}"#);
    let result = with(text_message(Role::Tool, "42"), r#"{"tool_call_id":"old"}"#);
    let samples = || {
        let mut first = root("a");
        let answer = text_message(Role::Assistant, "recorded");
        first.recorded_answer = Some(with(answer, &calls("old")));
        let prompt = next("a", vec![result.clone()]);
        vec![first, sample("b", prompt, &[("a", Point::End, 0)])]
    };
    let sent = |answer: Message| {
        let mut graph = graph(samples(), LIVE);
        graph.compose(0).unwrap();
        let reply = ReplyContent { answer, carry: None };
        graph.over(0, Nanos(1), Some(reply));
        let composed = graph.compose(1).unwrap();
        let Prompt::Messages(messages) = composed.sample.prompt else {
            panic!("it is a conversation");
        };
        (messages, composed.history.unwrap().recorded)
    };
    let (messages, recorded) = sent(with(text_message(Role::Assistant, ""), &calls("new")));
    assert_eq!(messages[2].extra.as_deref(), Some(r#"{"tool_call_id":"new"}"#));
    assert_eq!(recorded, 0);
    // A model that called no tool cannot get a result.
    let (messages, recorded) = sent(text_message(Role::Assistant, "no call"));
    assert_eq!(messages[1].extra, Some(calls("old")));
    assert_eq!(messages[2].extra.as_deref(), Some(r#"{"tool_call_id":"old"}"#));
    assert_eq!(recorded, 1);
}

#[test]
fn invalid_sessions_are_refused() {
    let broken = |samples: Vec<Sample>| {
        let numbered = (0..).zip(samples).collect();
        match Graph::new(numbered, LIVE) {
            Ok(_) => panic!("it was taken"),
            Err(what) => what,
        }
    };
    let ids = sample("a", Prompt::Tokens(vec![1]), &[]);
    assert!(broken(vec![ids, turn("b", "a", 0)]).contains("not a conversation"));
    let further = Some(r#"{"delay": "1s"}"#.to_owned());
    let wrong = broken(vec![Sample { further, ..root("a") }]);
    assert!(wrong.contains("`further` is") && wrong.contains("expected an object"), "{wrong}");
}

/// Requests that hold an answer must not be due before that answer is there.
#[test]
fn quoting_an_answer_requires_depending_on_its_end() {
    let quoting = |id: &str, after: &[(&str, Point, u64)]| {
        let mut message = text_message(Role::User, "");
        message.parts = vec![Part::Answer("a".to_owned())];
        sample(id, Prompt::Messages(vec![message]), after)
    };
    let fault_of = |samples: Vec<Sample>| Graph::new((0..).zip(samples).collect(), LIVE).err();
    let at_end = quoting("b", &[("a", Point::End, 0)]);
    assert_eq!(fault_of(vec![root("a"), at_end]), None);
    // Through another request, which is not due before.
    let later = quoting("c", &[("b", Point::FirstOutput, 0)]);
    assert_eq!(fault_of(vec![root("a"), turn("b", "a", 0), later]), None);
    let early = quoting("b", &[("a", Point::FirstOutput, 0)]);
    let wrong = fault_of(vec![root("a"), early]).unwrap();
    assert!(wrong.contains("without depending on its end"), "{wrong}");
    let through = sample("b", Prompt::Text("b".to_owned()), &[("a", Point::FirstOutput, 0)]);
    let early = quoting("c", &[("b", Point::End, 0)]);
    let wrong = fault_of(vec![root("a"), through, early]).unwrap();
    assert!(wrong.contains("without depending on its end"), "{wrong}");
}

fn calling(text: &str, ids: &[&str]) -> Message {
    let calls: Vec<_> = ids.iter().map(|id| serde_json::json!({"id": id})).collect();
    Message {
        extra: Some(serde_json::json!({ "tool_calls": calls }).to_string()),
        ..text_message(Role::Assistant, text)
    }
}

/// A server refuses a conversation in which a call of a tool has no result.
#[test]
fn history_has_one_call_per_result() {
    let calls_of = |recorded: Option<Message>, given: Message| {
        let mut first = root("a");
        first.recorded_answer = recorded;
        let result = text_message(Role::Tool, "result");
        let second = sample("b", next("a", vec![result]), &[("a", Point::End, 0)]);
        let mut graph = graph(vec![first, second], LIVE);
        graph.compose(0).unwrap();
        let answer = ReplyContent { answer: given, carry: None };
        graph.over(0, Nanos(1), Some(answer));
        let composed = graph.compose(1).unwrap();
        let Prompt::Messages(messages) = &composed.sample.prompt else {
            panic!("it is a conversation");
        };
        (call_ids(&messages[1]), composed.history.unwrap().recorded)
    };
    let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let recorded = || Some(calling("recorded", &["r"]));
    assert_eq!(calls_of(recorded(), calling("given", &["g"])), (owned(&["g"]), 0));
    // More calls, or none: the answer on record stands in.
    let two = || calling("given", &["g", "h"]);
    assert_eq!(calls_of(recorded(), two()), (owned(&["r"]), 1));
    assert_eq!(calls_of(recorded(), text_message(Role::Assistant, "no")), (owned(&["r"]), 1));
    // Without one, the surplus goes.
    assert_eq!(calls_of(None, two()), (owned(&["g"]), 0));
}
