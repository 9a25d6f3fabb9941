//! Any HTTP engine that answers in JSON, described in the scenario and without code: `request`
//! fills a template of its requests, `reply` looks up the places of an event, `check` reports all
//! mistakes of the configuration at once.
//!
//! ```toml
//! [backend]
//! plugin = "backends/template.wasm"
//! [backend.config]
//! path = "/infer"
//! framing = "lines"
//! events = { text = "/text", finish = "/stop", done = { at = "/done", is = true } }
//! [backend.config.body]
//! model = "{model}"
//! input = "{prompt}"
//! limits = { new_tokens = "{max-tokens}" }
//! stream = "{stream}"
//! ```
#![deny(unsafe_code)]

mod check;
mod config;
mod placeholder;
mod reply;
mod request;
#[cfg(test)]
mod tests;

use runner_plugin::dialect::{explain, openai, prometheus};
use runner_plugin::{Authentication, Backend, Control, Credentials, Error, Frame, Framing, Head};
use runner_plugin::{LengthPrefix, Meaning, Reading, Refusal, Request, Sample, ServedModel};
use runner_plugin::{ServerMetric, Settings};
use serde_json::Value;

use config::{Config, Models};
use reply::State;
pub use request::Template;

impl Backend for Template {
    type Config = Config;
    type State = State;

    fn open(config: Config) -> Result<Self, Error> {
        let mistakes = check::mistakes(&config);
        if !mistakes.is_empty() {
            return Err(Error::InvalidConfig(mistakes.join("; ")));
        }
        Ok(Template::new(config))
    }

    fn default_url(&self) -> String {
        self.config.default_url.clone()
    }

    fn credentials(&self) -> Credentials {
        let scheme = match &self.config.authentication {
            config::Authentication::Bearer => Authentication::Bearer,
            config::Authentication::Header(name) => Authentication::Header(name.clone()),
            config::Authentication::None => Authentication::None,
        };
        let variable = self.config.api_key_variable.clone();
        Credentials { variable, ..Credentials::new(scheme) }
    }

    fn control(&self, control: Control) -> Option<Request> {
        let config = &self.config;
        match control {
            Control::Health => config.health.as_deref().map(Request::get),
            Control::ListModels => config.models.as_ref().map(|models| Request::get(&models.path)),
            Control::FlushCache => config.flush_cache.as_deref().map(Request::post),
            Control::Metrics => config.metrics.as_ref().map(|metrics| Request::get(&metrics.path)),
        }
    }

    fn read_models(&self, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
        match &self.config.models {
            Some(models) => read_models(models, body),
            None => Ok(Vec::new()),
        }
    }

    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        let Some(metrics) = &self.config.metrics else { return Ok(Vec::new()) };
        let names = [
            (&metrics.finished_requests, ServerMetric::FinishedRequests),
            (&metrics.running_requests, ServerMetric::RunningRequests),
            (&metrics.waiting_requests, ServerMetric::WaitingRequests),
            (&metrics.input_tokens, ServerMetric::InputTokens),
            (&metrics.output_tokens, ServerMetric::OutputTokens),
            (&metrics.prefix_cache_queries, ServerMetric::PrefixCacheQueries),
            (&metrics.prefix_cache_hits, ServerMetric::PrefixCacheHits),
            (&metrics.kv_cache_usage, ServerMetric::KvCacheUsage),
            (&metrics.preemptions, ServerMetric::Preemptions),
        ];
        let known: Vec<_> =
            names.iter().filter_map(|(name, metric)| Some((name.as_deref()?, *metric))).collect();
        Ok(prometheus::readings(body, &known))
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        self.request(sample, settings)
    }

    fn framing(&self, streaming: bool) -> Framing {
        let config = &self.config;
        match config.framing {
            _ if !streaming => Framing::Whole,
            config::Framing::EventStream => openai::framing(streaming),
            config::Framing::Lines => Framing::Lines,
            config::Framing::Whole => Framing::Whole,
            config::Framing::LengthPrefixed => {
                let prefix = config.length_prefix.unwrap_or_default();
                Framing::LengthPrefixed(LengthPrefix {
                    skip: prefix.skip,
                    width: prefix.width,
                    adjust: prefix.adjust,
                    little_endian: prefix.little_endian,
                })
            }
        }
    }

    fn begin(&self, head: &Head) -> Result<State, Error> {
        Ok(State::new(!head.streaming))
    }

    fn decode(
        &self,
        state: &mut State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        reply::decode(&self.config.events, state, frame, events)
    }

    fn explain(&self, status: u16, body: &[u8]) -> Refusal {
        reply::refusal(&self.config.events, status, body)
    }
}

/// The models in a list of names, or of objects that have one.
fn read_models(models: &Models, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
    let wrong = |message: &str| {
        Error::Protocol(format!(
            "expected a list of models at `{}` (key `models`), got `{}`: {message}",
            models.list,
            explain::excerpt(body, 120)
        ))
    };
    let answer: Value = serde_json::from_slice(body).map_err(|error| wrong(&error.to_string()))?;
    let list = answer.pointer(&models.list).and_then(Value::as_array);
    let list = list.ok_or_else(|| wrong("there is no list"))?;
    let served = list.iter().map(|item| {
        let name = item.pointer(&models.name).and_then(Value::as_str);
        let name =
            name.ok_or_else(|| wrong(&format!("an item has no name at `{}`", models.name)))?;
        let context = models.context_tokens.as_deref();
        let context = context.and_then(|at| item.pointer(at)?.as_u64());
        Ok(ServedModel {
            context_tokens: context.and_then(|tokens| u32::try_from(tokens).ok()),
            ..ServedModel::named(name)
        })
    });
    served.collect()
}

runner_plugin::export_backend!(Template);
