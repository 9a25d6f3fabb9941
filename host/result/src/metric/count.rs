//! How many tokens went in and came out of an exchange, and on whose word. Counts come from a
//! fixed order of sources; where none speaks, the count is unknown and is never guessed.



use model::exchange::Exchange;

model::words! {
    /// Where a token count comes from.
    pub enum Source {
        /// The server's usage.
        Usage = "usage",
        /// The sum of what the server said of each piece.
        Pieces = "pieces",
        /// The number asked for, and the server said that it stopped for length.
        Length = "length",
        /// The text, tokenized by this program.
        Retokenized = "retokenized",
        /// The dataset's count of the prompt.
        Dataset = "dataset",
    }
}

/// A number of tokens, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub tokens: u32,
    /// On whose word.
    pub source: Source,
}

/// The words by which servers say that an answer reached the length asked for: OpenAI, SGLang,
/// LMDeploy, TGI and Ollama; Anthropic; OpenAI's Responses; llama.cpp.
const STOPPED_FOR_LENGTH: [&str; 4] = ["length", "max_tokens", "max_output_tokens", "limit"];

/// Whether a server's word for why it stopped means that the length asked for was reached.
pub fn stopped_for_length(finish: &str) -> bool {
    STOPPED_FOR_LENGTH
        .iter()
        .any(|word| finish.eq_ignore_ascii_case(word))
}

/// The output tokens of an answer: the server's usage, else the tokens of its pieces where every
/// output event states them, else the length asked for where the server stopped for length, else
/// `retokenized`.
pub fn output(exchange: &Exchange, retokenized: Option<u32>) -> Option<Count> {
    output_given(exchange, || stated(exchange), retokenized)
}

/// The same, where the sum of what the output events state may be at hand already.
pub(super) fn output_given(
    exchange: &Exchange,
    stated: impl FnOnce() -> Option<u32>,
    retokenized: Option<u32>,
) -> Option<Count> {
    let of = |source| move |tokens| Count { tokens, source };
    exchange
        .usage
        .and_then(|usage| usage.output_tokens)
        .map(of(Source::Usage))
        .or_else(|| stated().map(of(Source::Pieces)))
        .or_else(|| length(exchange).map(of(Source::Length)))
        .or_else(|| retokenized.map(of(Source::Retokenized)))
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

/// The sum of the tokens of the output events, where there are any and each states them.
fn stated(exchange: &Exchange) -> Option<u32> {
    let mut sum = None;
    for event in exchange
        .events
        .iter()
        .filter(|event| event.kind.is_output())
    {
        sum = Some(event.tokens?.saturating_add(sum.unwrap_or(0)));
    }
    sum
}

fn length(exchange: &Exchange) -> Option<u32> {
    let finish = exchange.finish.as_deref()?;
    stopped_for_length(finish)
        .then_some(exchange.sample.output_tokens)
        .flatten()
}
