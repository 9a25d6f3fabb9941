//! Replicate: a prediction is created, and its output is streamed, or polled for.
//!
//! The first request creates the prediction. Its reply names where to go on: a stream of events,
//! often on another host, or the prediction itself, which has the output once it has ended.

use runner_plugin::dialect::explain;
use runner_plugin::serde_json::{self, Value};
use runner_plugin::{
    Backend, Body, Call, Credentials, Earlier, Error, Frame, Framing, Head, Meaning,
};
use runner_plugin::{Output, Prompt, Request, Sample, Setting, Settings, Step, Timings, Usage};

/// What a user may write under `[backend.config]`.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The version of the model to run; without it, the model's own route is used.
    version: Option<String>,
    /// Milliseconds from one look at a prediction to the next.
    #[schemars(range(max = 3_600_000))]
    poll_interval: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            version: None,
            poll_interval: 500,
        }
    }
}

/// What a reply is the answer to.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub enum Asked {
    /// The creation of the prediction, whose output is to be streamed or not.
    #[default]
    Whole,
    Streamed,
    /// The stream.
    Stream,
    /// The prediction at this URL; whether it was there.
    Prediction(String, bool),
}

#[derive(serde::Deserialize)]
struct Prediction {
    status: String,
    output: Option<Value>,
    error: Option<Value>,
    urls: Option<Urls>,
    metrics: Option<Metrics>,
}

#[derive(serde::Deserialize)]
struct Urls {
    get: String,
    stream: Option<String>,
}

#[derive(serde::Deserialize)]
struct Metrics {
    input_token_count: Option<u32>,
    output_token_count: Option<u32>,
    /// In seconds.
    time_to_first_token: Option<f64>,
}

/// The dialect, with its configuration.
pub struct Replicate(Config);

impl Backend for Replicate {
    type Config = Config;
    type State = Asked;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Replicate(config))
    }

    fn default_url(&self) -> String {
        "https://api.replicate.com".to_owned()
    }

    fn credentials(&self) -> Credentials {
        // Its usual name, REPLICATE_API_TOKEN, is one that only a user may choose.
        Credentials::bearer("REPLICATE_API_KEY")
    }

    fn start(
        &self,
        sample: &Sample,
        settings: &Settings,
        _: Option<&Earlier>,
    ) -> Result<Call, Error> {
        let unsupported = [
            Setting::IgnoreEos,
            Setting::MinP,
            Setting::RepetitionPenalty,
            Setting::Adapter,
        ];
        settings.refuse(sample, "Replicate's API", &unsupported)?;
        let Prompt::Text(prompt) = &sample.prompt else {
            let said = "Replicate's models take a text; choose a dataset that gives texts";
            return Err(Error::InvalidConfig(said.to_owned()));
        };
        let (mut input, sampling) = (Body::new(), &settings.sampling);
        input.set("prompt", prompt);
        input.set_some("max_tokens", settings.output_tokens_for(sample));
        input.set_some("min_tokens", settings.min_output_tokens);
        input.set_some("temperature", sampling.temperature);
        input
            .set_some("top_p", sampling.top_p)
            .set_some("top_k", sampling.top_k);
        input.set_some("frequency_penalty", sampling.frequency_penalty);
        input.set_some("presence_penalty", sampling.presence_penalty);
        input.set_some("seed", sampling.seed);
        if !sampling.stop.is_empty() {
            input.set("stop_sequences", sampling.stop.join(","));
        }
        settings.lay_over(&mut input, sample)?;
        let input: Value = serde_json::from_slice(&input.to_bytes()).unwrap_or_default();
        let mut body = Body::new();
        body.set_some("version", self.0.version.as_ref());
        body.set("input", input).set("stream", settings.streaming);
        let path = match &self.0.version {
            Some(_) => "/v1/predictions".to_owned(),
            None => {
                let segments: Vec<String> =
                    settings.model.split('/').map(Request::segment).collect();
                format!("/v1/models/{}/predictions", segments.join("/"))
            }
        };
        Ok(Call::Steps(Step::new(
            Request::json(path, &body),
            Framing::Whole,
        )))
    }

    fn begin(&self, head: &Head) -> Result<Asked, Error> {
        Ok(match (&*head.context, head.streaming) {
            (b"", true) => Asked::Streamed,
            (b"", false) => Asked::Whole,
            (b"stream", _) => Asked::Stream,
            (url, _) => Asked::Prediction(
                String::from_utf8_lossy(url).into_owned(),
                head.status != 404,
            ),
        })
    }

    fn decode(
        &self,
        asked: &mut Asked,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        match asked {
            Asked::Stream => self.event(frame, events),
            // It was created just now, and not every server of theirs knows it yet.
            Asked::Prediction(url, false) => events.push(self.look_again(url)),
            _ => self.prediction(matches!(asked, Asked::Streamed), frame.data, events)?,
        }
        Ok(())
    }
}

impl Replicate {
    fn event(&self, frame: &Frame<'_>, events: &mut Vec<Meaning>) {
        let data = String::from_utf8_lossy(frame.data);
        match frame.name {
            Some("output") => events.push(Meaning::Text(Output::text(data))),
            Some("error") => events.push(Meaning::Failure(explain::in_band(frame.data))),
            Some("done") if data.contains("\"reason\"") => {
                events.push(Meaning::Failure(explain::in_band(
                    b"the prediction failed or was canceled",
                )));
            }
            Some("done") => events.push(Meaning::End),
            _ => {}
        }
    }

    fn prediction(
        &self,
        streams: bool,
        json: &[u8],
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        let prediction: Prediction = serde_json::from_slice(json).map_err(|cause| {
            let excerpt = explain::excerpt(json, 200);
            Error::Protocol(format!(
                "expected a prediction of Replicate's, found {excerpt}: {cause}"
            ))
        })?;
        match (&*prediction.status, prediction.urls) {
            ("failed" | "canceled" | "aborted", _) => {
                let said = prediction.error.as_ref().and_then(explain::message);
                let said =
                    said.unwrap_or_else(|| format!("the prediction is {}", prediction.status));
                events.push(Meaning::Failure(explain::in_band(said.as_bytes())));
            }
            ("succeeded", _) => {
                let pieces = match prediction.output {
                    Some(Value::Array(pieces)) => pieces,
                    output => output.into_iter().collect(),
                };
                let texts = pieces.iter().filter_map(Value::as_str);
                events.extend(texts.map(|text| Meaning::Text(Output::text(text))));
                if let Some(metrics) = prediction.metrics {
                    let first_token = metrics.time_to_first_token.map(|seconds| seconds * 1e3);
                    events.extend(
                        Timings {
                            first_token,
                            ..Timings::default()
                        }
                        .meaning(),
                    );
                    events.push(Meaning::Usage(Usage {
                        input_tokens: metrics.input_token_count,
                        output_tokens: metrics.output_token_count,
                        ..Usage::default()
                    }));
                }
                events.push(Meaning::End);
            }
            (
                _,
                Some(Urls {
                    stream: Some(url), ..
                }),
            ) if streams => {
                let mut request = Request::get(url);
                request
                    .headers
                    .push(("accept".to_owned(), "text/event-stream".to_owned()));
                let step = Step::new(request, Framing::EventStream);
                events.push(Meaning::Next(step.with_context(b"stream".to_vec())));
            }
            (_, Some(urls)) => events.push(self.look_again(&urls.get)),
            (status, None) => {
                return Err(Error::Protocol(format!(
                    "the prediction is {status} and has no URLs"
                )));
            }
        }
        Ok(())
    }

    /// Asks for the prediction at this URL, a while from now.
    fn look_again(&self, url: &str) -> Meaning {
        let step = Step::new(Request::get(url), Framing::Whole)
            .after(u64::from(self.0.poll_interval) * 1_000_000)
            .accepting(&[404])
            .with_context(url.as_bytes().to_vec());
        Meaning::Next(step)
    }
}

runner_plugin::export_backend!(Replicate);
