use super::*;
use crate::transport::StampedStream;
use bytes::Bytes;
use model::connection::Version;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

type Client = WebSocket<StampedStream<DuplexStream>>;

/// A client after the handshake, and the server's end, over a pipe of this number of bytes.
fn open(bytes: usize, early: &[u8]) -> (Client, DuplexStream) {
    let (client, server) = tokio::io::duplex(bytes);
    (WebSocket::new(NewConnection::bare(client), early.to_vec()), server)
}

/// A frame as a server sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(length as u8),
        length @ 126..=65_535 => {
            bytes.push(126);
            bytes.extend((length as u16).to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

const FINAL: u8 = 0x80;
const CONTINUED: u8 = 0;
const TEXT_FRAME: u8 = 1;
const BINARY_FRAME: u8 = 2;
const CLOSE_FRAME: u8 = 8;
const PING_FRAME: u8 = 9;
const PONG_FRAME: u8 = 10;

/// Reads a frame of the client: its first byte, and its content without the mask.
async fn read_frame(server: &mut DuplexStream) -> (u8, Vec<u8>) {
    let first = server.read_u8().await.unwrap();
    let length = server.read_u8().await.unwrap();
    assert!(length & 0x80 > 0, "a client masks what it sends");
    let length = match length & 0x7f {
        126 => server.read_u16().await.unwrap().into(),
        127 => server.read_u64().await.unwrap() as usize,
        short => usize::from(short),
    };
    let mut mask = [0; 4];
    server.read_exact(&mut mask).await.unwrap();
    let mut payload = vec![0; length];
    server.read_exact(&mut payload).await.unwrap();
    for (byte, key) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
    (first, payload)
}

/// The messages that a client saw.
#[derive(Default)]
struct SeenMessages(RefCell<Vec<(u64, &'static str, Vec<u8>)>>);

impl Incoming for &SeenMessages {
    fn message(&mut self, at: Nanos, name: &'static str, bytes: &[u8]) {
        self.0.borrow_mut().push((at.0 / 1_000_000, name, bytes.to_vec()));
    }
}

impl SeenMessages {
    fn names(&self) -> Vec<(&'static str, String)> {
        let seen = self.0.borrow();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        seen.iter().map(|(_, name, bytes)| (*name, text(bytes))).collect()
    }
}

/// Reads until the WebSocket ends, and writes waiting messages.
async fn read(client: &mut Client, seen: &SeenMessages) -> Result<Closed, Broke> {
    let marks = Marks::default();
    poll_fn(|cx| {
        let _ = client.poll_write(cx);
        let read = client.poll_messages(cx, &marks, &mut &*seen);
        let _ = client.poll_write(cx);
        read
    })
    .await
}

/// Whatever the library reads ahead, a message has the instant of the read that completed it.
#[tokio::test(start_paused = true)]
async fn message_has_the_instant_of_its_last_read() {
    let early = [frame(FINAL | TEXT_FRAME, b"a"), frame(TEXT_FRAME, b"of three")];
    let (mut client, mut server) = open(1 << 20, &early.concat());
    let long = vec![b'x'; 100_000];
    let serve = async {
        for (wait, bytes) in [
            (5, frame(CONTINUED, b" pieces")),
            (5, frame(FINAL | PING_FRAME, b"")),
            // Ends one message, is another, and begins a third.
            (
                5,
                [
                    frame(FINAL | CONTINUED, b"!"),
                    frame(FINAL | TEXT_FRAME, b"b"),
                    frame(FINAL | BINARY_FRAME, &long)[..50_000].to_vec(),
                ]
                .concat(),
            ),
            (5, frame(FINAL | BINARY_FRAME, &long)[50_000..].to_vec()),
            (5, frame(FINAL | TEXT_FRAME, b"c")),
            (5, frame(FINAL | CLOSE_FRAME, &[0x03, 0xe8, b'o', b'k'])),
        ] {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            server.write_all(&bytes).await.unwrap();
        }
        server
    };
    let seen = SeenMessages::default();
    let (read, _server) = tokio::join!(read(&mut client, &seen), serve);
    let close = vec![0x03, 0xe8, b'o', b'k'];
    let all = seen.0.take();
    assert_eq!(
        all,
        [
            (0, TEXT, b"a".to_vec()),
            (15, TEXT, b"of three pieces!".to_vec()),
            (15, TEXT, b"b".to_vec()),
            (20, BINARY, long),
            (25, TEXT, b"c".to_vec()),
            (30, CLOSE, close),
        ]
    );
    let closed = read.unwrap();
    assert_eq!((closed.code, &*closed.reason), (Some(1000), "ok"));
    assert!(closed.is_regular());
}

#[tokio::test]
async fn messages_arrive_as_the_network_cuts_them() {
    let bytes = [
        frame(FINAL | TEXT_FRAME, "né".as_bytes()),
        // Cut in the middle of a character, with a ping between the pieces.
        frame(TEXT_FRAME, &"né".as_bytes()[..2]),
        frame(FINAL | PING_FRAME, b"?"),
        frame(FINAL, &"né".as_bytes()[2..]),
        frame(FINAL | BINARY_FRAME, b""),
        frame(FINAL | PONG_FRAME, b"unasked"),
        frame(FINAL | BINARY_FRAME, &[0xff]),
        frame(FINAL | CLOSE_FRAME, b""),
    ]
    .concat();
    for piece in [1, 2, 3, 7, bytes.len()] {
        let (mut client, mut server) = open(1 << 16, b"");
        let serve = async {
            for piece in bytes.chunks(piece) {
                server.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            let pong = read_frame(&mut server).await;
            let close = read_frame(&mut server).await;
            assert_eq!(pong, (FINAL | PONG_FRAME, b"?".to_vec()));
            assert_eq!(close.0, FINAL | CLOSE_FRAME);
        };
        let seen = SeenMessages::default();
        let (read, ()) = tokio::join!(read(&mut client, &seen), serve);
        let names = seen.names();
        let names: Vec<(&str, &str)> = names.iter().map(|(name, text)| (*name, &**text)).collect();
        let expected =
            [(TEXT, "né"), (TEXT, "né"), (BINARY, ""), (BINARY, "\u{fffd}"), (CLOSE, "")];
        assert_eq!(names, expected, "in pieces of {piece}");
        assert_eq!(read.unwrap().code, None);
    }
}

/// Bytes that are no WebSocket are refused, and the server is told why by a code.
#[tokio::test]
async fn non_websocket_bytes_are_refused() {
    let oversized = {
        let mut head = vec![FINAL | BINARY_FRAME, 127];
        head.extend((FRAME_BYTES as u64 + 1).to_be_bytes());
        head
    };
    let many =
        [frame(BINARY_FRAME, &vec![0; FRAME_BYTES]), frame(FINAL | CONTINUED, &[0])].concat();
    for (what, bytes, code, reason) in [
        ("not UTF-8", frame(FINAL | TEXT_FRAME, &[b'a', 0xff]), 1007, "is not UTF-8"),
        (
            "UTF-8 that is cut off",
            [frame(TEXT_FRAME, &[0xc3]), frame(FINAL, b"")].concat(),
            1007,
            "is not UTF-8",
        ),
        ("oversized", oversized, 1009, "larger than 16 MiB"),
        ("oversized in pieces", many, 1009, "larger than 16 MiB"),
        ("masked", vec![FINAL | TEXT_FRAME, 0x81, 0, 0, 0, 0, b'a'], 1002, "not a WebSocket"),
        ("compressed", frame(FINAL | 0x40 | TEXT_FRAME, b"a"), 1002, "not a WebSocket"),
        ("an unknown kind", frame(FINAL | 3, b"a"), 1002, "not a WebSocket"),
        ("an unknown control", frame(FINAL | 11, b"a"), 1002, "not a WebSocket"),
        ("a ping in pieces", frame(PING_FRAME, b"a"), 1002, "not a WebSocket"),
        ("a long ping", frame(FINAL | PING_FRAME, &[0; 126]), 1002, "not a WebSocket"),
        ("a piece of nothing", frame(FINAL | CONTINUED, b"a"), 1002, "not a WebSocket"),
        (
            "two messages at once",
            [frame(TEXT_FRAME, b"a"), frame(FINAL | TEXT_FRAME, b"b")].concat(),
            1002,
            "not a WebSocket",
        ),
        ("half a close code", frame(FINAL | CLOSE_FRAME, &[3]), 1002, "not a WebSocket"),
    ] {
        let (mut client, mut server) = open(FRAME_BYTES + (1 << 16), b"");
        server.write_all(&bytes).await.unwrap();
        let seen = SeenMessages::default();
        let read = read(&mut client, &seen).await;
        let Err(Broke::Refused(why)) = read else { panic!("{what}: {read:?}") };
        assert!(why.contains(reason), "{what}: {why}");
        assert_eq!(seen.names(), [], "{what}");
        let (first, payload) = read_frame(&mut server).await;
        let number = u16::from_be_bytes([payload[0], payload[1]]);
        assert_eq!((first, number), (FINAL | CLOSE_FRAME, code), "{what}");
    }
}

#[tokio::test]
async fn missing_close_frame_is_an_error() {
    let cut = frame(FINAL | TEXT_FRAME, b"abc");
    for bytes in [&b""[..], &cut[..3], &cut] {
        let (mut client, mut server) = open(1 << 16, b"");
        server.write_all(bytes).await.unwrap();
        drop(server);
        let seen = SeenMessages::default();
        let read = read(&mut client, &seen).await;
        let Err(Broke::Connection(why)) = read else { panic!("{read:?}") };
        assert!(why.contains("without the WebSocket being closed"), "{why}");
        assert_eq!(seen.names().len(), usize::from(bytes.len() == cut.len()));
    }
}

#[tokio::test]
async fn servers_close_is_answered() {
    let (mut client, mut server) = open(1 << 16, b"");
    let close = [&1011_u16.to_be_bytes()[..], b"no worker"].concat();
    server.write_all(&frame(FINAL | CLOSE_FRAME, &close)).await.unwrap();
    let closed = read(&mut client, &SeenMessages::default()).await.unwrap();
    assert!(!closed.is_regular());
    assert_eq!(closed.to_string(), "with code 1011: no worker");
    assert!(client.put(Message::Text("late".to_owned())).is_err());
    drop(client);
    let (first, payload) = read_frame(&mut server).await;
    assert_eq!((first, &payload[..2]), (FINAL | CLOSE_FRAME, &close[..2]));
    let mut rest = Vec::new();
    server.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "{rest:?}");
}

/// A server that does not read is still read, and its queue of pongs is bounded.
#[tokio::test]
async fn blocked_server_is_still_read() {
    let (mut client, mut server) = open(1 << 10, b"");
    let message = vec![7; 1 << 20];
    client.put(Message::Binary(message.clone())).unwrap();
    assert!(!client.has_room());
    let outgoing = |client: &Client| client.protocol.get_ref().outgoing.len();
    let before = outgoing(&client);
    let serve = async {
        for number in 0..10_000_u32 {
            server.write_all(&frame(FINAL | PING_FRAME, &number.to_be_bytes())).await.unwrap();
        }
        server.write_all(&frame(FINAL | TEXT_FRAME, b"here")).await.unwrap();
        server
    };
    let seen = SeenMessages::default();
    let mut serve = std::pin::pin!(serve);
    let mut server = {
        let mut reading = std::pin::pin!(read(&mut client, &seen));
        let mut served = None;
        poll_fn(|cx| {
            if served.is_none()
                && let Poll::Ready(server) = serve.as_mut().poll(cx)
            {
                served = Some(server);
            }
            assert!(reading.as_mut().poll(cx).is_pending());
            if seen.names().is_empty() {
                Poll::Pending
            } else {
                Poll::Ready(served.take().unwrap())
            }
        })
        .await
    };
    assert_eq!(seen.names(), [(TEXT, "here".to_owned())]);
    let grown = outgoing(&client) - before;
    assert!(grown < 2 * PONG_BYTES, "{grown} bytes wait");
    // The sent message comes whole, and answers to pings, among them to the last, behind it.
    let serve = async {
        let first = read_frame(&mut server).await;
        assert_eq!(first, (FINAL | BINARY_FRAME, message));
        loop {
            let (first, payload) = read_frame(&mut server).await;
            assert_eq!(first, FINAL | PONG_FRAME);
            if payload == 9_999_u32.to_be_bytes() {
                break;
            }
        }
        server.write_all(&frame(FINAL | CLOSE_FRAME, b"")).await.unwrap();
        server
    };
    let (read, _server) = tokio::join!(read(&mut client, &seen), serve);
    assert_eq!(read.unwrap().code, None);
}

#[tokio::test]
async fn messages_are_sent_in_order_and_masked() {
    let (mut client, mut server) = open(64, b"");
    let long = "long ".repeat(1_000);
    let serve = async {
        assert_eq!(read_frame(&mut server).await, (FINAL | TEXT_FRAME, long.clone().into_bytes()));
        assert_eq!(read_frame(&mut server).await, (FINAL | BINARY_FRAME, vec![1, 2]));
    };
    let send = async {
        client.put(Message::Text(long.clone())).unwrap();
        poll_fn(|cx| client.poll_write(cx)).await.unwrap();
        assert!(client.has_room());
        client.put(Message::Binary(vec![1, 2])).unwrap();
        poll_fn(|cx| client.poll_write(cx)).await.unwrap();
    };
    tokio::join!(send, serve);
}

#[tokio::test]
async fn leaving_closes_and_waits_for_the_server() {
    let (client, mut server) = open(1 << 16, b"");
    let serve = async {
        let (first, payload) = read_frame(&mut server).await;
        assert_eq!((first, &*payload), (FINAL | CLOSE_FRAME, &[0x03, 0xe8][..]));
        server.write_all(&frame(FINAL | TEXT_FRAME, b"late")).await.unwrap();
        server.write_all(&frame(FINAL | CLOSE_FRAME, &payload)).await.unwrap();
    };
    tokio::join!(client.leave(), serve);
}

#[tokio::test]
async fn abandoned_websocket_is_closed() {
    let (client, mut server) = open(1 << 16, b"");
    drop(client);
    let (first, payload) = read_frame(&mut server).await;
    assert_eq!((first, &*payload), (FINAL | CLOSE_FRAME, &[0x03, 0xe9][..]));
}

/// Runs every case of Autobahn's fuzzing server, which judges the client by itself: see its
/// reports. The variable `AUTOBAHN` is its address, such as `127.0.0.1:9001`.
#[tokio::test]
#[ignore = "needs Autobahn's fuzzing server: `wstest -m fuzzingserver`"]
async fn autobahns_cases_are_echoed() {
    struct Messages(Vec<Message>);
    impl Incoming for Messages {
        fn message(&mut self, _: Nanos, name: &'static str, bytes: &[u8]) {
            match (name, std::str::from_utf8(bytes)) {
                (TEXT, Ok(text)) => self.0.push(Message::Text(text.to_owned())),
                (BINARY, _) => self.0.push(Message::Binary(bytes.to_vec())),
                _ => {}
            }
        }
    }
    let address = std::env::var("AUTOBAHN").expect("the address of a fuzzing server");
    let open = async |path: &str| {
        let tcp = tokio::net::TcpStream::connect(&address).await.unwrap();
        let opened = NewConnection::bare(tcp);
        let mut connection = crate::transport::http1::Connection::new(opened);
        let (at, none) = (("http", &*address), bytes::Bytes::new());
        let version = model::connection::Version::Http1;
        let request =
            crate::transport::Request::new(version, at, "GET", path, hyper::HeaderMap::new(), none);
        let (request, expected) = Handshake::begin(request.unwrap()).unwrap();
        let crate::transport::Request::Http1 { head, body } = request else {
            panic!("it is of HTTP/1.1")
        };
        let head = connection.send(&head, &body, &Rc::default()).await.unwrap();
        expected.check(&head).unwrap();
        connection.into_websocket()
    };
    let mut count = Messages(Vec::new());
    let mut socket = open("/getCaseCount").await;
    let marks = Marks::default();
    let _ = poll_fn(|cx| socket.poll_messages(cx, &marks, &mut count)).await;
    let Some(Message::Text(count)) = count.0.pop() else { panic!("it says how many cases it has") };
    let count: usize = count.parse().unwrap();
    assert!(count > 200, "{count}");
    for case in 1..=count {
        let mut socket = open(&format!("/runCase?case={case}&agent=runner")).await;
        let mut echoed = std::collections::VecDeque::new();
        let _ = poll_fn(|cx| {
            let mut kept = Messages(Vec::new());
            let read = socket.poll_messages(cx, &marks, &mut kept);
            echoed.extend(kept.0);
            while socket.poll_write(cx).is_ready() && socket.has_room() {
                let Some(message) = echoed.pop_front() else { break };
                socket.put(message).unwrap();
            }
            read
        })
        .await;
        drop(socket);
    }
    let mut socket = open("/updateReports?agent=runner").await;
    let _ = poll_fn(|cx| socket.poll_messages(cx, &marks, &mut Messages(Vec::new()))).await;
}

fn request(headers: HeaderMap) -> Request {
    let at = ("http", "engine");
    Request::new(Version::Http1, at, "GET", "/ws", headers, Bytes::new()).unwrap()
}

/// The fields of a reply that agrees.
fn agreeing(handshake: &Handshake) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::try_from(&handshake.accept).unwrap());
    headers
}

/// The example of RFC 6455, 1.3.
#[test]
fn accept_key_equals_the_rfc_example() {
    assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn handshakes_have_fresh_keys() {
    let sent = || match Handshake::begin(request(HeaderMap::new())).unwrap().0 {
        Request::Http1 { head, .. } => String::from_utf8(head.to_vec()).unwrap(),
        Request::Http2(_) => panic!("it is of HTTP/1.1"),
    };
    let first = sent();
    let fields = "GET /ws HTTP/1.1\r\nhost: engine\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ";
    let key = first.strip_prefix(fields).unwrap().trim_end();
    assert_eq!(BASE64_STANDARD.decode(key).unwrap().len(), 16);
    assert_ne!(first, sent());
}

#[test]
fn mismatched_handshake_reply_is_refused() {
    let (_, handshake) = Handshake::begin(request(HeaderMap::new())).unwrap();
    let check = |status, headers| handshake.check(&Head { status, headers });
    assert_eq!(check(101, agreeing(&handshake)), Ok(()));
    assert!(check(200, agreeing(&handshake)).unwrap_err().contains("HTTP 200"));
    for (name, value, what) in [
        (UPGRADE, Some("h2c"), "another protocol"),
        (CONNECTION, Some("close"), "another protocol"),
        (SEC_WEBSOCKET_ACCEPT, None, "does not belong"),
        (SEC_WEBSOCKET_ACCEPT, Some("AAAA"), "does not belong"),
        (SEC_WEBSOCKET_EXTENSIONS, Some("permessage-deflate"), "extensions"),
        (SEC_WEBSOCKET_PROTOCOL, Some("realtime"), "subprotocol"),
    ] {
        let mut headers = agreeing(&handshake);
        match value {
            Some(value) => headers.insert(name.clone(), HeaderValue::from_static(value)),
            None => headers.remove(&name),
        };
        let refused = check(101, headers).unwrap_err();
        assert!(refused.contains(what), "{name}: {refused}");
    }
    let protocol = || [(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("realtime"))];
    let (_, offering) = Handshake::begin(request(protocol().into_iter().collect())).unwrap();
    let mut headers = agreeing(&offering);
    headers.extend(protocol());
    assert_eq!(offering.check(&Head { status: 101, headers }), Ok(()));
}
