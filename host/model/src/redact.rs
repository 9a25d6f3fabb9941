//! Removes secrets from command lines before they are saved: our own, and the one that the user says the
//! engine was started with. Secrets that the runner itself holds are `target::Secrets`.

use crate::about::About;
use crate::target::{REDACTED, Secrets};

/// Flags of ours whose values may be secret.
const SECRET_FLAGS: [&str; 2] = ["--header", "--extra-body"];

/// Endings of the names of flags and variables whose values are secret: `--api-key`, `--api-keys`, `HF_TOKEN`.
const SECRET_NAMES: [&str; 6] = [
    "key",
    "keys",
    "token",
    "secret",
    "password",
    "authorization",
];

/// The words of our own command line, without their secrets.
pub fn command_line(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut secret_follows = false;
    let redacted = words.into_iter().map(|word| {
        if std::mem::take(&mut secret_follows) {
            return REDACTED.to_owned();
        }
        if SECRET_FLAGS.contains(&word.as_str()) {
            secret_follows = true;
            return word;
        }
        match word.split_once('=') {
            Some((flag, _)) if SECRET_FLAGS.contains(&flag) => format!("{flag}={REDACTED}"),
            _ => command(&word),
        }
    });
    redacted.collect()
}

/// The description of what was measured, without its secrets: those that the runner holds, and those in
/// the launch command.
pub fn about(about: About, secrets: &Secrets) -> About {
    let known = |text: Option<String>| text.map(|text| secrets.redact(&text));
    let notes = about.notes.into_iter();
    About {
        engine: known(about.engine),
        engine_version: known(about.engine_version),
        hardware: known(about.hardware),
        launch_command: known(about.launch_command).map(|text| command(&text)),
        notes: notes
            .map(|(name, text)| (name, secrets.redact(&text)))
            .collect(),
    }
}

/// A command as typed, with its layout, but without the values of flags and variables whose names mark
/// them as secret, and without credentials in URLs. A reference to a variable is no secret.
pub fn command(text: &str) -> String {
    let mut due = Due::Nothing;
    let pieces = text.split_inclusive(char::is_whitespace).map(|piece| {
        let word = piece.trim_end();
        let space = &piece[word.len()..];
        // Space, and the sign that a line goes on.
        if word.is_empty() || word == "\\" {
            return piece.to_owned();
        }
        let is_flag = word.trim_start_matches(['"', '\'']).starts_with('-');
        let is_value = due != Due::Nothing && !is_flag;
        due = match due {
            Due::Secrets if is_value => Due::Secrets,
            _ if is_flag && is_secret(word) && word.ends_with('s') => Due::Secrets,
            _ if is_flag && is_secret(word) => Due::Secret,
            _ => Due::Nothing,
        };
        let redacted = match word.split_once('=') {
            _ if is_value => value(word),
            Some((name, given)) if is_secret(name) => format!("{name}={}", value(given)),
            _ => without_credentials(word),
        };
        redacted + space
    });
    pieces.collect()
}

/// What comes after a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Nothing secret.
    Nothing,
    /// One secret.
    Secret,
    /// Secrets, up to the next flag: `--api-keys a b`.
    Secrets,
}

/// A secret's place, or the variable that stands there instead.
fn value(given: &str) -> String {
    match given.trim_start_matches(['"', '\'']).starts_with('$') {
        true => given.to_owned(),
        false => REDACTED.to_owned(),
    }
}

/// Whether a flag or a variable is named as secrets are.
fn is_secret(name: &str) -> bool {
    let last = name.rsplit(['-', '_']).next().unwrap_or_default();
    SECRET_NAMES.contains(&last.to_lowercase().as_str())
}

fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    match rest[..authority_end].rfind('@') {
        Some(at) => format!("{scheme}://{REDACTED}@{}", &rest[at + 1..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_stay_in_the_command_line() {
        let line = [
            "runner",
            "--header",
            "Authorization: Bearer sk",
            "--header=X: y",
            "--base-url",
            "http://me:pw@host:1/x@y",
            "--api-key-env",
            "NAME",
            "--launch-command",
            "vllm serve m --api-key sk-1",
            "--model",
            "m",
        ];
        assert_eq!(
            command_line(line.map(str::to_owned)),
            [
                "runner",
                "--header",
                "[redacted]",
                "--header=[redacted]",
                "--base-url",
                "http://[redacted]@host:1/x@y",
                "--api-key-env",
                "NAME",
                "--launch-command",
                "vllm serve m --api-key [redacted]",
                "--model",
                "m"
            ]
        );
    }

    #[test]
    fn commands_keep_all_but_their_secrets() {
        for (given, kept) in [
            (
                "vllm serve m --api-key sk-1 -tp 8",
                "vllm serve m --api-key [redacted] -tp 8",
            ),
            (
                "vllm serve m --api-key=sk-1",
                "vllm serve m --api-key=[redacted]",
            ),
            (
                "lmdeploy serve api_server m --api-keys a b --tp 1",
                "lmdeploy serve api_server m --api-keys [redacted] [redacted] --tp 1",
            ),
            (
                "HF_TOKEN=hf_1 sglang.launch_server --admin-api-key 'x'",
                "HF_TOKEN=[redacted] sglang.launch_server --admin-api-key [redacted]",
            ),
            (
                "docker run --env \"HF_TOKEN=$HF_TOKEN\" -e KEY=1 \\\n    --api-key \\\n  sk-1 img",
                "docker run --env \"HF_TOKEN=$HF_TOKEN\" -e KEY=[redacted] \\\n    --api-key \\\n  [redacted] img",
            ),
            (
                "vllm serve m --max-num-batched-tokens 8192 --tokenizer t --ssl-keyfile f",
                "vllm serve m --max-num-batched-tokens 8192 --tokenizer t --ssl-keyfile f",
            ),
            ("curl https://me:pw@h/x", "curl https://[redacted]@h/x"),
            ("a  b\n", "a  b\n"),
        ] {
            assert_eq!(command(given), kept, "{given}");
        }
    }

    #[test]
    fn what_the_runner_holds_is_said_nowhere() {
        let secrets = Secrets {
            api_key: Some("abcdef".to_owned()),
            headers: Vec::new(),
        };
        let said = About {
            launch_command: Some("serve abcdef".to_owned()),
            notes: [("key".to_owned(), "is abcdef".to_owned())].into(),
            ..About::default()
        };
        let kept = about(said, &secrets);
        assert_eq!(kept.launch_command.as_deref(), Some("serve [redacted]"));
        assert_eq!(kept.notes["key"], "is [redacted]");
    }
}
