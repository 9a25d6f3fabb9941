//! Asks a program for its version.

use std::path::Path;
use std::time::Duration;

use crate::program::run;
use crate::spec::Value;

/// The kept part of a version, in characters.
const LONGEST: usize = 200;

/// Asks a program for its version: the line of its output that looks most like one. Errors: as
/// text, that it does not run, does not end in time, fails, or prints nothing.
pub async fn version(
    words: &[String],
    environment: &[(String, Value)],
    withheld: &[String],
    directory: Option<&Path>,
    within: Duration,
) -> Result<String, String> {
    let ran = run(words, environment, withheld, directory, within).await;
    let ran = ran.map_err(|error| error.to_string())?;
    let program = &words[0];
    let Some(exit) = ran.exit else {
        let seconds = within.as_secs_f64();
        return Err(format!("`{program}` did not print its version within {seconds} s"));
    };
    let line = line(&String::from_utf8_lossy(&ran.stdout))
        .or_else(|| self::line(&String::from_utf8_lossy(&ran.stderr)));
    match line {
        Some(line) if exit.is_success() => Ok(line),
        Some(line) => Err(format!("`{program}` printed no version: it ended with {exit}: {line}")),
        None => Err(format!("`{program}` printed no version: it ended with {exit}")),
    }
}

/// The last line that is a version or begins like one; or else the last line.
fn line(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut backwards = lines.iter().rev().filter(|line| !line.is_empty());
    let last = backwards.clone().next()?;
    let line = backwards.find(|line| looks_like_a_version(line));
    let line = model::clean::line(line.unwrap_or(last)).into_owned();
    Some(line.chars().take(LONGEST).collect())
}

/// `0.11.0`, `v0.11.0+cpu`, `version: 6500 (abc)`.
fn looks_like_a_version(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    let number = lower.strip_prefix('v').unwrap_or(&lower);
    let number = number.split(|c: char| !c.is_ascii_digit() && c != '.').next();
    let number =
        number.is_some_and(|it| it.contains('.') && it.starts_with(|c: char| c.is_ascii_digit()));
    let words = lower.split_whitespace().count();
    (number && words <= 2) || lower.starts_with("version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_among_other_lines() {
        for (text, version) in [
            ("0.11.0\n", Some("0.11.0")),
            ("INFO 11-23 loading\n0.11.1+cpu\n", Some("0.11.1+cpu")),
            ("v1.2\n\ngood bye\n", Some("v1.2")),
            ("version: 6500 (1f6e)\nbuilt with cc 13\n", Some("version: 6500 (1f6e)")),
            ("lmdeploy 0.9.2\n", Some("lmdeploy 0.9.2")),
            ("\n \n", None),
        ] {
            assert_eq!(line(text).as_deref(), version, "{text:?}");
        }
    }
}
