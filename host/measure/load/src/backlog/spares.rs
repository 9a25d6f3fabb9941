//! Frames that were decoded, emptied, for readers to fill again. A reader takes its memory from the
//! allocator and a decode thread gives it back, batch after batch. Between two threads that costs
//! more than cutting frames.

use std::sync::{Mutex, TryLockError};

use model::frame::Frames;

/// The most that are kept, each with room for about a batch.
const KEPT: usize = 1024;

/// Emptied frames. The last to come is the first to go: it may still be in the processor's cache.
#[derive(Default)]
pub struct Spares(Mutex<Vec<Frames>>);

impl Spares {
    /// Frames without content and with room, if some are kept.
    pub fn take(&self) -> Option<Frames> {
        self.with(Vec::pop).flatten()
    }

    /// Keeps frames to be filled again, if they take no more memory than this.
    pub fn put_back(&self, mut frames: Frames, most: usize) {
        if frames.is_empty() || frames.memory() > most {
            return;
        }
        frames.clear();
        self.with(|kept| {
            if kept.len() < KEPT {
                kept.push(frames);
            }
        });
    }

    /// A reader waits for nobody: a decode thread that holds the lock may not be running.
    fn with<T>(&self, make: impl FnOnce(&mut Vec<Frames>) -> T) -> Option<T> {
        match self.0.try_lock() {
            Ok(mut kept) => Some(make(&mut kept)),
            Err(TryLockError::Poisoned(poisoned)) => Some(make(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    #[test]
    fn spare_frames_return_empty_with_capacity() {
        let spares = Spares::default();
        let mut frames = Frames::default();
        frames.push(Nanos(1), Some("name".to_owned()), &[7; 500]);
        let memory = frames.memory();
        spares.put_back(frames.clone(), 100);
        assert!(spares.take().is_none(), "it was too large");
        spares.put_back(frames, memory);
        let again = spares.take().unwrap();
        assert!(again.is_empty() && again.names().is_empty());
        assert!(again.memory() >= 500);
        assert!(spares.take().is_none());
    }
}
