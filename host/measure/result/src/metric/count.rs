//! Input and output tokens of an exchange, and the source of each count. Sources are tried in a
//! fixed order; if none has the count, it is unknown and never guessed.

use model::exchange::Exchange;

model::words! {
    /// The origin of a token count.
    pub enum Source {
        /// The server's usage.
        Usage = "usage",
        /// The sum of the counts that the server stated for each chunk.
        Pieces = "pieces",
        /// The requested number, and the server stated that it stopped for length.
        Length = "length",
        /// The text, tokenized by this program.
        Retokenized = "retokenized",
        /// The dataset's count of the prompt.
        Dataset = "dataset",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub tokens: u32,
    pub source: Source,
}

/// The stop reasons of servers for an answer that reached the requested length: OpenAI, SGLang,
/// LMDeploy, TGI and Ollama; Anthropic; OpenAI's Responses; llama.cpp.
const STOPPED_FOR_LENGTH: [&str; 4] = ["length", "max_tokens", "max_output_tokens", "limit"];

/// True if a server's stop reason means that the answer reached the requested length.
pub(crate) fn stopped_for_length(finish: &str) -> bool {
    STOPPED_FOR_LENGTH.iter().any(|word| finish.eq_ignore_ascii_case(word))
}

/// The output tokens of an answer: the server's usage; else the tokens of its chunks if every
/// output event states them; else the requested length if the server stopped for length; else
/// `retokenized`.
pub fn output(exchange: &Exchange, retokenized: Option<u32>) -> Option<Count> {
    output_given(exchange, || stated(exchange), retokenized)
}

/// The same, for callers that may already have the sum of the tokens that the output events state.
pub(super) fn output_given(
    exchange: &Exchange,
    stated: impl FnOnce() -> Option<u32>,
    retokenized: Option<u32>,
) -> Option<Count> {
    let of = |source| move |tokens| Count { tokens, source };
    if !is_text(exchange) {
        return None;
    }
    exchange
        .usage
        .and_then(|usage| usage.output_tokens)
        .map(of(Source::Usage))
        .or_else(|| stated().map(of(Source::Pieces)))
        .or_else(|| length(exchange).map(of(Source::Length)))
        .or_else(|| retokenized.map(of(Source::Retokenized)))
}

/// True if an answer is made of tokens. Vectors and orders of texts are not.
pub(crate) fn is_text(exchange: &Exchange) -> bool {
    exchange.vectors.is_none() && exchange.order.is_empty()
}

/// The input tokens of a request: the server's usage, else the dataset's count.
pub fn input(exchange: &Exchange) -> Option<Count> {
    let of = |source| move |tokens| Count { tokens, source };
    exchange
        .usage
        .and_then(|usage| usage.input_tokens)
        .map(of(Source::Usage))
        .or_else(|| exchange.sample.input_tokens.map(of(Source::Dataset)))
}

/// The sum of the tokens of the output events, if there are any and each states them.
fn stated(exchange: &Exchange) -> Option<u32> {
    let mut sum = None;
    for event in exchange.events.iter().filter(|event| event.kind.is_output()) {
        sum = Some(event.tokens?.saturating_add(sum.unwrap_or(0)));
    }
    sum
}

/// The requested length, where the server stopped for it. Of several answers only the last one's
/// reason is on record.
fn length(exchange: &Exchange) -> Option<u32> {
    if !exchange.choices.is_empty() {
        return None;
    }
    let finish = exchange.finish.as_deref()?;
    stopped_for_length(finish).then_some(exchange.sample.output_tokens).flatten()
}
