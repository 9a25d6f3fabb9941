//! The token of a run: the secret that makes its coordinator, and what is derived from it.
//!
//! There are two kinds. The run's token gives the keys of both roles, so whoever has it can be rank
//! 0. The agents' token follows from it and cannot be turned back: it has the agents' key and the
//! public half of the coordinator's, so whoever has it can join that coordinator and not play it.
//! This module owns reading both and deriving from them. No token is ever sent; how a key proves
//! its role to the other side is for `identity`.

use std::fmt;
use std::io::Read;
use std::path::Path;

use ring::hkdf;
use ring::signature::{Ed25519KeyPair, KeyPair};

/// The variable with the token.
pub const VARIABLE: &str = "RUNNER_FLEET_TOKEN";
/// The variable with the path of a file that holds the token.
pub const FILE_VARIABLE: &str = "RUNNER_FLEET_TOKEN_FILE";
/// The fewest hexadecimal digits: 128 bits, so that nobody who saw a handshake finds the token by
/// trying.
const FEWEST: usize = 32;
/// The most hexadecimal digits.
const MOST: usize = 256;
/// The label of the coordinator's key, so that another use of the same token gives another key.
const COORDINATOR: &[u8] = b"runner fleet 2 ed25519 coordinator";
/// The label of the agents' key.
const AGENTS: &[u8] = b"runner fleet 2 ed25519 agents";
/// The way the agents' token begins. The run's token has hexadecimal digits alone, so neither is
/// taken for the other.
const PREFIX: &str = "agents-";
/// The number of hexadecimal digits that a key has.
const KEY: usize = 64;
/// A salt that is public and the same for all runs; the token has the entropy.
const SALT: &[u8] = b"runner fleet";

/// The way to make one.
const REMEDY: &str = "make one with `openssl rand -hex 32` and give the same to every process";

/// A token: the run's, or its agents'.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// The run's, as it was given, in lower case.
    Run(Vec<u8>),
    /// The agents'.
    Agents {
        /// Their key.
        seed: [u8; 32],
        /// The public half of the coordinator's.
        coordinator: [u8; 32],
    },
}

/// The reason why there is no token. No message holds any part of one.
#[derive(Debug, thiserror::Error)]
pub enum NoToken {
    /// Neither variable is set.
    #[error("neither {VARIABLE} nor {FILE_VARIABLE} is set: {REMEDY}")]
    Absent,
    /// Both are set.
    #[error("{VARIABLE} and {FILE_VARIABLE} are both set: unset one of them")]
    Both,
    /// It has another form.
    #[error(
        "the token of {place} {what}; expected {FEWEST} to {MOST} hexadecimal digits: {REMEDY}"
    )]
    Form {
        /// The variable or the file.
        place: String,
        /// The mistake, without the token.
        what: String,
    },
    /// The file cannot be read.
    #[error("the token's file `{path}` of {FILE_VARIABLE} cannot be read: {cause}")]
    File {
        /// The file.
        path: String,
        /// The system's error.
        cause: std::io::Error,
    },
}

impl Token {
    /// From its hexadecimal digits, with white space around them; `place` names where they come
    /// from.
    ///
    /// # Errors
    /// If it has another form or fewer than 128 bits.
    pub fn parse(text: &str, place: &str) -> Result<Self, NoToken> {
        let text = text.trim();
        let wrong = |what: String| NoToken::Form { place: place.to_owned(), what };
        if let Some(keys) = text.strip_prefix(PREFIX) {
            let mut keys = keys.split('-').map(key);
            return match (keys.next(), keys.next(), keys.next()) {
                (Some(Some(seed)), Some(Some(coordinator)), None) => {
                    Ok(Token(Kind::Agents { seed, coordinator }))
                }
                _ => Err(wrong(format!(
                    "begins as an agents' token and is none: give it as `runner fleet token` prints it, {} characters",
                    PREFIX.len() + 2 * KEY + 1
                ))),
            };
        }
        let digits = text.chars().count();
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong("has characters other than hexadecimal digits".to_owned()));
        }
        if !(FEWEST..=MOST).contains(&digits) {
            return Err(wrong(format!("has {digits} digits")));
        }
        Ok(Token(Kind::Run(text.to_ascii_lowercase().into_bytes())))
    }

    /// From the two variables, of which one is set: the token itself, or the path of its file.
    ///
    /// # Errors
    /// If none or both are set, or the token cannot be read.
    pub fn read(value: Option<&str>, file: Option<&Path>) -> Result<Self, NoToken> {
        match (value.filter(|value| !value.trim().is_empty()), file) {
            (None, None) => Err(NoToken::Absent),
            (Some(_), Some(_)) => Err(NoToken::Both),
            (Some(value), None) => Token::parse(value, VARIABLE),
            (None, Some(path)) => {
                let unreadable = |cause| NoToken::File { path: path.display().to_string(), cause };
                let file = std::fs::File::open(path).map_err(unreadable)?;
                let mut text = Vec::new();
                // One byte more than fits, so that a large file is refused and not cut.
                file.take(MOST as u64 + 64).read_to_end(&mut text).map_err(unreadable)?;
                Token::parse(&String::from_utf8_lossy(&text), FILE_VARIABLE)
            }
        }
    }

    /// True if it can coordinate: an agents' token cannot.
    pub fn coordinates(&self) -> bool {
        matches!(self.0, Kind::Run(_))
    }

    /// The agents' token that belongs to it.
    #[must_use]
    pub fn of_agents(&self) -> Token {
        Token(Kind::Agents { seed: self.agents_seed(), coordinator: self.coordinator_public() })
    }

    /// An agents' token, to be handed to agents: whoever reads it can join the run. The run's own
    /// token is never shown.
    pub fn shown(&self) -> String {
        let (seed, coordinator) = (self.agents_seed(), self.coordinator_public());
        format!("{PREFIX}{}-{}", model::hex(&seed), model::hex(&coordinator))
    }

    /// The seed of the coordinator's Ed25519 key; an agents' token has none.
    pub(crate) fn coordinator_seed(&self) -> Option<[u8; 32]> {
        match &self.0 {
            Kind::Run(secret) => Some(derived(secret, COORDINATOR)),
            Kind::Agents { .. } => None,
        }
    }

    /// The public half of the coordinator's key.
    pub(crate) fn coordinator_public(&self) -> [u8; 32] {
        match &self.0 {
            Kind::Run(secret) => public(&derived(secret, COORDINATOR)),
            Kind::Agents { coordinator, .. } => *coordinator,
        }
    }

    /// The seed of the agents' Ed25519 key.
    pub(crate) fn agents_seed(&self) -> [u8; 32] {
        match &self.0 {
            Kind::Run(secret) => derived(secret, AGENTS),
            Kind::Agents { seed, .. } => *seed,
        }
    }
}

/// Derives key material from a run's token for one use, by HKDF with SHA-256 (RFC 5869).
fn derived(secret: &[u8], label: &[u8]) -> [u8; 32] {
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, SALT).extract(secret);
    let mut seed = [0; 32];
    secret
        .expand(&[label], hkdf::HKDF_SHA256)
        .and_then(|material| material.fill(&mut seed))
        .expect("SHA-256 gives 32 bytes");
    seed
}

/// The public half of an Ed25519 key.
pub(crate) fn public(seed: &[u8; 32]) -> [u8; 32] {
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("any 32 bytes are a seed");
    let mut public = [0; 32];
    public.copy_from_slice(pair.public_key().as_ref());
    public
}

/// A key from its hexadecimal digits.
fn key(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != KEY || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..KEY).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_token_has_one_form() {
        assert!(Token::parse(GOOD, VARIABLE).is_ok());
        assert_eq!(
            Token::parse(&format!(" {}\n", GOOD.to_uppercase()), VARIABLE).unwrap(),
            Token::parse(GOOD, VARIABLE).unwrap()
        );
        for (text, what) in [
            (&GOOD[1..], "has 31 digits"),
            ("my secret pass phrase is quite long", "has characters other"),
            (&"a".repeat(257), "has 257 digits"),
        ] {
            let error = Token::parse(text, VARIABLE).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
            assert!(error.contains("openssl rand -hex 32"), "{error}");
        }
    }

    #[test]
    fn no_message_holds_the_token() {
        let text = format!("{GOOD}-secretpart");
        let error = Token::parse(&text, VARIABLE).unwrap_err();
        for shown in [error.to_string(), format!("{error:?}")] {
            assert!(!shown.contains("0123") && !shown.contains("secretpart"), "{shown}");
        }
        let token = Token::parse(GOOD, VARIABLE).unwrap();
        assert!(!format!("{token:?}").contains("0123"));
    }

    #[test]
    fn it_comes_from_a_variable_or_a_file_and_not_from_both() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, format!("{GOOD}\n")).unwrap();
        assert_eq!(Token::read(None, Some(&path)).unwrap(), Token::read(Some(GOOD), None).unwrap());
        assert!(matches!(Token::read(None, None), Err(NoToken::Absent)));
        assert!(matches!(Token::read(Some(" "), None), Err(NoToken::Absent)));
        assert!(matches!(Token::read(Some(GOOD), Some(&path)), Err(NoToken::Both)));
        std::fs::write(&path, "f".repeat(10_000_000)).unwrap();
        let error = Token::read(None, Some(&path)).unwrap_err().to_string();
        assert!(error.contains("has 320 digits"), "{error}");
        let error = Token::read(None, Some(&folder.path().join("none"))).unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }

    /// RFC 5869 with Python's `hmac`, and Ed25519 of RFC 8032 in Python, over the same labels and
    /// salt give the same bytes.
    #[test]
    fn the_keys_follow_from_the_token_alone() {
        let token = Token::parse(GOOD, VARIABLE).unwrap();
        assert_eq!(model::hex(&token.coordinator_seed().unwrap()), COORDINATORS);
        assert_eq!(token.shown(), format!("agents-{OF_AGENTS}-{PUBLIC}"));
        let other = Token::parse(&GOOD.replace('0', "1"), VARIABLE).unwrap();
        assert_ne!(other.coordinator_seed(), token.coordinator_seed());
        assert_ne!(other.agents_seed(), token.agents_seed());
    }

    #[test]
    fn the_agents_token_reads_back_and_holds_no_coordinators_key() {
        let token = Token::parse(GOOD, VARIABLE).unwrap();
        let shown = token.shown();
        assert!(!shown.contains(GOOD) && !shown.contains(COORDINATORS));
        let agents = Token::parse(&format!("{shown}\n"), VARIABLE).unwrap();
        assert_eq!(agents, token.of_agents());
        assert_eq!(agents.coordinator_seed(), None);
        assert!(token.coordinates() && !agents.coordinates());
        assert_eq!(agents.agents_seed(), token.agents_seed());
        assert_eq!(agents.coordinator_public(), token.coordinator_public());
        for wrong in [
            &shown[..shown.len() - 1],
            &format!("{shown}-{PUBLIC}"),
            &shown.replacen('a', "A", 1),
            "agents-",
        ] {
            let error = Token::parse(wrong, VARIABLE).unwrap_err().to_string();
            assert!(!error.contains(OF_AGENTS), "{error}");
        }
        assert!(!format!("{agents:?}").contains(OF_AGENTS));
    }

    const COORDINATORS: &str = "a0246e88619e88b70439b0feb1be19043ae78ab20d40458027dfd010e92330b9";
    const OF_AGENTS: &str = "94e9ef767b19926bec83d5fbac141984096a92f4e969d94195b9e4ac54b8d982";
    const PUBLIC: &str = "bc3739a9e414886d1f9a3db5230b0742b59645708a654f2f3c6bb9806eb263ea";
}
