//! Vectors and orders: requests for `/v1/embeddings`, `/v1/rerank` and `/v1/score`, and their
//! replies, which are never streamed.
//!
//! - all: `{"data": [{"index", "embedding"}], "usage"}`, a vector as numbers or as base64 of
//!   little-endian floats
//! - vLLM, Jina, Cohere: `{"results": [{"index", "relevance_score"}], "usage"}`
//! - vLLM's `/v1/score`: `{"data": [{"index", "score"}], "usage"}`, in the order of the request
//! - SGLang: `[{"index", "score", "meta_info": {"prompt_tokens"}}]`

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::counts::Counts;
use super::reply::not_a_chunk;
use crate::build::bytes_of_base64;
use crate::{Body, Embedded, Error, Meaning, Prompt, Ranked, Request, Sample, Settings, Usage};

/// The request for vectors or an order, below `prefix` (usually `/v1`); `None` for a prompt that
/// asks for an answer. Sampling settings and lengths are not sent.
///
/// # Errors
/// [`Error::InvalidConfig`] if the reply is to be streamed.
pub fn pooling(
    prefix: &str,
    sample: &Sample,
    settings: &Settings,
) -> Result<Option<Request>, Error> {
    requested(prefix, sample, settings, Ranking::Rerank)
}

/// The route that puts texts in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ranking {
    /// `/v1/rerank`, whose reply is in order.
    #[default]
    Rerank,
    /// `/v1/score`, which scores each text.
    Score,
}

/// As [`pooling`], with the route for orders.
///
/// # Errors
/// As [`pooling`].
pub fn requested(
    prefix: &str,
    sample: &Sample,
    settings: &Settings,
    ranking: Ranking,
) -> Result<Option<Request>, Error> {
    let mut body = Body::new();
    body.set("model", settings.model_for(sample));
    let path = match &sample.prompt {
        Prompt::Ranking(candidates) if ranking == Ranking::Score => {
            // The names that every version of vLLM takes
            // (`vllm/entrypoints/pooling/score/protocol.py`).
            body.set("text_1", &candidates.query).set("text_2", &candidates.documents);
            "/score"
        }
        Prompt::Embedding(texts) => {
            body.set("input", texts).set("encoding_format", "float");
            "/embeddings"
        }
        Prompt::Ranking(candidates) => {
            body.set("query", &candidates.query).set("documents", &candidates.documents);
            "/rerank"
        }
        _ => return Ok(None),
    };
    if settings.streaming {
        return Err(Error::InvalidConfig(format!(
            "the dataset gives {}, and {prefix}{path} does not stream its replies; set `stream = false` under \
             [request]",
            sample.prompt.kind()
        )));
    }
    settings.lay_over(&mut body, sample)?;
    Ok(Some(Request::json(format!("{prefix}{path}"), &body)))
}

/// A body that has vectors or an order.
#[derive(Deserialize)]
struct PoolingReply<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Item {
    index: u32,
    embedding: Vector,
}

/// An item that may have a score in place of a vector.
#[derive(Deserialize)]
struct ScoreItem {
    score: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Vector {
    Numbers(Vec<f32>),
    Base64(String),
}

#[derive(Deserialize)]
struct Place {
    index: u32,
    #[serde(alias = "relevance_score")]
    score: f64,
    meta_info: Option<Counts>,
}

/// Reads a whole body that answers [`pooling`]; `false`, without events, if it is another reply.
///
/// # Errors
/// [`Error::Protocol`] if it is such a reply, but a vector or a score in it cannot be read.
pub fn pooled(body: &[u8], events: &mut Vec<Meaning>) -> Result<bool, Error> {
    let body = body.trim_ascii();
    if body.starts_with(b"[") {
        return match serde_json::from_slice::<Vec<Place>>(body) {
            Ok(places) => {
                order(places, None, events);
                Ok(true)
            }
            Err(_) => Ok(false),
        };
    }
    let Ok(pooled) = serde_json::from_slice::<PoolingReply>(body) else { return Ok(false) };
    let wrong = |error: serde_json::Error| not_a_chunk(body, &error);
    match (pooled.data, pooled.results) {
        (Some(data), None) if is_scored(data) => {
            let places = serde_json::from_str(data.get()).map_err(wrong)?;
            order(places, pooled.usage, events);
        }
        (Some(data), None) => {
            let items: Vec<Item> = serde_json::from_str(data.get()).map_err(wrong)?;
            for item in items {
                let values = match item.embedding {
                    Vector::Numbers(values) => values,
                    Vector::Base64(text) => floats(&text).ok_or_else(|| {
                        let why =
                            format!("vector {} is not base64 of floats of four bytes", item.index);
                        not_a_chunk(body, &why)
                    })?,
                };
                let index = item.index;
                events.push(Meaning::Vector(Embedded { index, values }));
            }
            events.extend(pooled.usage.and_then(read).map(Meaning::Usage));
        }
        (None, Some(results)) => {
            let places = serde_json::from_str(results.get()).map_err(wrong)?;
            order(places, pooled.usage, events);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn is_scored(data: &RawValue) -> bool {
    let items = serde_json::from_str::<Vec<ScoreItem>>(data.get());
    items.is_ok_and(|items| items.first().is_some_and(|item| item.score.is_some()))
}

fn order(places: Vec<Place>, usage: Option<Counts>, events: &mut Vec<Meaning>) {
    let mut tokens = None;
    let mut ranked = Vec::with_capacity(places.len());
    for place in places {
        if let Some(more) = place.meta_info.and_then(|counts| counts.prompt_tokens) {
            tokens = Some(more.saturating_add(tokens.unwrap_or(0)));
        }
        ranked.push(Ranked { index: place.index, score: place.score });
    }
    // Servers send the best first; where one does not, the scores say the order.
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    events.push(Meaning::Order(ranked));
    let usage = usage.and_then(read).map(Meaning::Usage);
    events.extend(usage.or(Usage::counted(tokens, None)));
}

/// The counts of a reply without an answer: a total alone is the input's.
fn read(counts: Counts) -> Option<Usage> {
    let total = counts.total_tokens;
    let usage = counts.usage().unwrap_or_default();
    let usage = Usage { input_tokens: usage.input_tokens.or(total), ..usage };
    (usage != Usage::default()).then_some(usage)
}

fn floats(text: &str) -> Option<Vec<f32>> {
    let bytes = bytes_of_base64(text)?;
    let words = bytes.chunks_exact(4);
    let whole = words.remainder().is_empty();
    let value = |word: &[u8]| Some(f32::from_le_bytes(word.try_into().ok()?));
    words.map(value).collect::<Option<_>>().filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_scores_of_another_form_are_errors() {
        for wrong in [
            r#"{"data":[{"index":0,"embedding":"AACA"}]}"#,
            r#"{"data":[{"index":0}]}"#,
            r#"{"results":[{"index":0,"relevance_score":null}]}"#,
        ] {
            let error = pooled(wrong.as_bytes(), &mut Vec::new());
            assert!(matches!(error, Err(Error::Protocol(_))), "{wrong}");
        }
    }
}
