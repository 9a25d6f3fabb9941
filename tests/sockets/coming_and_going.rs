//! Servers that come and go during a run, and one that accepts no connection.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use model::exchange::{Class, Exchange};
use runs::record;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpSocket};

use crate::endings::{RUNS, begin, class, count, exchanges, report};
use crate::support::lacking;
use crate::support::process::{Mock, Process, only_run, run};
use crate::support::raw::Raw;
use crate::support::results::random;

/// Possible failures of a request whose server is gone.
const GONE: [Class; 3] = [Class::Refused, Class::Reset, Class::Truncated];

fn failed_as(exchanges: &[Exchange], classes: &[Class]) -> usize {
    let among = |exchange: &&Exchange| class(exchange).is_some_and(|own| classes.contains(&own));
    exchanges.iter().filter(among).count()
}

#[test]
fn a_restarted_server_gets_requests_again() {
    for http in ["1.1", "2"] {
        let speed = ["--ttft", "5ms", "--itl", "20ms"];
        let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&speed));
        let flags =
            format!("--request-rate 100 --num-prompts 700 --random-output-len 10 --http {http}");
        let process = begin(&mock, folder.path(), &flags);
        mock.kill();
        std::thread::sleep(Duration::from_millis(300));
        let _again = mock.start_again(&speed);
        let ended = process.end().with_code(0);
        let exchanges = exchanges(folder.path());
        let (answered, gone) = (count(&exchanges, None), failed_as(&exchanges, &GONE));
        assert!(answered > 0 && gone > 0, "HTTP/{http}: {answered} answered, {gone} failed");
        assert_eq!((exchanges.len(), answered + gone), (700, 700), "HTTP/{http}");
        assert!(exchanges[699].is_ok(), "HTTP/{http}: {:?}", exchanges[699].outcome);
        let last_failure = exchanges.iter().rposition(|exchange| !exchange.is_ok());
        assert!(last_failure < Some(699));
        assert_eq!(report(folder.path()).stdout, ended.stdout);
    }
}

#[test]
fn a_target_that_dies_fails_its_share() {
    let speed = ["--ttft", "5ms", "--itl", "5ms"];
    let (folder, first, second) =
        (TempDir::new().unwrap(), Mock::start(&speed), Mock::start(&speed));
    let flags = format!(
        "--request-rate 100 --num-prompts 300 --random-output-len 4 --base-url {}",
        first.url
    );
    let process = begin(&second, folder.path(), &flags);
    second.kill();
    process.end().with_code(0);
    let exchanges = exchanges(folder.path());
    for exchange in &exchanges {
        assert_eq!(u64::from(exchange.target), exchange.index % 2);
        if exchange.target == 0 {
            assert!(exchange.is_ok(), "{:?}", exchange.outcome);
        }
    }
    let gone = failed_as(&exchanges, &GONE);
    assert!(gone > 0);
    assert_eq!((exchanges.len(), count(&exchanges, None) + gone), (300, 300));
}

/// Accepts this many connections, then none, and lets none into its queue.
async fn serve(listener: TcpListener, most: usize, endless: mpsc::Sender<()>) {
    let address = listener.local_addr().unwrap();
    let raw = Raw::with([]);
    for _ in 0..most {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(raw.clone().serve(stream));
    }
    let mut queued = Vec::new();
    while let Ok(connected) = connect(address).await {
        queued.push(connected);
        if queued.len() == 64 {
            let _ = endless.send(());
        }
    }
    std::future::pending().await
}

async fn connect(to: SocketAddr) -> Result<tokio::net::TcpStream, ()> {
    let limit = Duration::from_millis(200);
    let connected = tokio::time::timeout(limit, tokio::net::TcpStream::connect(to)).await;
    connected.map_err(|_| ())?.map_err(|_| ())
}

/// A server with room for one in its queue, on a thread of its own. Returns its address, and the
/// message if its queue turns out to be endless.
fn narrow(most: usize) -> (SocketAddr, mpsc::Receiver<()>) {
    let (tell, address) = mpsc::channel();
    let (endless, is_endless) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
            let listener = socket.listen(1).unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            serve(listener, most, endless).await;
        });
    });
    (address.recv().unwrap(), is_endless)
}

#[test]
fn a_server_that_takes_no_connection_is_given_up() {
    // One asks which models there are, twenty are opened ahead.
    let (address, is_endless) = narrow(30);
    let folder = TempDir::new().unwrap();
    let flags = "--model mock --warmup-requests 0 --num-prompts 60 --request-rate 20 \
                 --connections never --connect-timeout 400ms --first-token-timeout 2s";
    let ended = run(&mut random(&format!("http://{address}"), folder.path(), flags)).with_code(0);
    let exchanges = exchanges(folder.path());
    let answered = count(&exchanges, None);
    let given_up = count(&exchanges, Some(Class::ConnectTimeout));
    if is_endless.try_recv().is_ok() {
        lacking::leave_out(&lacking::FULL_QUEUES);
        return;
    }
    // Accepted by the system, and never by the server.
    let queued = count(&exchanges, Some(Class::FirstTokenTimeout));
    assert!(answered > 0 && given_up > 0, "{answered} answered, {given_up} given up");
    assert_eq!((exchanges.len(), answered + given_up + queued), (60, 60));
    assert!(ended.stdout.contains("connect-timeout: no connection within 400ms"), "{ended:#?}");
}

/// Connections are opened ahead of the requests; the user need not wait for connections that never
/// open.
#[test]
fn an_interrupt_ends_the_opening_of_connections() {
    let (address, is_endless) = narrow(3);
    let folder = TempDir::new().unwrap();
    let flags = "--model mock --warmup-requests 0 --num-prompts 60 --request-rate 20 \
                 --connect-timeout 1h";
    let url = format!("http://{address}");
    let mut process = Process::start(&mut random(&url, folder.path(), flags));
    process.until("the run has begun", |_| {
        let run = only_run(&folder.path().join(RUNS));
        run.is_some_and(|run| run.join(record::FILE).exists())
    });
    std::thread::sleep(Duration::from_secs(2));
    if is_endless.try_recv().is_ok() {
        lacking::leave_out(&lacking::FULL_QUEUES);
        return;
    }
    process.signal("INT");
    process.end().with_stdout(130, "suspect interrupted: the run was stopped");
    assert!(exchanges(folder.path()).is_empty());
}
