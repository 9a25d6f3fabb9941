use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::comparisons::{
    FIGURES, USUAL, claim, exchanges, measured, named, options, pair, plan, scored, side,
};
use crate::tests::golden;
use compare::{Choice, Kind, Side, Stated, compare, figures};

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
