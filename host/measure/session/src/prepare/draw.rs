//! Drawing samples from a dataset: the same calls, of the same sizes, wherever a plan's samples are
//! drawn.

use crate::pending::prompt_bytes;
use plugins::PluginError;
use plugins::backend::Sample;
use plugins::dataset::Samples;

/// The most samples to ask the dataset for in one call, and the number in the first call.
pub(super) const BATCH: u32 = 64;
const FIRST_BATCH: u32 = 8;
/// Bytes of prompts that one call should return: data that crosses the boundary is limited, and
/// held twice.
const BATCH_BYTES: usize = 4 << 20;

/// The measured samples of a plan, batch by batch.
pub(crate) struct Drawing {
    /// The sequence, also for samples before the first measured one.
    pub(crate) samples: Samples,
    planned: u64,
    given: u64,
    limit: u32,
}

impl Drawing {
    /// So many of these samples, or all there are.
    pub(crate) fn new(samples: Samples, planned: u64) -> Self {
        Drawing { samples, planned, given: 0, limit: FIRST_BATCH }
    }
}

impl Iterator for Drawing {
    type Item = Result<Vec<Sample>, PluginError>;

    /// The next samples; nothing at the end of the sequence. After an error there is nothing worth
    /// asking for.
    fn next(&mut self) -> Option<Self::Item> {
        let left = self.planned - self.given;
        if left == 0 {
            return None;
        }
        let limit = self.limit.min(u32::try_from(left).unwrap_or(BATCH));
        let batch = match self.samples.next(limit) {
            Ok(batch) if batch.is_empty() => return None,
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        self.given += batch.len() as u64;
        let bytes: usize = batch.iter().map(|sample| prompt_bytes(&sample.prompt)).sum();
        let fit = BATCH_BYTES / (bytes / batch.len()).max(1);
        self.limit = u32::try_from(fit).unwrap_or(BATCH).clamp(1, BATCH);
        Some(Ok(batch))
    }
}

/// Draws at most `wanted` samples that are never measured, fewer if the dataset ends or the run
/// stops. Fails if the dataset fails, or a sample depends on others.
pub(crate) fn spares(
    samples: &mut Samples,
    wanted: u32,
    is_stopped: impl Fn() -> bool,
) -> Result<Vec<Sample>, PluginError> {
    let mut spares = Vec::new();
    while spares.len() < wanted as usize && !is_stopped() {
        let left = wanted - spares.len() as u32;
        let batch = samples.spare(left.min(BATCH))?;
        if batch.is_empty() {
            break;
        }
        if let Some(sample) = batch.iter().find(|sample| !sample.after.is_empty()) {
            let what = format!(
                "the spare sample `{}` depends on others; spare samples stand alone",
                sample.id
            );
            return Err(samples.broken("spare", &what));
        }
        spares.extend(batch);
    }
    Ok(spares)
}
