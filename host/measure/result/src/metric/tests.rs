use proptest::prelude::*;

use super::*;
use crate::summary::first_token::Part;
use crate::summary::fixture::{any_exchange, failed, ms, output_usage, reply};
use model::exchange::Kind::{Audio, End, Finish, Reasoning, Role, Text, Tool, Usage};
use model::exchange::{Connection, Exchange, ServerTimings, Speculation};
use model::units::Nanos;

const NONE: [f64; 0] = [];

fn samples(name: &str, exchange: &Exchange) -> Vec<f64> {
    samples_of(name, &Reading::new(exchange, true, None))
}

fn samples_of(name: &str, reading: &Reading<'_>) -> Vec<f64> {
    let mut samples = Vec::new();
    match by_name(name).unwrap().measure {
        Measure::One(measure) => samples.extend(measure(reading)),
        Measure::Pooled(walk) => walk(reading, &mut |_, value, times| {
            let sample = value as f64 / by_name(name).unwrap().unit.scale();
            samples.extend(std::iter::repeat_n(sample, times as usize));
        }),
        Measure::Session(_) => {}
    }
    samples
}

/// A chat reply that begins with a role, reasons, answers and ends with a marker.
fn chat() -> Exchange {
    let mut exchange = reply(
        0,
        1000,
        &[
            (1050, Role, None, 0),
            (1100, Reasoning, Some(1), 0),
            (1120, Reasoning, Some(1), 4),
            (1160, Text, Some(3), 9),
            (1190, Text, Some(0), 0),
            (1220, Text, Some(2), 6),
            (1230, Finish, None, 0),
            (1235, Usage, None, 0),
            (1240, End, None, 0),
        ],
    );
    exchange.usage = output_usage(8);
    exchange.due = ms(980);
    exchange.released = Some(ms(975));
    exchange.sample.parents = vec![7, 8];
    exchange.granted = Some(ms(990));
    exchange.written = Some(ms(1001));
    exchange.input_sent = Some(ms(1060));
    exchange.first_byte = Some(ms(1040));
    exchange.headers = Some(ms(1045));
    exchange.ended = Some(ms(1248));
    exchange.read_lag = Some(ms(2));
    exchange.connection = Some(Connection {
        reused: false,
        waited: true,
        begun: ms(991),
        looked_up: Some(ms(993)),
        connected: ms(996),
        secured: Some(ms(1000)),
    });
    exchange
}

#[test]
fn every_definition_by_hand() {
    let mut chat = chat();
    let usage = chat.usage.as_mut().unwrap();
    [usage.draft_tokens, usage.accepted_draft_tokens] = [12, 3].map(Some);
    [usage.input_image_tokens, usage.input_video_tokens] = [576, 48].map(Some);
    usage.input_audio_tokens = Some(0);
    chat.sample.audio_duration = Some(ms(2400));
    chat.timings = Some(ServerTimings {
        queue: Some(ms(7)),
        prefill: Some(ms(60)),
        first_token: Some(ms(90)),
        decode: Some(ms(110)),
    });
    chat.speculation = Some(Speculation { steps: 4, steps_by_accepted: Vec::new() });
    let third = 40.0 / 3.0;
    let cases = [
        ("ttft", vec![120.0]),
        ("ttft-any", vec![50.0]),
        ("ttft-reasoning", vec![120.0]),
        ("ttft-answer", vec![160.0]),
        ("ttft-from-due", vec![140.0]),
        ("ttft-client", vec![11.0]),
        ("ttft-connection", vec![9.0]),
        ("ttft-network", vec![30.0]),
        ("ttft-front-end", vec![23.0]),
        ("ttft-network-and-front-end", vec![]),
        ("ttft-queue", vec![7.0]),
        ("ttft-prefill", vec![60.0]),
        ("ttft-from-input", vec![60.0]),
        ("ttft-with-connect", vec![129.0]),
        ("ttft-second", vec![40.0]),
        ("ttfa", vec![]),
        ("e2e", vec![240.0]),
        ("e2e-last-token", vec![220.0]),
        ("e2e-usage", vec![235.0]),
        ("e2e-end", vec![248.0]),
        ("e2e-from-due", vec![260.0]),
        ("tpot", vec![120.0 / 7.0]),
        ("tpot-last-token", vec![100.0 / 7.0]),
        ("tpot-usage", vec![115.0 / 7.0]),
        ("tpot-after-first-event", vec![100.0 / 7.0]),
        ("tpot-with-first", vec![27.5]),
        ("normalized-latency", vec![31.0]),
        ("itl", vec![40.0, 60.0]),
        ("itl-token", vec![20.0, third, third, third, 30.0, 30.0]),
        ("itl-dealt", vec![20.0, third, third, third, 30.0, 30.0]),
        ("itl-max", vec![60.0]),
        ("stall-share", vec![]),
        ("output-speed", vec![8.0 / 0.24]),
        ("decode-speed", vec![70.0]),
        ("prefill-speed", vec![]),
        ("tokens-per-event", vec![8.0 / 3.0]),
        ("decoded-tokens-per-event", vec![3.5]),
        ("event-tokens", vec![1.0, 3.0, 2.0]),
        ("audio-duration", vec![]),
        ("real-time-factor", vec![]),
        ("inverse-real-time-factor", vec![]),
        ("input-audio-duration", vec![2400.0]),
        ("input-real-time-factor", vec![0.1]),
        ("inverse-input-real-time-factor", vec![10.0]),
        ("send-lag", vec![10.0]),
        ("queue", vec![10.0]),
        ("connection-wait", vec![9.0]),
        ("lookup", vec![2.0]),
        ("connect", vec![3.0]),
        ("tls", vec![4.0]),
        ("upload", vec![1.0]),
        ("time-to-first-byte", vec![40.0]),
        ("time-to-headers", vec![45.0]),
        ("read-lag", vec![2.0]),
        ("server-queue", vec![7.0]),
        ("server-prefill", vec![60.0]),
        ("server-ttft", vec![90.0]),
        ("server-decode", vec![110.0]),
        ("gateway-overhead", vec![]),
        ("input-tokens", vec![]),
        ("output-tokens", vec![8.0]),
        ("cached-input-tokens", vec![]),
        ("reasoning-tokens", vec![]),
        ("draft-tokens", vec![12.0]),
        ("accepted-draft-tokens", vec![3.0]),
        ("draft-acceptance", vec![0.25]),
        ("acceptance-length", vec![1.75]),
        ("input-image-tokens", vec![576.0]),
        ("input-video-tokens", vec![48.0]),
        ("input-audio-tokens", vec![0.0]),
        ("output-audio-tokens", vec![]),
        ("parent-wait", vec![5.0]),
    ];
    let of_sessions = CATALOGUE.iter().filter(|metric| metric.of == Of::Session);
    assert_eq!(cases.len() + of_sessions.count(), CATALOGUE.len());
    for (name, expected) in cases {
        let got = samples(name, &chat);
        assert_eq!(got.len(), expected.len(), "{name}: {got:?}");
        for (got, expected) in got.iter().zip(&expected) {
            // Gaps in equal parts are whole nanoseconds.
            let off =
                if ["itl-token", "itl-dealt"].contains(&name) { 1e-6 } else { 1e-12 * expected };
            assert!((got - expected).abs() <= off, "{name}: {got} is not {expected}");
        }
    }
    assert_eq!(samples("itl-token", &chat).iter().sum::<f64>(), 120.0, "the parts make the whole");
}

/// Sound has no bytes of text, and is a part of the answer all the same.
#[test]
fn an_answer_in_sound() {
    let mut spoken = reply(
        0,
        1000,
        &[
            (1010, Role, None, 0),
            (1100, Audio, None, 0),
            (1150, Text, None, 12),
            (1180, Audio, None, 0),
            (1300, Audio, None, 0),
            (1400, End, None, 0),
        ],
    );
    spoken.audio_duration = Some(ms(1600));
    for (name, expected) in [
        ("ttft", 100.0),
        ("ttfa", 100.0),
        ("ttft-answer", 150.0),
        ("ttft-second", 50.0),
        ("e2e", 400.0),
        ("e2e-last-token", 300.0),
        ("itl-max", 120.0),
        ("audio-duration", 1600.0),
        ("real-time-factor", 0.25),
        ("inverse-real-time-factor", 4.0),
    ] {
        assert_eq!(samples(name, &spoken), [expected], "{name}");
    }
    assert_eq!(samples("itl", &spoken), [50.0, 30.0, 120.0]);
    // A sound without length has no factor, and it takes no time at all to hear.
    spoken.audio_duration = Some(Nanos::ZERO);
    assert_eq!(samples("real-time-factor", &spoken), NONE);
    assert_eq!(samples("inverse-real-time-factor", &spoken), [0.0]);
    spoken.audio_duration = None;
    assert_eq!(samples("audio-duration", &spoken), NONE);
    assert_eq!(samples("inverse-real-time-factor", &spoken), NONE);
}

/// A server that states queue and prefill states their sum too, but not the time before the queue;
/// the list of steps gives their accepted tokens more exactly than a count.
#[test]
fn reads_a_servers_own_timings() {
    let mut exchange = chat();
    let names = ["server-queue", "server-prefill", "server-ttft", "server-decode"];
    for name in names {
        assert_eq!(samples(name, &exchange), NONE, "{name}");
    }
    for (queue, prefill, ttft) in [
        (Some(2), Some(30), Some(32)),
        (Some(0), Some(0), Some(0)),
        (None, Some(30), None),
        (Some(2), None, None),
    ] {
        exchange.timings = Some(ServerTimings {
            queue: queue.map(ms),
            prefill: prefill.map(ms),
            ..ServerTimings::default()
        });
        let ttft: Vec<f64> = ttft.map(f64::from).into_iter().collect();
        assert_eq!(samples("server-ttft", &exchange), ttft);
        assert_eq!(samples("server-decode", &exchange), NONE);
    }
    // The parts of the time to first token add up to it, and equal the times that the server
    // reports.
    exchange.timings = Some(ServerTimings {
        queue: Some(ms(5)),
        prefill: Some(ms(10)),
        ..ServerTimings::default()
    });
    let parts: f64 = Part::ALL.into_iter().flat_map(|part| samples(part.metric(), &exchange)).sum();
    assert_eq!(samples("ttft-from-due", &exchange), [parts]);
    assert_eq!(samples("ttft-queue", &exchange), [5.0]);
    assert_eq!(samples("ttft-prefill", &exchange), [10.0]);
    assert_eq!(samples("ttft-network", &exchange), NONE);
    let length = |exchange: &Exchange| samples("acceptance-length", exchange);
    for (steps, list, accepted, expected) in [
        (4, vec![1, 1, 2], None, Some(2.25)),
        (4, vec![1, 1, 2], Some(99), Some(2.25)),
        (4, vec![], Some(6), Some(2.5)),
        (4, vec![], None, None),
        (0, vec![0, 0], Some(0), None),
    ] {
        exchange.speculation = Some(Speculation { steps, steps_by_accepted: list });
        exchange.usage.as_mut().unwrap().accepted_draft_tokens = accepted;
        let expected: Vec<f64> = expected.into_iter().collect();
        assert_eq!(length(&exchange), expected, "{:?}", exchange.speculation);
    }
    exchange.speculation = None;
    assert_eq!(length(&exchange), NONE);
}

#[test]
fn a_whole_body_has_an_end_but_no_first_token() {
    let chat = chat();
    let reading = Reading::new(&chat, false, None);
    let names = CATALOGUE.iter().map(|metric| metric.name);
    let measured: Vec<&str> = names.filter(|name| !samples_of(name, &reading).is_empty()).collect();
    let expected = "e2e e2e-last-token e2e-end e2e-from-due tpot-with-first normalized-latency \
        output-speed send-lag queue connection-wait lookup connect tls upload time-to-first-byte \
        time-to-headers read-lag output-tokens parent-wait";
    assert_eq!(measured.join(" "), expected);
    reading.each_token_arrival(|at, _| panic!("a token at {at:?}"));
}

#[test]
fn an_answer_of_empty_pieces_has_a_first_token_but_no_gaps() {
    let exchange = reply(0, 0, &[(5, Text, None, 0), (9, Tool, None, 0), (10, End, None, 0)]);
    assert_eq!(samples("ttft", &exchange), [5.0]);
    assert_eq!(samples("e2e-last-token", &exchange), [9.0]);
    assert_eq!(samples("ttft-answer", &exchange), NONE);
    assert_eq!(samples("itl", &exchange), NONE);
}

#[test]
fn one_token_has_no_time_per_further_token() {
    let mut exchange = reply(0, 0, &[(5, Text, None, 2), (7, End, None, 0)]);
    for tokens in [0, 1] {
        exchange.usage = output_usage(tokens);
        assert_eq!(samples("tpot", &exchange), NONE, "{tokens}");
    }
    exchange.usage = output_usage(2);
    assert_eq!(samples("tpot", &exchange), [2.0]);
}

#[test]
fn an_unsent_request_has_no_latency() {
    let mut exchange = failed(reply(0, 0, &[]), model::exchange::Class::NotSent, "");
    exchange.sent = None;
    for metric in CATALOGUE {
        assert_eq!(samples(metric.name, &exchange), NONE, "{}", metric.name);
    }
}

#[test]
fn gaps_by_the_token_need_the_servers_word() {
    let mut chat = chat();
    chat.events.tokens.clear();
    assert_eq!(samples("itl-token", &chat), NONE);
    // 8 tokens to pieces of 4, 9 and 6 bytes: one each, and 1, 2 and 2 more by bytes.
    let expected: Vec<f64> = [[40.0 / 3.0; 3], [20.0; 3]].concat();
    let got = samples("itl-dealt", &chat);
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() <= 1e-6, "{got} is not {expected}");
    }
}

fn counted(exchange: &Exchange) -> Option<(u32, Source)> {
    count::output(exchange, Some(9)).map(|count| (count.tokens, count.source))
}

#[test]
fn an_open_connection_takes_no_time() {
    let mut exchange = chat();
    let connection = exchange.connection.as_mut().unwrap();
    (connection.reused, connection.waited) = (true, false);
    for name in ["connection-wait", "lookup", "connect", "tls"] {
        assert_eq!(samples(name, &exchange), NONE, "{name}");
    }
    assert_eq!(samples("ttft-with-connect", &exchange), [120.0]);
    // Opened ahead of need: it took its time, but nobody waited.
    exchange.connection.as_mut().unwrap().reused = false;
    assert_eq!(samples("connect", &exchange), [3.0]);
    assert_eq!(samples("connection-wait", &exchange), NONE);
}

#[test]
fn a_server_cannot_order_memory_by_the_token() {
    let pieces = [(1, Text, Some(1), 1), (5, Text, Some(u32::MAX), 1), (6, End, None, 0)];
    let exchange = reply(0, 0, &pieces);
    let reading = Reading::new(&exchange, true, None);
    let mut shown = Vec::new();
    reading.token_gaps(&mut |_, gap, times| shown.push((gap, times)));
    // 4 ms among four thousand million tokens.
    assert_eq!(shown, [(0, 4_290_967_295), (1, 4_000_000)]);
}

#[test]
fn sources_of_output_tokens_in_their_order() {
    let mut exchange = reply(0, 0, &[(1, Text, Some(2), 1), (2, Text, Some(3), 1)]);
    exchange.sample.output_tokens = Some(7);
    exchange.finish = Some("length".into());
    exchange.usage = output_usage(6);
    assert_eq!(counted(&exchange), Some((6, Source::Usage)));
    exchange.usage = None;
    assert_eq!(counted(&exchange), Some((5, Source::Pieces)));
    exchange.events.tokens[1] = None;
    assert_eq!(counted(&exchange), Some((7, Source::Length)));
    exchange.finish = Some("stop".into());
    assert_eq!(counted(&exchange), Some((9, Source::Retokenized)));
    assert_eq!(count::output(&exchange, None), None);
}

/// The server's usage is of all answers; the length is the requested length of each.
#[test]
fn several_answers_are_counted_once() {
    let mut exchange = reply(0, 0, &[(1, Text, None, 1), (2, Text, None, 1)]);
    exchange.choices = vec!["another".into()];
    exchange.sample.output_tokens = Some(7);
    exchange.finish = Some("length".into());
    // Which answer the reason is of is not on record, so the length says nothing.
    assert_eq!(counted(&exchange), Some((9, Source::Retokenized)));
    exchange.usage = output_usage(14);
    assert_eq!(counted(&exchange), Some((14, Source::Usage)));
}

/// A reply that reasons and then calls a tool: both are output, and there is no answer in text.
#[test]
fn a_tool_call_is_output() {
    let mut exchange = reply(
        0,
        1000,
        &[
            (1010, Role, None, 0),
            (1100, Reasoning, Some(1), 4),
            (1150, Tool, Some(3), 20),
            (1180, Tool, Some(2), 9),
            (1190, End, None, 0),
        ],
    );
    exchange.usage = output_usage(6);
    for (name, expected) in [
        ("ttft-any", vec![10.0]),
        ("ttft", vec![100.0]),
        ("ttft-reasoning", vec![100.0]),
        ("ttft-answer", vec![]),
        ("itl", vec![50.0, 30.0]),
        ("e2e-last-token", vec![180.0]),
        ("event-tokens", vec![3.0, 2.0]),
        ("output-tokens", vec![6.0]),
    ] {
        assert_eq!(samples(name, &exchange), expected, "{name}");
    }
    let spread: f64 = samples("itl-token", &exchange).iter().sum();
    assert!((spread - 80.0).abs() < 1e-9, "{spread}");
}

#[test]
fn a_requested_length_counts_if_the_server_stopped_for_it() {
    for word in ["length", "LENGTH", "max_tokens", "max_output_tokens", "limit"] {
        assert!(count::stopped_for_length(word), "{word}");
    }
    for word in ["stop", "eos", "end_turn", "abort", ""] {
        assert!(!count::stopped_for_length(word), "{word}");
    }
}

#[test]
fn deals_unstated_tokens_by_bytes() {
    let mut exchange = reply(
        0,
        0,
        &[
            (1, Role, None, 0),
            (2, Text, None, 2),
            (3, Text, None, 5),
            (4, Text, None, 1),
            (5, End, None, 0),
        ],
    );
    exchange.usage = output_usage(4);
    let dealt = |exchange: &Exchange| {
        let reading = Reading::new(exchange, true, None);
        let mut dealt = Vec::new();
        reading.each_token_arrival(|at, tokens| dealt.push((at.0 / 1_000_000, tokens)));
        dealt
    };
    assert_eq!(dealt(&exchange), [(2, 1), (3, 2), (4, 1)]);
    exchange.usage = output_usage(3);
    assert_eq!(dealt(&exchange), [(2, 1), (3, 1), (4, 1)], "one to each");
    exchange.usage = output_usage(2);
    assert_eq!(dealt(&exchange), [(2, 1), (3, 1), (4, 0)], "by bytes");
    exchange.usage = output_usage(4);
    exchange.events.bytes.fill(0);
    assert_eq!(dealt(&exchange), [(2, 1), (3, 2), (4, 1)]);
    exchange.events.bytes = vec![0, u32::MAX, u32::MAX, u32::MAX, 0];
    exchange.usage = output_usage(u32::MAX);
    let third = u64::from(u32::MAX / 3);
    assert_eq!(dealt(&exchange), [(2, third), (3, third), (4, third)]);
    exchange.usage = None;
    assert_eq!(dealt(&exchange), [], "an unknown number is not dealt");
    exchange.events.tokens = vec![None, Some(7), Some(0), Some(1), None];
    assert_eq!(dealt(&exchange), [(2, 7), (3, 0), (4, 1)]);
}

#[test]
fn names_are_unique_and_entries_complete() {
    for (i, metric) in CATALOGUE.iter().enumerate() {
        let name = metric.name;
        let mut before = CATALOGUE[..i].iter();
        assert!(before.all(|other| other.name != name), "{name}");
        assert!(![metric.definition, metric.equals].contains(&""), "{name}");
    }
}

proptest! {
    /// The identity behind the headline: all time after the first token is spread over the rest.
    #[test]
    fn e2e_is_ttft_and_the_further_tokens(exchange in any_exchange(0)) {
        let of = |name| samples(name, &exchange).first().copied();
        let n = of("output-tokens").unwrap_or(0.0);
        if let (Some(ttft), Some(tpot), Some(e2e)) = (of("ttft"), of("tpot"), of("e2e")) {
            let sum = ttft + tpot * (n - 1.0);
            prop_assert!((e2e - sum).abs() <= 1e-9 * e2e.max(1.0), "{e2e} != {sum}");
        } else {
            let output = exchange.events.kind.iter().any(|kind| kind.is_output());
            prop_assert!(n <= 1.0 || !output, "a TPOT was due");
        }
    }

    /// Gaps between pieces are the time from the first to the last of them.
    #[test]
    fn gaps_sum_to_the_time_between_first_and_last_piece(exchange in any_exchange(0)) {
        let gaps = samples("itl", &exchange);
        if !gaps.is_empty() {
            let between = samples("e2e-last-token", &exchange)[0] - samples("ttft", &exchange)[0];
            prop_assert!((gaps.iter().sum::<f64>() - between).abs() <= 1e-6);
        }
    }

    /// Gaps by the token are the same time in more parts.
    #[test]
    fn gaps_by_the_token_sum_to_the_time_between_first_and_last(exchange in any_exchange(0)) {
        let reading = Reading::new(&exchange, true, None);
        let (mut ends, mut sum, mut parts) = (None, 0, 0);
        reading.each_token_arrival(|at, tokens| if tokens > 0 {
            let (first, _) = ends.unwrap_or((at, at));
            ends = Some((first, at));
        });
        reading.dealt_gaps(&mut |_, gap, times| (sum, parts) = (sum + gap * times, parts + times));
        let (first, last) = ends.unwrap_or_default();
        prop_assert_eq!(sum, last.since(first).0);
        prop_assert!(parts <= u64::from(reading.stated.max(reading.output_tokens.map(|n| n.tokens)).unwrap_or(0)));
    }

    /// However tokens are dealt to instants, none is lost and none invented.
    #[test]
    fn dealt_tokens_sum_to_the_count(exchange in any_exchange(0)) {
        let reading = Reading::new(&exchange, true, None);
        let mut dealt = 0;
        reading.each_token_arrival(|_, tokens| dealt += tokens);
        let output = exchange.events.kind.iter().any(|kind| kind.is_output());
        let stated = reading.stated;
        match reading.output_tokens {
            Some(count) if output => {
                prop_assert_eq!(dealt, u64::from(stated.unwrap_or(count.tokens)));
            }
            _ => prop_assert_eq!(dealt, 0),
        }
    }
}

/// Tokens of a streamed answer, by their milliseconds after the first: `(ms, tokens)`.
fn arriving(events: &[(u64, u32)]) -> Exchange {
    let events: Vec<_> =
        events.iter().map(|&(at, tokens)| (2000 + at, Text, Some(tokens), 1)).collect();
    reply(0, 1000, &events)
}

#[test]
fn a_token_stalls_when_the_reader_has_to_wait_for_it() {
    let share = |events: &[(u64, u32)]| {
        let exchange = arriving(events);
        let reading = Reading::new(&exchange, true, None);
        assert_eq!(samples_of("stall-share", &reading), NONE, "nobody reads at a pace");
        samples_of("stall-share", &reading.at_pace(Some(ms(10))))
    };
    assert_eq!(share(&[(0, 1), (10, 1), (20, 1), (30, 1)]), [0.0]);
    // One gap is long, but the tokens before it came early.
    assert_eq!(share(&[(0, 1), (1, 1), (2, 1), (30, 1)]), [0.0]);
    assert_eq!(share(&[(0, 1), (1, 1), (2, 1), (31, 1)]), [1.0 / 3.0]);
    // A late token makes later ones late until they catch up.
    assert_eq!(share(&[(0, 1), (15, 1), (22, 1), (30, 1), (31, 1)]), [0.5]);
    // Of three tokens that come together after 25 ms, the tokens due after 10 and 20 ms are late.
    assert_eq!(share(&[(0, 1), (25, 3)]), [2.0 / 3.0]);
    assert_eq!(share(&[(0, 4)]), [0.0]);
    assert_eq!(share(&[(0, 1)]), NONE, "one token has no further one");
    let exchange = arriving(&[(0, 1), (50, 1)]);
    let whole = Reading::new(&exchange, false, None).at_pace(Some(ms(10)));
    assert_eq!(samples_of("stall-share", &whole), NONE, "not streamed");
}

#[test]
fn the_pace_of_a_reader_is_the_objective_on_the_time_per_token() {
    let pace = |text| objective::pace(&objective::parse(text).unwrap());
    assert_eq!(pace("ttft:200 tpot:20.5 tpot:30"), Some(model::units::Nanos(20_500_000)));
    assert_eq!(pace("ttft:200 itl-max:100"), None);
}
