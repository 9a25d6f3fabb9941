//! Pages in, series out.

use super::*;
use model::units::Nanos;

/// The page of a vLLM for the CPU, as it wrote it after 13 requests.
const VLLM: &str = include_str!("cases/vllm.txt");

const SECOND: u64 = 1_000_000_000;

fn at(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds)
}

/// An encoder of one target's pages, a page each second.
fn encoder() -> Encoder {
    Encoder::new(Head { targets: vec!["http://a".into()], every_ns: Nanos(SECOND) })
}

/// The entries of pages of one target, a second apart from 1 s on.
fn entries(pages: &[&str]) -> Vec<Entry> {
    let mut encoder = encoder();
    let mut entries = vec![encoder.head()];
    for (place, page) in (1..).zip(pages) {
        let instant = Nanos(place * SECOND);
        entries.extend(encoder.page(0, (instant, instant), page));
    }
    entries
}

fn recorded(pages: &[&str]) -> Recording {
    let mut recording = Recording::default();
    // As a file has them.
    for entry in entries(pages) {
        let line = serde_json::to_string(&entry).unwrap();
        recording.enter(serde_json::from_str(&line).unwrap());
    }
    recording
}

fn last_sample(entries: &[Entry]) -> &Sample {
    match entries.last() {
        Some(Entry::Sample(sample)) => sample,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_series_of_a_real_page_is_kept() {
    let page = page::read(VLLM);
    let lines = VLLM.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(page.samples.len(), lines.count());
    assert_eq!(page.left_out, 0);
    let kind = |name: &str| {
        let found = page.samples.iter().find(|sample| sample.name == name);
        found.map(|sample| sample.kind)
    };
    for (name, expected) in [
        ("vllm:num_requests_running", Kind::Gauge),
        ("vllm:prompt_tokens_total", Kind::Counter),
        ("vllm:prompt_tokens_created", Kind::Gauge),
        ("vllm:request_prompt_tokens_bucket", Kind::Histogram),
        ("vllm:request_prompt_tokens_sum", Kind::Histogram),
        ("vllm:iteration_tokens_total_bucket", Kind::Histogram),
    ] {
        assert_eq!(kind(name), Some(expected), "{name}");
    }
    let recording = recorded(&[VLLM, VLLM]);
    assert_eq!(recording.series.len(), page.samples.len());
    for (recorded, sample) in recording.series.values().zip(&page.samples) {
        assert_eq!(recorded.series.name, sample.name);
        assert_eq!(recorded.series.labels, sample.labels);
        assert_eq!(recorded.changes, [(0, Some(sample.value))]);
    }
    assert_eq!(last_sample(&entries(&[VLLM, VLLM])).values, [], "what stands still takes no room");
}

#[test]
fn a_real_server_has_the_common_names() {
    let recording = recorded(&[VLLM, VLLM]);
    let figures = recording.figures((at(1.0), at(2.0))).unwrap();
    for name in [
        Name::Running,
        Name::Waiting,
        Name::KvUsage,
        Name::CacheHitRate,
        Name::Preemptions,
        Name::BatchTokens,
        Name::InputTokens,
        Name::OutputTokens,
        Name::QueueTime,
        Name::PrefillTime,
        Name::ServerTtft,
        Name::Refused,
    ] {
        assert!(figures.figures.contains_key(&name), "{name:?}");
    }
    assert!(!figures.figures.contains_key(&Name::TransferTime));
    let idle = &figures.figures[&Name::CacheHitRate];
    assert_eq!(idle.mean, None, "nothing was looked up: no share, and not zero");
    assert_eq!(figures.queues[0].queued.to_string(), "0");
}

/// The lines are SGLang 0.5.23's, whose series of a memory appears with its first hit.
#[test]
fn tiers_of_the_cache_are_told_apart_by_their_label() {
    let page = |device: u64, host: u64| {
        format!(
            "# TYPE sglang:cached_tokens_total counter\n\
             sglang:cached_tokens_total{{cache_source=\"device\",model_name=\"m\",tp_rank=\"0\"}} {device}\n\
             sglang:cached_tokens_total{{cache_source=\"host\",model_name=\"m\",tp_rank=\"0\"}} {host}\n"
        )
    };
    let recording = recorded(&[&page(64, 0), &page(192, 37)]);
    let figures = recording.figures((at(1.0), at(2.0))).unwrap().figures;
    let total = |name: Name| figures.get(&name).and_then(|figure| figure.total);
    assert_eq!((total(Name::DeviceCached), total(Name::HostCached)), (Some(128.0), Some(37.0)));
    assert_eq!((total(Name::StorageCached), total(Name::ExternalCached)), (None, None));
}

#[test]
fn bytes_moved_between_memories_are_counted() {
    // As prometheus_client writes the counters of `trtllm-serve`.
    let page = |loaded: &str| {
        format!(
            "# HELP trtllm_kv_cache_onboard_bytes_total Total bytes transferred from host to GPU (onboard)\n\
             # TYPE trtllm_kv_cache_onboard_bytes_total counter\n\
             trtllm_kv_cache_onboard_bytes_total{{engine_type=\"trtllm\",model_name=\"m\"}} {loaded}\n\
             # TYPE trtllm_kv_cache_onboard_bytes_created gauge\n\
             trtllm_kv_cache_onboard_bytes_created{{engine_type=\"trtllm\",model_name=\"m\"}} 1.79599e+09\n\
             # TYPE trtllm_kv_cache_offload_bytes_total counter\n\
             trtllm_kv_cache_offload_bytes_total{{engine_type=\"trtllm\",model_name=\"m\"}} 2048.0\n"
        )
    };
    let recording = recorded(&[&page("4096.0"), &page("5.24288e+06")]);
    let figures = recording.figures((at(1.0), at(2.0))).unwrap().figures;
    let total = |name: Name| figures.get(&name).and_then(|figure| figure.total);
    assert_eq!((total(Name::KvLoaded), total(Name::KvStored)), (Some(5_238_784.0), Some(0.0)));
    assert_eq!((total(Name::HostCached), total(Name::CacheHitRate)), (None, None));
}

#[test]
fn counters_become_rates_and_restarts_count_from_zero() {
    let page = |count: u64| {
        format!(
            "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{{engine=\"0\"}} {count}\n"
        )
    };
    let pages = [page(100), page(160), page(160), page(25)];
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let recording = recorded(&pages);
    let spans: Vec<_> =
        (1..4).map(|from| (at(f64::from(from)), at(f64::from(from) + 1.0))).collect();
    let course = Course::over(&recording, &spans);
    let line = course.line(Name::InputTokens).unwrap();
    assert_eq!(line.values, [Some(60.0), Some(0.0), Some(25.0)]);
    let over = |from, to| {
        let figures = recording.figures((at(from), at(to))).unwrap();
        figures.figures[&Name::InputTokens].clone()
    };
    let all = over(1.0, 4.0);
    assert_eq!(all.total, Some(85.0));
    assert_eq!((all.first_s, all.last_s), (Some(0.0), Some(3.0)));
    let half = over(1.5, 2.5);
    assert_eq!(half.total, Some(30.0), "half of what came in the second");
    // Before the first page and after the last nothing is known.
    let course = Course::over(&recording, &[(at(0.0), at(0.5)), (at(4.5), at(5.0))]);
    assert_eq!(course.0, []);
}

#[test]
fn a_counter_that_appears_with_its_first_count_grew_by_it() {
    let recorded = recorded(&["other 1\n", "other 1\nvllm:num_preemptions_total 3\n"]);
    let figures = recorded.figures((at(1.0), at(2.0))).unwrap();
    let preempted = &figures.figures[&Name::Preemptions];
    assert_eq!(preempted.total, Some(3.0));
}

#[test]
fn a_missing_counter_grows_from_its_last_value() {
    let page = |count: u64| format!("other 1\nvllm:prompt_tokens_total {count}\n");
    let pages = [&*page(5_000_000), "other 1\n", &*page(5_000_009), "other 1\n", &*page(4)];
    let recorded = recorded(&pages);
    let total = |from, to| {
        let figures = recorded.figures((at(from), at(to))).unwrap();
        figures.figures[&Name::InputTokens].total
    };
    assert_eq!(total(1.0, 4.0), Some(9.0));
    assert_eq!(total(4.0, 5.0), Some(4.0), "the server began anew");
}

#[test]
fn quantiles_are_prometheus_histogram_quantile() {
    // Prometheus: rank 0.5 * 10 = 5 lies in (0.1, 0.5], 2 below it, 6 within: 0.1 + 0.4 * 3/6;
    // rank 9.9 lies beyond the last finite bound.
    let page = |low: u64, mid: u64, all: u64, sum: f64| {
        format!(
            "# TYPE vllm:request_queue_time_seconds histogram\n\
             vllm:request_queue_time_seconds_bucket{{le=\"0.1\"}} {low}\n\
             vllm:request_queue_time_seconds_bucket{{le=\"0.5\"}} {mid}\n\
             vllm:request_queue_time_seconds_bucket{{le=\"+Inf\"}} {all}\n\
             vllm:request_queue_time_seconds_sum {sum}\n\
             vllm:request_queue_time_seconds_count {all}\n"
        )
    };
    let (before, after) = (page(1, 1, 1, 0.05), page(3, 9, 11, 4.05));
    let recording = recorded(&[&before, &after]);
    let figures = recording.figures((at(1.0), at(2.0))).unwrap();
    let queue = &figures.figures[&Name::QueueTime];
    let near = |found: Option<f64>, expected: f64| {
        assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?} {expected}");
    };
    near(queue.total, 10.0);
    near(queue.mean, 400.0);
    near(queue.p50, 300.0);
    near(queue.p99, 500.0);
    // Of the first page none or all came after the beginning: 200 or 300 instead of 4000 / 15.
    let three = recorded(&[&before, &after, &page(13, 19, 21, 6.05)]);
    let over = |from| three.figures((at(from), at(3.0))).unwrap().figures[&Name::QueueTime].clone();
    near(over(1.5).mean, 4000.0 / 15.0);
    near(over(1.5).mean_within, 1000.0 / 15.0);
    assert_eq!(over(1.0).mean_within, None);
    // An observation in the lowest bucket has only a bound.
    let low = recorded(&[&page(0, 0, 0, 0.0), &page(9, 9, 9, 0.01)]);
    let low = low.figures((at(1.0), at(2.0))).unwrap();
    let low = &low.figures[&Name::QueueTime];
    assert_eq!((low.p50, low.p99), (None, None));
    near(low.mean, 10.0 / 9.0);
    let course = Course::over(&recording, &[(at(1.0), at(2.0))]);
    let line = course.line(Name::QueueTime).unwrap();
    near(line.values[0], 400.0);
    near(line.high.as_ref().unwrap()[0], 500.0);
}

#[test]
fn a_gauge_holds_around_its_page_and_not_over_a_gap() {
    let page = |running: u64| {
        format!("vllm:num_requests_running {running}\nvllm:num_requests_waiting 0\n")
    };
    let mut encoder = encoder();
    let mut recording = Recording::default();
    recording.enter(encoder.head());
    for (instant, running) in [(1.0, 2), (2.0, 4), (9.0, 8)] {
        let instant = at(instant);
        let entries = encoder.page(0, (instant, instant), &page(running));
        entries.into_iter().for_each(|entry| recording.enter(entry));
    }
    let spans = [(1.0, 1.5), (1.0, 2.0), (2.0, 3.0), (3.0, 8.0), (8.0, 9.0)];
    let spans = spans.map(|(from, to)| (at(from), at(to)));
    let course = Course::over(&recording, &spans);
    let line = course.line(Name::Running).unwrap();
    assert_eq!(line.values, [Some(2.0), Some(3.0), Some(4.0), None, Some(8.0)]);
}

#[test]
fn a_family_that_is_there_twice_counts_once() {
    let page = "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\nsglang:num_running_reqs 3\nsglang:num_queue_reqs 1\n";
    let figures = recorded(&[page, page]).figures((at(1.0), at(2.0))).unwrap();
    assert_eq!(figures.figures[&Name::Running].max, Some(3.0));
    assert_eq!(figures.figures[&Name::Running].metrics, ["vllm:num_requests_running"]);
}

#[test]
fn requests_that_wait_at_a_steady_load_are_a_queue() {
    let page = |running: u64, waiting: u64| {
        format!(
            "vllm:num_requests_running {running}\nvllm:num_requests_waiting {waiting}\nvllm:kv_cache_usage_perc 0.25\n"
        )
    };
    let pages = [page(2, 0), page(8, 3), page(8, 9), page(7, 1), page(1, 0)];
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let recording = recorded(&pages);
    let figures = recording.figures((at(1.0), at(5.0))).unwrap();
    let [queue] = &figures.queues[..] else {
        panic!("{figures:?}");
    };
    // Three pages of a second each of four seconds.
    assert_eq!(queue.queued, 0.75);
    assert_eq!((queue.pages, queue.max_waiting), (3, 9.0));
    assert_eq!(queue.ceiling, Some(8.0));
    assert_eq!(queue.at_ceiling, Some(2.0 / 3.0));
    assert_eq!(queue.kv_usage, Some(0.25));
}

#[test]
fn series_come_and_go() {
    let recording = recorded(&["a 1\nb{x=\"1\"} 2\n", "a NaN\nb{x=\"2\"} 2\n", "a 1\n"]);
    let changes: Vec<_> = recording.series.values().map(|it| it.changes.clone()).collect();
    assert_eq!(
        changes,
        [
            vec![(0, Some(1.0)), (1, None), (2, Some(1.0))],
            vec![(0, Some(2.0)), (1, None)],
            vec![(1, Some(2.0)), (2, None)],
        ]
    );
}

#[test]
fn pages_have_bounds() {
    let many: String = (0..page::MOST_SAMPLES + 7).map(|n| format!("m{{n=\"{n}\"}} 1\n")).collect();
    let read = page::read(&many);
    assert_eq!((read.samples.len(), read.left_out), (page::MOST_SAMPLES, 7));
    let long = format!("m{{n=\"{}\"}} 1\nok 2\n", "x".repeat(page::MOST_LABEL_BYTES));
    let read = page::read(&long);
    assert_eq!((read.samples.len(), read.left_out), (1, 1));
    // A label that is new on every page fills memory no further than that.
    let mut encoder = encoder();
    let mut introduced = 0;
    let mut left_out = 0;
    for page in 0..4u64 {
        let text: String =
            (0..page::MOST_SAMPLES).map(|n| format!("m{{request=\"{page}-{n}\"}} 1\n")).collect();
        for entry in encoder.page(0, (Nanos(page), Nanos(page)), &text) {
            match entry {
                Entry::Series(_) => introduced += 1,
                Entry::Sample(sample) => left_out = sample.left_out,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(introduced, entry::MOST_SERIES);
    assert_eq!(left_out as usize, page::MOST_SAMPLES, "and the result says so");
}

#[test]
fn a_long_run_is_sampled_less_often() {
    let mut encoder = encoder();
    let mut heads = Vec::new();
    let mut values = 0;
    for page in 0..100_000u64 {
        for entry in encoder.page(0, (Nanos(page), Nanos(page)), &format!("m {page}\n")) {
            match entry {
                Entry::Head(head) => heads.push((page + 1, head.every_ns.0 / SECOND)),
                Entry::Sample(sample) => values += sample.values.len(),
                Entry::Series(_) | Entry::Failed(_) => {}
            }
        }
    }
    assert_eq!(values, 100_000);
    assert_eq!(heads, [(36_000, 2), (54_000, 4), (72_000, 8), (90_000, 16)]);
}

#[test]
fn contradicting_entries_of_a_file_are_left_out() {
    let mut entries = entries(&["a 1\n", "a 2\n"]);
    let again = entries.clone();
    entries.extend(again);
    entries.push(Entry::Sample(Sample {
        at_ns: Nanos(9 * SECOND),
        target: 7,
        values: vec![(0, 5.0)],
        ..Sample::default()
    }));
    entries.push(Entry::Sample(Sample {
        at_ns: Nanos(9 * SECOND),
        values: vec![(99, 5.0), (0, 3.0), (0, 4.0)],
        ..Sample::default()
    }));
    let mut recording = Recording::default();
    entries.into_iter().for_each(|entry| recording.enter(entry));
    assert_eq!(recording.series.len(), 1);
    assert_eq!(recording.series[&0].changes, [(0, Some(1.0)), (1, Some(2.0)), (2, Some(3.0))]);
}

#[test]
fn sums_that_are_no_number_are_absent() {
    let page = |value: &str| {
        let names = [
            "vllm:num_requests_running",
            "vllm:num_requests_waiting",
            "vllm:prompt_tokens_total",
            "vllm:prefix_cache_hits_total",
            "vllm:prefix_cache_queries_total",
        ];
        let lines =
            names.map(|name| format!("{name}{{e=\"0\"}} {value}\n{name}{{e=\"1\"}} {value}\n"));
        lines.concat()
    };
    let figures = recorded(&[&page("0"), &page("1.7e308"), &page("1.7e308")]);
    let figures = figures.figures((at(1.0), at(3.0))).unwrap();
    let text = serde_json::to_string(&figures).unwrap();
    assert!(!text.contains("null"), "{text}");
    assert_eq!(figures.figures[&Name::Running].max, Some(0.0));
    assert_eq!(figures.figures[&Name::InputTokens].total, None);
    assert_eq!(figures.figures[&Name::CacheHitRate].mean, None);
}
