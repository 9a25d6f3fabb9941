//! Settings that an API has no field for. A backend refuses them, because a request without them
//! would measure something else than the scenario says.

use crate::{Error, Sample, Settings};

pub use crate::refuse::Setting;

/// Refuses the settings that are set although `api` has no field for them.
///
/// # Errors
/// [`Error::InvalidConfig`] that names all refused settings.
pub fn settings(
    api: &str,
    missing: &[Setting],
    sample: &Sample,
    settings: &Settings,
) -> Result<(), Error> {
    let set = missing.iter().filter(|setting| setting.is_set(sample, settings));
    let mistakes: Vec<String> = set
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
    if mistakes.is_empty() { Ok(()) } else { Err(Error::InvalidConfig(mistakes.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prompt, Sampling};

    #[test]
    fn all_that_is_set_is_named_at_once_and_nothing_else() {
        let sample = Sample::new("1", Prompt::Text("a".to_owned()));
        let mut run = Settings {
            model: "m".to_owned(),
            streaming: true,
            output_tokens: None,
            min_output_tokens: None,
            ignore_eos: true,
            sampling: Sampling { seed: Some(1), top_k: Some(2), ..Sampling::default() },
            extra_body: None,
            prepared: Vec::new(),
            further: None,
        };
        let missing = [Setting::IgnoreEos, Setting::Seed, Setting::MinP];
        let Err(Error::InvalidConfig(message)) = settings("this API", &missing, &sample, &run)
        else {
            panic!("it must be refused");
        };
        assert!(message.contains("--disable-ignore-eos"), "{message}");
        assert!(message.contains("leave --sampling-seed out"), "{message}");
        assert!(!message.contains("min-p") && !message.contains("top-k"), "{message}");
        run.ignore_eos = false;
        run.sampling.seed = None;
        assert_eq!(settings("this API", &missing, &sample, &run), Ok(()));
    }
}
