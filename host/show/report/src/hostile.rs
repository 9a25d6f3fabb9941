//! Records that no run writes: instants near the end of time, times that go backwards, absurd
//! numbers of tokens. All of them are drawn in every form, and none panics, overflows or goes on
//! without end.

use std::convert::Infallible;

use proptest::prelude::*;

use crate::chart::{Look, Theme, Width, svg};
use crate::charts::fixture::{run_of, sides_of};
use crate::charts::{Charts, RunView};
use crate::compatible::aiperf::{Export, Lines};
use crate::compatible::{self, Compatible, Keep, Tool, inferencex};
use crate::exchanges::reply;
use crate::{csv, json, page, published, text};
use model::exchange::{Class, Event, Exchange, Kind, Outcome, Phase, Speculation};
use model::exchange::{ServerTimings, Turn, Usage};
use model::units::Nanos;
use runs::folder;

fn instant() -> impl Strategy<Value = Nanos> {
    let second = 1_000_000_000u64;
    prop_oneof![
        4 => 0..20 * second,
        1 => Just(0),
        1 => (0..20 * second).prop_map(|before| u64::MAX - before),
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ]
    .prop_map(Nanos)
}

fn count() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![
        Just(None),
        Just(Some(0)),
        (0u32..100).prop_map(Some),
        Just(Some(u32::MAX)),
        any::<u32>().prop_map(Some),
    ]
}

const KINDS: [Kind; 8] = [
    Kind::Text,
    Kind::Role,
    Kind::Reasoning,
    Kind::Tool,
    Kind::Usage,
    Kind::Finish,
    Kind::Failure,
    Kind::End,
];

const TEXTS: [&str; 4] = ["", "=1+1", "\u{1b}[2J\u{202e}<b>|\n", "a,\"b\""];

fn any_record() -> impl Strategy<Value = Exchange> {
    let maybe = || prop::option::weighted(0.8, instant());
    let event = (instant(), 0..KINDS.len(), count(), count());
    let events = prop::collection::vec(event, 0..6);
    let times = (instant(), [maybe(), maybe(), maybe(), maybe(), maybe()]);
    let counts = [count(), count(), count(), count(), count(), count()];
    let index = prop_oneof![0..50u64, Just(u64::MAX), any::<u64>()];
    let rest = (index, any::<bool>(), any::<bool>(), 0..TEXTS.len(), any::<u16>());
    (events, times, counts, rest).prop_map(
        |(events, (due, [granted, sent, first, headers, ended]), counts, rest)| {
            let (index, measured, failed, words, status) = rest;
            let mut exchange = reply(index, 0, &[]);
            exchange.phase = if measured { Phase::Measure } else { Phase::Warmup };
            exchange.due = due;
            exchange.granted = granted;
            exchange.sent = sent;
            exchange.written = sent;
            exchange.first_byte = first;
            exchange.headers = headers;
            exchange.ended = ended;
            exchange.read_lag = first;
            exchange.status = Some(status);
            for (at, kind, tokens, bytes) in events {
                exchange.events.push(Event {
                    at,
                    kind: KINDS[kind],
                    tokens,
                    bytes: bytes.unwrap_or_default(),
                });
            }
            let [input, cached, output, reasoning, requested, turn] = counts;
            exchange.usage = Some(Usage {
                input_tokens: input,
                cached_input_tokens: cached,
                output_tokens: output,
                reasoning_tokens: reasoning,
                draft_tokens: turn,
                accepted_draft_tokens: requested,
                input_image_tokens: input,
                input_video_tokens: cached,
                input_audio_tokens: reasoning,
                output_audio_tokens: output,
            });
            exchange.timings = Some(ServerTimings {
                queue: granted,
                prefill: sent,
                first_token: first,
                decode: ended,
            });
            exchange.speculation = output.map(|steps| Speculation {
                steps,
                steps_by_accepted: counts.iter().map_while(|count| *count).collect(),
            });
            exchange.sample.input_tokens = cached;
            exchange.sample.output_tokens = requested;
            exchange.sample.request_bytes = index;
            exchange.sample.class = Some(TEXTS[words].to_owned());
            exchange.sample.turn =
                turn.map(|index| Turn { session: TEXTS[words].to_owned(), index });
            exchange.sample.id = TEXTS[words].to_owned();
            exchange.finish = Some(TEXTS[words].to_owned());
            exchange.output = TEXTS[words].to_owned();
            if failed {
                exchange.outcome = Outcome::Incomplete {
                    class: Class::Truncated,
                    reason: None,
                    message: TEXTS[words].to_owned(),
                };
            }
            exchange
        },
    )
}

fn draw(runs: &[RunView], exchanges: &[Vec<Exchange>]) {
    let charts = Charts::new(runs);
    for chart in charts.iter() {
        for (width, log) in [(Width::Wide, false), (Width::Narrow, true)] {
            let alone = Some(Theme::Light);
            let drawing = svg(chart, Look { width, log, alone });
            assert!(drawing.len() < 2_000_000 && !drawing.contains("NaN"));
        }
    }
    let (sides, mut options) = sides_of(runs, exchanges);
    options.allowed = compare::Kind::ALL.to_vec();
    let compared = compare::compare(&sides, &options);
    if let Ok(compared) = &compared {
        assert!(!crate::compared::page(compared).text().is_empty());
        assert!(serde_json::to_string(compared).is_ok());
    }
    assert!(!page::page(runs, Some(&compared)).html().is_empty());
}

/// Shows one run by itself, in every form.
fn show(run: &RunView, exchanges: &[Exchange]) {
    let facts = folder::facts(&run.reported.plan, Default::default(), false);
    let summary = &run.reported.summary;
    let block = text::text(summary);
    assert!(!block.contains("NaN"), "{block}");
    assert!(!json::json(summary).unwrap().is_empty());
    let mut table = Vec::new();
    csv::csv(&mut table, &facts, exchanges).unwrap();
    for cell in String::from_utf8(table).unwrap().split([',', '\n']) {
        let formula = cell.trim_matches('"').starts_with(['=', '@']);
        assert!(!formula, "{cell:?}");
    }
    let shown = published::PublishedRun { reported: run.reported.clone(), block };
    assert!(!published::page(&[shown]).markdown().is_empty());
    for tool in [Tool::Vllm, Tool::Sglang, Tool::Lmdeploy] {
        let open = || Ok::<_, Infallible>(exchanges.iter().cloned().map(Ok));
        let Ok(seen) = Compatible::read(tool, &run.reported, &facts, Keep::All, open);
        let _ = match tool {
            Tool::Vllm => compatible::vllm::json(&seen) + &text::vllm::text(&seen),
            Tool::Sglang => compatible::sglang::json(&seen) + &text::sglang::sglang(&seen),
            Tool::Lmdeploy | Tool::Aiperf => text::sglang::lmdeploy(&seen),
        };
    }
    let lines = Lines::new(&run.reported, &facts, Some(u64::MAX));
    let _: Vec<String> = exchanges.iter().filter_map(|exchange| lines.line(exchange)).collect();
    let all = exchanges.iter().cloned().map(Ok::<_, Infallible>);
    let Ok(export) = Export::read(&run.reported, &facts, Some(u64::MAX), all);
    assert!(!export.json().is_empty() && inferencex::row(&export).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_records_are_drawn(
        one in prop::collection::vec(any_record(), 0..40),
        other in prop::collection::vec(any_record(), 0..40),
    ) {
        let exchanges = [one, other];
        let runs = [run_of("one", &exchanges[0]), run_of("other", &exchanges[1])];
        for (run, exchanges) in runs.iter().zip(&exchanges) {
            show(run, exchanges);
        }
        draw(&runs, &exchanges);
    }
}
