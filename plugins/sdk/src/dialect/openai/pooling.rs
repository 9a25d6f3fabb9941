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

/// The request for a prompt that asks for vectors or an order, below `prefix` (usually `/v1`);
/// `None` for a prompt that asks for an answer. Sampling settings and lengths do not apply to it
/// and are not sent.
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
    use crate::Candidates;

    fn settings(streaming: bool) -> Settings {
        Settings {
            streaming,
            output_tokens: Some(9),
            ignore_eos: true,
            extra_body: Some(r#"{"dimensions":2}"#.to_owned()),
            ..Settings::new("m")
        }
    }

    fn ranking() -> Prompt {
        Prompt::Ranking(Candidates {
            query: "q".to_owned(),
            documents: vec!["a".to_owned(), "b".to_owned()],
        })
    }

    fn events(body: &str) -> Vec<Meaning> {
        let mut events = Vec::new();
        assert!(pooled(body.as_bytes(), &mut events).unwrap(), "{body}");
        events
    }

    fn usage(input: u32, output: Option<u32>) -> Meaning {
        Usage::counted(Some(input), output).unwrap()
    }

    #[test]
    fn requests_hold_the_texts_and_no_sampling() {
        let request = |prompt| {
            let sample = Sample::new("1", prompt);
            let request = pooling("/v1", &sample, &settings(false)).unwrap();
            request.map(|request| (request.path, String::from_utf8(request.body).unwrap()))
        };
        let texts = Prompt::Embedding(vec!["a".to_owned()]);
        assert_eq!(
            request(texts).unwrap(),
            (
                "/v1/embeddings".to_owned(),
                r#"{"model":"m","input":["a"],"encoding_format":"float","dimensions":2}"#
                    .to_owned()
            )
        );
        assert_eq!(
            request(ranking()).unwrap(),
            (
                "/v1/rerank".to_owned(),
                r#"{"model":"m","query":"q","documents":["a","b"],"dimensions":2}"#.to_owned()
            )
        );
        assert_eq!(request(Prompt::Text("a".to_owned())), None);
        let sample = Sample::new("1", ranking());
        let scored = requested("/v1", &sample, &settings(false), Ranking::Score).unwrap();
        let scored = scored.unwrap();
        assert_eq!(scored.path, "/v1/score");
        assert_eq!(
            String::from_utf8(scored.body).unwrap(),
            r#"{"model":"m","text_1":"q","text_2":["a","b"],"dimensions":2}"#
        );
    }

    #[test]
    fn a_streamed_run_is_refused() {
        let sample = Sample::new("1", ranking());
        let error = pooling("/v1", &sample, &settings(true)).unwrap_err();
        let Error::InvalidConfig(error) = error else {
            panic!("expected invalid-config, got {error:?}")
        };
        assert!(
            error.contains("/v1/rerank") && error.contains("`stream = false` under [request]"),
            "{error}"
        );
    }

    #[test]
    fn vectors_are_numbers_or_base64() {
        let vector =
            |index, values: &[f32]| Meaning::Vector(Embedded { index, values: values.to_vec() });
        let body = r#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0.5,-1]},
            {"index":0,"embedding":"AACAPwAAAMA="}],"usage":{"prompt_tokens":7,"total_tokens":7,"completion_tokens":0}}"#;
        assert_eq!(
            events(body),
            [vector(1, &[0.5, -1.0]), vector(0, &[1.0, -2.0]), usage(7, Some(0))]
        );
        for wrong in [
            r#"{"data":[{"index":0,"embedding":"AACA"}]}"#,
            r#"{"data":[{"index":0}]}"#,
            r#"{"results":[{"index":0,"relevance_score":null}]}"#,
        ] {
            let error = pooled(wrong.as_bytes(), &mut Vec::new());
            assert!(matches!(error, Err(Error::Protocol(_))), "{wrong}");
        }
    }

    #[test]
    fn orders_of_every_server_are_read_best_first() {
        let order = |places: &[(u32, f64)]| {
            let place = |&(index, score)| Ranked { index, score };
            Meaning::Order(places.iter().map(place).collect())
        };
        let body = r#"{"id":"r","results":[{"index":0,"document":{"text":"a"},"relevance_score":0.1},
            {"index":2,"relevance_score":0.9}],"usage":{"total_tokens":12}}"#;
        assert_eq!(events(body), [order(&[(2, 0.9), (0, 0.1)]), usage(12, None)]);
        let body = r#"{"object":"list","data":[{"index":0,"object":"score","score":0.1},
            {"index":1,"object":"score","score":1}],"usage":{"prompt_tokens":8,"total_tokens":8,"completion_tokens":0}}"#;
        assert_eq!(events(body), [order(&[(1, 1.0), (0, 0.1)]), usage(8, Some(0))]);
        let body = r#"[{"score":2.5,"document":"b","index":1,"meta_info":{"prompt_tokens":4}},
            {"score":-1.5,"document":"a","index":0,"meta_info":{"prompt_tokens":5}}]"#;
        assert_eq!(events(body), [order(&[(1, 2.5), (0, -1.5)]), usage(9, None)]);
    }

    #[test]
    fn other_replies_are_left_alone() {
        for body in
            [r#"{"choices":[]}"#, r#"{"text":"a","meta_info":{}}"#, r#"[{"text":"a"}]"#, "no JSON"]
        {
            let mut events = Vec::new();
            assert!(!pooled(body.as_bytes(), &mut events).unwrap(), "{body}");
            assert!(events.is_empty());
        }
    }
}
