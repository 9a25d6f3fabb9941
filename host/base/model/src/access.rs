//! Proof of who sends a request: the key and its use. The backend chooses the use; the session
//! reads the key and writes the requests.

pub mod hmac;
pub mod template;
pub mod token;

use std::fmt;
use std::sync::Arc;

use hmac::Hmac;
use token::Token;

/// Keeps the contents of types out of debug output.
macro_rules! hidden {
    ($($Type:ident),+) => {$(
        impl fmt::Debug for $Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($Type), "(…)"))
            }
        }
    )+};
}

/// The proof to a server of who asks. It holds the key, so it has no place in files and messages.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Access {
    /// Nothing: there is no key, or none is wanted.
    #[default]
    Open,
    /// This key as `authorization: Bearer KEY`.
    Bearer(String),
    /// The key alone, in a header of its own.
    Header {
        /// The header's name.
        name: String,
        /// The key.
        key: String,
    },
    /// A signature of each request with a key that the server has too.
    Sigv4(Arc<Sigv4>),
    /// A signature by HMAC of each request.
    Hmac(Arc<Hmac>),
    /// A token that a login gives.
    Token(Arc<Token>),
}

/// The needs of AWS Signature Version 4 beside the request and the time.
#[derive(Clone, PartialEq, Eq)]
pub struct Sigv4 {
    /// The service, such as `bedrock`.
    pub service: String,
    /// The region of targets whose host names none.
    pub region: Option<String>,
    /// The access key's identifier.
    pub id: String,
    /// The secret.
    pub secret: String,
    /// Token that temporary keys are sent with.
    pub session_token: Option<String>,
}

/// An error: a text is no key of AWS. It does not repeat the text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected `ID:SECRET` or `ID:SECRET:SESSION-TOKEN`, the access key's identifier, the access key, and the token of a temporary one"
)]
pub struct NotAwsKey;

hidden!(Access, Sigv4, Key, Hmac, Token);

impl Access {
    /// The parts of it that must not be seen.
    pub fn secrets(&self) -> [Option<&str>; 3] {
        match self {
            Access::Open => [None; 3],
            Access::Bearer(key) | Access::Header { key, .. } => [Some(key), None, None],
            Access::Sigv4(with) => {
                [Some(&with.id), Some(&with.secret), with.session_token.as_deref()]
            }
            Access::Hmac(with) => [Some(&with.key.secret), with.key.named_id(), None],
            Access::Token(with) => [Some(&with.key.secret), with.key.named_id(), Some(&with.basic)],
        }
    }
}

/// A key of the form `SECRET` or `ID:SECRET`, in its parts.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// Its public part; empty if it has none.
    pub id: String,
    /// The secret.
    pub secret: String,
}

impl Key {
    /// Reads a key. Absent if a part cannot be sent, or has no character.
    pub fn parse(key: &str) -> Option<Self> {
        let (id, secret) = match key.split_once(':') {
            Some((id, secret)) => (id, secret),
            None => ("", key),
        };
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_graphic());
        let is_key = is_part(secret) && (is_part(id) || !key.contains(':'));
        is_key.then(|| Key { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// Its public part, if it has one.
    pub fn named_id(&self) -> Option<&str> {
        Some(&*self.id).filter(|id| !id.is_empty())
    }

    /// Returns the key as it was read.
    pub fn text(&self) -> String {
        if self.id.is_empty() {
            self.secret.clone()
        } else {
            format!("{}:{}", self.id, self.secret)
        }
    }
}

impl Sigv4 {
    /// Reads a key of the form `ID:SECRET` or `ID:SECRET:SESSION-TOKEN`. Neither an identifier nor
    /// a secret has a colon. Fails if the text has another form, or a part that cannot be sent.
    pub fn parse_key(key: &str) -> Result<(String, String, Option<String>), NotAwsKey> {
        let mut parts = key.splitn(3, ':');
        let (Some(id), Some(secret), token) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NotAwsKey);
        };
        // Spaces, commas and line breaks would have a meaning in the header.
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_graphic() && b != b',')
        };
        if is_part(id) && is_part(secret) && token.is_none_or(is_part) {
            Ok((id.to_owned(), secret.to_owned(), token.map(str::to_owned)))
        } else {
            Err(NotAwsKey)
        }
    }
}

/// The region that the host of a service of AWS names: `eu-west-1` in
/// `bedrock-runtime.eu-west-1.amazonaws.com`.
///
/// Absent for a host without a region, such as a gateway or `iam.amazonaws.com`.
pub fn region_of(host: &str) -> Option<String> {
    /// Below these, AWS puts the names of its regions.
    const AWS: [&str; 4] = [".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws"];
    let host = host.to_ascii_lowercase();
    let below = AWS.iter().find_map(|end| host.strip_suffix(end))?;
    let region = below.rsplit('.').find(|label| is_region(label))?;
    Some(region.to_owned())
}

/// True if it looks like a region's name: `us-east-1`, `us-gov-west-1`, `ap-southeast-2`.
pub fn is_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [area, middle @ .., number] = &*parts else { return false };
    let letters = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    (2..=4).contains(&area.len())
        && letters(area)
        && !middle.is_empty()
        && middle.iter().all(letters)
        && (1..=2).contains(&number.len())
        && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn hosts_name_their_region() {
        for (host, region) in [
            ("bedrock-runtime.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("runtime.sagemaker.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            (
                "vpce-0a1b-2c.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com",
                Some("ap-southeast-2"),
            ),
            ("Bedrock-Runtime.US-EAST-1.API.AWS", Some("us-east-1")),
            ("iam.amazonaws.com", None),
            ("bedrock-runtime.eu-west-1.amazonaws.com.example", None),
            ("eu-west-1.gateway.example", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(region_of(host).as_deref(), region, "{host}");
        }
    }

    #[test]
    fn keys_are_read_in_their_parts() {
        assert_eq!(Sigv4::parse_key("AKID:s/e+c="), Ok((part("AKID"), part("s/e+c="), None)));
        let expected = Ok((part("AKID"), part("secret"), Some(part("to:ken=="))));
        assert_eq!(Sigv4::parse_key("AKID:secret:to:ken=="), expected);
        for wrong in
            ["", "AKID", "AKID:", ":secret", "AKID:secret:", "A ID:secret", "A:b\n", "A,B:c"]
        {
            assert_eq!(Sigv4::parse_key(wrong), Err(NotAwsKey), "{wrong:?}");
        }
        let parts = |key: &str| Key::parse(key).map(|key| (key.id, key.secret));
        assert_eq!(parts("s3cret"), Some((part(""), part("s3cret"))));
        assert_eq!(parts("me:s3:cret"), Some((part("me"), part("s3:cret"))));
        for wrong in ["", ":s", "me:", "a b", "s\n"] {
            assert_eq!(parts(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn access_is_never_printed() {
        let with = Sigv4 {
            service: part("bedrock"),
            region: None,
            id: part("AKID"),
            secret: part("s3cret"),
            session_token: Some(part("t0ken")),
        };
        assert_eq!(format!("{with:?}"), "Sigv4(…)");
        let access = Access::Sigv4(Arc::new(with));
        assert_eq!(format!("{access:?}"), "Access(…)");
        assert_eq!(access.secrets(), [Some("AKID"), Some("s3cret"), Some("t0ken")]);
    }
}
