mod devices;
mod outcomes;

use std::convert::Infallible;

use proptest::prelude::*;

use super::fixture::{any_run, facts, failed, ms, output_usage, reply};
use super::{Summary, *};
use crate::metric::Source;
use model::exchange::Kind::{End, Text};
use model::exchange::{Class, Exchange, Kind, Phase, Usage};
use model::units::Nanos;

fn answer(index: u64, sent: u64, first: u64, second: u64) -> Exchange {
    let events = [(first, Text, None, 3), (second, Text, None, 3), (second, End, None, 0)];
    let mut exchange = reply(index, sent, &events);
    exchange.usage =
        Some(Usage { input_tokens: Some(10), output_tokens: Some(4), ..Usage::default() });
    exchange
}

#[test]
fn a_run_by_hand() {
    let mut late = failed(reply(3, 1500, &[]), Class::HttpStatus, "500: b");
    late.ended = Some(ms(3000));
    let mut unsent = failed(reply(4, 0, &[]), Class::NotSent, "cap");
    (unsent.sent, unsent.due) = (None, ms(3000));
    let mut early = failed(reply(5, 1500, &[]), Class::HttpStatus, "500: a");
    (early.index, early.ended) = (2, Some(ms(1600)));
    let mut warmup = answer(0, 100, 200, 300);
    warmup.phase = Phase::Warmup;
    let run =
        [answer(0, 1000, 1100, 1500), answer(1, 1500, 1700, 2100), late, unsent, early, warmup];
    let summary = Summary::new(&facts(), &run);

    let requests = &summary.requests;
    assert_eq!((requests.total, requests.successful, requests.failed), (5, 2, 3));
    assert_eq!((requests.sent, requests.warmup, requests.success_share), (4, 1, Some(0.4)));
    let http = &requests.failures[&Class::HttpStatus];
    assert_eq!(http.count, 2);
    let texts: Vec<&str> = http.messages.iter().map(|kind| &*kind.text).collect();
    assert_eq!(texts, ["500: a", "500: b"], "in the order of the requests");
    assert_eq!(requests.failures[&Class::NotSent].count, 1);

    let throughput = &summary.throughput;
    assert_eq!(throughput.duration_s, Some(2.0), "failed exchanges belong to the duration");
    assert_eq!(throughput.requests_per_s, Some(1.0));
    assert_eq!(throughput.input_tokens_per_s, Some(10.0));
    assert_eq!(throughput.output_tokens_per_s, Some(4.0));
    assert_eq!(throughput.total_tokens_per_s, Some(14.0));
    // Second 0 has both pieces of the first answer and one of the second, two tokens each.
    assert_eq!(throughput.peak_output_tokens_per_s, Some(6.0));
    assert_eq!(throughput.sent_requests_per_s, Some(3.0 / 0.5));
    assert_eq!(throughput.due_requests_per_s, Some(4.0 / 2.0));

    let concurrency = &summary.concurrency;
    assert_eq!(concurrency.mean, Some((0.5 + 0.6) / 2.0));
    assert_eq!(concurrency.mean_in_flight, Some((0.5 + 0.6 + 1.5 + 0.1) / 2.0));
    assert_eq!(concurrency.peak, Some(3), "the first had ended when the others were sent");

    let e2e = summary.metric("e2e").unwrap();
    assert_eq!((e2e.count, e2e.mean, e2e.std), (2, 550.0, 50.0));
    assert_eq!((e2e.min, e2e.median, e2e.max), (500.0, 550.0, 600.0));
    assert_eq!(e2e.percentile(90.0), Some(590.0));
    assert_eq!(e2e.unit, "ms");
    assert_eq!(summary.metric("tpot").unwrap().mean, 400.0 / 3.0);
    assert_eq!(summary.metric("send-lag").unwrap().count, 4, "of all that were sent");
    assert_eq!(summary.metric("queue"), None, "there was no cap");
}

#[test]
fn nothing_gives_nothing_rather_than_zero() {
    let summary = Summary::new(&facts(), std::iter::empty::<Exchange>());
    assert!(summary.metrics.is_empty());
    assert_eq!(summary.throughput, Throughput::default());
    assert_eq!(summary.concurrency, Concurrency::default());
    assert_eq!(summary.tokens, Tokens::default());
    assert_eq!(summary.requests, Requests::default());
    assert_eq!(summary.verdict, Verdict::Invalid);
}

#[test]
fn unknown_tokens_are_counted_as_unknown_and_in_no_sum() {
    let mut unknown = answer(1, 1000, 1100, 1200);
    unknown.usage = None;
    let summary = Summary::new(&facts(), [answer(0, 1000, 1100, 1200), unknown]);
    let tokens = &summary.tokens;
    assert_eq!((tokens.output.total, tokens.output.unknown), (Some(4), 1));
    assert_eq!((tokens.input.total, tokens.input.unknown), (Some(10), 1));
    assert_eq!(tokens.output.exchanges_by_source[&Source::Usage], 1);
    assert_eq!(tokens.per_event, Some(2.0), "events of unknown tokens are left out");
    assert_eq!(summary.metric("tpot").unwrap().count, 1);
    assert_eq!(summary.metric("ttft").unwrap().count, 2);
    let mut facts = facts();
    facts.retokenized = [(0, 5)].into();
    let mut requested = answer(0, 1000, 1100, 1200);
    requested.sample.output_tokens = Some(4);
    let both = [requested.clone(), answer(1, 1000, 1100, 1200)];
    let summary = Summary::new(&facts, &both);
    assert_eq!(summary.tokens.output_retokenized, None);
    assert_eq!(summary.tokens.output_requested, None);
    let summary = Summary::new(&facts, [requested]);
    assert_eq!(summary.tokens.output_retokenized, Some(5));
    assert_eq!(summary.tokens.output_requested, Some(4));
}

#[test]
fn counts_of_two_sources_are_compared_within_tolerance() {
    let mut facts = facts();
    let mut run = Vec::new();
    // Input by usage is 10 throughout; output by usage 4.
    for (index, dataset, requested, own) in [(0, 14, 4, 8), (1, 15, 5, 9), (2, 5, 3, 4)] {
        let mut exchange = answer(index, 1000, 1100, 1200);
        exchange.sample.input_tokens = Some(dataset);
        exchange.sample.output_tokens = Some(requested);
        facts.retokenized.insert(index, own);
        run.push(exchange);
    }
    let tokens = Summary::new(&facts, run).tokens;
    let comparison = |lower, higher, counted, reference| {
        Some(Comparison { exchanges: 3, lower, higher, counted, reference })
    };
    assert_eq!(tokens.input_against_dataset, comparison(1, 1, 30, 34));
    assert_eq!(tokens.output_against_requested, comparison(1, 1, 12, 12));
    assert_eq!(tokens.output_against_retokenized, comparison(1, 0, 12, 21));
}

#[test]
fn tokens_of_the_chat_template_are_no_disagreement() {
    let seen = |template_tokens, dataset| {
        let mut facts = facts();
        let tokenizer = Tokenizer { template_tokens, ..Tokenizer::default() };
        facts.run.tokenizer = Some(tokenizer);
        let mut exchange = answer(0, 1000, 1100, 1200);
        exchange.sample.input_tokens = Some(dataset);
        let found = Summary::new(&facts, [exchange]).tokens.input_against_dataset.unwrap();
        (found.lower, found.higher)
    };
    // Input by usage is 10.
    assert_eq!(seen(None, 2), (0, 1));
    assert_eq!(seen(Some(8), 2), (0, 0));
    assert_eq!(seen(Some(8), 10), (0, 0));
    assert_eq!(seen(Some(40), 2), (0, 1));
}

#[test]
fn compares_requested_with_received_lengths() {
    let mut facts = facts();
    facts.retokenized = [(0, 96), (1, 94), (2, 1)].into();
    let mut run: Vec<Exchange> = (0..3).map(|i| answer(i, 1000, 1100, 1200)).collect();
    for exchange in &mut run {
        exchange.usage = None;
        exchange.sample.output_tokens = Some(100);
    }
    run[2].finish = Some("length".into());
    let tokens = Summary::new(&facts, &run).tokens;
    let expected = Comparison { exchanges: 2, lower: 1, higher: 0, counted: 190, reference: 200 };
    assert_eq!(tokens.output_against_requested, Some(expected));
    assert_eq!(tokens.output.exchanges_by_source[&Source::Length], 1);
}

#[test]
fn a_run_shorter_than_a_second_has_no_peak_a_second() {
    let summary = Summary::new(&facts(), [answer(0, 1000, 1100, 1999)]);
    assert_eq!(summary.throughput.peak_output_tokens_per_s, None);
    let summary = Summary::new(&facts(), [answer(0, 1000, 1100, 2000)]);
    assert_eq!(summary.throughput.peak_output_tokens_per_s, Some(2.0));
}

#[test]
fn percentiles_are_in_order_once_each_with_99() {
    let mut facts = facts();
    facts.run.percentiles = vec![99.9, 50.0, 99.9];
    let summary = Summary::new(&facts, [answer(0, 1000, 1100, 1200)]);
    assert_eq!(summary.run.percentiles, [50.0, 99.0, 99.9]);
    let keys: Vec<_> = summary.metric("e2e").unwrap().percentiles.keys().cloned().collect();
    assert_eq!(keys, ["p50", "p99", "p99.9"]);
}

#[test]
fn waits_at_the_cap_are_counted_where_there_is_one() {
    let mut waited = answer(0, 1000, 1100, 1200);
    waited.granted = Some(waited.due + Nanos(1_000_001));
    let mut prompt = answer(1, 1000, 1100, 1200);
    prompt.granted = Some(prompt.due + Nanos(1_000_000));
    let run = [waited, prompt];
    let mut facts = facts();
    assert_eq!(Summary::new(&facts, &run).requests.held_back, None);
    facts.run.max_in_flight = Some(1);
    assert_eq!(Summary::new(&facts, &run).requests.held_back, Some(1));
}

#[test]
fn an_endless_request_is_in_flight_to_its_last_event() {
    let mut silent = failed(answer(0, 1000, 1200, 1400), Class::Interrupted, "");
    silent.ended = None;
    let run = [silent, answer(1, 1300, 1400, 1500), answer(2, 1400, 1500, 2000)];
    assert_eq!(Summary::new(&facts(), &run).concurrency.peak, Some(2));
}

#[test]
fn a_summary_survives_json() {
    let mut facts = facts();
    facts.scores.insert("exact-match".into(), [(0, 0.1)].into());
    facts.run_scores.insert("macro".into(), 1.0 / 3.0);
    let mut exchange = answer(0, 1000, 1100, 1200);
    exchange.usage = output_usage(7);
    let run = [exchange, failed(reply(1, 1000, &[]), Class::Refused, "refused")];
    let summary = Summary::new(&facts, run);
    let text = serde_json::to_string(&summary).unwrap();
    assert!(!text.contains("null"), "an absent figure has no key: {text}");
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
}

/// Requests of one user each, one after the other: `users` in flight for `rounds` seconds.
fn closed_loop(users: u64, rounds: u64) -> Vec<Exchange> {
    (0..users * rounds)
        .map(|index| {
            let sent = 1000 + index / users * 1000;
            answer(index, sent, sent + 100, sent + 1000)
        })
        .collect()
}

#[test]
fn a_steady_state_by_hand() {
    let mut facts = facts();
    facts.run.max_in_flight = Some(4);
    let mut run = closed_loop(4, 12);
    // One user begins three seconds late, another leaves one earlier.
    run.retain(|e| e.index % 4 != 0 || e.index >= 12);
    run.retain(|e| e.index != 45);
    let Some(SteadyState::Absent(why)) = Summary::new(&facts, &run).steady_state else {
        panic!("eight seconds are too short");
    };
    assert!(why.contains("4 or more") && why.contains("10.00 s"), "{why}");

    let mut run = closed_loop(4, 20);
    run.retain(|e| e.index % 4 > 1 || e.index >= 12);
    run.retain(|e| e.index != 77);
    // An answer that was under way when the window began is not of it, but for its tokens.
    run.push(answer(1, 1000, 3900, 4500));
    let Some(SteadyState::Window(window)) = Summary::new(&facts, &run).steady_state else {
        panic!("sixteen seconds are enough");
    };
    let Window { plateau, at_least, from_s, to_s, duration_s, .. } = *window;
    assert_eq!((plateau, at_least), (4, 4));
    assert_eq!((from_s, to_s, duration_s), (3.0, 19.0, 16.0));
    // 16 rounds of four, and the request that was under way: it overlaps by half a second.
    assert_eq!((window.ended, window.sent), (65, 64));
    assert_eq!(window.requests_per_s, 65.0 / 16.0);
    assert_eq!(window.mean_in_flight, (64.0 + 0.5) / 16.0);
    assert_eq!(window.output_tokens_per_s, Some((64.0 * 4.0 + 2.0) / 16.0));
    let metric = |name: &str| (window.metrics[name].mean, window.metrics[name].count);
    assert_eq!(metric("ttft"), (100.0, 64));
    assert_eq!(metric("tpot"), (300.0, 64));
    assert_eq!(metric("itl"), (900.0, 64));
    assert_eq!(metric("e2e"), (1000.0, 64));
}

#[test]
fn a_cap_that_is_never_reached_has_no_steady_state() {
    let mut facts = facts();
    facts.run.max_in_flight = Some(6);
    let run = closed_loop(4, 20);
    let Some(SteadyState::Absent(why)) = Summary::new(&facts, &run).steady_state else {
        panic!("four is not 95 % of six");
    };
    assert!(why.starts_with("at most 4 of 6"), "{why}");
    facts.run.max_in_flight = None;
    let without = Summary::new(&facts, &run).steady_state;
    assert!(matches!(without, Some(SteadyState::Window(window)) if window.plateau == 4));
}

/// At a rate, the window is where the usual number is in flight.
#[test]
fn at_a_rate_the_usual_number_is_steady() {
    let mut facts = facts();
    facts.run.even_rate = true;
    // Two a second for a second each, and a burst of three more for a moment in the middle.
    let mut run: Vec<Exchange> = (0..60)
        .map(|index| {
            let sent = 1000 + index * 500;
            answer(index, sent, sent + 100, sent + 1000)
        })
        .collect();
    run.extend((60..63).map(|index| answer(index, 15_000, 15_010, 15_020)));
    for cap in [None, Some(64)] {
        facts.run.max_in_flight = cap;
        let Some(SteadyState::Window(window)) = Summary::new(&facts, &run).steady_state else {
            panic!("two are in flight but for the first and the last half second");
        };
        assert_eq!((window.plateau, window.at_least), (2, 2), "cap {cap:?}");
        assert_eq!((window.from_s, window.to_s), (0.5, 30.0), "cap {cap:?}");
    }
    // A number of requests that reaches the cap is held by it.
    facts.run.max_in_flight = Some(5);
    let Some(SteadyState::Absent(why)) = Summary::new(&facts, &run).steady_state else {
        panic!("the cap is reached for a moment");
    };
    assert!(why.starts_with("5 or more"), "{why}");
}

#[test]
fn goodput_by_hand() {
    let mut facts = facts();
    facts.run.goodput = crate::metric::objective::parse("ttft:200 tpot:100").unwrap();
    let mut one_token = answer(3, 1000, 1150, 2000);
    one_token.usage = output_usage(1);
    let mut unknown = answer(4, 1000, 1150, 1200);
    unknown.usage = None;
    let mut unsent = failed(reply(6, 1000, &[]), Class::NotSent, "cap");
    unsent.sent = None;
    let run = [
        answer(0, 1000, 1200, 1500), // exactly at both limits
        answer(1, 1000, 1201, 1300), // late
        answer(2, 1000, 1100, 1501), // slow
        one_token,
        unknown,
        failed(answer(5, 1000, 1100, 1200), Class::Truncated, ""),
        unsent,
        answer(7, 1000, 1300, 3000), // late and slow
    ];
    let goodput = Summary::new(&facts, &run).goodput.unwrap();
    assert_eq!((goodput.good, goodput.slo_attainment), (2, Some(0.25)));
    assert_eq!(goodput.requests_per_s, Some(1.0));
    assert_eq!(goodput.output_tokens_per_s, Some(2.5));
    let of = |name: &str| {
        let of = &goodput.objectives[name];
        (of.at_most_ms, of.kept, of.missed, of.unknown, of.attainment)
    };
    assert_eq!(of("ttft"), (200.0, 4, 2, 0, Some(0.5)));
    assert_eq!(of("tpot"), (100.0, 3, 2, 1, Some(0.375)));
    assert_eq!(Summary::new(&self::facts(), &run).goodput, None);
}

#[test]
fn tokens_are_counted_and_requests_are_not() {
    let summary = Summary::new(&facts(), closed_loop(4, 20));
    let (ttft, itl) = (summary.metric("ttft").unwrap(), summary.metric("itl").unwrap());
    assert_eq!((ttft.from, ttft.relative_error), (Basis::Samples, None));
    assert_eq!((itl.from, itl.relative_error), (Basis::Histogram, Some(1.0 / 2048.0)));
    assert!(ttft.confidence.is_some() && itl.confidence.is_none());
    assert_eq!(ttft.confidence.unwrap().level, 95.0);
}

#[test]
fn reports_unreadable_records_and_ignores_new_ones() {
    let run = closed_loop(1, 3);
    let passes = std::cell::Cell::new(0);
    let grows = || {
        passes.set(passes.get() + 1);
        Ok::<_, String>(run[..passes.get() + 1].iter().map(Ok))
    };
    let summary = Summary::read(&facts(), grows).unwrap();
    assert_eq!((passes.get(), summary.requests.total), (2, 2));
    let breaks = || Ok([Ok(&run[0]), Err("line 2 is no record")].into_iter());
    assert_eq!(Summary::read(&facts(), breaks), Err("line 2 is no record"));
}

proptest! {
    /// A plan can be cut: the records of its slices, merged in whatever way, give the summary of
    /// the whole, to the last bit.
    #[test]
    fn slices_merged_are_the_whole(run in any_run(), n in 1u64..4, seed in any::<u64>()) {
        let mut facts = facts();
        facts.run.max_in_flight = Some(8);
        facts.run.percentiles = vec![50.0, 95.0, 99.9];
        facts.run.time_slice = Some(Nanos(300_000_000));
        facts.run.goodput = crate::metric::objective::parse("ttft:900 tpot:50").unwrap();
        facts.retokenized = run.iter().map(|e| (e.index, e.index as u32 * 7)).collect();
        let whole = Summary::new(&facts, &run);
        prop_assert!(whole.goodput.is_some());

        // Each slice is written and read on its own, as another machine would.
        let slices: Vec<String> = (0..n)
            .map(|k| {
                let slice = run.iter().filter(|exchange| exchange.index % n == k);
                slice.map(|e| serde_json::to_string(e).unwrap() + "\n").collect()
            })
            .collect();
        let read = || slices.iter().flat_map(|slice| slice.lines());
        let parse = |line: &str| serde_json::from_str::<Exchange>(line).unwrap();
        prop_assert_eq!(&Summary::new(&facts, read().map(parse)), &whole, "one after the other");

        let mut merged: Vec<Exchange> = read().map(parse).collect();
        merged.sort_by_key(|exchange| exchange.index);
        prop_assert_eq!(&Summary::new(&facts, &merged), &whole, "interleaved");

        merged.sort_by_key(|exchange| (exchange.index ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        prop_assert_eq!(&Summary::new(&facts, &merged), &whole, "in any order");

        // Who surveyed the run before reads it once more, and no records that came since.
        let mut survey = Survey::new(&facts.run);
        run.iter().for_each(|exchange| survey.add(exchange));
        merged.extend(run.first().cloned());
        let again = merged.iter().map(Ok::<_, Infallible>);
        let surveyed = Summary::read_surveyed(&facts, survey, again).unwrap();
        prop_assert_eq!(&surveyed, &whole, "surveyed before");
    }

    /// The counts of requests add up.
    #[test]
    fn requests_add_up(run in any_run()) {
        let summary = Summary::new(&facts(), &run);
        let requests = &summary.requests;
        let failures: u64 = requests.failures.values().map(|failures| failures.count).sum();
        prop_assert_eq!(requests.total, run.len() as u64);
        prop_assert_eq!(requests.successful + requests.failed + requests.cancelled, requests.total);
        prop_assert_eq!(failures, requests.failed);
        for counted in [&summary.tokens.input, &summary.tokens.output] {
            let known: u64 = counted.exchanges_by_source.values().sum();
            prop_assert_eq!(known + counted.unknown, requests.successful);
        }
        let peak = summary.concurrency.peak.unwrap_or(0) as f64;
        prop_assert!(summary.concurrency.mean_in_flight.unwrap_or(0.0) <= peak + 1e-9);
    }
}

#[test]
fn answers_without_a_count_are_not_in_its_mean() {
    let mut run: Vec<_> =
        (0..3).map(|index| reply(index, 1000, &[(1050, Kind::Text, None, 4)])).collect();
    assert!(Summary::new(&facts(), &run).counts.is_empty());
    run[0].counts.insert("image-tokens".to_owned(), 5);
    run[1].counts.insert("image-tokens".to_owned(), 0);
    run[1].counts.insert("searches".to_owned(), u64::MAX);
    run[2].counts.insert("searches".to_owned(), 1);
    let counts = Summary::new(&facts(), &run).counts;
    assert_eq!(counts["image-tokens"], ServerCount { answers: 2, total: 5, mean: 2.5 });
    assert_eq!(counts["searches"].total, u64::MAX);
    assert_eq!(counts.len(), 2);
}

#[test]
fn time_is_dealt_to_the_spans_it_lies_in() {
    let mut occupancy = Occupancy::new(Nanos(10), 4);
    occupancy.add(Nanos(2), Nanos(5));
    occupancy.add(Nanos(5), Nanos(35));
    occupancy.add(Nanos(10), Nanos(20));
    occupancy.add(Nanos(38), Nanos(99));
    occupancy.add(Nanos(7), Nanos(7));
    let nanos: Vec<f64> = occupancy.seconds().iter().map(|s| (s * 1e9).round()).collect();
    assert_eq!(nanos, [8.0, 20.0, 10.0, 7.0]);
}
