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
