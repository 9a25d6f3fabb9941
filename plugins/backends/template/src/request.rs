//! Requests: the template's body and path, filled with a sample and the run's settings. Fields that
//! the template has no place for are refused, never dropped.

use runner_plugin::dialect::openai;
use runner_plugin::{Body, Error, Prompt, Request, Sample, Setting, Settings};
use serde_json::{Map, Value, json};

use crate::check::{has, written};
use crate::config::{Config, Framing};
use crate::placeholder::{NAMES, Name, fill_object, fill_path, lay_over};

/// The placeholders whose values are the run's settings alone.
const SAMPLING: [(Name, Setting); 9] = [
    (Name::Temperature, Setting::Temperature),
    (Name::TopP, Setting::TopP),
    (Name::TopK, Setting::TopK),
    (Name::MinP, Setting::MinP),
    (Name::FrequencyPenalty, Setting::FrequencyPenalty),
    (Name::PresencePenalty, Setting::PresencePenalty),
    (Name::RepetitionPenalty, Setting::RepetitionPenalty),
    (Name::Seed, Setting::Seed),
    (Name::Stop, Setting::Stop),
];

pub struct Template {
    pub(crate) config: Config,
    /// The bodies for whole and streamed replies, each without and with ignoring the end.
    forms: [[Form; 2]; 2],
    headers: Vec<(String, String)>,
}

/// A body, with the placeholders of the body and its path.
struct Form {
    body: Map<String, Value>,
    uses: Vec<Name>,
}

impl Template {
    /// The template of a configuration without mistakes.
    pub fn new(config: Config) -> Self {
        let form = |streaming: bool, ignore_eos: bool| {
            let mut body = config.body.clone();
            if streaming {
                lay_over(&mut body, &config.stream_body);
            }
            if ignore_eos {
                lay_over(&mut body, &config.ignore_eos_body);
            }
            let path = Map::from_iter([("path".to_owned(), json!(path(&config, streaming)))]);
            let names = NAMES.iter().map(|(name, _)| *name);
            let uses = names.filter(|name| has(&body, *name) || has(&path, *name)).collect();
            Form { body, uses }
        };
        let forms = [false, true].map(|stream| [form(stream, false), form(stream, true)]);
        let mut headers: Vec<_> = config
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect();
        if !headers.iter().any(|(name, _)| name == "content-type") {
            headers.insert(0, ("content-type".to_owned(), "application/json".to_owned()));
        }
        Template { forms, headers, config }
    }

    /// The request for a sample. Errors: names every setting that the template has no place for.
    pub fn request(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let streaming = settings.streaming;
        let form = &self.forms[usize::from(streaming)][usize::from(settings.ignore_eos)];
        let refused = self.refused(&form.uses, sample, settings);
        if !refused.is_empty() {
            return Err(Error::InvalidConfig(refused.join("; ")));
        }
        let messages = if form.uses.contains(&Name::Messages) {
            openai::messages(&sample.prompt)?
        } else {
            None
        };
        let value = |name| self.value(name, &form.uses, sample, settings, messages.as_ref());
        let mut body = Body::new();
        for (key, value) in fill_object(&form.body, &value) {
            body.set(&key, value);
        }
        settings.lay_over(&mut body, sample)?;
        let path = fill_path(path(&self.config, streaming), &value).ok_or_else(|| {
            Error::config(
                "key `path`: `{adapter}` has no value, because no adapter is set; set --lora-modules",
            )
        })?;
        Ok(Request {
            method: self.config.method.clone(),
            path,
            headers: self.headers.clone(),
            body: body.to_bytes(),
        })
    }

    fn value(
        &self,
        name: Name,
        uses: &[Name],
        sample: &Sample,
        settings: &Settings,
        messages: Option<&Value>,
    ) -> Option<Value> {
        match name {
            // If the adapter has a place of its own, the model keeps its name.
            Name::Model if uses.contains(&Name::Adapter) => Some(json!(settings.model)),
            Name::Model => Some(json!(settings.model_for(sample))),
            Name::Adapter => sample.adapter.as_ref().map(|name| json!(name)),
            Name::Prompt => match &sample.prompt {
                Prompt::Text(text) => Some(json!(text)),
                _ => None,
            },
            Name::Messages => match &sample.prompt {
                // A text that has a place of its own is not sent twice.
                Prompt::Text(_) if uses.contains(&Name::Prompt) => None,
                _ => messages.cloned(),
            },
            Name::TokenIds => match &sample.prompt {
                Prompt::Tokens(ids) => Some(json!(ids)),
                _ => None,
            },
            Name::MaxTokens => settings.output_tokens_for(sample).map(|tokens| json!(tokens)),
            Name::MinTokens => {
                let whole = settings.output_tokens_for(sample);
                let whole = whole.filter(|_| self.forces_by_minimum(uses, settings));
                whole.or(settings.min_output_tokens).map(|tokens| json!(tokens))
            }
            Name::IgnoreEos => Some(json!(settings.ignore_eos)),
            Name::Stream => Some(json!(settings.streaming)),
            sampling => {
                let (_, setting) = SAMPLING.iter().find(|(name, _)| *name == sampling)?;
                setting.value(sample, settings)
            }
        }
    }

    /// True if the minimum makes answers as long as requested.
    fn forces_by_minimum(&self, uses: &[Name], settings: &Settings) -> bool {
        settings.ignore_eos
            && !uses.contains(&Name::IgnoreEos)
            && self.config.ignore_eos_body.is_empty()
    }

    /// The settings that have no place, each with the missing placeholder.
    fn refused(&self, uses: &[Name], sample: &Sample, settings: &Settings) -> Vec<String> {
        let mut refused = Vec::new();
        let prompt = &sample.prompt;
        let places: &[Name] = match prompt {
            Prompt::Text(_) => &[Name::Prompt, Name::Messages],
            Prompt::Tokens(_) => &[Name::TokenIds],
            Prompt::Messages(_) | Prompt::Continuation(_) => &[Name::Messages],
            Prompt::Embedding(_) | Prompt::Ranking(_) => &[],
        };
        if places.is_empty() {
            refused.push(format!(
                "the dataset gives {}, and a template describes only answers; name another backend",
                prompt.kind()
            ));
        } else if !places.iter().any(|name| uses.contains(name)) {
            refused.push(format!(
                "the dataset gives {}, and `body` has no `{{{}}}`; add it, or name another dataset",
                prompt.kind(),
                written(places[0])
            ));
        }
        let adapter_has_place = uses.contains(&Name::Adapter) || uses.contains(&Name::Model);
        let ignoring_has_place = uses.contains(&Name::IgnoreEos)
            || uses.contains(&Name::MinTokens)
            || !self.config.ignore_eos_body.is_empty();
        let mut needs = |flag: &str, name: Name| {
            if !uses.contains(&name) {
                refused.push(format!(
                    "{flag}: `body` has no `{{{}}}`; add it, or leave the setting out",
                    written(name)
                ));
            }
        };
        if settings.output_tokens_for(sample).is_some() {
            needs("--output-tokens, or the dataset's length of answers", Name::MaxTokens);
        }
        for (name, setting) in [(Name::MinTokens, Setting::MinOutputTokens)].iter().chain(&SAMPLING)
        {
            if setting.value(sample, settings).is_some() {
                needs(&format!("--{}", setting.key()), *name);
            }
        }
        if sample.adapter.is_some() && !adapter_has_place {
            refused.push(
                "--lora-modules: `body` and `path` have neither `{adapter}` nor `{model}`; add one, or leave the setting out"
                    .to_owned(),
            );
        }
        if settings.ignore_eos && !ignoring_has_place {
            refused.push(
                "ignoring the end-of-sequence token: `body` has neither `{ignore-eos}` nor `{min-tokens}`, and there \
                 is no `ignore-eos-body`; add one, or set --disable-ignore-eos"
                    .to_owned(),
            );
        }
        refused.extend(self.refused_stream(uses, settings.streaming));
        refused
    }

    /// Returns the reason why a reply cannot be streamed, or cannot be whole.
    fn refused_stream(&self, uses: &[Name], streaming: bool) -> Option<String> {
        let config = &self.config;
        let asks = uses.contains(&Name::Stream)
            || config.stream_path.is_some()
            || !config.stream_body.is_empty();
        match (streaming, config.framing) {
            (true, Framing::Whole) => Some(
                "framing = \"whole\": the server does not stream; set --disable-stream, or another framing".to_owned(),
            ),
            (false, framing) if framing != Framing::Whole && !asks => Some(
                "--disable-stream: every request gets a stream, because `body` has no `{stream}`, and there is no \
                 `stream-path` or `stream-body`; add one, or leave the setting out"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

fn path(config: &Config, streaming: bool) -> &str {
    let own = config.stream_path.as_deref().filter(|_| streaming);
    own.unwrap_or(&config.path)
}
