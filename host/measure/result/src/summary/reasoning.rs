//! The part of a model's reasoning that its server shows: the tokens that its usage counts against
//! the tokens of the text that came.
//!
//! It matters to the reader of a result, because hidden reasoning is time without an event. It is
//! part of the time to the first token, and its tokens are in the usage, but in no gap.

use crate::metric::Reading;
use model::exchange::Kind;

/// The share of the counted tokens that the text must hold to be all of the reasoning. Text that is
/// tokenized again rarely gives exactly the same tokens.
const SHOWN: f64 = 0.9;

/// The part of their reasoning that answers show.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Reasoning {
    /// Answers whose reasoning text has the tokens that the server counts, up to a tenth fewer.
    pub shown: u64,
    /// Answers whose reasoning text has fewer: a summary of it.
    pub summarised: u64,
    /// Answers whose reasoning the server counts, but does not send.
    pub hidden: u64,
    /// Answers with reasoning whose tokens are known on one side only: the server does not count
    /// them, or this side has no tokenizer of the model.
    pub unknown: u64,
    /// Tokens of reasoning that the server counts, over the answers that are shown, summarised or
    /// hidden.
    pub counted: u64,
    /// Tokens of the reasoning text of the same answers.
    pub in_text: u64,
}

impl Reasoning {
    /// Adds an answer; `retokenized` is the count of its reasoning text by the client's tokenizer.
    pub(super) fn add(&mut self, reading: &Reading<'_>, retokenized: Option<u32>) {
        let exchange = reading.exchange;
        let counted = exchange.usage.and_then(|usage| usage.reasoning_tokens);
        let text =
            if exchange.reasoning.is_empty() { Some(0) } else { stated(reading).or(retokenized) };
        match (counted, text) {
            (None | Some(0), _) if exchange.reasoning.is_empty() => {}
            (Some(counted @ 1..), Some(text)) => {
                self.counted += u64::from(counted);
                self.in_text += u64::from(text);
                *match text {
                    _ if exchange.reasoning.is_empty() => &mut self.hidden,
                    text if f64::from(text) >= SHOWN * f64::from(counted) => &mut self.shown,
                    _ => &mut self.summarised,
                } += 1;
            }
            _ => self.unknown += 1,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Reasoning::default()
    }

    /// Counts answers by the fate of their reasoning, as text, such as `shown 12, hidden 3`.
    pub fn label(&self) -> String {
        let kinds = [
            ("shown", self.shown),
            ("summarised", self.summarised),
            ("hidden", self.hidden),
            ("unknown", self.unknown),
        ];
        let known = kinds.iter().filter(|(_, count)| *count > 0);
        let known: Vec<String> = known.map(|(kind, count)| format!("{kind} {count}")).collect();
        known.join(", ")
    }
}

/// The tokens of the reasoning events, if the server states the tokens of every output event.
fn stated(reading: &Reading<'_>) -> Option<u32> {
    reading.stated?;
    let reasoning = reading.exchange.events.iter().filter(|event| event.kind == Kind::Reasoning);
    Some(reasoning.fold(0u32, |sum, event| sum.saturating_add(event.tokens.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture::reply;
    use model::exchange::{Exchange, Kind, Usage};

    fn reasoned(counted: Option<u32>, text: &str, stated: Option<u32>) -> Exchange {
        let bytes = text.len() as u32;
        let mut events = vec![(1200, Kind::Text, Some(1), 1)];
        if !text.is_empty() {
            events.insert(0, (1100, Kind::Reasoning, stated, bytes));
        }
        let mut exchange = reply(0, 1000, &events);
        exchange.reasoning = text.to_owned();
        exchange.usage =
            Some(Usage { output_tokens: Some(30), reasoning_tokens: counted, ..Usage::default() });
        exchange
    }

    fn label(exchange: &Exchange, retokenized: Option<u32>) -> String {
        let mut reasoning = Reasoning::default();
        reasoning.add(&Reading::new(exchange, true, None), retokenized);
        reasoning.label()
    }

    #[test]
    fn compares_the_text_with_the_servers_count() {
        for (counted, text, retokenized, expected) in [
            (Some(20), "all of it", Some(20), "shown 1"),
            (Some(20), "nearly all", Some(18), "shown 1"),
            (Some(20), "more than was counted", Some(25), "shown 1"),
            (Some(20), "a summary", Some(17), "summarised 1"),
            (Some(20), "", None, "hidden 1"),
            (Some(20), "", Some(0), "hidden 1"),
            (Some(20), "not tokenized", None, "unknown 1"),
            (None, "not counted", Some(9), "unknown 1"),
            (Some(0), "counted as none", Some(3), "unknown 1"),
            (Some(0), "", None, ""),
            (None, "", None, ""),
        ] {
            let exchange = reasoned(counted, text, None);
            assert_eq!(label(&exchange, retokenized), expected, "{text:?}");
        }
    }

    #[test]
    fn stated_tokens_go_before_recounted_ones() {
        let exchange = reasoned(Some(20), "pieces", Some(20));
        assert_eq!(label(&exchange, Some(7)), "shown 1");
        assert_eq!(label(&exchange, None), "shown 1");
    }

    #[test]
    fn kinds_are_listed_in_their_order() {
        let mut reasoning = Reasoning::default();
        let mut add = |counted, text, retokenized| {
            let exchange = reasoned(counted, text, None);
            reasoning.add(&Reading::new(&exchange, true, None), retokenized);
        };
        add(Some(8), "", None);
        add(Some(8), "shown", Some(8));
        add(Some(8), "shown", Some(8));
        assert_eq!(reasoning.label(), "shown 2, hidden 1");
        assert_eq!((reasoning.counted, reasoning.in_text), (24, 16));
        assert!(!reasoning.is_empty());
    }
}
