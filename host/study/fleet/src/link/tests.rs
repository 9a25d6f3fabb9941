//! Whole fleets on this machine: real sockets, real TLS, and a proxy that cuts connections.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use model::units::Nanos;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::*;
use crate::place::{Place, Starter};
use crate::rendezvous::{Event, Rules};
use crate::token::Token;
use crate::wire::Interrupt;
use model::clock::Clock;

#[tokio::test]
async fn four_agents_are_one_run() {
    let bench = Setup::new();
    let (gathered, agents) = bench.fleet(4).await;
    assert_eq!(gathered.agents().len(), 4);
    assert_eq!(gathered.agents()[3].facts, json!({"cores": 2}));
    assert_eq!(gathered.agents()[2].who.to_string(), "rank 2 (node2)");
    let at = bench.soon();
    let mut running = gathered.start(at);
    let mut tasks = Vec::new();
    for (rank, agent) in (0..4_u32).zip(agents) {
        let (joined, start, clock) = agent.await.unwrap().unwrap();
        assert_eq!(joined.slice(), (rank, 4));
        assert_eq!((joined.began(), joined.order()), (BEGAN, Some("7")));
        // The true offset lies between two readings, and the agent's instant within its bound.
        let before = i128::from(bench.clock.now().0);
        let theirs = i128::from(clock.now().0);
        let after = i128::from(bench.clock.now().0);
        let lead = i128::from(start.at.0) - i128::from(at.0);
        let bound = i128::from(start.bound.0);
        assert!(lead >= theirs - after - bound && lead <= theirs - before + bound);
        let path = bench.folder.path().join(format!("written{rank}"));
        tasks.push(tokio::spawn(async move {
            joined.records(&path);
            let reporter = joined.reporter();
            for part in content(rank, 200_000).chunks(30_000) {
                append(&path, part);
                reporter.tell(json!({"bytes": part.len()}));
                tokio::task::yield_now().await;
            }
            joined.finish(json!({"rank": rank})).await
        }));
    }
    let events = events(&mut running).await;
    assert_eq!(events.len(), 5, "{events:?}");
    assert_eq!(running.records(), [200_000; 4]);
    let board = running.board().read();
    let endings = running.finish().await;
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    for (rank, ending) in (0..4_u32).zip(endings) {
        let latest = &board[&rank];
        // The last figures, however many came.
        let figures = latest.figures.as_deref();
        assert_eq!(figures, Some(&json!({"bytes": 200_000 % 30_000})));
        assert!(latest.number > 0 && latest.at > Nanos::ZERO);
        assert_eq!((latest.finished, latest.lost), (true, false));
        assert_eq!(ending.outcome, Outcome::Finished(json!({"rank": rank})));
        assert_eq!(ending.bytes, 200_000);
        assert!(ending.at_start.is_some());
        assert_eq!(bench.records(rank), content(rank, 200_000));
    }
}

/// Every connection is cut after some hundred kilobytes, at whatever byte that is.
#[tokio::test]
async fn records_continue_over_broken_links() {
    let bench = Setup::new();
    let (coordinator, port) = bench.bound().await;
    let proxy = Proxy::new(port, 400_007).await;
    let (mut running, joined) = bench.running(coordinator, proxy.port).await;
    let cut = proxy.connections();
    let path = bench.folder.path().join("written");
    append(&path, &content(0, 1_000_000));
    joined.records(&path);
    while running.records()[0] < 700_000 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    proxy.cut();
    append(&path, &content(0, 3_000_000)[1_000_000..]);
    let finishing = tokio::spawn(joined.finish(json!("done")));
    let events = events(&mut running).await;
    assert!(matches!(events[..], [Event::Finished { .. }, Event::Over]), "{events:?}");
    let endings = running.finish().await;
    finishing.await.unwrap().unwrap();
    assert!(proxy.connections() > cut + 5);
    assert_eq!(endings[0].bytes, 3_000_000);
    assert!(bench.records(0) == content(0, 3_000_000));
}

#[tokio::test]
async fn reports_a_lost_agent_and_continues() {
    let bench = Setup::new();
    let (gathered, mut agents) = bench.fleet(2).await;
    let mut running = gathered.start(bench.soon());
    let (lost, _, _) = agents.pop().unwrap().await.unwrap().unwrap();
    let (stays, _, _) = agents.pop().unwrap().await.unwrap().unwrap();
    let path = bench.folder.path().join("written");
    append(&path, &content(1, 100_000));
    lost.records(&path);
    while running.records()[1] < 100_000 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(lost);
    let event = running.event().await.unwrap();
    let Event::Lost { who, from, .. } = &event else {
        panic!("{event:?}");
    };
    assert_eq!(who.to_string(), "rank 1 (node1)");
    assert!(*from > Nanos::ZERO && *from < bench.clock.now());
    let board = running.board();
    assert!(board.read()[&1].lost && !board.read().get(&0).is_some_and(|latest| latest.lost));
    let finishing = tokio::spawn(stays.finish(Value::Null));
    assert_eq!(events(&mut running).await.len(), 2);
    let endings = running.finish().await;
    finishing.await.unwrap().unwrap();
    assert_eq!(endings[0].outcome, Outcome::Finished(Value::Null));
    assert!(matches!(endings[1].outcome, Outcome::Lost { .. }));
    // Earlier records are kept.
    assert_eq!(bench.records(1), content(1, 100_000));
}

#[tokio::test]
async fn refuses_other_versions_and_plans_by_name() {
    let bench = Setup::new();
    let (coordinator, port) = bench.bound().await;
    let first = tokio::spawn(ready(bench.join(port, 0, 3)));
    let mut old = bench.join(port, 1, 3);
    old.version = "0.9".to_owned();
    let old = tokio::spawn(ready(old));
    let other = bench.join(port, 2, 3);
    let other = tokio::spawn(async move {
        let mut joined = Agent::join(other).await?;
        joined.prepared("another", Value::Null);
        joined.ready().await
    });
    let refusal = coordinator.gather(rules(3), bench.offer()).await.err().unwrap();
    let words = refusal.to_string();
    let expected = [
        "rank 1 (node1) runs version 0.9, the coordinator version 1.0",
        "rank 2 (node2) made another plan than rank 0: its digest is another, rank 0's is plan",
    ];
    for expected in expected {
        assert!(words.contains(expected), "{words}");
    }
    // Every process gets the reasons, and the old version at least its own.
    let message = first.await.unwrap().err().unwrap().to_string();
    assert!(expected.iter().all(|words| message.contains(words)), "{message}");
    let message = other.await.unwrap().err().unwrap().to_string();
    assert!(message.contains(expected[1]), "{message}");
    let message = old.await.unwrap().err().unwrap().to_string();
    assert!(message.contains(expected[0]), "{message}");
}

#[tokio::test]
async fn both_sides_refuse_another_token() {
    let bench = Setup::new();
    let (coordinator, port) = bench.bound().await;
    let mut stranger = bench.join(port, 0, 1);
    stranger.token = token('b');
    let mut rules = rules(1);
    rules.arrive = Nanos::from_secs_f64(2.0);
    let (refused, gathered) =
        tokio::join!(Agent::join(stranger), coordinator.gather(rules, bench.offer()));
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("tokens differ"), "{refused}");
    let refusal = gathered.err().unwrap().to_string();
    assert!(refusal.contains("rank 0 did not connect within 2 s"), "{refusal}");
    assert!(refusal.contains("was turned away: tokens differ"), "{refusal}");
}

#[tokio::test]
async fn first_and_second_interrupts_reach_all() {
    let bench = Setup::new();
    let (gathered, agents) = bench.fleet(3).await;
    let mut running = gathered.start(bench.soon());
    let mut joined = Vec::new();
    for agent in agents {
        joined.push(agent.await.unwrap().unwrap().0);
    }
    for times in 1..=2 {
        running.interrupt("SIGINT");
        for agent in &mut joined {
            let interrupt = agent.interrupted(times - 1).await;
            assert_eq!((interrupt.times, &*interrupt.why), (times, "SIGINT"));
        }
    }
    // The batch system's signal at one of the machines.
    joined[2].interrupt("SIGTERM");
    let interrupt = joined[0].interrupted(2).await;
    assert_eq!(interrupt.why, "rank 2 (node2): SIGTERM");
    let finishing: Vec<_> = (joined.into_iter())
        .map(|agent| tokio::spawn(agent.finish(json!("interrupted"))))
        .collect();
    let events = events(&mut running).await;
    assert!(matches!(&events[0], Event::Interrupted { why, .. } if why == "SIGTERM"));
    running.finish().await;
    for finishing in finishing {
        finishing.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_coordinator_may_start_later() {
    let bench = Setup::new();
    let (_, port) = bench.bound().await;
    let agent = tokio::spawn(ready(bench.join(port, 0, 1)));
    tokio::time::sleep(Duration::from_millis(200)).await;
    let coordinator = bench.bind(&format!("127.0.0.1:{port}")).await;
    let gathered = coordinator.gather(rules(1), bench.offer()).await.unwrap();
    let _running = gathered.start(bench.soon());
    agent.await.unwrap().unwrap();
}

#[tokio::test]
async fn without_a_coordinator_joining_ends_with_its_address() {
    let bench = Setup::new();
    let (_, port) = bench.bound().await;
    let mut join = bench.join(port, 1, 2);
    join.patience = Duration::from_secs(1);
    let error = Agent::join(join).await.err().unwrap().to_string();
    let expected = format!("no coordinator answered at 127.0.0.1:{port} within 1 s");
    assert!(error.starts_with(&expected), "{error}");
}

#[tokio::test]
async fn agents_end_without_their_coordinator() {
    let bench = Setup::new();
    let (coordinator, port) = bench.bound().await;
    let mut join = bench.join(port, 0, 1);
    join.timing.silence = Duration::from_millis(500);
    join.timing.grace = Duration::from_millis(500);
    let agent = tokio::spawn(ready(join));
    let gathered = coordinator.gather(rules(1), bench.offer()).await.unwrap();
    let running = gathered.start(bench.soon());
    let (mut joined, _, _) = agent.await.unwrap().unwrap();
    drop(running);
    let Interrupt { times, why } = joined.interrupted(0).await;
    assert!(times == 1 && why.starts_with("the coordinator has been gone for 1 s: "), "{why}");
    // The replies under way are read to their end: a lost coordinator stops the sending, once.
    tokio::select! {
        biased;
        again = joined.interrupted(1) => panic!("a second one: {again:?}"),
        () = std::future::ready(()) => {}
    }
    let error = joined.finish(Value::Null).await.unwrap_err();
    assert!(matches!(error, JoinError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn a_machine_that_declines_tells_all_why() {
    let bench = Setup::new();
    let (coordinator, port) = bench.bound().await;
    let declines = |rank, why: &str| {
        let (join, reasons) = (bench.join(port, rank, 2), vec![why.to_owned()]);
        tokio::spawn(async move {
            let joined = Agent::join(join).await.unwrap();
            joined.decline(reasons).await
        })
    };
    let keyless = declines(0, "the key is missing");
    let fileless = declines(1, "the dataset's file is missing");
    let words = coordinator.gather(rules(2), bench.offer()).await.err().unwrap().to_string();
    let expected = [
        "rank 0 (node0) cannot take part: the key is missing",
        "rank 1 (node1) cannot take part: the dataset's file is missing",
    ];
    let messages = [words, keyless.await.unwrap().to_string(), fileless.await.unwrap().to_string()];
    for words in messages {
        for expected in expected {
            assert!(words.contains(expected), "{words}");
        }
    }
}

/// A network that swallows everything: both sides notice the silence, and connect anew.
#[tokio::test]
async fn replaces_a_silent_connection() {
    let bench = Setup::new().with_silence(Duration::from_millis(400));
    let (coordinator, port) = bench.bound().await;
    let proxy = Proxy::new(port, usize::MAX).await;
    let (mut running, joined) = bench.running(coordinator, proxy.port).await;
    let before = proxy.connections();
    proxy.freeze();
    let path = bench.folder.path().join("written");
    append(&path, &content(0, 500_000));
    joined.records(&path);
    let finishing = tokio::spawn(joined.finish(json!("done")));
    let events = events(&mut running).await;
    assert!(matches!(events[..], [Event::Finished { .. }, Event::Over]), "{events:?}");
    assert!(proxy.connections() > before);
    let endings = running.finish().await;
    finishing.await.unwrap().unwrap();
    assert_eq!(endings[0].bytes, 500_000);
    assert!(bench.records(0) == content(0, 500_000));
}

/// More agents than may be in their handshake at the same time.
#[tokio::test]
async fn a_hundred_agents_come_together() {
    let bench = Setup::new();
    let (gathered, agents) = bench.fleet(100).await;
    assert_eq!(gathered.agents().len(), 100);
    let mut running = gathered.start(bench.soon());
    let mut finishing = Vec::new();
    for agent in agents {
        let (joined, _, _) = agent.await.unwrap().unwrap();
        finishing.push(tokio::spawn(joined.finish(Value::Null)));
    }
    assert_eq!(events(&mut running).await.len(), 101);
    running.finish().await;
    for finishing in finishing {
        finishing.await.unwrap().unwrap();
    }
}

/// More connections than there are places say nothing, and are held open.
#[tokio::test]
async fn silent_connections_beyond_the_limit_keep_nobody_out() {
    let bench = Setup::new();
    let (coordinator, port) = bench.bound().await;
    let mut held = Vec::new();
    for _ in 0..2 * HANDSHAKES {
        held.push(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    let agents = [0, 1].map(|rank| {
        let mut join = bench.join(port, rank, 2);
        // One attempt has to do.
        join.patience = Duration::ZERO;
        tokio::spawn(ready(join))
    });
    let gathered = coordinator.gather(rules(2), bench.offer()).await.unwrap();
    gathered.stop("enough").await;
    for agent in agents {
        let ended = agent.await.unwrap().err().unwrap();
        assert!(matches!(ended, JoinError::Interrupted(_)), "{ended}");
    }
    drop(held);
}

/// Another run's coordinator takes the address: an agent of a run waits for its own.
#[tokio::test]
async fn another_coordinator_at_the_address_does_not_end_an_agent() {
    let bench = Setup::new().with_silence(Duration::from_millis(200));
    let coordinator = bench.bind("127.0.0.1:0").await;
    let address = coordinator.address();
    let (running, mut joined) = bench.running(coordinator, address.port()).await;
    drop(running);
    let other = loop {
        match Coordinator::bind(bench.listen(&address.to_string(), 'b')).await {
            Ok(other) => break other,
            // The connections of the first are closed in a moment.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let waiting = other.gather(rules(1), bench.offer());
    let ended = async {
        let interrupt = joined.interrupted(0).await;
        (interrupt, joined.finish(Value::Null).await)
    };
    let (interrupt, ended) = tokio::select! {
        _ = waiting => panic!("the other run began"),
        ended = ended => ended,
    };
    assert!(interrupt.why.contains("has been gone"), "{interrupt:?}");
    match ended {
        Err(JoinError::Lost { why, .. }) => assert!(why.contains("tokens differ"), "{why}"),
        ended => panic!("{ended:?}"),
    }
}

/// A fault of the open connections.
#[derive(Clone, Copy)]
enum Fault {
    Cut,
    Freeze,
}

/// A proxy that cuts each connection after this number of bytes of both directions together.
struct Proxy {
    port: u16,
    connections: Arc<AtomicU32>,
    cut: watch::Sender<Fault>,
    /// The task ends with the proxy.
    _task: JoinSet<()>,
}

impl Proxy {
    async fn new(to: u16, most: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicU32::new(0));
        let (cut, cuts) = watch::channel(Fault::Cut);
        let counted = Arc::clone(&connections);
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)).await else { continue };
                tokio::spawn(pass(near, far, most, cuts.clone()));
            }
        });
        Proxy { port, connections, cut, _task: task }
    }

    fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    fn cut(&self) {
        self.cut.send_replace(Fault::Cut);
    }

    /// Passes no more bytes on open connections, and closes none.
    fn freeze(&self) {
        self.cut.send_replace(Fault::Freeze);
    }
}

async fn pass(
    mut near: TcpStream,
    mut far: TcpStream,
    most: usize,
    mut cuts: watch::Receiver<Fault>,
) {
    let (mut there, mut back) = (vec![0; 10_007], vec![0; 10_007]);
    let mut passed = 0;
    cuts.mark_unchanged();
    while passed < most {
        let (from, length) = tokio::select! {
            read = near.read(&mut there) => (true, read.unwrap_or(0)),
            read = far.read(&mut back) => (false, read.unwrap_or(0)),
            Ok(()) = cuts.changed() => {
                let fault = *cuts.borrow();
                match fault {
                    Fault::Cut => return,
                    Fault::Freeze => std::future::pending().await,
                }
            }
        };
        let kept = length.min(most - passed);
        passed += kept;
        let written = if from {
            far.write_all(&there[..kept]).await
        } else {
            near.write_all(&back[..kept]).await
        };
        if length == 0 || written.is_err() {
            return;
        }
    }
}

/// The time when the run began, as rank 0 gives it.
const BEGAN: &str = "2026-01-02T03:04:05Z";

/// Short enough for tests, and long enough for a busy machine.
fn timing() -> Timing {
    Timing {
        ping: Duration::from_millis(50),
        first_pings: Duration::from_millis(2),
        first: 8,
        grace: Duration::from_secs(2),
        retry: Duration::from_millis(50),
        records: Duration::from_millis(5),
        ..Timing::default()
    }
}

fn token(digit: char) -> Token {
    Token::parse(&digit.to_string().repeat(64), "a test").unwrap()
}

fn rules(size: u32) -> Rules {
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
struct Setup {
    folder: TempDir,
    clock: Clock,
    timing: Timing,
}

impl Setup {
    fn new() -> Self {
        Setup { folder: tempfile::tempdir().unwrap(), clock: Clock::start(), timing: timing() }
    }

    /// The setup with this limit of silence on connections.
    fn with_silence(mut self, silence: Duration) -> Self {
        self.timing.silence = silence;
        self
    }

    fn listen(&self, address: &str, digit: char) -> Listen {
        let token = token(digit);
        Listen { address: address.to_owned(), token, clock: self.clock, timing: self.timing }
    }

    async fn bind(&self, address: &str) -> Coordinator {
        Coordinator::bind(self.listen(address, 'a')).await.unwrap()
    }

    /// A coordinator at a free port.
    async fn bound(&self) -> (Coordinator, u16) {
        let coordinator = self.bind("127.0.0.1:0").await;
        let port = coordinator.address().port();
        (coordinator, port)
    }

    fn offer(&self) -> Offer {
        let records = self.folder.path().join("records");
        std::fs::create_dir_all(&records).unwrap();
        let (began, order) = (BEGAN.to_owned(), Some("7".to_owned()));
        Offer { began, order, records, most_records: 1 << 30 }
    }

    fn join(&self, port: u16, rank: u32, size: u32) -> Join {
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
    async fn fleet(&self, size: u32) -> (ReadyFleet, Vec<Ready>) {
        let (coordinator, port) = self.bound().await;
        let agents = (0..size).map(|rank| tokio::spawn(ready(self.join(port, rank, size))));
        let agents = agents.collect();
        (coordinator.gather(rules(size), self.offer()).await.unwrap(), agents)
    }

    /// A running fleet of one agent, which joins at that port.
    async fn running(&self, coordinator: Coordinator, port: u16) -> (Running, Member) {
        let agent = tokio::spawn(ready(self.join(port, 0, 1)));
        let fleet = coordinator.gather(rules(1), self.offer()).await.unwrap();
        let running = fleet.start(self.soon());
        (running, agent.await.unwrap().unwrap().0)
    }

    /// A moment from now, by the coordinator's clock.
    fn soon(&self) -> Nanos {
        self.clock.now() + Nanos(50_000_000)
    }

    fn records(&self, rank: u32) -> Vec<u8> {
        let name = format!("records/records-{rank:04}.jsonl.zst");
        std::fs::read(self.folder.path().join(name)).unwrap()
    }
}

type Ready = tokio::task::JoinHandle<Result<(Member, Start, Clock), JoinError>>;

/// An agent as far as its start.
async fn ready(join: Join) -> Result<(Member, Start, Clock), JoinError> {
    let clock = join.clock;
    let mut member = Agent::join(join).await?;
    member.prepared("plan", json!({"cores": 2}));
    let start = member.ready().await?;
    Ok((member, start, clock))
}

/// All events up to the last.
async fn events(running: &mut Running) -> Vec<Event> {
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
fn content(rank: u32, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u32).wrapping_mul(31).wrapping_add(rank) as u8).collect()
}

fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// Returns the numbers of the connections that are still in.
fn inside(lobby: &Lobby) -> Vec<Conn> {
    lock(&lobby.0).iter().map(|waiting| waiting.conn).collect()
}

#[test]
fn closes_the_oldest_silent_connection() {
    let lobby = Lobby::default();
    let guests: Vec<Guest> =
        (0..HANDSHAKES as u64).map(|conn| lobby.enter(conn, address(conn as u8)).0).collect();
    guests[0].spoke();
    let (new, _) = lobby.enter(100, address(200));
    assert_eq!(inside(&lobby).len(), HANDSHAKES);
    let inside_now = inside(&lobby);
    assert!(inside_now.contains(&0) && !inside_now.contains(&1) && inside_now.contains(&100));
    // Where all have spoken, age decides.
    guests.iter().for_each(Guest::spoke);
    new.spoke();
    let (_newer, _) = lobby.enter(101, address(201));
    assert!(!inside(&lobby).contains(&0));
    drop(guests);
    assert_eq!(inside(&lobby), [100, 101]);
}

#[test]
fn an_address_at_its_limit_loses_its_own_connection() {
    let lobby = Lobby::default();
    let (agent, _) = lobby.enter(1, address(1));
    let held: Vec<Guest> =
        (10..10 + 3 * HANDSHAKES as u64).map(|conn| lobby.enter(conn, address(2)).0).collect();
    let inside = inside(&lobby);
    assert_eq!(inside.len(), 1 + MOST_OF_ADDRESS);
    assert!(inside.contains(&1), "the oldest, of another address");
    drop((agent, held));
}
