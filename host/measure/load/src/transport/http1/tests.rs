use super::*;
use crate::transport::{self, Request, StampedStream};
use bytes::Bytes;
use model::connection::Version;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A client's view of a reply: status and body, or the error; true if the connection stays usable.
type ReplyView = (Result<(u16, String), String>, bool);

fn request() -> Request {
    let body = Bytes::from_static(b"question");
    Request::new(Version::Http1, ("http", "engine"), "POST", "/", HeaderMap::new(), body).unwrap()
}

fn connect() -> (transport::Connection<StampedStream<DuplexStream>>, DuplexStream) {
    let (client, server) = tokio::io::duplex(1 << 20);
    (transport::Connection::Http1(Connection::new(NewConnection::bare(client))), server)
}

/// Reads a request whole.
async fn read_question(server: &mut DuplexStream) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"question") {
        server.read_buf(&mut bytes).await.unwrap();
    }
}

/// Sends a request to a server that reads it whole, writes in pieces of `piece` bytes, and closes.
async fn exchange(reply: &[u8], piece: usize) -> ReplyView {
    let (mut connection, mut server) = connect();
    let serve = async {
        read_question(&mut server).await;
        for piece in reply.chunks(piece) {
            server.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        drop(server);
    };
    let (seen, ()) = tokio::join!(connection.ask(request(), 1 << 20), serve);
    let seen = seen.map(|(head, body)| (head.status, String::from_utf8(body).unwrap()));
    let again = seen.is_ok() && connection.rest(Nanos::ZERO);
    (seen, again)
}

/// However the network cuts a reply.
async fn see(reply: &str) -> ReplyView {
    let whole = exchange(reply.as_bytes(), reply.len().max(1)).await;
    for piece in [1, 2, 7] {
        assert_eq!(exchange(reply.as_bytes(), piece).await.0, whole.0, "{reply}");
    }
    whole
}

fn answered(status: u16, body: &str, again: bool) -> ReplyView {
    (Ok((status, body.to_owned())), again)
}

#[tokio::test]
async fn replies_of_every_form() {
    for (reply, seen) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", answered(200, "abc", true)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=\"y\"\r\nab\r\n1\r\nc\r\n0\r\nt: 1\r\n\r\n",
            answered(200, "abc", true),
        ),
        ("HTTP/1.1 200 OK\r\n\r\nas long as it lasts", answered(200, "as long as it lasts", false)),
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na",
            answered(200, "a", false),
        ),
        ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", answered(200, "a", false)),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
            answered(500, "", true),
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", answered(204, "", true)),
    ] {
        assert_eq!(see(reply).await, seen, "{reply}");
    }
}

#[tokio::test]
async fn broken_replies_state_the_cause() {
    for (reply, what) in [
        ("", "closed before a reply arrived"),
        ("HTTP/1.1 200 OK\r\ncontent-le", "in the middle of the reply's head"),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "is not HTTP/1.1"),
        ("\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64", "is HTTP/2, not HTTP/1.1; use --http 2"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", "2 bytes before"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "before the reply's last chunk",
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n", "has no valid size"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            "the transfer coding `gzip, chunked`",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
            "the transfer coding `chunked,chunked`",
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: x\u{e9}\r\n\r\n", "the transfer coding `x\u{e9}`"),
        ("HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nabcde", "content-length is not a number"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcde",
            "or there are several",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "both a content-length and a transfer-encoding",
        ),
        ("HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n", "is not HTTP/1.1"),
        ("HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n", "is not HTTP/1.1"),
        ("HTTP/1.1 200 OK\r\nx : a\r\ncontent-length: 0\r\n\r\n", "is not HTTP/1.1"),
    ] {
        let (seen, again) = see(reply).await;
        let error = seen.expect_err(reply);
        assert!(error.contains(what), "{reply}: {error}");
        assert!(!again, "{reply}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(1 << 17));
    let (seen, _) = exchange(endless.as_bytes(), 1 << 12).await;
    assert!(seen.unwrap_err().contains("longer than 64 KiB"));
    let fields = "a: b\r\n".repeat(200);
    let (seen, _) = see(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).await;
    assert!(seen.unwrap_err().contains("more than 128 fields"));
    // Whole, but too long, in one read.
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(65 << 10));
    let (seen, _) = exchange(long.as_bytes(), long.len()).await;
    assert!(seen.unwrap_err().contains("longer than 64 KiB"));
}

#[tokio::test]
async fn endless_interim_replies_are_refused() {
    let few = "HTTP/1.1 102 Processing\r\n\r\n".repeat(16);
    let whole = format!("{few}HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na");
    assert_eq!(see(&whole).await, answered(200, "a", true));
    let (seen, again) = see(&few.repeat(100)).await;
    assert!(seen.unwrap_err().contains("more than 16 interim replies"));
    assert!(!again);
}

#[tokio::test]
async fn body_is_read_up_to_the_kept_size() {
    let (mut connection, mut server) = connect();
    let serve = async {
        read_question(&mut server).await;
        server.write_all(b"HTTP/1.1 500 No\r\n\r\n").await.unwrap();
        let mut written = 0_usize;
        while server.write_all(&[b'x'; 1 << 16]).await.is_ok() {
            written += 1 << 16;
            assert!(written < 64 << 20, "it reads without end");
        }
    };
    let ask = async {
        let reply = connection.ask(request(), 1 << 20).await;
        assert!(!connection.rest(Nanos::ZERO), "the rest is still to come");
        drop(connection);
        reply
    };
    let (seen, ()) = tokio::join!(ask, serve);
    let (head, body) = seen.unwrap();
    assert_eq!((head.status, body.len()), (500, 1 << 20));
}

/// Bytes that follow a reply belong to no request, so the connection is not used again.
#[tokio::test]
async fn surplus_bytes_close_the_connection() {
    let reply = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\n";
    assert_eq!(exchange(reply.as_bytes(), reply.len()).await, answered(200, "a", false));
    let (mut connection, mut server) = connect();
    server.write_all(b"HTTP/1.1 408 Too late\r\n\r\n").await.unwrap();
    let usable = poll_fn(|cx| Poll::Ready(connection.is_usable(cx))).await;
    assert!(!usable, "it spoke before it was asked");
}

/// A server may refuse before it has read everything.
#[tokio::test]
async fn early_reply_is_read() {
    let (mut connection, mut server) = connect();
    let body = Bytes::from(vec![b'x'; 4 << 20]);
    let at = ("http", "engine");
    let request = Request::new(Version::Http1, at, "POST", "/", HeaderMap::new(), body).unwrap();
    let serve = async {
        let mut some = [0; 1024];
        server.read_exact(&mut some).await.unwrap();
        let reply = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";
        server.write_all(reply).await.unwrap();
        server
    };
    let marks = Rc::default();
    let (seen, _server) = tokio::join!(connection.send(request, &marks), serve);
    assert_eq!(seen.unwrap().status, 413);
    assert!(marks.sent.get().is_some() && marks.written.get().is_none());
    assert!(!connection.rest(Nanos::ZERO), "half a request is on it");
}

/// One request after the other, each with instants of its own.
#[tokio::test(start_paused = true)]
async fn connection_carries_successive_requests() {
    use std::time::Duration;
    let (mut connection, mut server) = connect();
    let serve = async {
        for _ in 0..2 {
            read_question(&mut server).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n").await.unwrap();
            tokio::time::sleep(Duration::from_millis(7)).await;
            server.write_all(b"a").await.unwrap();
        }
        server
    };
    let ask = async {
        for start in [0, 12] {
            let marks = Rc::default();
            connection.send(request(), &marks).await.unwrap();
            struct Nothing;
            impl Sink for Nothing {
                fn take(&mut self, at: Nanos, _: &[u8]) -> Result<(), String> {
                    assert_eq!(at.0 / 1_000_000 % 12, 0);
                    Ok(())
                }
            }
            poll_fn(|cx| connection.poll_body(cx, &marks, &mut Nothing)).await.unwrap();
            let ms = |mark: &std::cell::Cell<Option<Nanos>>| mark.get().unwrap().0 / 1_000_000;
            let seen = [&marks.sent, &marks.written, &marks.first_byte].map(ms);
            assert_eq!(seen, [start, start, start + 5]);
            assert!(connection.rest(connection.last_read()));
        }
    };
    tokio::join!(ask, serve);
}
