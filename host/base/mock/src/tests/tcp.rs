//! Over real sockets. No instants are compared here: real time is not exact.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::*;
use crate::{listen, serve};

async fn exchange(script: &str, requests: usize) -> Vec<(String, std::io::Result<()>)> {
    let script = format!("ttft = '1ms'\nitl = '1ms'\n{script}").parse().unwrap();
    let engine = Engine::new(script).unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, engine, async move {
        let _ = stopped.await;
    }));
    let clients: Vec<_> = (0..requests)
        .map(|_| {
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let body = r#"{"prompt":"x","max_tokens":3,"stream":true}"#;
                stream.write_all(&raw("POST", "/v1/completions", body)).await.unwrap();
                let mut reply = Vec::new();
                let end = stream.read_to_end(&mut reply).await.map(|_| ());
                (String::from_utf8(reply).unwrap(), end)
            })
        })
        .collect();
    let mut replies = Vec::new();
    for client in clients {
        replies.push(client.await.unwrap());
    }
    stop.send(()).unwrap();
    server.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "still listening");
    replies
}

#[tokio::test]
async fn many_clients_connect_at_once() {
    for (reply, end) in exchange("", 300).await {
        assert!(end.is_ok(), "{end:?}");
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        // Each event in an HTTP chunk of its own, then the last chunk.
        assert_eq!(reply.matches("\r\ndata: ").count(), 4);
        assert!(reply.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{reply}");
    }
}

#[tokio::test]
async fn a_cut_closes_or_resets() {
    let cut = "[[fault]]\nkind = 'cut'\nafter-tokens = 1";
    let (reply, end) = exchange(cut, 1).await.remove(0);
    assert!(end.is_ok() && !reply.ends_with("0\r\n\r\n"), "{reply}");
    let (_, end) = exchange(&format!("{cut}\nreset = true"), 1).await.remove(0);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}
