//! Selection of the part of a trace to replay, and its speed.

use std::collections::BTreeSet;

use super::{after, all, arrival, ids, open, open_with, remarks, rest, text, trace};
use runner_plugin_testing::tokenizer::StandIn;

fn with(more: &str) -> String {
    format!(r#"{{"block-size": 4, {more}}}"#)
}

#[test]
fn times_are_scaled_and_pauses_are_shortened() {
    let arrivals = |more: &str| {
        let samples = all(&with(more), trace("mooncake"));
        samples.iter().filter_map(arrival).collect::<Vec<_>>()
    };
    assert_eq!(arrivals(r#""time-scale": 2"#), [0, 0, 1500, 4526]);
    assert_eq!(arrivals(r#""max-idle": 4"#), [0, 0, 3000, 7000]);
    assert_eq!(arrivals(r#""time-scale": 2, "max-idle": 2"#), [0, 0, 1500, 3500]);
    let mut dataset = open(r#"{"time-scale": 0.5, "max-idle": 10}"#, trace("weka"));
    let samples = rest(&mut dataset, 5);
    assert_eq!(after(&samples[6]), [("line-1-6", 10_000)]);
    assert_eq!(after(&samples[2]), [("line-1-2", 2000)]);
    let [(reason, 1, line)] = &remarks(&dataset)[..] else {
        panic!("{:?}", remarks(&dataset));
    };
    assert!(reason.contains("max-idle") && line == "line 1");
}

#[test]
fn a_window_is_of_the_times_of_requests_or_of_sessions() {
    let samples = all(&with(r#""window": {"from": 1, "to": 9}"#), trace("mooncake"));
    assert_eq!(ids(&samples), ["line-3"]);
    assert_eq!(arrival(&samples[0]), Some(2000));
    // A session belongs to the window with its first request.
    let config = with(r#""replay": "sessions", "window": {"to": 0.5}"#);
    let samples = all(&config, trace("bailian"));
    assert_eq!(ids(&samples), ["line-1", "line-3", "line-4", "line-5"]);
}

#[test]
fn a_smaller_share_is_part_of_a_larger_one() {
    let rows: String = (0..400)
        .map(|row| {
            format!(
                "{{\"session_id\": \"s{}\", \"timestamp\": {row}, \"input_length\": 3}}\n",
                row % 100
            )
        })
        .collect();
    let sessions = |share: f64, seed: u64| -> BTreeSet<String> {
        let config = format!(r#"{{"share": {share}}}"#);
        let mut dataset = open_with(&config, &rows, seed, StandIn).unwrap();
        let samples = rest(&mut dataset, 50);
        let names: BTreeSet<String> =
            samples.iter().map(|sample| sample.turn.as_ref().unwrap().session.clone()).collect();
        // Whole sessions.
        assert_eq!(samples.len(), names.len() * 4);
        names
    };
    let (few, many, every) = (sessions(0.1, 1), sessions(0.5, 1), sessions(1.0, 1));
    assert!(few.is_subset(&many) && many.is_subset(&every));
    assert_eq!(every.len(), 100);
    assert!((2..=20).contains(&few.len()), "{}", few.len());
    assert!((35..=65).contains(&many.len()), "{}", many.len());
    assert_ne!(many, sessions(0.5, 2));
    // A prompt does not depend on the other replayed rows.
    let config = r#"{"share": 0.5}"#;
    let half = rest(&mut open_with(config, &rows, 1, StandIn).unwrap(), 9);
    let whole = rest(&mut open_with("{}", &rows, 1, StandIn).unwrap(), 9);
    for sample in half {
        let same = whole.iter().find(|whole| whole.id == sample.id).unwrap();
        assert_eq!(text(&sample), text(same));
    }
}

#[test]
fn too_long_requests_are_dropped_with_a_remark() {
    let mut dataset = open(&with(r#""max-input": 11, "max-output": 8"#), trace("mooncake"));
    assert_eq!(ids(&rest(&mut dataset, 9)), ["line-1"]);
    assert_eq!(
        remarks(&dataset),
        [
            (
                "Treatment::Dropped: a prompt longer than `max-input`".to_owned(),
                2,
                "line 2".to_owned()
            ),
            (
                "Treatment::Dropped: an answer longer than `max-output`".to_owned(),
                1,
                "line 3".to_owned()
            ),
        ]
    );
    // A session ends before it.
    let config = with(r#""replay": "sessions", "max-input": 13"#);
    let mut dataset = open(&config, trace("bailian"));
    assert_eq!(ids(&rest(&mut dataset, 9)), ["line-1", "line-2", "line-6"]);
    let remarks = remarks(&dataset);
    assert!(remarks.iter().any(|(reason, count, line)| {
        reason.contains("after a dropped request") && *count == 2 && line == "line 4"
    }));
}

#[test]
fn a_session_waits_for_its_remaining_sub_agents() {
    let mut dataset = open(r#"{"max-input": 10}"#, trace("weka"));
    let samples = rest(&mut dataset, 9);
    assert_eq!(ids(&samples), ["line-1-1", "line-1-2", "line-1-4", "line-1-5", "line-2-1"]);
    let mut dataset = open(r#"{"max-input": 20, "max-output": 2}"#, trace("weka"));
    assert_eq!(rest(&mut dataset, 9).len(), 0);
    let without = trace("weka").replace(r#""in": 12, "out": 2"#, r#""in": 12, "out": 20"#);
    let samples = all(r#"{"max-output": 9}"#, &without);
    assert_eq!(ids(&samples)[..5], ["line-1-1", "line-1-2", "line-1-4", "line-1-5", "line-1-6"]);
    let joined = [("line-1-1", 5000), ("line-1-2", 0), ("line-1-4", 0), ("line-1-5", 0)];
    assert_eq!(after(&samples[4]), joined);
}

#[test]
fn too_long_prompts_are_cut_with_a_remark() {
    let config = with(r#""max-input": 11, "max-output": 8, "on-too-long": "truncate""#);
    let mut dataset = open(&config, trace("mooncake"));
    let samples = rest(&mut dataset, 9);
    let whole = all(&with(r#""share": 1"#), trace("mooncake"));
    for (cut, whole) in samples.iter().zip(&whole) {
        assert_eq!(text(cut), &text(whole)[..text(whole).len().min(11)]);
        assert_eq!(cut.output_tokens, whole.output_tokens.map(|tokens| tokens.min(8)));
        assert_eq!(cut.input_tokens, Some(text(cut).len() as u32));
    }
    let counts: Vec<u64> = remarks(&dataset).iter().map(|remark| remark.1).collect();
    assert_eq!(counts, [2, 1]);
    // Recorded texts too; conversations cannot be cut.
    let config = with(r#""max-input": 8, "on-too-long": "truncate""#);
    let mut dataset = open(&config, trace("mooncake-sessions"));
    let samples = rest(&mut dataset, 9);
    assert_eq!(ids(&samples), ["line-1", "line-3", "line-4", "line-2", "line-7"]);
    assert_eq!(text(&samples[3]), "What is ");
    assert!(
        remarks(&dataset)
            .iter()
            .any(|(reason, count, _)| reason.contains("cannot be cut") && *count == 1)
    );
}

#[test]
fn a_trace_out_of_order_is_replayed_in_order() {
    let rows =
        "{\"timestamp\": 900, \"input_length\": 3}\n{\"timestamp\": 100, \"input_length\": 4}\n";
    let samples = all("{}", rows);
    assert_eq!(ids(&samples), ["line-2", "line-1"]);
    assert_eq!(samples.iter().map(arrival).collect::<Vec<_>>(), [Some(0), Some(800)]);
}

#[test]
fn a_long_trace_is_read_from_beginning_to_end() {
    // Longer than a piece of the file, and than the part that its length is estimated from.
    let mut rows = String::from("TIMESTAMP,ContextTokens,GeneratedTokens\n");
    for row in 0..40_000 {
        let (minute, second) = (row / 600, row % 600);
        rows += &format!(
            "2024-05-10 {:02}:{:02}:{:02}.{}00000+00:00,{},1\n",
            minute / 60,
            minute % 60,
            second / 10,
            second % 10,
            1 + row % 3
        );
    }
    assert!(rows.len() > 5 << 18);
    let samples = all("{}", &rows);
    assert_eq!(samples.len(), 40_000);
    for (row, sample) in samples.iter().enumerate() {
        assert_eq!(sample.id, format!("line-{}", row + 2));
        assert_eq!(arrival(sample), Some(row as u64 * 100));
        assert_eq!(text(sample).len(), 1 + row % 3);
    }
}
