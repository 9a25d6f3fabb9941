//! Replicate: the first request creates a prediction. Its reply names the next URL: a stream of
//! events, often on another host, or the prediction itself, which has the output after its end.

use runner_plugin::dialect::{explain, frames, openai};
use runner_plugin::serde_json::Value;
use runner_plugin::{Backend, Body, Call, Credentials, Earlier, Error, Frame, Framing, Head};
use runner_plugin::{Meaning, Output, Prompt, Request, Sample, Setting, Settings, Step};
use runner_plugin::{Timings, Usage};

/// The table `[backend.config]`.
#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The version of the model to run; without it, the model's own route is used.
    version: Option<String>,
    /// Milliseconds from one look at a prediction to the next; 500 without it.
    #[schemars(range(max = 3_600_000))]
    poll_interval: Option<u32>,
}

/// The dialect, with its configuration.
pub struct Replicate(Config);

impl Backend for Replicate {
    type Config = Config;
    /// The context of the reply's request, its status, and whether the run is streamed.
    type State = (String, u16, bool);

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Replicate(config))
    }

    fn default_url(&self) -> String {
        "https://api.replicate.com".to_owned()
    }

    fn credentials(&self) -> Credentials {
        // Only a user may choose its usual name, REPLICATE_API_TOKEN.
        Credentials::bearer("REPLICATE_API_KEY")
    }

    fn start(&self, sample: &Sample, with: &Settings, _: Option<&Earlier>) -> Result<Call, Error> {
        use Setting::{Adapter, IgnoreEos, MinP, RepetitionPenalty};
        let unsupported = [IgnoreEos, MinP, RepetitionPenalty, Adapter];
        with.refuse(sample, "Replicate's API", &unsupported)?;
        let Prompt::Text(prompt) = &sample.prompt else {
            let message = "Replicate's models take a text; choose a dataset that gives texts";
            return Err(Error::InvalidConfig(message.to_owned()));
        };
        let mut input = Body::new();
        input.set("prompt", prompt);
        let (most, least) = (with.output_tokens_for(sample), with.min_output_tokens);
        input.set_some("max_tokens", most).set_some("min_tokens", least);
        openai::set_sampling(&mut input, &with.sampling);
        let stop = &with.sampling.stop;
        input.remove("stop");
        input.set_some("stop_sequences", (!stop.is_empty()).then(|| stop.join(",")));
        with.lay_over(&mut input, sample)?;
        let mut body = Body::new();
        body.set_some("version", self.0.version.as_ref());
        body.set("input", &input).set("stream", with.streaming);
        let model: Vec<String> = with.model.split('/').map(Request::segment).collect();
        let path = match self.0.version {
            Some(_) => "/v1/predictions".to_owned(),
            None => format!("/v1/models/{}/predictions", model.join("/")),
        };
        let request = Request::json(path, &body);
        Ok(Call::Steps(Step::new(request, Framing::Whole)))
    }

    fn begin(&self, head: &Head) -> Result<Self::State, Error> {
        let context = String::from_utf8_lossy(&head.context).into_owned();
        Ok((context, head.status, head.streaming))
    }

    fn decode(
        &self,
        state: &mut Self::State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        let (context, status, streaming) = state;
        if context == "stream" {
            events.extend(event(frame));
            return Ok(());
        }
        let prediction: Value = frames::json(frame.data, "a prediction of Replicate's")?;
        let text = |pointer| prediction.pointer(pointer).and_then(Value::as_str);
        let stream = text("/urls/stream").filter(|_| *streaming && context.is_empty());
        match (text("/status"), text("/urls/get"), stream) {
            (Some(status @ ("failed" | "canceled" | "aborted")), ..) => {
                let reason = prediction.get("error").and_then(explain::message);
                let reason = reason.unwrap_or_else(|| format!("the prediction is {status}"));
                events.push(Meaning::Failure(explain::in_band(reason.as_bytes())));
            }
            (Some("succeeded"), ..) => {
                let pieces = match prediction.get("output") {
                    Some(Value::Array(pieces)) => pieces.as_slice(),
                    whole => whole.map_or(&[][..], std::slice::from_ref),
                };
                let texts = pieces.iter().filter_map(Value::as_str);
                events.extend(texts.map(|text| Meaning::Text(Output::text(text))));
                let metric = |name| prediction.get("metrics")?.get(name)?.as_f64();
                let count = |name| metric(name).map(|count| count as u32);
                let timings = Timings {
                    first_token: metric("time_to_first_token").map(|seconds| seconds * 1e3),
                    ..Timings::default()
                };
                events.extend(timings.meaning());
                events.extend(Usage::counted(
                    count("input_token_count"),
                    count("output_token_count"),
                ));
                events.push(Meaning::End);
            }
            (_, _, Some(url)) => {
                let request = Request::get(url).with_header("accept", "text/event-stream");
                let step = Step::new(request, Framing::EventStream);
                events.push(Meaning::Next(step.with_context(b"stream".to_vec())));
            }
            // It was created just now, and not every server of theirs knows it yet.
            _ if *status == 404 => events.push(self.look_again(context)),
            (_, Some(url), None) => events.push(self.look_again(url)),
            _ => return Err(Error::Protocol("the prediction has no URLs".to_owned())),
        }
        Ok(())
    }
}

impl Replicate {
    /// Asks for the prediction at this URL, a while from now.
    fn look_again(&self, url: &str) -> Meaning {
        let pause = u64::from(self.0.poll_interval.unwrap_or(500)) * 1_000_000;
        let step = Step::new(Request::get(url), Framing::Whole).after(pause);
        Meaning::Next(step.accepting(&[404]).with_context(url.into()))
    }
}

fn event(frame: &Frame<'_>) -> Option<Meaning> {
    let failed = |reason| Some(Meaning::Failure(explain::in_band(reason)));
    let data = String::from_utf8_lossy(frame.data);
    match frame.name? {
        "output" => Some(Meaning::Text(Output::text(data))),
        "error" => failed(frame.data),
        "done" if data.contains("\"reason\"") => failed(b"the prediction failed or was canceled"),
        "done" => Some(Meaning::End),
        _ => None,
    }
}

runner_plugin::export_backend!(Replicate);
