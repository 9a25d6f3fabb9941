//! Waves of a warm-up: whether an engine still changed from one to the next.
//!
//! A wave has the number of requests that the measurement has in flight. The engine is **stable**
//! if every request of the last two waves was answered, and the two are alike. Then the medians of
//! the wait for the first token and of TPOT differ by at most a tenth or a millisecond. The longest
//! wait of each wave is at most twice the other's, or 100 ms more. The medians show an engine that
//! gets faster; the longest wait shows a request that had to wait for a compile. Where replies are
//! not streamed, the wait is for the whole answer.

use std::collections::BTreeMap;

use crate::metric::Reading;
use model::exchange::Exchange;
use model::units::Nanos;
use statistics::median;

/// The share by which medians may differ, and the milliseconds that count as nothing.
const ALIKE: f64 = 0.1;
const NOTHING: f64 = 1.0;
/// The factor between the longest waits, and the milliseconds by which they may differ.
const TWICE: f64 = 2.0;
const SLOW: f64 = 100.0;

/// The warm-up of a run that was to go on until the engine was stable.
#[model::apply(model::document!)]
#[derive(Copy, Eq)]
pub struct Warmup {
    /// The number of waves.
    pub waves: u64,
    /// True if the last two did not differ.
    pub stable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct WarmupRequest {
    /// Milliseconds from sending to the first token or the whole answer; `None` if it failed.
    wait: Option<f64>,
    /// Milliseconds for each further token, where known.
    tpot: Option<f64>,
}

/// The requests of a warm-up that have ended.
#[derive(Clone, Debug, Default)]
pub struct Waves(BTreeMap<u64, WarmupRequest>);

impl Waves {
    /// Adds a request of the warm-up. `streamed` is true if replies were streamed.
    pub fn add(&mut self, exchange: &Exchange, streamed: bool) {
        let reading = Reading::new(exchange, streamed, None);
        let whole = reading.latency().map(Nanos::as_millis_f64);
        let wait = if streamed { reading.ttft() } else { whole }.filter(|_| exchange.is_ok());
        self.0.insert(exchange.index, WarmupRequest { wait, tpot: reading.tpot() });
    }

    pub fn ended(&self) -> usize {
        self.0.len()
    }

    pub fn judge(&self, size: u64) -> Warmup {
        let mut waves: BTreeMap<u64, Vec<WarmupRequest>> = BTreeMap::new();
        for (index, warmed) in &self.0 {
            waves.entry(index / size.max(1)).or_default().push(*warmed);
        }
        let mut last = waves.values().rev();
        let stable = (last.next().zip(last.next())).is_some_and(|(one, other)| alike(one, other));
        Warmup { waves: waves.len() as u64, stable }
    }
}

fn alike(one: &[WarmupRequest], other: &[WarmupRequest]) -> bool {
    let waits =
        |wave: &[WarmupRequest]| -> Option<Vec<f64>> { wave.iter().map(|own| own.wait).collect() };
    let Some((ours, theirs)) = waits(one).zip(waits(other)) else { return false };
    let near = |a: Vec<f64>, b: Vec<f64>| {
        let medians = median(a).zip(median(b));
        medians.is_none_or(|(a, b)| (a - b).abs() <= (ALIKE * a.min(b)).max(NOTHING))
    };
    let tpots = |wave: &[WarmupRequest]| wave.iter().filter_map(|own| own.tpot).collect();
    let longest = |waits: &[f64]| waits.iter().copied().fold(0.0, f64::max);
    let (long, other_long) = (longest(&ours), longest(&theirs));
    let slower = long.max(other_long) - long.min(other_long);
    near(ours, theirs)
        && near(tpots(one), tpots(other))
        && slower <= (long.min(other_long) * (TWICE - 1.0)).max(SLOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture::{failed, output_usage, reply};
    use model::exchange::Class;
    use model::exchange::Kind::{End, Text};

    /// Waves of four requests; each waits this many milliseconds and has a gap of this many.
    fn waves(all: &[[(u64, u64); 4]]) -> Waves {
        let mut waves = Waves::default();
        for (index, (wait, gap)) in (0..).zip(all.as_flattened()) {
            let (first, second) = (1000 + wait, 1000 + wait + gap);
            let events = [(first, Text, None, 3), (second, Text, None, 3), (second, End, None, 0)];
            let mut exchange = reply(index, 1000, &events);
            exchange.usage = output_usage(2);
            waves.add(&exchange, true);
        }
        waves
    }

    #[test]
    fn waves_that_do_not_differ_are_stable() {
        let usual = [(100, 20), (110, 21), (120, 20), (130, 22)];
        let stable = |all: &[[(u64, u64); 4]]| waves(all).judge(4);
        let of = |waves, stable| Warmup { waves, stable };
        assert_eq!(stable(&[]), of(0, false));
        assert_eq!(stable(&[usual]), of(1, false));
        assert_eq!(stable(&[usual, usual]), of(2, true));
        assert_eq!(stable(&[usual, usual.map(|(w, g)| (w * 2, g))]), of(2, false));
        assert_eq!(stable(&[usual, usual.map(|(w, g)| (w, g * 2))]), of(2, false));
        // One request waited for a compile, in the last wave or in the wave before it.
        let compiles = [(100, 20), (110, 21), (120, 20), (40_000, 22)];
        assert_eq!(stable(&[usual, compiles]), of(2, false));
        assert_eq!(stable(&[compiles, usual]), of(2, false));
        assert_eq!(stable(&[compiles, usual, usual]), of(3, true));
    }

    #[test]
    fn a_wave_with_failures_is_not_stable() {
        let mut all = waves(&[[(100, 20); 4]; 2]);
        let broken = reply(5, 1000, &[(1100, Text, None, 3)]);
        all.add(&failed(broken, Class::Truncated, "seen"), true);
        assert_eq!(all.ended(), 8);
        assert!(!all.judge(4).stable);
    }
}
