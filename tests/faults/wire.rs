//! Wrong lengths, resets and floods: bytes over TCP that no engine would send, and the whole
//! program's answer to them.

use std::path::Path;
use std::process::Command;

use model::exchange::Class;
use tempfile::TempDir;

use super::check::{Ending, at_once, check, failure};
use crate::support::process::{Process, run};
use crate::support::raw::{Act, CHUNKED, DONE, LAST_CHUNK, Raw, chunk, say, text, wait};
use crate::support::results::random;

/// Requests before and after the faulty one, which must not notice it.
const SOUND: usize = 2;

/// A run against such a server.
fn line(place: &Path, url: &str, flags: &str) -> Command {
    let all = "--model mock --random-input-len 4 --random-output-len 2 --warmup-requests 0";
    random(url, place, &format!("{all} {flags}"))
}

/// A sound answer, `ab`, at once.
fn sound() -> Vec<Act> {
    vec![say([CHUNKED.as_bytes(), &chunk(answer()), LAST_CHUNK.as_bytes()].concat())]
}

fn answer() -> String {
    [text("a"), text("b"), DONE.to_owned()].concat()
}

/// A reply with these fields in its head.
fn headed(fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{fields}\r\n\r\n");
    [head.as_bytes(), body.as_ref()].concat()
}

/// These bytes, and then the end of the connection.
fn closed(bytes: Vec<u8>) -> Vec<Act> {
    vec![say(bytes), Act::Close]
}

/// A fault, the reply that commits it, and the failure with a part of its message; absent for an
/// answer.
type Row = (&'static str, Vec<Act>, Option<(Class, &'static str)>);

/// One request after the other, each fault between sound answers: its class and a part of its
/// message.
fn one_after_the_other(table: Vec<Row>, flags: &str) {
    let replies: Vec<Vec<Act>> = table.iter().map(|(_, acts, _)| acts.clone()).collect();
    let raw = Raw::engine(move |number| {
        let number = number as usize;
        match number % (SOUND + 1) {
            SOUND => replies[number / (SOUND + 1)].clone(),
            _ => sound(),
        }
    });
    let (place, listening) = (TempDir::new().unwrap(), raw.listen());
    let requests = table.len() * (SOUND + 1);
    let flags = format!("--concurrency 1 --num-prompts {requests} {flags}");
    let ended = run(&mut line(place.path(), &listening.url, &flags));
    let after = check("wire", place.path(), &ended, Ending::Finished, None);
    assert_eq!(after.exchanges.len(), requests);
    for (at, (about, _, wanted)) in table.into_iter().enumerate() {
        let [before @ .., odd] = &after.exchanges[at * (SOUND + 1)..(at + 1) * (SOUND + 1)] else {
            unreachable!("there is one")
        };
        let got = failure(odd);
        assert_eq!(got.map(|got| got.0), wanted.map(|wanted| wanted.0), "{about}: {odd:#?}");
        if let (Some((_, message)), Some((_, expected))) = (got, wanted) {
            assert!(message.contains(expected), "{about}: {message}");
        }
        for exchange in before {
            assert!(exchange.is_ok(), "before {about}: {exchange:#?}");
            assert_eq!(exchange.output, "ab", "before {about}");
        }
    }
}

#[test]
fn wrong_lengths_are_failures_of_the_replies_that_state_them() {
    let all = answer();
    let length = |length: usize| format!("content-length: {length}");
    let chunks = |bytes: &str| headed("transfer-encoding: chunked", bytes);
    let cut_off = |message| Some((Class::Truncated, message));
    let send = |message| Some((Class::Reset, message));
    let right = all.len();
    one_after_the_other(
        vec![
            ("right", vec![say(headed(&length(right), &all))], None),
            ("one too long, then closed", closed(headed(&length(right + 1), &all)), None),
            (
                "much too long, then closed, before the end marker",
                closed(headed(&length(1 << 40), text("a"))),
                cut_off("before the reply's stated end"),
            ),
            (
                "too long, and the connection stays",
                vec![say(headed(&length(right), text("a")))],
                Some((Class::TokenGapTimeout, "no more of the answer arrived for 3s")),
            ),
            ("one too short", closed(headed(&length(right - 1), &all)), None),
            (
                "too short by the end marker",
                closed(headed(&length(right - DONE.len()), &all)),
                cut_off("without its end marker"),
            ),
            ("none at all", closed(headed(&length(0), &all)), cut_off("without its end marker")),
            ("a negative length", closed(headed("content-length: -1", &all)), send("")),
            (
                "a length that no number holds",
                closed(headed("content-length: 99999999999999999999", &all)),
                send(""),
            ),
            ("no number", closed(headed("content-length: all", &all)), send("")),
            (
                "a chunk larger than stated",
                closed(chunks(&format!("4\r\n{all}\r\n0\r\n\r\n"))),
                cut_off(""),
            ),
            (
                "a chunk smaller than stated",
                closed(chunks(&format!("fff\r\n{}\r\n0\r\n\r\n", text("a")))),
                cut_off("before the reply's last chunk"),
            ),
            (
                "a chunk of no size",
                closed(chunks(&format!("\r\n{all}\r\n0\r\n\r\n"))),
                cut_off("no valid size"),
            ),
            (
                "a chunk of a negative size",
                closed(chunks(&format!("-5\r\n{all}\r\n0\r\n\r\n"))),
                cut_off("no valid size"),
            ),
            (
                "a chunk size that no number holds",
                closed(chunks(&format!("fffffffffffffffff\r\n{all}"))),
                cut_off("no valid size"),
            ),
            (
                "the largest size that a number holds",
                closed(chunks(&format!("ffffffffffffffff\r\n{}", text("a")))),
                cut_off(""),
            ),
            (
                "a chunk size in words",
                closed(chunks(&format!("five\r\n{all}"))),
                cut_off("no valid size"),
            ),
        ],
        "--token-gap-timeout 3s --first-token-timeout 30s",
    );
}

#[test]
fn lengths_that_http_forbids_are_refused() {
    let (all, send) = (answer(), |message| Some((Class::Reset, message)));
    one_after_the_other(
        vec![
            ("a length with a sign", closed(headed("content-length: +5", &all)), send("")),
            (
                "two lengths that differ",
                closed(headed("content-length: 5\r\ncontent-length: 6", &all)),
                send(""),
            ),
        ],
        "",
    );
}

#[test]
fn a_reset_spoils_the_reply_that_it_hits_and_no_other() {
    let cut_off = Some((Class::Truncated, "reset"));
    let send = Some((Class::Reset, "reset"));
    let head = CHUNKED.as_bytes();
    let (a, b) = (chunk(text("a")), chunk(text("b")));
    let until = |bytes: &[&[u8]]| vec![say(bytes.concat()), wait(30), Act::Reset];
    one_after_the_other(
        vec![
            ("at once", vec![Act::Reset], send),
            ("later, before any byte", vec![wait(50), Act::Reset], send),
            ("in the head", until(&[&head[..20]]), send),
            ("after the head", until(&[head]), cut_off),
            ("in the first chunk's size", until(&[head, &a[..1]]), cut_off),
            ("in the first event", until(&[head, &a[..40]]), cut_off),
            ("after the first event", until(&[head, &a]), cut_off),
            ("after the answer, before its end marker", until(&[head, &a, &b]), cut_off),
            ("after the end marker", until(&[head, &chunk(answer())]), None),
            ("after the reply", until(&[head, &chunk(answer()), LAST_CHUNK.as_bytes()]), None),
        ],
        "",
    );
}

/// Peak resident memory of a process, in MiB.
///
/// Until its program is in place, Linux shows the memory of the process that started it: `vfork`
/// returns before `execve` has changed the address space. That is all the tests' memory.
fn peak(process: &Process) -> u64 {
    let of = |file| format!("/proc/{}/{file}", process.id());
    let program = std::fs::read_link(of("exe")).unwrap_or_default();
    if !program.ends_with("runner") {
        return 0;
    }
    let status = std::fs::read_to_string(of("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.map_or(0, |kib| kib.trim().parse::<u64>().unwrap() >> 10)
}

/// More than a run takes without a flood, and far less than a flood brings.
const MOST_MIB: u64 = 600;

/// The beginning of a flood, the part that is repeated for ever, and the failures that may follow.
type Flood = (&'static str, Vec<u8>, Vec<u8>, &'static [Class]);

/// Bytes that never end, as fast as the loopback takes them.
fn floods() -> Vec<Flood> {
    let chunked = CHUNKED.as_bytes().to_vec();
    let comments = chunk(": nothing\n\n".repeat(400));
    let blank = chunk("\n".repeat(4000));
    let small = chunk(":\n").repeat(800);
    vec![
        ("comments", chunked.clone(), comments, &[Class::FirstTokenTimeout]),
        ("blank lines", chunked.clone(), blank, &[Class::FirstTokenTimeout]),
        ("tiny chunks", chunked.clone(), small, &[Class::FirstTokenTimeout]),
        ("one line", chunked.clone(), chunk("x".repeat(8000)), &[Class::Protocol]),
        (
            "an endless head",
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            b"x-more: 1\r\n".repeat(400),
            &[Class::Reset],
        ),
        (
            "a header without end",
            b"HTTP/1.1 200 OK\r\nx: ".to_vec(),
            b"x".repeat(8000),
            &[Class::Reset],
        ),
        (
            "interim replies",
            vec![],
            b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(400),
            &[Class::Reset, Class::FirstTokenTimeout],
        ),
        (
            "a chunk extension",
            [&chunked[..], b"5;x="].concat(),
            b"x".repeat(8000),
            &[Class::Truncated],
        ),
    ]
}

/// The same for events; a plugin decodes each.
fn floods_of_events() -> Vec<Flood> {
    let chunked = CHUNKED.as_bytes().to_vec();
    let events = chunk(text("a").repeat(40));
    let empty = chunk(text("").repeat(40));
    vec![
        (
            "events without text",
            chunked.clone(),
            empty,
            &[Class::FirstTokenTimeout, Class::RequestTimeout, Class::Protocol],
        ),
        ("an endless answer", chunked.clone(), events, &[Class::Protocol, Class::RequestTimeout]),
    ]
}

#[test]
fn a_flood_costs_one_request_and_no_memory() {
    at_once(&floods(), 2, flood);
}

#[test]
fn a_flood_of_events_costs_one_request_and_no_memory() {
    at_once(&floods_of_events(), 2, flood);
}

#[test]
fn a_flood_after_an_error_is_that_error() {
    let (head, body) = (b"HTTP/1.1 500 Broken\r\n\r\n".to_vec(), b"x".repeat(8000));
    flood(&("an error", head, body, &[Class::HttpStatus]));
}

fn flood((about, before, again, classes): &Flood) {
    let (before, again) = (before.clone(), again.clone());
    let raw = Raw::engine(move |number| match number {
        1 => vec![say(&before), Act::Repeat(again.clone(), usize::MAX)],
        _ => sound(),
    });
    let (place, listening) = (TempDir::new().unwrap(), raw.listen());
    let flags = "--concurrency 1 --num-prompts 4 --first-token-timeout 5s --request-timeout 15s";
    let mut process = Process::start(&mut line(place.path(), &listening.url, flags));
    let mut most = 0;
    while process.goes_on() {
        most = most.max(peak(&process));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ended = process.end();
    let after = check(about, place.path(), &ended, Ending::Finished, None);
    assert!((1..MOST_MIB).contains(&most), "{about}: {most} MiB");
    for (number, exchange) in after.exchanges.iter().enumerate() {
        let got = failure(exchange).map(|(class, _)| class);
        let as_wanted = match number {
            1 => got.is_some_and(|class| classes.contains(&class)),
            _ => got.is_none(),
        };
        assert!(as_wanted, "{about}: {number}: {:?}", exchange.outcome);
    }
}

/// An endless stream ends with the run, when its user has had enough.
#[test]
fn a_flood_ends_when_the_run_is_stopped() {
    let rows: Vec<Flood> = floods().into_iter().take(3).chain(floods_of_events()).collect();
    at_once(&rows, 2, |(about, before, again, classes)| {
        let (before, again) = (before.clone(), again.clone());
        let raw = Raw::engine(move |number| match number {
            0 => sound(),
            _ => vec![say(&before), Act::Repeat(again.clone(), usize::MAX)],
        });
        let (place, listening) = (TempDir::new().unwrap(), raw.listen());
        let flags = "--concurrency 1 --num-prompts 4 --first-token-timeout 1h --request-timeout 1h";
        let mut process = Process::start(&mut line(place.path(), &listening.url, flags));
        process.until("it is flooded", |_| raw.requests().len() == 3);
        process.signal("INT");
        process
            .until("the first is received", |process| process.stderr().contains("interrupt again"));
        process.signal("INT");
        let ended = process.end();
        let after = check(about, place.path(), &ended, Ending::Interrupted, None);
        assert!(after.exchanges[0].is_ok(), "{about}");
        let got = failure(&after.exchanges[1]).unwrap().0;
        assert!(got == Class::Interrupted || classes.contains(&got), "{about}: {got:?}");
    });
}
