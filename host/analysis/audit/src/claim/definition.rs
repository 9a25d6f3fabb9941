//! Maps each tool's latencies to the metrics of our catalogue. The formulas come from the tools'
//! own source; the catalogue's `equals` is the same mapping in the other direction.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Tool;
use super::json::Object;

/// A tool's definition of a metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Definition {
    /// The equivalent metric of our catalogue; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The formula by which the tool computes it.
    pub formula: String,
}

/// Definitions by the tool's name for a metric: the equivalent metric if there is one, the formula.
macro_rules! definitions {
    ($($theirs:literal $(= $metric:literal)?: $formula:literal;)+) => {
        BTreeMap::from([$((
            $theirs.to_owned(),
            Definition {
                metric: None$(.or(Some($metric.to_owned())))?,
                formula: $formula.to_owned(),
            },
        )),+])
    };
}

/// The definitions of a tool's `ttft`, `tpot`, `itl` and `e2e`.
pub fn definitions(tool: Tool) -> BTreeMap<String, Definition> {
    match tool {
        Tool::Runner => definitions! {
            "ttft" = "ttft": "first output event that carries bytes - sent";
            "tpot" = "tpot": "(e2e - ttft) / (n - 1), n > 1";
            "itl" = "itl": "gaps between output events, pooled over requests";
            "e2e" = "e2e": "end marker - sent";
        },
        Tool::Lmdeploy | Tool::Sglang => definitions! {
            "ttft" = "ttft":
                "first chunk with text - sent, including the time to open the connection";
            "tpot" = "tpot":
                "(e2e - ttft) / (n - 1), n > 1; n is the requested length if the server states \
                 none";
            "itl" = "itl": "gaps between chunks, pooled over requests";
            "e2e" = "e2e": "end marker - sent";
        },
        // The other two run vLLM's client, InferenceX a copy of it.
        Tool::Vllm | Tool::Inferencex | Tool::PerfEval => definitions! {
            "ttft" = "ttft-any": "first chunk of any kind, including a role-only chunk, - sent";
            "tpot" = "tpot-last-token": "(e2e - ttft) / (n - 1), n > 1";
            "itl" = "itl": "gaps between chunks, pooled over requests";
            "e2e" = "e2e-last-token": "last chunk - sent";
        },
        Tool::Gpustack => definitions! {
            "ttft" = "ttft-any": "first delta with content, including empty content, - start";
            "tpot" = "tpot-with-first": "(last token - start) / n, including the first token";
            "itl": "(last token - first) / (n - 1), weighted by n - 1";
            "e2e" = "e2e-end": "end - start";
        },
        Tool::Guidellm => definitions! {
            "ttft" = "ttft": "first content, reasoning or tool delta - start";
            "tpot" = "tpot-with-first": "(last token - start) / n, including the first token";
            "itl": "(last token - first) / (n - 1), weighted by n - 1";
            "e2e" = "e2e-end": "end - start";
        },
        Tool::Aiperf | Tool::GenaiPerf => definitions! {
            "ttft" = "ttft": "first response with content or reasoning - sent";
            "tpot" = "tpot-last-token":
                "(e2e - ttft) / (n - 1), which the tool calls inter token latency";
            "itl" = "itl": "gaps between chunks, which the tool calls inter chunk latency";
            "e2e" = "e2e-last-token": "last response with content - sent";
        },
        Tool::InferencePerf => definitions! {
            "ttft" = "ttft-answer":
                "first chunk with content, excluding reasoning, - start, of replies with more \
                 than one";
            "tpot" = "tpot-last-token":
                "(last chunk with content - first) / (n - 1), n > 1; n is the tokens of the text, \
                 counted again, unless the server's count is requested";
            "itl":
                "gaps between tokens, pooled over requests; 0 between the tokens of one chunk, \
                 counted again";
            "e2e" = "e2e-end":
                "end of the reply's bytes, after its tokens are counted again, - start";
            "ntpot" = "normalized-latency": "e2e / n, n > 0, with the n of tpot";
        },
        Tool::Evalscope => definitions! {
            "ttft" = "ttft": "first chunk with text, reasoning or a tool call - sent";
            "tpot" = "tpot-usage": "(e2e - ttft) / (n - 1), n > 1";
            "itl" = "itl": "gaps between chunks with output, pooled over requests";
            "e2e" = "e2e-usage": "last chunk of JSON, which has the usage, - sent";
        },
        Tool::GenaiBench => definitions! {
            "ttft" = "ttft-with-connect":
                "first chunk with text or reasoning - sent, including the time to open a \
                 connection, which each request does";
            "tpot" = "tpot-usage": "(e2e - ttft) / (n - 1), n > 1";
            "itl": "not measured";
            "e2e" = "e2e-usage":
                "chunk with the usage - sent, including the time to open a connection";
        },
        Tool::Endpoints => definitions! {
            "ttft" = "ttft":
                "first chunk with output - issued, including the time to reach the process that \
                 sends";
            "tpot": "(complete - first chunk) / tokens of the text after the first chunk";
            "itl": "not stated";
            "e2e" = "e2e-end":
                "end of the reply - issued, including the time to reach the process that sends";
        },
        Tool::Unknown => definitions! {
            "ttft": "not stated";
            "tpot": "not stated";
            "itl": "not stated";
            "e2e": "not stated";
        },
    }
}

/// Lists guidellm's definitions before its files named its version: a mean over requests, without
/// the time to the first token, over all tokens.
pub(super) fn guidellm_before_metadata() -> BTreeMap<String, Definition> {
    let mut definitions = definitions(Tool::Guidellm);
    definitions.extend(definitions! {
        "tpot": "(last token - first) / n";
        "itl" = "tpot-last-token": "(last token - first) / (n - 1)";
    });
    definitions
}

/// Lists vLLM's definitions for chats: from version 0.33 on its client leaves chunks without output
/// out, such as one with a role alone. Its files do not name the version; files with the server's
/// own times are of such a version, and files without the times in the client's queue are older.
pub(super) fn vllm_chat(object: &Object) -> BTreeMap<String, Definition> {
    let has = |key: &str| object.contains_key(key);
    if has("server_queue_times") || has("server_ttfts") {
        return definitions! {
            "ttft" = "ttft": "first chunk with output - sent";
            "e2e" = "e2e-last-token": "last chunk with output - sent";
        };
    }
    if !has("queue_times") {
        return BTreeMap::new();
    }
    definitions! {
        "ttft" = "ttft-any":
            "first chunk of any kind, including a role-only chunk, - sent; from vLLM 0.33 on \
             first chunk with output - sent, and the file does not name the version";
    }
}
