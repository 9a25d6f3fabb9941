//! Pages and badges of cards. `BLESS=1` writes the goldens anew.

use super::{badge, page};
use crate::tests::golden;
use verify::card::{Card, CaseCard, Client, Outcome};
use verify::ceiling::{Ceiling, Level};
use verify::types::{Check, Part, Verdict};

fn check(figure: &str, verdict: Verdict, words: &str) -> Check {
    Check {
        figure: figure.to_owned(),
        claimed: "first-text".to_owned(),
        expected: Some(300.0),
        said: Some(50.2),
        verdict,
        fits: (verdict == Verdict::AnotherDefinition).then(|| "first-chunk".to_owned()),
        by_definition: Vec::new(),
        words: words.to_owned(),
    }
}

fn case(name: &str, part: Part, outcome: Outcome, checks: Vec<Check>) -> CaseCard {
    CaseCard {
        name: name.to_owned(),
        part,
        title: format!("the title of {name}"),
        why: "a client that stops its clock at the wrong chunk looks faster".to_owned(),
        outcome,
        tries: 1,
        tolerance: "2 ms and 1 %".to_owned(),
        checks,
        last_lines: Vec::new(),
        command: vec!["client".to_owned(), "--model".to_owned(), "a b".to_owned()],
    }
}

fn cards() -> Vec<Card> {
    let judged = Outcome::Judged;
    let exact = || vec![check("ttft.mean", Verdict::Exact, "300 ms, as sent")];
    let other = vec![
        check(
            "ttft.mean",
            Verdict::AnotherDefinition,
            "it says 50.2 ms, which is first-chunk, not first-text (300 ms)",
        ),
        check("ttft.median", Verdict::AnotherDefinition, "the same"),
        check("requests.failed", Verdict::Exact, "0, as sent"),
    ];
    let wrong = vec![check("requests.successful", Verdict::Wrong, "it says 20 of 15")];
    let client = |name: &str, title: &str, version: Option<&str>| Client {
        name: name.to_owned(),
        title: title.to_owned(),
        version: version.map(str::to_owned),
    };
    let level = |streams, off, failed: Option<&str>| Level {
        streams,
        tokens_per_s: Some(1234.5),
        ttft_off: Some(off),
        gaps_off: Some(0.001),
        tokens: streams * 128,
        processor_s: Some(0.01 * streams as f64),
        failed: failed.map(str::to_owned),
    };
    let levels =
        vec![level(8, 0.004, None), level(32, 0.061, None), level(128, 0.0, Some("it broke"))];
    vec![
        Card {
            date: Some("2026-01-02".to_owned()),
            machine: Some("2 cores, linux x86_64".to_owned()),
            ceiling: Some(Ceiling::new(levels)),
            ..Card::new(
                "0.1.0".to_owned(),
                client("good", "good", Some("1.2.3")),
                "bytes".to_owned(),
                vec![
                    case("load-closed", Part::Load, judged(Verdict::Exact), exact()),
                    case("stream-role", Part::Streams, judged(Verdict::WithinStatedError), exact()),
                    case("fault-cut", Part::Faults, judged(Verdict::Exact), exact()),
                ],
            )
        },
        Card::new(
            "0.1.0".to_owned(),
            client("bad", "<b>ad & worse", None),
            "bytes".to_owned(),
            vec![
                case(
                    "load-closed",
                    Part::Load,
                    Outcome::NotApplicable("it has no closed loop".to_owned()),
                    Vec::new(),
                ),
                case("stream-role", Part::Streams, judged(Verdict::AnotherDefinition), other),
                case("fault-cut", Part::Faults, judged(Verdict::Wrong), wrong),
                case(
                    "fault-html",
                    Part::Faults,
                    Outcome::Failed("it left no result".to_owned()),
                    Vec::new(),
                ),
            ],
        ),
    ]
}

#[test]
fn clients_stand_beside_each_other() {
    let cards = cards();
    golden("src/verified/goldens/two.md", &page(&cards).markdown());
    golden("src/verified/goldens/one.md", &page(&cards[..1]).markdown());
    let html = page(&cards).html();
    assert!(html.contains("&lt;b&gt;ad &amp; worse") && !html.contains("<b>ad"));
}

#[test]
fn a_badge_says_how_many_cases_are_true() {
    let cards = cards();
    golden("src/verified/goldens/good.svg", &badge(&cards[0]));
    golden("src/verified/goldens/bad.svg", &badge(&cards[1]));
}
