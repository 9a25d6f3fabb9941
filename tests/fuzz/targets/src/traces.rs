//! Recorded arrival times.

use model::arrival::Trace;

/// The longest run in seconds, about. A longer trace is refused when a run is resolved.
const YEAR: f64 = 366.0 * 86_400.0;

/// A trace: its times are finite, in order and counted from the first, at any speed.
pub fn trace(data: &[u8]) {
    let Ok(trace) = Trace::read(data) else { return };
    assert!(!trace.is_empty());
    for time_scale in [0.25, 1.0, 3.0] {
        let length = trace.length(time_scale);
        if length > YEAR {
            continue;
        }
        assert!(length >= 0.0, "a length of {length}");
        assert_eq!(trace.first(time_scale).0, 0);
        let peak = trace.peak(time_scale);
        assert!((1..=trace.len() as u64).contains(&peak), "a peak of {peak}");
    }
}
