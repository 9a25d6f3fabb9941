//! The server's own series over a run, held against the log of the engine that wrote its page.

use std::sync::{Arc, Mutex};

use model::units::Nanos;
use result::finding::Id;
use result::summary::Summary;
use runs::folder::RunFolder;
use series::{Kind, Name, Recording, Stage};
use tempfile::TempDir;

use crate::endings::exchanges;
use crate::support::process::{Mock, run};
use crate::support::results::{random, run_folder};
use crate::support::server::{read_request, reply, serve};

/// The largest apparent distance of both processes' clocks, and the largest lateness of a gauge.
/// The engine counts a request before or after it reads its clock, and a busy machine stops it in
/// between. A request is counted for three times as long.
const SLACK: u64 = 100_000_000;

/// A run against an engine of three places.
fn ran(mock: &Mock, flags: &str) -> (TempDir, Summary, Option<Recording>) {
    let folder = TempDir::new().unwrap();
    let flags = format!(
        "--random-input-len 8 --random-output-len 12 --num-prompts 40 --max-concurrency 6 \
         --no-progress {flags}"
    );
    run(&mut random(&mock.url, folder.path(), &flags)).with_code(0);
    let path = run_folder(folder.path());
    let summary = std::fs::read(path.join("summary.json")).unwrap();
    let summary = serde_json::from_slice(&summary).unwrap();
    let recording = RunFolder::at(&path).facts().unwrap().series;
    (folder, summary, recording)
}

/// The value of a series on each page of the only target.
fn on_pages(recording: &Recording, name: &str) -> Vec<(Nanos, f64)> {
    let found = recording.series.values().find(|it| it.series.name == name);
    let changes = &found.unwrap_or_else(|| panic!("{name} is there")).changes;
    let pages = recording.pages[&0].iter().enumerate();
    pages
        .filter_map(|(page, at)| {
            let until = changes.partition_point(|(place, _)| *place as usize <= page);
            let (_, value) = changes.get(until.checked_sub(1)?)?;
            Some((*at, (*value)?))
        })
        .collect()
}

#[test]
fn series_agree_with_the_engines_log() {
    let mock = Mock::logging(&["--ttft", "60ms", "--itl", "20ms", "--max-concurrency", "3"]);
    let (folder, summary, recording) = ran(&mock, "--server-series 100ms");
    let recording = recording.unwrap();
    let exchanges = exchanges(folder.path());
    let truths = mock.end();
    assert_eq!(truths.len(), exchanges.len());

    // The growth of each counter is the sum of its rates times time, and equals the log's total.
    let pages = &recording.pages[&0];
    let whole = (*pages.first().unwrap(), *pages.last().unwrap());
    let figures = recording.figures(whole).unwrap();
    let input: u32 = truths.iter().filter_map(|truth| truth.prompt_tokens).sum();
    let output: u32 = truths.iter().filter_map(|truth| truth.output_tokens).sum();
    for (name, metric, total) in [
        (Name::InputTokens, "vllm:prompt_tokens_total", input),
        (Name::OutputTokens, "vllm:generation_tokens_total", output),
    ] {
        let counter = on_pages(&recording, metric);
        let grown = counter.last().unwrap().1 - counter.first().unwrap().1;
        assert_eq!(grown, f64::from(total), "{metric}");
        let summed = figures.figures[&name].total.unwrap();
        assert!((summed - grown).abs() < 1e-6 * grown, "{summed} and not {grown}");
    }

    // Running and waiting requests agree with some instant within the page's time. The engine's
    // clock begins earlier than the run's by no more than the fastest request shows.
    let arrivals = exchanges.iter().filter_map(|it| it.sent);
    let (mut sent, mut received): (Vec<u64>, Vec<u64>) =
        (arrivals.map(|at| at.0).collect(), truths.iter().map(|truth| truth.received.0).collect());
    sent.sort_unstable();
    received.sort_unstable();
    let delays = sent.iter().zip(&received);
    let delays: Vec<u64> = delays.map(|(sent, received)| received - sent).collect();
    let apart = *delays.iter().min().unwrap();
    // On a busy machine even the fastest request is late, by no more than these differ.
    let reach = recording.longest_ns.0 + SLACK + delays.iter().max().unwrap() - apart;
    for (metric, from) in
        [("vllm:num_requests_running", true), ("vllm:num_requests_waiting", false)]
    {
        let seen = on_pages(&recording, metric);
        // An engine whose thread waits for a processor counts late, by more than its log knows.
        let (pages, mut apart_from_log) = (seen.len(), Vec::new());
        for (at, value) in seen {
            let middle = at.0 + apart;
            // Changes of the number within reach of the page, and the number before it.
            let spans = truths.iter().filter_map(|truth| {
                let started = truth.started?.0;
                let span =
                    if from { (started, truth.ended?.0) } else { (truth.received.0, started) };
                (span.0 < span.1).then_some(span)
            });
            let spans: Vec<(u64, u64)> = spans.collect();
            let number = |t: u64| spans.iter().filter(|(a, b)| *a <= t && t < *b).count();
            let (low, high) = (middle.saturating_sub(reach), middle + reach);
            let edges = spans.iter().flat_map(|(a, b)| [*a, *b]);
            let within = edges.filter(|edge| (low..=high).contains(edge));
            let instants: Vec<u64> = within.chain([low, high]).collect();
            let least = instants.iter().map(|t| number(*t)).min().unwrap() as f64;
            let most = instants.iter().map(|t| number(*t)).max().unwrap() as f64;
            if !(least..=most).contains(&value) {
                apart_from_log.push((at, value, least, most));
            }
        }
        assert!(apart_from_log.len() * 10 <= pages, "{metric}: {apart_from_log:?} of {pages}");
    }

    let series = summary.server_series.as_ref().unwrap();
    assert_eq!(series.figures[&Name::Running].max, Some(3.0));
    assert!(series.pages >= 10, "{series:?}");
    let kinds = recording.series.values().map(|it| it.series.kind);
    assert!(kinds.clone().any(|kind| kind == Kind::Counter));
    assert!(kinds.clone().any(|kind| kind == Kind::Gauge));
    assert!(summary.findings.iter().any(|it| it.id == Id::ServerQueue));
}

#[test]
fn series_are_kept_only_with_server_metrics() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let (_folder, summary, recording) = ran(&mock, "");
    assert_eq!((summary.server_series, recording), (None, None));
    let (_folder, summary, recording) = ran(&mock, "--server-metrics --server-series none");
    assert!(summary.server.is_some());
    assert_eq!((summary.server_series, recording), (None, None));
    let (_folder, summary, recording) = ran(&mock, "--server-metrics");
    assert!(summary.server.is_some());
    assert_eq!(recording.unwrap().every_ns, Nanos(1_000_000_000));
}

/// An engine with this script, and the folder that has it.
fn scripted(script: &str) -> (TempDir, Mock) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mock.toml");
    std::fs::write(&path, script).unwrap();
    let mock = Mock::start(&["--script", path.to_str().unwrap()]);
    (folder, mock)
}

#[test]
fn a_secret_on_the_page_is_not_kept() {
    let body = "told{key=\"sk-of-the-user-1234567890\"} 7\nother 1\n";
    let route = format!("[[route]]\npath = '/metrics'\nkey = false\nbody = '''{body}'''\n");
    let (_script, mock) = scripted(&route);
    let folder = TempDir::new().unwrap();
    let flags = "--num-prompts 2 --random-output-len 2 --no-progress --server-series 100ms";
    let mut command = random(&mock.url, folder.path(), flags);
    run(command.env("OPENAI_API_KEY", "sk-of-the-user-1234567890")).with_code(0);
    let path = run_folder(folder.path());
    let file = std::fs::File::open(path.join(runs::series::FILE)).unwrap();
    let text = String::from_utf8(zstd::decode_all(file).unwrap()).unwrap();
    assert!(text.contains("\"told\""), "{text}");
    assert!(!text.contains("of-the-user"), "{text}");
}

#[test]
fn a_server_without_a_page_fails_no_run() {
    let route = "[[route]]\npath = '/metrics'\nkey = false\nstatus = 404\nbody = 'none'\n";
    let (_script, mock) = scripted(route);
    let (_folder, summary, recording) = ran(&mock, "--server-series 100ms");
    assert_eq!(summary.requests.successful, 40);
    let series = summary.server_series.unwrap();
    assert_eq!((series.pages, series.series), (0, 0));
    assert!(series.failed.unwrap() >= 1);
    assert!(series.last_error.unwrap().contains("HTTP 404"));
    assert!(recording.is_some());
    assert!(summary.findings.iter().any(|it| it.id == Id::ServerGaps));
}

/// A server that has nothing but a metrics page, and the heads of the requests that it got.
fn page_server(page: fn(u64) -> String) -> (String, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let kept = Arc::clone(&heads);
    let url = serve(move |stream| {
        let head = read_request(stream)?;
        let mut heads = kept.lock().unwrap();
        heads.push(head);
        reply(stream, "200 OK", "", "text/plain", &page(heads.len() as u64))
    });
    (url, heads)
}

/// The lines of a histogram of vLLM with this number of requests and this mean, in seconds.
fn histogram(name: &str, requests: u64, mean: f64) -> String {
    let labels = "engine=\"0\",model_name=\"m\"";
    let sum = requests as f64 * mean;
    format!(
        "# TYPE vllm:{name} histogram\nvllm:{name}_bucket{{{labels},le=\"0.3\"}} {requests}.0\nvllm:{name}_bucket{{{labels},le=\"+Inf\"}} {requests}.0\nvllm:{name}_count{{{labels}}} {requests}.0\nvllm:{name}_sum{{{labels}}} {sum}\n"
    )
}

/// A router in front of two servers, which prefill and decode. The pages of both divide its time to
/// first token, and neither gets the router's key.
#[test]
fn two_servers_behind_a_router_have_queues_and_a_transfer() {
    let (prefill, prefill_heads) = page_server(|requests| {
        histogram("request_queue_time_seconds", requests, 0.020)
            + &histogram("request_prefill_time_seconds", requests, 0.050)
            + &histogram("nixl_xfer_time_seconds", 0, 0.0)
    });
    let (decode, _) = page_server(|requests| {
        histogram("request_queue_time_seconds", requests, 0.015)
            + &histogram("request_prefill_time_seconds", requests, 0.007)
            + &histogram("nixl_xfer_time_seconds", requests, 0.004)
    });
    let mock = Mock::start(&["--ttft", "120ms", "--itl", "2ms"]);
    let flags = format!(
        "--metrics-url {prefill},{decode} --server-series 100ms --api-key-env PATH --header X-Secret=7"
    );
    let (_folder, summary, _) = ran(&mock, &flags);
    let split = summary.first_token_by_series.as_ref().unwrap();
    let stages: Vec<(Stage, f64)> = (split.server.stages.iter())
        .map(|staged| (staged.stage, (staged.mean_ms * 1e6).round() / 1e6))
        .collect();
    let expected = [
        (Stage::PrefillQueue, 20.0),
        (Stage::Prefill, 50.0),
        (Stage::Transfer, 4.0),
        (Stage::DecodeQueue, 11.0),
        (Stage::FirstStep, 7.0),
    ];
    assert_eq!(stages, expected);
    assert_eq!(split.server.prefill_servers, [prefill]);
    assert_eq!(split.server.decode_servers, [decode]);
    let sum: f64 = split.named().iter().map(|(_, ms)| ms).sum();
    assert!((sum - split.whole_ms).abs() < 1e-6, "{split:?}");
    assert!(split.unexplained_ms > 20.0, "the mock takes 120 ms: {split:?}");
    let heads = prefill_heads.lock().unwrap();
    assert!(heads.len() > 2);
    for head in &*heads {
        let head = head.to_lowercase();
        assert!(head.starts_with("get /metrics "), "{head}");
        assert!(!head.contains("authorization") && !head.contains("x-secret"), "{head}");
    }
}
