//! Samples from each format's rows.

use runner_plugin::{Prompt, Role, Sample};

use super::{TRACES, after, all, arrival, ids, open, remarks, rest, text, trace};

#[test]
fn every_format_is_found_and_the_size_of_a_call_changes_nothing() {
    for (name, trace, config) in TRACES {
        let whole = rest(&mut open(config, trace), u32::MAX);
        assert!(!whole.is_empty(), "{name}");
        for limit in [1, 2, 5] {
            let again = rest(&mut open(config, trace), limit);
            assert_eq!(format!("{whole:?}"), format!("{again:?}"), "{name}, {limit} at a time");
        }
        let mut dataset = open(config, trace);
        assert_eq!(dataset.spares, 0);
        runner_plugin::Dataset::spare(&mut dataset, 3).unwrap();
        assert_eq!(
            format!("{whole:?}"),
            format!("{:?}", rest(&mut dataset, 4)),
            "{name}, after spare samples"
        );
    }
}

#[test]
fn dependencies_come_first_and_within_their_session() {
    for (name, trace, config) in TRACES {
        let mut session: Vec<String> = Vec::new();
        let mut arrived = 0;
        for sample in all(config, trace) {
            if sample.after.is_empty() {
                session.clear();
                assert!(sample.arrival.unwrap_or(arrived) >= arrived, "{name}: {}", sample.id);
                arrived = sample.arrival.unwrap_or(arrived);
            } else {
                assert_eq!(sample.arrival, None);
            }
            for on in &sample.after {
                assert!(session.contains(&on.sample), "{name}: {}", sample.id);
            }
            session.push(sample.id);
        }
    }
}

#[test]
fn mooncake_has_milliseconds_and_a_partial_last_block() {
    let samples = all(r#"{"block-size": 4}"#, trace("mooncake"));
    assert_eq!(ids(&samples), ["line-1", "line-2", "line-3", "line-4"]);
    let arrivals: Vec<_> = samples.iter().map(arrival).collect();
    assert_eq!(arrivals, [Some(0), Some(0), Some(3000), Some(9052)]);
    let lengths: Vec<_> =
        samples.iter().map(|sample| (sample.input_tokens, sample.output_tokens)).collect();
    assert_eq!(
        lengths,
        [(Some(10), Some(5)), (Some(12), Some(3)), (Some(7), Some(9)), (Some(14), Some(2))]
    );
    // A byte is a token: a block is four letters.
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|at| text(&samples[at]));
    assert_eq!(first.len(), 10);
    assert_eq!(first[..8], second[..8]);
    assert_ne!(first[8..10], second[8..10]);
    assert_eq!(third[4..7], first[4..7], "the beginning of block 1");
    assert_eq!(fourth[..12], *second);
}

#[test]
fn mooncake_sessions_are_deltas_unless_rows_hold_conversations() {
    let samples = all(r#"{"block-size": 4}"#, trace("mooncake-sessions"));
    assert_eq!(
        ids(&samples),
        ["line-1", "line-3", "line-4", "line-2", "line-5", "line-6", "line-7"]
    );
    let [root, second, third, alone, messages, more, payload] =
        [0, 1, 2, 3, 4, 5, 6].map(|at| &samples[at]);
    assert_eq!(arrival(root), Some(0), "the clock begins with the trace");
    assert_eq!(arrival(alone), Some(500));
    assert!(matches!(&root.prompt, Prompt::Messages(messages) if messages.len() == 1));
    assert_eq!(after(second), [("line-1", 250)]);
    assert_eq!(after(third), [("line-3", 40)]);
    assert!(
        matches!(&third.prompt, Prompt::Continuation(next) if next.parent == "line-3" && next.messages.len() == 1)
    );
    assert_eq!(text(second).len(), 5);
    assert_eq!(text(third), "And then?");
    assert_eq!(third.parameters.as_deref(), Some(r#"{"top_k":1}"#));
    assert_eq!(third.turn.as_ref().map(|turn| turn.index), Some(2));
    let answer = second.recorded_answer.as_ref().unwrap();
    assert_eq!(answer.role, Role::Assistant);
    assert_eq!(text(alone), "What is a trace?");
    // Conversations are whole, so the host puts nothing before them.
    assert!(matches!(&more.prompt, Prompt::Messages(messages) if messages.len() == 4));
    assert_eq!(after(more), [("line-5", 1000)]);
    assert!(messages.parameters.as_ref().unwrap().contains("tools"));
    assert_eq!(payload.parameters.as_deref(), Some(r#"{"temperature":0}"#));
    assert_eq!(text(payload), "Hi");
}

#[test]
fn rows_without_hashes_are_their_own_unless_their_session_grows() {
    let rows = "{\"input_length\": 8}\n{\"input_length\": 8}\n";
    let samples = all("{}", rows);
    assert_ne!(text(&samples[0]), text(&samples[1]));
    assert_eq!(samples[0].output_tokens, None);
    assert_eq!(samples[0].arrival, None);
    let samples = all(r#"{"replay": "sessions"}"#, trace("burstgpt"));
    assert_eq!(ids(&samples), ["line-2", "line-4", "line-3"]);
    assert_eq!(text(&samples[1])[..6], *text(&samples[0]));
    assert_eq!(text(&samples[1]).len(), 14);
    assert_eq!(after(&samples[1]), [("line-2", 5000)], "12.5 - 5 - 2.5 s");
    assert_ne!(text(&samples[2])[..6], *text(&samples[0]));
    assert_eq!(samples[2].class.as_deref(), Some("GPT-4"));
    assert_eq!(samples[2].turn, None);
}

#[test]
fn burstgpt_leaves_failed_requests_out() {
    let mut dataset = open("{}", trace("burstgpt"));
    let samples = rest(&mut dataset, 9);
    assert_eq!(ids(&samples), ["line-2", "line-3", "line-4"]);
    assert_eq!(samples.iter().map(arrival).collect::<Vec<_>>(), [Some(0), Some(2000), Some(7500)]);
    assert_eq!(samples[2].turn.as_ref().map(|turn| turn.index), Some(1));
    let reason = "Treatment::Dropped: a request that failed when it was recorded".to_owned();
    assert_eq!(remarks(&dataset), [(reason, 1, "line 5".to_owned())]);
}

#[test]
fn bailian_follows_parents_to_the_root() {
    let mut dataset = open(r#"{"block-size": 4, "replay": "sessions"}"#, trace("bailian"));
    let samples = rest(&mut dataset, 9);
    assert_eq!(ids(&samples), ["line-1", "line-3", "line-4", "line-5", "line-2", "line-6"]);
    // Two requests follow the first one, and a third one of them.
    assert_eq!(after(&samples[1]), [("line-1", 4500)]);
    assert_eq!(after(&samples[2]), [("line-1", 4886)]);
    assert_eq!(after(&samples[3]), [("line-3", 4386)]);
    for sample in &samples[..4] {
        assert_eq!(sample.turn.as_ref().unwrap().session, "159");
        assert_eq!(text(sample)[..8], text(&samples[0])[..8]);
        assert!(matches!(sample.prompt, Prompt::Text(_)));
    }
    assert_eq!(text(&samples[4])[..4], text(&samples[0])[..4]);
    assert_eq!(samples[4].class.as_deref(), Some("search"));
    assert_eq!(samples[5].turn.as_ref().unwrap().session, "164");
    let [(reason, 1, line)] = &remarks(&dataset)[..] else {
        panic!("one remark");
    };
    assert!(reason.contains("replayed as a new session") && line == "line 6");
    // The same by times: every request is a root, with its session's name.
    let samples = all(r#"{"block-size": 4}"#, trace("bailian"));
    assert!(samples.iter().all(|sample| sample.after.is_empty()));
    assert_eq!(arrival(&samples[2]), Some(4500));
    assert_eq!(samples[4].turn.as_ref().unwrap().session, "159");
    assert_eq!(samples[4].turn.as_ref().unwrap().index, 3);
}

#[test]
fn weka_sub_agents_run_beside_each_other_and_are_waited_for() {
    let samples = all("{}", trace("weka"));
    assert_eq!(
        ids(&samples),
        [
            "line-1-1", "line-1-2", "line-1-3", "line-1-4", "line-1-5", "line-1-6", "line-1-7",
            "line-2-1", "line-2-2"
        ]
    );
    assert_eq!(after(&samples[0]), []);
    // The first sub-agent counts its times from its own beginning, the second from the session's.
    assert_eq!(after(&samples[1]), [("line-1-1", 500)]);
    assert_eq!(after(&samples[2]), [("line-1-2", 1000)]);
    assert_eq!(after(&samples[3]), [("line-1-1", 600)]);
    assert_eq!(after(&samples[4]), [("line-1-1", 700)]);
    // The request was sent at 6 s, 5 s after its predecessor's end and after the sub-agents' ends.
    let joined = [("line-1-1", 5000), ("line-1-3", 0), ("line-1-4", 0), ("line-1-5", 0)];
    assert_eq!(after(&samples[5]), joined);
    assert_eq!(after(&samples[6]), [("line-1-6", 12_000)]);
    assert_eq!(after(&samples[8]), [("line-2-1", 4500)], "without `think_time`");
    let turn = |at: usize| samples[at].turn.clone().unwrap();
    assert_eq!((turn(2).session.as_str(), turn(2).index), ("s1/agent_001", 1));
    assert_eq!((turn(5).session.as_str(), turn(5).index), ("s1", 1));
    assert_eq!(samples[2].class.as_deref(), Some("small"));
    assert_eq!(samples[0].arrival, None);
    // Ids are shared with sub-agents, and not with other sessions.
    assert_eq!(text(&samples[1])[..4], text(&samples[0])[..4]);
    assert_eq!(text(&samples[6])[..16], text(&samples[5])[..16]);
    assert_ne!(text(&samples[7])[..8], text(&samples[0])[..8]);
    // The tokens after the whole blocks are the request's own.
    assert_eq!(text(&samples[5]).len(), 17);
    let global = trace("weka").replace("local", "global");
    let samples = all("{}", &global);
    assert_eq!(text(&samples[7])[..8], text(&samples[0])[..8]);
    let own = |at: usize| text(&samples[at])[8..].to_owned();
    assert_ne!(own(7), own(0));
}

#[test]
fn weka_by_times_is_every_request_by_itself() {
    let config = r#"{"replay": "timestamps"}"#;
    let samples = all(config, trace("weka"));
    assert_eq!(
        ids(&samples),
        [
            "line-1-1", "line-2-1", "line-1-2", "line-1-4", "line-1-5", "line-1-3", "line-2-2",
            "line-1-6", "line-1-7"
        ]
    );
    assert_eq!(arrival(&samples[5]), Some(3500));
    assert_eq!(samples[5].turn.as_ref().unwrap().session, "s1/agent_001");
    // The prompts are the same in both ways.
    let mut texts: Vec<_> = samples.iter().map(|sample| (&sample.id, text(sample))).collect();
    let in_sessions = all("{}", trace("weka"));
    let mut others: Vec<_> = in_sessions.iter().map(|sample| (&sample.id, text(sample))).collect();
    texts.sort();
    others.sort();
    assert_eq!(texts, others);
}

#[test]
fn tracelab_prompts_follow_from_the_split() {
    let mut dataset = open("{}", trace("tracelab"));
    let samples = rest(&mut dataset, 2);
    assert_eq!(ids(&samples), ["line-3", "line-1", "line-2", "line-4"]);
    let [_, first, second, third] = [0, 1, 2, 3].map(|at| text(&samples[at]));
    assert_eq!((first.len(), second.len(), third.len()), (10, 15, 11));
    assert_eq!(second[..10], *first, "12 of 15 tokens were cached");
    assert_eq!(third[..7], first[..7], "7 of 11, after compaction");
    assert_ne!(third[7..10], first[7..10]);
    assert_eq!(arrival(&samples[1]), Some(60_000));
    assert_eq!(after(&samples[2]), [("line-1", 1500)]);
    assert_eq!(after(&samples[3]), [("line-2", 60_000)]);
    assert_eq!(samples[2].output_tokens, Some(6), "with reasoning");
    assert_eq!(samples[2].class.as_deref(), Some("big"));
    let [(reason, 1, line)] = &remarks(&dataset)[..] else {
        panic!("one remark");
    };
    assert!(reason.contains("without a time") && line == "line 5");
    let by_time = all(r#"{"replay": "timestamps"}"#, trace("tracelab"));
    assert_eq!(text(&by_time[2]), second);
}

#[test]
fn azure_has_dates_and_pictures() {
    let mut dataset = open("{}", trace("azure"));
    let samples = rest(&mut dataset, 2);
    assert_eq!(samples.iter().map(arrival).collect::<Vec<_>>(), [Some(0), Some(1250), Some(1250)]);
    assert_eq!(samples[1].class.as_deref(), Some("images"));
    assert_eq!(samples[2].input_tokens, Some(12));
    assert!(remarks(&dataset)[0].0.contains("images"));
    let old = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4,2\n";
    assert_eq!(all("{}", old)[0].class, None);
}

#[test]
fn vllm_timed_traces_have_the_labels_of_their_configuration() {
    let (_, trace, config) = TRACES[7];
    let samples = all(config, trace);
    assert_eq!(arrival(&samples[1]), Some(750));
    assert_eq!(text(&samples[2]), &text(&samples[0])[..8]);
    // A text is another id than the number in it.
    assert_ne!(text(&samples[1])[..4], text(&samples[0])[..4]);
    assert_eq!(text(&samples[1])[4..8], text(&samples[0])[4..8]);
    let lengths: Vec<_> = samples.iter().map(|sample| text(sample).len()).collect();
    assert_eq!(lengths, [9, 11, 8, 3]);
    let scaled = config.replace("vllm-timed\"", "vllm-timed\", \"time-unit\": 0.001");
    assert_eq!(all(&scaled, trace)[3].arrival, Some(1_500_000));
}

#[test]
fn sessions_of_whole_prompts_are_not_added_up() {
    let row = |length: u32, ids: &str, more: &str| {
        format!(
            "{{\"session_id\": \"a\", \"timestamp\": 0, \"input_length\": {length}, \"output_length\": 2, \"hash_ids\": {ids}{more}}}\n"
        )
    };
    let config = r#"{"block-size": 4}"#;
    // The last block of the first prompt is partial, so the next prompt has another in its place.
    let rows = row(10, "[1, 2, 3]", "") + &row(16, "[1, 2, 4, 5]", "") + &row(6, "[1, 9]", "");
    let samples = all(config, &rows);
    let whole = |samples: &[Sample]| {
        for (sample, length) in samples.iter().zip([10, 16, 6]) {
            assert!(matches!(&sample.prompt, Prompt::Text(text) if text.len() == length));
            assert_eq!(sample.input_tokens, Some(length as u32));
        }
        assert_eq!(text(&samples[0])[..8], text(&samples[1])[..8]);
        assert_eq!(text(&samples[0])[..4], text(&samples[2])[..4]);
    };
    whole(&samples);
    assert_eq!(after(&samples[1]), [("line-1", 0)]);
    assert_eq!(after(&samples[2]), [("line-2", 0)]);
    whole(&all(r#"{"block-size": 4, "replay": "timestamps"}"#, &rows));
    // Other blocks are new ones, and the rows' own statement counts.
    let deltas = row(8, "[1, 2]", "") + &row(8, "[3, 4]", "");
    let stated = row(8, "[1, 2]", "")
        + &row(12, "[1, 2, 4]", ", \"context_mode\": \"deltas_without_responses\"");
    for rows in [deltas, stated] {
        let samples = all(config, &rows);
        assert!(matches!(&samples[0].prompt, Prompt::Messages(_)));
        assert!(matches!(&samples[1].prompt, Prompt::Continuation(_)));
    }
}

#[test]
fn bailian_sends_a_request_after_its_predecessor() {
    let row = |id: u32, parent: i32, time: u32| {
        format!(
            "{{\"chat_id\": {id}, \"parent_chat_id\": {parent}, \"timestamp\": {time}, \"input_length\": 4, \"output_length\": 1, \"hash_ids\": [{id}]}}\n"
        )
    };
    let rows = row(1, -1, 10) + &row(2, 1, 20) + &row(3, 2, 5) + &row(4, 3, 30);
    let config = r#"{"block-size": 4, "replay": "sessions"}"#;
    let mut dataset = open(config, &rows);
    let samples = rest(&mut dataset, 2);
    assert_eq!(ids(&samples), ["line-1", "line-2", "line-3", "line-4"]);
    assert_eq!(samples[0].after, []);
    assert_eq!(after(&samples[1]), [("line-1", 10_000)]);
    assert_eq!(after(&samples[2]), [("line-2", 0)]);
    assert_eq!(after(&samples[3]), [("line-3", 10_000)]);
    assert_eq!(
        remarks(&dataset),
        [(
            "Treatment::Repaired: a request recorded before its predecessor; it is sent after it"
                .to_owned(),
            1,
            "line 3".to_owned()
        )]
    );
    // By the trace's clock it arrives when it was recorded.
    let mut dataset = open(r#"{"block-size": 4}"#, &rows);
    let samples = rest(&mut dataset, 2);
    assert_eq!(ids(&samples), ["line-3", "line-1", "line-2", "line-4"]);
    assert_eq!(remarks(&dataset), []);
}

#[test]
fn weka_keeps_the_time_of_a_sub_agent_without_requests() {
    let session = concat!(
        "{\"id\": \"s\", \"block_size\": 4, \"requests\": [",
        "{\"t\": 0.0, \"type\": \"n\", \"in\": 4, \"out\": 1, \"hash_ids\": [1], \"api_time\": 1.0}, ",
        "{\"t\": 1.0, \"type\": \"subagent\", \"agent_id\": \"b\", \"duration_ms\": 7000, \"status\": \"completed\"}, ",
        "{\"t\": 9.0, \"type\": \"n\", \"in\": 4, \"out\": 1, \"hash_ids\": [1], \"think_time\": 1.0}]}\n"
    );
    let mut dataset = open("{}", session);
    let samples = rest(&mut dataset, 2);
    assert_eq!(after(&samples[1]), [("line-1-1", 8000)]);
    let [(reason, 1, line)] = &remarks(&dataset)[..] else {
        panic!("one remark");
    };
    assert!(reason.contains("a sub-agent without requests") && line == "line 1");
    let think = r#"{"use-think-time-only": true}"#;
    assert_eq!(after(&all(think, session)[1]), [("line-1-1", 8000)]);
    // Nothing waits for a sub-agent that runs beside.
    let beside = session.replace("completed", "async_launched");
    assert_eq!(after(&all(think, &beside)[1]), [("line-1-1", 1000)]);
}

/// The example of AIPerf's loader: A ends before the second request, B before the third, and C
/// after both. The recorder's `think_time` is the time since any agent's last end.
#[test]
fn weka_requests_wait_for_sub_agents_that_had_ended() {
    let request = |t: f64, took: f64, think: f64| {
        format!(
            r#"{{"t": {t}, "type": "n", "in": 4, "out": 1, "hash_ids": [1], "api_time": {took}, "think_time": {think}}}"#
        )
    };
    let agent = |id: &str, lasted: &str, took: f64| {
        format!(
            r#"{{"t": 1.0, "type": "subagent", "agent_id": "{id}", "duration_ms": {lasted}, "requests": [{}]}}"#,
            request(1.0, took, 0.0)
        )
    };
    let requests = [
        request(0.0, 1.0, 0.0),
        agent("A", "5000", 4.0),
        agent("B", "null", 11.5),
        agent("C", "23000", 23.0),
        request(6.0, 2.0, 0.25),
        request(20.0, 1.0, 7.5),
    ];
    let session =
        format!(r#"{{"id": "s", "block_size": 4, "requests": [{}]}}"#, requests.join(", "));
    let samples = all("{}", &session);
    assert_eq!(after(&samples[4]), [("line-1-1", 5000), ("line-1-2", 0)]);
    assert_eq!(after(&samples[5]), [("line-1-5", 12_000), ("line-1-3", 0)]);
    let samples = all(r#"{"use-think-time-only": true}"#, &session);
    assert_eq!(after(&samples[4]), [("line-1-1", 250), ("line-1-2", 0)]);
    assert_eq!(after(&samples[5]), [("line-1-5", 7500), ("line-1-3", 0)]);
}

#[test]
fn a_byte_order_mark_changes_nothing() {
    for (name, trace, config) in TRACES {
        for replay in ["sessions", "timestamps"] {
            if (name, replay) == ("mooncake-sessions", "timestamps") {
                continue;
            }
            let config = config
                .replace("\"replay\": \"sessions\"", "\"max-idle\": 9")
                .replacen('{', &format!("{{\"replay\": \"{replay}\", "), 1)
                .replace(", }", "}");
            let marked = all(&config, &format!("\u{feff}{trace}"));
            assert_eq!(marked, all(&config, trace), "{name}");
        }
    }
}
