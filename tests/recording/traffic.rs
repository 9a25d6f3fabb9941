//! The bytes pass as they are, however the two sides behave.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use model::exchange::Class;
use tempfile::TempDir;

use super::Recorder;
use crate::endings::{class, exchanges};
use crate::sockets::faults::FAULTS;
use crate::support::authority::Authority;
use crate::support::process::{Mock, run, runner, runner_behind, words};
use crate::support::server::{JSON, completion, nobody, read_request, reply, serve};

/// Sends a request over a connection of its own, and reads to the end of the reply.
pub fn post(address: &str, path: &str, fields: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    String::from_utf8_lossy(&reply).into_owned()
}

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"Hello"}],"max_tokens":4}"#;

/// Each fault of a server is the same failure behind the recorder, over every kind of connection.
#[test]
fn faults_pass_as_they_are() {
    let authority = Authority::new();
    let certified = authority.certify("127.0.0.1");
    let trust = format!("--ca-cert {}", authority.certificate().display());
    let certificates = certified.flags().join(" ");
    // Stalls end by the client's limit on time, which the proxy does not change.
    let faults = FAULTS.iter().filter(|(fault, _)| !fault.contains("stall"));
    let faults: Vec<&(&str, Class)> = faults.collect();
    let script = faults.iter().enumerate();
    let script = script.map(|(number, (fault, _))| format!("{fault}, requests = [{number}]"));
    let script = script.collect::<Vec<_>>().join(";");
    for (http, secure) in [("1.1", false), ("2", false), ("1.1", true), ("2", true)] {
        let mut flags = vec!["--ttft", "5ms", "--itl", "1ms", "--fault", &script];
        let (mut own, mut trusted) = (String::new(), "");
        if secure {
            flags.extend(certified.flags());
            own = format!("{trust} {certificates}");
            trusted = &trust;
        }
        let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&flags));
        let recorder = Recorder::start(&mock.url, &own);
        let line = format!(
            "--backend vllm --dataset-name random --random-input-len 8 --random-output-len 8 --warmup-requests 0 \
             --concurrency 1 --num-prompts {} --http {http} {trusted}",
            faults.len() + 2
        );
        let mut command = runner();
        command.args(words(&line)).args(["--base-url", &recorder.url]);
        run(command.current_dir(folder.path())).with_code(0);
        for (number, exchange) in exchanges(folder.path()).iter().enumerate() {
            let fault = faults.get(number);
            let wanted = fault.map(|(_, class)| *class);
            // A broken connection may overtake the head of its reply: if it is reset, has several
            // streams, or ends right after the head. The proxy states a missing reply as the status
            // 502.
            let is_early =
                |fault: &str| fault.contains("reset") || fault.contains("after-tokens = 0");
            let may_overtake = http == "2" || fault.is_some_and(|(fault, _)| is_early(fault));
            let is_broken = |class| matches!(class, Some(Class::Truncated | Class::Reset));
            let is_as_wanted = match class(exchange) {
                Some(Class::HttpStatus) if wanted == Some(Class::Reset) => true,
                Some(Class::HttpStatus) if is_broken(wanted) => may_overtake,
                class if is_broken(class) && is_broken(wanted) => class == wanted || may_overtake,
                class => class == wanted,
            };
            assert!(is_as_wanted, "{http}, {secure}: {fault:?}: {:?}", exchange.outcome);
        }
        let recorded = recorder.end();
        assert_eq!(
            recorded.rows.len(),
            faults.len() + 2,
            "{http}, {secure}: {}",
            recorded.exit.stderr
        );
    }
}

/// The server gets the client's header fields with their case and order, and its bytes.
#[test]
fn heads_and_bodies_are_not_changed() {
    let (sent, seen) = std::sync::mpsc::channel();
    let sent = std::sync::Mutex::new(sent);
    let url = serve(move |stream| {
        let request = read_request(stream)?;
        sent.lock().unwrap().send(request).ok()?;
        reply(stream, "200 OK", "X-Odd-Case: kept\r\nx-second: 2\r\n", JSON, "{\"any\" : [1,  2]}")
    });
    let recorder = Recorder::start(&format!("{url}/base"), "");
    let fields = "X-CamelCase: One\r\nauthorization: Bearer k\r\nAccept-Encoding: br\r\n";
    let answer = post(recorder.address(), "/v1/odd?q=1", fields, b"{ \"a\":  1 }");
    let request = seen.recv().unwrap();
    assert!(request.starts_with("POST /base/v1/odd?q=1 HTTP/1.1\r\n"), "{request}");
    let host = url.trim_start_matches("http://");
    let places: Vec<_> = [
        format!("Host: {host}\r\n").as_str(),
        "X-CamelCase: One\r\n",
        "authorization: Bearer k\r\n",
        "Accept-Encoding: br\r\n",
        "{ \"a\":  1 }",
    ]
    .iter()
    .map(|text| request.find(text))
    .collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {request}");
    assert!(answer.contains("\r\nX-Odd-Case: kept\r\nx-second: 2\r\n"), "{answer}");
    assert!(answer.ends_with("{\"any\" : [1,  2]}"), "{answer}");
    assert!(!answer.to_ascii_lowercase().contains("\r\ndate:"), "{answer}");
    let recorded = recorder.end();
    assert_eq!((recorded.rows.len(), recorded.count("requests on other routes")), (0, 1));
}

/// Idle clients, clients that leave, servers that never answer or are not there, and large bodies.
#[test]
fn bad_sockets_cost_nobody_else() {
    let url = serve(|stream| {
        let request = read_request(stream)?;
        if request.contains("/never") || request.contains("wait for ever") {
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        let answer = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
        reply(stream, "200 OK", "", JSON, answer)
    });
    let mut recorder = Recorder::start(&url, "--bytes-per-token 1");
    let address = recorder.address().to_owned();
    let idle: Vec<TcpStream> = (0..500).map(|_| TcpStream::connect(&address).unwrap()).collect();
    // A head that never ends, a request that waits, and one whose client leaves.
    let mut slow = TcpStream::connect(&address).unwrap();
    slow.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nHost:").unwrap();
    let waiting = CHAT.replace("Hello", "wait for ever");
    let head = |length: usize| {
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut patient = TcpStream::connect(&address).unwrap();
    patient.write_all((head(waiting.len()) + &waiting).as_bytes()).unwrap();
    let mut leaving = TcpStream::connect(&address).unwrap();
    leaving.write_all((head(waiting.len()) + &waiting).as_bytes()).unwrap();
    let mut half = TcpStream::connect(&address).unwrap();
    half.write_all((head(CHAT.len() + 10) + CHAT).as_bytes()).unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    // 20 MB of prompt, and 110 MB, which is beyond the bound.
    for megabytes in [20, 110] {
        let body = CHAT.replace("Hello", &"word ".repeat(megabytes * 200_000));
        let answer = post(&address, "/v1/chat/completions", "", body.as_bytes());
        assert!(answer.ends_with("}}"), "{answer}");
    }
    let answer = post(&address, "/v1/chat/completions", "", CHAT.as_bytes());
    assert!(answer.ends_with("}}"), "{answer}");
    recorder.until_rows(2);
    drop(leaving);
    // The row of the client that left comes without its reply.
    recorder.until_rows(3);
    drop((idle, slow, half));
    let recorded = recorder.end();
    let inputs: Vec<_> = recorded.rows.iter().map(|row| row["input_length"].as_u64()).collect();
    assert_eq!(recorded.rows.len(), 4, "{inputs:?} {}", recorded.exit.stderr);
    assert_eq!(recorded.count("exchanges larger than the recorder's memory"), 1);
    assert_eq!(recorded.count("of them without the end of their reply"), 2);
}

#[test]
fn a_dead_server_is_a_status_and_a_count() {
    let recorder = Recorder::start(&nobody(), "");
    let answer = post(recorder.address(), "/v1/chat/completions", "", CHAT.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("gives no reply"), "{answer}");
    let recorded = recorder.end();
    assert_eq!(recorded.count("requests without a reply"), 1);
}

/// Rows are on disk when the recorder is killed or the disk is full, and a later one needs a new
/// file.
#[test]
fn rows_outlive_the_recorder() {
    let answer = completion("Hi", "stop");
    let url = serve(move |stream| {
        read_request(stream)?;
        reply(stream, "200 OK", "", "text/event-stream", &answer)
    });
    let body = CHAT.replace("\"max_tokens\"", "\"stream\":true,\"max_tokens\"");
    let mut killed = Recorder::start(&url, "");
    for _ in 0..3 {
        post(killed.address(), "/v1/chat/completions", "", body.as_bytes());
    }
    killed.until_rows(3);
    killed.process().signal("KILL");
    killed.process().until_gone();
    let rows = killed.rows();
    let sessions = run(runner().args(["record", "--sessions", "-"]).arg(&rows)).with_code(0);
    assert_eq!(sessions.stdout.lines().count(), 3);
    let again = run(runner().args(["record", "--to", &url, "--listen", "127.0.0.1:0"]).arg(&rows))
        .with_code(3);
    assert!(
        again.stderr.contains("rows.jsonl` cannot be written: File exists"),
        "{}",
        again.stderr
    );

    // A file of at most 1.2 MB stands for a full disk: a component's memory is smaller.
    let limited = runner_behind("ulimit -f 2400; trap '' XFSZ; exec \"$@\"");
    let mut full = Recorder::start_as(limited, &url, "--bytes-per-token 1");
    let long = body.replace("Hello", &"word ".repeat(160_000));
    for _ in 0..9 {
        let answer = post(full.address(), "/v1/chat/completions", "", long.as_bytes());
        assert!(answer.contains("[DONE]"), "{answer}");
    }
    full.process()
        .until("lost rows are reported", |process| process.stderr().contains("rows are lost"));
    let recorded = full.end();
    assert!((1..9).contains(&recorded.rows.len()), "{}", recorded.exit.stderr);
    let lost = recorded.count("rows lost because the file could not be written");
    assert_eq!(lost + recorded.rows.len() as u64, 9);

    let rotated = Recorder::start(&url, "--file-size 500B");
    for _ in 0..6 {
        post(rotated.address(), "/v1/chat/completions", "", body.as_bytes());
    }
    let rotated = rotated.end();
    assert_eq!(rotated.sessions.len(), 6);
    assert!(rotated.rows.len() < 6 && rotated.folder.path().join("rows.1.jsonl").exists());
}

/// Idle clients take a descriptor each and a request two. Where they run out, clients wait.
#[test]
fn clients_beyond_the_descriptors_wait() {
    let url = serve(|stream| {
        read_request(stream)?;
        reply(
            stream,
            "200 OK",
            "",
            JSON,
            r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
        )
    });
    let recorder = Recorder::start_as(runner_behind("ulimit -n 160; exec \"$@\""), &url, "");
    let address = recorder.address().to_owned();
    let idle: Vec<TcpStream> = (0..90).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let clients = (0..30).map(|_| {
        let address = address.clone();
        std::thread::spawn(move || post(&address, "/v1/chat/completions", "", CHAT.as_bytes()))
    });
    let clients: Vec<_> = clients.collect();
    // Whoever waits is served once the idle clients are gone.
    drop(idle);
    for client in clients {
        let answer = client.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!(recorder.end().rows.len(), 30);
}
