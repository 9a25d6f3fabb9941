//! `--metrics-listen`: a real client asks a real process for its page, ten times a second.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use runs::folder::RunFolder;

use super::exposition::Page;
use crate::support::process::{Mock, Process, run, runner, words};
use crate::support::results::random;

const KEY: &str = "sk-0123456789abcdef";
const TENANT: &str = "tenant-of-great-secrecy";

/// Asks a server, and returns the head and the body.
pub fn ask(address: &str, request: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// Idle readers keep nobody out, and a page of the web that has this machine's address under its
/// own name reads nothing.
#[test]
fn idle_readers_and_other_names() {
    let (folder, mock) =
        (tempfile::tempdir().unwrap(), Mock::start(&["--ttft", "20ms", "--itl", "5ms"]));
    let flags = "--num-prompts 100000 --request-rate 20 --metrics-listen 127.0.0.1:0";
    let mut process = Process::start(&mut random(&mock.url, folder.path(), flags));
    let address = address(&mut process);
    let idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let (head, _) = ask(&address, "GET /metrics").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    for (fields, status) in [
        ("host: evil.example", "421"),
        ("host: evil.example\r\nhost: localhost", "421"),
        ("x: y", "421"),
        ("host: localhost", "200"),
        ("host: 127.0.0.1:1", "200"),
    ] {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\n{fields}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{fields}: {answer}");
    }
    // A head without end is refused, not collected.
    let mut stream = TcpStream::connect(&address).unwrap();
    let mut written = 0;
    while stream.write_all(&[b'x'; 1 << 10]).is_ok() {
        written += 1;
        assert!(written < 64 << 10, "64 MiB of a head were read");
    }
    drop(idle);
    process.signal("INT");
    process.end().with_code(130);
}

/// The place where the process says it listens.
pub fn address(process: &mut Process) -> String {
    process.until("it says where it listens", |process| process.stderr().contains("/metrics\n"));
    let stderr = process.stderr();
    let line = stderr.lines().find(|line| line.starts_with("metrics: ")).unwrap();
    let url = line.strip_prefix("metrics: http://").unwrap();
    url.strip_suffix("/metrics").unwrap().to_owned()
}

fn scenario(folder: &Path, name: &str, url: &str) {
    let text = format!(
        r#"
target = {{ base-url = "{url}", model = "mock", wait-ready = "2m" }}
backend.plugin = "backends/vllm.wasm"
dataset.plugin = "datasets/random.wasm"
dataset.config = {{ like = "vllm", input-len = 20, output-len = 10 }}
load = {{ requests = 60, arrival = "constant", rate = 60.0, warmup = 2 }}
"#
    );
    std::fs::write(folder.join(name), text).unwrap();
}

/// Asks repeatedly until a page is as wanted.
#[track_caller]
pub fn page_until(process: &mut Process, address: &str, wanted: impl Fn(&Page) -> bool) -> Page {
    let mut last = None;
    process.until("a page is as wanted", |_| {
        std::thread::sleep(Duration::from_millis(90));
        let (head, body) = ask(address, "GET /metrics").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("content-type: application/openmetrics-text"), "{head}");
        for secret in [KEY, TENANT] {
            assert!(!body.contains(secret), "{body}");
        }
        let page = Page::read(&body);
        let is_wanted = wanted(&page);
        last = Some(page);
        is_wanted
    });
    last.unwrap()
}

fn is_over(page: &Page) -> bool {
    (page.series("runner_phase", &[("phase", "over")])).any(|phase| phase.value == 1.0)
}

fn assert_agree(page: &Page, runs: &Path) {
    let folder = RunFolder::at(&runs.join(page.label("run")));
    let summary = folder.summarize(&folder.facts().unwrap()).unwrap();
    let requests = &summary.requests;
    assert_eq!((requests.successful, requests.failed), (48, 12));
    let answered = page.value("runner_requests_total", &[("outcome", "ok")]);
    assert_eq!(answered, requests.successful as f64);
    let failed = [("outcome", "failed"), ("class", "http-status")];
    assert_eq!(page.value("runner_requests_total", &failed), requests.failed as f64);
    let tokens = summary.tokens.output.total.unwrap();
    assert_eq!(page.value("runner_output_tokens_total", &[]), tokens as f64);
    for (family, name) in [
        ("runner_time_to_first_token_seconds_count", "ttft"),
        ("runner_inter_token_latency_seconds_count", "itl"),
        ("runner_send_lag_seconds_count", "send-lag"),
    ] {
        let count = summary.metric(name).unwrap().count;
        assert_eq!(page.value(family, &[]), count as f64, "{name}");
    }
    let client = folder.facts().unwrap().client.unwrap();
    if cfg!(target_os = "linux") {
        assert!(client.threads.contains_key("metrics"), "{client:?}");
    }
}

#[test]
fn a_page_while_runs_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let fault = "api-key = \"sk-0123456789abcdef\"\nttft = \"20ms\"\nitl = \"5ms\"\n[[fault]]\nkind = \"http-error\"\nevery = 5\n";
    let script = folder.path().join("mock.toml");
    std::fs::write(&script, fault).unwrap();
    let flags = ["--script", script.to_str().unwrap()];
    let (first, second) = (Mock::start(&flags), Mock::start(&flags));
    scenario(folder.path(), "one.toml", &first.url);
    scenario(folder.path(), "two.toml", &second.url);
    // The second run waits for its engine, so that the first one's last page can be read.
    second.kill();

    let mut command = runner();
    command
        .args(words("one.toml two.toml --metrics-listen 127.0.0.1:0 --api-key-env ENGINE_KEY"))
        .env("ENGINE_KEY", KEY)
        .env("RUNNER_HEADER", format!("x-tenant: {TENANT}"))
        .current_dir(folder.path());
    let mut process = Process::start(&mut command);
    let address = address(&mut process);
    assert!(address.starts_with("127.0.0.1:"), "{address}");

    let runs = folder.path().join("runs");
    let page = page_until(&mut process, &address, is_over);
    process.until("the first result is printed", |process| {
        process.stdout().contains("Successful requests:")
    });
    assert_agree(&page, &runs);
    let one = page.label("run").to_owned();
    assert!(one.ends_with("-one"), "{one}");

    let (head, index) = ask(&address, "GET /").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(index.contains(&format!("run {one}: over\n/metrics")), "{index}");
    for (request, status) in [("GET /nothing", "404"), ("POST /metrics", "405")] {
        let (head, _) = ask(&address, request).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {head}");
    }

    // Another run is another series, and counts from zero.
    let _second = second.start_again(&flags);
    let page = page_until(&mut process, &address, |page| page.label("run") != one);
    assert!(page.label("run").ends_with("-two"));
    let ended = process.end().with_code(0);
    assert_eq!(ended.stdout.matches("Successful requests:").count(), 2);
    assert_eq!(ended.stderr.matches("metrics: ").count(), 1, "{ended:#?}");
    for secret in [KEY, TENANT] {
        assert!(!ended.stderr.contains(secret), "{ended:#?}");
    }
}

#[test]
fn an_unusable_address_is_reported_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let demo = |address: &str| {
        run(runner().args(["demo", "--metrics-listen", address]).current_dir(folder.path()))
    };
    let ended = demo(&format!(":{port}")).with_code(3);
    let words = format!("cannot listen on 127.0.0.1:{port} (--metrics-listen): ");
    assert!(ended.stderr.contains(&words), "{ended:#?}");
    assert!(ended.stderr.contains("another program listens there"), "{ended:#?}");
    demo("192.0.2.1:9464").with_stderr(3, "an address of this machine");
    demo("http://localhost:9464").with_stderr(2, "expected HOST:PORT");
    assert!(!folder.path().join("runs").exists());
}
