//! The bare reader: the least that a client of event streams can do. Connects first, sends, then
//! reads, stamps each read and counts the ends of events; where a reply has ended, it sends the
//! next request on the same connection. No HTTP, no JSON, no records: what any client costs beyond
//! this is its own.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use memchr::memmem;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

#[derive(Debug, Default)]
pub struct Timing {
    /// Ends of events.
    pub events: u64,
    /// Instants of each stream's first and later events, since its request was written.
    pub instants: Vec<Vec<Duration>>,
}

struct Stream {
    socket: TcpStream,
    /// Replies that have not ended.
    left: usize,
    sent: Instant,
    instants: Vec<Duration>,
}

/// The last chunk of a reply, which comes with its last event or alone.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Sends several requests in turn on each of many connections, and reads every reply to its end.
pub fn read(
    address: SocketAddr,
    streams: usize,
    answers: usize,
    request: &[u8],
) -> std::io::Result<Timing> {
    let mut poll = Poll::new()?;
    let mut open = Vec::with_capacity(streams);
    for number in 0..streams {
        let socket = std::net::TcpStream::connect(address)?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let mut socket = TcpStream::from_std(socket);
        poll.registry().register(&mut socket, Token(number), Interest::READABLE)?;
        open.push(Stream { socket, left: answers, sent: Instant::now(), instants: Vec::new() });
    }
    for stream in &mut open {
        stream.sent = Instant::now();
        stream.socket.write_all(request)?;
    }
    let end = memmem::Finder::new(b"\n\n");
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 64 << 10];
    let mut seen = Timing::default();
    let mut left = streams;
    while left > 0 {
        poll.poll(&mut events, None)?;
        for event in &events {
            let stream = &mut open[event.token().0];
            loop {
                let read = match stream.socket.read(&mut buffer) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(read) => read,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                };
                let at = stream.sent.elapsed();
                let bytes = &buffer[..read];
                let ends = end.find_iter(bytes).count() as u64;
                seen.events += ends;
                stream.instants.extend((0..ends).map(|_| at));
                if bytes.ends_with(LAST_CHUNK) {
                    stream.left -= 1;
                    if stream.left == 0 {
                        left -= 1;
                    } else {
                        stream.sent = Instant::now();
                        stream.socket.write_all(request)?;
                    }
                }
                if read < buffer.len() {
                    break;
                }
            }
        }
    }
    seen.instants = open.into_iter().map(|stream| stream.instants).collect();
    Ok(seen)
}
