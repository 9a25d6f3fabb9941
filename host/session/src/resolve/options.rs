//! Whether the backend can express the options of every request, asked before the first: an option that it refuses
//! is a mistake of the command line or the scenario.

use plugins::backend::{Backend, Dialect, Message, Part, Prompt, Role, Sample, Sampling, Settings};
use reader::Place;

use super::Resolution;
use super::defaults::request_options;
use scenario::plan::RequestOptions;

/// An option that is set: its place, its key, and how it is set alone.
type Set<'s> = (&'s Place, &'static str, Box<dyn Fn(&mut Settings) + 's>);

impl Resolution<'_> {
    /// Writes a request with each sampling option alone, next to one with none of them. A backend that writes no
    /// request without options either, such as one for other prompts, is not judged.
    ///
    /// Gives the options of the run. Of those that are on by default, answers that go on past the end-of-sequence token
    /// and the temperature, it leaves out what the engine has no word for and the scenario does not ask for.
    pub(super) fn options(&mut self, backend: &Backend) -> RequestOptions {
        let scenario = &self.source.scenario;
        let (said, mut plan) = (&scenario.request, request_options(scenario));
        // The backend's own, beside the sampling options that are asked for.
        let temperature = match said.temperature {
            Some(_) => None,
            None => plan.temperature.take(),
        };
        let mut kept = plan.clone();
        let mut set: Vec<Set<'_>> = Vec::new();
        macro_rules! option {
            ($key:ident, $name:literal, $($field:ident).+) => {
                if let Some(said) = &said.$key {
                    let value = plan.$key.clone();
                    let alone = move |settings: &mut Settings| settings.$($field).+ = value.clone();
                    set.push((&said.place, $name, Box::new(alone)));
                }
            };
        }
        option!(temperature, "request.temperature", sampling.temperature);
        option!(top_p, "request.top-p", sampling.top_p);
        option!(top_k, "request.top-k", sampling.top_k);
        option!(min_p, "request.min-p", sampling.min_p);
        option!(
            frequency_penalty,
            "request.frequency-penalty",
            sampling.frequency_penalty
        );
        option!(
            presence_penalty,
            "request.presence-penalty",
            sampling.presence_penalty
        );
        option!(
            repetition_penalty,
            "request.repetition-penalty",
            sampling.repetition_penalty
        );
        option!(sampling_seed, "request.sampling-seed", sampling.seed);
        option!(
            min_output_tokens,
            "request.min-output-tokens",
            min_output_tokens
        );
        if let Some(said) = &said.stop {
            let value = plan.stop.clone();
            let alone = move |settings: &mut Settings| settings.sampling.stop = value.clone();
            set.push((&said.place, "request.stop", Box::new(alone)));
        }
        // One that cannot be opened is reported where it is needed.
        let Ok(mut dialect) = backend.open() else {
            return kept;
        };
        let mut plain = Settings {
            model: "model".to_owned(),
            streaming: plan.stream,
            output_tokens: plan.output_tokens.or(Some(16)),
            min_output_tokens: None,
            ignore_eos: plan.ignore_eos,
            sampling: Sampling::default(),
            extra_body: None,
        };
        let mut sample = accepted(&mut dialect, &plain);
        if plan.ignore_eos && sample.is_none() {
            plain.ignore_eos = false;
            sample = accepted(&mut dialect, &plain);
            if let (Some(said), Some(sample)) = (&said.ignore_eos, &sample) {
                let forced = Settings {
                    ignore_eos: true,
                    ..plain.clone()
                };
                if let Err(error) = dialect.encode(sample, &forced, None) {
                    let what = format!("the backend cannot express `request.ignore-eos`: {error}");
                    self.problem(&what, &said.place);
                }
            } else if sample.is_some() {
                self.remarks.push(
                    "note: this engine cannot be made to ignore the end-of-sequence token, so answers end where the model ends them and may be shorter than asked for".to_owned(),
                );
            }
        }
        let Some(sample) = sample else {
            return kept;
        };
        kept.ignore_eos = plain.ignore_eos;
        if temperature.is_some() {
            let mut greedy = plain.clone();
            greedy.sampling.temperature = temperature;
            match dialect.encode(&sample, &greedy, None) {
                Ok(_) => kept.temperature = temperature,
                Err(_) => self.remarks.push(
                    "note: this backend cannot express a temperature, so the server's own is used"
                        .to_owned(),
                ),
            }
        }
        for (place, key, alone) in set {
            let mut settings = plain.clone();
            alone(&mut settings);
            if let Err(error) = dialect.encode(&sample, &settings, None) {
                let what = format!("the backend cannot express `{key}`: {error}");
                self.problem(&what, place);
            }
        }
        kept
    }
}

/// A sample that the backend writes a request for.
fn accepted(dialect: &mut Dialect, settings: &Settings) -> Option<Sample> {
    let message = Message {
        role: Role::User,
        parts: vec![Part::Text("Hello".to_owned())],
        extra: None,
    };
    let prompts = [
        Prompt::Text("Hello".to_owned()),
        Prompt::Messages(vec![message]),
        Prompt::Tokens(vec![1]),
    ];
    let sample = |prompt| Sample {
        id: "options".to_owned(),
        prompt,
        after: Vec::new(),
        recorded_answer: None,
        input_tokens: Some(1),
        output_tokens: Some(16),
        reference: None,
        turn: None,
        class: None,
        arrival: None,
        adapter: None,
        parameters: None,
    };
    prompts
        .into_iter()
        .map(sample)
        .find(|sample| dialect.encode(sample, settings, None).is_ok())
}
