//! The sound of a run: its length in the answers, and in the prompts that were answered.

use model::units::Nanos;

/// The length of some sound together.
#[derive(Default)]
pub(super) struct Sound(Option<Nanos>);

impl Sound {
    /// Adds one more, if its length is known.
    pub(super) fn add(&mut self, length: Option<Nanos>) {
        if let Some(length) = length {
            let sum = self.0.unwrap_or_default().0.saturating_add(length.0);
            self.0 = Some(Nanos(sum));
        }
    }

    /// Seconds of sound to each second of this duration; absent if no length was known.
    pub(super) fn per_second(&self, duration: Option<f64>) -> Option<f64> {
        Some(self.0?.as_secs_f64() / duration?)
    }
}
