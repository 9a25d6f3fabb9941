//! Remarks of a dataset on samples that it left out or changed, and the reasons: counted while
//! samples are made, for the user to read with the results.
//!
//! [`Dataset::remarks`](crate::Dataset::remarks) returns the list. A dataset that shrinks in
//! silence, or a cut prompt, changes the measurement.

use crate::{Remark, Treatment};

/// The most reasons that are counted one by one; more are counted together.
const MOST_REASONS: usize = 64;

/// The most characters of a reason or an example; the rest is cut off.
const MOST_CHARACTERS: usize = 200;

/// The reason of all remarks beyond [`MOST_REASONS`].
const OTHER: &str = "other reasons";

/// Counts a dataset's omissions and changes by reason, and keeps the first example of each.
///
/// ```
/// use runner_plugin::report::Remarks;
/// let mut remarks = Remarks::default();
/// remarks.dropped("prompt of fewer than 4 tokens", || "conversation 17".to_owned());
/// remarks.dropped("prompt of fewer than 4 tokens", || "conversation 30".to_owned());
/// let [remark] = &remarks.list()[..] else { panic!("one remark") };
/// assert_eq!((remark.count, remark.first.as_deref()), (2, Some("conversation 17")));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Remarks {
    /// In the order in which the reasons came up.
    remarks: Vec<Remark>,
}

impl Remarks {
    /// Counts something left out; `example` names it, and is called for the first of a reason.
    pub fn dropped(&mut self, reason: &str, example: impl FnOnce() -> String) {
        self.count(Treatment::Dropped, reason, 1, example);
    }

    /// Counts something cut; `example` names it, and is called for the first of a reason.
    pub fn truncated(&mut self, reason: &str, example: impl FnOnce() -> String) {
        self.count(Treatment::Truncated, reason, 1, example);
    }

    /// Counts something changed; `example` names it, and is called for the first of a reason.
    pub fn repaired(&mut self, reason: &str, example: impl FnOnce() -> String) {
        self.count(Treatment::Repaired, reason, 1, example);
    }

    /// Counts something used again; `example` names it, and is called for the first of a reason.
    pub fn repeated(&mut self, reason: &str, example: impl FnOnce() -> String) {
        self.count(Treatment::Repeated, reason, 1, example);
    }

    /// Counts `count` at once, such as rows skipped while a file was read; nothing if it is 0.
    pub fn count(
        &mut self,
        what: Treatment,
        reason: &str,
        count: u64,
        example: impl FnOnce() -> String,
    ) {
        if count == 0 {
            return;
        }
        let full = self.remarks.len() >= MOST_REASONS;
        let known = |reason: &str| {
            let mut remarks = self.remarks.iter();
            remarks.position(|remark| remark.what == what && remark.reason == reason)
        };
        let reason = shortened(reason, MOST_CHARACTERS);
        let at = match known(&reason) {
            None if full => known(OTHER),
            at => at,
        };
        match at.and_then(|at| self.remarks.get_mut(at)) {
            Some(remark) => remark.count = remark.count.saturating_add(count),
            None => self.remarks.push(Remark {
                what,
                reason: if full { OTHER.to_owned() } else { reason },
                count,
                first: Some(shortened(&example(), MOST_CHARACTERS))
                    .filter(|example| !example.is_empty()),
            }),
        }
    }

    /// The reasons with their counts, for a message: `too short: 3; too long: 1`.
    #[must_use]
    pub fn reasons(&self) -> String {
        let one = |remark: &Remark| format!("{}: {}", remark.reason, remark.count);
        self.remarks.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// All counts so far, in the order in which the reasons came up.
    #[must_use]
    pub fn list(&self) -> Vec<Remark> {
        self.remarks.clone()
    }
}

/// A text for a message, cut after this many characters.
#[must_use]
pub fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_by_treatment_and_reason() {
        let mut remarks = Remarks::default();
        remarks.dropped("too short", || "line 3".to_owned());
        remarks.truncated("too long", || "line 4".to_owned());
        remarks.dropped("too short", || panic!("only the first is an example"));
        remarks.truncated("too short", String::new);
        remarks.count(Treatment::Repeated, "too few", 7, || "line 1".to_owned());
        remarks.count(Treatment::Repaired, "never", 0, || panic!("nothing to count"));
        let remark = |what, reason: &str, count, first: Option<&str>| Remark {
            what,
            reason: reason.to_owned(),
            count,
            first: first.map(str::to_owned),
        };
        assert_eq!(
            remarks.list(),
            [
                remark(Treatment::Dropped, "too short", 2, Some("line 3")),
                remark(Treatment::Truncated, "too long", 1, Some("line 4")),
                remark(Treatment::Truncated, "too short", 1, None),
                remark(Treatment::Repeated, "too few", 7, Some("line 1")),
            ]
        );
    }

    #[test]
    fn reasons_and_examples_are_bounded() {
        let mut remarks = Remarks::default();
        for number in 0..1000 {
            remarks.dropped(&format!("reason {number}"), || "é".repeat(10_000));
            remarks.repaired(&format!("reason {number}"), String::new);
        }
        let list = remarks.list();
        assert_eq!(list.len(), MOST_REASONS + 2);
        assert_eq!(list.iter().map(|remark| remark.count).sum::<u64>(), 2000);
        assert_eq!(list[MOST_REASONS].reason, OTHER);
        assert_eq!(list[MOST_REASONS].count, 1000 - 32);
        let example = list[0].first.as_deref().unwrap_or_default();
        assert_eq!(example.chars().count(), MOST_CHARACTERS + 1);
    }
}
