//! The OpenAI routes of `trtllm-serve` (`tensorrt_llm/serve/openai_protocol.py`), which refuses
//! fields that it does not know.

use runner_plugin::dialect::openai;
use runner_plugin::serde_json::json;
use runner_plugin::{Error, Prompt, Request, Sample, Setting, Settings};

use super::Config;

/// Writes the request for a text, token ids, a conversation, or texts to embed.
pub fn encode(
    config: &Config,
    route: openai::Route,
    sample: &Sample,
    settings: &Settings,
) -> Result<Request, Error> {
    // An adapter is an object with a path on the server's disk, not a name.
    settings.refuse(sample, "trtllm-serve", &[Setting::Adapter])?;
    if matches!(sample.prompt, Prompt::Ranking(_)) {
        return Err(Error::config(
            "the dataset gives texts to rank, which this backend does not send to trtllm-serve; name another dataset, or \
             another backend",
        ));
    }
    if let Some(request) = openai::pooling("/v1", sample, settings)? {
        return Ok(request);
    }
    let mut body = openai::standard_body(route, route.limit(), sample, settings)?;
    if settings.streaming && config.continuous_usage {
        let options = json!({"include_usage": true, "continuous_usage_stats": true});
        body.set("stream_options", options);
    }
    body.set("ignore_eos", settings.ignore_eos);
    if settings.ignore_eos && config.min_tokens {
        body.set_some("min_tokens", settings.output_tokens_for(sample));
    }
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json(format!("/v1{}", route.path()), &body))
}
