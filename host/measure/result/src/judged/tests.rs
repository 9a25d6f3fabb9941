use super::*;

fn column(values: &[f64]) -> Column<f64> {
    (0..).zip(values.iter().copied()).collect()
}

fn close(got: Option<f64>, wanted: f64) {
    assert!(got.is_some_and(|got| (got - wanted).abs() < 1e-9), "{got:?}, {wanted}");
}

/// By hand: of 3, 3 and 5 the pairs are 0, 2 and 2 apart; 7 and 7 are none apart; 4 is alone.
#[test]
fn repeats_agree_by_pairs_of_verdicts() {
    let verdicts: [&[f64]; 4] = [&[3.0, 3.0, 5.0], &[7.0, 7.0], &[4.0], &[]];
    let found = Repeated::of(verdicts.into_iter(), true).unwrap();
    assert_eq!((found.prompts, found.pairs), (2, 4));
    assert_eq!(found.identical_share, 0.5);
    assert_eq!(found.mean_difference, Some(1.0));
    let alone: [&[f64]; 1] = [&[4.0]];
    assert_eq!(Repeated::of(alone.into_iter(), true), None);
}

/// By hand: right answers have 8, 6 and 5, wrong ones 5 and 1. The mean is 5 and the squares are
/// 9 + 1 + 0 + 0 + 16 = 26, so the deviation is √5.2. The means are 19/3 and 3, so the correlation
/// is (10/3) / √5.2 · √6 / 5. Of the six pairs of a right and a wrong answer five are in order and one
/// is a tie: 5.5 / 6.
#[test]
fn grades_are_held_against_right_and_wrong() {
    let grades = column(&[8.0, 6.0, 5.0, 5.0, 1.0, 9.0]);
    let score: Column<f64> =
        [(0, 1.0), (1, 1.0), (2, 1.0), (3, 0.0), (4, 0.0), (9, 1.0)].into_iter().collect();
    let found = Against::of(&grades, &score).unwrap();
    assert_eq!((found.right, found.wrong), (3, 2));
    close(found.right_mean, 19.0 / 3.0);
    close(found.wrong_mean, 3.0);
    close(found.correlation, 10.0 / 3.0 / 5.2_f64.sqrt() * 6.0_f64.sqrt() / 5.0);
    close(found.concordance, 5.5 / 6.0);
}

#[test]
fn what_cannot_be_said_of_grades_is_absent() {
    let grades = column(&[8.0, 6.0]);
    let all_right = Against::of(&grades, &column(&[1.0, 1.0])).unwrap();
    assert_eq!((all_right.right, all_right.wrong), (2, 0));
    assert_eq!(all_right.wrong_mean, None);
    assert_eq!((all_right.correlation, all_right.concordance), (None, None));
    let equal = Against::of(&column(&[7.0, 7.0]), &column(&[1.0, 0.0])).unwrap();
    assert_eq!((equal.correlation, equal.concordance), (None, Some(0.5)));
    // No share, and no answer that has both.
    assert_eq!(Against::of(&grades, &column(&[0.5, 1.0])), None);
    assert_eq!(Against::of(&grades, &[(7, 1.0)].into_iter().collect()), None);
}

fn duel(choices: &[[f64; 2]]) -> Duel {
    let known = |choice: f64| (choice >= 0.0).then_some(choice);
    Duel { conversation: None, choices: choices.iter().map(|pair| pair.map(known)).collect() }
}

const NONE: f64 = -1.0;
const TIE: f64 = 0.5;
const FIRST: f64 = 1.0;
const SECOND: f64 = 0.0;

/// Each outcome by hand: the first choice is with the run's answer first, the second with the
/// baseline's.
#[test]
fn a_win_takes_both_orders() {
    let found = Preference::of(&[
        duel(&[[FIRST, SECOND]]),
        duel(&[[FIRST, SECOND]]),
        duel(&[[SECOND, FIRST]]),
        duel(&[[FIRST, FIRST]]),
        duel(&[[TIE, TIE]]),
        duel(&[[FIRST, TIE]]),
        duel(&[[FIRST, NONE]]),
        duel(&[[NONE, NONE]]),
    ]);
    assert_eq!((found.samples, found.judged, found.unjudged), (8, 6, 2));
    assert_eq!((found.wins, found.ties, found.losses), (2, 3, 1));
    close(found.win_rate, 3.5 / 6.0);
    assert_eq!((found.pairs, found.consistent), (6, 4));
    close(found.consistent_share, 4.0 / 6.0);
    // First, second, first, second, second, first, first, first, first, and the single verdict of
    // the pair that lacks the other.
    close(found.first_share, 7.0 / 10.0);
    // Two of three: 2 · (1 + 3) / 8, at most 1.
    assert_eq!(found.probability, Some(1.0));
    assert_eq!(found.repeats, None);
    // Wilson's interval of 3.5 of 6: (3.5 + 1.9207 ± 1.96 √(3.5 · 2.5 / 6 + 0.9604)) / 9.8415.
    let bounds = found.confidence.unwrap();
    let half = 1.959_964 * (3.5_f64 * 2.5 / 6.0 + 0.960_365).sqrt();
    assert!((bounds.low.unwrap() - (5.420_729 - half) / 9.841_459).abs() < 1e-5);
    assert!((bounds.high.unwrap() - (5.420_729 + half) / 9.841_459).abs() < 1e-5);
}

#[test]
fn repeats_decide_by_more_than_half() {
    let won = [FIRST, SECOND];
    let lost = [SECOND, FIRST];
    let found = Preference::of(&[
        duel(&[won, won, lost]),
        duel(&[won, lost]),
        duel(&[won, [NONE, FIRST]]),
        duel(&[[TIE, TIE], won, lost]),
    ]);
    assert_eq!((found.wins, found.ties, found.losses), (2, 2, 0));
    assert_eq!(found.pairs, 9);
    let repeats = found.repeats.unwrap();
    assert_eq!(repeats.mean_difference, None);
    // With the run first: three pairs of the first sample, one of them equal; one pair of the
    // second; none of the third, which has a single verdict; three of the fourth, one of its
    // verdicts a tie. With the baseline first, the third has two that differ.
    assert_eq!(repeats.pairs, 3 + 1 + 3 + 3 + 1 + 1 + 3);
}

#[test]
fn turns_of_one_conversation_are_worth_fewer_samples() {
    let with = |conversation: Option<u64>| {
        let duels: Vec<Duel> = (0..40)
            .map(|place| Duel {
                conversation: conversation.map(|_| place / 10),
                choices: vec![match place / 10 % 2 {
                    0 => [Some(FIRST), Some(SECOND)],
                    _ => [Some(SECOND), Some(FIRST)],
                }],
            })
            .collect();
        Preference::of(&duels)
    };
    let width = |found: &Preference| {
        let bounds = found.confidence.unwrap();
        bounds.high.unwrap() - bounds.low.unwrap()
    };
    let (alone, turns) = (with(None), with(Some(0)));
    assert_eq!(alone.win_rate, turns.win_rate);
    assert!(width(&turns) > 1.5 * width(&alone), "{turns:?}");
    assert_eq!((alone.probability, turns.probability), (Some(1.0), None));
}

#[test]
fn nothing_gives_nothing() {
    let found = Preference::of(&[]);
    assert_eq!((found.samples, found.win_rate, found.confidence), (0, None, None));
    assert_eq!((found.probability, found.first_share), (None, None));
}
