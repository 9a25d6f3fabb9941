//! Classes of made-up series.

use super::*;

fn run(day: usize, value: f64) -> Run {
    Run {
        started: format!("2026-01-{:02}T03:04:05Z", day + 1),
        version: Some(format!("v{day}")),
        method: Method { plan: Some("p".into()), plugins: None, program: Some("1".into()) },
        machine: Some("m".into()),
        value,
        interval: Some([value - 1.0, value + 1.0]),
    }
}

/// Runs about 100, with the same small noise, one a day.
fn level(count: usize) -> Vec<Run> {
    (0..count).map(|day| run(day, 100.0 + [0.0, 1.0, -1.0, 0.5][day % 4])).collect()
}

fn judged(runs: &[Run]) -> Series {
    judge(Key::default(), "ttft.p50", "ms", runs, &[])
}

#[test]
fn each_class_has_a_series() {
    let stepped = |count: usize| {
        let mut runs = level(12);
        runs.iter_mut().rev().take(count).for_each(|run| run.value *= 1.1);
        runs
    };
    let changed = |change: fn(&mut Run), from: usize| {
        let mut runs = level(12);
        runs[from..].iter_mut().for_each(change);
        runs
    };
    let plan: fn(&mut Run) = |run| run.method.plan = Some("other".into());
    let cases: [(&str, Vec<Run>, Class, usize); 9] = [
        ("level", level(12), Class::Unchanged, 0),
        ("short", level(4), Class::NotEnoughData, 3),
        ("exactly enough", level(LEAST_HISTORY + 1), Class::Unchanged, 0),
        ("step at the end", stepped(1), Class::Suspected, 0),
        ("step three points ago", stepped(3), Class::Suspected, 0),
        ("new plan", changed(plan, 11), Class::MethodChanged, LEAST_HISTORY),
        ("new plan lately", changed(plan, 8), Class::NotEnoughData, 3),
        (
            "new program",
            changed(|run| run.method.program = None, 11),
            Class::MethodChanged,
            LEAST_HISTORY,
        ),
        (
            "new machine",
            changed(|run| run.machine = Some("n".into()), 11),
            Class::MachineChanged,
            LEAST_HISTORY,
        ),
    ];
    for (about, runs, class, more) in cases {
        let series = judged(&runs);
        assert_eq!((series.class, series.more), (class, more), "{about}: {}", series.reason());
    }
}

#[test]
fn a_change_of_method_is_never_compared() {
    // Ten times the value, but measured in another way.
    let mut runs = level(20);
    for run in &mut runs[10..] {
        run.value *= 10.0;
        run.method.plan = Some("other".into());
    }
    let series = judged(&runs);
    assert_eq!(series.class, Class::Unchanged, "{}", series.reason());
    assert_eq!(series.points[10].changed[0].label(), "plan: p before, other since");
    assert!(series.noise.unwrap() < 0.02);
}

#[test]
fn a_step_lies_between_two_versions() {
    let mut runs = level(12);
    runs[10..].iter_mut().for_each(|run| run.value *= 1.1);
    let step = judged(&runs).step.unwrap();
    // The step from v9 to v10 lies inside.
    assert_eq!((step.last_good.as_str(), step.first_bad.as_str()), ("v7", "v11"));
    assert_eq!(step.is_worse, Some(true));
    assert!((step.share.unwrap() - 0.1).abs() < 0.01, "{step:?}");
    let better = judge(Key::default(), "throughput.requests-per-s", "", &runs, &[]);
    assert_eq!(better.step.unwrap().is_worse, Some(false));
}

#[test]
fn runs_of_one_version_or_day_are_one_point() {
    let mut runs = vec![run(0, 1.0), run(0, 3.0), run(1, 5.0)];
    runs[1].started = "2026-01-09T00:00:00Z".into();
    let points = judged(&runs).points;
    // scipy.stats.t.interval(0.95, 1, 2, 1)
    let [low, high] = [points[0].low.unwrap(), points[0].high.unwrap()];
    assert_eq!((points[0].value, points[0].runs), (2.0, 2));
    assert!((low + 10.706).abs() < 1e-3 && (high - 14.706).abs() < 1e-3, "{low} {high}");
    assert_eq!((points[1].low, points[1].high), (Some(4.0), Some(6.0)));
    let untagged = [run(3, 1.0), run(3, 2.0), run(4, 3.0)].map(|run| Run { version: None, ..run });
    let versions: Vec<String> =
        judged(&untagged).points.into_iter().map(|point| point.version).collect();
    assert_eq!(versions, ["2026-01-04", "2026-01-05"]);
}

#[test]
fn confirming_measurements_decide() {
    let mut runs = level(12);
    runs[10..].iter_mut().for_each(|run| run.value *= 1.1);
    let written = |verdict| Confirmed {
        key: Key::default(),
        figure: "ttft.p50".into(),
        old_version: "v7".into(),
        new_version: "v11".into(),
        verdict,
        p: 0.0001,
        time: "2026-02-01T00:00:00Z".into(),
    };
    let with = |runs: &[Run], confirmed: Confirmed| {
        judge(Key::default(), "ttft.p50", "ms", runs, &[confirmed]).class
    };
    assert_eq!(with(&runs, written(Verdict::Confirmed)), Class::Confirmed);
    assert_eq!(with(&runs, written(Verdict::Refuted)), Class::Unchanged);
    let other = Confirmed { figure: "tpot.p50".into(), ..written(Verdict::Confirmed) };
    assert_eq!(with(&runs, other), Class::Suspected);
    // The new level is judged by its own points, once it has enough of them.
    runs.extend((12..18).map(|day| run(day, 110.0 + [0.0, 1.0, -1.0, 0.5][day % 4])));
    assert_eq!(with(&runs, written(Verdict::Confirmed)), Class::Unchanged);
}

#[test]
fn the_confirming_test_is_welchs() {
    // Student's density, integrated numerically at t 2.386 with 6.44 degrees of freedom.
    let found = confirm(&[1.0, 2.0, 3.0, 4.0], &[3.0, 5.0, 4.0, 9.0, 6.0]);
    assert!((found.difference - 2.9).abs() < 1e-12);
    assert!((found.p - 0.051487).abs() < 1e-5, "{found:?}");
    assert_eq!(found.verdict, Verdict::Refuted);
    assert_eq!(confirm(&[1.0; 10], &[2.0; 10]).verdict, Verdict::Confirmed);
    assert_eq!(confirm(&[1.0; 10], &[1.0; 10]).p, 1.0);
    assert_eq!(confirm(&[1.0], &[9.0]).verdict, Verdict::Refuted);
    assert_eq!(confirm(&[], &[]).verdict, Verdict::Refuted);
}
