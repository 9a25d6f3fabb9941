//! Queries with texts to rank by how well they answer them: of given lengths, made of random words
//! or of passages of a file.
#![deny(unsafe_code)]

#[cfg(test)]
mod tests;

use runner_plugin::lengths::{Distribution, Lengths, check_product};
use runner_plugin::random::Python;
use runner_plugin::requests::{TextRequest, TextRequests};
use runner_plugin::words::{Text, stream};
use runner_plugin::{Candidates, Error, Prompt};
use schemars::JsonSchema;
use serde::Deserialize;

const MOST_TEXTS: u32 = 4096;

/// The kind of generator of a query that all requests have.
const SAME: u64 = 2;

/// The user's configuration. Texts are random words, or passages of the file `data` if the scenario
/// names one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Tokens of a query: a number or a distribution.
    pub query_len: Distribution,
    /// Tokens of a text: a number or a distribution.
    pub document_len: Distribution,
    /// Texts of a request: a number or a distribution.
    pub documents: Distribution,
    /// Use the same query in all requests, as vLLM's `random-rerank` does; a server may find it in
    /// its cache.
    pub same_query: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            query_len: Distribution::constant(32.0),
            document_len: Distribution::constant(512.0),
            documents: Distribution::constant(10.0),
            same_query: false,
        }
    }
}

pub type Rerank = TextRequests<Query>;

runner_plugin::export_dataset!(Rerank);

pub struct Query {
    query: Lengths,
    document: Lengths,
    documents: Lengths,
    same_query: bool,
}

impl TextRequest for Query {
    const NAME: &str = "rerank";

    type Config = Config;

    fn open(config: Config) -> Result<Self, Error> {
        let document = config.document_len.lengths("document-len", 1..=1 << 20)?;
        let documents = config.documents.lengths("documents", 1..=MOST_TEXTS)?;
        check_product(("documents", &documents), ("document-len", &document))?;
        let query = config.query_len.lengths("query-len", 1..=1 << 20)?;
        Ok(Self { query, document, documents, same_query: config.same_query })
    }

    /// The query is the first text.
    fn draw(&self, seed: u64, kind: u64, index: u64) -> Vec<(Python, u32)> {
        let mut random = stream(seed, kind, index);
        let documents = self.documents.draw(&mut random);
        let mut query = if self.same_query {
            stream(seed, SAME, 0)
        } else {
            stream(random.bits(64), kind, index)
        };
        let length = self.query.draw(&mut query);
        let mut texts = vec![(query, length)];
        for _ in 0..documents {
            let length = self.document.draw(&mut random);
            texts.push((stream(random.bits(64), kind, index), length));
        }
        texts
    }

    fn prompt(texts: Vec<Text>) -> (Prompt, u32) {
        let mut texts = texts.into_iter();
        let query = texts.next().unwrap_or_else(|| Text { text: String::new(), tokens: 0 });
        let (mut documents, mut tokens) = (Vec::new(), 0_u32);
        for text in texts {
            // A model reads the query with each text.
            tokens = tokens.saturating_add(text.tokens.saturating_add(query.tokens));
            documents.push(text.text);
        }
        (Prompt::Ranking(Candidates { query: query.text, documents }), tokens)
    }
}
