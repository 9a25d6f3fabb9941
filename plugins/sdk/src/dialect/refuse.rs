//! Settings that an API has no field for. A backend refuses them, because a request without them
//! would measure something else than the scenario says.

use crate::{Error, Sample, Settings};

pub use crate::refuse::Setting;

/// Refuses the settings that are set although `api` has no field for them.
///
/// # Errors
/// [`Error::InvalidConfig`] that names all of them.
pub fn settings(
    api: &str,
    missing: &[Setting],
    sample: &Sample,
    settings: &Settings,
) -> Result<(), Error> {
    let set = missing.iter().filter(|setting| setting.is_set(sample, settings));
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
    if said.is_empty() { Ok(()) } else { Err(Error::InvalidConfig(said.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prompt, Sampling};

    #[test]
    fn all_that_is_set_is_named_at_once_and_nothing_else() {
        let sample = Sample::new("1", Prompt::Text("a".to_owned()));
        let mut asked = Settings {
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
        let Err(Error::InvalidConfig(said)) = settings("this API", &missing, &sample, &asked)
        else {
            panic!("it must be refused");
        };
        assert!(said.contains("--disable-ignore-eos"), "{said}");
        assert!(said.contains("leave --sampling-seed out"), "{said}");
        assert!(!said.contains("min-p") && !said.contains("top-k"), "{said}");
        asked.ignore_eos = false;
        asked.sampling.seed = None;
        assert_eq!(settings("this API", &missing, &sample, &asked), Ok(()));
    }
}
