//! The form of requests, as a backend writes them: the route, and the places of the prompt, the
//! model and the stream's switch in the body. The contract has no function that reads a request, so
//! the form is learned from `encode`: the backend writes samples whose texts are marks, and the
//! marks show the places. That works for any plugin whose requests are JSON.

use plugins::backend::{Call, Dialect, Message, Part, Prompt, Role, Sample, Settings};
use serde_json::Value;

/// Texts that no request has by itself.
const MODEL: &str = "runnermodelmark";
const SYSTEM: &str = "runnersystemmark";
const USER: &str = "runnerusermark";
const ANSWER: &str = "runneranswermark";
const LAST: &str = "runnerlastmark";
/// A token id that no request has by itself.
const TOKEN: u32 = 7_919;

/// Fields whose values come before the prompt, as engines put them there.
const BEFORE: [&str; 5] = ["tools", "functions", "toolConfig", "tool_config", "documents"];
/// Fields that limit the answer's length, as clients write them: JSON pointers.
const LIMITS: [&str; 9] = [
    "/max_tokens",
    "/max_completion_tokens",
    "/max_output_tokens",
    "/max_new_tokens",
    "/sampling_params/max_new_tokens",
    "/parameters/max_new_tokens",
    "/generationConfig/maxOutputTokens",
    "/inferenceConfig/maxTokens",
    "/options/num_predict",
];
/// Fields that hold bytes in Base64.
const ENCODED: [&str; 5] = ["data", "bytes", "images", "audio", "file_data"];
/// Sampling options whose numbers are recorded.
const OPTIONS: [&str; 8] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "n",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    method: String,
    /// The path before and after the model's name; the whole path if it has none.
    path: (String, Option<String>),
    model: Option<String>,
    switch: Switch,
    /// JSON pointers of the parts of a prompt, in the order in which a model reads them.
    prompts: Vec<String>,
}

/// The sign of a request for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Switch {
    /// A boolean in the body.
    Field(String),
    Route(bool),
}

/// A request as its form reads it.
#[derive(Debug, Default)]
pub(crate) struct ClientRequest {
    /// Absent if the request leaves it to the server.
    pub(crate) is_streaming: Option<bool>,
    /// The model's name; never written.
    pub(crate) model: Option<String>,
    /// The most tokens of the answer, if the request says so.
    pub(crate) limit: Option<u32>,
    pub(crate) options: serde_json::Map<String, Value>,
    pub(crate) prompt: Content,
    /// The id of the reply that this request continues; never written.
    pub(crate) previous: Option<String>,
    pub(crate) media: Vec<Media>,
}

/// The content of a prompt; never written.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// Messages, with the fields that stand before them.
    Messages {
        messages: Vec<Value>,
        tools: Option<Value>,
    },
    Text(String),
    Tokens(Vec<u32>),
}

impl Default for Content {
    fn default() -> Self {
        Content::Text(String::new())
    }
}

/// Content that is not text, by its size.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Media {
    pub(crate) kind: &'static str,
    pub(crate) bytes: usize,
}

/// The forms of all routes of a backend.
pub(crate) fn learn(dialect: &mut Dialect) -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::new();
    for prompt in [messages(), Prompt::Text(USER.to_owned()), Prompt::Tokens(vec![TOKEN; 3])] {
        let mut written = |is_streaming| write(dialect, &prompt, is_streaming);
        let (Some(whole), Some(stream)) = (written(false), written(true)) else { continue };
        for form in compared(&whole, &stream) {
            match forms.iter_mut().find(|known| known.path == form.path) {
                None => forms.push(form),
                Some(known) => {
                    let new = form.prompts.into_iter();
                    let new: Vec<_> = new.filter(|place| !known.prompts.contains(place)).collect();
                    known.prompts.extend(new);
                }
            }
        }
    }
    forms
}

fn messages() -> Prompt {
    let message =
        |role, text: &str| Message { role, parts: vec![Part::Text(text.to_owned())], extra: None };
    Prompt::Messages(vec![
        message(Role::System, SYSTEM),
        message(Role::User, USER),
        message(Role::Assistant, ANSWER),
        message(Role::User, LAST),
    ])
}

struct Written {
    method: String,
    path: String,
    body: Value,
    /// The pointers of the marks, in the order of the marks.
    marks: Vec<String>,
}

fn write(dialect: &mut Dialect, prompt: &Prompt, is_streaming: bool) -> Option<Written> {
    let sample = Sample::bare("recorder", prompt.clone());
    let settings = Settings { output_tokens: Some(16), ..Settings::bare(MODEL, is_streaming) };
    // A backend refuses the kinds of prompts that its route does not take.
    let Ok(Call::Request(request)) = dialect.encode(&sample, &settings, None) else { return None };
    let body: Value = serde_json::from_slice(&request.body).ok()?;
    let marks = [SYSTEM, USER, ANSWER, LAST].map(|mark| places(&body, &|value| has(value, mark)));
    let token = places(&body, &|value| value.as_u64() == Some(TOKEN.into()));
    let marks: Vec<_> = marks.into_iter().flatten().chain(token).collect();
    (!marks.is_empty()).then_some(Written {
        method: request.method,
        path: request.path,
        body,
        marks,
    })
}

fn has(value: &Value, mark: &str) -> bool {
    value.as_str().is_some_and(|text| text.contains(mark))
}

/// The pointers of the values that fit, in their order.
fn places(value: &Value, fits: &impl Fn(&Value) -> bool) -> Vec<String> {
    if fits(value) {
        return vec![String::new()];
    }
    let below = |key: String, value| {
        places(value, fits).into_iter().map(move |rest| format!("/{key}{rest}")).collect::<Vec<_>>()
    };
    match value {
        Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| below(escaped(key), value)).collect()
        }
        Value::Array(items) => (items.iter().enumerate())
            .flat_map(|(index, value)| below(index.to_string(), value))
            .collect(),
        _ => Vec::new(),
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The part of a pointer before its first index: the list that holds the messages.
fn root(pointer: &str) -> String {
    let keys = pointer.split('/').skip(1);
    let keys = keys.take_while(|key| !key.bytes().all(|byte| byte.is_ascii_digit()));
    keys.fold(String::new(), |root, key| format!("{root}/{key}"))
}

/// The forms of a route that wrote these requests, without and with a stream.
fn compared(whole: &Written, stream: &Written) -> Vec<Form> {
    let form = |written: &Written, switch| {
        let mut prompts: Vec<String> = Vec::new();
        for mark in &written.marks {
            let root = root(mark);
            if !prompts.contains(&root) {
                prompts.push(root);
            }
        }
        let path = written.path.split('?').next().unwrap_or_default();
        let path = match path.split_once(MODEL) {
            Some((before, after)) => (before.to_owned(), Some(after.to_owned())),
            None => (path.to_owned(), None),
        };
        let model = places(&written.body, &|value| value.as_str() == Some(MODEL)).pop();
        Form { method: written.method.clone(), path, model, switch, prompts }
    };
    if whole.path.split('?').next() != stream.path.split('?').next() {
        return vec![form(whole, Switch::Route(false)), form(stream, Switch::Route(true))];
    }
    let switches = places(&stream.body, &|value| value == &Value::Bool(true)).into_iter();
    let mut switches =
        switches.filter(|pointer| whole.body.pointer(pointer) != Some(&Value::Bool(true)));
    let switch = switches.next();
    // A route whose requests are the same either way.
    let switch = switch.map_or(Switch::Route(false), Switch::Field);
    vec![form(stream, switch)]
}

impl Form {
    /// True if a request of this method and path, without its query, has this form.
    pub(crate) fn fits(&self, method: &str, path: &str) -> bool {
        let model = match &self.path {
            (whole, None) => return self.method == method && whole == path,
            (before, Some(after)) => path
                .strip_prefix(before.as_str())
                .and_then(|rest| rest.strip_suffix(after.as_str())),
        };
        self.method == method
            && model.is_some_and(|model| !model.is_empty() && !model.contains('/'))
    }

    pub(crate) fn read(&self, path: &str, body: &[u8]) -> Option<ClientRequest> {
        let mut body: Value = serde_json::from_slice(body).ok()?;
        let mut media = Vec::new();
        let mut parts: Vec<Value> = Vec::new();
        for pointer in &self.prompts {
            parts.extend(body.pointer_mut(pointer).map(Value::take));
        }
        let fields = body.as_object()?;
        if parts.is_empty() {
            return None;
        }
        parts.iter_mut().for_each(|part| without_media("", part, &mut media));
        let before: Vec<_> = (BEFORE.iter())
            .filter_map(|name| fields.get(*name))
            .filter(|value| value.is_array() || value.is_object())
            .collect();
        let number = |pointer: &&str| body.pointer(pointer).and_then(Value::as_u64);
        let limit = LIMITS.iter().find_map(number);
        let options = (OPTIONS.iter())
            .filter_map(|name| Some(((*name).to_owned(), fields.get(*name)?.clone())))
            .filter(|(_, value)| value.is_number())
            .collect();
        let named = |pointer: &String| body.pointer(pointer)?.as_str().map(str::to_owned);
        let (start, end) = (self.path.0.len(), self.path.1.as_ref().map(String::len));
        let in_path = end.and_then(|end| path.get(start..path.len() - end)).map(str::to_owned);
        Some(ClientRequest {
            is_streaming: match &self.switch {
                Switch::Field(pointer) => body.pointer(pointer).and_then(Value::as_bool),
                Switch::Route(is_streaming) => Some(*is_streaming),
            },
            model: self.model.as_ref().and_then(named).or(in_path),
            limit: limit.and_then(|limit| u32::try_from(limit).ok()),
            options,
            prompt: prompt(parts, before)?,
            previous: named(&"/previous_response_id".to_owned()),
            media,
        })
    }
}

fn prompt(mut parts: Vec<Value>, before: Vec<&Value>) -> Option<Content> {
    if let [only] = parts.as_mut_slice()
        && before.is_empty()
    {
        match only {
            Value::String(text) => return Some(Content::Text(std::mem::take(text))),
            Value::Array(items) if items.iter().all(Value::is_u64) && !items.is_empty() => {
                let ids = items.iter().filter_map(Value::as_u64);
                let ids: Result<_, _> = ids.map(u32::try_from).collect();
                return ids.ok().map(Content::Tokens);
            }
            _ => {}
        }
    }
    let mut messages = Vec::new();
    for part in parts {
        match part {
            // A list of messages, or of the system's parts.
            Value::Array(items) => {
                let is_message = |item: &Value| item.get("role").is_some();
                if items.iter().any(is_message) {
                    messages.extend(items);
                } else {
                    messages.push(message("system", Value::Array(items)));
                }
            }
            Value::String(text) => {
                let role = if messages.is_empty() { "system" } else { "user" };
                messages.push(message(role, text.into()));
            }
            Value::Null => {}
            other => messages.push(message("system", other)),
        }
    }
    let tools = match before.as_slice() {
        [] => None,
        [only] => Some((*only).clone()),
        several => Some(several.iter().map(|value| (*value).clone()).collect()),
    };
    (!messages.is_empty()).then_some(Content::Messages { messages, tools })
}

fn message(role: &str, content: Value) -> Value {
    serde_json::json!({ "role": role, "content": content })
}

/// Puts the digest of content that is not text in its place, under `key`, and notes its size.
fn without_media(key: &str, value: &mut Value, media: &mut Vec<Media>) {
    match value {
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, field)| without_media(key, field, media));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_media(key, item, media)),
        Value::String(text) => {
            let url = text.strip_prefix("data:").and_then(|rest| rest.split_once(','));
            let (head, data) = match url {
                Some(parts) => parts,
                None if ENCODED.contains(&key) => (key, text.as_str()),
                None => return,
            };
            let kinds = ["image", "audio", "video"];
            let kind = kinds.into_iter().find(|kind| head.contains(*kind)).unwrap_or("other");
            media.push(Media { kind, bytes: data.len() / 4 * 3 });
            let digest = blake2b_simd::Params::new().hash_length(16).hash(data.as_bytes());
            *text = digest.to_hex().to_string();
        }
        _ => {}
    }
}
