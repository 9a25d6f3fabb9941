//! The verdicts of a judging, joined to the answers that they are about.

use std::collections::BTreeMap;

use model::exchange::{Exchange, Phase};
use result::judged::Duel;
use result::summary::Column;
use runs::judged::Requests;

use super::answers::Answer;
use super::rows::{Asking, Order};

/// The results of the requests to a judge.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// Number of requests, by outcome.
    pub requests: Requests,
    /// Of the answers without a verdict, those that ended at their limit of tokens.
    pub cut: u64,
    /// The value of each verdict: a grade, or which answer was chosen.
    found: BTreeMap<Asking, f64>,
}

impl Verdicts {
    /// Of this many planned requests, with the scores that the scorer gave the judge's answers.
    ///
    /// # Errors
    /// The first exchange that cannot be read.
    pub fn of<X>(
        planned: u64,
        scores: Option<&Column<f64>>,
        exchanges: impl Iterator<Item = Result<Exchange, X>>,
    ) -> Result<Self, X> {
        let mut verdicts = Verdicts::default();
        for exchange in exchanges {
            verdicts.add(&exchange?, scores);
        }
        let Requests { with_verdict, without_verdict, failed, .. } = verdicts.requests;
        verdicts.requests.planned = planned;
        let seen = with_verdict + without_verdict + failed;
        verdicts.requests.unsent = planned.saturating_sub(seen);
        Ok(verdicts)
    }

    fn add(&mut self, exchange: &Exchange, scores: Option<&Column<f64>>) {
        let asking = Asking::of_id(&exchange.sample.id);
        let Some(asking) = asking.filter(|_| exchange.phase == Phase::Measure) else {
            return;
        };
        let requests = &mut self.requests;
        if !exchange.is_ok() {
            requests.failed += 1;
            let class = exchange.outcome.class();
            *requests.failures.entry(class).or_default() += 1;
            return;
        }
        // What the judge had not said yet may have been another verdict.
        let score = scores.and_then(|scores| scores.get(exchange.index));
        let is_cut = is_cut(exchange);
        match score.filter(|_| !is_cut) {
            Some(value) => {
                requests.with_verdict += 1;
                self.found.insert(asking, value);
            }
            None => {
                requests.without_verdict += 1;
                self.cut += u64::from(is_cut);
            }
        }
    }

    /// The grades of each answer that has any, by the number of its request, in the order of the
    /// repeats.
    pub fn grades(&self) -> BTreeMap<u64, Vec<f64>> {
        let mut grades: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (asking, grade) in &self.found {
            grades.entry(asking.index).or_default().push(*grade);
        }
        grades
    }

    /// Returns the verdicts on each pair.
    pub fn duels(&self, answers: &[Answer], repeats: u32) -> Vec<Duel> {
        let duel = |answer: &Answer| {
            let choice = |repeat, order| {
                let asking = Asking { index: answer.index, repeat, order };
                self.found.get(&asking).copied()
            };
            let choices = (0..repeats).map(|repeat| {
                [Order::RunFirst, Order::BaselineFirst].map(|order| choice(repeat, order))
            });
            Duel { conversation: answer.conversation, choices: choices.collect() }
        };
        answers.iter().map(duel).collect()
    }
}

/// Returns whether a reply ended at its limit of tokens: the server says so, or it gives no reason
/// for the end and counts as many tokens as were asked for.
fn is_cut(exchange: &Exchange) -> bool {
    let counted = exchange.usage.as_ref().and_then(|usage| usage.output_tokens);
    let limit = exchange.sample.output_tokens;
    let is_full = (counted.zip(limit)).is_some_and(|(counted, limit)| counted >= limit);
    exchange.is_cut() || (exchange.finish.is_none() && is_full)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::exchanges::{failed, reply};
    use model::exchange::Kind::{End, Text};
    use model::exchange::{Class, Usage};

    fn answer(index: u64, asking: Asking) -> Exchange {
        let mut exchange = reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
        exchange.sample.id = asking.id();
        exchange
    }

    #[test]
    fn a_reply_as_long_as_its_limit_is_cut_where_no_reason_is_given() {
        let asking = Asking { index: 0, repeat: 0, order: Order::Single };
        for (finish, counted, with_verdict) in
            [(None, Some(16), 0), (None, Some(15), 1), (None, None, 1), (Some("stop"), Some(16), 1)]
        {
            let mut exchange = answer(0, asking);
            exchange.finish = finish.map(str::to_owned);
            exchange.sample.output_tokens = Some(16);
            exchange.usage = counted.map(|output_tokens| Usage {
                output_tokens: Some(output_tokens),
                ..Usage::default()
            });
            let scores: Column<f64> = [(0, 10.0)].into_iter().collect();
            let read = std::iter::once(Ok::<_, Infallible>(exchange));
            let Ok(verdicts) = Verdicts::of(1, Some(&scores), read);
            let found = (verdicts.requests.with_verdict, verdicts.cut);
            assert_eq!(found, (with_verdict, 1 - with_verdict), "{finish:?} {counted:?}");
        }
    }

    #[test]
    fn verdicts_find_their_answers_whatever_the_order_of_the_records() {
        let asking = |index, repeat, order| Asking { index, repeat, order };
        let mut cut = answer(3, asking(9, 1, Order::RunFirst));
        cut.finish = Some("length".into());
        let exchanges = [
            answer(2, asking(9, 0, Order::BaselineFirst)),
            answer(0, asking(9, 0, Order::RunFirst)),
            cut,
            failed(answer(1, asking(9, 1, Order::BaselineFirst)), Class::HttpStatus, "503"),
        ];
        // The third was cut after brackets, which the scorer may have taken for a verdict.
        let scores: Column<f64> = [(0, 1.0), (2, 0.5), (3, 0.0)].into_iter().collect();
        let read = exchanges.into_iter().map(Ok::<_, Infallible>);
        let Ok(verdicts) = Verdicts::of(6, Some(&scores), read);
        let requests = &verdicts.requests;
        assert_eq!((requests.planned, requests.with_verdict, requests.unsent), (6, 2, 2));
        assert_eq!((requests.without_verdict, requests.failed), (1, 1));
        assert_eq!(requests.failures[&Class::HttpStatus], 1);
        assert_eq!(verdicts.cut, 1);
        let of = Answer {
            index: 9,
            sample: answer(0, asking(9, 0, Order::Single)).sample,
            conversation: None,
            text: String::new(),
            baseline: None,
        };
        let duels = verdicts.duels(&[of], 2);
        assert_eq!(duels[0].choices, [[Some(1.0), Some(0.5)], [None, None]]);
        assert_eq!(verdicts.grades()[&9], [1.0, 0.5]);
    }
}
