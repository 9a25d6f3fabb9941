//! The program's version as each packaging system writes it. The workspace has a semantic version;
//! others order pre-releases by other rules.

use anyhow::{Result, bail};

/// The version for Python, by PEP 440.
///
/// # Errors
/// If it has a pre-release that Python has no equal for.
pub fn python(version: &str) -> Result<String> {
    let Some((release, pre)) = version.split_once('-') else {
        return Ok(version.to_owned());
    };
    let known = [("alpha", "a"), ("beta", "b"), ("rc", "rc")];
    let number = |rest: &str| rest.parse::<u32>().ok();
    let written = pre.split_once('.').and_then(|(name, rest)| {
        let short = known.iter().find(|(long, _)| *long == name)?.1;
        Some(format!("{release}{short}{}", number(rest)?))
    });
    match written {
        Some(written) => Ok(written),
        None => {
            bail!("version {version}: Python has no equal of `-{pre}`; use alpha.N, beta.N or rc.N")
        }
    }
}

/// The version for Debian, where `~` comes before everything, also before the end.
pub fn debian(version: &str) -> String {
    version.replacen('-', "~", 1)
}

/// The version as a tag of an image, which has no `+`.
pub fn tag(version: &str) -> String {
    version.replace('+', "_")
}

#[cfg(test)]
mod tests {
    use super::{debian, python, tag};

    #[test]
    fn versions_are_written_as_each_system_orders_them() {
        assert_eq!(python("1.2.3").unwrap(), "1.2.3");
        assert_eq!(python("1.2.3-rc.4").unwrap(), "1.2.3rc4");
        assert_eq!(python("1.2.3-alpha.0").unwrap(), "1.2.3a0");
        for none in ["1.2.3-rc", "1.2.3-rc.x", "1.2.3-next.1"] {
            assert!(python(none).is_err(), "{none}");
        }
        assert_eq!(debian("1.2.3-rc.4"), "1.2.3~rc.4");
        assert_eq!(tag("1.2.3-rc.4+5"), "1.2.3-rc.4_5");
    }
}
