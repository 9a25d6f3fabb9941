//! Settings of the hub from the environment, with the names and meanings of the hub's own tools.

use std::fmt;
use std::path::PathBuf;

use crate::cache::Cache;
use crate::error::HubError;

const HUB: &str = "https://huggingface.co";

/// The hub's address, the token, and the folder of the cache.
#[derive(Debug)]
pub struct Settings {
    /// The hub's address, without a slash at its end: `HF_ENDPOINT`.
    pub endpoint: String,
    /// True if nothing may be downloaded: `HF_HUB_OFFLINE`.
    pub offline: bool,
    pub cache: Cache,
    /// The user's token: `HF_TOKEN`, else the content of the file `HF_TOKEN_PATH`.
    pub(crate) token: Option<Token>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The value of the header that presents it.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Parses a token that was read from `whence`.
    fn read(text: &str, whence: &str) -> Result<Option<Self>, HubError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HubError::Setting(format!(
                "the token in {whence} has characters that no token has; it is one word of letters, digits and `_`"
            )));
        }
        Ok(Some(Token(text.to_owned())))
    }
}

impl Settings {
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, HubError> {
        let cache = Cache::from_variables(&variable).ok_or_else(|| {
            HubError::Setting(
                "there is no home directory for downloads; set HF_HUB_CACHE to a folder".to_owned(),
            )
        })?;
        let value_of = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let endpoint = value_of("HF_ENDPOINT").unwrap_or_else(|| HUB.to_owned());
        let endpoint = endpoint.trim().trim_end_matches('/').to_owned();
        let whole = crate::origin::Origin::of_text(&endpoint);
        if whole.is_none() || endpoint.contains(['@', '?', '#']) {
            return Err(HubError::Setting(
                "HF_ENDPOINT is not the address of a hub; write it as https://HOST, without a user or a query".to_owned(),
            ));
        }
        let offline = value_of("HF_HUB_OFFLINE").is_some_and(|value| {
            ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
        });
        let token = match value_of("HF_TOKEN") {
            Some(token) => Token::read(&token, "HF_TOKEN")?,
            None => {
                let named = value_of("HF_TOKEN_PATH").map(PathBuf::from);
                let path =
                    named.clone().or_else(|| Some(crate::cache::home(&variable)?.join("token")));
                match path.map(|path| (std::fs::read_to_string(&path), path)) {
                    None => None,
                    Some((Ok(text), path)) => Token::read(&text, &path.display().to_string())?,
                    Some((Err(cause), path)) if named.is_some() => {
                        return Err(HubError::Setting(format!(
                            "cannot read the token from `{}` (HF_TOKEN_PATH): {cause}",
                            path.display()
                        )));
                    }
                    Some((Err(_), _)) => None,
                }
            }
        };
        Ok(Settings { endpoint, offline, cache, token })
    }
}
