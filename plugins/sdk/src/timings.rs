//! The server's own timings of a request, and its speculative decoding: the values within the
//! contract's limits.
//!
//! A server's clocks may contradict each other, and its formats change. The answer is worth more
//! than such a value, so an impossible value counts as not reported.

use crate::{Meaning, Speculation, Timings};

const ENTRIES: usize = 1024;

/// Nothing timed: a backend names the parts that its server reports, and `..Timings::default()`.
impl Default for Timings {
    fn default() -> Self {
        Timings { queue: None, prefill: None, first_token: None, decode: None }
    }
}

impl Timings {
    /// The event, without values that are no durations. Absent if nothing is left.
    pub fn meaning(self) -> Option<Meaning> {
        let possible =
            |value: Option<f64>| value.filter(|value| value.is_finite() && *value >= 0.0);
        let timings = Timings {
            queue: possible(self.queue),
            prefill: possible(self.prefill),
            first_token: possible(self.first_token),
            decode: possible(self.decode),
        };
        (timings != Timings::default()).then_some(Meaning::Timings(timings))
    }
}

impl Speculation {
    /// The event of `steps` steps and their numbers that accepted 0, 1, 2, … proposed tokens.
    /// Without `steps`, the list's sum counts. A list with another sum, or a too long list, is
    /// dropped. Absent if nothing is left.
    pub fn meaning(steps: Option<u32>, mut by_accepted: Vec<u32>) -> Option<Meaning> {
        let sum = by_accepted
            .iter()
            .try_fold(0_u32, |sum, more| sum.checked_add(*more))
            .filter(|_| !by_accepted.is_empty());
        let steps = steps.or(sum)?;
        if sum != Some(steps) || by_accepted.len() > ENTRIES {
            by_accepted.clear();
        }
        Some(Meaning::Speculation(Speculation { steps, steps_by_accepted: by_accepted }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_cannot_be_are_left_out() {
        let stated = Timings {
            queue: Some(-0.001),
            prefill: Some(f64::NAN),
            first_token: Some(f64::INFINITY),
            decode: Some(0.0),
        };
        let kept = Timings { decode: Some(0.0), ..Timings::default() };
        assert_eq!(stated.meaning(), Some(Meaning::Timings(kept)));
        let nothing = Timings { queue: Some(f64::NEG_INFINITY), ..Timings::default() };
        assert_eq!(nothing.meaning(), None);
        assert_eq!(Timings::default().meaning(), None);
    }

    #[test]
    fn steps_and_list_agree_or_the_list_is_left_out() {
        let event = |steps, accepted: &[u32]| {
            let steps_by_accepted = accepted.to_vec();
            Some(Meaning::Speculation(Speculation { steps, steps_by_accepted }))
        };
        let full = vec![1; ENTRIES];
        let long = vec![1; ENTRIES + 1];
        for (steps, accepted, meant) in [
            (Some(3), vec![1, 1, 1], event(3, &[1, 1, 1])),
            (None, vec![0, 2], event(2, &[0, 2])),
            (Some(3), vec![], event(3, &[])),
            (Some(4), vec![1, 1, 1], event(4, &[])),
            (Some(0), vec![0, 0], event(0, &[0, 0])),
            (None, full.clone(), event(1024, &full)),
            (Some(1025), long, event(1025, &[])),
            (Some(1), vec![u32::MAX, 2], event(1, &[])),
            (None, vec![u32::MAX, 2], None),
            (None, vec![], None),
        ] {
            assert_eq!(Speculation::meaning(steps, accepted), meant);
        }
    }
}
