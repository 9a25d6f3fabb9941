use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::comparisons::{
    FIGURES, USUAL, claim, exchanges, measured, named, options, pair, plan, scored, side,
};
use crate::tests::golden;
use compare::{Choice, Kind, Side, Stated, compare, figures};
use model::exchange::Exchange;

#[test]
fn a_refusal_says_how_to_compare_anyway() {
    let [a, b] = pair();
    let other = measured("other", plan(&[("load.seed", json!(2))]), &b);
    let sides = [side(&a), Side::Runs(vec![other])];
    let mut options = options(named(&FIGURES), 600);
    assert_eq!(
        refusal(&compare(&sides, &options).unwrap_err()),
        [
            "not comparable: load.seed (prompts): 1 in A, 2 in B",
            "these must agree, otherwise the comparison only shows their effect; to compare anyway, add --allow prompts"
        ]
    );
    options.allowed = vec![Kind::Prompts];
    let found = compare(&sides, &options).unwrap();
    assert!(page(&found).text().contains("COMPARED ALTHOUGH THESE DIFFER"));
    // Repeats with new requests.
    options.allowed.clear();
    let repeats = [1, 2].map(|seed| measured("run", plan(&[("load.seed", json!(seed))]), &a));
    let refused =
        refusal(&compare(&[side(&a), Side::Runs(repeats.into()), side(&b)], &options).unwrap_err());
    assert_eq!(
        refused[..2],
        [
            "not comparable: load.seed (prompts): 1 in A, 2 in another run of B",
            "repeats to compare send the same requests: measure them with --same-requests"
        ]
    );
}

/// The notes name the source of the run-to-run variation.
#[test]
fn the_notes_name_the_source_of_the_variation() {
    let [a, b] = pair();
    let runs = |many: usize, exchanges: &[Exchange]| {
        Side::Runs((0..many).map(|_| measured("run", plan(&[]), exchanges)).collect())
    };
    let options = options(named(&FIGURES), 600);
    let shown = |sides: &[Side]| page(&compare(sides, &options).unwrap()).text();
    for (sides, words) in [
        (vec![side(&a), side(&b)], "is assumed to be 2 % of the engine's pace"),
        (vec![runs(3, &a), runs(3, &b)], "the repeats of the sides: pooled, 4 degrees of freedom."),
        (vec![runs(3, &a), runs(2, &b)], "the repeats of the sides: each side's own (Welch)."),
        (
            vec![runs(3, &a), side(&b), runs(2, &a)],
            "the repeats of the sides: pooled, 3 degrees of freedom; the single run varies alike.",
        ),
        (vec![side(&a), side(&b), runs(3, &a)], "is taken from 3 runs of C (pooled)"),
    ] {
        let shown = shown(&sides);
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn explains_a_missing_interval() {
    let [a, _] = pair();
    let doubts = vec!["suspect: TPOT has another definition".to_owned()];
    let stated = Side::Claim(Box::new(Stated::new(claim(), doubts, None)));
    let found = compare(&[side(&a), stated], &options(named(&["ttft.mean", "tpot.mean"]), 600));
    let shown = page(&found.unwrap()).text();
    assert!(
        shown.contains("Reasons to doubt B") && shown.contains("published without samples"),
        "{shown}"
    );

    let run = exchanges(USUAL, 200, 10.0);
    let mut other = run.clone();
    for exchange in &mut other {
        exchange.sample.reference = Some("another".into());
    }
    let side = |run| {
        let scores = (0..200).map(|index| (index, 1.0)).collect();
        let scores = BTreeMap::from([("exact-match".to_owned(), scores)]);
        Side::Runs(vec![scored("run", plan(&[]), run, scores)])
    };
    let options = options(named(&["score.exact-match"]), 200);
    let shown = page(&compare(&[side(&run), side(&other)], &options).unwrap()).text();
    assert!(shown.contains("no sample was judged in both runs"), "{shown}");
}

/// Texts as they are printed; `BLESS=1` writes them anew.
#[test]
fn the_forms_equal_the_goldens() {
    let [a, b] = pair();
    let engine = |name: &str| plan(&[("about", json!({"engine": name, "hardware": "8x H800"}))]);
    let sides = [
        Side::Runs(vec![measured("20260102-030405-chat", engine("lmdeploy"), &a)]),
        Side::Runs(vec![measured("20260102-031405-chat", engine("sglang"), &b)]),
        Side::Claim(Box::new(Stated::new(claim(), vec!["suspect: <made|up>".into()], None))),
    ];
    let summary = &sides[0].measured()[0].reported.summary;
    let mut options = options(figures(&Choice::Headline, &[summary], &[]), 600);
    options.allowed = vec![Kind::Load, Kind::Lengths];
    options.conditions = vec!["ttft.mean +5%".parse().unwrap()];
    let found = compare(&sides, &options).unwrap();
    golden("src/compared/goldens/compared.txt", &page(&found).text());
    golden("src/compared/goldens/compared.md", &page(&found).markdown_section(2));
}

/// A comparison with all that one can hold, as JSON.
pub(crate) fn any() -> serde_json::Value {
    let [a, b] = pair();
    let over = [("load.seed", json!(2)), ("about", json!({"engine": "sglang"}))];
    let sides = [
        side(&a),
        Side::Runs(vec![measured("other", plan(&over), &b)]),
        Side::Claim(Box::new(Stated::new(claim(), vec!["doubt".into()], None))),
    ];
    let mut options = options(named(&FIGURES), 600);
    options.allowed = Kind::ALL.to_vec();
    options.conditions = vec!["ttft.mean +5%".parse().unwrap(), "queue.mean +1%".parse().unwrap()];
    serde_json::to_value(compare(&sides, &options).unwrap()).unwrap()
}
