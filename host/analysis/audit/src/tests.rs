//! Honest measurements pass, whatever they measured; each dishonest figure is found by its own
//! rule.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::claim::{self, Source, Tool};

mod beyond;
mod rules;
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

/// Most of the tokens within one second of a run of a few long answers: the peak is ten times the
/// mean, and true.
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
    fn honest_guidellm_is_never_doubted(
        requests in requests(120),
        cap in 1usize..40,
    ) {
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
            let _ = (text::text(&report), github::github(&report));
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
