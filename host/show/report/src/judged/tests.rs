use super::*;
use crate::exchanges::{facts, reply};
use model::exchange::Kind::{End, Text};
use model::exchange::{Class, Exchange, Usage};
use result::judged::{Against, Duel};
use result::summary::Summary;
use runs::judged::{Answers, Requests};

/// Twenty answers of two classes, graded 1 to 10 over and over.
fn run() -> (Summary, Vec<Exchange>) {
    let exchanges: Vec<Exchange> = (0..20)
        .map(|index| {
            let mut exchange = reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
            exchange.sample.class = Some(["easy", "hard"][(index % 2) as usize].into());
            exchange.usage = Some(Usage {
                input_tokens: Some(100),
                output_tokens: Some(10),
                ..Usage::default()
            });
            exchange
        })
        .collect();
    let mut facts = facts();
    let grades = (2..20).map(|index| (index, 1.0 + (index % 10) as f64));
    facts.scores.insert("judge.grade".into(), grades.collect());
    facts.unscored.insert("judge.grade".into(), vec![0]);
    facts.left_out.insert("judge.grade".into(), vec![1]);
    (Summary::of(&facts, &exchanges), exchanges)
}

fn judged(grades: Option<Grades>, preference: Option<Preference>) -> Judged {
    let price = "0.5,2".parse().unwrap();
    Judged {
        at: "2026-01-02T03:04:05Z".into(),
        run: "a\u{1b}[2J".into(),
        baseline: preference.map(|_| "b".into()),
        judge: Judge {
            model: "large".into(),
            backend: "openai".into(),
            temperature: Some(0.0),
            rubric: "single".into(),
            rubric_digest: "0123456789abcdef".into(),
            folder: "runs/j".into(),
        },
        interrupted: false,
        cautions: vec!["take care".into()],
        answers: Answers { total: 20, judged: 19, left_out: 1, ..Answers::default() },
        requests: Requests {
            planned: 19,
            with_verdict: 18,
            failed: 1,
            failures: [(Class::Truncated, 1)].into(),
            ..Requests::default()
        },
        grades,
        preference,
        cost: Cost::of(&run().0, Some(price)),
    }
}

fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|shown| shown == *line), "no {line} in\n{text}");
    }
}

#[test]
fn grades_are_told_with_what_they_are_worth() {
    let (summary, _) = run();
    let score = summary.scores["judge.grade"].clone();
    let grades = Grades {
        lowest: 1.0,
        highest: 10.0,
        name: Some("judge.grade".into()),
        score,
        repeats: Repeated::of([[3.0, 4.0].as_slice()].into_iter(), true),
        against: [(
            "exact-match".to_owned(),
            Against {
                right: 3,
                wrong: 2,
                right_mean: Some(8.0),
                wrong_mean: None,
                correlation: Some(0.5),
                concordance: Some(0.75),
            },
        )]
        .into(),
    };
    let judged = judged(Some(grades), None);
    let text = text(&judged);
    has(
        &text,
        &[
            "Run:                                     a [2J",
            "Judge:                                   large (openai, temperature 0)",
            "Rubric:                                  single (sha256 0123456789ab…)",
            "Put before the judge:                    19",
            "  not drawn:                             1",
            "  failed:                                1",
            "    truncated:                           1",
            // 3 to 10 and 1 to 10: 52 and 55 over 18.
            "judge.grade (1-10, mean of 18):          5.9444",
            "  not judged:                            1 on which the scorer failed, 1 that were not drawn",
            "Judged more than once:                   1",
            "  pairs of verdicts that agree (%):      0.00",
            "  distance of two grades, mean:          1.0000",
            "against exact-match, right / wrong:      3 / 2",
            "  mean grade, right / wrong:             8.0000 / -",
            "  right graded above wrong (%):          75.00",
            // 20 · 100 · 0.5 and 20 · 10 · 2, over a million.
            "Price:                                   0.001400 (a million tokens: 0.5 in, 2 out)",
            "caution: take care",
        ],
    );
    assert!(text.contains("  of class easy, 9 judged:"), "{text}");
    let json = serde_json::to_string(&judged).unwrap();
    assert_eq!(serde_json::from_str::<Judged>(&json).unwrap(), judged);
}

#[test]
fn a_preference_is_told_with_its_doubts() {
    let won = Duel { conversation: None, choices: vec![[Some(1.0), Some(0.0)]] };
    let torn = Duel { conversation: None, choices: vec![[Some(1.0), Some(1.0)]] };
    let preference = Preference::of(&[won.clone(), won, torn, Duel::default()]);
    let text = text(&judged(None, Some(preference)));
    has(
        &text,
        &[
            "Baseline:                                b",
            "Wins / ties / losses of the run:         2 / 1 / 0",
            "  without a verdict in both orders:      1",
            "Win rate, ties as half (%):              83.33",
            "Pairs both orders agree on (%):          66.67 (2 of 3)",
            "Verdicts for the answer shown first (%): 66.67",
            "  sign test, p:                          0.5000",
        ],
    );
}

#[test]
fn prices_are_two_numbers() {
    let price: TokenPrice = "0.15, 0.6".parse().unwrap();
    assert_eq!((price.input, price.output), (0.15, 0.6));
    for wrong in ["1", "1,", "-1,2", "1,inf", "a,b"] {
        assert!(wrong.parse::<TokenPrice>().is_err(), "{wrong}");
    }
    let (summary, _) = run();
    assert_eq!(Cost::of(&summary, None).total, None);
}
