//! Due times, exactly.

use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn instants(arrival: &Arrival, seed: u64, requests: u64, trace: &Trace) -> Vec<u64> {
    let due_times = arrival.due_times(seed, Some(requests), trace);
    due_times
        .take(requests as usize)
        .map(|due| match due {
            Due::At(at) => at.0,
            Due::WhenFree => panic!("an open loop has due times"),
        })
        .collect()
}

fn first(arrival: &Arrival, seed: u64, requests: u64) -> Vec<u64> {
    instants(arrival, seed, requests, &Trace::default())
}

fn stage(shape: Shape, from: f64, to: f64, seconds: f64) -> Stage {
    Stage { from, to, shape, length: Nanos::from_secs_f64(seconds) }
}

fn flat(rate: f64, seconds: f64) -> Stage {
    stage(Shape::Linear, rate, rate, seconds)
}

fn poisson(rate: f64) -> Arrival {
    Arrival::Poisson { rate, normalise: false }
}

fn trace(text: &str, time_scale: f64) -> (Arrival, Trace) {
    let trace = Trace::read(text.as_bytes()).unwrap();
    let arrival = Arrival::Trace {
        file: PlannedFile {
            path: "folder/trace.jsonl".into(),
            bytes: text.len() as u64,
            digest: "00".into(),
        },
        time_scale,
        timestamps: trace.len() as u64,
        length: trace.length(time_scale),
        peak: trace.peak(time_scale) as f64,
    };
    (arrival, trace)
}

#[test]
fn constant_arrivals_do_not_drift() {
    let due = first(&Arrival::Constant { rate: 3.0 }, 0, 3_000_001);
    assert_eq!(due[1], 333_333_333);
    assert_eq!(due[3], SECOND);
    assert_eq!(due[3_000_000], 1_000_000 * SECOND);
}

/// `np.random.seed(1); np.cumsum(np.random.exponential(1 / 10, 3))`.
#[test]
fn poisson_arrivals_are_numpys() {
    let due = first(&poisson(10.0), 1, 4);
    assert_eq!(due, [0, 53_960_584, 181_373_109, 181_384_547]);
}

/// Seed, rate, burstiness, true if normalised, and eight due times in nanoseconds. NumPy 2.4 gives
/// them with the steps of vLLM's `get_request`: `np.random.seed(seed)`, then for each request
/// `np.random.gamma(shape=burstiness, scale=1.0 / (rate * burstiness))` added to the time before,
/// then all times `(8 / rate) / last` if normalised, and `round(1e9 * seconds)`.
#[rustfmt::skip]
const GAMMA: [(u64, f64, f64, bool, [u64; 8]); 10] = [
    (0, 10.0, 1.0, false, [79_587_451, 205_180_527, 297_502_842, 376_222_957, 431_327_806, 535_143_736, 592_695_655, 815_048_097]),
    (0, 10.0, 1.0, true, [78_118_041, 201_392_313, 292_010_096, 369_276_815, 423_364_273, 525_263_466, 581_752_815, 800_000_000]),
    (0, 10.0, 0.5, false, [60_800_378, 136_454_722, 172_351_400, 210_647_913, 386_569_621, 452_268_163, 453_277_387, 453_359_144]),
    (0, 10.0, 0.5, true, [107_288_676, 240_788_741, 304_132_213, 371_710_448, 682_142_847, 798_074_849, 799_855_732, 800_000_000]),
    (1, 4.0, 0.25, false, [30_243_767, 30_243_767, 30_707_622, 31_911_217, 56_693_668, 87_572_606, 89_319_907, 89_320_469]),
    (1, 4.0, 0.25, true, [677_196_782, 677_196_782, 687_583_089, 714_533_126, 1_269_444_019, 1_960_863_103, 1_999_987_402, 2_000_000_000]),
    (42, 10.0, 2.5, false, [119_325_415, 198_103_533, 271_701_738, 345_300_811, 562_165_080, 702_324_737, 764_184_105, 886_881_541]),
    (42, 10.0, 2.5, true, [107_635_944, 178_696_724, 245_085_032, 311_474_121, 507_093_725, 633_522_926, 689_322_368, 800_000_000]),
    (7, 100.0, 10.0, false, [15_932_903, 24_222_072, 31_637_495, 41_310_585, 54_499_043, 66_155_514, 77_479_867, 86_356_499]),
    (7, 100.0, 10.0, true, [14_760_119, 22_439_142, 29_308_733, 38_269_810, 50_487_496, 61_285_962, 71_776_755, 80_000_000]),
];

#[test]
fn gamma_arrivals_are_vllms_up_to_a_million() {
    for (seed, rate, burstiness, normalise, expected) in GAMMA {
        let arrival = Arrival::Gamma { rate, burstiness, normalise };
        assert_eq!(first(&arrival, seed, 8), expected, "{arrival} seed {seed}");
        if burstiness == 1.0 && normalise {
            let poisson = Arrival::Poisson { rate, normalise };
            assert_eq!(first(&poisson, seed, 8), expected);
        }
    }
    // The last of a million due times, with seed 0 and rate 10: any draw too many or too few shows.
    for (burstiness, last) in
        [(0.5, 100_133_135_662_158_u64), (1.0, 100_115_517_355_347), (2.5, 100_050_637_895_332)]
    {
        let arrival = Arrival::Gamma { rate: 10.0, burstiness, normalise: false };
        let due = arrival.due_times(0, None, &Trace::default()).nth(999_999).unwrap();
        let Due::At(due) = due else { panic!("{due:?}") };
        // Another library's logarithm may differ in its last bit.
        assert!(due.0.abs_diff(last) < 10, "{burstiness}: {due:?}");
    }
}

#[test]
fn poissons_gaps_are_gammas_of_burstiness_one() {
    let gamma = Arrival::Gamma { rate: 7.0, burstiness: 1.0, normalise: false };
    assert_eq!(
        first(&poisson(7.0), 3, 100)[1..],
        first(&gamma, 3, 99)[..],
        "but for the first request, which Poisson has at once"
    );
}

/// From 1/s to 3/s in 4 s is t + t²/4 requests until t; then 3/s.
#[test]
fn a_linear_ramp_is_due_by_the_area_under_it() {
    let arrival =
        Arrival::Ramp { spread: Spread::Constant, ramp: stage(Shape::Linear, 1.0, 3.0, 4.0) };
    let due = first(&arrival, 0, 12);
    let until = |area: f64| (2.0 * ((1.0 + area).sqrt() - 1.0) * 1e9).round() as u64;
    let climb: Vec<u64> = (0..8).map(|i| until(f64::from(i))).collect();
    assert_eq!(due[..8], climb);
    assert_eq!(due[3], 2 * SECOND, "1.5/s on average by then");
    assert_eq!(due[8..], [4_000_000_000, 4_333_333_333, 4_666_666_667, 5_000_000_000]);
    assert_eq!(arrival.rate(), Some(2.0));
    assert_eq!(arrival.peak_rate(), Some(3.0));
}

/// From 8/s to 1/s, halving every second, is 8/ln 2 · (1 − 2^−t) requests until t.
#[test]
fn an_exponential_ramp_is_due_by_the_area_under_it() {
    let arrival =
        Arrival::Ramp { spread: Spread::Constant, ramp: stage(Shape::Exponential, 8.0, 1.0, 3.0) };
    let until = |area: f64| -(1.0 - area * 2f64.ln() / 8.0).log2() * 1e9;
    let due = first(&arrival, 0, 13);
    for (number, due) in due[..11].iter().enumerate() {
        let wanted = until(number as f64).round() as u64;
        assert!(due.abs_diff(wanted) <= 1, "{number}: {due} {wanted}");
    }
    // 7 / ln 2 requests by then, and one every second after it.
    assert_eq!(due[12] - due[11], SECOND);
    assert_eq!(arrival.peak_rate(), Some(8.0));
}

#[test]
fn a_ramp_over_a_number_of_requests_ends_with_them() {
    for shape in [Shape::Linear, Shape::Exponential] {
        let length = length_for(shape, 2.0, 20.0, 1000);
        let ramp = Stage { from: 2.0, to: 20.0, shape, length };
        assert!((ramp.area() - 1000.0).abs() < 1e-6);
        let arrival = Arrival::Ramp { spread: Spread::Constant, ramp };
        let due = first(&arrival, 0, 1001);
        assert!(due[1000].abs_diff(length.0) < 2, "{due:?}");
    }
}

#[test]
fn a_ramp_to_nothing_ends_the_run() {
    let arrival =
        Arrival::Ramp { spread: Spread::Constant, ramp: stage(Shape::Linear, 4.0, 0.0, 3.0) };
    // 4t − 2t²/3 is 5 where t is 3·(1 − √(1/6)).
    let due = first(&arrival, 0, 100);
    assert_eq!(due.len(), 6);
    assert_eq!(due[5], 1_775_255_129);
}

#[test]
fn stages_come_one_after_the_other() {
    let arrival = Arrival::Stages {
        spread: Spread::Constant,
        stages: vec![
            flat(2.0, 1.5),
            flat(0.0, 10.0),
            stage(Shape::Linear, 0.0, 4.0, 1.0),
            flat(4.0, 0.5),
        ],
    };
    let due = first(&arrival, 0, 100);
    let half = SECOND / 2;
    let slope = 11 * SECOND + half;
    assert_eq!(
        due,
        [0, half, 2 * half, slope, slope + 707_106_781, slope + SECOND, slope + SECOND + half / 2]
    );
    assert_eq!(arrival.rate(), Some(7.0 / 13.0));
    assert_eq!(arrival.peak_rate(), Some(4.0));
}

#[test]
fn poisson_stages_of_one_rate_are_poisson() {
    let stages =
        Arrival::Stages { spread: Spread::Poisson, stages: vec![flat(5.0, 3.0), flat(5.0, 200.0)] };
    let due = first(&stages, 9, 500);
    for (staged, plain) in due.iter().zip(first(&poisson(5.0), 9, 500)) {
        assert!(staged.abs_diff(plain) <= 1, "{staged} {plain}");
    }
}

/// A process of rate 1 carried through the area, with 10/s for 1 s and then 1/s. The times after
/// the change equal a plain process's times after 10 requests.
#[test]
fn poisson_stages_are_exact_over_a_change_of_rate() {
    let stages = Arrival::Stages {
        spread: Spread::Poisson,
        stages: vec![flat(10.0, 1.0), flat(1.0, 1000.0)],
    };
    let unit: Vec<f64> = first(&poisson(1.0), 4, 500).iter().map(|at| *at as f64 / 1e9).collect();
    for (due, area) in first(&stages, 4, 500).into_iter().zip(unit) {
        let seconds = if area < 10.0 { area / 10.0 } else { area - 9.0 };
        assert!(due.abs_diff((seconds * 1e9) as u64) < 5, "{due} {seconds}");
    }
}

#[test]
fn a_trace_is_played_to_its_end() {
    let lines = "{\"timestamp\": 500}\n{\"timestamp\": 2500}\n{\"timestamp\": 1000}\n";
    let (arrival, contents) = trace(lines, 2.0);
    assert_eq!(instants(&arrival, 0, 100, &contents), [0, SECOND / 4, SECOND]);
    assert_eq!(instants(&arrival, 0, 2, &contents), [0, SECOND / 4]);
    assert_eq!(arrival.limit(), Some(3));
    assert_eq!(arrival.rate(), Some(3.0));
    assert_eq!(arrival.peak_rate(), Some(2.0));
}

#[test]
fn due_times_depend_on_the_seed_alone() {
    let arrival = poisson(100.0);
    assert_eq!(first(&arrival, 7, 1000), first(&arrival, 7, 1000));
    assert_ne!(first(&arrival, 7, 1000), first(&arrival, 8, 1000));
}

#[test]
fn arrivals_are_named_with_their_parameters() {
    let think = |spread| Some(Think { time: Nanos(1_500_000_000), spread });
    let closed = |think| Arrival::Closed { concurrency: 8, think };
    let gamma = Spread::Gamma { burstiness: 0.5 };
    let cases = [
        (Arrival::Inf, "all at once"),
        (Arrival::Constant { rate: 2.5 }, "constant, 2.5/s"),
        (poisson(30.0), "Poisson, 30/s"),
        (Arrival::Poisson { rate: 30.0, normalise: true }, "Poisson, 30/s, normalised"),
        (
            Arrival::Gamma { rate: 10.0, burstiness: 0.5, normalise: true },
            "gamma of burstiness 0.5, 10/s, normalised",
        ),
        (
            Arrival::Ramp { spread: gamma, ramp: stage(Shape::Exponential, 1.0, 64.0, 90.0) },
            "gamma of burstiness 0.5, ramp from 1/s to 64/s in 1m30s, exponential",
        ),
        (
            Arrival::Stages {
                spread: Spread::Poisson,
                stages: vec![flat(5.0, 30.0), stage(Shape::Linear, 5.0, 20.0, 60.0)],
            },
            "Poisson, 2 stages: 5/s for 30s; from 5/s to 20/s in 1m",
        ),
        (
            Arrival::Stages { spread: Spread::Constant, stages: vec![flat(1.0, 1.0); 7] },
            "constant, 7 stages: 1/s for 1s; 1/s for 1s; 1/s for 1s; 1/s for 1s; 1/s for 1s; 1/s for 1s; …",
        ),
        (trace("0\n1\n", 1.0).0, "trace trace.jsonl, 2 timestamps"),
        (trace("0\n1\n", 2.5).0, "trace trace.jsonl, 2 timestamps, 2.5 times as fast"),
        (closed(None), "closed loop of 8"),
        (closed(think(ThinkSpread::Constant)), "closed loop of 8, thinking 1.5s"),
        (closed(think(ThinkSpread::Exponential)), "closed loop of 8, thinking 1.5s on average"),
    ];
    for (arrival, expected) in cases {
        assert_eq!(arrival.to_string(), expected);
        let json = serde_json::to_string(&arrival).unwrap();
        let read: Arrival = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e} {json}"));
        assert_eq!(read, arrival, "{json}");
    }
}

fn spreads() -> impl Strategy<Value = Spread> {
    prop_oneof![
        Just(Spread::Constant),
        Just(Spread::Poisson),
        (0.05..20.0_f64).prop_map(|burstiness| Spread::Gamma { burstiness }),
    ]
}

fn stages() -> impl Strategy<Value = Stage> {
    let shape = prop_oneof![Just(Shape::Linear), Just(Shape::Exponential)];
    (shape, 0.1..200.0, 0.1..200.0, 0.01..20.0)
        .prop_map(|(shape, from, to, seconds)| stage(shape, from, to, seconds))
}

fn arrivals() -> impl Strategy<Value = Arrival> {
    prop_oneof![
        (0.1..1e4_f64).prop_map(|rate| Arrival::Constant { rate }),
        (0.1..1e4_f64, any::<bool>())
            .prop_map(|(rate, normalise)| Arrival::Poisson { rate, normalise }),
        (0.1..1e4_f64, 0.05..20.0_f64, any::<bool>()).prop_map(|(rate, burstiness, normalise)| {
            Arrival::Gamma { rate, burstiness, normalise }
        }),
        (spreads(), stages()).prop_map(|(spread, ramp)| Arrival::Ramp { spread, ramp }),
        (spreads(), prop::collection::vec(stages(), 1..6))
            .prop_map(|(spread, stages)| Arrival::Stages { spread, stages }),
    ]
}

proptest! {
    #[test]
    fn due_times_never_go_back(arrival in arrivals(), seed in any::<u64>()) {
        let due = first(&arrival, seed, 300);
        prop_assert!(due.is_sorted(), "{arrival} {due:?}");
    }

    #[test]
    fn constant_requests_number_the_area(
        stages in prop::collection::vec(stages(), 1..6),
    ) {
        let area: f64 = stages.iter().map(Stage::area).sum();
        let arrival = Arrival::Stages { spread: Spread::Constant, stages };
        let due = arrival.due_times(0, None, &Trace::default()).count();
        prop_assert!((due as f64 - area.ceil()).abs() <= f64::from(u8::from(area.fract() < 1e-6)));
    }

    #[test]
    fn normalised_arrivals_end_at_the_expected_time(
        rate in 0.1..1e4_f64,
        burstiness in 0.05..20.0_f64,
        seed in any::<u64>(),
        requests in 1..200_u64,
    ) {
        let arrival = Arrival::Gamma { rate, burstiness, normalise: true };
        let last = *first(&arrival, seed, requests).last().unwrap();
        let wanted = Nanos::from_secs_f64(requests as f64 / rate);
        prop_assert!(last.abs_diff(wanted.0) <= 1 || last == 0, "{last} {wanted:?}");
    }
}

#[test]
fn exponential_pauses_have_their_mean_and_depend_on_seed_user_and_turn() {
    let think = Think { time: Nanos(2_000_000_000), spread: ThinkSpread::Exponential };
    let mut all: Vec<f64> = Vec::new();
    for user in 0..200 {
        for turn in 1..=500 {
            assert_eq!(think.pause(7, user, turn), think.pause(7, user, turn));
            all.push(think.pause(7, user, turn).as_secs_f64());
        }
    }
    all.sort_by(f64::total_cmp);
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!((mean - 2.0).abs() < 0.03, "{mean}");
    let median = all[all.len() / 2];
    assert!((median - 2.0 * 2f64.ln()).abs() < 0.03, "{median}");
    let few: Vec<Nanos> = [(1, 0, 1), (2, 0, 1), (1, 1, 1), (1, 0, 2)]
        .map(|(seed, user, turn)| think.pause(seed, user, turn))
        .to_vec();
    assert!((1..4).all(|i| few[i] != few[0]), "{few:?}");
}

#[test]
fn constant_pauses_do_not_vary() {
    let think = Think { time: Nanos(5), spread: ThinkSpread::Constant };
    assert_eq!((think.pause(1, 2, 3), think.pause(4, 5, 6)), (Nanos(5), Nanos(5)));
}
