//! Further numbers that servers count for each exchange, by the names that backends give them.

use std::collections::BTreeMap;

/// The most names of a summary. Later ones are left out: each record has its own.
const NAMES: usize = 256;

/// A number that a server counts, over the answers that state it.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct ServerCount {
    /// The number of answers that state it, zero included.
    pub answers: u64,
    /// Their sum.
    pub total: u64,
    /// Their mean.
    pub mean: f64,
}

impl ServerCount {
    /// Formats it as text; `number` formats the numbers.
    pub fn label(&self, number: impl Fn(u64) -> String) -> String {
        format!(
            "{} (mean {:.2}, of {} answers)",
            number(self.total),
            self.mean,
            number(self.answers)
        )
    }
}

/// The numbers of the answers seen so far.
#[derive(Default)]
pub(super) struct ServerCounts(BTreeMap<String, ServerCount>);

impl ServerCounts {
    pub(super) fn add(&mut self, counts: &BTreeMap<String, u64>) {
        for (name, count) in counts {
            if self.0.len() == NAMES && !self.0.contains_key(name) {
                continue;
            }
            let all = self.0.entry(name.clone()).or_default();
            all.answers += 1;
            all.total = all.total.saturating_add(*count);
        }
    }

    pub(super) fn finish(mut self) -> BTreeMap<String, ServerCount> {
        for count in self.0.values_mut() {
            count.mean = count.total as f64 / count.answers as f64;
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::fixture::{facts, reply};
    use model::exchange::Kind;

    #[test]
    fn answers_without_a_count_are_not_in_its_mean() {
        let mut run: Vec<_> =
            (0..3).map(|index| reply(index, 1000, &[(1050, Kind::Text, None, 4)])).collect();
        assert!(Summary::new(&facts(), &run).counts.is_empty());
        run[0].counts.insert("image-tokens".to_owned(), 5);
        run[1].counts.insert("image-tokens".to_owned(), 0);
        run[1].counts.insert("searches".to_owned(), u64::MAX);
        run[2].counts.insert("searches".to_owned(), 1);
        let counts = Summary::new(&facts(), &run).counts;
        assert_eq!(counts["image-tokens"], ServerCount { answers: 2, total: 5, mean: 2.5 });
        assert_eq!(counts["searches"].total, u64::MAX);
        assert_eq!(counts.len(), 2);
    }
}
