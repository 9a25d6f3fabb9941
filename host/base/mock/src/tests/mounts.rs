//! Engines below base paths of one address, over real sockets.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::{Mounts, Page, listen, serve_mounts};

async fn reply_to(address: std::net::SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&raw(method, path, body)).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    reply
}

fn mounted(names: &[&str]) -> (std::net::SocketAddr, Arc<Mounts>) {
    let scripts = names.iter().map(|name| {
        let script = format!("ttft = '1ms'\nitl = '1ms'\nmodels = '{name}'");
        ((*name).to_owned(), script.parse().unwrap())
    });
    let pages = Box::new(|engine: Option<(&str, &Engine)>, page: &str| {
        let name = match engine {
            None if page.is_empty() => "all",
            Some((name, _)) if page == "expected" => name,
            _ => return None,
        };
        Some(Page { content_type: "text/plain", text: format!("page of {name}") })
    });
    let mounts = Mounts::new(scripts, pages).unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let served = serve_mounts(listener, Arc::clone(&mounts), std::future::pending());
    tokio::spawn(served);
    (address, mounts)
}

#[tokio::test]
async fn each_engine_has_a_base_path_and_a_log() {
    let (address, mounts) = mounted(&["a", "b"]);
    let models = reply_to(address, "GET", "/b/v1/models", "").await;
    assert!(models.contains(r#""id":"b""#), "{models}");
    let body = r#"{"model":"a","prompt":"x","max_tokens":2,"stream":true}"#;
    let reply = reply_to(address, "POST", "/a/v1/completions?x=1", body).await;
    assert!(reply.contains("[DONE]"), "{reply}");
    assert_eq!(mounts.engine("a").unwrap().truths().len(), 1);
    let log = reply_to(address, "GET", "/a/truth", "").await;
    assert!(log.contains(r#""asked":"{\"model\":\"a\""#) && log.contains("[DONE]"), "{log}");
    assert!(reply_to(address, "GET", "/b/truth", "").await.ends_with("\r\n\r\n"));
    let page = reply_to(address, "GET", "/a/expected", "").await;
    assert!(page.ends_with("page of a"), "{page}");
    assert!(reply_to(address, "GET", "/", "").await.ends_with("page of all"));
    reply_to(address, "POST", "/a/reset", "").await;
    assert!(reply_to(address, "GET", "/a/truth", "").await.ends_with("\r\n\r\n"));
    let none = reply_to(address, "GET", "/v1/models", "").await;
    assert!(none.starts_with("HTTP/1.1 404") && none.contains("there are a, b"), "{none}");
}

#[tokio::test]
async fn a_single_engine_needs_no_base_path() {
    let (address, _) = mounted(&["a"]);
    for path in ["/v1/models", "/a/v1/models"] {
        let models = reply_to(address, "GET", path, "").await;
        assert!(models.contains(r#""id":"a""#), "{models}");
    }
}
