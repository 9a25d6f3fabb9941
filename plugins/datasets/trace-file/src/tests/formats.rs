//! Samples from each format's rows.

use runner_plugin::{Prompt, Sample};

use super::{TRACES, after, all, arrival, ids, open, remarks, rest, text, trace};

#[test]
fn spare_samples_change_nothing() {
    for (name, trace, config) in TRACES {
        let whole = rest(&mut open(config, trace), u32::MAX);
        assert!(!whole.is_empty(), "{name}");
        let mut dataset = open(config, trace);
        assert_eq!(dataset.spares, 0);
        runner_plugin::Dataset::spare(&mut dataset, 3).unwrap();
        assert_eq!(whole, rest(&mut dataset, 4), "{name}");
    }
}

#[test]
fn rows_without_hashes_are_their_own() {
    let rows = "{\"input_length\": 8}\n{\"input_length\": 8}\n";
    let samples = all("{}", rows);
    assert_ne!(text(&samples[0]), text(&samples[1]));
    assert_eq!(samples[0].output_tokens, None);
    assert_eq!(samples[0].arrival, None);
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
fn bailian_by_times_is_every_request_by_itself() {
    let samples = all(r#"{"block-size": 4}"#, trace("bailian"));
    assert!(samples.iter().all(|sample| sample.after.is_empty()));
    assert_eq!(arrival(&samples[2]), Some(4500));
    assert_eq!(samples[4].turn.as_ref().unwrap().session, "159");
    assert_eq!(samples[4].turn.as_ref().unwrap().index, 3);
}

#[test]
fn weka_shares_global_ids_between_sessions() {
    let samples = all("{}", trace("weka"));
    assert_ne!(text(&samples[7])[..8], text(&samples[0])[..8]);
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
fn tracelab_prompts_do_not_depend_on_the_replay() {
    let samples = all("{}", trace("tracelab"));
    let by_time = all(r#"{"replay": "timestamps"}"#, trace("tracelab"));
    assert_eq!(text(&by_time[2]), text(&samples[2]));
}

#[test]
fn azures_older_traces_have_no_pictures() {
    let old = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4,2\n";
    assert_eq!(all("{}", old)[0].class, None);
}

#[test]
fn vllm_timed_traces_may_have_another_unit_of_time() {
    let (_, trace, config) = TRACES[7];
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
