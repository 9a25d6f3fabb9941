//! A reply as an object beside its request's task.
//!
//! The poll loop can so read the reply as soon as its socket is ready ([`Watch`]). The task reads
//! it too when it is woken: at the beginning, by a timer, or when there is room in the backlog
//! again. Both do the same, one after the other on the same thread.

use std::cell::{OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::drive::End;
use crate::transport::poller::{Ahead, Readiness, Watch};
use model::units::Nanos;

/// The reading of one reply.
pub(super) trait Turn {
    /// The readiness of its socket; absent if a task must wait for it.
    fn readiness(&self) -> Option<&Rc<Readiness>>;

    /// Reads as far as possible, and returns the end and its instant once the reply is over. Wakes
    /// the task of this context when there is more to do.
    fn turn(&mut self, cx: &mut Context<'_>) -> Option<(End, Nanos)>;

    /// Prefetches the data that its fields point to and the next turn needs.
    fn fetch(&self) {}
}

struct Watched<T> {
    /// The task that waits for the end.
    task: OnceCell<Waker>,
    state: RefCell<State<T>>,
}

struct State<T> {
    reply: T,
    ended: Option<(End, Nanos)>,
}

impl<T: Turn> State<T> {
    fn turn(&mut self, cx: &mut Context<'_>) {
        if self.ended.is_none() {
            self.ended = self.reply.turn(cx);
        }
    }
}

/// Reads until the end, and returns it with its instant.
pub(super) async fn until_over<T: Turn + 'static>(reply: T) -> (T, (End, Nanos)) {
    let readiness = reply.readiness().map(Rc::clone);
    let state = RefCell::new(State { reply, ended: None });
    let watched = Rc::new(Watched { task: OnceCell::new(), state });
    let watching = readiness.as_ref().map(|readiness| readiness.watch(Rc::clone(&watched) as _));
    let ended = poll_fn(|cx| {
        watched.task.get_or_init(|| cx.waker().clone());
        let mut state = watched.state.borrow_mut();
        state.turn(cx);
        state.ended.take().map_or(Poll::Pending, Poll::Ready)
    })
    .await;
    drop(watching);
    let watched = Rc::into_inner(watched).expect("it is watched no longer");
    (watched.state.into_inner().reply, ended)
}

impl<T: Turn> Watch for Watched<T> {
    fn ready(&self) {
        // Before its first turn the task has not read, and will find the bytes that have come.
        let Some(task) = self.task.get() else { return };
        let mut state = self.state.borrow_mut();
        if state.ended.is_none() {
            state.turn(&mut Context::from_waker(task));
            if state.ended.is_some() {
                task.wake_by_ref();
            }
        }
    }

    fn fetch(&self, ahead: Ahead) {
        match ahead {
            Ahead::First => prefetch::line(self),
            Ahead::Far => prefetch::lines(self),
            Ahead::Near => {
                if let Ok(state) = self.state.try_borrow() {
                    state.reply.fetch();
                }
            }
        }
    }
}
