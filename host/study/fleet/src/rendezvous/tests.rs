//! Every path of the rendezvous in virtual time; the tests after the start are in `running`.

mod running;

use serde_json::json;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn seconds(count: u64) -> Nanos {
    Nanos(count * SECOND)
}

fn rules(size: u32) -> Rules {
    Rules {
        version: "1.0".to_owned(),
        size,
        arrive: seconds(60),
        prepare: seconds(600),
        settle: seconds(3),
        grace: seconds(20),
        smallest: seconds(1),
        answers: 2,
        measure: seconds(5),
    }
}

/// A rendezvous with its virtual time and its actions.
struct Scene {
    machine: Rendezvous,
    now: u64,
    done: Vec<Action>,
}

impl Scene {
    fn new(rules: Rules) -> Self {
        Scene { machine: Rendezvous::new(rules, Nanos(0)), now: 0, done: Vec::new() }
    }

    fn on(&mut self, input: Input) -> Vec<Action> {
        let actions = self.machine.on(Nanos(self.now), input);
        self.done.extend(actions.clone());
        actions
    }

    /// Lets time pass, second by second.
    fn wait(&mut self, count: u64) -> Vec<Action> {
        let mut all = Vec::new();
        for _ in 0..count {
            self.now += SECOND;
            all.extend(self.on(Input::Tick));
        }
        all
    }

    fn hello(rank: u32, size: u32) -> Hello {
        Hello {
            protocol: PROTOCOL,
            version: "1.0".to_owned(),
            rank,
            size,
            host: format!("node{rank}"),
            instance: u64::from(rank) + 100,
        }
    }

    fn greet(&mut self, conn: Conn, rank: u32) -> Vec<Action> {
        let size = self.machine.rules.size;
        self.on(Input::Hello(conn, Self::hello(rank, size)))
    }

    fn prepare(&mut self, conn: Conn, plan: &str) -> Vec<Action> {
        let message = Message::Prepared { plan: plan.to_owned(), facts: json!({"cores": 2}) };
        self.on(Input::Message(conn, message))
    }

    /// An agent's clock answers with this round trip and this lead.
    fn answer(&mut self, conn: Conn, ahead: u64, trip: u64) -> Vec<Action> {
        let origin = self.now;
        let (came, arrived) = (Nanos(origin + trip / 2 + ahead), Nanos(origin + trip));
        let exchange = Exchange { origin: Nanos(origin), received: came, sent: came, arrived };
        self.now += trip;
        self.on(Input::Clock(conn, exchange))
    }

    /// Agents 0 to `size` on connections 10, 11 and so on, ready, with clocks an hour apart.
    fn ready(size: u32) -> Scene {
        let mut scene = Scene::new(rules(size));
        for rank in 0..size {
            let conn = 10 + Conn::from(rank);
            scene.greet(conn, rank);
            for _ in 0..2 {
                scene.answer(conn, u64::from(rank) * 3600 * SECOND, 200_000);
            }
            scene.prepare(conn, "p");
        }
        for rank in 0..size {
            scene.on(Input::Message(10 + Conn::from(rank), Message::Ready));
        }
        scene
    }

    fn running(size: u32) -> Scene {
        let mut scene = Scene::ready(size);
        scene.on(Input::Start(Nanos(scene.now + 2 * SECOND)));
        scene
    }

    fn events(&self) -> Vec<&Event> {
        (self.done.iter())
            .filter_map(|done| if let Action::Event(it) = done { Some(it) } else { None })
            .collect()
    }

    fn reasons(&self) -> Vec<String> {
        let reasons = |action: &Action| match action {
            Action::GaveUp(reasons) => Some(reasons.clone()),
            _ => None,
        };
        let reasons = self.done.iter().find_map(reasons).expect("it gave up");
        reasons.iter().map(ToString::to_string).collect()
    }
}

/// True if the first action refuses a connection, with a first reason that has this text.
fn is_refused(actions: &[Action], conn: Conn, text: &str) -> bool {
    matches!(&actions[0], Action::Send(to, Message::Refused { reasons })
        if *to == conn && reasons[0].contains(text))
}

fn finished() -> Finished {
    Finished { ending: json!("completed"), records: 0, sha256: String::new() }
}

#[test]
fn all_start_at_one_instant_by_their_own_clocks() {
    let mut scene = Scene::ready(3);
    assert!(scene.done.contains(&Action::Gathered));
    let at = scene.now + 2 * SECOND;
    let actions = scene.on(Input::Start(Nanos(at)));
    assert_eq!(actions.len(), 3);
    for (rank, action) in (0..3_u64).zip(actions) {
        let Action::Send(conn, Message::Start { at: theirs, bound }) = action else {
            panic!("{action:?}");
        };
        assert_eq!(conn, 10 + rank);
        let error = theirs.0.abs_diff(at + rank * 3600 * SECOND);
        assert!(error <= bound.0 && bound.0 < 200_000, "{error} of {bound:?}");
    }
    for conn in 10..13 {
        let actions = scene.on(Input::Finished(conn, finished()));
        assert_eq!(actions[0], Action::Send(conn, Message::Bye));
    }
    assert_eq!(scene.events().last(), Some(&&Event::Over));
    assert_eq!(scene.events().len(), 4);
}

#[test]
fn names_missing_processes() {
    let mut scene = Scene::new(rules(4));
    scene.greet(1, 0);
    scene.greet(2, 1);
    assert!(scene.wait(59).is_empty());
    let actions = scene.wait(1);
    let reasons = ["rank 2 did not connect within 60 s", "rank 3 did not connect within 60 s"];
    assert_eq!(scene.reasons(), reasons);
    let reasons: Vec<String> = reasons.map(str::to_owned).into();
    assert!(actions.contains(&Action::Send(1, Message::Refused { reasons })));
    // A late process gets the reasons as well.
    let late = scene.greet(9, 3);
    let Action::Send(9, Message::Refused { reasons }) = &late[0] else { panic!("{late:?}") };
    assert_eq!(reasons.len(), 2);
}

#[test]
fn refuses_every_mismatch_at_once_by_name() {
    let mut scene = Scene::new(rules(6));
    scene.greet(10, 0);
    let other = Hello { version: "0.9".to_owned(), ..Scene::hello(1, 6) };
    let refused = scene.on(Input::Hello(11, other));
    let text = "rank 1 (node1) runs version 0.9, the coordinator version 1.0";
    assert!(is_refused(&refused, 11, text));
    assert_eq!(refused[1], Action::Close(11));
    scene.on(Input::Hello(12, Hello { protocol: 1, ..Scene::hello(2, 6) }));
    scene.on(Input::Hello(13, Scene::hello(3, 7)));
    scene.greet(14, 4);
    let other = Hello { instance: 1, host: "twin".to_owned(), ..Scene::hello(4, 6) };
    scene.on(Input::Hello(15, other));
    scene.greet(16, 5);
    scene.prepare(10, "p");
    // Without a run nobody waits for the slowest, but a process may be a moment late.
    assert!(scene.wait(2).is_empty());
    scene.on(Input::Stranger("10.0.0.9:4".to_owned(), "tokens differ".to_owned()));
    scene.prepare(16, "q");
    let reasons = scene.reasons();
    let expected = [
        "rank 1 (node1) runs version 0.9, the coordinator version 1.0: install",
        "rank 2 (node2) speaks version 1 of the protocol, the coordinator version 2: install",
        "rank 3 (node3) counts 7 processes, the coordinator 6: start all of them",
        "rank 4 (node4) and a second process on twin have the same rank: give each its own",
        "rank 5 (node5) made another plan than rank 0: its digest is q, rank 0's is p; the same command line",
        "10.0.0.9:4 was turned away: tokens differ",
    ];
    assert_eq!(reasons.len(), expected.len(), "{reasons:#?}");
    for (reason, expected) in reasons.iter().zip(expected) {
        assert!(reason.starts_with(expected), "{reason}");
    }
}

/// The error names the differing parts, if the agents send their plans' parts.
#[test]
fn refuses_another_plan_with_the_difference() {
    let mut scene = Scene::new(rules(2));
    for (rank, plan, seed) in [(0, "p", "7"), (1, "q", "9")] {
        let conn = Conn::from(rank) + 10;
        scene.greet(conn, rank);
        let facts = json!({"plan": {"load.seed": seed, "load.warmup": "1"}});
        scene.on(Input::Message(conn, Message::Prepared { plan: plan.to_owned(), facts }));
    }
    let reasons = scene.reasons();
    let expected = "rank 1 (node1) made another plan than rank 0: load.seed is 9, on rank 0 7; the same command line";
    assert!(reasons[0].starts_with(expected), "{reasons:?}");
}

/// One version has several builds, but builds for several platforms are never alike.
#[test]
fn another_build_is_refused() {
    for (theirs, is_refused) in [
        ("1.0 linux-x86_64 aa", false),
        ("1.0 linux-x86_64 bb", true),
        ("1.0 linux-aarch64 bb", false),
        ("1.1 linux-x86_64 aa", true),
    ] {
        let version = "1.0 linux-x86_64 aa".to_owned();
        let mut scene = Scene::new(Rules { version, ..rules(2) });
        let hello = Hello { version: theirs.to_owned(), ..Scene::hello(1, 2) };
        let actions = scene.on(Input::Hello(11, hello));
        let refused = matches!(&actions[0], Action::Send(11, Message::Refused { .. }));
        assert_eq!(refused, is_refused, "{theirs}");
    }
}

/// A process that is gone before the start may come again; earlier messages count no more.
#[test]
fn a_process_may_be_started_again_before_the_start() {
    let mut scene = Scene::new(rules(2));
    scene.greet(10, 0);
    scene.greet(11, 1);
    scene.prepare(11, "q");
    scene.on(Input::Broken(11, "killed".to_owned()));
    let again = Hello { instance: 7, ..Scene::hello(1, 2) };
    let actions = scene.on(Input::Hello(12, again));
    assert_eq!(actions, [Action::Forget(1), Action::Welcome(12, 1)]);
    let seat = &scene.machine.seats()[1];
    assert_eq!((seat.step, seat.plan.as_ref()), (Step::Welcomed, None));
    // A connected process is another matter: two processes have the same rank.
    let third = Hello { instance: 8, ..Scene::hello(1, 2) };
    let actions = scene.on(Input::Hello(13, third));
    assert!(is_refused(&actions, 13, ""));
}

#[test]
fn refuses_an_inexact_clock_with_both_numbers() {
    let mut scene = Scene::new(rules(2));
    for (rank, trip) in [(0, 1000), (1, 300_000_000)] {
        let conn = Conn::from(rank);
        scene.greet(conn, rank);
        for _ in 0..3 {
            scene.answer(conn, 0, trip);
        }
        scene.prepare(conn, "p");
        scene.on(Input::Message(conn, Message::Ready));
    }
    // There is time for better answers.
    assert!(scene.wait(4).is_empty());
    scene.wait(1);
    let reasons = scene.reasons();
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].starts_with("rank 1 (node1): its clock is known to within 150."));
    assert!(reasons[0].contains("1000.000 ms, allows 100.000 ms"), "{}", reasons[0]);
}

#[test]
fn a_better_answer_in_time_saves_the_run() {
    let mut scene = Scene::new(rules(1));
    scene.greet(1, 0);
    scene.prepare(1, "p");
    scene.on(Input::Message(1, Message::Ready));
    scene.answer(1, 0, 300_000_000);
    scene.wait(3);
    assert_eq!(scene.answer(1, 0, 1000), [Action::Gathered]);
}

#[test]
fn an_agent_without_a_clock_is_refused() {
    let mut scene = Scene::new(rules(1));
    scene.greet(1, 0);
    scene.prepare(1, "p");
    scene.on(Input::Message(1, Message::Ready));
    let impossible =
        Exchange { origin: Nanos(0), received: Nanos(100), sent: Nanos(0), arrived: Nanos(1) };
    scene.on(Input::Clock(1, impossible));
    scene.wait(5);
    let words = "rank 0 (node0) answered 0 questions about its clock; 2 are needed";
    assert_eq!(scene.reasons(), [words]);
}

#[test]
fn names_a_process_that_is_never_ready_with_its_step() {
    let mut scene = Scene::new(rules(3));
    for rank in 0..3 {
        scene.greet(Conn::from(rank), rank);
    }
    scene.prepare(0, "p");
    scene.on(Input::Message(0, Message::Ready));
    scene.prepare(1, "p");
    scene.wait(600);
    let expected = [
        "rank 1 (node1) was not ready within 600 s: it was opening connections",
        "rank 2 (node2) was not ready within 600 s: it was preparing",
    ];
    assert_eq!(scene.reasons(), expected);
}

/// On a busy machine rank 0's own agent may be the last to arrive: it gets the reasons as well.
#[test]
fn nothing_is_given_up_before_rank_0_is_there() {
    let mut scene = Scene::new(rules(2));
    scene.greet(11, 1);
    scene.on(Input::Message(11, Message::Refused { reasons: vec!["no key".to_owned()] }));
    assert!(scene.wait(50).is_empty());
    scene.greet(10, 0);
    let actions = scene.wait(3);
    assert_eq!(scene.reasons(), ["rank 1 (node1) cannot take part: no key"]);
    let reasons = scene.reasons();
    assert!(actions.contains(&Action::Send(10, Message::Refused { reasons })), "{actions:?}");
}

#[test]
fn a_connection_may_break_before_the_start_and_come_back() {
    let mut scene = Scene::new(rules(2));
    scene.greet(1, 0);
    scene.greet(2, 1);
    scene.prepare(2, "p");
    scene.on(Input::Broken(2, "reset".to_owned()));
    scene.wait(19);
    assert_eq!(scene.greet(3, 1), [Action::Welcome(3, 1)]);
    assert!(scene.wait(30).is_empty());
    // It repeats its messages, and that changes nothing.
    scene.prepare(3, "p");
    assert_eq!(scene.machine.seats()[1].step, Step::Prepared);
    scene.on(Input::Broken(3, "reset by peer".to_owned()));
    scene.wait(25);
    let words =
        "rank 1 (node1) was lost before the start, when it was opening connections: reset by peer";
    assert_eq!(scene.reasons(), [words]);
}

#[test]
fn a_second_connection_of_the_same_process_replaces_the_first() {
    let mut scene = Scene::new(rules(1));
    scene.greet(1, 0);
    assert_eq!(scene.greet(2, 0), [Action::Welcome(2, 0), Action::Close(1)]);
    // The end of the first changes nothing.
    scene.on(Input::Broken(1, "closed".to_owned()));
    assert!(scene.wait(50).is_empty());
}

#[test]
fn a_stop_before_the_start_gives_up() {
    let mut scene = Scene::new(rules(2));
    scene.greet(1, 0);
    let actions = scene.on(Input::Interrupt("SIGINT".to_owned()));
    assert_eq!(scene.reasons(), ["stopped before the start: SIGINT"]);
    assert!(is_refused(&actions, 1, ""));
}

#[test]
fn an_agent_repeats_its_messages() {
    use super::Agent;
    use crate::wire::Welcome;

    let welcome = |records| {
        let (began, order) = (String::new(), None);
        Message::Welcome(Box::new(Welcome { index: 1, of: 2, began, order, records }))
    };
    let mut agent = Agent::default();
    assert!(agent.again().is_empty());
    agent.on(welcome(0)).unwrap();
    let prepared = agent.prepare("p".to_owned(), json!({}));
    let ready = agent.set_ready();
    assert_eq!(agent.again(), [prepared, ready]);
    let (at, bound) = (Nanos(5), Nanos(1));
    agent.on(Message::Start { at, bound }).unwrap();
    let at = Nanos(6);
    agent.on(Message::Start { at, bound }).unwrap();
    assert_eq!(agent.start, Some((Nanos(5), bound)));
    agent.stop("SIGTERM".to_owned());
    assert_eq!(agent.again().len(), 3);
    for times in [2, 1] {
        let interrupt = Interrupt { times, why: "SIGTERM".to_owned() };
        agent.on(Message::Interrupt(interrupt)).unwrap();
    }
    assert_eq!(agent.interrupt.as_ref().unwrap().times, 2);
    assert_eq!(agent.again().len(), 2);
    agent.finish(Finished { records: 10, ..finished() });
    assert_eq!(agent.ending(), None);
    agent.on(Message::Ack { offset: 10 }).unwrap();
    assert!(agent.ending().is_some());
    // A coordinator with fewer bytes than it reported gets them again.
    agent.on(welcome(4)).unwrap();
    assert_eq!(agent.ending(), None);
    agent.on(Message::Bye).unwrap();
    assert!(agent.released);
    assert!(agent.on(Message::Ready).is_err());
}

/// Greetings of impossible ranks, each another reason, do not fill the memory.
#[test]
fn reasons_have_a_bound() {
    let mut scene = Scene::new(rules(2));
    for rank in 0..10_000_u32 {
        let (instance, host) = (u64::from(rank), format!("host{rank}"));
        let hello = Hello { host, instance, ..Scene::hello(rank + 2, 2) };
        scene.on(Input::Hello(instance + 100, hello));
    }
    assert_eq!(scene.machine.reasons.len(), 2 + MORE_REASONS);
}
