//! Settings that a route has no field for: refused by name and all at once, because a run without a
//! requested setting measures something else.

use serde_json::Value;

use crate::{Error, Sample, Sampling, Settings};

/// A setting of a run that a route may have no field for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// [`Settings::ignore_eos`].
    IgnoreEos,
    /// [`Settings::min_output_tokens`].
    MinOutputTokens,
    /// [`Sampling::temperature`].
    Temperature,
    /// [`Sampling::top_p`].
    TopP,
    /// [`Sampling::top_k`].
    TopK,
    /// [`Sampling::min_p`].
    MinP,
    /// [`Sampling::frequency_penalty`].
    FrequencyPenalty,
    /// [`Sampling::presence_penalty`].
    PresencePenalty,
    /// [`Sampling::repetition_penalty`].
    RepetitionPenalty,
    /// [`Sampling::seed`].
    Seed,
    /// [`Sampling::stop`].
    Stop,
    /// [`Sample::adapter`].
    Adapter,
}

/// All settings, with their keys under `[request]`.
const ALL: [(Setting, &str); 12] = [
    (Setting::IgnoreEos, "ignore-eos"),
    (Setting::MinOutputTokens, "min-output-tokens"),
    (Setting::Temperature, "temperature"),
    (Setting::TopP, "top-p"),
    (Setting::TopK, "top-k"),
    (Setting::MinP, "min-p"),
    (Setting::FrequencyPenalty, "frequency-penalty"),
    (Setting::PresencePenalty, "presence-penalty"),
    (Setting::RepetitionPenalty, "repetition-penalty"),
    (Setting::Stop, "stop"),
    (Setting::Seed, "sampling-seed"),
    (Setting::Adapter, "adapters"),
];

impl Setting {
    /// All settings but these, for a route that has fields for few.
    pub fn all_but(kept: &[Setting]) -> Vec<Setting> {
        let all = ALL.iter().map(|(setting, _)| *setting);
        all.filter(|setting| !kept.contains(setting)).collect()
    }

    /// Its value, if the run or the sample sets it.
    pub fn value(self, sample: &Sample, settings: &Settings) -> Option<Value> {
        let sampling: &Sampling = &settings.sampling;
        match self {
            Setting::IgnoreEos => settings.ignore_eos.then(|| true.into()),
            Setting::MinOutputTokens => settings.min_output_tokens.map(Value::from),
            Setting::Temperature => sampling.temperature.map(Value::from),
            Setting::TopP => sampling.top_p.map(Value::from),
            Setting::TopK => sampling.top_k.map(Value::from),
            Setting::MinP => sampling.min_p.map(Value::from),
            Setting::FrequencyPenalty => sampling.frequency_penalty.map(Value::from),
            Setting::PresencePenalty => sampling.presence_penalty.map(Value::from),
            Setting::RepetitionPenalty => sampling.repetition_penalty.map(Value::from),
            Setting::Seed => sampling.seed.map(Value::from),
            Setting::Stop => (!sampling.stop.is_empty()).then(|| sampling.stop.clone().into()),
            Setting::Adapter => sample.adapter.as_deref().map(Value::from),
        }
    }

    /// Its key under `[request]`.
    pub fn key(self) -> &'static str {
        let named = ALL.iter().find(|(setting, _)| *setting == self);
        named.map_or("", |(_, key)| *key)
    }

    /// Its key, and the flag to set it, or to turn it off if it is on by default.
    fn names(self) -> String {
        let key = self.key();
        match self {
            Setting::IgnoreEos => format!("`{key}` (turn it off with --disable-ignore-eos)"),
            Setting::Temperature => {
                format!("`{key}` (--temperature; `--temperature server` leaves it to the server)")
            }
            Setting::Adapter => format!("`{key}` (--lora-modules), or the dataset's adapter"),
            _ => format!("`{key}` (--{key})"),
        }
    }
}

impl Settings {
    /// Refuses the settings among these that are set for a sample; `route` names the API without
    /// fields for them, such as `TGI's /generate_stream`.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] that names the settings with their flags.
    pub fn refuse(
        &self,
        sample: &Sample,
        route: &str,
        unsupported: &[Setting],
    ) -> Result<(), Error> {
        let set = unsupported.iter().filter(|setting| setting.value(sample, self).is_some());
        let names: Vec<_> = set.map(|setting| setting.names()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let (these, it) = match names.len() {
            1 => ("a setting", "the setting"),
            _ => ("settings", "the settings"),
        };
        Err(Error::InvalidConfig(format!(
            "{route} has no field for {these} under [request]: {}; leave {it} out, or use another backend",
            names.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prompt;

    #[test]
    fn all_settings_without_a_field_are_named_at_once() {
        let sample = Sample::new("1", Prompt::Text("a".to_owned()));
        let mut settings = Settings { min_output_tokens: Some(1), ..Settings::new("m") };
        let unsupported = [Setting::IgnoreEos, Setting::TopK, Setting::Stop];
        assert_eq!(settings.refuse(&sample, "x", &unsupported), Ok(()));
        settings.sampling.top_k = Some(1);
        let refusal = |settings: &Settings| match settings.refuse(&sample, "/x", &unsupported) {
            Err(Error::InvalidConfig(message)) => message,
            other => panic!("expected invalid-config, got {other:?}"),
        };
        assert_eq!(
            refusal(&settings),
            "/x has no field for a setting under [request]: `top-k` (--top-k); leave the setting out, or use another backend"
        );
        settings.ignore_eos = true;
        settings.sampling.stop = vec!["\n".to_owned()];
        assert_eq!(
            refusal(&settings),
            "/x has no field for settings under [request]: `ignore-eos` (turn it off with --disable-ignore-eos), \
             `top-k` (--top-k), `stop` (--stop); leave the settings out, or use another backend"
        );
        settings.sampling.temperature = Some(0.0);
        settings.sampling.top_p = Some(0.5);
        let both = Setting::all_but(&[Setting::IgnoreEos, Setting::TopK, Setting::Stop]);
        let Err(Error::InvalidConfig(message)) = settings.refuse(&sample, "/x", &both) else {
            panic!("it must be refused");
        };
        assert!(
            message.contains("`temperature` (--temperature; ")
                && message.contains("`top-p` (--top-p)"),
            "{message}"
        );
    }
}
