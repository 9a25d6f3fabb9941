//! The samples of a metric: their store, and the samples that an exchange adds to it.

use super::{Measure, Metric, Of, Reading};
use statistics::Spread;
use statistics::blocks::Blocks;

/// Makes the store for a metric's samples: pooled ones are counted, as there are many of them.
pub fn spread(metric: &Metric) -> Spread {
    let scale = metric.unit.scale();
    match metric.measure {
        Measure::One(_) | Measure::Session(_) => Spread::new(scale),
        Measure::Pooled(_) => Spread::counting(scale),
    }
}

/// Adds the metric's samples of an exchange to it, and to blocks at its index there, if it has any.
pub fn take(
    metric: &Metric,
    reading: &Reading<'_>,
    spread: &mut Spread,
    blocks: Option<(&mut Blocks, u64)>,
) {
    if metric.of == Of::Answered && !reading.exchange.is_ok() {
        return;
    }
    match metric.measure {
        Measure::One(measure) => {
            if let Some(sample) = measure(reading) {
                spread.add(sample);
                if let Some((blocks, index)) = blocks {
                    blocks.add(index, sample);
                }
            }
        }
        Measure::Pooled(walk) => {
            let counts = spread.counts();
            walk(reading, &mut |_, value, times| counts.add(value, times));
        }
        // Sessions are known when all exchanges are.
        Measure::Session(_) => {}
    }
}
