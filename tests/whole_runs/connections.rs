//! The connection of a request: HTTP/2's streams, reuse, several targets.

use std::collections::BTreeMap;

use model::exchange::{Class, Exchange, Phase};
use model::units::Nanos;

use super::{BASE, base};
use crate::faults::check::failure;
use crate::hostile_guests::fixture::components;
use crate::support::memory::Away;
use crate::support::raw::Raw;
use crate::support::trial::{RunResult, Trial};

fn over_http_2() -> Trial {
    base().with("connection.http = '2'")
}

/// The time when the opening of an exchange's connection began: in these trials, which connection
/// it was.
fn connection(exchange: &Exchange) -> Nanos {
    exchange.connection.unwrap().begun
}

fn facts(ran: &RunResult, fact: impl Fn(&model::exchange::Connection) -> bool) -> usize {
    let connections = ran.measured().filter_map(|exchange| exchange.connection);
    connections.filter(|connection| fact(connection)).count()
}

/// The mock engine's times, over streams that share one connection.
#[tokio::test(start_paused = true)]
async fn http_2_has_the_same_instants() {
    for stream in [true, false] {
        let streamed = format!("request.stream = {stream}");
        let plain = base().with(&streamed).run().await;
        let ran = over_http_2().with(&streamed).run().await;
        assert_eq!(ran.failures(), []);
        assert_eq!(ran.everywhere("e2e"), (320.0, 5));
        if stream {
            assert_eq!(ran.everywhere("ttft"), (120.0, 5));
            assert_eq!(ran.everywhere("itl"), (20.0, 50));
        }
        for (two, one) in ran.measured().zip(plain.measured()) {
            assert_eq!((&two.output, &two.events), (&one.output, &one.events));
            assert_eq!(
                (two.sent, two.first_byte, two.headers),
                (one.sent, one.first_byte, one.headers)
            );
        }
        assert_eq!(ran.connections, 1, "they share it");
    }
}

/// A server that does not know HTTP/2 answers in HTTP/1.1.
#[tokio::test(start_paused = true)]
async fn a_server_of_http_1_is_told_as_one() {
    let ran = over_http_2().against_raw(&Raw::with([])).run().await;
    assert_eq!(ran.failures().len(), 5);
    for exchange in ran.measured() {
        let (class, message) = failure(exchange).expect("it is no answer");
        assert_eq!(class, Class::Reset);
        assert!(message.ends_with("does the server speak HTTP/2?"), "{message}");
    }
}

/// A hundred streams a connection.
#[tokio::test(start_paused = true)]
async fn many_streams_share_few_connections() {
    let scenario = BASE.replace("arrival = \"constant\"\nrate = 10.0", "arrival = \"inf\"");
    let trial = Trial::new(&scenario).with("load.requests = 250").with("connection.http = '2'");
    let ran = trial.run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.everywhere("ttft"), (120.0, 250));
    assert_eq!(ran.connections, 3);
}

/// A connection that takes no more requests is replaced; the replies on it come to their end.
#[tokio::test(start_paused = true)]
async fn a_connection_that_says_goodbye_is_replaced() {
    for http in ["1.1", "2"] {
        // Ten a second, 320 ms each: three or four are under way.
        let trial = base()
            .with(&format!("connection.http = '{http}'"))
            .with("load.requests = 20")
            .telling_connections_apart()
            .against("[[fault]]\nkind = 'goodbye'\nrequests = [3, 10]");
        let ran = trial.run().await;
        assert_eq!(ran.failures(), [], "HTTP/{http}");
        assert_eq!(ran.everywhere("ttft"), (120.0, 20), "HTTP/{http}");
        assert_eq!(ran.everywhere("itl"), (20.0, 200), "HTTP/{http}");
        if http == "2" {
            let mut used: Vec<Nanos> = ran.measured().map(connection).collect();
            used.dedup();
            assert_eq!((used.len(), ran.connections), (3, 3));
        }
    }
}

/// A reset stream affects one request; the others on its connection go on.
#[tokio::test(start_paused = true)]
async fn a_reset_stream_fails_one_request() {
    for (fault, class) in
        [("kind = 'hang-up'", Class::Reset), ("kind = 'cut'\nafter-tokens = 3", Class::Truncated)]
    {
        let trial = over_http_2().with("load.requests = 20");
        let ran = trial.against(&format!("[[fault]]\n{fault}\nevery = 4")).run().await;
        let failures = [3, 7, 11, 15, 19].map(|index| (index, class));
        assert_eq!(ran.failures(), failures, "{}", ran.text);
        assert_eq!(ran.everywhere("ttft"), (120.0, 15));
        assert_eq!(ran.connections, 1);
    }
}

/// A connection for each request, opened before it is due.
#[tokio::test(start_paused = true)]
async fn never_again_means_a_connection_each() {
    let trial = base().with("connection.reuse = 'never'").with("load.requests = 40");
    let ran = trial.telling_connections_apart().run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.everywhere("ttft"), (120.0, 40));
    let mut used: Vec<Nanos> = ran.measured().map(connection).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 40);
    assert_eq!(facts(&ran, |connection| connection.reused || connection.waited), 0);
}

/// The connections that are needed at the same time, and no more.
#[tokio::test(start_paused = true)]
async fn keep_alive_uses_free_connections() {
    let one_by_one = "arrival = \"closed\"\nconcurrency = 2";
    let scenario = BASE.replace("arrival = \"constant\"\nrate = 10.0", one_by_one);
    let ran = Trial::new(&scenario).with("load.requests = 20").run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.connections, 2);
    assert_eq!(facts(&ran, |connection| connection.reused), 18);
}

/// This many conversations, whose turns take the same connection.
fn conversations(count: u32) -> Trial {
    let guest = components().join("guests/hostile-dataset.wasm");
    let scenario = BASE.replace("datasets/random.wasm", guest.to_str().unwrap());
    let (before, after) = scenario.split_once("like =").unwrap();
    let (_, after) = after.split_once("output-len = 11\n").unwrap();
    let scenario = format!("{before}sessions = {count}\n{after}");
    Trial::new(&scenario).with("connection.reuse = 'session'")
}

/// A conversation's turns take the same connection, and no other conversation takes it.
#[tokio::test(start_paused = true)]
async fn a_conversation_keeps_its_connection() {
    // Seven conversations of three turns; one turn is over before the next one is due.
    let trial = conversations(7).with("load.requests = 21").telling_connections_apart();
    for base_url in ["'http://one'", "['http://one', 'http://two']"] {
        let ran = trial.clone().with(&format!("target.base-url = {base_url}")).run().await;
        assert_eq!(ran.failures(), []);
        let mut kept: BTreeMap<(u64, u32), Nanos> = BTreeMap::new();
        for exchange in ran.measured() {
            let conversation = (exchange.index % 7, exchange.target);
            let first = kept.insert(conversation, connection(exchange));
            assert!(first.is_none_or(|first| first == connection(exchange)), "{exchange:?}");
            assert_eq!(exchange.connection.unwrap().reused, first.is_some());
        }
        let mut distinct: Vec<Nanos> = kept.values().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), kept.len(), "each has its own");
    }
}

/// A conversation does not say that it is over, so its connection is closed at the idle time after
/// which no connection is used again.
#[tokio::test(start_paused = true)]
async fn connections_of_conversations_that_are_over_are_closed() {
    // A conversation for each request: ten a second, of a third of a second each, and two seconds
    // of idling.
    let trial = conversations(400).with("load.requests = 400");
    let ran = trial.clone().run().await;
    assert_eq!(ran.failures(), []);
    let peak = ran.peak_connections;
    assert!(peak < 60, "{peak} were open at the same time");
    // However many end within that time, no more are kept than a fixed number.
    let trial = trial.with("load = { arrival = 'constant', rate = 400.0 }");
    let ran = trial.with("load.requests = 2000").with("dataset.config.sessions = 2000").run().await;
    assert_eq!(ran.failures(), []);
    let peak = ran.peak_connections;
    assert!(peak < 256 + 400, "{peak} were open at the same time");
}

/// A connection whose streams were all taken has free ones again when replies end.
#[tokio::test(start_paused = true)]
async fn a_full_connection_of_http_2_is_used_again() {
    let scenario = BASE
        .replace("arrival = \"constant\"\nrate = 10.0", "arrival = \"closed\"\nconcurrency = 150");
    let trial = Trial::new(&scenario).with("load.requests = 1500").with("connection.http = '2'");
    let ran = trial.run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.everywhere("ttft"), (120.0, 1_500));
    assert_eq!(ran.connections, 2);
}

/// Requests that wait for connections to a server that accepts none wait together.
#[tokio::test(start_paused = true)]
async fn connections_of_http_2_are_opened_next_to_each_other() {
    for requests in [8, 250] {
        let scenario = BASE.replace("arrival = \"constant\"\nrate = 10.0", "arrival = \"inf\"");
        let trial = Trial::new(&scenario)
            .with(TWO)
            .with(&format!("load.requests = {requests}"))
            .with("timeouts.connect = '2s'")
            .with("connection.http = '2'")
            .without(1, Away::IsSilent);
        let began = tokio::time::Instant::now();
        let ran = trial.run().await;
        assert_eq!(ran.failures().len(), requests / 2);
        // Once to open connections ahead, and once for all requests.
        let took = began.elapsed();
        assert!(took.as_secs() < 6, "{took:?} for {requests}");
    }
}

const TWO: &str = "target.base-url = ['http://one', 'http://two']";

/// In turn, warm-up and measurement alike.
#[tokio::test(start_paused = true)]
async fn several_targets_get_requests_in_turn() {
    for http in ["1.1", "2"] {
        let trial =
            base().with(TWO).with("load.warmup = 4").with(&format!("connection.http = '{http}'"));
        let ran = trial.run().await;
        assert_eq!(ran.failures(), []);
        let targets = |phase| -> Vec<u32> {
            let of = ran.exchanges.iter().filter(|exchange| exchange.phase == phase);
            of.map(|exchange| exchange.target).collect()
        };
        assert_eq!(targets(Phase::Warmup), [0, 1, 0, 1]);
        assert_eq!(targets(Phase::Measure), [0, 1, 0, 1, 0]);
        assert!(http == "1.1" || ran.connections == 2);
    }
}

/// A target that cannot be connected to fails only its own share.
#[tokio::test(start_paused = true)]
async fn a_target_that_is_down_fails_its_share() {
    for (away, class, expected) in [
        (Away::Refuses, Class::Refused, "refused"),
        (Away::IsSilent, Class::ConnectTimeout, "no connection within 2s"),
    ] {
        for http in ["1.1", "2"] {
            let trial = base()
                .with(TWO)
                .with("timeouts.connect = '2s'")
                .with(&format!("connection.http = '{http}'"))
                .without(1, away);
            let ran = trial.run().await;
            assert_eq!(ran.failures(), [(1, class), (3, class)], "{away:?} HTTP/{http}");
            assert_eq!(ran.everywhere("ttft"), (120.0, 3));
            let (_, message) = failure(&ran.exchanges[1]).expect("it is a failure");
            assert_eq!(message, expected);
            assert_eq!(ran.exchanges[1].sent, None);
        }
    }
}
