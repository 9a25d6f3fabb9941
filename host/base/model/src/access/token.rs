//! Tokens that a server gives for a key: the login as a backend describes it, and the tokens of
//! each target so far. Logging in is the session's.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use http::header::{HeaderName, HeaderValue};
use tokio::time::Instant;

use super::Key;
use super::template::{self, UnknownPlaceholder};

/// The needs of a login, and the tokens that it gave.
pub struct Token {
    /// The key.
    pub key: Key,
    /// The key in Base64.
    pub basic: String,
    /// The login, with the key.
    pub login: Login,
    /// The place of the token in the reply, as a JSON pointer.
    pub pointer: String,
    /// The place of its lifetime in seconds, as a JSON pointer.
    pub lifetime: Option<String>,
    /// Header fields of other requests.
    pub headers: Vec<(String, Template)>,
    /// The tokens, by the URL of the target.
    pub issued: Tokens,
}

/// A request that has the key.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The method.
    pub method: String,
    /// Path and query below the target's URL.
    pub path: String,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The tokens of a run, by the URL of the target.
#[derive(Default)]
pub struct Tokens(RwLock<HashMap<String, IssuedToken>>);

/// A token as requests carry it.
#[derive(Clone)]
pub struct IssuedToken {
    /// The header fields.
    pub fields: Arc<[(HeaderName, HeaderValue)]>,
    /// The instant of the next login; absent if the token's end is not known.
    pub renewal: Option<Instant>,
}

/// A placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The key as the user keeps it.
    Key,
    /// The key's public part.
    Id,
    /// The key's secret part.
    Secret,
    /// The key in Base64.
    Basic,
    /// The token.
    Token,
}

const OF_LOGIN: [(&str, Placeholder); 4] = [
    ("key", Placeholder::Key),
    ("id", Placeholder::Id),
    ("secret", Placeholder::Secret),
    ("basic", Placeholder::Basic),
];
const OF_REQUESTS: [(&str, Placeholder); 1] = [("token", Placeholder::Token)];

/// A text of a login, or of a request with a token.
pub type Template = template::Template<Placeholder>;

/// Reads the body of a login.
pub fn body(text: &str) -> Template {
    Template::within(text, &OF_LOGIN)
}

/// Reads the value of a header field of a login. Fails if a text in braces is no placeholder of it.
pub fn login_header(text: &str) -> Result<Template, UnknownPlaceholder> {
    Template::parse(text, &OF_LOGIN)
}

/// Reads another request's header value. Fails if a text in braces is no placeholder of it.
pub fn header(text: &str) -> Result<Template, UnknownPlaceholder> {
    Template::parse(text, &OF_REQUESTS)
}

impl Token {
    /// Returns the header fields of a request with this token; absent if one cannot be sent.
    pub fn fields(&self, token: &str) -> Option<Arc<[(HeaderName, HeaderValue)]>> {
        let fields = self.headers.iter().map(|(name, value)| {
            let value = value.with(|_| token);
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name.as_str()).ok()?, value))
        });
        fields.collect()
    }
}

impl Tokens {
    /// Returns the token of a target; absent before the first login.
    pub fn get(&self, target: &str) -> Option<IssuedToken> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(target).cloned()
    }

    /// Replaces the token of a target.
    pub fn put(&self, target: String, issued: IssuedToken) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(target, issued);
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.login == other.login
    }
}

impl Eq for Token {}
