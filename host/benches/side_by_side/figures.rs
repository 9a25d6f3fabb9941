//! The measured figures, and their tables.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bare;
use crate::process::{CORES, Mock, RUNNER, pinned, run, run_to_any_end};
use crate::truth::difference;

/// Streams at the same time where nothing else is said.
pub const STREAMS: usize = 1024;

/// A load of [`cpu`]: name, the engine's flags, replies in turn on a connection, tokens of each.
struct Answers {
    name: &'static str,
    mock: &'static [&'static str],
    answers: usize,
    tokens: usize,
}

/// The loads that one core's processor time is measured with.
const ANSWERS: [Answers; 5] = [
    Answers { name: ONE, mock: AS_FAST_AS_IT_CAN, answers: 8, tokens: 128 },
    Answers { name: ONE, mock: AS_FAST_AS_IT_CAN, answers: 2, tokens: 1000 },
    Answers {
        name: "one event a write, every 20 ms a stream",
        mock: EVERY_20_MS,
        answers: 4,
        tokens: 128,
    },
    Answers { name: EIGHT, mock: EIGHT_A_WRITE, answers: 8, tokens: 128 },
    Answers { name: EIGHT, mock: EIGHT_A_WRITE, answers: 2, tokens: 1000 },
];

const ONE: &str = "one event a write, as fast as the engine can";
const EIGHT: &str = "eight events a write, as fast as the engine can";
const GROWING: &str = "events of up to 24 KB that repeat the answer";

/// The engine's flags for one event a write, every 20 ms a stream.
const EVERY_20_MS: &[&str] = &["--ttft", "200ms", "--itl", "20ms"];

/// The runner on the first core against an engine, everything it writes in a folder that goes away.
fn runner(address: &str, folder: &Path, flags: &str) -> Command {
    runner_on(CORES[0], address, folder, flags)
}

/// The same on these cores.
pub fn runner_on(cores: &str, address: &str, folder: &Path, flags: &str) -> Command {
    let mut command = pinned(cores, RUNNER);
    if !flags.contains("--random-input-len") {
        command.env("RUNNER_RANDOM_INPUT_LEN", "32");
    }
    command
        .args(["run", "--dataset-name", "random"])
        .env("RUNNER_BACKEND", "openai")
        .args(["--base-url", &format!("http://{address}"), "--json"])
        .args(["--warmup-requests", "0"])
        .arg("--output-dir")
        .arg(folder)
        .args(flags.split_whitespace())
        .env("RUNNER_CACHE_DIR", folder.join("cache"));
    command
}

fn bare_reader(address: &str, load: &Answers) -> Result<Command> {
    let mut command = pinned(CORES[0], std::env::current_exe()?);
    let numbers = [STREAMS, load.answers, load.tokens].map(|number| number.to_string());
    command.args(["bare", address]).args(numbers);
    Ok(command)
}

/// Reads as the bare reader and prints how many events there were.
pub fn bare(address: SocketAddr, (streams, answers): (usize, usize), tokens: usize) -> Result<()> {
    let body = serde_json::json!({
        "model": "mock",
        "messages": [{"role": "user", "content": "x".repeat(32)}],
        "max_completion_tokens": tokens,
        "stream": true,
        "stream_options": {"include_usage": true},
        "ignore_eos": true,
    })
    .to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    println!("{}", bare::read(address, streams, answers, request.as_bytes())?.events);
    Ok(())
}

/// Processor seconds a million events, with the bare reader's requests and kept connections.
pub fn cpu(rounds: usize) -> Result<()> {
    for load in &ANSWERS {
        let (requests, tokens) = (STREAMS * load.answers, load.tokens);
        println!(
            "{}: {STREAMS} streams, {} answers of {tokens} tokens on each",
            load.name, load.answers
        );
        let folder = tempfile::tempdir()?;
        let mock = Mock::start(folder.path(), load.mock)?;
        let flags = format!(
            "--num-prompts {requests} --max-concurrency {STREAMS} --random-output-len {tokens} --request-rate inf --allow-invalid"
        );
        // Fills the artifact cache, and warms both sides up.
        run(runner(&mock.address, folder.path(), "--num-prompts 1 --random-output-len 1"))?;
        let mut columns: [Vec<f64>; 6] = Default::default();
        let mut ratios = Vec::new();
        let mut invalid = 0;
        for _ in 0..rounds {
            let (events, bare) = run(bare_reader(&mock.address, load)?)?;
            let (result, our) = run(runner(&mock.address, folder.path(), &flags))?;
            invalid += usize::from(check(&result, requests * tokens)?["verdict"] == "invalid");
            let million = events.trim().parse::<f64>()? / 1e6;
            let row = [our.cpu(), our.user, our.system, bare.cpu(), bare.user, bare.system];
            for (column, time) in columns.iter_mut().zip(row) {
                column.push(time.as_secs_f64() / million);
            }
            ratios.push(our.cpu().as_secs_f64() / bare.cpu().as_secs_f64());
        }
        let [our, user, system, bare, bare_user, bare_system] =
            columns.map(|mut column| median(&mut column));
        println!(
            "  CPU s per million events: runner {our:.2} (user {user:.2}, system {system:.2}), \
             bare reader {bare:.2} ({bare_user:.2}, {bare_system:.2}), ratio {:.2} (of {rounds}: {})",
            median(&mut ratios.clone()),
            list(&ratios),
        );
        if invalid > 0 {
            println!(
                "  {invalid} of {rounds} runs called themselves invalid: one core was too few"
            );
        }
    }
    Ok(())
}

/// Every request must be answered in full, with this many tokens together: failures cost nothing.
pub fn check(result: &str, tokens: usize) -> Result<Value> {
    let result: Value = serde_json::from_str(result).context("the result is JSON")?;
    let total = &result["tokens"]["output"]["total"];
    anyhow::ensure!(*total == tokens as u64, "{total} tokens of {tokens}");
    Ok(result)
}

/// Measures the reported instants against the engine's own record, with the core free and busy.
pub fn instants(rounds: usize) -> Result<()> {
    const TOKENS: usize = 300;
    for (core, timestamps) in
        [("free", "kernel"), ("free", "user"), ("busy", "kernel"), ("busy", "user")]
    {
        println!(
            "{STREAMS} streams, TTFT 200 ms, 20 ms a token, client's core {core}, --timestamps {timestamps}: runner minus engine, ms"
        );
        let mut rows: Vec<[f64; 6]> = Vec::new();
        for _ in 0..rounds {
            let folder = tempfile::tempdir()?;
            let mock = Mock::with_truth(folder.path(), EVERY_20_MS)?;
            // Over two seconds: of a thousand at once, TTFT is mostly the engine's reading of them.
            let flags = format!(
                "--num-prompts {STREAMS} --random-output-len {TOKENS} --request-rate 512 --arrival constant --timestamps {timestamps}"
            );
            let hog = match core {
                "busy" => {
                    Some(pinned(CORES[0], std::env::current_exe()?).args(["busy", "12"]).spawn()?)
                }
                _ => None,
            };
            let (result, _) = run(runner(&mock.address, folder.path(), &flags))?;
            if let Some(mut hog) = hog {
                hog.kill()?;
                hog.wait()?;
            }
            rows.push(difference(&check(&result, STREAMS * TOKENS)?, &mock.end()?));
        }
        let column = |at: usize| {
            let mut column: Vec<f64> = rows.iter().map(|row| row[at]).collect();
            let middle = median(&mut column);
            let worst = column.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
            format!("{middle:+.2} (worst {:+.2})", worst.unwrap_or(f64::NAN))
        };
        println!("  TTFT mean {}, median {}, P99 {}", column(0), column(1), column(2));
        println!("  gaps mean {}, median {}, P99 {}", column(3), column(4), column(5));
    }
    Ok(())
}

/// Measures the send lag at 2,000 requests a second.
pub fn send_lag(rounds: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mock = Mock::start(folder.path(), &["--ttft", "5ms", "--itl", "0ms"])?;
    let flags = "--num-prompts 10000 --request-rate 2000 --arrival constant --random-output-len 2";
    let mut p99 = Vec::new();
    for _ in 0..rounds {
        let (result, _) = run(runner(&mock.address, folder.path(), flags))?;
        let result: Value = serde_json::from_str(&result)?;
        let lag = &result["metrics"]["send-lag"];
        p99.extend(lag["percentiles"]["p99"].as_f64());
    }
    let all = list(&p99);
    println!(
        "  send lag P99 at 2,000 requests a second: {:.3} ms (of {rounds}: {all})",
        median(&mut p99)
    );
    Ok(())
}

/// From process start to the first request at the engine: of one, and of a thousand at once.
pub fn start(rounds: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mock = Mock::start(folder.path(), &["--ttft", "0ms", "--itl", "0ms"])?;
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        let cache = folder.path().join("cache");
        if cache.exists() {
            std::fs::remove_dir_all(&cache)?;
        }
        for (times, requests) in times.iter_mut().zip([1, 1, STREAMS]) {
            let flags = format!("--num-prompts {requests} --random-output-len 1");
            // Compiling may use every core.
            run(unpinned(&runner(&mock.address, folder.path(), &flags)))?;
            times.push(first_request_ms(folder.path())?);
        }
    }
    let names = [
        "one request, no compiled plugins at hand".to_owned(),
        "one request".to_owned(),
        format!("{STREAMS} at once"),
    ];
    println!("  process start to first request, ms");
    for (name, times) in names.iter().zip(&times) {
        println!("    {name}: {:.0} ({})", median(&mut times.clone()), list(times));
    }
    Ok(())
}

fn unpinned(pinned: &Command) -> Command {
    let mut arguments = pinned.get_args().skip(2);
    let mut command = Command::new(arguments.next().unwrap_or_default());
    command.args(arguments);
    for (name, value) in pinned.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// Reads the milliseconds from the start of the newest run in a folder to its first request.
fn first_request_ms(folder: &Path) -> Result<f64> {
    let mut newest: Option<(std::time::SystemTime, std::path::PathBuf)> = None;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let status = entry.path().join("status.json");
        if status.exists() {
            let at = status.metadata()?.modified()?;
            newest = newest.max(Some((at, status)));
        }
    }
    let (_, status) = newest.context("no run was left")?;
    let status: Value = serde_json::from_slice(&std::fs::read(status)?)?;
    let at = &status["timings"]["first-sent-ms"];
    at.as_f64().with_context(|| format!("no time in {status}"))
}

/// A load whose memory is measured: name, the engine's flags and script, streams, flags.
type MemoryLoad = (&'static str, &'static [&'static str], &'static str, usize, &'static str);

/// A route whose events mean nothing, without end.
const MEANINGLESS: &str = r#"
[[route]]
path = "/v1/chat/completions"
prompt = "/messages"
framing = "event-stream"
content-type = "text/event-stream"
event = '{"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1732190000,"model":"mock","choices":[]}'
"#;

const AS_FAST_AS_IT_CAN: &[&str] = &["--ttft", "0ms", "--itl", "0ms"];
const EIGHT_A_WRITE: &[&str] =
    &["--ttft", "0ms", "--itl", "0ms", "--fault", "kind = 'merge', events = 8"];

const QUIETLY: &[&str] = &["--ttft", "2s", "--itl", "100ms"];
const REPEATING: &str = "--backend sglang --random-output-len 5000 --request-timeout 20s";

const MEMORY_LOADS: [MemoryLoad; 9] = [
    ("one stream, quietly", QUIETLY, "", 1, "--random-output-len 64"),
    ("quietly", QUIETLY, "", 1_024, "--random-output-len 64"),
    ("quietly", QUIETLY, "", 10_000, "--random-output-len 64"),
    (ONE, AS_FAST_AS_IT_CAN, "", 1_024, "--random-output-len 1000"),
    (EIGHT, EIGHT_A_WRITE, "", 1_024, "--random-output-len 1000"),
    (EIGHT, EIGHT_A_WRITE, "", 10_000, "--random-output-len 200"),
    (GROWING, AS_FAST_AS_IT_CAN, "", 1_024, REPEATING),
    (GROWING, AS_FAST_AS_IT_CAN, "", 10_000, REPEATING),
    (
        "events that mean nothing, without end",
        AS_FAST_AS_IT_CAN,
        MEANINGLESS,
        1_024,
        "--random-output-len 100000000 --request-timeout 15s",
    ),
];

/// Peak memory with many streams open at the same time, whatever the engine sends and how fast.
pub fn memory(rounds: usize) -> Result<()> {
    for (name, mock, text, streams, flags) in MEMORY_LOADS {
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("script.toml");
        std::fs::write(&script, text)?;
        let script = script.to_str().context("a path in UTF-8")?;
        let mock = Mock::start(folder.path(), &[mock, &["--script", script]].concat())?;
        let mut peaks = Vec::new();
        let mut held_back = Vec::new();
        for _ in 0..rounds {
            let flags = format!("--num-prompts {streams} --request-rate inf {flags}");
            let (result, cost) = run_to_any_end(runner(&mock.address, folder.path(), &flags))?;
            let result: Value = serde_json::from_str(&result).context("the result is JSON")?;
            peaks.push(cost.peak as f64 / f64::from(1 << 20));
            let backlog = &result["client"]["backlog"]["held-back"]["seconds"];
            held_back.push(backlog.as_f64().unwrap_or(0.0));
        }
        println!(
            "  {streams} streams, {name}: peak {:.0} MiB; replies not read for {:.1} s",
            median(&mut peaks),
            median(&mut held_back),
        );
    }
    Ok(())
}

/// 10,000 prompts of 1,024 tokens with a real tokenizer, where one is named.
pub fn prompts(rounds: usize) -> Result<()> {
    let Some(tokenizer) = std::env::var_os("TOKENIZER") else {
        println!("  left out: TOKENIZER names no tokenizer.json");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let mock = Mock::start(folder.path(), &["--ttft", "0ms", "--itl", "0ms"])?;
    let flags =
        "--num-prompts 10000 --random-input-len 1024 --random-output-len 1 --request-rate inf";
    let mut times = Vec::new();
    for _ in 0..rounds {
        let mut command = unpinned(&runner(&mock.address, folder.path(), flags));
        command.arg("--tokenizer").arg(&tokenizer);
        run(command)?;
        times.push(first_request_ms(folder.path())? / 1e3);
    }
    println!(
        "  10,000 prompts of 1,024 tokens, process start to first request: {:.2} s ({})",
        median(&mut times.clone()),
        list(&times)
    );
    Ok(())
}

/// The middle one; of an even number, the upper of the two.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn list(values: &[f64]) -> String {
    let texts: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
    texts.join(" ")
}
