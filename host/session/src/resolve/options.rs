//! Whether the backend can express the options of every request, asked before the first: an option that it refuses
//! is a mistake of the command line or the scenario.

use plugins::backend::{Backend, Dialect, Message, Part, Prompt, Role, Sample, Sampling, Settings};
use reader::Place;

use super::Resolution;
use super::defaults::request_options;

/// An option that is set: its place, its key, and how it is set alone.
type Set<'s> = (&'s Place, &'static str, Box<dyn Fn(&mut Settings) + 's>);

impl Resolution<'_> {
    /// Writes a request with each sampling option alone, next to one with none of them. A backend that writes no
    /// request without options either, such as one for other prompts, is not judged.
    ///
    /// Says whether answers can be made to go on past the end-of-sequence token. Where the engine cannot do that, and the
    /// scenario does not ask for it, they end where the model ends them.
    pub(super) fn options(&mut self, backend: &Backend) -> bool {
        let scenario = &self.source.scenario;
        let (said, plan) = (&scenario.request, request_options(scenario));
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
            return plan.ignore_eos;
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
            return plan.ignore_eos;
        };
        for (place, key, alone) in set {
            let mut settings = plain.clone();
            alone(&mut settings);
            if let Err(error) = dialect.encode(&sample, &settings, None) {
                let what = format!("the backend cannot express `{key}`: {error}");
                self.problem(&what, place);
            }
        }
        plain.ignore_eos
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
