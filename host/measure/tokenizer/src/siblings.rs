//! Files beside a tokenizer's file that belong to it: the settings of the model's own tokenizer,
//! its special tokens, its chat templates.
//!
//! The files are from a model's folder on a hub. A file that is not there is no error; a file that
//! cannot be read is an error only for callers that need it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Value};

/// The maximum size of such a file, in bytes: many times the largest known.
const FILE_BYTES: u64 = 32 << 20;

/// The tokens that have a role, by the names that settings and chat templates know them by.
const ROLES: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

pub(super) struct SiblingFiles {
    /// `tokenizer_config.json`, or the cause why it cannot be read.
    settings: Result<Map<String, Value>, String>,
    /// `config.json`'s `model_type`.
    model_type: Option<String>,
    /// `special_tokens_map.json`.
    roles: Map<String, Value>,
    /// `added_tokens.json`: ids by contents.
    added: Map<String, Value>,
    /// The chat templates' texts by name, and the file that they are from.
    pub(super) templates: Option<Templates>,
}

pub(super) struct Templates {
    pub(super) file: String,
    /// By name, among them `default`, or the fault of the file.
    pub(super) texts: Result<BTreeMap<String, String>, String>,
}

/// A token that settings add to a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddedToken {
    pub(super) content: String,
    pub(super) special: bool,
}

impl Default for SiblingFiles {
    fn default() -> Self {
        SiblingFiles {
            settings: Ok(Map::new()),
            model_type: None,
            roles: Map::new(),
            added: Map::new(),
            templates: None,
        }
    }
}

impl SiblingFiles {
    pub(super) fn read(folder: &Path) -> Self {
        let settings = object(folder, "tokenizer_config.json");
        let optional = |name| object(folder, name).unwrap_or_default();
        let model_type =
            optional("config.json").get("model_type").and_then(Value::as_str).map(str::to_owned);
        let templates = templates(folder, &settings);
        SiblingFiles {
            settings,
            model_type,
            roles: optional("special_tokens_map.json"),
            added: optional("added_tokens.json"),
            templates,
        }
    }

    /// The settings of the model's own tokenizer; empty where the folder has none.
    pub(super) fn settings(&self) -> Result<&Map<String, Value>, String> {
        self.settings.as_ref().map_err(Clone::clone)
    }

    fn setting(&self, key: &str) -> Option<&Value> {
        self.settings.as_ref().ok()?.get(key)
    }

    pub(super) fn switch(&self, key: &str) -> Option<bool> {
        self.setting(key)?.as_bool()
    }

    /// The names of the tokenizer's class, its code and the model's kind, in small letters.
    pub(super) fn classes(&self) -> Vec<String> {
        let class = self.setting("tokenizer_class").and_then(Value::as_str);
        let mapped = match self.setting("auto_map").map(|map| &map["AutoTokenizer"]) {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(name)) => vec![name.as_str()],
            _ => Vec::new(),
        };
        let named = class.into_iter().chain(mapped).chain(self.model_type.as_deref());
        named.map(str::to_lowercase).collect()
    }

    pub(super) fn roles(&self) -> BTreeMap<&'static str, String> {
        let content = |value: &Value| match value {
            Value::String(content) => Some(content.clone()),
            Value::Object(token) => Some(token.get("content")?.as_str()?.to_owned()),
            _ => None,
        };
        let of = |role: &'static str| {
            let token = self.setting(role).or_else(|| self.roles.get(role))?;
            Some((role, content(token)?))
        };
        ROLES.into_iter().filter_map(of).collect()
    }

    /// Tokens that the settings give ids.
    pub(super) fn added(&self) -> Result<BTreeMap<u32, AddedToken>, String> {
        let mut tokens = BTreeMap::new();
        for (content, id) in &self.added {
            let Some(id) = id.as_u64().and_then(|id| u32::try_from(id).ok()) else {
                return Err(format!("`added_tokens.json`: `{content}` has no id"));
            };
            // The file says no more of them; most of them mark roles and turns.
            let content = content.clone();
            tokens.insert(id, AddedToken { content, special: true });
        }
        let decoder = self.settings()?.get("added_tokens_decoder");
        for (id, token) in decoder.and_then(Value::as_object).into_iter().flatten() {
            let wrong = || {
                format!(
                    "`tokenizer_config.json`: `added_tokens_decoder.{id}` is no token with an id"
                )
            };
            let content = token["content"].as_str().ok_or_else(wrong)?.to_owned();
            let special = token["special"].as_bool().unwrap_or(true);
            tokens.insert(id.parse().map_err(|_| wrong())?, AddedToken { content, special });
        }
        if tokens.values().any(|token| token.content.is_empty()) {
            Err("`added_tokens_decoder` holds a token without a text".to_owned())
        } else {
            Ok(tokens)
        }
    }
}

/// Returns the chat templates: of their own file, else of the settings, else of the older file.
fn templates(folder: &Path, settings: &Result<Map<String, Value>, String>) -> Option<Templates> {
    let of = |object: &Result<Map<String, Value>, String>| match object {
        Ok(object) => object.get("chat_template").filter(|value| !value.is_null()).map(texts),
        Err(cause) => Some(Err(cause.clone())),
    };
    let own = || {
        let default = text(folder, "chat_template.jinja").transpose()?;
        let more = text(&folder.join("additional_chat_templates"), "tool_use.jinja");
        let more = more.ok().flatten().map(|more| ("tool_use".to_owned(), more));
        Some(
            default
                .map(|default| [("default".to_owned(), default)].into_iter().chain(more).collect()),
        )
    };
    let in_file =
        |file: &str, texts: Option<_>| Some(Templates { file: file.to_owned(), texts: texts? });
    in_file("chat_template.jinja", own())
        .or_else(|| in_file("tokenizer_config.json", of(settings)))
        .or_else(|| in_file("chat_template.json", of(&object(folder, "chat_template.json"))))
}

fn texts(value: &Value) -> Result<BTreeMap<String, String>, String> {
    let wrong =
        || "`chat_template` is neither a text nor a list of `name` and `template`".to_owned();
    match value {
        Value::String(text) => Ok(BTreeMap::from([("default".to_owned(), text.clone())])),
        Value::Array(list) => list
            .iter()
            .map(|one| {
                let part = |key: &str| one[key].as_str().map(str::to_owned).ok_or_else(wrong);
                Ok((part("name")?, part("template")?))
            })
            .collect(),
        _ => Err(wrong()),
    }
}

/// A file's object; empty where there is no such file.
fn object(folder: &Path, name: &str) -> Result<Map<String, Value>, String> {
    match text(folder, name)? {
        None => Ok(Map::new()),
        Some(text) => serde_json::from_str(&text).map_err(|cause| format!("`{name}`: {cause}")),
    }
}

fn text(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let bytes = match bytes_of(&folder.join(name), FILE_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(format!("`{name}` has more than {} MiB", FILE_BYTES >> 20)),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(cause) => return Err(format!("`{name}`: {cause}")),
    };
    let text = String::from_utf8(bytes).map_err(|_| format!("`{name}` is no UTF-8 text"))?;
    Ok(Some(text))
}

/// Reads a file; returns nothing if it has more bytes than that.
pub(super) fn bytes_of(file: &Path, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let from = File::open(file)?;
    from.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}
