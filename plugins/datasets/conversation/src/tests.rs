//! Samples of each format, and the remarks on conversations that are left out.

use std::collections::BTreeSet;
use std::path::Path;

use runner_plugin::{Dataset, Error, Prompt, Tokenizer, Treatment};
use runner_plugin_testing::datasets::{
    self, cases, check_samples, damage, first as all, invalid_config, invalid_input, message_line,
    mistake, shown,
};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::{Pairs, StandIn};

use super::Conversations;

fn case(name: &str) -> Named {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
    let file = match name {
        "sharegpt" => "conversations.json",
        _ => "conversations.jsonl",
    };
    Named::default().with_path("data", folder.join(name).join(file))
}

fn open(
    config: &str,
    seed: u64,
    files: Named,
    tokenizer: impl Tokenizer + 'static,
) -> Result<Conversations, Error> {
    datasets::open(config, seed, None, files, tokenizer)
}

fn shows(config: &str, files: Named, expected: &[&str]) {
    for limit in [1, 2, 100] {
        let mut dataset = open(config, 42, files.clone(), Pairs).expect("a dataset");
        let samples: Vec<String> = all(&mut dataset, 100, limit).iter().map(shown).collect();
        assert_eq!(samples, expected, "{config}, {limit} at a time");
    }
}

#[test]
fn sharegpt_gives_all_turns_in_the_order_of_python() {
    // random.seed(42); x = list(range(7)); random.shuffle(x) gives 1, 3, 4, 2, 6, 0, 5.
    shows(
        "{}",
        case("sharegpt"),
        &[
            "conversation-000002/0 | User: Write a haiku about the sea. | Assistant: Waves fold into foam,\nthe tide forgets its own name,\nsalt on every stone. | 15>37",
            "conversation-000003/0 | Assistant: Continue? | User: Yes, tell me how the story ended. | Assistant: They lived happily ever after. | 23>15",
            "conversation-000004/0 | System: Answer in one sentence. | User: Why is the sky blue, please? | Assistant: Air scatters blue light more than red light. | 27>22",
            "conversation-000004/1 < conversation-000004/0 [conversation-000004/0+0ms] | User: And at dusk? | Assistant: The light travels further, so that only the red is left. | 6>28",
            "conversation-000005/0 | User: How many legs has a spider? | Assistant: A spider has eight legs. | 15>12",
            "conversation-000006/0 | User: What is the tallest mountain on earth? | Assistant: Mount Everest, at 8,849 metres above sea level. | 20>24",
            "conversation-000006/1 < conversation-000006/0 [conversation-000006/0+0ms] | User: And the second one? | Assistant: K2, at 8,611 metres above sea level. | 10>18",
            "conversation-000006/2 < conversation-000006/1 [conversation-000006/1+0ms] | User: Thanks, that is all. | Assistant: You are welcome! | 10>8",
        ],
    );
    let mut dataset = open("{}", 42, case("sharegpt"), Pairs).expect("a dataset");
    all(&mut dataset, 100, 9);
    let remarks: Vec<_> = dataset
        .remarks()
        .into_iter()
        .map(|remark| (remark.what, remark.reason, remark.count, remark.first))
        .collect();
    let short = "a turn with fewer tokens than `min-input-tokens`";
    let expected = [
        (Treatment::Dropped, short, "conversation-000001 (the conversation at byte 518)"),
        (Treatment::Truncated, short, "conversation-000002 (the conversation at byte 1108)"),
        (
            Treatment::Dropped,
            "a speaker who is neither the user, the model, the system nor a tool",
            "conversation-000007 (the conversation at byte 1713)",
        ),
    ]
    .map(|(what, reason, first)| (what, reason.to_owned(), 1, Some(first.to_owned())));
    assert_eq!(remarks, expected);
}

#[test]
fn bounds_drop_and_truncate() {
    let outline = |config: &str| {
        let mut dataset = open(config, 42, case("sharegpt-lines"), Pairs).expect("a dataset");
        let ids: Vec<String> = all(&mut dataset, 100, 9)
            .iter()
            .map(|sample| sample.id.trim_start_matches("conversation-00000").to_owned())
            .collect();
        ids.join(" ")
    };
    assert_eq!(outline("{}"), "1/0 1/1 1/2 3/0 3/1 4/0");
    assert_eq!(outline(r#"{"min-input-tokens": 1}"#), "1/0 1/1 1/2 2/0 3/0 3/1 4/0 4/1");
    assert_eq!(outline(r#"{"min-turns": 2, "max-turns": 2}"#), "1/0 1/1 3/0 3/1");
    assert_eq!(outline(r#"{"outside": "drop"}"#), "1/0 1/1 1/2 3/0 3/1");
    assert_eq!(outline(r#"{"max-context-tokens": 60}"#), "1/0 3/0 4/0");
    assert_eq!(outline(r#"{"max-output-tokens": 24}"#), "1/0 1/1 1/2 3/0");
}

#[test]
fn aiperf_conversations_have_delays_in_milliseconds() {
    shows(
        "{}",
        case("aiperf"),
        &[
            "a/0 | User: Tell me a joke. |  | 9>?",
            "a/1 < a/0 [a/0+1500ms] | User: Another one. |  | 6>12",
            "a/2 < a/1 [a/1+250ms] | User: A last one. |  | 6>?",
            "conversation-000002/0 | User: One. + Two. |  | 5>?",
        ],
    );
    shows(
        r#"{"think-time": "none", "output-len": "run"}"#,
        case("aiperf-rows"),
        &[
            "a/0 | User: Tell me a joke. |  | 9>?",
            "a/1 < a/0 [a/0+0ms] | User: Another one. |  | 6>?",
            "b/0 | System: Be brief. | User: Hello. |  | 9>?",
        ],
    );
}

#[test]
fn drawn_values_replace_recorded_values() {
    let config =
        r#"{"think-time": 3, "output-len": {"distribution": "uniform", "min": 100, "max": 900}}"#;
    let mut dataset = open(config, 5, case("aiperf"), Pairs).expect("a dataset");
    let samples = all(&mut dataset, 100, 2);
    let delays: Vec<u64> =
        samples.iter().flat_map(|sample| &sample.after).map(|after| after.delay).collect();
    assert_eq!(delays, [3_000_000_000; 2]);
    let outputs: BTreeSet<_> = samples.iter().map(|sample| sample.output_tokens).collect();
    assert_eq!(outputs.len(), 4);
    assert!(
        outputs.iter().all(|tokens| tokens.is_some_and(|tokens| (100..=900).contains(&tokens)))
    );
}

const DRAWN: &str = r#"{"turns": {"distribution": "uniform", "min": 1, "max": 5}, "first-input-len": 30,
    "input-len": {"distribution": "uniform", "min": 4, "max": 20},
    "output-len": {"distribution": "uniform", "min": 1, "max": 9},
    "think-time": {"distribution": "lognormal", "median": 2, "sigma": 1}, "system-len": 12, "system-groups": 3}"#;

#[test]
fn synthetic_conversations_have_the_requested_lengths() {
    let mut dataset = open(DRAWN, 3, Named::default(), Pairs).expect("a dataset");
    let samples = all(&mut dataset, 400, 50);
    let (mut roots, mut systems, mut sizes) = (0, BTreeSet::new(), BTreeSet::new());
    for sample in &samples {
        let tokens = sample.input_tokens.expect("a count");
        let turn = sample.turn.as_ref().expect("a turn");
        sizes.insert(turn.index);
        match &sample.prompt {
            Prompt::Messages(messages) => {
                roots += 1;
                assert!(sample.after.is_empty() && messages.len() == 2);
                systems.insert(message_line(&messages[0]));
                // The two texts, and the token that the model puts before them.
                assert_eq!(tokens, 30 + 12 + 1, "{}", shown(sample));
            }
            _ => assert!((4..=20).contains(&tokens), "{}", shown(sample)),
        }
        let answer = sample.recorded_answer.as_ref().map(message_line).expect("an answer");
        let answer = answer.trim_start_matches("Assistant: ").to_owned();
        assert_eq!(Some(Pairs.count(&[answer], false)[0]), sample.output_tokens);
    }
    assert!(roots > 80, "{roots}");
    assert_eq!(systems.len(), 3);
    assert_eq!(sizes, (0..5).collect());
}

#[test]
fn only_seed_and_number_decide_a_synthetic_conversation() {
    for config in [DRAWN, "{}"] {
        let opened = |seed| open(config, seed, Named::default(), StandIn).expect("a dataset");
        check_samples(opened, &[1, 7, 52]);
    }
}

#[test]
fn spare_samples_do_not_change_measured_samples() {
    for (config, files) in [
        (DRAWN, Named::default()),
        (r#"{"turns": 2, "input-len": 1}"#, Named::default()),
        (r#"{"min-input-tokens": 1}"#, case("sharegpt")),
    ] {
        let mut plain = open(config, 42, files.clone(), Pairs).expect("a dataset");
        let plain = all(&mut plain, 40, 16);
        let mut dataset = open(config, 42, files, Pairs).expect("a dataset");
        let spare = dataset.spare(2).expect("spare samples");
        assert!(!spare.is_empty(), "{config}");
        let samples = all(&mut dataset, 40, 16);
        assert_eq!(samples[..], plain[..samples.len()], "{config}");
        for each in &spare {
            assert!(each.after.is_empty() && each.turn.is_none());
            assert!(samples.iter().all(|sample| sample.prompt != each.prompt));
        }
    }
}

#[test]
fn timestamps_of_first_turns_become_arrivals() {
    let rows = [(5000.0, 0), (5250.5, 1), (4000.0, 2), (7000.0, 3)].map(|(at, number)| {
        format!(
            r#"{{"session_id": "s{number}", "turns": [{{"text": "a", "timestamp": {at}}}, {{"text": "b"}}]}}"#
        )
    });
    let files = Named::default().with_bytes("data", rows.join("\n"));
    let mut dataset = open(r#"{"repeat": true}"#, 1, files, Pairs).expect("a dataset");
    let arrivals: Vec<_> = all(&mut dataset, 12, 5)
        .iter()
        .filter_map(|sample| sample.arrival)
        .map(|nanoseconds| nanoseconds / 1000)
        .collect();
    assert_eq!(arrivals, [0, 250_500, 250_500, 2_000_000, 2_000_000, 2_250_500]);
    let remarks = dataset.remarks();
    assert_eq!(remarks[0].what, Treatment::Repaired);
    assert_eq!((remarks[0].count, remarks[0].first.as_deref()), (1, Some("s2")));
}

#[test]
fn rows_of_whole_conversations_are_not_added_up() {
    let rows = r#"{"session_id": "a", "messages": [{"role": "user", "content": "one"}], "output_length": 3}
{"session_id": "a", "messages": [{"content": "one", "role": "user"}, {"role": "assistant", "content": "uno"}, {"role": "user", "content": "two"}], "output_length": 4}
{"session_id": "a", "messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "uno"}, {"role": "user", "content": "two"}, {"role": "user", "content": "three"}]}
{"session_id": "b", "messages": [{"role": "user", "content": "again"}]}
{"session_id": "b", "messages": [{"role": "user", "content": "again"}]}
"#;
    for mark in ["", "\u{feff}"] {
        let files = Named::default().with_bytes("data", format!("{mark}{rows}"));
        let mut dataset = open("{}", 1, files, Pairs).expect("conversations");
        let samples = all(&mut dataset, 9, 2);
        let shown: Vec<_> = samples
            .iter()
            .map(|sample| {
                let new: Vec<_> = sample.prompt.messages().iter().map(message_line).collect();
                let answer = sample.recorded_answer.as_ref().map(message_line);
                format!("{} {} > {}", sample.id, new.join("+"), answer.unwrap_or_default())
            })
            .collect();
        assert_eq!(
            shown,
            [
                "a/0 User: one > Assistant: uno",
                "a/1 User: two > ",
                "a/2 User: three > ",
                "b/0 User: again > ",
                "b/1 User: again > ",
            ]
        );
        assert_eq!(samples[1].output_tokens, Some(4));
        assert_eq!(dataset.remarks(), []);
    }
}

#[test]
fn texts_that_do_not_fit_into_memory_are_refused() {
    // Each of 100 turns has 128 tokens of a synthetic answer besides.
    let config = r#"{"turns": 100, "input-len": 100000}"#;
    let mut dataset = open(config, 1, Named::default(), Pairs).expect("a configuration");
    let message = datasets::invalid_config(dataset.next(1));
    assert!(message.contains("have 10012800 tokens; expected at most 4194304"), "{message}");
}

#[test]
fn synthetic_answers_are_bounded_unless_the_run_sets_a_length() {
    let output_tokens = |config: &str| {
        let opened = open(config, 1, Named::default(), Pairs);
        let samples = opened.expect("a dataset").next(4).expect("samples");
        samples[0].output_tokens
    };
    assert_eq!(output_tokens("{}"), Some(128));
    assert_eq!(output_tokens(r#"{"output-len": "run"}"#), None);
}

// The messages for mistakes in files and configurations.

#[test]
fn mistakes_name_their_line_and_their_key() {
    let complaint = |config: &str, text: &str| {
        let files = Named::default().with_bytes("data", text);
        mistake(open(config, 1, files, Pairs).and_then(|mut dataset| {
            while !dataset.next(10)?.is_empty() {}
            Ok(())
        }))
    };
    // `¶` is a line break.
    for (case, expected) in cases(
        r#"
        {} |  => the file `data` is empty
        {} | {"messages": [ => file `data`, line 1: `messages`: EOF while parsing
        {} | {"messages": 3} => line 1: `messages`: expected a list
        {} | {"messages": [], "tools": 3} => line 1: `tools`: expected a list of tools
        {} | {"session_id":"a","messages":[{"role":"user","content":"a"}]}¶{"session_id":"a","messages":[{"role":"user","content":"a"},{"role":"user"}]}¶{"session_id":"a","messages":[{"role":"user","content":"b"}]} => line 3: `messages` do not begin with the previous row's
        {} | {"session_id":"a","messages":[{"role":"user","content":"a"}]}¶{"session_id":"a","messages":[{"role":"user","content":"a"},{"role":"user"}]}¶{"session_id":"a","text":"b"} => line 3: expected `messages` with the whole conversation so far
        {} | {"messages": []} => none of 1 conversations can be used (no message for
        {} | {"session_id":"a","turns":[{"text":"a"},{"delay":-1,"text":"b"}]} => line 1: `turns[1]`: `delay` is -0.001 seconds
        {} | {"session_id":"a","input_length":5} => row of a trace
        {} | {"session_id":"a","text":"a","max_tokens":0} => `max_tokens` is 0; expected at least 1
        {} | {"conversation_id":"a","role":"user","content":"a"} => line 1: `turn` is missing
        {} | {"conversation_id":"a","turn":2,"role":"user","content":"a"}¶{"conversation_id":"a","turn":2,"role":"assistant"} => line 2: `turn` is 2 after 2
        {} | [{"conversations": []}] => the file `data` has no conversation of two messages
        {"format": "messages"} | [{}] => one JSON array; this format has an object a line
        {"format": "synthetic"} | {"messages": [{"role": "user", "content": "a"}]} => reads no file
        {"shuffle": true} | {"messages": [{"role": "user", "content": "a"}]} => `shuffle` works only with a ShareGPT file
        {"turns": 3, "system-len": 4} | {"messages": [{"role": "user", "content": "a"}]} => `turns`, `system-len` cannot be set for the conversations of a file
        {"min-turns": 0} | {"messages": [{"role": "user", "content": "a"}]} => `min-turns` is 0; expected from 1 to 10000
        {"min-turns": 3, "max-turns": 2} | {"messages": [{"role": "user", "content": "a"}]} => `min-turns` is 3 and `max-turns` is 2
        {"think-time": -1} | {"messages": [{"role": "user", "content": "a"}]} => `think-time` gives -1 seconds
        {"output-len": 0} | {"messages": [{"role": "user", "content": "a"}]} => `output-len` is 0; expected at least 1
        {"output-len": "all"} | {"messages": [{"role": "user", "content": "a"}]} => key `output-len`: unknown variant `all`
        "#,
    ) {
        let (config, text) = case.split_once(" | ").expect("a file");
        let message = complaint(config, &text.replace('¶', "\n"));
        assert!(message.contains(expected), "{case}\ngave: {message}\nnot:  {expected}");
    }
    let message = invalid_config(open(r#"{"repeat": true}"#, 1, Named::default(), Pairs));
    assert!(message.starts_with("`repeat` cannot be set for synthetic"), "{message}");
}

#[test]
fn bounds_that_nothing_keeps_to_are_refused() {
    let mut dataset =
        open(r#"{"min-turns": 5, "input-len": 4}"#, 1, Named::default(), Pairs).expect("a dataset");
    // Spare samples have one turn each, and the number of texts of one token is limited.
    assert_eq!(dataset.spare(2).expect("spare samples").len(), 2);
    let message = invalid_input(dataset.next(1));
    assert!(
        message.starts_with("none of 1000 conversations can be used (fewer than 5 turns: 1000)"),
        "{message}"
    );
    let short = r#"{"turns": 1, "input-len": 1}"#;
    let mut dataset = open(short, 1, Named::default(), Pairs).expect("a dataset");
    let spare = dataset.spare(50).expect("spare samples");
    assert!((2..50).contains(&spare.len()), "{}", spare.len());
    let files =
        Named::default().with_bytes("data", r#"{"messages": [{"role": "user", "content": "a"}]}"#);
    let mut dataset = open("{}", 1, files, Pairs).expect("a dataset");
    assert_eq!(dataset.spare(3).expect("spare samples").len(), 1);
    let message = invalid_input(dataset.next(1));
    assert!(message.starts_with("all 1 conversations of the file"), "{message}");
}

/// A file that is cut or changed anywhere is read or refused, and never anything else.
#[test]
fn damaged_files_are_read_or_refused() {
    for name in ["sharegpt", "sharegpt-lines", "messages", "mlperf", "aiperf", "aiperf-rows"] {
        let file = if name == "sharegpt" { "conversations.json" } else { "conversations.jsonl" };
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
        let whole = std::fs::read(format!("{path}/{name}/{file}")).expect("the case's file");
        let samples = damage(&whole, |files| open("{}", 1, files, Pairs));
        assert!(samples.len() > 50, "{name}: {}", samples.len());
    }
}
