//! A future that is only polled when it has something to say.
//!
//! The task of a reply is woken for every event, but its timers and the order to give up fire once,
//! if at all. Polling each of them every time costs more than cutting the event.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// Wraps a future of a task. It must stay with the task that first polls it.
pub(super) struct LazyTimer<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Rings when the future is to be polled, and wakes its task.
struct Bell {
    rung: AtomicBool,
    task: OnceLock<Waker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

impl<F: Future> LazyTimer<F> {
    pub fn new(future: F) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: OnceLock::new() });
        LazyTimer { future: Box::pin(future), waker: Waker::from(Arc::clone(&bell)), bell }
    }

    /// Changes the future, which is then polled again.
    pub fn change(&mut self, change: impl FnOnce(Pin<&mut F>)) {
        change(self.future.as_mut());
        self.bell.rung.store(true, Ordering::Release);
    }

    /// True if the future must be polled.
    pub fn is_rung(&self) -> bool {
        self.bell.rung.load(Ordering::Acquire)
    }

    /// Has the processor fetch the memory that [`is_rung`](Self::is_rung) reads.
    pub fn fetch(&self) {
        prefetch::line(Arc::as_ptr(&self.bell));
    }

    /// Polls the future if it has never been polled, or was woken since.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        // The look costs far less than the exchange, and mostly finds nothing.
        if !self.is_rung() || !self.bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        self.bell.task.get_or_init(|| cx.waker().clone());
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn timer_is_polled_only_after_a_wake() {
        let polls = Cell::new(0);
        let mut sleep = Box::pin(tokio::time::sleep(Duration::from_millis(5)));
        let mut lazy_timer = LazyTimer::new(poll_fn(|cx| {
            polls.set(polls.get() + 1);
            sleep.as_mut().poll(cx)
        }));
        let mut others = tokio::time::interval(Duration::from_millis(1));
        poll_fn(|cx| {
            while others.poll_tick(cx).is_ready() {}
            lazy_timer.poll(cx)
        })
        .await;
        assert_eq!(polls.get(), 2);
    }
}
