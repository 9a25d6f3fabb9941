//! A server of bytes: it finds each request's end, and answers with the test's bytes.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// The head of a streamed reply of HTTP/1.1.
pub const CHUNKED: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                           transfer-encoding: chunked\r\n\r\n";
/// The end of such a reply.
pub const LAST_CHUNK: &str = "0\r\n\r\n";
pub const DONE: &str = "data: [DONE]\n\n";

#[derive(Clone, Debug)]
pub enum Act {
    /// These bytes go out.
    Write(Vec<u8>),
    /// The same bytes are sent, this many times.
    Repeat(Vec<u8>, usize),
    Wait(Duration),
    Close,
    /// The connection is reset, where it is one of TCP; any other is closed.
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Closed,
    Reset,
}

pub fn say(bytes: impl AsRef<[u8]>) -> Act {
    Act::Write(bytes.as_ref().to_vec())
}

pub fn wait(milliseconds: u64) -> Act {
    Act::Wait(Duration::from_millis(milliseconds))
}

pub fn chunk(content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut chunk = format!("{:x}\r\n", content.len()).into_bytes();
    chunk.extend_from_slice(content);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// An event that adds this to a completion.
pub fn text(text: &str) -> String {
    let text = serde_json::json!(text);
    format!(
        r#"data: {{"id":"cmpl-1","object":"text_completion","created":1,"model":"mock","choices":[{{"index":0,"text":{text},"finish_reason":null}}]}}"#
    ) + "\n\n"
}

/// A sound answer: `ab`, the first half of it after 120 ms, the second 20 ms later.
pub fn sound() -> Vec<Act> {
    vec![
        say(CHUNKED),
        wait(120),
        say(chunk(text("a"))),
        wait(20),
        say([chunk(text("b")), chunk(DONE), LAST_CHUNK.into()].concat()),
    ]
}

/// A whole reply with this status line and content.
pub fn whole(status: &str, content: &str) -> Vec<Act> {
    let length = content.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
    vec![say(head + content)]
}

/// Returns the reactions to a request, by its number.
type ByNumber = Box<dyn Fn(u64) -> Vec<Act> + Send + Sync + UnwindSafe + RefUnwindSafe>;

#[derive(Default)]
pub struct Raw {
    replies: Vec<(u64, Vec<Act>)>,
    by_number: Option<ByNumber>,
    routes: Vec<(&'static str, Mutex<Vec<Vec<Act>>>)>,
    count: AtomicU64,
    requests: Mutex<Vec<String>>,
}

impl Raw {
    /// Answers the requests of these numbers, counted from 0, in this way; all others soundly.
    pub fn with(replies: impl IntoIterator<Item = (u64, Vec<Act>)>) -> Arc<Self> {
        Arc::new(Raw { replies: replies.into_iter().collect(), ..Raw::default() })
    }

    /// Answers a question for models, and then the request of each number, from 0, by the function.
    pub fn engine(
        reply: impl Fn(u64) -> Vec<Act> + Send + Sync + UnwindSafe + RefUnwindSafe + 'static,
    ) -> Arc<Self> {
        let models =
            whole("200 OK", r#"{"object":"list","data":[{"id":"mock","object":"model"}]}"#);
        Arc::new(Raw {
            by_number: Some(Box::new(reply)),
            routes: vec![("GET", Mutex::new(vec![models]))],
            ..Raw::default()
        })
    }

    /// Answers requests that begin with a text, such as `GET /health`, in these ways in turn, and
    /// then always in the last way; they have no number. All others are answered soundly.
    pub fn routing(routes: impl IntoIterator<Item = (&'static str, Vec<Vec<Act>>)>) -> Arc<Self> {
        let routes = routes.into_iter();
        Arc::new(Raw {
            routes: routes.map(|(route, replies)| (route, Mutex::new(replies))).collect(),
            ..Raw::default()
        })
    }

    /// The requests that arrived, head and body, in order of arrival.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn reply(&self, request: String) -> Vec<Act> {
        let route = self.routes.iter().find(|(start, _)| {
            let rest = request.strip_prefix(start);
            rest.is_some_and(|rest| rest.starts_with([' ', '?']))
        });
        self.requests.lock().unwrap().push(request);
        if let Some((_, replies)) = route {
            let mut replies = replies.lock().unwrap();
            return if replies.len() == 1 { replies[0].clone() } else { replies.remove(0) };
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(reply) = &self.by_number {
            return reply(number);
        }
        let own = self.replies.iter().find(|(of, _)| *of == number);
        own.map_or_else(sound, |(_, acts)| acts.clone())
    }

    /// Serves TCP on a port and a thread of its own.
    pub fn listen(self: &Arc<Self>) -> RawServer {
        let raw = Arc::clone(self);
        serve_each(move |stream| Arc::clone(&raw).serve_tcp(stream))
    }

    async fn serve_tcp(self: Arc<Self>, mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        if self.answer(&mut stream).await == Left::Reset {
            stream.set_zero_linger().unwrap();
        }
    }

    /// Answers one client until either side closes the connection.
    pub async fn serve(self: Arc<Self>, mut io: impl AsyncRead + AsyncWrite + Unpin) {
        self.answer(&mut io).await;
    }

    async fn answer(&self, mut io: impl AsyncRead + AsyncWrite + Unpin) -> Left {
        let mut received = Vec::new();
        while let Some(request) = hear(&mut io, &mut received).await {
            for act in self.reply(request) {
                let done = match act {
                    Act::Write(bytes) => io.write_all(&bytes).await,
                    Act::Repeat(bytes, times) => repeat(&mut io, &bytes, times).await,
                    Act::Wait(span) => {
                        tokio::time::sleep(span).await;
                        Ok(())
                    }
                    Act::Close => return Left::Closed,
                    Act::Reset => return Left::Reset,
                };
                if done.is_err() {
                    return Left::Closed;
                }
            }
        }
        Left::Closed
    }
}

/// Serves TCP on a port and a thread of its own, each connection in a task.
pub fn serve_each<F>(mut serve: impl FnMut(TcpStream) -> F + Send + 'static) -> RawServer
where
    F: Future<Output = ()> + Send + 'static,
{
    let (tell, address) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let accept = async {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(stream));
                }
            };
            tokio::select! {
                () = accept => {}
                _ = stopped => {}
            }
        });
    });
    RawServer {
        url: format!("http://{}", address.recv().unwrap()),
        stop: Some(stop),
        thread: Some(thread),
    }
}

/// A server over TCP, until it is dropped.
pub struct RawServer {
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for RawServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn repeat(
    io: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    times: usize,
) -> std::io::Result<()> {
    for _ in 0..times {
        io.write_all(bytes).await?;
    }
    Ok(())
}

/// Reads one request, and leaves the bytes after it; nothing if there is none.
async fn hear(io: &mut (impl AsyncRead + Unpin), received: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = end_of_request(received) {
            let request: Vec<u8> = received.drain(..end).collect();
            return Some(String::from_utf8_lossy(&request).into_owned());
        }
        if !matches!(io.read_buf(received).await, Ok(1..)) {
            return None;
        }
    }
}

fn end_of_request(received: &[u8]) -> Option<usize> {
    let head = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let fields = std::str::from_utf8(&received[..head]).unwrap();
    let length = fields.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.eq_ignore_ascii_case("content-length")).then(|| value.trim().parse::<usize>())
    });
    let end = head + length.map_or(0, Result::unwrap);
    (received.len() >= end).then_some(end)
}
