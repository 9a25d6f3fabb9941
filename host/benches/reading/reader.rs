//! The readers: a bare one, and the reading half of `load` with nothing behind it.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hyper::HeaderMap;
use load::backlog::{BOUND, Backlog, BacklogBytes};
use load::drive::demand::{Course, Demand, Kind};
use load::drive::worker_handle::WorkerHandle;
use load::drive::{DecodeProgress, End, Job, Replies, Reply, Worker};
use load::pace::Signal;
use load::transport::poller::Poller;
use load::transport::{Connect, Dial, NewConnection, Request};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use model::clock::Clock;
use model::connection::{Reuse, Timeouts, Timestamps, Trust, Version};
use model::exchange::{Open, Prepared, SampleFacts};
use model::frame::{Frames, Framing};
use model::target::Target;
use model::units::Nanos;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::engine::{END, REQUEST};

const LONG: Nanos = Nanos(3_600_000_000_000);

/// Connects, sends, reads, stamps each read and counts the ends of events to the last reply.
pub fn bare(address: SocketAddr, streams: usize) -> io::Result<u64> {
    let clock = Clock::start();
    let mut poll = Poll::new()?;
    let mut open = Vec::with_capacity(streams);
    for number in 0..streams {
        let socket = std::net::TcpStream::connect(address)?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let mut socket = TcpStream::from_std(socket);
        poll.registry().register(&mut socket, Token(number), Interest::READABLE)?;
        open.push((socket, Nanos::ZERO));
    }
    for (socket, _) in &mut open {
        socket.write_all(REQUEST)?;
    }
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 64 << 10];
    let (mut seen, mut left) = (0, streams);
    while left > 0 {
        poll.poll(&mut events, None)?;
        for event in &events {
            let (socket, last) = &mut open[event.token().0];
            loop {
                let read = match socket.read(&mut buffer) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(read) => read,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                };
                *last = clock.now();
                let bytes = &buffer[..read];
                seen += bytes.windows(2).filter(|pair| pair == b"\n\n").count() as u64;
                left -= usize::from(bytes.ends_with(END));
                if read < buffer.len() {
                    break;
                }
            }
        }
    }
    Ok(seen)
}

/// Has a worker of `load` read them; its sockets are registered with its poller or the runtime.
pub fn load(address: SocketAddr, streams: usize, polled: bool) -> io::Result<u64> {
    let counted = Counter::default();
    let target = Target::parse(&format!("http://{address}")).map_err(io::Error::other)?;
    let dial = Dial::new(&[target], &[], Version::Http1, &Trust::default(), Timestamps::Kernel);
    let clock = Clock::start();
    let signal = Signal::for_thread();
    let worker = Worker {
        connect: Maybe { dial: dial.map_err(io::Error::other)?, polled },
        targets: 1,
        places: 1,
        reuse: Reuse::Never,
        clock,
        signal: signal.clone(),
        replies: Arc::new(counted.clone()),
        backlog: Backlog::new(clock, BOUND),
        timeouts: Timeouts { connect: LONG, first_token: None, token_gap: LONG, request: LONG },
        spare: 0,
        opened: Arc::default(),
        jars: None,
    };
    let (handle, orders) = WorkerHandle::new();
    for key in 0..streams as u64 {
        handle.send(job(key));
    }
    drop(handle);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(worker.run(orders));
    if counted.0.whole.load(Ordering::Relaxed) == streams as u64 {
        Ok(counted.0.frames.load(Ordering::Relaxed))
    } else {
        Err(io::Error::other("not every reply was whole"))
    }
}

fn job(key: u64) -> Box<Job> {
    let sample = SampleFacts {
        id: key.to_string(),
        request_bytes: REQUEST.len() as u64,
        ..SampleFacts::default()
    };
    Box::new(Job {
        key,
        exchange: Prepared::new(key, sample).due(Nanos::ZERO, None),
        request: Request::Http1 { head: Bytes::from_static(REQUEST), body: Bytes::new() },
        framing: Framing::EventStream,
        course: Course::One,
        session: None,
        cancelled_after: None,
    })
}

/// Opens connections with or without the poller.
#[derive(Clone)]
struct Maybe {
    dial: Dial,
    polled: bool,
}

impl Connect for Maybe {
    type Io = <Dial as Connect>::Io;

    fn version(&self) -> Version {
        self.dial.version()
    }

    async fn connect(
        &self,
        target: u32,
        clock: Clock,
        poller: Option<&Poller>,
    ) -> Result<NewConnection<Self::Io>, String> {
        self.dial.connect(target, clock, poller.filter(|_| self.polled)).await
    }
}

#[derive(Clone, Default)]
struct Counter(Arc<Counts>);

#[derive(Default)]
struct Counts {
    frames: AtomicU64,
    whole: AtomicU64,
}

impl Replies for Counter {
    fn open(&self, _: u64) -> Rc<dyn Reply> {
        Rc::new(Counting { counts: Arc::clone(&self.0), progress: DecodeProgress::default() })
    }
}

struct Counting {
    counts: Arc<Counts>,
    progress: DecodeProgress,
}

impl Reply for Counting {
    fn demands(&self, _: u32, _: Kind) -> UnboundedReceiver<Demand> {
        unbounded_channel().1
    }

    fn head(&self, _: u16, _: &HeaderMap, _: Framing, _: Vec<u8>) {}

    fn frames(&self, frames: Frames, _: Nanos, _: BacklogBytes) {
        let frames = frames.len() as u64;
        self.counts.frames.fetch_add(frames, Ordering::Relaxed);
    }

    fn turned(&self) {}

    fn closed(&self, _: Box<Open>, end: End) {
        let whole = u64::from(matches!(end, End::Whole { .. }));
        self.counts.whole.fetch_add(whole, Ordering::Relaxed);
    }

    fn progress(&self) -> &DecodeProgress {
        &self.progress
    }
}
