//! Settings that a route has no field for: refused by name and all at once, because a run without a
//! requested setting measures something else.

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

impl Setting {
    /// True if the run or the sample sets it.
    pub(crate) fn is_set(self, sample: &Sample, settings: &Settings) -> bool {
        let sampling: &Sampling = &settings.sampling;
        match self {
            Setting::IgnoreEos => settings.ignore_eos,
            Setting::MinOutputTokens => settings.min_output_tokens.is_some(),
            Setting::Temperature => sampling.temperature.is_some(),
            Setting::TopP => sampling.top_p.is_some(),
            Setting::TopK => sampling.top_k.is_some(),
            Setting::MinP => sampling.min_p.is_some(),
            Setting::FrequencyPenalty => sampling.frequency_penalty.is_some(),
            Setting::PresencePenalty => sampling.presence_penalty.is_some(),
            Setting::RepetitionPenalty => sampling.repetition_penalty.is_some(),
            Setting::Seed => sampling.seed.is_some(),
            Setting::Stop => !sampling.stop.is_empty(),
            Setting::Adapter => sample.adapter.is_some(),
        }
    }

    /// Its key under `[request]`.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Setting::IgnoreEos => "ignore-eos",
            Setting::MinOutputTokens => "min-output-tokens",
            Setting::Temperature => "temperature",
            Setting::TopP => "top-p",
            Setting::TopK => "top-k",
            Setting::MinP => "min-p",
            Setting::FrequencyPenalty => "frequency-penalty",
            Setting::PresencePenalty => "presence-penalty",
            Setting::RepetitionPenalty => "repetition-penalty",
            Setting::Seed => "sampling-seed",
            Setting::Stop => "stop",
            Setting::Adapter => "adapters",
        }
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
        let set = unsupported.iter().filter(|setting| setting.is_set(sample, self));
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
        let mut settings = Settings {
            model: "m".to_owned(),
            streaming: true,
            output_tokens: None,
            min_output_tokens: Some(1),
            ignore_eos: false,
            sampling: Sampling::default(),
            extra_body: None,
            prepared: Vec::new(),
            further: None,
        };
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
        let both = [Setting::Temperature, Setting::TopP];
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
