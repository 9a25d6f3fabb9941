//! The share of right comparisons of simulated engines whose pace varies from run to run. These
//! tests draw few comparisons; `host/benches/statistics` draws many and writes the table. `trials`
//! has engines that do not vary.

use super::fixture::{measured, named, plan};
use super::*;
use simulator::{Case, Load, Parameters};

const REQUESTS: usize = 300;

/// An engine whose pace varies by 1 % from run to run, and takes this multiple of the usual time.
fn case(times: f64) -> Case {
    under(Load::Closed(32), times)
}

fn under(load: Load, times: f64) -> Case {
    let mut case = Case::usual(load, REQUESTS);
    let own = case.engine;
    case.engine = Parameters {
        step: own.step * times,
        request: own.request * times,
        prompt_token: own.prompt_token * times,
        run: 0.01,
        ..own
    };
    case
}

/// A side with this number of repeats, all of the same requests.
fn side_of(case: &Case, trial: u64, side: u64, repeats: u64) -> Side {
    let runs = (0..repeats).map(|repeat| {
        let engine = (trial * 2 + side) * 16 + repeat;
        measured("run", plan(&[]), &case.exchanges(trial, engine))
    });
    Side::Runs(runs.collect())
}

/// Counts the comparisons in which the mean TPOT or E2E was called different.
fn called(cases: [&Case; 2], repeats: u64, trials: u64) -> u64 {
    let is_called = |trial: &u64| {
        let sides = [0, 1].map(|side| side_of(cases[side as usize], *trial, side, repeats));
        let figures = named(&["tpot.mean", "e2e.mean", "ttft.median"]);
        let found = compare(&sides, &Options::new(figures, blocks(REQUESTS as u64))).unwrap();
        let rows = found.pairs[0].figures.iter();
        let judgements: Vec<_> = rows.filter_map(|row| row.judgement).collect();
        judgements.contains(&Judgement::Better) || judgements.contains(&Judgement::Worse)
    };
    (0..trials).filter(is_called).count() as u64
}

/// Two runs of one engine are rarely called different. With the error from within the runs alone,
/// nine of ten of these were called different.
#[test]
fn single_runs_do_not_differ_by_their_pace() {
    let same = case(1.0);
    let wrong = called([&same, &same], 1, 40);
    assert!(wrong <= 4, "{wrong} of 40");
}

/// A slower engine has longer queues too, so at 0.8 of capacity 2 % in pace is more of each figure.
/// Taken for 2 % of each figure, it made about 7 of 40 comparisons differ.
#[test]
fn figures_under_load_do_not_differ_by_the_pace() {
    let mut same = under(Load::Open(0.8), 1.0);
    same.engine.run = 0.02;
    let wrong = called([&same, &same], 1, 40);
    assert!(wrong <= 4, "{wrong} of 40");
    // Twice as slow is no matter of pace.
    let mut slower = under(Load::Open(0.3), 2.0);
    slower.engine.run = 0.02;
    let usual = under(Load::Open(0.3), 1.0);
    let seen = called([&usual, &slower], 1, 6);
    assert_eq!(seen, 6);
}

#[test]
fn five_repeats_find_a_difference_of_three_percent() {
    let (usual, slower) = (case(1.0), case(1.03));
    let seen = called([&usual, &slower], 5, 12);
    assert!(seen >= 9, "{seen} of 12");
    let wrong = called([&usual, &usual], 5, 12);
    assert!(wrong <= 3, "{wrong} of 12");
}

/// A side's turns. The pace of both sides varies by 3 % from turn to turn, alike.
fn turns_of(times: f64, trial: u64, side: u64, requests: usize) -> Side {
    let figures = named(&PAIRED);
    let runs = (0..TURNS).map(|turn| {
        let mut random = simulator::Random::new(trial * TURNS + turn);
        let mut case = under(Load::Closed(8), times * (1.0 + 0.03 * random.normal()));
        (case.engine.run, case.requests) = (0.0, requests / TURNS as usize);
        let exchanges = case.exchanges(trial * TURNS + turn, (trial * TURNS + turn) * 2 + side);
        let facts = super::exchanges::facts();
        let reported = measured("run", plan(&[]), &exchanges).reported;
        (reported, facts, exchanges.into_iter().map(Ok::<_, std::convert::Infallible>))
    });
    let Ok(turns) = Turns::read(runs.collect(), &figures);
    Side::Turns(turns)
}

const TURNS: u64 = 10;
const PAIRED: [&str; 5] =
    ["tpot.mean", "ttft.median", "e2e.mean", "e2e.p90", "throughput.output-tokens-per-s"];

/// The shares of 500 requests' comparisons in which any figure, and the mean TPOT, differ.
fn paired(times: f64, trials: u64) -> [u64; 2] {
    let mut found = [0, 0];
    for trial in 0..trials {
        let sides = [(1.0, 0), (times, 1)].map(|(times, side)| turns_of(times, trial, side, 500));
        let options = Options {
            variation: Some(Variation::Shared),
            ..Options::new(named(&PAIRED), Some(TURNS as usize))
        };
        let compared = compare(&sides, &options).unwrap();
        let differs =
            |row: &&Row| matches!(row.judgement, Some(Judgement::Better | Judgement::Worse));
        let rows = &compared.pairs[0].figures;
        found[0] += u64::from(rows.iter().any(|row| differs(&row)));
        found[1] += u64::from(compared.row("B", "tpot.mean").is_some_and(|row| differs(&row)));
    }
    found
}

/// Sides that take turns share slow changes of their machine, so 1 % of TPOT shows.
#[test]
fn turns_find_one_percent_and_equal_sides_do_not_differ() {
    let [equal, _] = paired(1.0, 24);
    assert!(equal <= 3, "{equal} of 24 equal pairs differ");
    let [_, tpot] = paired(1.01, 8);
    assert!(tpot >= 7, "1 % of TPOT is found in {tpot} of 8");
}
