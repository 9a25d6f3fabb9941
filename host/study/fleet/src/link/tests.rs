//! Whole fleets on this machine: real sockets, real TLS, and a proxy that cuts connections.

mod bench;
mod proxy;

use model::units::Nanos;
use serde_json::{Value, json};

use super::*;
use crate::rendezvous::Event;
use crate::wire::Interrupt;
use bench::{BEGAN, Setup, append, content, events, ready, rules, token};
use proxy::Proxy;

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
        // The true offset lies between two readings; the agent's instant is within the bound of
        // it.
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
    let (mut running, joined) = bench.running(coordinator, proxy.port()).await;
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

/// A network that swallows everything and closes nothing: both sides notice the silence, and a new
/// connection continues.
#[tokio::test]
async fn replaces_a_silent_connection() {
    let bench = Setup::new().with_silence(Duration::from_millis(400));
    let (coordinator, port) = bench.bound().await;
    let proxy = Proxy::new(port, usize::MAX).await;
    let (mut running, joined) = bench.running(coordinator, proxy.port()).await;
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

/// Another run's coordinator has the address for a while: an agent that belongs to a run waits for
/// its own.
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
