//! Servers that no library writes, on real sockets. Each is a failure of its class, never a wait
//! without end, and never the answer to another request.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use model::exchange::Class;
use tempfile::TempDir;

use crate::endings::{class, count, exchanges};
use crate::faults::check::failure;
use crate::support::process::{run, runner, words};
use crate::support::raw::{CHUNKED, DONE, LAST_CHUNK, chunk, text};
use crate::support::server::read_request;

/// A server whose every connection is treated like this, on threads that end with the test's
/// process.
fn server(treat: fn(TcpStream)) -> String {
    let models: fn(TcpStream) = models;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let stream = stream.unwrap();
            // The first one asks which models there are.
            let treat = if number == 0 { models } else { treat };
            std::thread::spawn(move || treat(stream));
        }
    });
    format!("http://{address}")
}

fn models(mut stream: TcpStream) {
    let models = "{\"data\": [{\"id\": \"mock\"}]}";
    while hear(&stream) {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", models.len());
        let _ = stream.write_all((head + models).as_bytes());
    }
}

fn hear(stream: &TcpStream) -> bool {
    read_request(stream).is_some()
}

fn answer() -> Vec<u8> {
    let content = [text("a"), text("b"), DONE.to_owned()].concat();
    [CHUNKED.as_bytes(), &chunk(content), LAST_CHUNK.as_bytes()].concat()
}

/// Four requests, one after the other.
fn exchanges_with(url: &str, flags: &str) -> Vec<model::exchange::Exchange> {
    let folder = TempDir::new().unwrap();
    let mut command = runner();
    let line = "--backend vllm --model mock --dataset-name random --warmup-requests 0 --num-prompts 4 \
                --concurrency 1 --token-gap-timeout 700ms";
    command
        .args(words(line))
        .args(words(flags))
        .args(["--base-url", url])
        .current_dir(folder.path());
    let ended = run(&mut command);
    assert!(matches!(ended.code, Some(0 | 5)), "{ended:#?}");
    exchanges(folder.path())
}

#[test]
fn each_is_a_failure_of_its_class() {
    type Treat = fn(TcpStream);
    let cases: [(&str, Treat, Class, &str); 6] = [
        (
            "it hears and says nothing",
            |stream| while hear(&stream) {},
            Class::FirstTokenTimeout,
            "nothing of the answer arrived within 700ms",
        ),
        (
            "it closes its side without a reply",
            |stream| {
                hear(&stream);
                let _ = stream.shutdown(Shutdown::Write);
                std::thread::sleep(Duration::from_secs(60));
            },
            Class::Reset,
            "closed before a reply arrived",
        ),
        (
            "it closes its side within a reply",
            |mut stream| {
                hear(&stream);
                let _ = stream.write_all(&answer()[..CHUNKED.len() + 40]);
                let _ = stream.shutdown(Shutdown::Write);
                std::thread::sleep(Duration::from_secs(60));
            },
            Class::Truncated,
            "before the reply's last chunk",
        ),
        (
            "its head has no end",
            |mut stream| {
                hear(&stream);
                while stream.write_all(b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n").is_ok() {}
            },
            Class::Reset,
            "",
        ),
        (
            "its head comes byte by byte, and has no end",
            |mut stream| {
                hear(&stream);
                while stream.write_all(b"H").is_ok() {
                    std::thread::sleep(Duration::from_millis(5));
                }
            },
            Class::Reset,
            "",
        ),
        (
            "interim replies have no end",
            |mut stream| {
                hear(&stream);
                while stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").is_ok() {}
            },
            Class::Reset,
            "more than 16 interim replies",
        ),
    ];
    for (about, treat, wanted, expected) in cases {
        let exchanges = exchanges_with(&server(treat), "--first-token-timeout 700ms");
        assert_eq!(exchanges.len(), 4, "{about}");
        for exchange in &exchanges {
            let (class, message) = failure(exchange).expect(about);
            assert_eq!(class, wanted, "{about}: {message}");
            assert!(message.contains(expected), "{about}: {message}");
        }
    }
}

/// A request of some megabytes to a server that accepts connections and never reads.
#[test]
fn a_server_that_never_reads_is_given_up() {
    for (flags, wanted) in [
        ("--first-token-timeout 700ms", Class::FirstTokenTimeout),
        ("--request-timeout 1s", Class::RequestTimeout),
    ] {
        let url = server(|stream| {
            std::thread::sleep(Duration::from_secs(100));
            drop(stream);
        });
        let flags = format!("{flags} --random-input-len 2000000");
        let exchanges = exchanges_with(&url, &flags);
        assert_eq!(exchanges.len(), 4);
        for exchange in &exchanges {
            assert_eq!(class(exchange), Some(wanted), "{:?}", exchange.outcome);
            assert!(exchange.sent.is_some() && exchange.headers.is_none());
        }
    }
}

/// Bytes after the end of a reply, at once or later, are not the reply to the next request.
#[test]
fn bytes_between_replies_answer_nothing() {
    let garbage = |mut stream: TcpStream| {
        while hear(&stream) {
            let more = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            let _ = stream.write_all(&[&answer(), &more[..]].concat());
        }
    };
    let later = |mut stream: TcpStream| {
        while hear(&stream) {
            let _ = stream.write_all(&answer());
            std::thread::sleep(Duration::from_millis(50));
            let _ = stream.write_all(b"HTTP/1.1 408 Too late\r\ncontent-length: 0\r\n\r\n");
        }
    };
    // Two requests a second: the next one leaves long after the unrequested bytes.
    for (treat, pace) in [(garbage as fn(TcpStream), ""), (later, "--think-time 500ms")] {
        let exchanges = exchanges_with(&server(treat), pace);
        assert_eq!(count(&exchanges, None), 4, "{exchanges:?}");
        assert!(exchanges.iter().all(|exchange| exchange.output == "ab"));
    }
}

/// A server that speaks first has answered no request.
#[test]
fn bytes_before_a_request_are_no_answer() {
    let url = server(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        while hear(&stream) {
            let _ = stream.write_all(&answer());
        }
    });
    for exchange in exchanges_with(&url, "--think-time 300ms") {
        assert_ne!(class(&exchange), None, "{exchange:?}");
    }
}
