//! All mistakes in a configuration, at once.

use serde_json::{Map, Value};

use crate::config::{Authentication, Config, Done, Framing, Place, Places};
use crate::placeholder::{NAMES, Name, Piece, pieces};

const HOST_HEADERS: [&str; 8] = [
    "authorization",
    "connection",
    "content-length",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

#[derive(Default)]
struct Mistakes(Vec<String>);

impl Mistakes {
    fn add(&mut self, key: &str, mistake: impl std::fmt::Display) {
        self.0.push(format!("key `{key}`: {mistake}"));
    }

    fn path(&mut self, key: &str, path: &str) {
        if path.is_empty() {
            self.add(key, "missing; expected the path of requests, such as `/generate`");
        } else if !path.starts_with('/') || path.starts_with("//") {
            self.add(key, format!("expected a path that begins with one `/`, got `{path}`"));
        } else if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            let cause = "has a character that must be escaped, such as `%20` for a space";
            self.add(key, format!("`{path}` {cause}"));
        }
    }

    fn plain_path(&mut self, key: &str, path: &str) {
        self.path(key, path);
        if path.contains('{') {
            self.add(key, "expected a path without placeholders");
        }
    }

    fn pointer(&mut self, key: &str, pointer: &str) {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let expected = "expected a JSON pointer, which begins with `/`";
            return self.add(key, format!("{expected}, got `{pointer}`"));
        }
        for step in pointer.split('/').skip(1) {
            if step == "*" {
                let cause = "names many places; write a number, such as 0, in place of `*`";
                self.add(key, format!("`{pointer}` {cause}"));
            }
            let mut rest = step;
            while let Some(at) = rest.find('~') {
                rest = &rest[at + 1..];
                if !rest.starts_with(['0', '1']) {
                    let cause = "`~` must be written `~0`, and `/` within a name `~1`";
                    self.add(key, format!("in `{pointer}`, {cause}"));
                    break;
                }
            }
        }
    }

    fn places(&mut self, key: &str, places: &Places) {
        for place in places.all() {
            match place {
                Place::Pointer(at) => self.pointer(key, at),
                Place::OfKind(place) => {
                    self.pointer(&format!("{key}.at"), &place.at);
                    self.pointer(&format!("{key}.when"), &place.when);
                }
            }
        }
    }

    /// Checks placeholders: in a path or header they are names; lists stand alone.
    fn text(&mut self, key: &str, text: &str, only_names: bool) {
        let pieces = pieces(text);
        for piece in &pieces {
            match piece {
                Piece::Text(_) => {}
                Piece::Unknown(name) => {
                    let known: Vec<_> =
                        NAMES.iter().map(|(_, name)| format!("{{{name}}}")).collect();
                    self.add(key, format!(
                        "`{{{name}}}` is no placeholder; expected one of {}; write `{{{{{name}}}}}` for the text",
                        known.join(", ")
                    ));
                }
                Piece::Value(name) => {
                    let text = written(*name);
                    if only_names && !matches!(name, Name::Model | Name::Adapter) {
                        let cause = "cannot stand here, only `{model}` and `{adapter}`";
                        self.add(key, format!("`{{{text}}}` {cause}"));
                    } else if name.is_list() && pieces.len() > 1 {
                        let cause = "is a list, which cannot stand within a longer text";
                        self.add(key, format!("`{{{text}}}` {cause}"));
                    }
                }
            }
        }
    }

    fn value(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(key, text, false),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{key}[{index}]"), item);
                }
            }
            Value::Object(fields) => self.object(key, fields),
            _ => {}
        }
    }

    fn object(&mut self, key: &str, fields: &Map<String, Value>) {
        for (name, value) in fields {
            self.value(&format!("{key}.{name}"), value);
        }
    }
}

pub fn written(name: Name) -> &'static str {
    let entry = NAMES.iter().find(|(known, _)| *known == name);
    entry.map_or("", |(_, text)| text)
}

/// Everything that is wrong with a configuration, in the order of its keys.
pub fn mistakes(config: &Config) -> Vec<String> {
    let mut mistakes = Mistakes::default();
    request(config, &mut mistakes);
    framing(config, &mut mistakes);
    events(config, &mut mistakes);
    questions(config, &mut mistakes);
    mistakes.0
}

fn request(config: &Config, mistakes: &mut Mistakes) {
    mistakes.path("path", &config.path);
    mistakes.text("path", &config.path, true);
    if let Some(path) = &config.stream_path {
        mistakes.path("stream-path", path);
        mistakes.text("stream-path", path, true);
    }
    if !matches!(config.method.as_str(), "POST" | "PUT") {
        mistakes.add("method", format!("expected POST or PUT, got `{}`", config.method));
    }
    for (name, value) in &config.headers {
        let key = format!("headers.{name}");
        let lower = name.to_ascii_lowercase();
        if lower == "authorization" {
            let cause = "headers do not hold the key; set `authentication` and `api-key-variable`";
            mistakes.add(&key, cause);
        } else if HOST_HEADERS.contains(&lower.as_str()) {
            mistakes.add(&key, "this field belongs to the runner; leave it out");
        } else if !is_header(name) {
            mistakes.add(&key, "a header's name consists of letters, digits, `-`, `_` and `.`");
        }
        if value.chars().any(char::is_control) {
            mistakes.add(&key, "the value contains a control character");
        }
    }
    if config.body.is_empty() {
        mistakes
            .add("body", "missing; expected the request's fields, such as `prompt = \"{prompt}\"`");
    }
    mistakes.object("body", &config.body);
    mistakes.object("stream-body", &config.stream_body);
    mistakes.object("ignore-eos-body", &config.ignore_eos_body);
    let prompts = [Name::Prompt, Name::Messages, Name::TokenIds];
    if !config.body.is_empty() && !prompts.iter().any(|name| has(&config.body, *name)) {
        let expected = "expected `{prompt}`, `{messages}` or `{token-ids}` in it";
        mistakes.add("body", format!("no place for the prompt; {expected}"));
    }
}

fn framing(config: &Config, mistakes: &mut Mistakes) {
    let prefixed = config.framing == Framing::LengthPrefixed;
    match &config.length_prefix {
        Some(_) if !prefixed => {
            mistakes.add("length-prefix", "only for framing = \"length-prefixed\"; leave it out")
        }
        None if prefixed => mistakes.add(
            "length-prefix",
            "missing; framing = \"length-prefixed\" needs it, such as `{ width = 4 }`",
        ),
        Some(prefix) => {
            if prefix.skip > 16 {
                mistakes
                    .add("length-prefix.skip", format!("expected at most 16, got {}", prefix.skip));
            }
            if !matches!(prefix.width, 1 | 2 | 4 | 8) {
                let width = prefix.width;
                mistakes.add("length-prefix.width", format!("expected 1, 2, 4 or 8, got {width}"));
            }
        }
        None => {}
    }
    if config.framing == Framing::Whole {
        let unused = [
            ("stream-path", config.stream_path.is_some()),
            ("stream-body", !config.stream_body.is_empty()),
            ("events.done", config.events.done.is_some()),
        ];
        for (key, _) in unused.iter().filter(|(_, set)| *set) {
            mistakes.add(key, "only for streams, which framing = \"whole\" excludes; leave it out");
        }
    }
}

fn events(config: &Config, mistakes: &mut Mistakes) {
    let events = &config.events;
    for (key, places) in [
        ("events.text", &events.text),
        ("events.reasoning", &events.reasoning),
        ("events.tool-call", &events.tool_call),
        ("events.finish", &events.finish),
        ("events.tokens", &events.tokens),
        ("events.tokens-so-far", &events.tokens_so_far),
        ("events.input-tokens", &events.input_tokens),
        ("events.cached-input-tokens", &events.cached_input_tokens),
        ("events.output-tokens", &events.output_tokens),
        ("events.reasoning-tokens", &events.reasoning_tokens),
        ("events.draft-tokens", &events.draft_tokens),
        ("events.accepted-draft-tokens", &events.accepted_draft_tokens),
        ("events.input-image-tokens", &events.input_image_tokens),
        ("events.input-video-tokens", &events.input_video_tokens),
        ("events.input-audio-tokens", &events.input_audio_tokens),
        ("events.output-audio-tokens", &events.output_audio_tokens),
        ("events.error", &events.error),
    ] {
        mistakes.places(key, places);
    }
    if events.text.all().is_empty() {
        let expected = "the place of an event's text, such as \"/choices/0/text\"";
        mistakes.add("events.text", format!("missing; expected {expected}"));
    }
    if !events.tokens.all().is_empty() && !events.tokens_so_far.all().is_empty() {
        mistakes.add("events.tokens-so-far", "contradicts `events.tokens`; leave one of them out");
    }
    match &events.done {
        Some(Done::Value(done)) => mistakes.pointer("events.done.at", &done.at),
        Some(Done::Text(text)) if text.trim() != text || text.is_empty() => mistakes.add(
            "events.done",
            "expected a text without white space around it, such as `[DONE]`",
        ),
        None if config.framing != Framing::Whole => mistakes.add(
            "events.done",
            "missing; expected the end of a stream: a text such as \"[DONE]\", { at = \"/done\", is = true }, or \
             \"end-of-body\"",
        ),
        _ => {}
    }
}

fn questions(config: &Config, mistakes: &mut Mistakes) {
    if !config.default_url.starts_with("http://") && !config.default_url.starts_with("https://") {
        let (url, expected) = (&config.default_url, "a URL that begins with http:// or https://");
        mistakes.add("default-url", format!("expected {expected}, got `{url}`"));
    }
    for (key, path) in [("health", &config.health), ("flush-cache", &config.flush_cache)] {
        if let Some(path) = path {
            mistakes.plain_path(key, path);
        }
    }
    if let Some(models) = &config.models {
        mistakes.plain_path("models.path", &models.path);
        mistakes.pointer("models.list", &models.list);
        mistakes.pointer("models.name", &models.name);
        if let Some(context) = &models.context_tokens {
            mistakes.pointer("models.context-tokens", context);
        }
    }
    if let Some(metrics) = &config.metrics {
        mistakes.plain_path("metrics.path", &metrics.path);
    }
    if let Authentication::Header(name) = &config.authentication
        && (!is_header(name) || HOST_HEADERS.contains(&name.to_ascii_lowercase().as_str()))
    {
        let expected = "expected a name such as `x-api-key`, or authentication = \"bearer\"";
        mistakes.add("authentication.header", format!("`{name}` cannot carry a key; {expected}"));
    }
    if let Some(variable) = &config.api_key_variable
        && !variable.ends_with("_API_KEY")
    {
        let remedy = "name others with --api-key-env";
        let cause = format!("expected a name that ends in `_API_KEY`, got `{variable}`; {remedy}");
        mistakes.add("api-key-variable", cause);
    }
}

fn is_header(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.bytes().all(allowed)
}

pub fn has(fields: &Map<String, Value>, name: Name) -> bool {
    fields.values().any(|value| stands_in(value, name))
}

fn stands_in(value: &Value, name: Name) -> bool {
    match value {
        Value::String(text) => pieces(text).contains(&Piece::Value(name)),
        Value::Array(items) => items.iter().any(|item| stands_in(item, name)),
        Value::Object(fields) => has(fields, name),
        _ => false,
    }
}
