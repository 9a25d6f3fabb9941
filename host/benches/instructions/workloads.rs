//! The counted work on a piece of a reply, from the bytes read to the record and the summary.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::{Result, bail};
use bytes::Bytes;
use load::backlog::{BOUND, Backlog};
use load::drive::{End, Replies as _};
use load::pace::Signal;
use load::pace::news::newsfeed;
use load::transport::poller::Poller;
use load::transport::{Connect, Connection, NewConnection, Request, Sink, StampedStream, Wire};
use model::clock::Clock;
use model::connection::Version;
use model::exchange::{Event, Exchange, Kind, Open, Outcome, Phase, Prepared, Reply, Usage};
use model::frame::{Framer, Frames, Framing};
use model::identity::{Identities, Member, RequestIds, RunId};
use model::units::Nanos;
use plugins::backend::Fold;
use result::summary::{Run, RunFacts};
use runs::folder::RunFolder;
use runs::record::Recorder;
use scenario::Scenario;
use session::decode::failures::FailureLimit;
use session::decode::inbox::Inboxes;
use session::decode::steps::Routes;
use session::decode::{DecodeState, Decoder};
use session::sessions::Sessions;
use session::sessions::memory::Memory;
use session::{ResolvedRun, Source, resolve};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub struct Workload {
    pub name: &'static str,
    /// Name of one unit.
    pub unit: &'static str,
    /// Units that are enough for a stable count.
    pub units: u64,
}

impl Workload {
    const fn new(name: &'static str, unit: &'static str, units: u64) -> Self {
        Workload { name, unit, units }
    }
}

const EVENTS: u64 = 128;
/// Exchanges of a run that is summarised: enough to make a summary's fixed cost small.
const SUMMARISED: u64 = 1000;
/// Frames that a reader hands to a decode thread together.
const BATCH: u64 = 32;

/// Every workload. Units are whole replies.
pub const ALL: [Workload; 8] = [
    Workload::new("http1", "reading a chunk of a chunked HTTP/1.1 body, one a read", 200 * EVENTS),
    Workload::new("frame", "framing an event of 250 bytes", 200 * EVENTS),
    Workload::new("decode-1", "decoding it through the component, alone", 20 * EVENTS),
    Workload::new("decode-32", "decoding it through the component, 32 at a time", 20 * EVENTS),
    Workload::new("take", "decoding it so and putting the exchange together", 20 * EVENTS),
    Workload::new(
        "ids",
        "making the ids of a request and their header fields, for each of its 128 events",
        400 * EVENTS,
    ),
    Workload::new("record", "recording an event, in exchanges of 128", 400 * EVENTS),
    Workload::new(
        "summarize",
        "summarising an event, in records of 128 that are read twice",
        SUMMARISED * EVENTS,
    ),
];

/// Does a number of units of a workload.
pub fn work(name: &str, units: u64, artifacts: &Path) -> Result<()> {
    match name {
        "http1" => read_chunks(units),
        "frame" => frame(units),
        "decode-1" => decode(units, 1, artifacts),
        "decode-32" => decode(units, BATCH, artifacts),
        "take" => take(units / EVENTS, artifacts),
        "ids" => ids(units / EVENTS),
        "record" => record(units / EVENTS),
        "summarize" => summarize(units / EVENTS),
        unknown => bail!("`{unknown}` is no workload"),
    }
}

/// An event as OpenAI-like engines write it, of about 250 bytes.
fn event() -> Vec<u8> {
    let event = concat!(
        r#"data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","#,
        r#""created":1732190000,"model":"meta-llama/Llama-3.1-8B-Instruct","#,
        r#""choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}"#,
        "\n\n"
    );
    event.as_bytes().to_vec()
}

fn end() -> &'static [u8] {
    b"data: [DONE]\n\n"
}

fn frames(count: u64) -> Result<Frames> {
    let mut framer = Framer::new(Framing::EventStream);
    let mut frames = Frames::default();
    for at in 0..count {
        framer.push(Nanos(at), &event(), &mut frames)?;
    }
    Ok(frames)
}

fn frame(units: u64) -> Result<()> {
    let event = event();
    let mut framer = Framer::new(Framing::EventStream);
    let mut frames = Frames::default();
    for at in 0..units {
        framer.push(Nanos(at), &event, &mut frames)?;
        if frames.len() as u64 == BATCH {
            frames = Frames::default();
        }
    }
    Ok(())
}

/// A run's parts, with the backend that is asked for most.
fn resolved(artifacts: &Path) -> Result<ResolvedRun> {
    cache::keep_in(artifacts.to_owned());
    let text = r#"
        target.model = "mock"
        backend.plugin = "backends/openai.wasm"
        backend.config.route = "chat"
        dataset.plugin = "datasets/random.wasm"
        dataset.config = { like = "vllm", input-len = 20, output-len = 5 }
        load = { requests = 1, warmup = 0 }
        # Under valgrind on a busy machine.
        sandbox.compile = "1h"
    "#;
    let scenario = Scenario::parse("instructions", text);
    let source = Source {
        scenario: scenario.map_err(|error| anyhow::anyhow!("{error:?}"))?,
        name: "instructions".to_owned(),
        shipped: shipped::PLUGINS,
        ..Source::default()
    };
    resolve(&source).map_err(|faults| anyhow::anyhow!("{faults:?}"))
}

fn decode(units: u64, batch: u64, artifacts: &Path) -> Result<()> {
    let mut dialect = resolved(artifacts)?.parts.backend.open()?;
    let mut frames = frames(batch)?;
    let mut fold = Fold::default();
    for _ in 0..units / batch {
        let events = dialect.decode(&mut fold, &mut frames)?;
        if events.len() as u64 != batch {
            bail!("{batch} frames gave {} events", events.len());
        }
    }
    Ok(())
}

/// An exchange whose reply is still to be decoded.
fn open() -> Result<Box<Open>> {
    let sample = serde_json::json!({
        "id": "sample-7", "request-bytes": 1234, "request-digest": "0123456789abcdef"
    });
    let prepared = Prepared::new(7, serde_json::from_value(sample)?);
    Ok(Box::new(Open {
        sent: Some(Nanos(1_000_100_000)),
        written: Some(Nanos(1_000_110_000)),
        first_byte: Some(Nanos(1_100_000_000)),
        headers: Some(Nanos(1_100_000_000)),
        status: Some(200),
        ended: Some(Nanos(4_000_000_000)),
        ..prepared.due(Nanos(1_000_000_000), None).open()
    }))
}

fn take(replies: u64, artifacts: &Path) -> Result<()> {
    let resolved = resolved(artifacts)?;
    let backlog = Backlog::new(Clock::start(), BOUND);
    let folder = tempfile::tempdir()?;
    let mut decoder = Decoder {
        spare: Frames::default(),
        dialect: resolved.parts.backend.open()?,
        shared: DecodeState::new(
            FailureLimit::new(Signal::for_task()),
            Routes::new(resolved.parts.places(), Version::Http1, resolved.parts.secrets.clone()),
            Arc::default(),
            None,
            &backlog,
            folder.path(),
        ),
    };
    let (announcer, _newsfeed) = newsfeed(&Signal::for_task());
    let (sessions, _events) = Sessions::new(announcer, Memory::new(u64::MAX), (1, false));
    let (inboxes, queue) = Inboxes::new(&backlog, true, &sessions);
    let mut last = Frames::default();
    Framer::new(Framing::EventStream).push(Nanos::ZERO, end(), &mut last)?;
    let batch = frames(BATCH)?;
    let mut answered = 0;
    for key in 0..replies {
        let reply = inboxes.open(key);
        let mut batches = vec![batch.clone(); (EVENTS / BATCH) as usize];
        batches.push(last.clone());
        for frames in batches {
            let held = backlog.queue(frames.memory());
            reply.frames(frames, Nanos::ZERO, held);
            decoder.work(&queue.recv()?);
        }
        reply.closed(open()?, End::Whole { ends_answer: false });
        let exchange = decoder.work(&queue.recv()?);
        answered += u64::from(exchange.is_some_and(|exchange| exchange.is_ok()));
    }
    if answered != replies {
        bail!("{answered} of {replies} replies were answers");
    }
    Ok(())
}

fn record(exchanges: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    recorded(folder.path(), exchanges)
}

/// Summarises one run again and again: what recording it takes is the same however often.
fn summarize(exchanges: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    recorded(folder.path(), SUMMARISED)?;
    let run = serde_json::json!({
        "backend": "openai", "arrival": "all at once", "loop": "open", "streamed": true, "ignore-eos": false,
        "percentiles": [50.0, 90.0, 99.0], "interrupted": false,
    });
    let facts = RunFacts::from(serde_json::from_value::<Run>(run)?);
    for _ in 0..exchanges / SUMMARISED {
        let summary = RunFolder::at(folder.path()).summarize(&facts)?;
        if summary.tokens.output.total != Some(SUMMARISED * EVENTS) {
            bail!("{:?} of {SUMMARISED} exchanges", summary.tokens.output);
        }
    }
    Ok(())
}

fn identities() -> Identities {
    let ids = RequestIds { request: vec!["x-request-id".to_owned()], ..RequestIds::default() };
    let run = RunId::new(*b"0123456789abcdef");
    Identities::new(run, &ids, std::iter::empty())
}

fn member(index: u64) -> Member<'static> {
    Member {
        phase: Phase::Measure,
        index,
        root: index,
        session: None,
        parent: None,
        beginning: None,
    }
}

fn ids(requests: u64) -> Result<()> {
    let identities = identities();
    for index in 0..requests {
        let mut ids = identities.ids(&member(index));
        if identities.fields(&mut ids, |_| false).len() != 1 {
            bail!("{ids:?} are not sent");
        }
    }
    Ok(())
}

fn recorded(folder: &Path, exchanges: u64) -> Result<()> {
    let recorder = Recorder::create(folder)?;
    let mut exchange = answered()?;
    let identities = identities();
    let (sender, receiver) = crossbeam_channel::unbounded();
    for index in 0..exchanges {
        exchange.index = index;
        exchange.ids = identities.ids(&member(index));
        sender.send(exchange.clone())?;
    }
    drop(sender);
    recorder.run(&receiver, |_| {})?;
    Ok(())
}

/// An exchange whose reply was read.
fn answered() -> Result<Box<Exchange>> {
    let mut reply = Reply {
        usage: Some(Usage { output_tokens: Some(EVENTS as u32), ..Usage::default() }),
        ..Reply::default()
    };
    for number in 0..EVENTS {
        reply.events.push(Event {
            // Not quite regular, as gaps between tokens are.
            at: Nanos(1_100_000_000 + number * 20_000_000 + number * number % 7_919 * 1_000),
            kind: Kind::Text,
            tokens: None,
            bytes: 6,
        });
        reply.output.push_str(" token");
    }
    Ok(Box::new(open()?.finish(reply, Outcome::Ok)))
}

/// A server that has sent everything: each read gives the next piece.
struct Replies {
    pieces: u64,
    chunk: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl AsyncRead for Replies {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.begun {
            self.begun = true;
            buf.put_slice(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            );
        } else if self.pieces > 0 {
            self.pieces -= 1;
            buf.put_slice(&self.chunk);
        } else if !self.ended {
            self.ended = true;
            buf.put_slice(b"0\r\n\r\n");
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Replies {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Connects to a server that sends this number of chunks.
struct Chunks(u64);

impl Connect for Chunks {
    type Io = StampedStream<Replies>;

    fn version(&self) -> Version {
        Version::Http1
    }

    async fn connect(
        &self,
        _: u32,
        clock: Clock,
        _: Option<&Poller>,
    ) -> Result<NewConnection<Self::Io>, String> {
        let event = event();
        let mut chunk = format!("{:x}\r\n", event.len()).into_bytes();
        chunk.extend(event);
        chunk.extend(b"\r\n");
        let replies = Replies { pieces: self.0, chunk, begun: false, ended: false };
        let wire = Wire::new(clock);
        Ok(NewConnection {
            io: StampedStream::new(replies, &wire),
            wire,
            facts: model::exchange::Connection::default(),
            readiness: None,
        })
    }
}

fn read_chunks(units: u64) -> Result<()> {
    struct Count(u64);
    impl Sink for Count {
        fn take(&mut self, _: Nanos, bytes: &[u8]) -> Result<(), String> {
            self.0 += bytes.len() as u64;
            Ok(())
        }
    }
    let mut came = Count(0);
    let read = async {
        let mut connection = Connection::open(&Chunks(units), 0, Clock::start(), None).await?;
        let marks = Rc::default();
        let request = Request::Http1 {
            head: Bytes::from_static(b"POST / HTTP/1.1\r\n\r\n"),
            body: Bytes::new(),
        };
        connection.send(request, &marks).await.map_err(|_| "no reply came".to_owned())?;
        std::future::poll_fn(|cx| connection.poll_body(cx, &marks, &mut came))
            .await
            .map_err(|broke| format!("{broke:?}"))
    };
    pollster::block_on(read).map_err(anyhow::Error::msg)?;
    if came.0 != units * event().len() as u64 {
        bail!("{} bytes of {units} chunks came", came.0);
    }
    Ok(())
}
