use serde_json::json;

use super::fixture::{
    Engine, FIGURES, USUAL, claim, exchanges, measured, named, options, pair, plan, side,
};
use super::*;
use audit::claim::{Claim, Source, Tool};
use model::exchange::ServerTimings;
use model::units::Nanos;
use result::finding::{Finding, Id, Severity};
use result::summary::Summary;

fn judgement(compared: &Compared, figure: &str) -> Option<Judgement> {
    compared.row("B", figure).unwrap().judgement
}

#[test]
fn better_is_better_and_worse_is_worse() {
    let sides = pair().map(|exchanges| side(&exchanges));
    let found = compare(&sides, &options(named(&FIGURES), 600)).unwrap();
    assert_eq!(judgement(&found, "ttft.mean"), Some(Judgement::Worse));
    assert_eq!(judgement(&found, "itl.mean"), Some(Judgement::Better));
    // Neither better nor worse.
    assert_eq!(judgement(&found, "concurrency.peak"), None);
    let longest = found.row("B", "ttft.max").unwrap();
    assert_eq!(longest.judgement, Some(Judgement::NotJudged));
    assert_eq!(longest.no_interval, Some(NoInterval::OneRun));
    let expected = Method::Blocks { blocks: 20, requests: 30, variation: Variation::default() };
    assert_eq!(found.pairs[0].method, expected);
    // The same, looked at from the other side.
    let [a, b] = sides;
    let turned = compare(&[b, a], &options(named(&FIGURES), 600)).unwrap();
    assert_eq!(judgement(&turned, "ttft.mean"), Some(Judgement::Better));
    assert_eq!(judgement(&turned, "itl.mean"), Some(Judgement::Worse));
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let [exchanges, _] = pair();
    let sides = [side(&exchanges), side(&exchanges)];
    let found = compare(&sides, &options(named(&FIGURES), 600)).unwrap();
    for row in &found.pairs[0].figures {
        assert_eq!(row.difference, Some(0.0), "{}", row.figure);
        assert!(!matches!(row.judgement, Some(Judgement::Better | Judgement::Worse)));
    }
}

#[test]
fn short_runs_and_thin_tails_have_no_interval() {
    for (requests, figure, why) in
        [(9, "ttft.mean", NoInterval::FewRequests), (100, "ttft.p99", NoInterval::FewSamples)]
    {
        let exchanges = exchanges(USUAL, requests, 10.0);
        let sides = [side(&exchanges), side(&exchanges)];
        let found = compare(&sides, &options(named(&[figure]), requests)).unwrap();
        let row = found.row("B", figure).unwrap();
        assert_eq!((row.no_interval, row.interval), (Some(why), None));
        assert_eq!(row.judgement, Some(Judgement::NotJudged));
    }
}

/// Runs of 20 requests with the time to first token multiplied by each factor.
fn repeats(factors: &[f64]) -> Side {
    let runs = factors.iter().map(|ttft| {
        let engine = Engine { ttft: *ttft, spread: 0.0, ..USUAL };
        measured("run", plan(&[]), &exchanges(engine, 20, 10.0))
    });
    Side::Runs(runs.collect())
}

#[test]
fn repeats_are_judged_by_their_spread() {
    let figures = named(&["ttft.mean"]);
    let judged = |a: &[f64], b: &[f64]| {
        let sides = [repeats(a), repeats(b)];
        let found = compare(&sides, &options(figures.clone(), 20)).unwrap();
        (judgement(&found, "ttft.mean").unwrap(), found.pairs[0].method.clone())
    };
    // A tenth is more than repeats differ by, or it is not.
    let (verdict, method) = judged(&[1.0, 1.01, 0.99], &[1.1, 1.11, 1.09]);
    assert_eq!(verdict, Judgement::Worse);
    assert_eq!(method, Method::Runs { baseline: 3, side: 3 });
    let (verdict, _) = judged(&[0.9, 1.0, 1.1], &[1.0, 1.1, 1.2]);
    assert_eq!(verdict, Judgement::NoDifference);
    // One run is taken to vary as the other side's do.
    assert_eq!(judged(&[1.0, 1.01, 0.99, 1.0], &[1.1]).0, Judgement::Worse);
    assert_eq!(judged(&[1.0, 1.1], &[1.2]).0, Judgement::NoDifference);
}

/// A burst of answers of about one length: all of them end together, and their tokens come evenly.
#[test]
fn rates_of_answers_and_tokens_are_equally_certain() {
    let wide = Engine { places: 1000, ..USUAL };
    let sides = [1, 2].map(|seed| side(&exchanges(Engine { seed, ..wide }, 200, 1e9)));
    let figures = ["throughput.requests-per-s", "throughput.output-tokens-per-s"];
    let found = compare(&sides, &options(named(&figures), 200)).unwrap();
    let width = |figure| {
        let row = found.row("B", figure).unwrap();
        let (ends, baseline) = row.interval.zip(row.baseline).unwrap();
        (ends.high - ends.low) / baseline
    };
    let [answers, tokens] = figures.map(width);
    assert!((answers / tokens - 1.0).abs() < 0.5, "{answers} and {tokens}");
}

/// Two single runs take a third side's variation: eight runs have seven degrees of freedom.
#[test]
fn single_runs_take_the_variation_of_the_sides_with_repeats() {
    let repeated = repeats(&[0.97, 1.0, 1.03, 0.99, 1.01, 0.98, 1.02, 1.0]);
    let sides = [repeats(&[1.0]), repeats(&[1.1]), repeated];
    let figures = named(&["ttft.mean"]);
    let found = compare(&sides, &options(figures.clone(), 20)).unwrap();
    let Method::Blocks { variation: Variation::Sides { sides: names, figures: shown }, .. } =
        &found.pairs[0].method
    else {
        panic!("{:?}", found.pairs[0].method)
    };
    let shows = shown["ttft.mean"];
    assert_eq!((names.as_slice(), shows.runs, shows.freedom), (&["C".to_owned()][..], 8, 7));
    assert!(shows.share > 0.01 && shows.share < 0.03, "{shows:?}");
    assert!(!found.is_assumed());
    // A side of one run beside two of several has the pooled variation, so it is better known.
    let several = |sides: &[Side]| {
        let found = compare(sides, &options(figures.clone(), 20)).unwrap();
        found.row("B", "ttft.mean").unwrap().detectable.unwrap()
    };
    let [one, two] = [[1.0, 1.01], [1.0, 0.99]].map(|factors| repeats(&factors));
    let alone = several(&[one, repeats(&[1.1])]);
    assert!(several(&[repeats(&[1.0, 1.01]), repeats(&[1.1]), two]) < 0.7 * alone);
}

/// Other work on the machine changes times by an unknown amount, which repeats alone show.
#[test]
fn single_runs_beside_other_work_have_no_verdict_on_times() {
    let options = Options {
        conditions: vec!["ttft.mean +5%".parse().unwrap()],
        ..options(named(&["ttft.mean", "requests.success-share"]), 600)
    };
    let sides = |id| {
        pair().map(|exchanges| {
            let mut run = measured("run", plan(&[]), &exchanges);
            run.reported.summary.findings = vec![Finding {
                id,
                severity: Severity::Note,
                seen: "busy".into(),
                why: String::new(),
                advice: String::new(),
            }];
            Side::Runs(vec![run])
        })
    };
    let found = compare(&sides(Id::SharedMachine), &options).unwrap();
    let row = found.row("B", "ttft.mean").unwrap();
    assert_eq!(row.judgement, Some(Judgement::NotJudged));
    assert_eq!((row.no_interval, row.interval), (Some(NoInterval::TimesInDoubt), None));
    assert_eq!(judgement(&found, "requests.success-share"), Some(Judgement::NoDifference));
    assert_eq!(found.sides[0].doubts, ["note shared-machine: busy"]);
    assert!(!found.is_failed() && found.conditions[0].seen.contains("compare repeats"));
    // A difference that other work cannot explain has a verdict.
    let mut far = sides(Id::SharedMachine);
    let run = Engine { ttft: 6.0, seed: 2, places: 1000, ..USUAL };
    far[1] = side(&exchanges(run, 600, 10.0));
    let found = compare(&far, &options).unwrap();
    assert_eq!(judgement(&found, "ttft.mean"), Some(Judgement::Worse));
    assert!(found.row("B", "ttft.mean").unwrap().run_variation >= Some(0.2));
    // A note about something else doubts no time, and a stated variation is taken as it is.
    let stated = Options { variation: Some(Variation::default()), ..options.clone() };
    for (id, options) in [(Id::ShortRun, &options), (Id::SharedMachine, &stated)] {
        let found = compare(&sides(id), options).unwrap();
        assert_eq!(judgement(&found, "ttft.mean"), Some(Judgement::Worse), "{id:?}");
        assert!(found.is_failed());
    }
}

#[test]
fn refuses_incomparable_sides_unless_allowed() {
    let [a, b] = pair();
    let sides =
        [side(&a), Side::Runs(vec![measured("other", plan(&[("load.seed", json!(2))]), &b)])];
    let mut options = options(named(&FIGURES), 600);
    let refused = compare(&sides, &options).unwrap_err();
    assert_eq!((refused.len(), refused[0].kind), (1, Kind::Prompts));
    options.allowed = vec![Kind::Prompts];
    let found = compare(&sides, &options).unwrap();
    assert_eq!(found.allowed, refused);
}

#[test]
fn conditions_fail_on_shown_differences() {
    let sides = pair().map(|exchanges| side(&exchanges));
    let mut options = options(named(&["ttft.mean"]), 600);
    let conditions = [
        ("ttft.mean +5%", true, "beyond chance"),
        ("ttft.mean +10ms", true, "beyond chance"),
        ("ttft.mean +500%", false, "+"),
        ("itl.mean +0%", false, "-"),
        ("ttft.max +1%", true, "the difference alone decides"),
        ("throughput.requests-per-s -90%", false, ""),
        ("queue.mean +1%", false, "neither side has it"),
    ];
    options.conditions = conditions.map(|(text, ..)| text.parse().unwrap()).into();
    let found = compare(&sides, &options).unwrap();
    for (outcome, (text, fails, seen)) in found.conditions.iter().zip(conditions) {
        assert_eq!((outcome.condition.as_str(), outcome.fails), (text, fails), "{}", outcome.seen);
        assert!(outcome.seen.contains(seen), "{text}: {}", outcome.seen);
    }
    assert!(found.is_failed());
    assert!(found.conditions[6].is_absent);
    // Chance fails nothing, however tight the limit.
    let other = Engine { seed: 3, ..USUAL };
    let sides = [USUAL, other].map(|engine| side(&exchanges(engine, 600, 10.0)));
    options.conditions = vec!["ttft.mean +0%".parse().unwrap(), "e2e.mean +0ms".parse().unwrap()];
    assert!(!compare(&sides, &options).unwrap().is_failed());
}

#[test]
fn claims_have_no_interval_unless_they_have_samples() {
    let [a, _] = pair();
    let doubts = vec!["suspect: TPOT has another definition".to_owned()];
    let stated = Side::Claim(Box::new(Stated::new(claim(), doubts, blocks(600))));
    let sides = [side(&a), stated];
    let found = compare(&sides, &options(named(&["ttft.mean", "tpot.mean"]), 600)).unwrap();
    let row = found.row("B", "ttft.mean").unwrap();
    assert_eq!((row.value, row.no_interval), (Some(80.0), Some(NoInterval::Published)));
    assert_eq!(row.judgement, Some(Judgement::NotJudged));
    assert_eq!(found.row("B", "tpot.mean").unwrap().value, None);

    let mut sampled = claim();
    sampled.samples = (0..600)
        .map(|i| audit::claim::Sample {
            ttft_ms: Some(200.0 + f64::from(i % 7)),
            ..Default::default()
        })
        .collect();
    let sides = [side(&a), Side::Claim(Box::new(Stated::new(sampled, Vec::new(), blocks(600))))];
    let found = compare(&sides, &options(named(&["ttft.mean"]), 600)).unwrap();
    assert!(found.row("B", "ttft.mean").unwrap().interval.is_some());
}

/// A run whose server reports its queue and its prefill has the parts of TTFT in every comparison.
#[test]
fn the_parts_of_ttft_are_compared_where_a_server_tells_them() {
    let compared = |queue: Option<u64>| {
        let timed = |queue: Option<u64>| {
            let mut run = exchanges(USUAL, 300, 10.0);
            for exchange in &mut run {
                exchange.timings = queue.map(|queue| ServerTimings {
                    queue: Some(Nanos(queue * 1_000_000 + exchange.index * 1_000)),
                    prefill: Some(Nanos(10_000_000)),
                    ..ServerTimings::default()
                });
            }
            side(&run)
        };
        let sides = [timed(Some(5)), timed(queue)];
        let summaries: Vec<&Summary> = (sides.iter())
            .flat_map(Side::measured)
            .map(|measured| &measured.reported.summary)
            .collect();
        let figures = figures(&Choice::Headline, &summaries, &[]);
        compare(&sides, &options(figures, 300)).unwrap()
    };
    let found = compared(Some(25));
    let row = |figure: &str| found.row("B", figure).unwrap();
    assert_eq!(row("ttft-queue.mean").judgement, Some(Judgement::Worse));
    assert!((row("ttft-queue.mean").difference.unwrap() - 20.0).abs() < 1e-6);
    assert_eq!(row("ttft-prefill.mean").difference, Some(0.0));
    assert!(found.row("B", "ttft-network.mean").is_none(), "nobody tells it");
    let found = compared(None);
    assert_eq!(found.row("B", "ttft-queue.mean").unwrap().value, None);
}

#[test]
fn compares_the_metric_of_the_tools_definition() {
    let vllm = Claim::new(Tool::Vllm, Source::default());
    let names = |figures: Vec<Figure>| figures.iter().map(Figure::to_string).collect::<Vec<_>>();
    let figures = names(figures(&Choice::Headline, &[], &[&vllm]));
    assert!(figures.contains(&"ttft-any.mean".to_owned()), "{figures:?}");
    assert!(figures.contains(&"e2e-last-token.p99".to_owned()), "{figures:?}");
    assert!(!figures.contains(&"ttft.mean".to_owned()), "{figures:?}");
}
