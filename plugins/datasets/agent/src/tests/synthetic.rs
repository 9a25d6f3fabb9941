//! Agents that are drawn.

use std::collections::{BTreeMap, BTreeSet};

use runner_plugin::{Dataset, Part, Prompt, Role, Sample};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::{Pairs, StandIn};

use super::{all, check, open, shown, text_of};

const FANS: &str = r#"{"tool-calls": {"distribution": "uniform", "min": 3, "max": 5}, "prompt-len": 20,
    "tool-result-len": 9, "tool-latency": 0.5, "output-len": 4, "final-output-len": 11, "system-len": 6,
    "sub-agents": {"fan-outs": 1, "count": 3, "tool-calls": 2, "prompt-len": 8, "final-output-len": 7, "depth": 2}}"#;

const COMPACTS: &str = r#"{"tool-calls": 6, "prompt-len": 40, "tool-result-len": 30, "output-len": 10,
    "final-output-len": 20, "compaction": {"trigger-tokens": 120, "target-tokens": 25}}"#;

fn sessions(samples: Vec<Sample>) -> Vec<Vec<Sample>> {
    let mut sessions: Vec<Vec<Sample>> = Vec::new();
    for sample in samples {
        if sample.after.is_empty() {
            sessions.push(Vec::new());
        }
        sessions.last_mut().expect("a root").push(sample);
    }
    sessions.pop();
    sessions
}

#[test]
fn sub_agents_start_together_and_are_waited_for() {
    let mut dataset = open(FANS, 5, Named::default(), Pairs).expect("a dataset");
    let samples = all(&mut dataset, 2000, 64);
    check(&samples);
    for session in sessions(samples) {
        let by_id: BTreeMap<&str, &Sample> =
            session.iter().map(|sample| (&*sample.id, sample)).collect();
        let main: Vec<&Sample> =
            session.iter().filter(|sample| sample.class.as_deref() == Some("main")).collect();
        assert!((4..=6).contains(&main.len()));
        let mut joins = 0;
        for sample in &session {
            let answers: Vec<&str> = sample
                .prompt
                .messages()
                .iter()
                .flat_map(|message| &message.parts)
                .filter_map(|part| match part {
                    Part::Answer(of) => Some(&**of),
                    _ => None,
                })
                .collect();
            if answers.is_empty() {
                continue;
            }
            joins += 1;
            assert_eq!((answers.len(), sample.after.len()), (3, 4), "{}", shown(sample));
            let Prompt::Continuation(next) = &sample.prompt else {
                panic!("{}", shown(sample));
            };
            for of in answers {
                // Each is the last of a conversation that began after the same request.
                let end = by_id[of];
                assert_eq!(end.output_tokens, Some(7));
                assert_eq!(end.class.as_deref(), Some("sub-agent"));
                let name = &end.turn.as_ref().expect("a turn").session;
                let root = by_id[&*format!("{name}/0")];
                assert_eq!(root.after.len(), 1);
                assert_eq!(root.after[0].sample, next.parent);
                assert_eq!(root.input_tokens, Some(8 + 6 + 1));
            }
        }
        // One of the agent, and one of each of its three sub-agents.
        assert_eq!(joins, 4);
        let last = main[main.len() - 1];
        assert_eq!(last.output_tokens, Some(11));
        for sample in &session {
            let tools =
                sample.after.len() == 1 && sample.turn.as_ref().is_some_and(|turn| turn.index > 0);
            if tools {
                assert_eq!(sample.after[0].delay, 500_000_000, "{}", shown(sample));
                assert_eq!(sample.input_tokens, Some(9));
            }
        }
    }
}

#[test]
fn a_long_history_becomes_a_summary() {
    let mut dataset = open(COMPACTS, 5, Named::default(), StandIn).expect("a dataset");
    let samples = all(&mut dataset, 9, 4);
    check(&samples);
    let outline: Vec<String> = samples
        .iter()
        .map(|sample| {
            format!(
                "{} {} {}",
                sample.id.trim_start_matches("agent-000001"),
                sample.class.as_deref().unwrap_or_default(),
                sample.output_tokens.unwrap_or(0)
            )
        })
        .collect();
    // 40 + 10 + 30 + 10 + 30 is 120, and with the next answer and result it is beyond the trigger.
    assert_eq!(
        outline,
        [
            "/0 main 10",
            "/1 main 10",
            "/2 main 10",
            "/3 compaction 25",
            ".c1/0 main 10",
            ".c1/1 main 10",
            ".c1/2 main 10",
            ".c1/3 compaction 25",
            ".c2/0 main 20",
        ]
    );
    let question = text_of(&samples[3].prompt.messages()[0]);
    assert!(
        question.ends_with(
            "Summarise this conversation so far, with everything that is needed to go on."
        )
    );
    assert_eq!(
        samples[4].prompt.messages().iter().map(text_of).collect::<Vec<_>>(),
        ["User: Summary of the work so far:\n<agent-000001/3>\n\nGo on with it."]
    );
}

#[test]
fn tools_of_recorded_histories_are_called_and_answer() {
    let config = COMPACTS.replacen('{', r#"{"tool-role": "tool","#, 1);
    let mut dataset = open(&config, 5, Named::default(), StandIn).expect("a dataset");
    let samples = all(&mut dataset, 40, 4);
    let mut results = 0;
    for (before, sample) in samples.iter().zip(&samples[1..]) {
        for message in sample.prompt.messages().iter().filter(|message| message.role == Role::Tool)
        {
            let called = before.recorded_answer.as_ref().and_then(|answer| answer.extra.clone());
            let result = message.extra.clone().unwrap_or_default();
            let id = result.split('"').nth(3).expect("an id").to_owned();
            assert!(called.is_some_and(|called| called.contains(&format!("\"{id}\""))), "{result}");
            results += 1;
        }
    }
    assert!(results > 20);
}

#[test]
fn an_agent_depends_on_the_seed_and_its_number_alone() {
    for config in [FANS, COMPACTS, "{}"] {
        let sequence = |seed, limit| {
            let mut dataset = open(config, seed, Named::default(), StandIn).expect("a dataset");
            all(&mut dataset, 120, limit)
        };
        let whole = sequence(9, 120);
        assert_eq!(whole.len(), 120);
        assert!(sequence(9, 1) == whole && sequence(9, 7) == whole);
        assert!(sequence(10, 7) != whole);
    }
}

#[test]
fn spare_samples_do_not_change_measured_samples() {
    for (config, files) in
        [(FANS, Named::default()), ("{}", super::case("dag")), ("{}", super::case("trie"))]
    {
        let mut plain = open(config, 42, files.clone(), Pairs).expect("a dataset");
        let plain = all(&mut plain, 40, 16);
        let mut dataset = open(config, 42, files, Pairs).expect("a dataset");
        let mut spare = dataset.spare(1).expect("spare samples");
        spare.extend(dataset.spare(1).expect("spare samples"));
        assert!(!spare.is_empty(), "{config}");
        let samples = all(&mut dataset, 40, 16);
        assert_eq!(samples[..], plain[..samples.len()], "{config}");
        let prompts: BTreeSet<String> =
            samples.iter().map(|sample| format!("{:?}", sample.prompt)).collect();
        for each in &spare {
            assert!(each.after.is_empty() && each.turn.is_none());
            assert!(!prompts.contains(&format!("{:?}", each.prompt)));
        }
    }
}
