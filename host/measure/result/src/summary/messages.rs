//! The messages of failures of one class: the number of failures by status, by reason and by kind
//! of message, and the first message of each kind, in bounded memory.
//!
//! Messages are of one kind if they have the same status and differ only in parts with digits, such
//! as a number or a time.

use std::collections::BTreeMap;

use super::Failures;
use model::exchange::Reason;

/// The most kinds of messages that a class reports.
const REPORTED: usize = 8;
/// The most kinds that are counted. Of more than these, the first kinds are counted.
const COUNTED: usize = 64;

/// A kind of message.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Message {
    /// The first message of the kind, in the order of the requests.
    pub text: String,
    /// The number of failures with a message of this kind.
    pub count: u64,
}

#[derive(Default)]
pub(super) struct Messages {
    count: u64,
    statuses: BTreeMap<u16, u64>,
    reasons: BTreeMap<Reason, u64>,
    first: Option<u64>,
    kinds: BTreeMap<(Option<u16>, String), Kind>,
}

struct Kind {
    first: u64,
    text: String,
    count: u64,
}

impl Messages {
    /// Adds this many failures with the same message, with the status of their replies if the class
    /// is of statuses. The first has this index.
    pub(super) fn add(
        &mut self,
        index: u64,
        count: u64,
        (status, reason): (Option<u16>, Option<Reason>),
        message: &str,
    ) {
        self.count += count;
        if let Some(status) = status {
            *self.statuses.entry(status).or_default() += count;
        }
        if let Some(reason) = reason {
            *self.reasons.entry(reason).or_default() += count;
        }
        self.first = Some(self.first.map_or(index, |first| first.min(index)));
        let kind = self.kinds.entry((status, kind_of(message)));
        let kind =
            kind.or_insert_with(|| Kind { first: index, text: message.to_owned(), count: 0 });
        kind.count += count;
        // Of two at one index, as in two slices' records, the choice does not depend on the order.
        if (index, message) < (kind.first, kind.text.as_str()) {
            (kind.first, kind.text) = (index, message.to_owned());
        }
        if self.kinds.len() > COUNTED {
            let last = self.kinds.iter().max_by_key(|(_, kind)| kind.first);
            if let Some(last) = last.map(|(key, _)| key.clone()) {
                self.kinds.remove(&last);
            }
        }
    }

    pub(super) fn finish(self) -> Failures {
        let mut kinds: Vec<Kind> = self.kinds.into_values().collect();
        kinds.sort_unstable_by(|one, other| {
            (one.first, one.text.as_str()).cmp(&(other.first, other.text.as_str()))
        });
        kinds.truncate(REPORTED);
        let reported: u64 = kinds.iter().map(|kind| kind.count).sum();
        let messages = kinds.into_iter().map(|kind| Message { text: kind.text, count: kind.count });
        Failures {
            count: self.count,
            statuses: self.statuses,
            reasons: self.reasons,
            first: self.first.unwrap_or_default(),
            messages: messages.collect(),
            other_messages: self.count - reported,
        }
    }
}

/// Finds the part that messages of one kind have in common: all but the words with digits.
fn kind_of(message: &str) -> String {
    let mut kind = String::with_capacity(message.len());
    for part in message.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        if word.contains(|c: char| c.is_ascii_digit()) {
            kind.push('#')
        } else {
            kind.push_str(word)
        }
        kind.push_str(&part[word.len()..]);
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_kind_differ_in_words_with_digits_only() {
        let of = "HTTP #: request chatcmpl-# waited # in the queue (# of #)";
        for message in [
            "HTTP 503: request chatcmpl-8f2a waited 30s in the queue (12 of 12)",
            "HTTP 500: request chatcmpl-77 waited 1ms in the queue (3 of 12)",
        ] {
            assert_eq!(kind_of(message), of);
        }
        assert_eq!(kind_of("größer als erlaubt"), "größer als erlaubt");
        assert_ne!(kind_of("queue full"), kind_of("queue is full"));
    }

    #[test]
    fn the_first_of_each_kind_is_kept_and_all_are_counted() {
        let mut messages = Messages::default();
        for (index, status, text) in [
            (4, 503, "busy: 9 waiting"),
            (2, 503, "busy: 7 waiting"),
            (3, 429, "busy: 8 waiting"),
            (7, 503, "no such model"),
        ] {
            messages.add(index, 1, (Some(status), None), text);
        }
        let failures = messages.finish();
        let kinds: Vec<_> = (failures.messages.iter())
            .map(|message| (message.text.as_str(), message.count))
            .collect();
        assert_eq!(kinds, [("busy: 7 waiting", 2), ("busy: 8 waiting", 1), ("no such model", 1),]);
        assert_eq!(failures.statuses, BTreeMap::from([(429, 1), (503, 3)]));
        assert_eq!((failures.count, failures.first), (4, 2));
        assert_eq!(failures.other_messages, 0);
    }

    #[test]
    fn any_number_of_kinds_takes_bounded_memory() {
        let mut messages = Messages::default();
        for index in 0..1000 {
            let text: String = (b'a'..=b'j').map(char::from).take(1 + index % 10).collect();
            let other = char::from(b'a' + (index / 10 % 26) as u8);
            messages.add(index as u64, 1, (None, None), &format!("{text} {other}"));
            assert!(messages.kinds.len() <= COUNTED);
        }
        let failures = messages.finish();
        assert_eq!(failures.messages.len(), REPORTED);
        let counted: u64 = failures.messages.iter().map(|kind| kind.count).sum();
        assert_eq!(counted + failures.other_messages, 1000);
    }
}
