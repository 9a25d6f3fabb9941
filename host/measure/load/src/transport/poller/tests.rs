use super::*;
use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream as Peer};

use mio::net::TcpStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::LocalSet;

use crate::transport::Polled;

/// Runs this with a poller whose loop runs beside it.
async fn served<T>(body: impl AsyncFnOnce(Poller) -> T) -> T {
    let local = LocalSet::new();
    let (poller, poll_loop) = Poller::new().unwrap();
    local.spawn_local(poll_loop.run());
    local.run_until(body(poller)).await
}

/// A connection: a socket to be registered, and the other side, which blocks.
fn pair() -> (TcpStream, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = Peer::connect(listener.local_addr().unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    (TcpStream::from_std(socket), listener.accept().unwrap().0)
}

async fn connect(poller: &Poller) -> (Polled, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let polled = Polled::connect(&[listener.local_addr().unwrap()], poller).await.unwrap();
    (polled, listener.accept().unwrap().0)
}

/// Reads a socket when it is told to, in a number of reads in a row, each of a number of bytes.
struct Reader {
    socket: Registered<TcpStream>,
    size: usize,
    turns: RefCell<Vec<usize>>,
    over: Cell<bool>,
}

impl Reader {
    fn new(poller: &Poller, socket: TcpStream, size: usize) -> Rc<Self> {
        Rc::new(Reader {
            socket: poller.register(socket).unwrap(),
            size,
            turns: RefCell::default(),
            over: Cell::new(false),
        })
    }

    fn bytes(&self) -> usize {
        self.turns.borrow().iter().sum()
    }
}

impl Watch for Reader {
    fn ready(&self) {
        let mut into = vec![0; self.size];
        let mut socket = &self.socket.socket;
        match socket.read(&mut into) {
            Ok(0) => self.over.set(true),
            Ok(read) => {
                self.turns.borrow_mut().push(read);
                if read < into.len() {
                    self.socket.readiness.drained();
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                self.socket.readiness.drained();
            }
        }
    }
}

/// Runs the loop and the other tasks until this is true.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        // The kernel may still be handing bytes on, so the thread goes through the driver.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn watcher_hears_of_bytes_and_the_end() {
    served(async |poller| {
        let (socket, mut peer) = pair();
        let reader = Reader::new(&poller, socket, 64);
        let readiness = Rc::clone(&reader.socket.readiness);
        let watching = readiness.watch(Rc::clone(&reader) as _);
        for count in 1..=3 {
            peer.write_all(b"event").unwrap();
            until(|| reader.bytes() == 5 * count).await;
        }
        assert!(!reader.over.get());
        drop(peer);
        until(|| reader.over.get()).await;
        drop(watching);
    })
    .await;
}

#[tokio::test]
async fn removed_watcher_is_not_woken() {
    served(async |poller| {
        let (socket, mut peer) = pair();
        let reader = Reader::new(&poller, socket, 64);
        let readiness = Rc::clone(&reader.socket.readiness);
        drop(readiness.watch(Rc::clone(&reader) as _));
        peer.write_all(b"event").unwrap();
        until(|| readiness.is_readable()).await;
        assert_eq!(reader.bytes(), 0);
        // The next watcher finds it: readiness is not lost with the previous watcher.
        let _watching = readiness.watch(Rc::clone(&reader) as _);
        peer.write_all(b"event").unwrap();
        until(|| reader.bytes() == 10).await;
    })
    .await;
}

#[tokio::test]
async fn tasks_read_and_write_where_nothing_watches() {
    served(async |poller| {
        let (mut polled, mut peer) = connect(&poller).await;
        let echo = std::thread::spawn(move || {
            // More than both sockets hold, so that both sides have to wait.
            let mut all = vec![0; 16 << 20];
            peer.read_exact(&mut all).unwrap();
            peer.write_all(&all).unwrap();
        });
        let sent: Vec<u8> = (0..16 << 20).map(|at: usize| (at / 7) as u8).collect();
        polled.write_all(&sent).await.unwrap();
        let mut bytes = Vec::new();
        polled.read_to_end(&mut bytes).await.unwrap();
        assert!(bytes == sent, "other bytes came back");
        echo.join().unwrap();
    })
    .await;
}

#[tokio::test]
async fn next_address_is_tried_after_a_refused_one() {
    served(async |poller| {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = Polled::connect(&[free], &poller).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let none: [SocketAddr; 0] = [];
        assert!(Polled::connect(&none, &poller).await.is_err());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Polled::connect(&[free, listener.local_addr().unwrap()], &poller).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn bytes_and_the_end_that_came_together_are_both_seen() {
    served(async |poller| {
        let (mut polled, mut peer) = connect(&poller).await;
        peer.write_all(b"last words").unwrap();
        drop(peer);
        until(|| polled.readiness().is_over.get()).await;
        let mut bytes = [0; 64];
        assert_eq!(polled.read(&mut bytes).await.unwrap(), 10);
        assert_eq!(polled.read(&mut bytes).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn reset_is_reported() {
    served(async |poller| {
        let (mut polled, mut peer) = connect(&poller).await;
        polled.write_all(b"never read").await.unwrap();
        let mut some = [0; 1];
        peer.read_exact(&mut some).unwrap();
        // A socket closed with unread bytes resets its connection.
        drop(peer);
        let error = polled.read(&mut some).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn freed_slot_is_reused_in_the_next_batch() {
    served(async |poller| {
        let (socket, _peer) = pair();
        let first = poller.register(socket).unwrap();
        let number = first.number;
        drop(first);
        let (socket, _other_peer) = pair();
        let second = poller.register(socket).unwrap();
        assert_ne!(second.number, number);
        // A new socket can be written, which ends the batch.
        until(|| second.readiness.writable.get()).await;
        let (socket, _third_peer) = pair();
        assert_eq!(poller.register(socket).unwrap().number, number);
        assert_eq!(poller.0.places.borrow().taken.iter().flatten().count(), 1);
    })
    .await;
}

#[tokio::test]
async fn many_sockets_are_all_served() {
    const SOCKETS: usize = 5 * BATCH / 2;
    served(async |poller| {
        let (readers, mut peers): (Vec<_>, Vec<_>) = (0..SOCKETS)
            .map(|_| {
                let (socket, peer) = pair();
                (Reader::new(&poller, socket, 64), peer)
            })
            .unzip();
        let readinesses: Vec<_> =
            (readers.iter()).map(|reader| Rc::clone(&reader.socket.readiness)).collect();
        let watching: Vec<_> = (readinesses.iter().zip(&readers))
            .map(|(readiness, reader)| readiness.watch(Rc::clone(reader) as _))
            .collect();
        for count in 1..=20 {
            for peer in &mut peers {
                peer.write_all(b"event").unwrap();
            }
            until(|| readers.iter().all(|reader| reader.bytes() == 5 * count)).await;
        }
        drop(watching);
    })
    .await;
}

#[tokio::test]
async fn other_tasks_go_on_while_sockets_are_ready_without_end() {
    const SOCKETS: usize = 2 * BATCH;
    served(async |poller| {
        /// Answers each byte with one, so that its own other side is always ready again.
        struct Busy(Registered<TcpStream>, RefCell<Peer>, Cell<usize>);
        impl Watch for Busy {
            fn ready(&self) {
                let mut into = [0; 64];
                let mut socket = &self.0.socket;
                if matches!(socket.read(&mut into), Ok(1..)) {
                    self.2.set(self.2.get() + 1);
                    self.1.borrow_mut().write_all(b"!").unwrap();
                }
                self.0.readiness.drained();
            }
        }
        let busy: Vec<Rc<Busy>> = (0..SOCKETS)
            .map(|_| {
                let (socket, mut peer) = pair();
                peer.write_all(b"!").unwrap();
                let socket = poller.register(socket).unwrap();
                Rc::new(Busy(socket, RefCell::new(peer), Cell::new(0)))
            })
            .collect();
        let readinesses: Vec<_> = busy.iter().map(|busy| Rc::clone(&busy.0.readiness)).collect();
        let watching: Vec<_> = (readinesses.iter().zip(&busy))
            .map(|(readiness, busy)| readiness.watch(Rc::clone(busy) as _))
            .collect();
        let turns = || busy.iter().map(|busy| busy.2.get()).collect::<Vec<_>>();
        // Timers run out after a turn of every socket: none waits for the others to be silent.
        for count in 1..=20 {
            until(|| turns().iter().all(|turns| *turns >= count)).await;
        }
        // So do other tasks, a batch of sockets at most between two of their turns.
        let before: usize = turns().iter().sum();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let after: usize = turns().iter().sum();
        assert!(after - before <= 20 * BATCH, "{} turns", after - before);
        drop(watching);
    })
    .await;
}

#[tokio::test]
async fn ready_socket_wakes_only_its_task() {
    served(async |poller| {
        let (mut first, mut first_peer) = connect(&poller).await;
        let (second, _second_peer) = connect(&poller).await;
        let polls = Rc::new(Cell::new(0));
        let waits = {
            let polls = Rc::clone(&polls);
            tokio::task::spawn_local(async move {
                poll_fn(|cx| {
                    polls.set(polls.get() + 1);
                    second.readiness().poll_readable(cx)
                })
                .await;
            })
        };
        for _ in 0..5 {
            first_peer.write_all(b"!").unwrap();
            let mut bytes = [0; 8];
            assert_eq!(first.read(&mut bytes).await.unwrap(), 1);
        }
        assert_eq!(polls.get(), 1);
        waits.abort();
    })
    .await;
}
