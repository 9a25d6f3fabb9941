//! A coordinator with its folder, agents that join it, and test records.

use std::path::Path;
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use serde_json::json;
use tempfile::TempDir;

use crate::link::*;
use crate::place::{Place, Starter};
use crate::rendezvous::{Event, Rules};
use crate::token::Token;

/// The time when the run began, as rank 0 gives it.
pub(super) const BEGAN: &str = "2026-01-02T03:04:05Z";

/// Short enough for tests, and long enough for a busy machine.
pub(super) fn timing() -> Timing {
    Timing {
        handshake: Duration::from_secs(10),
        first_byte: Duration::from_secs(3),
        ping: Duration::from_millis(50),
        first_pings: Duration::from_millis(2),
        first: 8,
        silence: Duration::from_secs(10),
        grace: Duration::from_secs(2),
        retry: Duration::from_millis(50),
        records: Duration::from_millis(5),
    }
}

pub(super) fn token(digit: char) -> Token {
    Token::parse(&digit.to_string().repeat(64), "a test").unwrap()
}

pub(super) fn rules(size: u32) -> Rules {
    Rules {
        version: "1.0".to_owned(),
        size,
        arrive: Nanos::from_secs_f64(60.0),
        prepare: Nanos::from_secs_f64(60.0),
        settle: Nanos::from_secs_f64(1.0),
        grace: timing().grace.into(),
        smallest: Nanos::from_secs_f64(10.0),
        answers: 4,
        measure: Nanos::from_secs_f64(10.0),
    }
}

/// A coordinator's side of a test, with its folder.
pub(super) struct Setup {
    pub(super) folder: TempDir,
    pub(super) clock: Clock,
    pub(super) timing: Timing,
}

impl Setup {
    pub(super) fn new() -> Self {
        Setup { folder: tempfile::tempdir().unwrap(), clock: Clock::start(), timing: timing() }
    }

    /// The setup with this limit of silence on connections.
    pub(super) fn with_silence(mut self, silence: Duration) -> Self {
        self.timing.silence = silence;
        self
    }

    pub(super) fn listen(&self, address: &str, digit: char) -> Listen {
        let token = token(digit);
        Listen { address: address.to_owned(), token, clock: self.clock, timing: self.timing }
    }

    pub(super) async fn bind(&self, address: &str) -> Coordinator {
        Coordinator::bind(self.listen(address, 'a')).await.unwrap()
    }

    /// A coordinator at a free port.
    pub(super) async fn bound(&self) -> (Coordinator, u16) {
        let coordinator = self.bind("127.0.0.1:0").await;
        let port = coordinator.address().port();
        (coordinator, port)
    }

    pub(super) fn offer(&self) -> Offer {
        let records = self.folder.path().join("records");
        std::fs::create_dir_all(&records).unwrap();
        Offer {
            began: BEGAN.to_owned(),
            order: Some("7".to_owned()),
            records,
            most_records: 1 << 30,
        }
    }

    pub(super) fn join(&self, port: u16, rank: u32, size: u32) -> Join {
        let host = "127.0.0.1".to_owned();
        Join {
            place: Place { rank, size, host, port, starter: Starter::Explicit },
            token: token('a'),
            version: "1.0".to_owned(),
            host: format!("node{rank}"),
            clock: Clock::start(),
            patience: Duration::from_secs(30),
            timing: self.timing,
        }
    }

    /// A fleet that is ready, with its agents.
    pub(super) async fn fleet(&self, size: u32) -> (ReadyFleet, Vec<Ready>) {
        let (coordinator, port) = self.bound().await;
        let agents = (0..size).map(|rank| tokio::spawn(ready(self.join(port, rank, size))));
        let agents = agents.collect();
        (coordinator.gather(rules(size), self.offer()).await.unwrap(), agents)
    }

    /// A running fleet of one agent, which joins at that port.
    pub(super) async fn running(&self, coordinator: Coordinator, port: u16) -> (Running, Member) {
        let agent = tokio::spawn(ready(self.join(port, 0, 1)));
        let fleet = coordinator.gather(rules(1), self.offer()).await.unwrap();
        let running = fleet.start(self.soon());
        (running, agent.await.unwrap().unwrap().0)
    }

    /// A moment from now, by the coordinator's clock.
    pub(super) fn soon(&self) -> Nanos {
        self.clock.now() + Nanos(50_000_000)
    }

    pub(super) fn records(&self, rank: u32) -> Vec<u8> {
        let name = format!("records/records-{rank:04}.jsonl.zst");
        std::fs::read(self.folder.path().join(name)).unwrap()
    }
}

pub(super) type Ready = tokio::task::JoinHandle<Result<(Member, Start, Clock), JoinError>>;

/// An agent as far as its start.
pub(super) async fn ready(join: Join) -> Result<(Member, Start, Clock), JoinError> {
    let clock = join.clock;
    let mut member = Agent::join(join).await?;
    member.prepared("plan", json!({"cores": 2}));
    let start = member.ready().await?;
    Ok((member, start, clock))
}

/// All events up to the last.
pub(super) async fn events(running: &mut Running) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = running.event().await {
        let over = event == Event::Over;
        events.push(event);
        if over {
            break;
        }
    }
    events
}

/// Test records: bytes that differ by rank and place.
pub(super) fn content(rank: u32, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u32).wrapping_mul(31).wrapping_add(rank) as u8).collect()
}

pub(super) fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}
