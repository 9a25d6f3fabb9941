//! Runs of a real engine on a GPU, for tests of intervals: `captured/h100.txt`, whose first lines
//! say how they were made and how they are written.

use crate::summary::fixture::{facts, reply};
use crate::summary::{Bounds, Loop, Summary};
use model::exchange::{Event, Exchange, Kind, Usage};
use model::units::Nanos;

const RUNS: &str = include_str!("captured/h100.txt");
/// Nanoseconds of the file's unit.
const UNIT: u64 = 100_000;
/// Half the width that throughput needs over repeats of these runs at least, as a share: pairs of
/// them differ by 9.6 and 11.2 %.
const NEEDED: f64 = 0.12;

struct Captured {
    options: &'static str,
    /// Output tokens per second that the program of the day reported.
    output_tokens_per_s: f64,
    summary: Summary,
}

fn runs() -> Vec<Captured> {
    let lines: Vec<&str> = RUNS.lines().filter(|line| !line.starts_with('#')).collect();
    let run = |lines: &[&'static str]| {
        let [head, steps, requests] = ["run ", "steps ", "requests "]
            .map(|name| lines.iter().find_map(|line| line.strip_prefix(name)).unwrap());
        let mut now = 0;
        let steps: Vec<u64> = (steps.split(' '))
            .map(|after| {
                now += after.parse::<u64>().unwrap();
                now
            })
            .collect();
        let mut sent = 0;
        let exchanges: Vec<Exchange> = (0..)
            .zip(requests.split(' '))
            .map(|(index, request)| {
                let numbers: Vec<u64> =
                    request.split('/').map(|own| own.parse().unwrap()).collect();
                let [after, wait, prompt, output] = numbers.try_into().unwrap();
                sent += after;
                let first = sent + wait;
                let next = steps.partition_point(|end| *end <= first);
                let further = &steps[next..next + output as usize - 1];
                exchange(index, sent, &[&[first], further].concat(), prompt as u32)
            })
            .collect();
        let mut facts = facts();
        facts.run.measure_start = None;
        (facts.run.r#loop, facts.run.max_in_flight) = (Loop::Closed, Some(64));
        let (options, rate) = head.rsplit_once(" output-tokens-per-s=").unwrap();
        let output_tokens_per_s = rate.parse().unwrap();
        Captured { options, output_tokens_per_s, summary: Summary::new(&facts, &exchanges) }
    };
    lines.chunks(3).map(run).collect()
}

/// The exchange of a request with an event for each token.
fn exchange(index: u64, sent: u64, tokens: &[u64], prompt: u32) -> Exchange {
    let at = |units: u64| Nanos(1_000_000_000 + units * UNIT);
    let mut exchange = reply(index, 0, &[]);
    exchange.due = at(sent);
    (exchange.sent, exchange.written) = (Some(at(sent)), Some(at(sent)));
    for token in tokens {
        exchange.events.push(Event { at: at(*token), kind: Kind::Text, tokens: Some(1), bytes: 4 });
    }
    let (first, end) = (at(tokens[0]), at(tokens[tokens.len() - 1]));
    exchange.events.push(Event { at: end, kind: Kind::End, tokens: None, bytes: 0 });
    (exchange.first_byte, exchange.headers, exchange.ended) = (Some(first), Some(first), Some(end));
    let output = tokens.len() as u32;
    (exchange.sample.input_tokens, exchange.sample.output_tokens) = (Some(prompt), Some(output));
    exchange.finish = Some("length".into());
    let usage =
        Usage { input_tokens: Some(prompt), output_tokens: Some(output), ..Usage::default() };
    exchange.usage = Some(usage);
    exchange
}

fn half(bounds: Bounds) -> f64 {
    (bounds.high.unwrap() - bounds.low.unwrap()) / 2.0
}

/// The engine reads the first prompt of each length in 80 ms, and further ones in 10 ms. Taken for
/// noise, this made the interval of throughput ± 43, 18, 37, 34 and 33 %.
#[test]
fn throughput_of_a_real_engine_has_an_interval_of_use() {
    let runs = runs();
    assert_eq!(runs.len(), 5);
    for run in &runs {
        let of = &run.summary.throughput;
        let figure = of.output_tokens_per_s.unwrap();
        assert!((figure / run.output_tokens_per_s - 1.0).abs() < 1e-3, "{}: {figure}", run.options);
        let sure = of.confidence.unwrap();
        for rates in [sure.same_requests, sure.other_requests] {
            let half = half(rates.output_tokens_per_s.unwrap()) / figure;
            assert!((0.02..1.5 * NEEDED).contains(&half), "{}: ± {half}", run.options);
        }
    }
    // Pairs with the same options and the same requests, each run of another start. Readers add the
    // variation from start to start, 2 % where nothing is known of it.
    let mut held = 0;
    for pair in runs.windows(2).filter(|pair| pair[0].options == pair[1].options) {
        let figures = [0, 1].map(|run| pair[run].summary.throughput.output_tokens_per_s.unwrap());
        let mean = f64::midpoint(figures[0], figures[1]);
        for (run, figure) in pair.iter().zip(figures) {
            let sure = run.summary.throughput.confidence.unwrap();
            let noise = half(sure.same_requests.output_tokens_per_s.unwrap());
            held += usize::from((mean - figure).abs() <= noise.hypot(1.96 * 0.02 * figure));
        }
    }
    assert!(held >= 3, "{held} of 4");
}
