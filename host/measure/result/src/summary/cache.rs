//! The part of the prompts that a prefix cache could have held, and the server's report.

use model::session::Cache as Policy;

/// Prompt tokens that the run had sent before, and prompt tokens that the server found in its
/// prefix cache. Both are over the same requests, in the order of sending: requests whose prompts
/// could be tokenized here.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Cache {
    /// The run's policy for the cache's earlier contents.
    pub policy: Policy,
    /// Tokens per page that are assumed.
    pub page: u32,
    /// Requests that were sent, and whose prompts could be tokenized.
    pub requests: u64,
    /// Tokens of their prompts by the tokenizer of this side.
    pub tokens: u64,
    /// Prompt tokens that a cache without limits would have found: whole pages that a request sent
    /// earlier in the run begins with too. The last token of a prompt is never among them.
    pub reusable: u64,
    /// The server's report; absent if it reports nothing about its cache.
    pub reported: Option<Reported>,
    /// True if there were more pages than are remembered, so that more may be reusable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bounded: bool,
}

/// A server's report on its cache, over the requests for which it reports both the prompt tokens
/// and the cached ones.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Reported {
    /// The number of requests that it reports on.
    pub requests: u64,
    /// Tokens of their prompts as the server counts them; absent in results that were made before
    /// this was kept.
    pub input_tokens: Option<u64>,
    /// Tokens of their prompts by the tokenizer of this side.
    pub tokens: u64,
    /// Of these, tokens that a cache without limits would have found.
    pub reusable: u64,
    /// Tokens that the server found in its cache.
    pub cached: u64,
}

impl Cache {
    /// Adds a sent request; `reported` has the server's tokens and those found in its cache.
    pub fn add(&mut self, tokens: u32, reusable: u32, reported: Option<(u32, u32)>) {
        self.requests += 1;
        self.tokens += u64::from(tokens);
        self.reusable += u64::from(reusable);
        if let Some((input_tokens, cached)) = reported {
            let reported = self.reported.get_or_insert_default();
            *reported.input_tokens.get_or_insert_default() += u64::from(input_tokens);
            reported.requests += 1;
            reported.tokens += u64::from(tokens);
            reported.reusable += u64::from(reusable);
            reported.cached += u64::from(cached);
        }
    }

    /// The share of all prompt tokens that is reusable.
    pub fn reusable_share(&self) -> Option<f64> {
        share(self.reusable, self.tokens)
    }
}

impl Reported {
    /// The share that is reusable by the client's counts, and the server's found one.
    pub fn shares(&self) -> Option<(f64, f64)> {
        Some((
            share(self.reusable, self.tokens)?,
            share(self.cached, self.input_tokens.unwrap_or(self.tokens))?,
        ))
    }

    /// True if both sides count nearly the same tokens, so that the shares can be compared.
    pub fn is_comparable(&self) -> bool {
        /// Special tokens of templates differ by a few.
        const APART: f64 = 0.05;
        self.input_tokens
            .is_none_or(|input| input.abs_diff(self.tokens) as f64 <= APART * self.tokens as f64)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
