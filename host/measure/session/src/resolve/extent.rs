//! The extent of a dataset, in samples: draws it to its end, and sends nothing.

use load::pace::Signal;
use plugins::PluginError;
use plugins::dataset::{Amount, Treatment};

use super::ResolvedRun;
use crate::prepare::draw::Drawing;

/// Samples after which a dataset is taken to have no end.
pub const MOST: u64 = 200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many, each once.
    Samples(u64),
    /// It gives more than [`MOST`], as one that makes its samples does.
    Endless,
    /// The user stopped the drawing.
    Stopped,
}

impl ResolvedRun {
    /// Counts the samples of the run's dataset, each once however often the dataset would use it.
    pub fn extent(&self, signal: &Signal) -> Result<Extent, PluginError> {
        let samples = (self.parts.dataset).open(self.draft.load.seed, Amount::Unknown)?;
        let mut drawing = Drawing::new(samples, MOST + 1);
        let mut count: u64 = 0;
        while let Some(batch) = drawing.next() {
            if signal.is_stopped() {
                return Ok(Extent::Stopped);
            }
            count += batch?.len() as u64;
            let remarks = drawing.samples.remarks()?;
            let again = remarks.iter().filter(|remark| remark.what == Treatment::Repeated);
            let again: u64 = again.map(|remark| remark.count).sum();
            if again > 0 {
                return Ok(Extent::Samples(count.saturating_sub(again)));
            }
        }
        Ok(if count > MOST { Extent::Endless } else { Extent::Samples(count) })
    }
}
