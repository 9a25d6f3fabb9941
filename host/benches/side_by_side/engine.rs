//! An engine on all cores that it is given, for clients that have several: `runner mock` serves
//! from one thread. It answers each request with a role, events of one token, their count and the
//! end, and prints its observations when its input ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::pinned;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const START: &str = r#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1732190000,"model":"mock","#;

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub ttft: Duration,
    /// Time between tokens; none is as fast as it can.
    pub itl: Duration,
    pub tokens: usize,
}

/// An engine that runs in a process of its own; killed when dropped.
pub struct Engine {
    child: Child,
    pub address: String,
}

impl Engine {
    /// Starts one on these cores, with a thread for each.
    pub fn start(cores: &str, threads: usize, pace: Pace) -> Result<Self> {
        let numbers =
            [threads as u128, pace.ttft.as_millis(), pace.itl.as_millis(), pace.tokens as u128];
        let mut child = pinned(cores, std::env::current_exe()?)
            .arg("engine")
            .args(numbers.map(|number| number.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let stdout = child.stdout.as_mut().context("it has a stdout")?;
        // Without a buffer that would take more than the line: the rest is read at the end.
        let mut byte = [0];
        while stdout.read(&mut byte)? == 1 && byte != *b"\n" {
            address.push(byte[0].into());
        }
        Ok(Engine { child, address })
    }

    /// Ends it; gives mean, median and P99 of its TTFT and gaps in ms, and its processor time in s.
    pub fn end(mut self) -> Result<Value> {
        drop(self.child.stdin.take());
        let stdout = self.child.stdout.take().context("it has a stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until stdin ends, then prints the observed instants.
pub fn serve(threads: usize, pace: Pace) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    // The standard library's queue of 128 connections would have a thousand clients wait a second.
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::MAXALLOWABLE)?;
    println!("{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let (seen, all) = mpsc::channel();
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (give, mut take) = tokio::sync::mpsc::unbounded_channel::<std::net::TcpStream>();
        workers.push(give);
        let seen = seen.clone();
        std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let tasks = tokio::task::LocalSet::new();
            runtime.block_on(tasks.run_until(async {
                while let Some(stream) = take.recv().await {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    let stream = TcpStream::from_std(stream)?;
                    tokio::task::spawn_local(connection(stream, pace, seen.clone()));
                }
                Ok(())
            }))
        });
    }
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let _ = workers[number % workers.len()].send(stream);
        }
    });
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    let (mut ttft, mut gaps) = (Vec::new(), Vec::new());
    for instants in all.try_iter() {
        let instants: Vec<Duration> = instants;
        ttft.extend(instants.first().map(Duration::as_secs_f32));
        gaps.extend((instants.windows(2)).map(|pair| (pair[1] - pair[0]).as_secs_f32()));
    }
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let cpu = [usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6);
    let (ttft, gaps, cpu) = (statistics(ttft), statistics(gaps), cpu[0] + cpu[1]);
    println!("{}", serde_json::json!({ "ttft": ttft, "gaps": gaps, "cpu": cpu }));
    Ok(())
}

fn statistics(mut values: Vec<f32>) -> [f64; 3] {
    values.sort_by(f32::total_cmp);
    let at = |share: f64| f64::from(values[((values.len() - 1) as f64 * share).round() as usize]);
    let mean = values.iter().copied().map(f64::from).sum::<f64>() / values.len() as f64;
    [mean, at(0.5), at(0.99)].map(|seconds| seconds * 1e3)
}

/// Serves one request after the other. Sends the instants of its tokens since it was read.
async fn connection(mut stream: TcpStream, pace: Pace, seen: mpsc::Sender<Vec<Duration>>) {
    let mut request = Vec::new();
    while let Some(length) = whole(&mut stream, &mut request).await {
        let came = Instant::now();
        request.drain(..length);
        let Ok(instants) = answer(&mut stream, pace, came).await else { return };
        let _ = seen.send(instants);
    }
}

/// Reads a whole request; gives its length. `None` if there is no more.
async fn whole(stream: &mut TcpStream, request: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(head) = memchr::memmem::find(request, b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
            let body = text.split("content-length:").nth(1);
            let body = body.and_then(|rest| rest.lines().next()?.trim().parse().ok());
            let length = head + 4 + body.unwrap_or(0);
            if request.len() >= length {
                return Some(length);
            }
        }
        if stream.read_buf(request).await.ok()? == 0 {
            return None;
        }
    }
}

async fn answer(
    stream: &mut TcpStream,
    pace: Pace,
    came: Instant,
) -> std::io::Result<Vec<Duration>> {
    let chunk = |event: &str| format!("{:x}\r\ndata: {event}\n\n\r\n", event.len() + 8);
    let choice = |delta: &str, end: &str| {
        chunk(&format!(
            r#"{START}"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{end}}}]}}"#
        ))
    };
    let token = choice(r#"{"content":"t"}"#, "null");
    let last = choice(r#"{"content":"t"}"#, r#""length""#);
    stream.write_all(HEAD).await?;
    let role = choice(r#"{"role":"assistant","content":""}"#, "null");
    stream.write_all(role.as_bytes()).await?;
    let mut instants = Vec::with_capacity(pace.tokens);
    for number in 0..pace.tokens {
        let due = came + pace.ttft + pace.itl * number as u32;
        if !pace.itl.is_zero() {
            tokio::time::sleep_until(due.into()).await;
        }
        let event = if number + 1 == pace.tokens { &last } else { &token };
        instants.push(came.elapsed());
        stream.write_all(event.as_bytes()).await?;
    }
    let tokens = pace.tokens;
    let usage = format!(
        r#"{START}"choices":[],"usage":{{"prompt_tokens":32,"total_tokens":{},"completion_tokens":{tokens}}}}}"#,
        tokens + 32
    );
    let end = [&chunk(&usage), &chunk("[DONE]"), "0\r\n\r\n"].concat();
    stream.write_all(end.as_bytes()).await?;
    Ok(instants)
}
