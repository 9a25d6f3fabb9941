//! Shares tasks between threads.

use std::sync::Mutex;
use std::thread;

use crate::lock;

/// Does all tasks, on one thread per processor that this process may use, the caller's included.
/// Tasks begin in their order. If no thread can be started, the running threads do all the work.
pub(super) fn share<T: Send>(tasks: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let tasks = Mutex::new(tasks);
    let next = || lock(&tasks).next();
    let run = || {
        while let Some(task) = next() {
            work(task);
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..processors {
            let started = thread::Builder::new().name("assess".to_owned()).spawn_scoped(scope, run);
            if started.is_err() {
                break;
            }
        }
        run();
    });
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn every_task_runs_once() {
        let done = Mutex::new(Vec::new());
        share(0..1_000, |task| done.lock().unwrap().push(task));
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert!(done.into_iter().eq(0..1_000));
    }

    #[test]
    fn one_task_runs_per_processor() {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        // Each of the first tasks waits for all others.
        let together = Barrier::new(processors);
        let threads = Mutex::new(BTreeSet::new());
        share(0..processors, |_| {
            together.wait();
            let own = format!("{:?}", thread::current().id());
            threads.lock().unwrap().insert(own);
        });
        assert_eq!(threads.into_inner().unwrap().len(), processors);
    }
}
