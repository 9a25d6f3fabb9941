//! Figures at the bounds that other figures of the same result set are not reported, and figures
//! just beyond are.

use super::spread::{Request, Style, stated};
use super::*;
use crate::claim::Lengths;

/// Makes the claim about 200 requests like these, in hundredths of a millisecond.
fn claim_of_200(make: impl Fn(u32) -> Request, fixed: bool) -> Claim {
    claim_of(make, fixed, 2)
}

/// Makes the claim about 200 such requests with this number of digits after the point.
fn claim_of(make: impl Fn(u32) -> Request, fixed: bool, decimals: i32) -> Claim {
    let ones: Vec<Request> = (0..200).map(make).collect();
    let style = Style { tool: Tool::Vllm, decimals, lengths: false, requested: fixed, cap: 10 };
    let mut claim = stated(&ones, fixed, style);
    claim.asked.request_rate = None;
    claim
}

/// 100 tokens each, at 10 to 14 ms a token, and the first always after 100 ms. E2E is as spread as
/// TPOT, so that every percentile and the deviation are at their bounds.
fn at_the_bounds() -> Claim {
    claim_of_200(of_length(100), true)
}

fn of_length(tokens: u64) -> impl Fn(u32) -> Request {
    move |index| Request { ttft: 100.0, tpot: 10.0 + f64::from(index) / 50.0, tokens, after: 0.0 }
}

/// The findings, with their severities, of a claim with changed figures.
fn finding(claim: &Claim, changes: &[(&str, f64)]) -> Option<(Severity, String)> {
    let mut claim = claim.clone();
    for (name, by) in changes {
        let stated = claim.stated(name).unwrap();
        claim.state(*name, stated.value + by, stated.rounding);
    }
    let mut findings = claims(&[claim]).remove(0).findings;
    findings.retain(|finding| finding.id != Id::MeanImpossible);
    assert!(findings.len() < 2, "{findings:#?}");
    let finding = findings.pop()?;
    let words = format!("{}: {}", finding.id.name(), finding.seen);
    Some((finding.severity, words))
}

fn without(claim: &Claim, figures: &[&str]) -> Claim {
    let mut claim = claim.clone();
    claim.figures.retain(|name, _| !figures.contains(&name.as_str()));
    claim
}

#[track_caller]
fn assert_found(found: Option<(Severity, String)>, severity: Severity, words: &str) {
    let (how, seen) = found.expect(words);
    assert_eq!(how, severity, "{seen}");
    assert!(seen.contains(words), "{seen}");
}

/// Checks that the claim with changed figures is suspect, with a part of the finding's text.
#[track_caller]
fn suspect(claim: &Claim, changes: &[(&str, f64)], words: &str) {
    assert_found(finding(claim, changes), Severity::Suspect, words);
}

#[test]
fn percentiles_of_one_length_are_bounded_from_both_sides() {
    let honest = at_the_bounds();
    assert_eq!(finding(&honest, &[]), None);
    // A fifth of a per cent is left for percentiles out of histograms.
    for by in [-2.0, 2.0] {
        assert_eq!(finding(&honest, &[("e2e.p90", by)]), None);
    }
    suspect(
        &honest,
        &[("e2e.p90", -4.0)],
        "P90 E2E is 1440.62 ms, but min TTFT and P90 TPOT * (n - 1) allow no less than 100 + 13.58 * 99 = 1444.42 ms, and \
         all answers have 100 tokens",
    );
    suspect(
        &honest,
        &[("e2e.p90", 4.0)],
        "P90 E2E is 1448.62 ms, but max TTFT and P90 TPOT * (n - 1) allow no more than 100 + 13.58 * 99 = 1444.42 ms",
    );
    assert_found(
        finding(&honest, &[("e2e.max", 100.0)]),
        Severity::Invalid,
        "max E2E is 1584.02 ms, but max TTFT and max TPOT",
    );
}

/// Without extremes, percentiles with few enough requests above them bound a lower one together.
#[test]
fn outer_percentiles_bound_inner_ones() {
    let ends = [
        "ttft.min",
        "ttft.max",
        "tpot.min",
        "tpot.max",
        "e2e.max",
        "e2e.p95",
        "e2e.p99",
        "e2e.p99.9",
    ];
    let honest = without(&at_the_bounds(), &ends);
    // No more than 2 of 200 are above each P99, and no more than 10 above the P95.
    assert_eq!(finding(&honest, &[("e2e.p90", 20.0)]), None);
    suspect(
        &honest,
        &[("e2e.p90", 25.0)],
        "but P99 TTFT and P95 TPOT * (n - 1) allow no more than 100 + 13.78 * 99",
    );
    // Of the other half, a P50 and a P25 leave too few for the P75: nothing is known then.
    let below = ["e2e.p1", "e2e.p5", "e2e.p10", "e2e.p25", "e2e.median"];
    let honest = without(&honest, &below);
    assert_eq!(finding(&honest, &[("e2e.p75", -10.0)]), None);
    // Without a TTFT, the TTFT of each request is 0 or more.
    let first =
        ["mean", "median", "p1", "p5", "p10", "p25", "p75", "p90", "p95", "p99", "p99.9", "std"]
            .map(|statistic| format!("ttft.{statistic}"));
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let honest = without(&honest, &first);
    assert_eq!(finding(&honest, &[("e2e.p75", -100.0)]), None);
    suspect(
        &honest,
        &[("e2e.p75", -105.0)],
        "but P75 TPOT * (n - 1) allows no less than 12.99 * 99 = 1286.01 ms",
    );
}

#[test]
fn deviations_of_one_length_bound_each_other() {
    let honest = at_the_bounds();
    for by in [-0.1, 0.1] {
        assert_eq!(finding(&honest, &[("e2e.std", by)]), None);
    }
    suspect(
        &honest,
        &[("e2e.std", -2.0)],
        "the deviations of TTFT and of TPOT * (n - 1), 0 ms and 1.15 * 99 = 113.85 ms, allow no less than 113.35, and all",
    );
    assert_found(
        finding(&honest, &[("e2e.std", 10.0)]),
        Severity::Invalid,
        "E2E has a deviation of 124.31 ms",
    );
    // Slow first tokens before fast ones: anything between the difference and the sum is honest.
    assert_eq!(finding(&honest, &[("e2e.std", -40.0), ("ttft.std", 60.0)]), None);
}

/// Nobody states that all answers have 100 tokens, but the totals do, and means in full confirm it;
/// rounded ones cannot.
#[test]
fn one_length_is_inferred_where_totals_and_means_agree_on_it() {
    let mut honest = claim_of(of_length(100), false, 9);
    honest.asked.most_output_tokens = None;
    let wrong = ("e2e.max", 100.0);
    let inferred = "* 99 = 1484.02 ms, and the totals fit 100 tokens for each request";
    let mix = "tokens for each request; a mix of lengths with these totals would explain it";
    assert_eq!(finding(&honest, &[]), None);
    let (_, words) = finding(&honest, &[wrong]).unwrap();
    assert!(!words.contains(mix), "{words}");
    suspect(&honest, &[wrong], inferred);
    let rounded = |name: &str, half: f64| {
        let mut claim = honest.clone();
        claim.state(name, claim.value(name).unwrap(), half);
        finding(&claim, &[wrong])
    };
    for mean in ["tpot.mean", "ttft.mean", "e2e.mean"] {
        assert_found(rounded(mean, 0.005), Severity::Note, mix);
        assert_eq!(rounded(mean, 5.0), None, "{mean}");
    }
    let mut honest = at_the_bounds();
    honest.asked.output_tokens = None;
    assert_eq!(finding(&honest, &[]), None);
    assert_found(finding(&honest, &[wrong]), Severity::Note, inferred);
    assert_found(finding(&honest, &[wrong]), Severity::Note, mix);
    for other in [
        ("tokens.output", 1.0),
        // The mean TPOT, which is still a likely one, then shows that lengths differ.
        ("tpot.mean", -0.5),
        // Fewer requests of the same length: such a total is no rarity.
        ("requests.successful", -101.0),
    ] {
        let mut changes = vec![wrong, other];
        if other.0 == "requests.successful" {
            changes.push(("tokens.output", -10_100.0));
            honest.asked.requests = Some(99);
        }
        assert_eq!(finding(&honest, &changes), None, "{other:?}");
    }
    // A length that is not round takes an input total that divides as well.
    let make = of_length(107);
    let mut honest = claim_of(&make, false, 9);
    honest.asked.most_output_tokens = None;
    honest.state("tokens.input", 64_001.0, 0.0);
    assert_eq!(finding(&honest, &[wrong]), None);
    honest.state("tokens.input", 64_000.0, 0.0);
    suspect(&honest, &[wrong], "fit 107 tokens for each");
    // Where the source states different lengths, nothing is inferred.
    honest.output_lengths = Some(Lengths { least: 100, most: 114 });
    assert_eq!(finding(&honest, &[wrong]), None);
    // Where TPOT hardly varies, the means of different lengths agree too.
    let make =
        |index: u32| Request { tpot: 10.0, tokens: u64::from(51 + index % 100), ..make(index) };
    let mut constant = claim_of_200(make, false);
    constant.state("tokens.output", 20_000.0, 0.0);
    constant.state("e2e.mean", 1090.0, 0.005);
    assert_eq!(finding(&constant, &[]), None);
}

/// 50 to 249 tokens, each answer at the same speed: the weighted mean is at both extremes.
#[test]
fn mean_decode_time_lies_between_the_extremes_of_tpot() {
    let make =
        |index: u32| Request { ttft: 100.0, tpot: 10.0, tokens: u64::from(50 + index), after: 0.0 };
    let honest = claim_of_200(make, false);
    assert_eq!(finding(&honest, &[]), None);
    assert_eq!(finding(&honest, &[("e2e.mean", -0.5)]), None);
    suspect(
        &honest,
        &[("e2e.mean", -4.0)],
        "/ 148.5 = 9.97 ms, but mean TPOT is 10 ms, and no request has less than 10 ms",
    );
    // A stated maximum says nothing while one-token answers may have taken the rest.
    assert_eq!(finding(&honest, &[("e2e.mean", 4.0)]), None);
    let mut known = honest;
    known.output_lengths = Some(Lengths { least: 50, most: 249 });
    assert_eq!(finding(&known, &[("e2e.mean", 0.5)]), None);
    suspect(&known, &[("e2e.mean", 4.0)], "and no request has more than 10 ms");
}

/// Half of the answers have 2 tokens and half 100, at 10 and 20 ms a token: such halves reach the
/// bound of the covariance, in either direction.
#[test]
fn the_deviation_of_tpot_bounds_the_effect_of_lengths() {
    let extremes =
        ["min", "max", "median", "p1", "p5", "p10", "p25", "p75", "p90", "p95", "p99", "p99.9"]
            .map(|statistic| format!("tpot.{statistic}"));
    let extremes: Vec<&str> = extremes.iter().map(String::as_str).collect();
    let halves = |short: f64, long: f64| {
        let make = |index: u32| match index % 2 {
            0 => Request { ttft: 100.0, tpot: short, tokens: 2, after: 0.0 },
            _ => Request { ttft: 100.0, tpot: long, tokens: 100, after: 0.0 },
        };
        let mut claim = without(&claim_of_200(make, false), &extremes);
        claim.output_lengths = Some(Lengths { least: 2, most: 100 });
        claim
    };
    let slow_short = halves(20.0, 10.0);
    assert_eq!(finding(&slow_short, &[]), None);
    assert_eq!(finding(&slow_short, &[("e2e.mean", -0.4)]), None);
    suspect(
        &slow_short,
        &[("e2e.mean", -2.0)],
        "and its deviation of 5 ms allows no less than 10.09 ms with at most 100 tokens an answer",
    );
    let slow_long = halves(10.0, 20.0);
    assert_eq!(finding(&slow_long, &[]), None);
    suspect(&slow_long, &[("e2e.mean", 2.0)], "allows no more than 19.91 ms");
    // With a cap alone, answers of one token are possible, and the lower bound is left.
    let mut capped = slow_long;
    capped.output_lengths = None;
    capped.asked.most_output_tokens = Some(100);
    assert_eq!(finding(&capped, &[("e2e.mean", 4.0)]), None);
    let mut capped = slow_short;
    capped.output_lengths = None;
    capped.asked.most_output_tokens = Some(100);
    assert_eq!(finding(&capped, &[("e2e.mean", -2.0)]), None);
    assert_found(
        finding(&capped, &[("e2e.mean", -60.0)]),
        Severity::Invalid,
        " ms with at most 100 tokens requested for an answer, and 1 % more if counted again",
    );
}

#[test]
fn no_gap_is_longer_than_the_longest_request() {
    let honest = at_the_bounds();
    assert_eq!(finding(&honest, &[("itl.max", 1470.0)]), None);
    suspect(
        &honest,
        &[("itl.max", 1475.0)],
        "gap-over-e2e: the longest gap is 1488.98 ms, but the longest request took 1484.02 ms",
    );
    assert_found(finding(&honest, &[("itl.max", 2000.0)]), Severity::Invalid, "gap-over-e2e");
}

#[test]
fn a_cap_with_empty_slots_is_noted_where_requests_wait() {
    let mut honest = at_the_bounds();
    honest.asked.request_rate = Some(f64::INFINITY);
    let empty = ("throughput.duration-s", 6.0);
    assert_eq!(finding(&honest, &[]), None);
    assert_eq!(finding(&honest, &[("throughput.duration-s", 2.0)]), None);
    assert_found(
        finding(&honest, &[empty]),
        Severity::Note,
        "cap-not-full: at most 8.46 of 10 slots were in use on average until the last request was sent",
    );
    // The finding shows the upper end, however coarse the duration is.
    let mut coarse = honest.clone();
    coarse.state("throughput.duration-s", 38.0, 0.5);
    let (_, words) = finding(&coarse, &[]).unwrap();
    assert!(words.contains("at most 7.15 of 10"), "{words}");
    let mut paced = honest.clone();
    paced.asked.request_rate = None;
    assert_eq!(finding(&paced, &[empty]), None);
    let mut paced = honest.clone();
    paced.paced = true;
    assert_eq!(finding(&paced, &[empty]), None);
    // The time that failed requests took is in no mean.
    let mut failed = honest.clone();
    failed.asked.requests = Some(201);
    let (_, words) = finding(&failed, &[empty]).unwrap();
    assert!(words.starts_with("failures"), "{words}");
    assert_eq!(finding(&without(&honest, &["e2e.max"]), &[empty]), None);
}

/// 200 requests at 10 a second take 20 s; half of that is chance only if they come in bursts.
#[test]
fn bursts_explain_more_than_poisson_arrivals_do() {
    let mut claim = Claim::new(Tool::Vllm, Source::default());
    claim.asked.request_rate = Some(10.0);
    claim.asked.requests = Some(200);
    claim.state("requests.successful", 200.0, 0.0);
    claim.state("throughput.duration-s", 12.0, 0.005);
    claim.state("e2e.mean", 20.0, 0.005);
    let words_of_shape = |claim: &Claim, shape: Option<f64>| {
        let mut claim = claim.clone();
        claim.asked.burstiness = shape;
        finding(&claim, &[]).map(|(_, words)| words)
    };
    let exceeded =
        "rate-exceeded: the requested rate is 10 requests per second, but 16.67 went through";
    for (shape, words) in [
        (None, Some(exceeded)),
        (Some(1.0), Some(exceeded)),
        (Some(0.5), None),
        (Some(0.0), Some(exceeded)),
    ] {
        assert_eq!(words_of_shape(&claim, shape).as_deref(), words, "{shape:?}");
    }
    // Even arrivals stray by less: 18 s of 20 are chance for Poisson's.
    claim.state("throughput.duration-s", 18.0, 0.005);
    assert_eq!(words_of_shape(&claim, Some(1.0)), None);
    assert!(words_of_shape(&claim, Some(100.0)).unwrap().starts_with("rate-exceeded"));
}

/// Lengths and arrivals, which these rules need beyond figures, are read from the files that state
/// them, and from no others.
#[test]
fn lengths_and_arrivals_are_read_where_they_are_stated() {
    let read = |folder: &str, file: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/audit");
        let bytes = std::fs::read(path.join(folder).join(file)).unwrap();
        claim::read(file, &bytes).unwrap().claims.remove(0)
    };
    let whole = read("aiperf", "input.json");
    let (least, most) = (16, 16);
    assert_eq!(whole.output_lengths, Some(Lengths { least, most }));
    // It counted the tokens of 10 of these 12 answers.
    assert_eq!(read("aiperf-failures", "input.json").output_lengths, None);
    let random = read("sglang-details", "input.jsonl").asked;
    assert_eq!((random.output_tokens, random.most_output_tokens), (None, Some(16)));
    let steady = read("vllm-detailed", "input.json").asked;
    assert_eq!((steady.request_rate, steady.burstiness), (Some(20.0), Some(1.0)));

    let flags = |more: &str| {
        let seen = played(&[(20.0, 5.0, 7), (30.0, 6.0, 9)], 1);
        let block = block(&seen, 1, true, None);
        let text = format!("Namespace(request_rate=inf, burstiness=0.5, {more})\n{block}");
        let mut claims = claim::read("log", text.as_bytes()).unwrap().claims;
        claims.remove(0).asked
    };
    let plain = flags("ramp_up_strategy=None");
    assert_eq!((plain.request_rate, plain.burstiness), (Some(f64::INFINITY), Some(0.5)));
    assert_eq!(flags("ramp_up_strategy='linear'").request_rate, None);
}

/// Settings that make AIPerf's requests wait for more than a rate and a cap, under the names of its
/// older and newer settings.
#[test]
fn paces_are_read_from_aiperfs_settings() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../tests/audit/aiperf-cap-not-full/input.json");
    let content = std::fs::read(path).unwrap();
    let paced = |settings: serde_json::Value| {
        let mut file: serde_json::Value = serde_json::from_slice(&content).unwrap();
        let config = file["input_config"].as_object_mut().unwrap();
        config.insert("more".into(), settings);
        let bytes = serde_json::to_vec(&file).unwrap();
        let claim = claim::read("input", &bytes).unwrap().claims.remove(0);
        let findings = claims(std::slice::from_ref(&claim)).remove(0).findings;
        let noted = findings.iter().any(|finding| finding.id == Id::CapNotFull);
        assert_eq!(noted, !claim.paced);
        claim.paced
    };
    for settings in [
        serde_json::json!({}),
        serde_json::json!({"fixed_schedule": false, "concurrency_ramp_duration": null}),
        serde_json::json!({"turn": {"delay": {"mean": 0.0, "stddev": 0.0, "ratio": 1.0}}}),
        serde_json::json!([{"type": "concurrency", "concurrency": 4}]),
    ] {
        assert!(!paced(settings.clone()), "{settings}");
    }
    for settings in [
        serde_json::json!({"fixed_schedule": true}),
        serde_json::json!({"turn": {"delay": {"mean": 500.0, "stddev": 0.0, "ratio": 1.0}}}),
        serde_json::json!({"user_centric_rate": 2.0}),
        serde_json::json!({"concurrency_ramp_duration": 30.0}),
        serde_json::json!([{"type": "concurrency", "concurrency_ramp": {"duration": 30.0}}]),
        serde_json::json!([{"type": "fixed_schedule"}]),
        serde_json::json!({"custom_dataset_type": "mooncake_trace"}),
    ] {
        assert!(paced(settings.clone()), "{settings}");
    }
}
