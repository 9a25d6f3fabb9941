//! Work on many texts, spread over a few threads where there is enough of it.

use std::sync::OnceLock;

/// Bytes of text, about, that are worth a thread.
const WORTH_A_THREAD: usize = 64 << 10;

/// Returns the result of `each` for every item, in order. `size` is the approximate number of bytes
/// of text in an item.
pub(super) fn spread<I: Sync, T: Send>(
    items: &[I],
    size: impl Fn(&I) -> usize,
    each: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let total: usize = items.iter().map(size).sum();
    let threads = (total / WORTH_A_THREAD).min(most_threads()).max(1);
    let share = items.len().div_ceil(threads).max(1);
    let mut shares = items.chunks(share);
    let first = shares.next().unwrap_or_default();
    let each = &each;
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|items| scope.spawn(move || items.iter().map(each).collect::<Vec<T>>()))
            .collect();
        let mut made: Vec<T> = Vec::with_capacity(items.len());
        made.extend(first.iter().map(each));
        for other in others {
            let more = other.join();
            made.extend(more.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    })
}

/// Half of the cores, since a run may need the others; but two, if there are two.
fn most_threads() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (cores / 2).clamp(2, 8).min(cores)
    })
}
