//! Token counts of the answered exchanges, by source, and compared if there are two.

use std::collections::BTreeMap;

use super::kinds::{Drafts, Kinds, Reported};
use super::reasoning::Reasoning;
use super::speculation::{Lengths, Paces, Speculation, Steps};
use crate::metric::count::is_text;
use crate::metric::{Count, Reading, Source};

/// Tokens of the answered requests, and the sources of the counts.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Tokens {
    /// Tokens of the prompts.
    pub input: Counted,
    /// Tokens of the answers.
    pub output: Counted,
    /// The tokens of answers that are not complete, which no other figure includes; absent if
    /// nothing did.
    pub left_out: Option<LeftOut>,
    /// Sum of the requested output lengths, if every request had one.
    pub output_requested: Option<u64>,
    /// Sum of the answers' tokens as retokenized by the client, if every answer was retokenized.
    pub output_retokenized: Option<u64>,
    /// Sum of the prompt tokens found in the server's prefix cache, over the answers that report
    /// it.
    pub input_cached: Option<u64>,
    /// Sum of the reasoning tokens, over the answers that report them.
    pub output_reasoning: Option<u64>,
    /// The drafts of speculative decoding, over the answers that report them; absent if none does.
    pub drafts: Option<Drafts>,
    /// The steps of speculative decoding, over the answers that report them; absent if none does.
    pub speculation: Option<Speculation>,
    /// Prompt tokens of images; absent if no answer reports them.
    pub input_image: Option<Reported>,
    /// Prompt tokens of videos, without their sound; absent if no answer reports them.
    pub input_video: Option<Reported>,
    /// Prompt tokens of audio; absent if no answer reports them.
    pub input_audio: Option<Reported>,
    /// Answer tokens of audio; absent if no answer reports them.
    pub output_audio: Option<Reported>,
    /// The part of the reasoning that the server shows; absent if no answer has any.
    pub reasoning: Option<Reasoning>,
    /// Output tokens per output event that carries bytes; absent if replies were not streamed.
    pub per_event: Option<f64>,
    /// The server's input tokens against the dataset's.
    pub input_against_dataset: Option<Comparison>,
    /// Output tokens by the source above against the requested tokens.
    pub output_against_requested: Option<Comparison>,
    /// The server's total of output tokens against the sum of its counts for each event.
    pub output_against_events: Option<Comparison>,
    /// Output tokens by the source above against the retokenized count.
    pub output_against_retokenized: Option<Comparison>,
}

/// A sum of token counts by their sources.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Counted {
    /// The sum over the exchanges whose count is known; absent if none is.
    pub total: Option<u64>,
    /// The number of exchanges counted by each source.
    pub exchanges_by_source: BTreeMap<Source, u64>,
    /// Exchanges whose count is unknown. The sum does not include them.
    pub unknown: u64,
}

/// Output of answers that are not complete: short, cut off, cancelled, or with another failure
/// after their first output.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct LeftOut {
    /// The number of such answers.
    pub answers: u64,
    /// Their output tokens, as far as known: by the server's usage, or by its count for each event.
    pub output: u64,
    /// The number of such answers without a known count.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub unknown: u64,
}

/// Two counts of the same tokens, over the exchanges that have both.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct Comparison {
    /// Exchanges that have both.
    pub exchanges: u64,
    /// Exchanges counted lower than the reference, beyond tolerance.
    pub lower: u64,
    /// Exchanges counted higher than the reference, beyond tolerance.
    pub higher: u64,
    /// Sum of the counts.
    pub counted: u64,
    /// Sum of the references.
    pub reference: u64,
}

#[derive(Default)]
pub(super) struct TokenSums {
    tokens: Tokens,
    answers: u64,
    requested: Partial,
    retokenized: Partial,
    cached: Partial,
    reasoning: Partial,
    shown: Reasoning,
    kinds: Kinds,
    steps: Steps,
    lengths: Lengths,
    paces: Paces,
    /// Output tokens of the exchanges that have pieces and a known count.
    of_pieces: u64,
    pieces: u64,
    left_out: LeftOut,
    /// Tokens of the model's chat template around one message; 0 if it is not known.
    of_template: u32,
}

/// A sum over the exchanges that have the count.
#[derive(Default)]
struct Partial {
    sum: u64,
    exchanges: u64,
}

impl Partial {
    fn add(&mut self, tokens: Option<u32>) {
        self.sum += u64::from(tokens.unwrap_or(0));
        self.exchanges += u64::from(tokens.is_some());
    }

    /// The sum, if at least `needed` exchanges have the count, and at least one.
    fn with(&self, needed: u64) -> Option<u64> {
        (self.exchanges >= needed.max(1)).then_some(self.sum)
    }
}

impl TokenSums {
    pub(super) fn new(tokenizer: Option<&super::Tokenizer>) -> Self {
        let of_template = tokenizer.and_then(|tokenizer| tokenizer.template_tokens).unwrap_or(0);
        TokenSums { of_template, ..TokenSums::default() }
    }

    /// Adds an answer. The client's tokenizer finds `retokenized` tokens in all of it, and
    /// `reasoning` in its reasoning.
    pub(super) fn add(
        &mut self,
        reading: &Reading<'_>,
        retokenized: Option<u32>,
        reasoning: Option<u32>,
    ) {
        let exchange = reading.exchange;
        let usage = exchange.usage.unwrap_or_default();
        // Each of several answers was to have the length; the server counts them together.
        let answers = u32::try_from(exchange.choices.len() + 1).unwrap_or(u32::MAX);
        let requested = exchange.sample.output_tokens.map(|length| length.saturating_mul(answers));
        let (input, output) = (reading.input_tokens, reading.output_tokens);
        self.tokens.input.add(input);
        self.cached.add(usage.cached_input_tokens);
        self.kinds.add_input(&usage);
        let server_input = input.filter(|count| count.source == Source::Usage);
        // On a chat route, the server counts its template's tokens too.
        let dataset = exchange.sample.input_tokens.map(|bare| {
            let wrapped = bare.saturating_add(self.of_template);
            let nearer = server_input
                .is_some_and(|count| count.tokens.abs_diff(wrapped) < count.tokens.abs_diff(bare));
            if nearer { wrapped } else { bare }
        });
        compare(&mut self.tokens.input_against_dataset, server_input, dataset, |dataset| {
            (dataset / 50).max(4)
        });
        // Vectors and orders have no tokens that could be unknown.
        if !is_text(exchange) {
            return;
        }
        self.answers += 1;
        self.tokens.output.add(output);
        self.requested.add(requested);
        self.retokenized.add(retokenized);
        self.reasoning.add(usage.reasoning_tokens);
        self.kinds.add_output(&usage);
        self.steps.add(exchange);
        self.lengths.add(exchange);
        self.paces.add(reading);
        self.shown.add(reading, reasoning);
        if let (Some(output), 1..) = (output, reading.pieces) {
            self.of_pieces += u64::from(output.tokens);
            self.pieces += reading.pieces;
        }

        // A length that the server stopped for is the requested one, and says nothing.
        let got = output.filter(|count| count.source != Source::Length);
        let retokenizes = got.is_some_and(|count| count.source == Source::Retokenized);
        let tolerance = if retokenizes { five_percent } else { |_| 0 };
        compare(&mut self.tokens.output_against_requested, got, requested, tolerance);
        // Where the server gives a total, and tokens by the event too, it should agree with itself.
        let usage = output.filter(|count| count.source == Source::Usage);
        compare(&mut self.tokens.output_against_events, usage, reading.stated, |_| 0);
        let counted = output.filter(|count| count.source != Source::Retokenized);
        compare(&mut self.tokens.output_against_retokenized, counted, retokenized, five_percent);
    }

    /// Takes note of the output of an incomplete answer. If output with an unknown count came,
    /// there is no guess: an event may hold any number of tokens.
    pub(super) fn leave_out(&mut self, reading: &Reading<'_>) {
        let counted = reading.output_tokens.filter(|count| count.tokens > 0);
        let came = reading.exchange.events.kind.iter().any(|kind| kind.is_output());
        if !is_text(reading.exchange) || !(came || counted.is_some()) {
            return;
        }
        self.left_out.answers += 1;
        match counted {
            Some(count) => self.left_out.output += u64::from(count.tokens),
            None => self.left_out.unknown += 1,
        }
    }

    pub(super) fn finish(self, streamed: bool) -> Tokens {
        let mut tokens = Tokens {
            output_requested: self.requested.with(self.answers),
            output_retokenized: self.retokenized.with(self.answers),
            input_cached: self.cached.with(1),
            output_reasoning: self.reasoning.with(1),
            reasoning: Some(self.shown).filter(|shown| !shown.is_empty()),
            per_event: (streamed && self.pieces > 0)
                .then(|| self.of_pieces as f64 / self.pieces as f64),
            left_out: Some(self.left_out).filter(|left_out| left_out.answers > 0),
            ..self.tokens
        };
        self.kinds.finish(&mut tokens);
        let tpot = self.paces.finish();
        let steps = self.steps.finish();
        let acceptance_length_interval = self.lengths.finish();
        tokens.speculation =
            steps.map(|steps| Speculation { acceptance_length_interval, tpot, ..steps });
        tokens
    }
}

impl Counted {
    fn add(&mut self, count: Option<Count>) {
        match count {
            Some(Count { tokens, source }) => {
                self.total = Some(self.total.unwrap_or(0) + u64::from(tokens));
                *self.exchanges_by_source.entry(source).or_default() += 1;
            }
            None => self.unknown += 1,
        }
    }
}

/// The most tokens by which a second tokenization may differ: 5 %, at least 4.
fn five_percent(tokens: u32) -> u32 {
    (tokens / 20).max(4)
}

/// Adds one exchange to a comparison, if it has both counts. `tolerance` is in tokens.
fn compare(
    comparison: &mut Option<Comparison>,
    counted: Option<Count>,
    reference: Option<u32>,
    tolerance: fn(u32) -> u32,
) {
    let Some((counted, reference)) = counted.zip(reference) else { return };
    let comparison = comparison.get_or_insert_default();
    comparison.exchanges += 1;
    comparison.counted += u64::from(counted.tokens);
    comparison.reference += u64::from(reference);
    if counted.tokens.abs_diff(reference) > tolerance(reference) {
        let (lower, higher) = (&mut comparison.lower, &mut comparison.higher);
        *(if counted.tokens < reference { lower } else { higher }) += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::finding::{Id, Verdict};
    use crate::summary::Summary;
    use crate::summary::fixture::{facts, reply};
    use model::exchange::Kind::{Order, Vector};
    use model::exchange::{Exchange, Kind, Ranked, Usage, Vectors};

    /// A whole reply with two vectors or an order, whose server reports the prompt's tokens and
    /// none of the answer.
    fn embedding(index: u64, kind: Kind) -> Exchange {
        let sent = 1000 + index * 100;
        let mut exchange = reply(index, sent, &[(sent + 40, kind, None, 0)]);
        match kind {
            Kind::Vector => {
                exchange.vectors = Some(Vectors { count: 2, dimensions: 768 });
            }
            _ => {
                exchange.order = vec![Ranked { index: 1, score: 0.5 }];
            }
        }
        exchange.output = String::new();
        // Every request of a run with a length in its plan has it.
        exchange.sample.output_tokens = Some(128);
        exchange.usage =
            Some(Usage { input_tokens: Some(12), output_tokens: Some(0), ..Usage::default() });
        exchange
    }

    /// Two answers of five tokens each, in one reply: the usage counts both, and each was to have
    /// five.
    #[test]
    fn several_answers_to_a_request_are_not_too_long() {
        let mut exchange =
            reply(0, 1000, &[(1100, Kind::Text, None, 4), (1200, Kind::Text, None, 4)]);
        exchange.choices = vec!["two".into()];
        exchange.sample.output_tokens = Some(5);
        exchange.usage = Some(Usage { output_tokens: Some(10), ..Usage::default() });
        let mut facts = facts();
        facts.retokenized = [(0, 10)].into_iter().collect();
        let tokens = Summary::new(&facts, &[exchange]).tokens;
        assert_eq!((tokens.output.total, tokens.output_requested), (Some(10), Some(10)));
        let against = tokens.output_against_requested.unwrap();
        assert_eq!((against.lower, against.higher), (0, 0));
        assert_eq!(tokens.reasoning, None);
    }

    #[test]
    fn vectors_and_orders_have_no_tokens_that_could_be_missing() {
        for kind in [Vector, Order] {
            let run: Vec<Exchange> = (0..4).map(|index| embedding(index, kind)).collect();
            let mut facts = facts();
            facts.retokenized = (0..4).map(|index| (index, 0)).collect();
            let summary = Summary::new(&facts, &run);
            let tokens = &summary.tokens;
            assert_eq!(tokens.input.total, Some(48));
            assert_eq!((tokens.output.total, tokens.output.unknown), (None, 0));
            assert_eq!((tokens.output_requested, tokens.output_retokenized), (None, None));
            assert_eq!(tokens.output_against_requested, None);
            assert_eq!(summary.throughput.output_tokens_per_s, None);
            assert_eq!(summary.throughput.total_tokens_per_s, None);
            assert_eq!(summary.throughput.peak_output_tokens_per_s, None);
            for absent in ["ttft", "ttft-any", "tpot", "itl", "output-tokens", "output-speed"] {
                assert!(summary.metric(absent).is_none(), "{absent}");
            }
            assert_eq!(summary.metric("e2e").unwrap().median, 40.0);
            assert_eq!(summary.metric("input-tokens").unwrap().count, 4);
            let ids: Vec<Id> = summary.findings.iter().map(|finding| finding.id).collect();
            assert!(!ids.contains(&Id::TokensUnknown) && !ids.contains(&Id::ShortAnswers));
            assert_eq!(summary.verdict, Verdict::Valid, "{ids:?}");
        }
    }
}
