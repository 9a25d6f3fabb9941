//! Settings that an API has no field for. A backend refuses them, because a request without them would measure
//! something else than the scenario says.

use crate::{Error, Settings};

/// A setting that not every API has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `request.ignore-eos`
    IgnoreEos,
    /// `request.min-output-tokens`
    MinOutputTokens,
    /// `request.top-k`
    TopK,
    /// `request.min-p`
    MinP,
    /// `request.frequency-penalty`
    FrequencyPenalty,
    /// `request.presence-penalty`
    PresencePenalty,
    /// `request.repetition-penalty`
    RepetitionPenalty,
    /// `request.sampling-seed`
    Seed,
}

impl Setting {
    fn key(self) -> &'static str {
        match self {
            Setting::IgnoreEos => "ignore-eos",
            Setting::MinOutputTokens => "min-output-tokens",
            Setting::TopK => "top-k",
            Setting::MinP => "min-p",
            Setting::FrequencyPenalty => "frequency-penalty",
            Setting::PresencePenalty => "presence-penalty",
            Setting::RepetitionPenalty => "repetition-penalty",
            Setting::Seed => "sampling-seed",
        }
    }

    fn is_set(self, settings: &Settings) -> bool {
        let sampling = &settings.sampling;
        match self {
            Setting::IgnoreEos => settings.ignore_eos,
            Setting::MinOutputTokens => settings.min_output_tokens.is_some(),
            Setting::TopK => sampling.top_k.is_some(),
            Setting::MinP => sampling.min_p.is_some(),
            Setting::FrequencyPenalty => sampling.frequency_penalty.is_some(),
            Setting::PresencePenalty => sampling.presence_penalty.is_some(),
            Setting::RepetitionPenalty => sampling.repetition_penalty.is_some(),
            Setting::Seed => sampling.seed.is_some(),
        }
    }
}

/// Refuses the settings that are set although `api` has no field for them.
///
/// # Errors
/// [`Error::InvalidConfig`] that names all of them.
pub fn settings(api: &str, missing: &[Setting], settings: &Settings) -> Result<(), Error> {
    let set = missing.iter().filter(|setting| setting.is_set(settings));
    let said: Vec<String> = set
        .map(|setting| {
            let key = setting.key();
            match setting {
                Setting::IgnoreEos => format!(
                    "key `request.ignore-eos`: {api} cannot make answers as long as requested; pass \
                     --disable-ignore-eos, or set `ignore-eos = false` under [request]"
                ),
                _ => format!("key `request.{key}`: {api} has no such setting; leave --{key} out"),
            }
        })
        .collect();
    if said.is_empty() {
        Ok(())
    } else {
        Err(Error::InvalidConfig(said.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sampling;

    #[test]
    fn all_that_is_set_is_named_at_once_and_nothing_else() {
        let mut asked = Settings {
            model: "m".to_owned(),
            streaming: true,
            output_tokens: None,
            min_output_tokens: None,
            ignore_eos: true,
            sampling: Sampling {
                seed: Some(1),
                top_k: Some(2),
                ..Sampling::default()
            },
            extra_body: None,
        };
        let missing = [Setting::IgnoreEos, Setting::Seed, Setting::MinP];
        let Err(Error::InvalidConfig(said)) = settings("this API", &missing, &asked) else {
            panic!("it must be refused");
        };
        assert!(said.contains("--disable-ignore-eos"), "{said}");
        assert!(said.contains("leave --sampling-seed out"), "{said}");
        assert!(!said.contains("min-p") && !said.contains("top-k"), "{said}");
        asked.ignore_eos = false;
        asked.sampling.seed = None;
        assert_eq!(settings("this API", &missing, &asked), Ok(()));
    }
}
