use super::*;
use crate::chart::{Look, Width, svg};
use result::summary::Tokenizer;
use runs::outlook::{
    Cache, CacheSize, Due, End, Faulty, InFlight, Input, Lengths, Outlook, Output, RecordedRequest,
    RecordedSession, Remark, Said, Sessions, Shown, StandIns,
};
use statistics::Spread;

fn lengths(values: &[f64], whole: bool) -> Lengths {
    let mut spread = Spread::new(1.0);
    values.iter().for_each(|value| spread.add(*value));
    Lengths::new(&spread.figures().unwrap(), whole)
}

fn outlook() -> Outlook {
    Outlook {
        name: "chat".into(),
        model: "MODEL".into(),
        model_is_placeholder: true,
        backend: "openai 1.0.0".into(),
        dataset: "random 1.0.0".into(),
        tokenizer: Tokenizer {
            name: "bytes".into(),
            approximate: true,
            revision: None,
            found: false,
            template_tokens: None,
        },
        arrival: "poisson, 2/s".into(),
        end: End::Dataset,
        requests: 4,
        warmup: 1,
        faulty: Some(Faulty { count: 1, first: "too\u{1b}long".into() }),
        request_bytes: 2048,
        sessions: Sessions {
            count: 2,
            requests: Some(lengths(&[1.0, 3.0], true)),
            forks: 1,
            widest: 2,
            joins: 1,
            delays: Some(lengths(&[0.5, 2.0], false)),
            stand_ins: Some(StandIns { requests: 2, recorded: 1, made_up: 1, empty: 0 }),
        },
        input: Input {
            tokens: Some(lengths(&[10.0, 20.0, 30.0, 400.0], true)),
            by_dataset: 2,
            by_tokenizer: 2,
            without_template: 1,
            unknown: 0,
        },
        output: Output { tokens: Some(lengths(&[5.0, 5.0], true)), unlimited: 2 },
        due: Some(Due { seconds: lengths(&[0.0, 1.5], false), per_second: Some(4.0 / 3.0) }),
        users: None,
        classes: [("code".to_owned(), 3), ("chat".to_owned(), 1)].into(),
        cache: Some(Cache {
            page: 16,
            requests: 4,
            tokens: 460,
            cached: 115,
            sizes: vec![CacheSize { tokens: 4096, share: 0.125 }],
            share: 0.25,
            is_bounded: false,
        }),
        in_flight: InFlight::new(&[(0.0, 2.0, 100), (1.0, 4.0, 300), (2.0, 3.0, 50)]),
        recorded_sessions: vec![RecordedSession {
            name: "a".into(),
            requests: [(0.0, 2.0, false), (2.5, 4.0, true)]
                .map(|(start, end, is_sub_agents)| RecordedRequest { start, end, is_sub_agents })
                .into(),
        }],
        remarks: vec![Remark {
            what: "dropped".into(),
            reason: "fewer than two turns".into(),
            count: 3,
            first: Some("line 7".into()),
        }],
        digest: "ab".repeat(32),
        shown: vec![Shown {
            index: 0,
            id: "a".into(),
            input_tokens: Some(10),
            output_tokens: Some(5),
            prompt: vec![Said { role: Some("user".into()), text: "Hi\nthere".into(), left_out: 7 }],
        }],
    }
}

#[test]
fn bars_hold_every_value_once() {
    for (values, whole) in [
        (&[1.0, 2.0, 2.0, 100.0][..], true),
        (&[0.0, 0.001, 7.25], false),
        (&[5.0, 5.0], true),
        (&[1e6, 1e6 + 1.0], true),
        (&[0.1, 0.3, 0.30000000000000004], false),
    ] {
        let lengths = lengths(values, whole);
        let held: u64 = lengths.bars.iter().map(|bar| bar.count).sum();
        assert_eq!(held, values.len() as u64, "{values:?}");
        for pair in lengths.bars.windows(2) {
            assert_eq!(pair[0].to, pair[1].from, "{values:?}");
        }
        let (first, last) = (lengths.bars[0], *lengths.bars.last().unwrap());
        assert!(first.from <= lengths.min && lengths.max <= last.to, "{values:?}");
        assert!(first.count > 0 && last.count > 0, "{values:?}");
        if whole {
            assert!(lengths.bars.iter().all(|bar| bar.from.fract() == 0.0));
        }
    }
}

#[test]
fn the_text_is_complete_and_has_no_control_characters() {
    let text = text(&outlook());
    for line in [
        "What chat would send",
        "MODEL, a placeholder",
        "4: all of the dataset; the run would take more (see --num-prompts)",
        "1 request; the first: too long",
        "2, with 1 to 3, mean 2",
        "1 request with several that depend on it (at most 2), 1 that wait for several",
        "2 requests contain earlier answers, unknown before the run; this plan uses recorded ones (1) or made-up ones of about the requested length (1), so",
        "2 by the dataset, 2 by the tokenizer (1 without a chat template",
        "2 requests set no output limit (set --output-tokens)",
        "code 3, chat 1",
        "25 % of 460 prompt tokens",
        "3 dropped: fewer than two turns; the first: line 7",
        "request 0 (a, 10 prompt tokens, 5 output tokens)",
        "  | there",
        "7 characters left out",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn an_outlook_survives_json_and_has_charts() {
    let outlook = outlook();
    let json = serde_json::to_string(&outlook).unwrap();
    assert_eq!(serde_json::from_str::<Outlook>(&json).unwrap(), outlook);
    let charts = charts(&outlook);
    let names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
    let histograms = ["input-tokens", "output-tokens", "due", "session-requests", "delays"];
    let expected = [&histograms[..], &["in-flight", "sessions"]].concat();
    assert_eq!(names, expected);
    let page = page(&outlook).html();
    assert!(page.contains("Thin bars are requests of sub-agents"));
    assert!(page.contains("Tokens in flight") && page.contains("25 % of 460 prompt tokens"));
    for chart in &charts {
        let look = Look { width: Width::Wide, log: false, alone: None };
        assert!(svg(chart, look).starts_with("<svg"), "{}", chart.name);
        let [panel] = chart.panels.as_slice() else { panic!("{}", chart.name) };
        assert!(panel.marks[0].points.len() == chart.rows.labels.len());
    }
}
