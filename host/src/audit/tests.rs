//! Honest measurements pass, whatever they measured; each dishonest figure is told by its own rule.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::claim::{self, Source, Tool};

/// What a tool would have seen of one request, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Seen {
    start: f64,
    ttft: f64,
    tpot: f64,
    tokens: u32,
}

impl Seen {
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
fn played(requests: &[(f64, f64, u32)], cap: usize) -> Vec<Seen> {
    let mut free = vec![0.0; cap];
    let play = |&(ttft, tpot, tokens): &(f64, f64, u32)| {
        let slot = (0..cap)
            .min_by(|one, other| f64::total_cmp(&free[*one], &free[*other]))
            .unwrap();
        let seen = Seen {
            start: free[slot],
            ttft,
            tpot,
            tokens,
        };
        free[slot] += seen.e2e();
        seen
    };
    requests.iter().map(play).collect()
}

/// The block of LMDeploy, or that of vLLM, of what was seen.
fn block(seen: &[Seen], cap: usize, vllm: bool, asked: Option<u32>) -> String {
    let duration = seen
        .iter()
        .map(|seen| seen.start + seen.e2e())
        .fold(0.0, f64::max)
        / 1e3;
    let output: u32 = seen.iter().map(|seen| seen.tokens).sum();
    let input = seen.len() * 100;
    let mut latencies: Vec<(&str, Vec<f64>)> = vec![
        (
            if vllm { "E2EL" } else { "E2E Latency" },
            seen.iter().map(|seen| seen.e2e()).collect(),
        ),
        ("TTFT", seen.iter().map(|seen| seen.ttft).collect()),
        (
            "TPOT",
            seen.iter()
                .filter(|seen| seen.tokens > 1)
                .map(|seen| seen.tpot)
                .collect(),
        ),
        (
            "ITL",
            seen.iter()
                .flat_map(|seen| vec![seen.tpot; seen.tokens as usize - 1])
                .collect(),
        ),
    ];
    let mut out = String::new();
    if let Some(asked) = asked {
        let _ = writeln!(
            out,
            "Namespace(num_prompts={}, dataset_name='random', random_input_len=100, random_output_len={asked}, random_range_ratio={})",
            seen.len(),
            if vllm { "'0.0'" } else { "1.0" }
        );
    }
    let _ = writeln!(out, "============ Serving Benchmark Result ============");
    match vllm {
        true => {
            let _ = writeln!(out, "Maximum request concurrency: {cap}");
        }
        false => {
            let _ = writeln!(out, "Backend: lmdeploy\nTraffic request rate: inf");
        }
    }
    let rate = |count: f64| count / duration;
    let _ = writeln!(out, "Successful requests: {}", seen.len());
    let _ = writeln!(out, "Benchmark duration (s): {duration:.2}");
    let _ = writeln!(
        out,
        "Total input tokens: {input}\nTotal generated tokens: {output}"
    );
    let _ = writeln!(
        out,
        "Request throughput (req/s): {:.2}",
        rate(seen.len() as f64)
    );
    let _ = writeln!(
        out,
        "Output token throughput (tok/s): {:.2}",
        rate(f64::from(output))
    );
    match vllm {
        true => {
            let total = input as f64 + f64::from(output);
            let _ = writeln!(
                out,
                "Peak output token throughput (tok/s): {:.2}",
                peak(seen)
            );
            let _ = writeln!(out, "Peak concurrent requests: {cap}.00");
            let _ = writeln!(out, "Total token throughput (tok/s): {:.2}", rate(total));
        }
        false => {
            let _ = writeln!(out, "Total generated tokens (retokenized): {output}");
            let _ = writeln!(
                out,
                "Input token throughput (tok/s): {:.2}",
                rate(input as f64)
            );
        }
    }
    for (name, values) in &mut latencies {
        if values.is_empty() {
            values.push(0.0);
        }
        values.sort_by(f64::total_cmp);
        let _ = writeln!(out, "Mean {name} (ms): {:.2}", mean(values));
        for (label, percent) in [("Median", 50.0), ("P90", 90.0), ("P99", 99.0)] {
            let _ = writeln!(
                out,
                "{label} {name} (ms): {:.2}",
                percentile(values, percent)
            );
        }
    }
    out.push_str("==================================================\n");
    out
}

/// Most tokens in a second counted from the start.
fn peak(seen: &[Seen]) -> f64 {
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
    let grave = result
        .findings
        .iter()
        .filter(|finding| finding.severity != Severity::Note);
    grave
        .map(|finding| format!("{}: {}", finding.id.name(), finding.seen))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Latencies and lengths are of any distribution, heavy tails among them.
    #[test]
    fn honest_measurements_are_never_doubted(
        requests in prop::collection::vec((1.0f64..9.0, 0.5f64..5.0, 0.1f64..5.5), 1..120),
        fixed in prop::option::of(2u32..150),
        cap in 1usize..40,
        vllm: bool,
    ) {
        let requests: Vec<(f64, f64, u32)> = requests
            .into_iter()
            .map(|(ttft, tpot, tokens)| (ttft.exp(), tpot.exp(), fixed.unwrap_or(tokens.exp() as u32)))
            .collect();
        let seen = played(&requests, cap);
        let text = block(&seen, cap, vllm, fixed);
        let result = audited(&text);
        prop_assert_eq!(grave(&result), Vec::<String>::new(), "{}", text);
    }

    /// Of guidellm's figures, which are means over all tokens together.
    #[test]
    fn honest_guidellm_is_never_doubted(
        requests in prop::collection::vec((1.0f64..9.0, 0.5f64..5.0, 0.1f64..5.5), 1..120),
        cap in 1usize..40,
    ) {
        let requests: Vec<(f64, f64, u32)> =
            requests.into_iter().map(|(ttft, tpot, tokens)| (ttft.exp(), tpot.exp(), tokens.exp() as u32)).collect();
        let seen = played(&requests, cap);
        let result = &claims(&[guidellm(&seen, cap)])[0];
        prop_assert_eq!(grave(result), Vec::<String>::new());
    }

    /// A block without its line breaks says what it says with them.
    #[test]
    fn line_breaks_make_no_difference(
        requests in prop::collection::vec((1.0f64..9.0, 0.5f64..5.0, 0.1f64..5.5), 1..20),
        vllm: bool,
    ) {
        let requests: Vec<(f64, f64, u32)> =
            requests.into_iter().map(|(ttft, tpot, tokens)| (ttft.exp(), tpot.exp(), tokens.exp() as u32)).collect();
        let text = block(&played(&requests, 4), 4, vllm, None);
        let broken = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let of = |text: &str| {
            let claim = claim::read("block.txt", text.as_bytes()).unwrap().claims.remove(0);
            (claim.figures, claim.asked, claim.tool)
        };
        prop_assert_eq!(of(&text), of(&broken));
    }

    /// Any bytes are read or refused, and what is read is audited.
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..2000, at in 0usize..2000) {
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

/// What guidellm would claim of what was seen.
fn guidellm(seen: &[Seen], cap: usize) -> Claim {
    let mut claim = Claim::of(Tool::Guidellm, Source::default());
    let count = seen.len() as f64;
    let tokens: f64 = seen.iter().map(|seen| f64::from(seen.tokens)).sum();
    let e2e: f64 = seen.iter().map(|seen| seen.e2e()).sum();
    let ttft: f64 = seen.iter().map(|seen| seen.ttft).sum();
    let duration = seen
        .iter()
        .map(|seen| seen.start + seen.e2e())
        .fold(0.0, f64::max)
        / 1e3;
    let first = seen
        .iter()
        .map(|seen| seen.start + seen.ttft)
        .fold(f64::INFINITY, f64::min)
        / 1e3;
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
    // Its rates begin with the first token; where that is much later than the run, it is said to be so.
    if first < duration * 0.04 {
        claim.state(
            "throughput.output-tokens-per-s",
            tokens / (duration - first),
            0.0,
        );
    }
    claim
}

/// A plain block of 200 answers of 100 tokens each, with some of its lines replaced.
fn with(lines: &[(&str, &str)]) -> Audited {
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
    let mut text = "Namespace(num_prompts=200, dataset_name='random', random_input_len=100, random_output_len=100, \
        random_range_ratio=1.0)\n============ Serving Benchmark Result ============\n"
        .to_owned();
    for (label, value) in block {
        let _ = writeln!(text, "{label}: {value}");
    }
    text.push_str("==================================================\n");
    audited(&text)
}

#[test]
fn each_figure_that_is_off_is_told_by_its_rule() {
    assert_eq!(with(&[]).findings, []);
    let cases: &[(&[(&str, &str)], Id, Severity, &str)] = &[
        (
            &[
                ("Successful requests", "90"),
                ("Request throughput (req/s)", "0.90"),
                ("Total generated tokens", "9000"),
                ("Output token throughput (tok/s)", "90.00"),
                ("Total generated tokens (retokenized)", "9000"),
            ],
            Id::Failures,
            Severity::Invalid,
            "are missing",
        ),
        (
            &[("Total generated tokens (retokenized)", "17000")],
            Id::RetokenizedDiffers,
            Severity::Suspect,
            "15 % fewer",
        ),
        (
            &[("Total generated tokens (retokenized)", "19700")],
            Id::RetokenizedDiffers,
            Severity::Note,
            "1.5 % fewer",
        ),
        (
            &[("Request throughput (req/s)", "2.20")],
            Id::RequestRateDisagrees,
            Severity::Invalid,
            "are 2 a second, and 2.2 is stated",
        ),
        (
            &[("Output token throughput (tok/s)", "202.00")],
            Id::TokenRateDisagrees,
            Severity::Suspect,
            "over 99.01 s",
        ),
        (
            &[("Mean TPOT (ms)", "5.00"), ("Median TPOT (ms)", "5.00")],
            Id::LatencyDisagrees,
            Severity::Invalid,
            "(E2E - TTFT)",
        ),
        (
            &[("Mean TPOT (ms)", "14.90"), ("P99 TPOT (ms)", "16.00")],
            Id::LatencyDisagrees,
            Severity::Invalid,
            "E2E / n",
        ),
        (
            &[
                ("Mean TPOT (ms)", "5.00"),
                ("P99 TPOT (ms)", "6.00"),
                ("Median TPOT (ms)", "5.00"),
            ],
            Id::LatencyDisagrees,
            Severity::Invalid,
            "500 + 5 * 99 = 995 ms",
        ),
        (
            &[("Mean ITL (ms)", "4.00"), ("Median ITL (ms)", "4.00")],
            Id::GapsDisagree,
            Severity::Invalid,
            "99 gaps of 4 ms",
        ),
        (
            &[("Mean ITL (ms)", "19.00")],
            Id::TokensPerGap,
            Severity::Note,
            "about 1.9 tokens",
        ),
        (
            &[
                ("Mean ITL (ms)", "0.00"),
                ("Median ITL (ms)", "0.00"),
                ("P99 ITL (ms)", "0.00"),
            ],
            Id::ZeroMeansAbsent,
            Severity::Invalid,
            "mean ITL is 0",
        ),
        (
            &[("Median ITL (ms)", "0.00")],
            Id::ZeroGaps,
            Severity::Suspect,
            "median ITL is 0 at a mean of 10 ms",
        ),
        (
            &[("P99 TTFT (ms)", "400.00")],
            Id::Disordered,
            Severity::Invalid,
            "median TTFT is 500 ms and P99 TTFT is 400 ms",
        ),
        (
            &[("Median E2E Latency (ms)", "4000.00")],
            Id::MeanImpossible,
            Severity::Invalid,
            "allow no less than",
        ),
        (
            &[("Mean E2E Latency (ms)", "149000.00")],
            Id::LatencyOverDuration,
            Severity::Invalid,
            "the run took 100000 ms",
        ),
        (
            &[("Mean TTFT (ms)", "1700.00")],
            Id::TtftOverE2e,
            Severity::Invalid,
            "mean TTFT is 1700 ms and mean E2E 1490 ms",
        ),
        (
            &[("Concurrency", "9.00")],
            Id::ConcurrencyDisagrees,
            Severity::Suspect,
            "2.98 requests in flight",
        ),
        (
            &[("Max request concurrency", "2"), ("Concurrency", "2.98")],
            Id::OverCap,
            Severity::Invalid,
            "the cap is 2",
        ),
        (
            &[("Peak output token throughput (tok/s)", "30000.00")],
            Id::PeakImpossible,
            Severity::Invalid,
            "generated 20000 tokens",
        ),
        (
            &[
                ("Peak output token throughput (tok/s)", "9000.00"),
                ("Peak concurrent requests", "5"),
            ],
            Id::PeakImplausible,
            Severity::Suspect,
            "1800 for each",
        ),
        (
            &[("Peak output token throughput (tok/s)", "50.00")],
            Id::PeakBelowMean,
            Severity::Suspect,
            "and the mean 200",
        ),
        (
            &[("Traffic request rate", "9")],
            Id::RateNotReached,
            Severity::Note,
            "9 requests a second were asked for",
        ),
        (
            &[("Traffic request rate", "1")],
            Id::RateExceeded,
            Severity::Suspect,
            "and 2 went through",
        ),
        (
            &[("Total token throughput (tok/s)", "500.00")],
            Id::TotalDisagrees,
            Severity::Invalid,
            "are 400 tok/s together",
        ),
        (
            &[("Successful requests", "0")],
            Id::NothingAnswered,
            Severity::Invalid,
            "none",
        ),
    ];
    for (lines, id, severity, words) in cases {
        let result = with(lines);
        let finding = result.findings.iter().find(|finding| finding.id == *id);
        let Some(finding) = finding else {
            panic!("{lines:?} has no {}: {:#?}", id.name(), result.findings);
        };
        assert_eq!(finding.severity, *severity, "{lines:?}: {finding:?}");
        let all = format!(
            "{} {}",
            finding.seen,
            finding.formula.as_deref().unwrap_or_default()
        );
        assert!(all.contains(words), "{lines:?}: {all}");
    }
}
