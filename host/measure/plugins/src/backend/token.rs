//! Tokens for a key: the login that a backend may describe, and the same in the host's types.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::hmac::{HEADERS, TEMPLATE_BYTES, fault_of_names};
use super::request::{fault_of_method, fault_of_path};
use crate::bindings::backend_world::exports::runner::plugin::backend::{Request, Token};
use model::access::Key;
use model::access::template::UnknownPlaceholder;
use model::access::token::{self, Login, Placeholder};
use model::percent_encoded;

/// The most bytes of a login's body.
const BODY_BYTES: usize = 64 << 10;

/// The way in which a value is written into a body.
#[derive(Clone, Copy)]
enum Escape {
    Plain,
    /// Within a text of JSON.
    Json,
    /// Within a form.
    Form,
}

impl Token {
    pub fn with_key(&self, key: Key) -> Result<token::Token, UnknownPlaceholder> {
        let (whole, basic) = (key.text(), BASE64_STANDARD.encode(key.text()));
        let value = |escape: Escape| {
            let [whole, id, secret, basic] =
                [&whole, &key.id, &key.secret, &basic].map(|text| escape.write(text));
            move |placeholder| match placeholder {
                Placeholder::Key => whole.clone(),
                Placeholder::Id => id.clone(),
                Placeholder::Secret => secret.clone(),
                Placeholder::Basic => basic.clone(),
                Placeholder::Token => String::new(),
            }
        };
        let body = token::body(&String::from_utf8_lossy(&self.login.body));
        let headers = self.login.headers.iter().map(|(name, text)| {
            Ok((name.clone(), token::login_header(text)?.with(value(Escape::Plain))))
        });
        let fields = self.headers.iter();
        let fields =
            fields.map(|(name, text)| Ok((name.to_ascii_lowercase(), token::header(text)?)));
        Ok(token::Token {
            login: Login {
                method: self.login.method.clone(),
                path: self.login.path.clone(),
                headers: headers.collect::<Result<_, _>>()?,
                body: body.with(value(Escape::from_request(&self.login))).into_bytes(),
            },
            pointer: self.token.clone(),
            lifetime: self.lifetime.clone(),
            headers: fields.collect::<Result<_, _>>()?,
            issued: token::Tokens::default(),
            basic,
            key,
        })
    }

    pub fn has(&self, placeholder: Placeholder) -> bool {
        let body = token::body(&String::from_utf8_lossy(&self.login.body));
        let mut headers = self.login.headers.iter();
        body.has(placeholder)
            || headers
                .any(|(_, text)| token::login_header(text).is_ok_and(|it| it.has(placeholder)))
    }
}

impl Escape {
    /// Returns the way that the content type of a request wants.
    fn from_request(request: &Request) -> Self {
        let mut headers = request.headers.iter();
        let kind = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.and_then(|(_, kind)| kind.split(';').next()).unwrap_or_default();
        match kind.trim().to_ascii_lowercase().as_str() {
            "application/json" => Escape::Json,
            "application/x-www-form-urlencoded" => Escape::Form,
            _ => Escape::Plain,
        }
    }

    /// Writes a part of a key, which is of visible characters.
    fn write(self, text: &str) -> String {
        match self {
            Escape::Plain => text.to_owned(),
            Escape::Json => {
                let quoted = serde_json::Value::from(text).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
            Escape::Form => percent_encoded(text.as_bytes(), b"-._*"),
        }
    }
}

pub(super) fn fault(described: &Token) -> Option<String> {
    let Token { login, token, lifetime, headers } = described;
    let fault = fault_of_path(&login.path).or_else(|| fault_of_method(&login.method));
    if let Some(what) = fault {
        return Some(format!("its login: {what}"));
    }
    if login.body.len() > BODY_BYTES || str::from_utf8(&login.body).is_err() {
        return Some(format!("the body of its login is not a text of at most {BODY_BYTES} bytes"));
    }
    if headers.is_empty() {
        return Some("its token goes into no header field".to_owned());
    }
    let pointers = [Some(token), lifetime.as_ref()];
    if let Some(wrong) = pointers.into_iter().flatten().find(|pointer| !pointer.starts_with('/')) {
        let shown = wrong.escape_debug();
        return Some(format!(
            "`{shown}` is not a JSON pointer; expected one that begins with `/`, such as `/access_token`"
        ));
    }
    for (what, headers, read) in [
        ("login", &login.headers, token::login_header as fn(&str) -> _),
        ("token", headers, token::header),
    ] {
        if headers.len() > HEADERS {
            return Some(format!("its {what} has more than {HEADERS} header fields"));
        }
        if let Some(fault) = fault_of_names(what, headers, read) {
            return Some(fault);
        }
        if headers.iter().any(|(_, text)| text.len() > TEMPLATE_BYTES) {
            return Some(format!("a text of its {what} has more than {TEMPLATE_BYTES} bytes"));
        }
    }
    let has = |(_, text): &(String, String)| text.contains("{token}");
    (!headers.iter().any(has)).then(|| "no header field of its token has `{token}`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(kind: &str, body: &str) -> Token {
        Token {
            login: Request {
                method: "POST".to_owned(),
                path: "/login".to_owned(),
                headers: vec![
                    ("content-type".to_owned(), kind.to_owned()),
                    ("authorization".to_owned(), "Basic {basic}".to_owned()),
                ],
                body: body.as_bytes().to_vec(),
            },
            token: "/token".to_owned(),
            lifetime: None,
            headers: vec![("authorization".to_owned(), "Bearer {token}".to_owned())],
        }
    }

    #[test]
    fn login_escapes_the_key_for_its_content_type() {
        let key = Key::parse(r#"me:s"+\x"#).unwrap();
        for (kind, body, expected) in [
            ("application/json", r#"{"a":{},"k":"{secret}"}"#, r#"{"a":{},"k":"s\"+\\x"}"#),
            ("application/x-www-form-urlencoded", "k={key}&i={id}", "k=me%3As%22%2B%5Cx&i=me"),
            ("text/plain", "{key}{", r#"me:s"+\x{"#),
        ] {
            let described = described(kind, body);
            assert_eq!(fault(&described), None);
            let with = described.with_key(key.clone()).unwrap();
            assert_eq!(String::from_utf8(with.login.body).unwrap(), expected);
            assert_eq!(with.login.headers[1].1, "Basic bWU6cyIrXHg=");
        }
    }

    #[test]
    fn invalid_logins_are_refused() {
        let sound = || described("text/plain", "{key}");
        let names = |headers: &[(&str, &str)]| -> Vec<(String, String)> {
            headers.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
        };
        for (wrong, says) in [
            (Token { token: "token".to_owned(), ..sound() }, "`token` is not a JSON pointer"),
            (Token { headers: Vec::new(), ..sound() }, "goes into no header field"),
            (Token { headers: names(&[("x-a", "b")]), ..sound() }, "has `{token}`"),
            (Token { headers: names(&[("host", "{token}")]), ..sound() }, "names `host`"),
            (Token { headers: names(&[("x-a", "{key}")]), ..sound() }, "no placeholder"),
        ] {
            let fault = fault(&wrong).unwrap_or_default();
            assert!(fault.contains(says), "{fault}");
        }
        let mut elsewhere = sound();
        elsewhere.login.path = "https://login.example.com/".to_owned();
        assert!(fault(&elsewhere).is_some_and(|fault| fault.contains("must begin with one `/`")));
    }
}
