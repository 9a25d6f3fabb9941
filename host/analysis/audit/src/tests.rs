//! Honest measurements pass, whatever they measured; each dishonest figure is found by its own
//! rule.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::claim::{self, Source, Tool};

mod beyond;
mod spread;

/// One request as a tool would have seen it, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Timing {
    start: f64,
    ttft: f64,
    tpot: f64,
    tokens: u32,
}

impl Timing {
    fn e2e(self) -> f64 {
        self.ttft + self.tpot * f64::from(self.tokens - 1)
    }
}

/// NumPy's percentile.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let at = percent / 100.0 * (sorted.len() - 1) as f64;
    let low = sorted[at.floor() as usize];
    low + (sorted[at.ceil() as usize] - low) * at.fract()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Requests as they come off a cap, one slot after the other.
fn played(requests: &[(f64, f64, u32)], cap: usize) -> Vec<Timing> {
    let mut free = vec![0.0; cap];
    let play = |&(ttft, tpot, tokens): &(f64, f64, u32)| {
        let slot =
            (0..cap).min_by(|one, other| f64::total_cmp(&free[*one], &free[*other])).unwrap();
        let seen = Timing { start: free[slot], ttft, tpot, tokens };
        free[slot] += seen.e2e();
        seen
    };
    requests.iter().map(play).collect()
}

/// The block of LMDeploy, or of vLLM, about these requests.
fn block(seen: &[Timing], cap: usize, vllm: bool, length: Option<u32>) -> String {
    let duration = seen.iter().map(|seen| seen.start + seen.e2e()).fold(0.0, f64::max) / 1e3;
    let output: u32 = seen.iter().map(|seen| seen.tokens).sum();
    let input = seen.len() * 100;
    let mut latencies: Vec<(&str, Vec<f64>)> = vec![
        (if vllm { "E2EL" } else { "E2E Latency" }, seen.iter().map(|seen| seen.e2e()).collect()),
        ("TTFT", seen.iter().map(|seen| seen.ttft).collect()),
        ("TPOT", seen.iter().filter(|seen| seen.tokens > 1).map(|seen| seen.tpot).collect()),
        ("ITL", seen.iter().flat_map(|seen| vec![seen.tpot; seen.tokens as usize - 1]).collect()),
    ];
    let mut out = String::new();
    if let Some(length) = length {
        let _ = writeln!(
            out,
            "Namespace(num_prompts={}, dataset_name='random', random_input_len=100, random_output_len={length}, random_range_ratio={})",
            seen.len(),
            if vllm { "'0.0'" } else { "1.0" }
        );
    }
    let _ = writeln!(out, "============ Serving Benchmark Result ============");
    if vllm {
        let _ = writeln!(out, "Maximum request concurrency: {cap}");
    } else {
        let _ = writeln!(out, "Backend: lmdeploy\nTraffic request rate: inf");
    }
    let rate = |count: f64| count / duration;
    let _ = writeln!(out, "Successful requests: {}", seen.len());
    let _ = writeln!(out, "Benchmark duration (s): {duration:.2}");
    let _ = writeln!(out, "Total input tokens: {input}\nTotal generated tokens: {output}");
    let _ = writeln!(out, "Request throughput (req/s): {:.2}", rate(seen.len() as f64));
    let _ = writeln!(out, "Output token throughput (tok/s): {:.2}", rate(f64::from(output)));
    if vllm {
        let total = input as f64 + f64::from(output);
        let _ = writeln!(out, "Peak output token throughput (tok/s): {:.2}", peak(seen));
        let _ = writeln!(out, "Peak concurrent requests: {cap}.00");
        let _ = writeln!(out, "Total token throughput (tok/s): {:.2}", rate(total));
    } else {
        let _ = writeln!(out, "Total generated tokens (retokenized): {output}");
        let _ = writeln!(out, "Input token throughput (tok/s): {:.2}", rate(input as f64));
    }
    for (name, values) in &mut latencies {
        if values.is_empty() {
            values.push(0.0);
        }
        values.sort_by(f64::total_cmp);
        let _ = writeln!(out, "Mean {name} (ms): {:.2}", mean(values));
        for (label, percent) in [("Median", 50.0), ("P90", 90.0), ("P99", 99.0)] {
            let _ = writeln!(out, "{label} {name} (ms): {:.2}", percentile(values, percent));
        }
    }
    out.push_str("==================================================\n");
    out
}

/// Most tokens in a second counted from the start.
fn peak(seen: &[Timing]) -> f64 {
    let mut seconds = std::collections::BTreeMap::<u64, u64>::new();
    for seen in seen {
        for token in 0..seen.tokens {
            let at = seen.start + seen.ttft + seen.tpot * f64::from(token);
            *seconds.entry((at / 1e3) as u64).or_default() += 1;
        }
    }
    seconds.into_values().max().unwrap_or_default() as f64
}

fn audited(text: &str) -> Audited {
    let document = claim::read("block.txt", text.as_bytes()).unwrap();
    claims(&document.claims).remove(0)
}

fn grave(result: &Audited) -> Vec<String> {
    let grave = result.findings.iter().filter(|finding| finding.severity != Severity::Note);
    grave.map(|finding| format!("{}: {}", finding.id.name(), finding.seen)).collect()
}

/// Most tokens of a few long answers come within a second: a true peak of ten times the mean.
#[test]
fn a_burst_among_slow_answers_is_not_doubted() {
    let mut requests = vec![(3.0, 1.6, 49); 10];
    requests.extend([(3.0, 100.0, 49), (3.0, 130.0, 49)]);
    let text = block(&played(&requests, 1), 1, true, Some(49));
    let result = audited(&text);
    assert_eq!(grave(&result), Vec::<String>::new(), "{text}");
    assert!(result.findings.iter().any(|finding| finding.id == Id::PeakImplausible), "{text}");
}

/// Returns the usual number of cases, or `PROPTEST_CASES` if it is set.
fn case_count(usual: u32) -> u32 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

fn cases(usual: u32) -> ProptestConfig {
    ProptestConfig { cases: case_count(usual), ..ProptestConfig::default() }
}

/// Fewer requests than that, each with its TTFT, its TPOT and its tokens.
fn requests(most: usize) -> impl Strategy<Value = Vec<(f64, f64, u32)>> {
    let request = (1.0f64..9.0, 0.5f64..5.0, 0.1f64..5.5)
        .prop_map(|(ttft, tpot, tokens)| (ttft.exp(), tpot.exp(), tokens.exp() as u32));
    prop::collection::vec(request, 1..most)
}

proptest! {
    #![proptest_config(cases(200))]

    /// Latencies and lengths are of any distribution, heavy tails among them.
    #[test]
    fn honest_measurements_are_never_doubted(
        requests in requests(120),
        fixed in prop::option::of(2u32..150),
        cap in 1usize..40,
        vllm: bool,
    ) {
        let requests: Vec<(f64, f64, u32)> =
            requests.into_iter().map(|(ttft, tpot, own)| (ttft, tpot, fixed.unwrap_or(own))).collect();
        let seen = played(&requests, cap);
        let text = block(&seen, cap, vllm, fixed);
        let result = audited(&text);
        prop_assert_eq!(grave(&result), Vec::<String>::new(), "{}", text);
    }

    /// Guidellm's figures are means over all tokens together.
    #[test]
    fn honest_guidellm_is_never_doubted(requests in requests(120), cap in 1usize..40) {
        let seen = played(&requests, cap);
        let result = &claims(&[guidellm(&seen, cap)])[0];
        prop_assert_eq!(grave(result), Vec::<String>::new());
    }

    /// A block without its line breaks means the same as with them.
    #[test]
    fn line_breaks_make_no_difference(requests in requests(20), vllm: bool) {
        let text = block(&played(&requests, 4), 4, vllm, None);
        let broken = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let read = |text: &str| {
            let claim = claim::read("block.txt", text.as_bytes()).unwrap().claims.remove(0);
            (claim.figures, claim.asked, claim.tool)
        };
        prop_assert_eq!(read(&text), read(&broken));
    }

    /// Any bytes are read or refused, and the claims that were read are audited.
    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..2000, at in 0usize..2000) {
        let _ = claim::read("any", &bytes);
        let seen = played(&[(20.0, 5.0, 7), (30.0, 6.0, 9)], 1);
        let mut text = block(&seen, 1, true, Some(9)).into_bytes();
        text.truncate(cut);
        let at = at.min(text.len());
        text.splice(at..at, bytes.iter().copied());
        if let Ok(document) = claim::read("any", &text) {
            let report = documents(&[document]);
            let _ = (text::text(&report), text::github(&report));
        }
    }
}

/// Makes the claim of guidellm about these requests.
fn guidellm(seen: &[Timing], cap: usize) -> Claim {
    let mut claim = Claim::new(Tool::Guidellm, Source::default());
    let count = seen.len() as f64;
    let tokens: f64 = seen.iter().map(|seen| f64::from(seen.tokens)).sum();
    let e2e: f64 = seen.iter().map(|seen| seen.e2e()).sum();
    let ttft: f64 = seen.iter().map(|seen| seen.ttft).sum();
    let duration = seen.iter().map(|seen| seen.start + seen.e2e()).fold(0.0, f64::max) / 1e3;
    let first = seen.iter().map(|seen| seen.start + seen.ttft).fold(f64::INFINITY, f64::min) / 1e3;
    claim.asked.max_concurrency = Some(cap as u64);
    for (name, value) in [
        ("requests.successful", count),
        ("tokens.output", tokens),
        ("throughput.duration-s", duration),
        ("throughput.requests-per-s", count / duration),
        ("e2e.mean", e2e / count),
        ("ttft.mean", ttft / count),
        ("tpot.mean", e2e / tokens),
        ("concurrency.mean", e2e / 1e3 / duration),
    ] {
        claim.state(name, value, 0.0);
    }
    if tokens > count {
        claim.state("itl.mean", (e2e - ttft) / (tokens - count), 0.0);
    }
    // Its rates begin with the first token; where that is much later than the run, the claim states
    // it.
    if first < duration * 0.04 {
        claim.state("throughput.output-tokens-per-s", tokens / (duration - first), 0.0);
    }
    claim
}

/// A plain block of 200 answers of 100 tokens each, with some of its lines replaced.
fn with(lines: &[(&str, &str)]) -> Audited {
    let flags = "Namespace(num_prompts=200, dataset_name='random', random_input_len=100, random_output_len=100, \
        random_range_ratio=1.0)\n";
    block_with(flags, lines)
}

/// The same after some text.
fn block_with(before: &str, lines: &[(&str, &str)]) -> Audited {
    let mut block: Vec<(String, String)> = [
        ("Backend", "vllm"),
        ("Traffic request rate", "inf"),
        ("Successful requests", "200"),
        ("Benchmark duration (s)", "100.00"),
        ("Total input tokens", "20000"),
        ("Total generated tokens", "20000"),
        ("Total generated tokens (retokenized)", "20000"),
        ("Request throughput (req/s)", "2.00"),
        ("Input token throughput (tok/s)", "200.00"),
        ("Output token throughput (tok/s)", "200.00"),
        ("Mean E2E Latency (ms)", "1490.00"),
        ("Median E2E Latency (ms)", "1490.00"),
        ("Mean TTFT (ms)", "500.00"),
        ("Median TTFT (ms)", "500.00"),
        ("P99 TTFT (ms)", "600.00"),
        ("Mean TPOT (ms)", "10.00"),
        ("Median TPOT (ms)", "10.00"),
        ("P99 TPOT (ms)", "12.00"),
        ("Mean ITL (ms)", "10.00"),
        ("Median ITL (ms)", "9.00"),
        ("P99 ITL (ms)", "30.00"),
    ]
    .map(|(label, value)| (label.to_owned(), value.to_owned()))
    .into();
    for (label, value) in lines {
        match block.iter_mut().find(|(known, _)| known == label) {
            Some((_, old)) => *old = (*value).to_owned(),
            None => block.push(((*label).to_owned(), (*value).to_owned())),
        }
    }
    let mut text = format!("{before}============ Serving Benchmark Result ============\n");
    for (label, value) in block {
        let _ = writeln!(text, "{label}: {value}");
    }
    text.push_str("==================================================\n");
    audited(&text)
}

/// The expected findings, each with its severity and a part of its text; below each of them, the
/// changed lines of the block.
const CASES: &str = "\
failures invalid: are missing
    Successful requests: 90; Request throughput (req/s): 0.90; Total generated tokens: 9000
    Output token throughput (tok/s): 90.00; Total generated tokens (retokenized): 9000
retokenized-differs suspect: 15 % fewer
    Total generated tokens (retokenized): 17000
retokenized-differs note: 1.5 % fewer
    Total generated tokens (retokenized): 19700
request-rate-disagrees invalid: are 2 per second, but 2.2 is stated
    Request throughput (req/s): 2.20
token-rate-disagrees suspect: over 99.01 s
    Output token throughput (tok/s): 202.00
latency-disagrees suspect: (E2E - TTFT) / n: it counts the first token
    Mean TPOT (ms): 9.90
latency-disagrees invalid: E2E / n
    Mean TPOT (ms): 14.90; P99 TPOT (ms): 16.00
latency-disagrees invalid: 500 + 5 * 99 = 995 ms
    Mean TPOT (ms): 5.00; P99 TPOT (ms): 6.00; Median TPOT (ms): 5.00
gaps-disagree invalid: 99 gaps of 4 ms
    Mean ITL (ms): 4.00; Median ITL (ms): 4.00
tokens-per-gap note: about 1.9 tokens
    Mean ITL (ms): 19.00
zero-means-absent invalid: mean ITL is 0
    Mean ITL (ms): 0.00; Median ITL (ms): 0.00; P99 ITL (ms): 0.00
zero-gaps suspect: median ITL is 0 at a mean of 10 ms
    Median ITL (ms): 0.00
disordered invalid: median TTFT is 500 ms and P99 TTFT is 400 ms
    P99 TTFT (ms): 400.00
mean-impossible invalid: allow no less than
    Median E2E Latency (ms): 4000.00
latency-over-duration invalid: the run took 100000 ms
    Mean E2E Latency (ms): 149000.00
ttft-over-e2e invalid: mean TTFT is 1700 ms and mean E2E 1490 ms
    Mean TTFT (ms): 1700.00
concurrency-disagrees suspect: 2.98 requests in flight
    Concurrency: 9.00
over-cap invalid: the cap is 2
    Max request concurrency: 2; Concurrency: 2.98
peak-impossible invalid: generated only 20000 tokens
    Peak output token throughput (tok/s): 30000.00
peak-implausible note: 1800 for each
    Peak output token throughput (tok/s): 9000.00; Peak concurrent requests: 5
peak-below-mean suspect: but the mean is 200
    Peak output token throughput (tok/s): 50.00
rate-not-reached note: the requested rate is 9 requests per second
    Traffic request rate: 9
rate-exceeded suspect: but 2 went through
    Traffic request rate: 1
total-disagrees invalid: add up to 400 tok/s
    Total token throughput (tok/s): 500.00
nothing-answered invalid: none
    Successful requests: 0";

#[test]
fn each_rule_finds_its_wrong_figure() {
    assert_eq!(with(&[]).findings, []);
    let mut cases: Vec<(&str, Vec<(&str, &str)>)> = Vec::new();
    for line in CASES.lines() {
        match line.strip_prefix("    ") {
            Some(lines) => {
                let lines = lines.split("; ").map(|line| line.split_once(": ").unwrap());
                cases.last_mut().unwrap().1.extend(lines);
            }
            None => cases.push((line, Vec::new())),
        }
    }
    assert_eq!(cases.len(), 25);
    for (expected, lines) in cases {
        let (kind, words) = expected.split_once(": ").unwrap();
        let (id, severity) = kind.split_once(' ').unwrap();
        let findings = with(&lines).findings;
        let finding = findings.iter().find(|finding| finding.id.name() == id);
        let finding = finding.unwrap_or_else(|| panic!("{lines:?} has no {id}: {findings:#?}"));
        assert_eq!(finding.severity.name(), severity, "{lines:?}: {finding:?}");
        let all = format!("{} {}", finding.seen, finding.formula.as_deref().unwrap_or_default());
        assert!(all.contains(words), "{lines:?}: {all}");
    }
}

/// Nothing says that all answers had the same length, but their tokens divide as if they had.
#[test]
fn totals_of_one_length_make_the_mean_tpot_known() {
    let outcome = |lines: &[(&str, &str)]| {
        let result = block_with("", lines);
        let words = result.findings.iter().map(|finding| {
            let formula = finding.formula.as_deref().unwrap_or_default();
            format!("{} {}", finding.seen, formula)
        });
        (result.verdict, words.collect::<Vec<_>>().join("; "))
    };
    assert_eq!(outcome(&[]), (Verdict::Valid, String::new()));
    let four_times =
        [("Mean TPOT (ms)", "40.00"), ("Median TPOT (ms)", "40.00"), ("P99 TPOT (ms)", "48.00")];
    let (verdict, words) = outcome(&four_times);
    assert_eq!(verdict, Verdict::Suspect, "{words}");
    assert!(words.contains("= 10 ms, but mean TPOT is 40 ms, and the totals"), "{words}");
    for (tpot, formula) in [("5.00", "TTFT / n"), ("14.90", "E2E / n"), ("15.05", "E2E / (n - 1)")]
    {
        let lines = [("Mean TPOT (ms)", tpot), ("P99 TPOT (ms)", "16.00")];
        let (verdict, words) = outcome(&lines);
        assert_eq!(verdict, Verdict::Suspect, "{words}");
        assert!(words.contains(formula), "{words}");
    }
    // One token more, or few requests: lengths may be different.
    let one_more = [("Total generated tokens", "20001"), four_times[0]];
    assert!(!outcome(&one_more).1.contains("the totals"), "{:?}", outcome(&one_more));
    // Where several tokens share a gap, nothing shows which figure is wrong.
    let (_, words) = outcome(&[("Mean ITL (ms)", "40.00"), four_times[0], four_times[2]]);
    assert!(!words.contains("the totals"), "{words}");
}
