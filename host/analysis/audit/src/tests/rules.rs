//! Each wrong figure is found by its own rule.

use std::fmt::Write;

use super::*;

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

#[test]
fn each_rule_finds_its_wrong_figure() {
    assert_eq!(with(&[]).findings, []);
    /// Changed lines of the block, and the expected finding.
    type Case = (&'static [(&'static str, &'static str)], Id, Severity, &'static str);
    let cases: &[Case] = &[
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
            "are 2 per second, but 2.2 is stated",
        ),
        (
            &[("Output token throughput (tok/s)", "202.00")],
            Id::TokenRateDisagrees,
            Severity::Suspect,
            "over 99.01 s",
        ),
        (
            &[("Mean TPOT (ms)", "9.90")],
            Id::LatencyDisagrees,
            Severity::Suspect,
            "(E2E - TTFT) / n: it counts the first token",
        ),
        (
            &[("Mean TPOT (ms)", "14.90"), ("P99 TPOT (ms)", "16.00")],
            Id::LatencyDisagrees,
            Severity::Invalid,
            "E2E / n",
        ),
        (
            &[("Mean TPOT (ms)", "5.00"), ("P99 TPOT (ms)", "6.00"), ("Median TPOT (ms)", "5.00")],
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
        (&[("Mean ITL (ms)", "19.00")], Id::TokensPerGap, Severity::Note, "about 1.9 tokens"),
        (
            &[("Mean ITL (ms)", "0.00"), ("Median ITL (ms)", "0.00"), ("P99 ITL (ms)", "0.00")],
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
            "generated only 20000 tokens",
        ),
        (
            &[
                ("Peak output token throughput (tok/s)", "9000.00"),
                ("Peak concurrent requests", "5"),
            ],
            Id::PeakImplausible,
            Severity::Note,
            "1800 for each",
        ),
        (
            &[("Peak output token throughput (tok/s)", "50.00")],
            Id::PeakBelowMean,
            Severity::Suspect,
            "but the mean is 200",
        ),
        (
            &[("Traffic request rate", "9")],
            Id::RateNotReached,
            Severity::Note,
            "the requested rate is 9 requests per second",
        ),
        (
            &[("Traffic request rate", "1")],
            Id::RateExceeded,
            Severity::Suspect,
            "but 2 went through",
        ),
        (
            &[("Total token throughput (tok/s)", "500.00")],
            Id::TotalDisagrees,
            Severity::Invalid,
            "add up to 400 tok/s",
        ),
        (&[("Successful requests", "0")], Id::NothingAnswered, Severity::Invalid, "none"),
    ];
    for (lines, id, severity, words) in cases {
        let result = with(lines);
        let finding = result.findings.iter().find(|finding| finding.id == *id);
        let Some(finding) = finding else {
            panic!("{lines:?} has no {}: {:#?}", id.name(), result.findings);
        };
        assert_eq!(finding.severity, *severity, "{lines:?}: {finding:?}");
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
