//! The engine: a thread that streams chunked events, one a write and one stream after the other.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::Load;

/// The request that a client sends for each stream.
pub const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nhost: engine\r\ncontent-length: 0\r\n\r\n";
/// The end of a reply, and nothing else of it.
pub const END: &[u8] = b"0\r\n\r\n";
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT: &str = concat!(
    r#"data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","#,
    r#""created":1732190000,"model":"meta-llama/Llama-3.1-8B-Instruct","#,
    r#""choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}"#,
    "\n\n"
);

/// An engine that waits for its clients.
pub struct Engine {
    listener: TcpListener,
    load: Load,
}

impl Engine {
    /// Listens on a port of its own.
    pub fn bind(load: Load) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        Ok(Engine { listener, load })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for all requests, and answers them.
    pub fn serve(self) -> io::Result<()> {
        let mut streams = Vec::new();
        for _ in 0..self.load.streams {
            let (stream, _) = self.listener.accept()?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let mut request = [0; REQUEST.len()];
        for stream in &mut streams {
            stream.read_exact(&mut request)?;
            stream.write_all(HEAD)?;
        }
        let event = format!("{:x}\r\n{EVENT}\r\n", EVENT.len());
        for _ in 0..self.load.events {
            to_all(&mut streams, event.as_bytes())?;
            if !self.load.pause.is_zero() {
                std::thread::sleep(self.load.pause);
            }
        }
        to_all(&mut streams, END)?;
        // The client closes first, so that its connections leave the port free.
        for stream in &mut streams {
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            let _ = stream.read(&mut request);
        }
        Ok(())
    }
}

fn to_all(streams: &mut [TcpStream], bytes: &[u8]) -> io::Result<()> {
    streams.iter_mut().try_for_each(|stream| stream.write_all(bytes))
}
