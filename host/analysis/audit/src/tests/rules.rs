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
