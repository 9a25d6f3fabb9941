//! A reader worker: holds connections to the targets, sends the requests it is given at once,
//! reads their replies and cuts them into frames.
//!
//! It runs on a current-thread runtime of its own and shares nothing but queues: orders come in,
//! frames go out to be decoded ([`Replies`]). Each request has a task. While replies stream, one
//! further task reads the replies of all the thread's requests
//! ([`poller`](crate::transport::poller)). No plugin code runs here. While too many bytes wait to
//! be decoded ([`backlog`](crate::backlog)), nothing more is read. [`talk`] holds the requests and
//! replies of one exchange; [`pool`] chooses the connection for a request; [`reading`] reads the
//! reply and applies the timeouts.
//!
//! A reader naps: the kernel's timestamps do not depend on the time of a read. So with 32 streams
//! or more it reads all arrived bytes every half millisecond. In a closed loop or with a cap, a nap
//! is at most a thousandth of a reply's time. With the program's own timestamps there is none.
//! Timers are checked when they ring and not with every event. The backend decides whether a frame
//! has a token, so all arrived frames are decoded before a request is given up.

pub mod demand;
pub mod jars;
mod lazy_timer;
mod outbox;
mod pool;
mod reading;
mod socket;
mod talk;
mod types;
pub mod worker_handle;

pub use reading::SPARE_BYTES;
pub use types::{DecodeProgress, End, Job, OpenAttempts, Order, Replies, Reply, Worker};

use std::future::{Future as _, poll_fn};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

use crate::thread_group::trip;
use crate::transport::poller::Poller;
use crate::transport::{Connect, Marks};
use lazy_timer::LazyTimer;
use model::exchange::Class;
use model::units::Nanos;
use pool::Pool;
use talk::Trail;
use types::passed_on;
use worker_handle::InFlight;

impl<C: Connect + Clone + 'static> Worker<C> {
    /// Works until the orders end and every request is over.
    pub async fn run(self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let local = LocalSet::new();
        // If the system has no epoll left, sockets stay with the runtime.
        let (poller, poll_loop) = Poller::new().ok().unzip();
        let (halt, abort) = (Rc::new(CancellationToken::new()), Rc::new(CancellationToken::new()));
        let worker = Rc::new(self);
        let pool = Rc::new(Pool::new(&worker, poller));
        local
            .run_until(async {
                let mut tasks = tokio::task::JoinSet::new();
                // Tasks that nobody waits for once the orders have ended.
                let mut aside = tokio::task::JoinSet::new();
                if let Some(poll_loop) = poll_loop {
                    aside.spawn_local(async {
                        // Only a bug makes it end, and then no reply would be read any more.
                        let failed = poll_loop.run().await;
                        panic!("the sockets' epoll failed: {failed}");
                    });
                }
                let mut is_open = true;
                while is_open || !tasks.is_empty() {
                    tokio::select! {
                        biased;
                        order = orders.recv(), if is_open => match order {
                            Some(Order::Open(count)) => {
                                aside.spawn_local(Rc::clone(&pool).open_ahead(count));
                            }
                            Some(Order::Send(job, in_flight)) => {
                                let target = job.exchange.prepared.target;
                                if worker.spare > 0 && pool.idle(target) <= worker.spare {
                                    aside.spawn_local(Rc::clone(&pool).open_spare(target));
                                }
                                let (worker, pool) = (Rc::clone(&worker), Rc::clone(&pool));
                                let orders = (Rc::clone(&halt), Rc::clone(&abort));
                                tasks.spawn_local(worker.serve(pool, orders, job, in_flight));
                            }
                            Some(Order::Ask(question)) => {
                                let worker = Rc::clone(&worker);
                                aside.spawn_local(async move {
                                    let limit = worker.timeouts.connect;
                                    question.put(&worker.connect, worker.clock, limit).await;
                                });
                            }
                            Some(Order::Halt) => halt.cancel(),
                            Some(Order::Abort) => abort.cancel(),
                            None => is_open = false,
                        },
                        Some(ended) = tasks.join_next() => passed_on(ended),
                        Some(ended) = aside.join_next() => passed_on(ended),
                    }
                }
            })
            .await;
    }

    /// Has one exchange, whatever happens.
    async fn serve(
        self: Rc<Self>,
        pool: Rc<Pool<C>>,
        (halt, abort): (Rc<CancellationToken>, Rc<CancellationToken>),
        job: Box<Job>,
        in_flight: InFlight,
    ) {
        trip("read");
        let Job { key, exchange, request, framing, course, session, cancelled_after } = *job;
        let mut exchange = exchange.open();
        let reply = self.replies.open(key);
        let trail = Trail::default();
        let mut inputs = None;
        let end = {
            let limit = Duration::from(self.timeouts.request);
            let talk = self.talk(
                &pool,
                &mut exchange,
                (request, framing, course),
                session.as_ref(),
                (key, &reply),
                (&trail, &mut inputs, &halt),
            );
            let mut talk = std::pin::pin!(talk);
            let mut given_up = LazyTimer::new(async {
                tokio::select! {
                    biased;
                    () = abort.cancelled() => End::Broke(
                        Class::Interrupted,
                        "the run was stopped while the reply was arriving".to_owned(),
                    ),
                    () = tokio::time::sleep(limit) => End::Broke(
                        Class::RequestTimeout,
                        format!("the reply took longer than {}", model::duration::format(limit)),
                    ),
                    after = self.left(&trail.first, cancelled_after) => End::Broke(
                        Class::Cancelled,
                        format!(
                            "this client hung up on purpose, {} after the request was sent",
                            model::duration::format(after)
                        ),
                    ),
                }
            });
            poll_fn(|cx| match talk.as_mut().poll(cx) {
                Poll::Ready(end) => Poll::Ready(end),
                Poll::Pending => given_up.poll(cx),
            })
            .await
        };
        trail.finish(&mut exchange, self.clock.now());
        if let Some(inputs) = inputs {
            exchange.inputs = inputs.take();
        }
        // The pacer must not see the slot free before it knows that requests may follow from the
        // reply.
        let freed = self.clock.now();
        reply.closed(Box::new(exchange), end);
        if let Some(sent) = trail.first.sent.get() {
            in_flight.lasted(freed.since(sent));
        }
        drop(in_flight);
        self.signal.release(key, freed);
    }

    /// Waits until the user of a request leaves, and returns the time since it was sent; for ever
    /// if the user does not.
    async fn left(&self, marks: &Marks, after: Option<Nanos>) -> Duration {
        let Some(after) = after else { return std::future::pending().await };
        let after = Duration::from(after);
        loop {
            match marks.sent.get() {
                // It may be sent at any time, and then there is still as long to wait.
                None => tokio::time::sleep(after).await,
                Some(sent) => {
                    tokio::time::sleep_until(self.clock.instant(sent) + after).await;
                    return after;
                }
            }
        }
    }
}
