//! The token of a run: the secret of its processes, and the key that follows from it.
//!
//! The token is never sent; `identity` proves to the other side that a process has it.

use std::fmt;
use std::io::Read;
use std::path::Path;

use ring::hkdf;
use ring::signature::{Ed25519KeyPair, KeyPair};

/// The variable with the token.
pub const VARIABLE: &str = "RUNNER_FLEET_TOKEN";
/// The variable with the path of a file that holds the token.
pub const FILE_VARIABLE: &str = "RUNNER_FLEET_TOKEN_FILE";
/// The fewest hexadecimal digits: 128 bits, which nobody who saw a handshake finds by trying.
const FEWEST: usize = 32;
const MOST: usize = 256;
/// The label of the key, so that another use of the same token gives another key.
const LABEL: &[u8] = b"runner fleet 3 ed25519";
/// A salt that is public and the same for all runs; the token has the entropy.
const SALT: &[u8] = b"runner fleet";

/// The remedy for a missing token.
const REMEDY: &str = "make one with `openssl rand -hex 32` and give the same to every process";

/// A token: its hexadecimal digits in lower case.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

/// The reason why there is no token. No message holds any part of one.
#[derive(Debug, thiserror::Error)]
pub enum NoToken {
    #[error("neither {VARIABLE} nor {FILE_VARIABLE} is set: {REMEDY}")]
    Absent,
    #[error("{VARIABLE} and {FILE_VARIABLE} are both set: unset one of them")]
    Both,
    #[error(
        "the token of {place} {mistake}; expected {FEWEST} to {MOST} hexadecimal digits: {REMEDY}"
    )]
    Form { place: String, mistake: String },
    #[error("the token's file `{path}` of {FILE_VARIABLE} cannot be read: {cause}")]
    File { path: String, cause: std::io::Error },
}

impl Token {
    /// Reads its hexadecimal digits, with white space around them; `place` names their source.
    /// Fails if it has another form or fewer than 128 bits.
    pub fn parse(text: &str, place: &str) -> Result<Self, NoToken> {
        let text = text.trim();
        let wrong = |mistake: String| NoToken::Form { place: place.to_owned(), mistake };
        let digits = text.chars().count();
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong("has characters other than hexadecimal digits".to_owned()));
        }
        if !(FEWEST..=MOST).contains(&digits) {
            return Err(wrong(format!("has {digits} digits")));
        }
        Ok(Token(text.to_ascii_lowercase().into_bytes()))
    }

    /// Reads one of the two variables. Fails if none or both are set, or the token cannot be read.
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

    /// The seed of the Ed25519 key: derived from the token by HKDF with SHA-256 (RFC 5869).
    pub(crate) fn seed(&self) -> [u8; 32] {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, SALT).extract(&self.0);
        let mut seed = [0; 32];
        secret
            .expand(&[LABEL], hkdf::HKDF_SHA256)
            .and_then(|material| material.fill(&mut seed))
            .expect("SHA-256 gives 32 bytes");
        seed
    }
}

/// The public half of an Ed25519 key.
pub(crate) fn public(seed: &[u8; 32]) -> [u8; 32] {
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("any 32 bytes are a seed");
    pair.public_key().as_ref().try_into().expect("a public key has 32 bytes")
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
        for (text, mistake) in [
            (&GOOD[1..], "has 31 digits"),
            ("my secret pass phrase is quite long", "has characters other"),
            (&"a".repeat(257), "has 257 digits"),
        ] {
            let error = Token::parse(text, VARIABLE).unwrap_err().to_string();
            assert!(error.contains(mistake), "{error}");
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
    fn comes_from_a_variable_or_a_file_but_not_both() {
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

    /// RFC 5869 with Python's `hmac` over the same label and salt gives the same bytes.
    #[test]
    fn the_key_depends_only_on_the_token() {
        let token = Token::parse(GOOD, VARIABLE).unwrap();
        assert_eq!(model::hex(&token.seed()), SEED);
        let other = Token::parse(&GOOD.replace('0', "1"), VARIABLE).unwrap();
        assert_ne!(other.seed(), token.seed());
    }

    const SEED: &str = "e28a0583944aa37fa2cdadc907301394fed75456894a3af0901b4df6dd0b2358";
}
