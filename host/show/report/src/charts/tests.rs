use super::*;
use crate::chart::{Look, Shape, Width, svg};
use crate::charts::fixture::{exchanges, plan, run_of, run_with};
use crate::exchanges::any_run;
use devices::{Device, Facts, Reading, Recording, Sample};
use model::exchange::Exchange;
use model::units::Nanos;
use proptest::prelude::*;
use runs::folder::facts;

fn names(charts: &Charts) -> Vec<&str> {
    charts.iter().map(|chart| chart.name.as_str()).collect()
}

fn charts(exchanges: &[Exchange]) -> Charts {
    Charts::new(&[run_of("one", exchanges)])
}

fn named<'a>(charts: &'a Charts, name: &str) -> &'a Chart {
    charts.iter().find(|chart| chart.name == name).unwrap()
}

#[test]
fn a_run_has_a_chart_of_each_measured_metric() {
    let charts = charts(&exchanges(60, 0));
    assert_eq!(
        names(&charts),
        [
            "ttft-ecdf",
            "ttft-histogram",
            "itl-ecdf",
            "itl-histogram",
            "tpot-ecdf",
            "tpot-histogram",
            "e2e-ecdf",
            "e2e-histogram",
            "course",
            "waterfall",
            "phases",
            "slowest",
            "ttft-prompt",
            "ttft-time"
        ]
    );
    let course = named(&charts, "course");
    assert_eq!(course.panels.len(), 4, "tokens, in flight, waiting, failures");
    let waterfall = named(&charts, "waterfall");
    let keys: Vec<&str> = waterfall.keys.iter().map(|key| key.label.as_str()).collect();
    assert_eq!(keys, ["held back by the cap", "until the first token", "decoding", "failed"]);
}

#[test]
fn unmeasured_metrics_have_no_chart() {
    let nothing = charts(&[]);
    assert_eq!(names(&nothing), [""; 0]);
    let mut whole = exchanges(20, 0);
    for exchange in &mut whole {
        exchange.usage = None;
        exchange.events.kind.fill(model::exchange::Kind::Role);
    }
    let names = names(&charts(&whole)).join(" ");
    assert!(!names.contains("ttft") && !names.contains("itl"), "{names}");
    assert!(names.contains("e2e-ecdf") && names.contains("course"), "{names}");
}

#[test]
fn several_runs_lie_over_each_other() {
    let runs = [run_of("one", &exchanges(60, 0)), run_of("two", &exchanges(60, 30))];
    let charts = Charts::new(&runs);
    let ecdf = named(&charts, "ttft-ecdf");
    let labels: Vec<&str> = ecdf.keys.iter().map(|key| key.label.as_str()).collect();
    assert_eq!(labels, ["one", "two"]);
    let at_median: Vec<&str> = ecdf
        .columns()
        .map(|(_, column)| column.cells[50].as_ref().unwrap().text.as_str())
        .collect();
    assert_eq!(at_median, ["130 ms", "160 ms"]);
    let histogram = named(&charts, "ttft-histogram");
    assert!(histogram.panels[0].marks.iter().all(|mark| mark.shape == Shape::Area));
    for name in ["waterfall-1", "waterfall-2", "phases-2", "slowest-1"] {
        assert!(named(&charts, name).title.contains(": "));
    }
}

#[test]
fn a_histogram_counts_every_sample_it_shows() {
    let charts = charts(&exchanges(60, 0));
    let histogram = named(&charts, "ttft-histogram");
    let shares = histogram.panels[0].marks[0].points.iter();
    let sum: f64 = shares.filter_map(|point| point.y).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    // A few that are far out are told instead.
    let mut far = exchanges(400, 0);
    let last = far.len() - 2;
    for at in &mut far[last].events.at {
        *at = *at + model::units::Nanos(5_000_000_000);
    }
    let charts = self::charts(&far);
    let histogram = named(&charts, "ttft-histogram");
    assert!(histogram.note.contains("1 of 380 samples are above"), "{}", histogram.note);
    let ecdf = named(&charts, "ttft-ecdf");
    assert!(ecdf.log.unwrap().first, "and the other is logarithmic");
}

#[test]
fn labels_tell_runs_apart() {
    let run = |name: &str, version: &str| {
        let mut shown = run_of(name, &[]).reported;
        shown.plan.about.engine_version = Some(version.to_owned());
        shown
    };
    let joined = |runs: &[Reported]| labels(runs).join(" | ");
    assert_eq!(joined(&[run("a", "1"), run("a", "2")]), "vllm 1 | vllm 2");
    assert_eq!(joined(&[run("a", "1"), run("b", "1")]), "a | b");
    let same = run("a", "1");
    assert_eq!(joined(&[same.clone(), same]), "1 20260102-030405-a | 2 20260102-030405-a");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_run_can_be_drawn(run in any_run(), other in any_run()) {
        let runs = [run_of("one", &run), run_of("two", &other)];
        for runs in [&runs[..1], &runs[..]] {
            for chart in Charts::new(runs).iter() {
                for log in [false, true] {
                    let drawn = svg(chart, Look { width: Width::Narrow, log, alone: None });
                    prop_assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{}", drawn);
                }
                for (_, column) in chart.columns() {
                    prop_assert_eq!(column.cells.len(), chart.rows.labels.len(), "{}", &chart.name);
                }
            }
        }
    }
}

#[test]
fn power_that_was_sampled_throughout_has_a_panel() {
    let course = |until_s: u64| {
        let samples = (0..=until_s).map(|second| Sample {
            at_ns: Nanos(second * 1_000_000_000),
            devices: vec![Some(Reading {
                power_w: Some(if second <= 4 { 200.0 } else { 300.0 }),
                ..Reading::default()
            })],
            host_j: None,
        });
        let mut of = facts(&plan("one"), Default::default(), false);
        of.devices = Some(Recording {
            facts: Some(Facts { devices: vec![Device::default()], ..Facts::default() }),
            every_ns: Nanos(1_000_000_000),
            samples: samples.collect(),
            ..Recording::default()
        });
        let charts = Charts::new(&[run_with("one", &exchanges(60, 0), of)]);
        named(&charts, "course").clone()
    };
    // The run is from 1 s to some 7 s.
    let chart = course(9);
    let power = chart.panels.last().unwrap();
    assert_eq!(power.y.title, "power of the devices (W)");
    let points = &power.marks[0].points;
    assert_eq!(points.first().unwrap().y, Some(200.0));
    assert_eq!(points.last().unwrap().y, Some(300.0));
    let column = power.marks[0].column.as_ref().unwrap();
    assert_eq!(column.cells[0].as_ref().unwrap().text, "200 W");
    assert_eq!(course(3).panels.len(), chart.panels.len() - 1);
}

/// A server that queues each request for 60 ms and prefills for 30 ms.
fn timed() -> Vec<Exchange> {
    let mut run = exchanges(60, 0);
    for exchange in &mut run {
        exchange.timings = Some(model::exchange::ServerTimings {
            queue: Some(Nanos(60_000_000)),
            prefill: Some(Nanos(30_000_000)),
            ..Default::default()
        });
    }
    run
}

fn keys(chart: &Chart) -> Vec<&str> {
    chart.keys.iter().map(|key| key.label.as_str()).collect()
}

#[test]
fn parts_of_the_first_token_are_bars_from_end_to_end() {
    let charts = charts(&timed());
    let chart = named(&charts, "first-token");
    assert_eq!(
        keys(chart),
        ["client", "network and front end", "queue", "prefill"],
        "no connection was waited for"
    );
    assert_eq!(
        chart.rows.labels,
        [
            "mean of 57 requests",
            "around P50, mean of 17",
            "around P90, mean of 13",
            "around P99, mean of 4"
        ]
    );
    let marks = &chart.panels[0].marks;
    for row in 0..4 {
        let mut end = 0.0;
        for mark in marks {
            let point = mark.points.iter().find(|point| point.y == Some(f64::from(row)));
            // A client that sent at once has no bar.
            if let Some(point) = point {
                assert_eq!(point.x, end, "row {row}");
                end = point.to;
            }
        }
        let [queue, prefill] = [2, 3].map(|mark: usize| {
            let point = marks[mark].points[row as usize];
            point.to - point.x
        });
        assert!((queue - 60.0).abs() < 1e-9 && (prefill - 30.0).abs() < 1e-9);
        assert!(end >= 100.0 && end <= chart.x.high, "{end}");
    }
    assert!(chart.seen.contains("queue"), "{}", chart.seen);
}

#[test]
fn phases_before_the_first_token_are_the_servers() {
    let mut run = timed();
    let all = charts(&run);
    let waterfall = named(&all, "waterfall");
    assert_eq!(
        keys(waterfall),
        [
            "held back by the cap",
            "network and front end",
            "queue of the server",
            "prefill",
            "decoding",
            "failed"
        ]
    );
    // A server that states more than there was does not draw over the decoding.
    for exchange in &mut run {
        exchange.timings.as_mut().unwrap().prefill = Some(Nanos(5_000_000_000));
    }
    let all = charts(&run);
    let phases = named(&all, "phases");
    let ends = |label: &str| {
        let key = keys(phases).iter().position(|key| *key == label).unwrap();
        let marks = &phases.panels[0].marks;
        marks.iter().find(|mark| mark.key == key).unwrap().points.clone()
    };
    let decoding = ends("decoding");
    for (prefill, decoding) in ends("prefill").iter().zip(&decoding) {
        assert!(prefill.to <= decoding.x + 1e-9, "{prefill:?} {decoding:?}");
    }
}

fn row(share: f64, interval: Option<[f64; 2]>, is_better: Option<bool>) -> Difference {
    Difference {
        name: format!("option {share}"),
        share,
        interval,
        is_better,
        text: format!("{share}"),
    }
}

#[test]
fn the_axis_holds_every_difference_and_no_endless_interval() {
    for (rows, ends) in [
        (vec![row(0.1, Some([0.05, 0.15]), Some(true))], (-0.02, 0.16)),
        (vec![row(0.0, Some([-0.9, 9.0]), None)], (-2.0, 10.0)),
        (
            vec![
                row(0.02, Some([-0.1, 0.12]), None),
                row(0.03, Some([-0.08, 0.1]), None),
                row(0.2, Some([-0.9, 9.0]), None),
                row(-0.1, Some([-0.9, 9.0]), None),
            ],
            (-0.3, 0.3),
        ),
        (vec![row(-0.2, None, Some(false))], (-0.2, 0.05)),
    ] {
        let (low, high) = super::ends(&rows);
        assert!((low - ends.0).abs() < 0.011, "{low} {ends:?}");
        assert!((high - ends.1).abs() < 0.041, "{high} {ends:?}");
        assert!(low <= 0.0 && high > 0.0);
        assert!(rows.iter().all(|row| (low..=high).contains(&row.share)));
    }
}

#[test]
fn each_difference_is_a_row_with_a_name_a_point_and_an_interval() {
    let forest = Forest {
        name: "gains".to_owned(),
        title: String::new(),
        note: String::new(),
        x: String::new(),
        zero: "baseline".to_owned(),
        rows: vec![row(0.1, Some([0.05, 0.15]), Some(true)), row(-0.2, None, Some(false))],
    };
    let chart = chart(&forest);
    let keys: Vec<&str> = chart.keys.iter().map(|key| &*key.label).collect();
    assert_eq!(keys, ["better", "worse"], "only what is drawn");
    let svg = svg(&chart, Look { width: Width::Narrow, log: false, alone: None });
    let wide = Forest {
        rows: vec![
            row(0.01, Some([-0.02, 0.04]), None),
            row(0.02, Some([-0.02, 0.04]), None),
            row(0.1, Some([-0.6, 9.0]), None),
        ],
        ..forest
    };
    let labels = super::chart(&wide).rows.labels;
    assert_eq!(labels, ["option 0.01", "option 0.02", "option 0.1 (-60 % to +900 %)"]);
    for name in ["option 0.1", "option -0.2", "baseline"] {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
    assert_eq!(svg.matches("class=\"spot\"").count(), 1);
    assert_eq!(svg.matches("class=\"cross\"").count(), 1);
    assert_eq!(svg.matches("class=\"fill\"").count(), 1, "one interval");
    // The first tick's label begins within the drawing.
    let at = svg.find(">-20%</text>").unwrap();
    let label = &svg[svg[..at].rfind("<text").unwrap()..at];
    let middle: f64 =
        label.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert!(middle >= 12.0, "{label}");
}
