//! Check of the options of every request, before the first: can the backend express them, and does
//! it read them? An option that the backend refuses is a mistake of the user. An ignored option is
//! reported, because the run then measures something else than it states.

use plugins::PluginError;
use plugins::backend::{
    Backend, Candidates, Dialect, Media, Message, Part, Prompt, Request, Role, Sample, Sampling,
    Settings,
};
use reader::Place;
use reader::words::list;

use super::Resolution;
use super::defaults::request_options;
use crate::prepare::writer::{MaskedSecrets, sampling};
use crate::sessions::history::text_message;
use scenario::plan::RequestOptions;

#[derive(Clone)]
struct Inputs {
    sample: Sample,
    settings: Settings,
}

/// An option that the scenario states.
struct OptionValue<'s> {
    place: &'s Place,
    key: &'static str,
    take: Take,
}

/// Gives the first the second's value of an option.
type Take = fn(&mut Inputs, &Inputs);

impl Inputs {
    fn written(&self, dialect: &mut Dialect) -> Result<Request, PluginError> {
        let call = dialect.encode(&self.sample, &self.settings, None)?;
        Ok(call.into_request())
    }

    /// The same with another's value of one option.
    fn with(&self, option: Take, of: &Inputs) -> Inputs {
        let mut changed = self.clone();
        option(&mut changed, of);
        changed
    }

    /// None of the options that a scenario may state.
    fn bare(&self) -> Inputs {
        let mut bare = self.clone();
        bare.sample.output_tokens = None;
        bare.sample.adapter = None;
        bare.settings = Settings::bare(&self.settings.model, !self.settings.streaming);
        bare
    }

    /// Another value of each option that is set. A backend may write the scenario's value of its
    /// own accord, but not every other value.
    fn otherwise(&self) -> Inputs {
        // In the range of every option: half of a large value, more than a small one.
        let number = |value: Option<f64>| {
            value.map(|value| if value > 0.5 { value / 2.0 } else { value + 0.25 })
        };
        let count = |value: Option<u32>| value.map(|value| if value > 1 { value - 1 } else { 2 });
        let settings = &self.settings;
        let sampling = &settings.sampling;
        let stop = sampling.stop.iter().map(|text| format!("{text}."));
        let mut other = self.bare();
        other.sample.output_tokens = count(self.sample.output_tokens);
        other.sample.adapter = (self.sample.adapter.as_ref()).map(|name| format!("{name}.other"));
        other.settings.output_tokens = count(settings.output_tokens);
        other.settings.min_output_tokens = count(settings.min_output_tokens);
        other.settings.extra_body =
            (settings.extra_body.as_ref()).map(|_| r#"{"runner":"other"}"#.to_owned());
        other.settings.sampling = Sampling {
            temperature: number(sampling.temperature),
            top_p: number(sampling.top_p),
            top_k: count(sampling.top_k),
            min_p: number(sampling.min_p),
            frequency_penalty: number(sampling.frequency_penalty),
            presence_penalty: number(sampling.presence_penalty),
            repetition_penalty: number(sampling.repetition_penalty),
            seed: sampling.seed.map(|seed| seed ^ 1),
            stop: stop.collect(),
        };
        other
    }

    /// True if answers are text that the options of generation apply to.
    fn generates(&self) -> bool {
        !matches!(self.sample.prompt, Prompt::Embedding(_) | Prompt::Ranking(_))
    }
}

impl Resolution<'_> {
    /// Writes a request with each option alone, to compare with none, and requests that lack one,
    /// to compare with all. A backend that writes no request without options either is not judged.
    /// Returns the options of the run: a default that the engine has no parameter for is left out.
    pub(super) fn options(&mut self, backend: &Backend) -> RequestOptions {
        let scenario = &self.source.scenario;
        let (options, mut plan) = (&scenario.request, request_options(scenario));
        // The backend's own, beside the sampling options that are asked for.
        let temperature = match options.temperature {
            Some(_) => None,
            None => plan.temperature.take(),
        };
        let mut kept = plan.clone();
        // One that cannot be opened is reported where it is needed.
        let Ok(mut dialect) = backend.open() else { return kept };
        let mut plain = Settings {
            output_tokens: plan.output_tokens.or(Some(16)),
            ignore_eos: plan.ignore_eos,
            ..Settings::bare("model", plan.stream)
        };
        let mut inputs = accepted(&mut dialect, &plain);
        let generates = inputs.as_ref().is_some_and(Inputs::generates);
        if plan.ignore_eos && !generates {
            plain.ignore_eos = false;
            let without = accepted(&mut dialect, &plain);
            // A backend also writes requests for vectors and orders, beside its route's.
            if inputs.is_none() || without.as_ref().is_some_and(Inputs::generates) {
                self.without_ignore_eos(&mut dialect, without.as_ref());
                inputs = without;
            }
        }
        let Some(plain) = inputs else { return kept };
        let take: Take = |to, from| to.settings.ignore_eos = from.settings.ignore_eos;
        let unread = options.ignore_eos.is_none()
            && plain.settings.ignore_eos
            && plain.generates()
            && ignores(&mut dialect, &plain, take);
        if unread {
            self.remarks.push(format!(
                "note: no request tells the server to ignore the end of the text, so answers may be shorter than requested{}",
                match dialect.name() {
                    "openai" => ": for vLLM or SGLang add --set backend.config.ignore-eos-field=ignore_eos, or name their own backend (--backend vllm-chat)",
                    _ => "",
                }
            ));
        }
        kept.ignore_eos = plain.settings.ignore_eos && !unread;
        kept.unforced = unread;
        if temperature.is_some() {
            let mut greedy = plain.clone();
            greedy.settings.sampling.temperature = temperature;
            let is_written = greedy.written(&mut dialect).is_ok();
            let take: Take = |to, from| {
                to.settings.sampling.temperature = from.settings.sampling.temperature;
            };
            if is_written && !ignores(&mut dialect, &greedy, take) {
                kept.temperature = temperature;
            } else if plain.generates() {
                self.remarks.push(
                    "note: this backend cannot express a temperature, so the server's own is used"
                        .to_owned(),
                );
            }
        }
        let full = all_of(&plain, &plan, kept.temperature);
        let stated = stated(options, &plain, &plan);
        let mut refused = false;
        for option in &stated {
            if let Err(error) = plain.with(option.take, &full).written(&mut dialect) {
                let what = format!("the backend cannot express `{}`: {error}", option.key);
                self.problem(&what, option.place);
                refused = true;
            }
        }
        if refused {
            return kept;
        }
        // One that is left out only beside another, such as a choice among tokens where the
        // likeliest is taken, was read.
        let ignored = stated.iter().filter(|option| {
            let alone = plain.with(option.take, &full);
            [&full, &alone].into_iter().all(|inputs| ignores(&mut dialect, inputs, option.take))
        });
        kept.ignored = ignored.map(|option| option.key.to_owned()).collect();
        if !kept.ignored.is_empty() {
            self.remarks.push(format!(
                "warning: the backend `{}` ignores {}: its requests are the same with and without",
                dialect.name(),
                list(&kept.ignored)
            ));
        }
        kept
    }

    /// Notes that the model ends its answers, or that the backend cannot express `ignore-eos`.
    fn without_ignore_eos(&mut self, dialect: &mut Dialect, inputs: Option<&Inputs>) {
        let source = self.source;
        if let (Some(entry), Some(inputs)) = (&source.scenario.request.ignore_eos, inputs) {
            let mut forced = inputs.clone();
            forced.settings.ignore_eos = true;
            if let Err(error) = forced.written(dialect) {
                let what = format!("the backend cannot express `request.ignore-eos`: {error}");
                self.problem(&what, &entry.place);
            }
        } else if inputs.is_some_and(Inputs::generates) {
            self.remarks.push(
                "note: this engine cannot ignore the end-of-sequence token, so answers may be shorter than requested".to_owned(),
            );
        }
    }
}

/// The options that the scenario states, except at their defaults.
fn stated<'s>(
    options: &'s scenario::RequestOptions,
    plain: &Inputs,
    plan: &RequestOptions,
) -> Vec<OptionValue<'s>> {
    let mut stated = Vec::new();
    macro_rules! option {
        ($entry:expr, $key:literal, $($field:ident).+) => {
            if let Some(entry) = &$entry {
                stated.push(OptionValue {
                    place: &entry.place,
                    key: concat!("request.", $key),
                    take: |to, from| to.$($field).+ = from.$($field).+.clone(),
                });
            }
        };
    }
    // `server` states no temperature, and an empty list no text.
    let temperature = options.temperature.as_ref();
    let temperature = temperature.filter(|_| plan.temperature.is_some());
    let stop = options.stop.as_ref().filter(|_| !plan.stop.is_empty());
    let adapters = options.adapters.as_ref();
    let adapters = adapters.filter(|_| !plan.adapters.is_empty());
    option!(temperature, "temperature", settings.sampling.temperature);
    option!(options.top_p, "top-p", settings.sampling.top_p);
    option!(options.top_k, "top-k", settings.sampling.top_k);
    option!(options.min_p, "min-p", settings.sampling.min_p);
    option!(options.frequency_penalty, "frequency-penalty", settings.sampling.frequency_penalty);
    option!(options.presence_penalty, "presence-penalty", settings.sampling.presence_penalty);
    option!(options.repetition_penalty, "repetition-penalty", settings.sampling.repetition_penalty);
    option!(options.sampling_seed, "sampling-seed", settings.sampling.seed);
    option!(options.min_output_tokens, "min-output-tokens", settings.min_output_tokens);
    option!(stop, "stop", settings.sampling.stop);
    option!(adapters, "adapters", sample.adapter);
    let body = options.extra_body.iter().next().map(|entry| &entry.key);
    option!(body, "extra-body", settings.extra_body);
    if plain.generates() {
        // Off is the default of requests, too.
        let exact = options.ignore_eos.as_ref();
        let exact = exact.filter(|_| plain.settings.ignore_eos);
        option!(exact, "ignore-eos", settings.ignore_eos);
        option!(options.stream, "stream", settings.streaming);
        if let Some(entry) = &options.output_tokens {
            stated.push(OptionValue {
                place: &entry.place,
                key: "request.output-tokens",
                take: |to, from| {
                    to.settings.output_tokens = from.settings.output_tokens;
                    to.sample.output_tokens = from.sample.output_tokens;
                },
            });
        }
    }
    stated
}

/// A request with all options of the plan, but for the secret values in its body.
fn all_of(plain: &Inputs, plan: &RequestOptions, temperature: Option<f64>) -> Inputs {
    let mut full = plain.clone();
    full.sample.adapter = plan.adapters.first().cloned();
    let settings = &mut full.settings;
    settings.min_output_tokens = plan.min_output_tokens;
    settings.sampling =
        Sampling { temperature: plan.temperature.or(temperature), ..sampling(plan) };
    settings.extra_body = plan.extra_body.as_ref().map(ToString::to_string);
    // The masked values do not matter: nothing is sent.
    MaskedSecrets::mask(&mut settings.extra_body);
    full
}

/// True if the backend writes the same request with an option, without it, and with another value
/// of it. A backend that refuses one of them has read it.
fn ignores(dialect: &mut Dialect, full: &Inputs, option: Take) -> bool {
    let Ok(with) = full.written(dialect) else { return false };
    [full.bare(), full.otherwise()].iter().all(|from| {
        full.with(option, from).written(dialect).is_ok_and(|request| {
            request.method == with.method
                && request.path == with.path
                && request.headers == with.headers
                && request.body == with.body
        })
    })
}

/// Returns the input of a request, for a prompt that the backend writes a request for.
fn accepted(dialect: &mut Dialect, settings: &Settings) -> Option<Inputs> {
    let hello = || text_message(Role::User, "Hello");
    // Transcription needs a sound, and perhaps one of a certain rate.
    let sound = |rate: u32| {
        let media = Media { media_type: "audio/wav".to_owned(), bytes: silence(rate) };
        Prompt::Messages(vec![Message { parts: vec![Part::Audio(media)], ..hello() }])
    };
    let prompts = [
        Prompt::Text("Hello".to_owned()),
        Prompt::Messages(vec![hello()]),
        Prompt::Tokens(vec![1]),
        sound(16_000),
        sound(24_000),
        Prompt::Embedding(vec!["Hello".to_owned()]),
        Prompt::Ranking(Candidates {
            query: "Hello".to_owned(),
            documents: vec!["Hello".to_owned()],
        }),
    ];
    let inputs = |prompt| Inputs {
        sample: Sample {
            input_tokens: Some(1),
            output_tokens: settings.output_tokens,
            ..Sample::bare("options", prompt)
        },
        settings: settings.clone(),
    };
    (prompts.into_iter().map(inputs)).find(|inputs| inputs.written(dialect).is_ok())
}

/// A tenth of a second of silence as a WAV file of 16 bits and one channel.
fn silence(rate: u32) -> Vec<u8> {
    let length = rate / 10 * 2;
    let (pcm_one_channel, two_bytes_a_sample) = ([1, 0, 1, 0], [2, 0, 16, 0]);
    let [whole, format, rate, bytes_a_second, data] =
        [36 + length, 16, rate, rate * 2, length].map(u32::to_le_bytes);
    let parts: [&[u8]; 10] = [
        b"RIFF",
        &whole,
        b"WAVEfmt ",
        &format,
        &pcm_one_channel,
        &rate,
        &bytes_a_second,
        &two_bytes_a_sample,
        b"data",
        &data,
    ];
    let mut file = parts.concat();
    file.resize(file.len() + length as usize, 0);
    file
}
