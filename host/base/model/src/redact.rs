//! Removes secrets from saved and shown text: secrets with a known text ([`Known`]), and values in
//! command lines, bodies and configurations that are named or look like secrets.

use std::borrow::Cow;

use crate::about::About;
use crate::target::{REDACTED, Secrets};

/// A secret that is shorter would be found in a text by chance.
pub const SHORTEST_KNOWN: usize = 4;

/// A part of a secret that is shorter may be any word.
const SHORTEST_PART: usize = 8;

/// Flags of ours whose values may be secret.
const SECRET_FLAGS: [&str; 2] = ["--header", "--extra-body"];

/// Keys of a scenario whose values may be secret, as `--set` takes them.
const HEADERS: &str = "target.headers";

/// Last words of the names of flags, variables, headers and fields whose values are secret:
/// `--api-key`, `HF_TOKEN`, `X-Auth-Token`.
const SECRET_NAMES: [&str; 15] = [
    "key",
    "keys",
    "token",
    "secret",
    "secrets",
    "password",
    "passwd",
    "pass",
    "passphrase",
    "authorization",
    "credential",
    "credentials",
    "bearer",
    "cookie",
    "salt",
];

/// The same where no sign parts the words: `--apikey`, `secretKey`.
const SECRET_ENDS: [&str; 10] = [
    "apikey",
    "apikeys",
    "apitoken",
    "authtoken",
    "accesstoken",
    "bearertoken",
    "hftoken",
    "secretkey",
    "accesskey",
    "privatekey",
];

/// The beginnings of keys of well-known services.
const SECRET_BEGINNINGS: [&str; 8] =
    ["sk-", "hf_", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "nvapi-"];

/// No such key is shorter.
const SHORTEST_KEY: usize = 12;

/// The depth to which assignments and quotes may nest in a word.
const DEPTH: u32 = 8;

/// Secrets that are known by their text, such as a key that the runner holds. [`Known::new`] alone
/// decides which texts are looked for.
#[derive(Clone, Default)]
pub struct Known<S = String>(Vec<S>);

impl<S> std::fmt::Debug for Known<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Known(…)")
    }
}

impl<S: AsRef<str> + From<String>> Known<S> {
    /// The texts that are too long to be found by chance, and their parts.
    pub fn new(texts: impl IntoIterator<Item = S>) -> Self {
        Known::no_shorter(texts, SHORTEST_KNOWN)
    }

    /// The texts that have at least `shortest` bytes.
    pub(crate) fn no_shorter(texts: impl IntoIterator<Item = S>, shortest: usize) -> Self {
        let mut texts: Vec<S> = texts.into_iter().collect();
        let parts: Vec<S> = texts.iter().flat_map(|it| parts(it.as_ref())).map(S::from).collect();
        texts.extend(parts);
        texts.retain(|text| text.as_ref().len() >= shortest);
        // A text may hold another. Removing the shorter first would leave the rest.
        texts.sort_by_key(|text| std::cmp::Reverse(text.as_ref().len()));
        Known(texts)
    }

    /// The length of the longest, in bytes.
    pub fn longest(&self) -> usize {
        self.0.first().map_or(0, |text| text.as_ref().len())
    }

    /// A text without them.
    pub fn redact(&self, text: &str) -> String {
        self.redact_owned(text.to_owned())
    }

    /// A text without them.
    pub fn redact_owned(&self, text: String) -> String {
        let secrets = self.0.iter().map(AsRef::as_ref);
        secrets.fold(text, |text, secret| {
            if text.contains(secret) { text.replace(secret, REDACTED) } else { text }
        })
    }

    /// Bytes without them. Bytes that have none come back as they are, even if they are no text.
    pub fn redact_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let has = |secret: &S| memchr::memmem::find(bytes, secret.as_ref().as_bytes()).is_some();
        if self.0.iter().any(has) {
            Cow::Owned(self.redact(&String::from_utf8_lossy(bytes)).into_bytes())
        } else {
            Cow::Borrowed(bytes)
        }
    }
}

/// The parts of a secret that a server may repeat alone: the text after a scheme (`Bearer TOKEN`),
/// the value of each cookie, and all of these without escapes.
fn parts(text: &str) -> Vec<String> {
    let is_name =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let after = text.split_once(' ').filter(|(scheme, _)| is_name(scheme));
    let values = text.split(';').filter_map(|cookie| cookie.split_once('='));
    let values = values.map(|(_, value)| value.trim().trim_matches('"'));
    let parts = after.map(|(_, after)| after.trim()).into_iter().chain(values).chain([text]);
    let all = parts.flat_map(|part| {
        let plain = part.contains('%').then(|| unescaped(part));
        [plain, (part.len() < text.len()).then(|| part.to_owned())]
    });
    all.flatten().filter(|part| part.len() >= SHORTEST_PART).collect()
}

/// A text with the bytes that `%` and two digits stand for.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped.and_then(|digits| crate::unhex(std::str::from_utf8(digits).ok()?));
        match escaped.as_deref() {
            Some([byte]) => {
                bytes.push(*byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The words of a command line without values that are named or look like secrets. For the value of
/// a flag with a secret's name, `mark` gets the flag and the word and returns the replacement.
pub fn words(words: &[String], mark: &dyn Fn(&str, &str) -> String) -> Vec<String> {
    let mut secret_of: Option<&str> = None;
    let redacted = words.iter().map(|word| {
        let is_flag = word.starts_with('-');
        if let Some(flag) = secret_of.take().filter(|_| !is_flag) {
            return mark(flag, word);
        }
        let named = is_flag && !word.contains('=') && is_secret(word);
        secret_of = named.then_some(word);
        command(word)
    });
    redacted.collect()
}

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
            _ if word.trim_start_matches("--set=").starts_with(HEADERS) => {
                let given = word.len() - word.trim_start_matches("--set=").len();
                let end = word[given..].find('=').map_or(word.len(), |end| given + end);
                format!("{}={REDACTED}", &word[..end])
            }
            _ => command(&word),
        }
    });
    redacted.collect()
}

/// The subject of a result without secrets: the secrets of the runner, and of the launch command.
pub fn about(about: About, secrets: &Secrets) -> About {
    let known = |text: Option<String>| text.map(|text| secrets.redact(&text));
    let notes = about.notes.into_iter();
    About {
        engine: known(about.engine),
        engine_version: known(about.engine_version),
        hardware: known(about.hardware),
        launch_command: known(about.launch_command).map(|text| command(&text)),
        notes: notes.map(|(name, text)| (name, secrets.redact(&text))).collect(),
    }
}

/// A command as typed, with its layout, but without secrets: the values of flags, variables and
/// headers with a secret's name, words that look like keys, and credentials in URLs. A reference to
/// a variable is no secret.
pub fn command(text: &str) -> String {
    command_within(text, 0)
}

fn command_within(text: &str, depth: u32) -> String {
    let mut out = String::with_capacity(text.len());
    let mut expected = Expectation::Nothing;
    let mut rest = text;
    while !rest.is_empty() {
        let space = rest.len() - rest.trim_start().len();
        out.push_str(&rest[..space]);
        rest = &rest[space..];
        let (word, after) = rest.split_at(word_end(rest));
        rest = after;
        // The sign that a line goes on.
        if word.is_empty() || word == "\\" {
            out.push_str(word);
            continue;
        }
        let bare = unquoted(word);
        let is_flag = bare.starts_with('-') && bare.len() > 1;
        let redacted = match expected {
            Expectation::Secret | Expectation::Secrets if !is_flag && is_scheme(bare) => {
                out.push_str(word);
                continue;
            }
            Expectation::Secret | Expectation::Secrets if !is_flag => value(word),
            Expectation::Perhaps if !is_flag && !bare.contains("://") => value(word),
            Expectation::Header if !is_flag => header(word),
            Expectation::User if !is_flag && has_password(bare) => value(word),
            _ => self::word(word, depth),
        };
        out.push_str(&redacted);
        expected = match expected {
            Expectation::Secrets if !is_flag => Expectation::Secrets,
            _ => expected_after(bare, is_flag),
        };
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expectation {
    Nothing,
    Secret,
    /// Secrets, up to the next flag: `--api-keys a b`.
    Secrets,
    /// `-k`: takes a key in some programs, and nothing in curl.
    Perhaps,
    Header,
    /// `name:password`, or the user and group that a container runs as.
    User,
}

fn expected_after(bare: &str, is_flag: bool) -> Expectation {
    match bare {
        "-k" => Expectation::Perhaps,
        "-H" | "--header" | "--headers" => Expectation::Header,
        "-u" | "--user" | "--proxy-user" => Expectation::User,
        _ if is_flag && !bare.contains('=') && is_secret(bare) => {
            if bare.ends_with('s') {
                Expectation::Secrets
            } else {
                Expectation::Secret
            }
        }
        // `Authorization: Bearer …` without quotes around it.
        _ if bare.strip_suffix(':').is_some_and(is_secret) => Expectation::Secret,
        _ => Expectation::Nothing,
    }
}

/// The end of the first word, as a shell sees it: quotes and backslashes keep spaces in.
fn word_end(text: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('\''), '\\') => {}
            // At the end of a line it is a word of its own.
            (None, '\\') if at == 0 && text[1..].starts_with(char::is_whitespace) => return 1,
            (_, '\\') => escaped = true,
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, _) if c.is_whitespace() => return at,
            _ => {}
        }
    }
    match quote {
        // A quote that never ends is an apostrophe.
        Some(_) => text.find(char::is_whitespace).unwrap_or(text.len()),
        None => text.len(),
    }
}

fn unquoted(word: &str) -> &str {
    let inner = |quote| word.strip_prefix(quote)?.strip_suffix(quote);
    let inner = inner('"').or_else(|| inner('\''));
    inner.unwrap_or(word)
}

/// Puts the replacement of a word into the quotes of the word.
fn in_quotes_of(word: &str, inner: &str) -> String {
    if unquoted(word).len() == word.len() {
        inner.to_owned()
    } else {
        format!("{0}{inner}{0}", &word[..1])
    }
}

/// A word by itself: an assignment, a header, JSON, a URL, a command in quotes. A word that nests
/// deeper than people write is removed whole.
fn word(word: &str, depth: u32) -> String {
    if depth == DEPTH {
        return value(word);
    }
    let inner = unquoted(word);
    if let Ok(mut json @ (serde_json::Value::Object(_) | serde_json::Value::Array(_))) =
        serde_json::from_str(inner)
    {
        let before = json.clone();
        fields(&mut json, &|_| REDACTED.to_owned());
        return if json == before {
            word.to_owned()
        } else {
            in_quotes_of(word, &json.to_string())
        };
    }
    let assigned = inner.split_once('=').filter(|(name, _)| is_secret(name));
    let assigned = assigned.filter(|(name, _)| !name.contains(char::is_whitespace));
    // The end of a secret of several words is not known.
    if assigned.is_none() && inner.len() < word.len() && inner.contains(char::is_whitespace) {
        return in_quotes_of(word, &command_within(inner, depth + 1));
    }
    if looks_like_a_key(inner) {
        return value(word);
    }
    if inner.contains("://") && !inner.split("://").next().is_some_and(|it| it.contains('=')) {
        return in_quotes_of(word, &without_credentials(inner));
    }
    if let Some((name, given)) = inner.split_once('=') {
        let given = match name.trim_start_matches('-') {
            _ if is_secret(name) => value(given),
            "header" | "headers" | "H" => header(given),
            "user" if has_password(given) => value(given),
            _ => self::word(given, depth + 1),
        };
        return in_quotes_of(word, &format!("{name}={given}"));
    }
    match inner.split_once(':') {
        Some((name, given)) if !given.is_empty() && is_secret(name) => {
            in_quotes_of(word, &format!("{name}:{}", value(given)))
        }
        _ => word.to_owned(),
    }
}

/// A header with its name alone, because a proxy's secret may have any name.
fn header(word: &str) -> String {
    match unquoted(word).split_once([':', '=']) {
        Some((name, _)) => in_quotes_of(word, &format!("{name}: {REDACTED}")),
        None => value(word),
    }
}

/// The replacement of a secret, or the variable in its place.
fn value(given: &str) -> String {
    if given.trim_start_matches(['"', '\'']).starts_with('$') {
        given.to_owned()
    } else {
        REDACTED.to_owned()
    }
}

/// True if a flag, a variable, a header or a field has a secret's name.
pub fn is_secret(name: &str) -> bool {
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let last = name.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    // `xApiKey`: words may be parted by a capital.
    let capital = last.rfind(|c: char| c.is_ascii_uppercase());
    let after = capital.map_or(last, |at| &last[at..]).to_lowercase();
    let last = last.to_lowercase();
    SECRET_NAMES.contains(&last.as_str())
        || SECRET_NAMES.contains(&after.as_str())
        || SECRET_ENDS.iter().any(|end| last.ends_with(end))
}

/// True if a word of a header names the kind of the secret after it.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token", "digest"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// `name:password`, but not the numbers of a user and a group.
fn has_password(word: &str) -> bool {
    let password = word.split_once(':').map(|(_, password)| password);
    password.is_some_and(|it| !it.is_empty() && !it.bytes().all(|byte| byte.is_ascii_digit()))
}

fn looks_like_a_key(word: &str) -> bool {
    let begins = SECRET_BEGINNINGS.iter().any(|begin| word.starts_with(begin));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    begins && word.len() >= SHORTEST_KEY && word.bytes().all(plain)
}

/// Replaces the secret values in JSON: values of fields with a secret's name, and texts that look
/// like keys. `mark` returns the replacement.
pub fn fields(value: &mut serde_json::Value, mark: &dyn Fn(&serde_json::Value) -> String) {
    fields_named(value, &[], mark);
}

/// The same, where fields of these names are secret too.
pub fn fields_named(
    value: &mut serde_json::Value,
    names: &[String],
    mark: &dyn Fn(&serde_json::Value) -> String,
) {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                // A structure is looked into; null and booleans are no secrets.
                let plain = matches!(field, Value::String(_) | Value::Number(_));
                if plain && (is_secret(name) || names.contains(name)) {
                    *field = Value::String(mark(field))
                } else {
                    fields_named(field, names, mark)
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|one| fields_named(one, names, mark)),
        Value::String(text) => {
            let key = text.strip_prefix("Bearer ").unwrap_or(text);
            if looks_like_a_key(key) || key.len() < text.len() {
                *value = Value::String(mark(value));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The secret texts in JSON that [`fields_named`] replaces.
pub fn secrets_in(value: &serde_json::Value, names: &[String]) -> Vec<String> {
    let found = std::cell::RefCell::new(Vec::new());
    fields_named(&mut value.clone(), names, &|secret| {
        let text = secret.as_str().map_or_else(|| secret.to_string(), str::to_owned);
        found.borrow_mut().push(text);
        String::new()
    });
    found.into_inner()
}

/// The names of the keys that a JSON Schema marks as `writeOnly`.
pub fn write_only(schema: &serde_json::Value) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = vec![schema];
    while let Some(value) = rest.pop() {
        let properties = value.get("properties").and_then(|it| it.as_object());
        let marked = properties
            .into_iter()
            .flatten()
            .filter(|(_, property)| property.get("writeOnly").is_some_and(|marked| marked == true));
        names.extend(marked.map(|(name, _)| name.clone()));
        match value {
            serde_json::Value::Object(fields) => rest.extend(fields.values()),
            serde_json::Value::Array(list) => rest.extend(list),
            _ => {}
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// A URL without the user and password before its host, and without secret parameters.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority);
    let authority = match authority.rfind('@') {
        Some(at) => format!("{REDACTED}@{}", &authority[at + 1..]),
        None => authority.to_owned(),
    };
    let Some((path, query)) = path.split_once('?') else {
        return format!("{scheme}://{authority}{path}");
    };
    let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, given)) if is_secret(name) => format!("{name}={}", value(given)),
        _ => parameter.to_owned(),
    });
    let parameters: Vec<String> = parameters.collect();
    format!("{scheme}://{authority}{path}?{}", parameters.join("&"))
}

#[cfg(test)]
mod tests;
