//! Replies that no HTTP library writes, byte by byte. An error in one is a failure of its request
//! alone, and an oddity is no failure.

use model::exchange::{Class, Outcome};

use super::BASE;
use crate::faults::check::failure;
use crate::support::raw::{Act, CHUNKED, DONE, LAST_CHUNK, Raw, chunk, say, sound, text, wait};
use crate::support::trial::{RunResult, Trial};

/// Five requests, each after the end of its predecessor; the second gets this answer.
async fn second(reply: Vec<Act>) -> RunResult {
    let raw = Raw::with([(1, reply)]);
    let one_by_one = "arrival = \"closed\"\nconcurrency = 1";
    let scenario = BASE.replace("arrival = \"constant\"\nrate = 10.0", one_by_one);
    let patience = "timeouts = { first-token = '1s', token-gap = '1s' }";
    let ran = Trial::new(&scenario).with(patience).against_raw(&raw).run().await;
    for exchange in ran.measured().filter(|exchange| exchange.index != 1) {
        assert_eq!(exchange.outcome, Outcome::Ok, "{}", exchange.index);
        assert_eq!(exchange.output, "ab");
    }
    ran
}

/// A reply whose head has these fields, and whose content this is.
fn with_fields(fields: &str, content: &[u8]) -> Vec<Act> {
    let head = CHUNKED.replace("transfer-encoding", &format!("{fields}\r\ntransfer-encoding"));
    vec![say(head), say(chunk(content)), say(LAST_CHUNK)]
}

/// A stream of these bytes, as its head says, and then its end.
fn stream(content: &[u8]) -> Vec<Act> {
    vec![say(CHUNKED), say(chunk(content)), say(LAST_CHUNK)]
}

fn answer() -> String {
    [text("a"), text("b"), DONE.to_owned()].concat()
}

/// `data: [DONE]` and a blank line, compressed by gzip.
const GZIPPED: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x4b, 0x49, 0x2c, 0x49, 0xb4, 0x52,
    0x88, 0x76, 0xf1, 0xf7, 0x73, 0x8d, 0xe5, 0xe2, 0x02, 0x00, 0xa2, 0x3a, 0xd4, 0x3e, 0x0e, 0x00,
    0x00, 0x00,
];

#[tokio::test(start_paused = true)]
async fn mistakes_on_the_wire_are_failures_of_their_class() {
    let mut no_text = text("x").into_bytes();
    let at = no_text.windows(3).position(|w| w == b"\"x\"").unwrap();
    no_text[at + 1] = 0xff;
    let head = |length: usize| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    for (about, reply, class, expected) in [
        (
            "a redirect",
            vec![say("HTTP/1.1 307 x\r\nlocation: /elsewhere\r\ncontent-length: 2\r\n\r\n{}")],
            Class::HttpStatus,
            "redirects are not followed: give the URL that answers as --base-url",
        ),
        (
            "gzip that nobody asked for",
            with_fields("content-encoding: gzip", GZIPPED),
            Class::Protocol,
            "the reply is compressed (`content-encoding: gzip`), but compression was not requested; is there a proxy in between?",
        ),
        (
            "a transfer coding that nobody asked for",
            vec![
                say(CHUNKED.replace("chunked", "gzip, chunked")),
                say(chunk(GZIPPED)),
                say(LAST_CHUNK),
            ],
            Class::Reset,
            "the transfer coding `gzip, chunked`, which was not requested",
        ),
        (
            "a document instead of a stream",
            vec![say(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
            )],
            Class::Protocol,
            "if the server does not stream, ask for whole replies (--disable-stream)",
        ),
        (
            "bytes that are no UTF-8 in an event",
            stream(&[text("a").as_bytes(), &no_text, DONE.as_bytes()].concat()),
            Class::Protocol,
            "invalid utf-8 sequence",
        ),
        (
            "a frame of 50 MB",
            vec![
                say(CHUNKED),
                say(chunk(text("a"))),
                say(format!("{:x}\r\ndata: ", 6 + (50 << 20))),
                Act::Repeat(vec![b'x'; 1 << 16], 800),
                say(["\r\n", LAST_CHUNK].concat()),
            ],
            Class::Protocol,
            "a frame of the reply is larger than 16 MiB",
        ),
        (
            "a line of 50 MB that is no data",
            vec![
                say(CHUNKED),
                say(format!("{:x}\r\n:", 1 + (50 << 20))),
                Act::Repeat(vec![b'x'; 1 << 16], 800),
                say(["\r\n", LAST_CHUNK].concat()),
            ],
            Class::Protocol,
            "a frame of the reply is larger than 16 MiB",
        ),
        (
            "a chunk without a size",
            vec![say(CHUNKED), say(chunk(text("a"))), say("size\r\n"), say(DONE)],
            Class::Truncated,
            "a chunk of the reply has no valid size",
        ),
        (
            "a stated length that is not reached",
            vec![say(head(1000)), say(text("a")), Act::Close],
            Class::Truncated,
            "bytes before the reply's stated end",
        ),
        (
            "a stated length that ends too early",
            vec![say(head(text("a").len())), say(answer())],
            Class::Truncated,
            "the reply ended without its end marker",
        ),
        (
            "closed without the last chunk",
            vec![say(CHUNKED), say(chunk(text("a"))), Act::Close],
            Class::Truncated,
            "before the reply's last chunk",
        ),
        (
            "closed in the middle of a frame, without a length",
            vec![
                say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"),
                say(&text("a")[..30]),
                Act::Close,
            ],
            Class::Truncated,
            "",
        ),
        (
            "a length with a sign",
            vec![say(head(3).replace("length: ", "length: +")), say("abc")],
            Class::Reset,
            "content-length is not a number",
        ),
        (
            "a length and chunks",
            with_fields("content-length: 5", answer().as_bytes()),
            Class::Reset,
            "both a content-length and a transfer-encoding",
        ),
        (
            "interim replies without end",
            vec![Act::Repeat(b"HTTP/1.1 102 Processing\r\n\r\n".to_vec(), 100_000), Act::Close],
            Class::Reset,
            "more than 16 interim replies",
        ),
        (
            "a head of more than 64 KiB",
            vec![
                say("HTTP/1.1 200 OK\r\nx: "),
                Act::Repeat(vec![b'x'; 1 << 10], 1_000),
                Act::Close,
            ],
            Class::Reset,
            "the reply's head is longer than 64 KiB",
        ),
        (
            "a head of a thousand fields",
            vec![say(CHUNKED
                .replace("transfer-encoding", &("x: y\r\n".repeat(1_000) + "transfer-encoding")))],
            Class::Reset,
            "the reply's head has more than 128 fields",
        ),
        (
            "a zero byte in the head",
            with_fields("x: a\0b", answer().as_bytes()),
            Class::Reset,
            "the reply is not HTTP/1.1",
        ),
        (
            "a field over two lines",
            with_fields("x: a\r\n b", answer().as_bytes()),
            Class::Reset,
            "the reply is not HTTP/1.1",
        ),
        (
            "a trailer without end",
            vec![
                say(CHUNKED),
                say(chunk(text("a"))),
                say("0\r\n"),
                Act::Repeat(b"x: y\r\n".to_vec(), 100_000),
            ],
            Class::Truncated,
            "the reply's trailer is longer than 64 KiB",
        ),
        (
            "an error of a gigabyte",
            vec![
                say("HTTP/1.1 500 No\r\ncontent-length: 1073741824\r\n\r\n"),
                say("{\"error\": \"x"),
                Act::Repeat(vec![b'x'; 1 << 16], 16 << 10),
            ],
            Class::HttpStatus,
            "HTTP 500: {\"error\": \"xxx",
        ),
        ("no HTTP", vec![say("+PONG\r\n"), Act::Close], Class::Reset, "the reply is not HTTP/1.1"),
        (
            "half a head",
            vec![say("HTTP/1.1 200 OK\r\ncontent-ty"), Act::Close],
            Class::Reset,
            "in the middle of the reply's head",
        ),
        ("nothing", vec![Act::Close], Class::Reset, "closed before a reply arrived"),
        (
            "an error whose body stops",
            vec![
                say("HTTP/1.1 503 Busy\r\ncontent-length: 100\r\n\r\n{\"error\": \"full\"}"),
                wait(3_000),
                say("x".repeat(83)),
            ],
            Class::HttpStatus,
            "HTTP 503: full",
        ),
        (
            "a pause before the first token, however many pings come",
            vec![
                say(CHUNKED),
                wait(400),
                say(chunk(": ping\n\n")),
                wait(400),
                say(chunk(": ping\n\n")),
                wait(400),
                say(chunk(answer())),
                say(LAST_CHUNK),
            ],
            Class::FirstTokenTimeout,
            "nothing of the answer arrived within 1s",
        ),
        (
            "a pause between tokens, however many pings come",
            vec![
                say(CHUNKED),
                say(chunk(text("a"))),
                wait(600),
                say(chunk(": ping\n\n")),
                wait(600),
                say(chunk([text("b"), DONE.to_owned()].concat())),
                say(LAST_CHUNK),
            ],
            Class::TokenGapTimeout,
            "no more of the answer arrived for 1s",
        ),
    ] {
        let ran = second(reply).await;
        assert_eq!(ran.failures(), [(1, class)], "{about}: {:?}", ran.exchanges[1].outcome);
        let (_, message) = failure(&ran.exchanges[1]).expect("it is a failure");
        assert!(message.contains(expected), "{about}: {message}");
    }
}

/// Everything that HTTP allows, and everything after the answer, still counts as an answer.
#[tokio::test(start_paused = true)]
async fn oddities_on_the_wire_are_no_failures() {
    let event_by_event = |cut: usize| -> Vec<Act> {
        let whole = answer();
        let chunks = whole.as_bytes().chunks(cut).map(|piece| say(chunk(piece)));
        std::iter::once(say(CHUNKED)).chain(chunks).chain([say(LAST_CHUNK)]).collect()
    };
    let bytes_alone = {
        let reply = [CHUNKED.as_bytes(), &chunk(answer()), LAST_CHUNK.as_bytes()].concat();
        reply.iter().flat_map(|byte| [say([*byte]), wait(1)]).collect::<Vec<_>>()
    };
    for (about, reply, connections_lost) in [
        ("a chunk for each byte", event_by_event(1), 0),
        ("chunks of seven bytes", event_by_event(7), 0),
        ("a write for each byte", bytes_alone, 0),
        (
            "chunk extensions and trailers",
            vec![
                say(CHUNKED),
                say(format!("{:x};name=\"a;\\r\"; b\r\n", answer().len())),
                say(answer()),
                say("\r\n0;last\r\nx-checksum: 1\r\nx-more: 2\r\n\r\n"),
            ],
            0,
        ),
        (
            "a stated length",
            vec![
                say(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer().len())),
                say(answer()),
            ],
            0,
        ),
        (
            "as long as the connection",
            vec![say("HTTP/1.1 200 OK\r\n\r\n"), say(answer()), Act::Close],
            1,
        ),
        (
            "interim replies",
            [vec![say("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")], sound()].concat(),
            0,
        ),
        (
            "events after the end marker",
            stream(
                [answer(), text("c"), "data: {\"error\":{\"message\":\"late\"}}\n\n".into()]
                    .concat()
                    .as_bytes(),
            ),
            0,
        ),
        (
            "no UTF-8 after the end marker",
            stream(&[answer().as_bytes(), b"data: \xff\n\n"].concat()),
            0,
        ),
        (
            "silence after the end marker, then the end",
            vec![say(CHUNKED), say(chunk(answer())), wait(900), say(LAST_CHUNK)],
            0,
        ),
        (
            "the connection closed after the end marker",
            vec![say(CHUNKED), say(chunk(answer())), Act::Close],
            1,
        ),
        (
            "bytes after the end of the reply",
            vec![
                say(CHUNKED),
                say(chunk(answer())),
                say([LAST_CHUNK, "HTTP/1.1 408 Too late\r\n\r\n"].concat()),
            ],
            1,
        ),
        (
            "the connection closed by its word",
            with_fields("connection: close", answer().as_bytes()),
            1,
        ),
    ] {
        let ran = second(reply).await;
        assert_eq!(ran.failures(), [], "{about}: {:?}", ran.exchanges[1].outcome);
        assert_eq!(ran.exchanges[1].output, "ab", "{about}");
        assert_eq!(ran.connections, 1 + connections_lost, "{about}");
    }
}

/// The rest of a reply is not taken for the next one.
#[tokio::test(start_paused = true)]
async fn a_connection_with_half_a_reply_on_it_is_not_used_again() {
    let half = vec![
        say("HTTP/1.1 503 Busy\r\ncontent-length: 100\r\n\r\n"),
        wait(1_500),
        say("x".repeat(100)),
    ];
    let ran = second(half).await;
    assert_eq!(ran.failures(), [(1, Class::HttpStatus)]);
    assert_eq!(ran.connections, 2);
}
