//! The count of requests that are due by an instant. This follows from the plan, so an onlooker
//! counts for itself and does not ask the pacer.

use std::iter::Peekable;

use model::arrival::{Due, DueTimes, Trace};
use model::units::Nanos;
use scenario::plan::{Amount, Plan};

/// Counts due times as they pass.
pub(super) struct DueCount {
    times: Peekable<DueTimes>,
    end: Nanos,
    count: u64,
}

impl DueCount {
    /// For a plan; nothing if due times depend on the server, or if any number is due at once.
    pub fn new(plan: &Plan, trace: &Trace) -> Option<Self> {
        let arrival = &plan.load.arrival;
        let endless = arrival.rate() == Some(f64::INFINITY) && plan.requests().is_none();
        if !arrival.is_open() || endless {
            return None;
        }
        let times: DueTimes = Box::new(plan.due_times(trace));
        Some(DueCount {
            times: times.peekable(),
            end: match plan.load.amount {
                Amount::Requests(_) | Amount::Sessions(_) => Nanos(u64::MAX),
                Amount::Duration(duration) => duration,
            },
            count: 0,
        })
    }

    /// Returns the number of due requests at this time after the beginning. Spans must not get
    /// shorter from call to call.
    pub fn upto(&mut self, elapsed: Nanos) -> u64 {
        let end = self.end;
        let passed = |due: &Due| matches!(due, Due::At(at) if *at <= elapsed && *at < end);
        while self.times.next_if(passed).is_some() {
            self.count += 1;
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_are_counted_as_they_pass() {
        let times: DueTimes =
            Box::new([0, 10, 10, 25, 40].map(|at| Due::At(Nanos(at))).into_iter());
        let mut count = DueCount { times: times.peekable(), end: Nanos(40), count: 0 };
        let counts = [0, 9, 10, 24, 25, 39, 1_000].map(|elapsed| count.upto(Nanos(elapsed)));
        // A request that is due at the very end is not sent, and so never due.
        assert_eq!(counts, [1, 1, 3, 3, 4, 4, 4]);
    }
}
