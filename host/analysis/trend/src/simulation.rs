//! Rates of false alarms, and the time until a step is confirmed, over simulated histories.
//!
//! A history is 10 series of 60 points, each the mean of 3 runs. The newest point is judged after
//! each point. A suspicion leads to the confirming measurement: 10 runs of both versions,
//! interleaved on one day, whose common noise cancels.

use simulator::Random;

use super::judge::found;
use super::*;

const SERIES: usize = 10;
const POINTS: usize = 60;
const HISTORIES: u64 = 200;
const RUNS: usize = 3;
const CONFIRMING_RUNS: usize = 10;
const STEP: f64 = 0.05;
/// The points before a step.
const BEFORE: usize = 35;

/// The noise of a run, of a day, and the correlation of a day with the day before.
#[derive(Clone, Copy, Debug)]
struct Noise {
    name: &'static str,
    run: f64,
    day: f64,
    correlation: f64,
}

const NOISES: [Noise; 3] = [
    Noise { name: "pure", run: 0.02, day: 0.0, correlation: 0.0 },
    Noise { name: "day", run: 0.02, day: 0.02, correlation: 0.0 },
    Noise { name: "AR", run: 0.02, day: 0.01, correlation: 0.5 },
];

/// The points of a series; from the point `step` on they are 5 % larger.
fn points(noise: Noise, step: usize, random: &mut Random) -> Vec<Point> {
    let mut day = 0.0;
    let point = |at: usize| {
        day = noise.correlation * day + noise.day * random.normal();
        let own = (0..RUNS).map(|_| noise.run * random.normal()).sum::<f64>() / RUNS as f64;
        let level = if at >= step { 1.0 + STEP } else { 1.0 };
        let (version, value) = (format!("v{at}"), level * (1.0 + day + own));
        Point { version, value, runs: RUNS, ..Point::default() }
    };
    (0..POINTS).map(point).collect()
}

/// Judges after each point. Returns the place of the first confirmed alarm, and the confirmations.
fn alarm(
    noise: Noise,
    points: &[Point],
    (from, step): (usize, usize),
    random: &mut Random,
) -> (Option<usize>, usize) {
    let mut refuted: Vec<Confirmed> = Vec::new();
    let place = |version: &str| version[1..].parse::<usize>().unwrap();
    for at in from..points.len() {
        let known: Vec<&Confirmed> = refuted.iter().collect();
        let judged = found("ttft.p50", &points[..=at], &known);
        let Some(suspected) = judged.step else { continue };
        let measured = |version: &str, random: &mut Random| -> Vec<f64> {
            let level = if place(version) >= step { 1.0 + STEP } else { 1.0 };
            (0..CONFIRMING_RUNS).map(|_| level * (1.0 + noise.run * random.normal())).collect()
        };
        let old = measured(&suspected.last_good, random);
        let new = measured(&suspected.first_bad, random);
        let confirmation = confirm(&old, &new);
        if confirmation.verdict == Verdict::Confirmed {
            return (Some(at), refuted.len() + 1);
        }
        refuted.push(Confirmed {
            key: Key::default(),
            figure: "ttft.p50".into(),
            old_version: suspected.last_good,
            new_version: suspected.first_bad,
            verdict: Verdict::Refuted,
            p: confirmation.p,
            time: String::new(),
        });
    }
    (None, refuted.len())
}

#[test]
fn alarms_are_rarely_false_and_steps_are_soon_confirmed() {
    let mut table = String::from("noise  false   confirmations   within 2, 3, 5 points\n");
    let mut wrong = String::new();
    for noise in NOISES {
        let mut random = Random::new(20_261_130);
        let (mut false_alarms, mut measurements) = (0, 0);
        for _ in 0..HISTORIES {
            let mut has_alarm = false;
            for _ in 0..SERIES {
                let points = points(noise, POINTS, &mut random);
                let (alarm, count) = alarm(noise, &points, (0, POINTS), &mut random);
                has_alarm |= alarm.is_some();
                measurements += count;
            }
            false_alarms += u64::from(has_alarm);
        }
        let found: Vec<usize> = (0..2 * HISTORIES)
            .filter_map(|_| {
                let points = points(noise, BEFORE, &mut random);
                let end = BEFORE + RECENT;
                alarm(noise, &points[..end], (BEFORE, BEFORE), &mut random).0
            })
            .map(|at| at - BEFORE + 1)
            .collect();
        let within = |count: usize| {
            let soon = found.iter().filter(|after| **after <= count).count();
            soon as f64 / (2 * HISTORIES) as f64
        };
        let share = false_alarms as f64 / HISTORIES as f64;
        let each = measurements as f64 / HISTORIES as f64;
        let line = format!(
            "{:<6} {:>4.1} %  {each:>6.1}  {:>16.0} %, {:.0} %, {:.0} %\n",
            noise.name,
            100.0 * share,
            100.0 * within(2),
            100.0 * within(3),
            100.0 * within(5)
        );
        table += &line;
        if share > 0.05 || within(3) < 0.8 || within(5) < 0.9 {
            wrong += &line;
        }
    }
    assert!(wrong.is_empty(), "{table}");
}
