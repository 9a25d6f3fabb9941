//! From a row to its prompt, in the configured form. `columns` finds the columns, `conversation`
//! reads conversations.

use runner_plugin::{Candidates, Media, Message, Part, Prompt, Role};
use serde_json::{Map, Value};

use crate::columns::{
    ADAPTER, ALPACA, ARRIVAL, AUDIO, EMBEDDING, ID, IMAGES, MESSAGES, OUTPUT_TOKENS, OWN,
    PARAMETERS, PASSED, PROMPT, REFERENCE, SESSION, SYSTEM, TOOLS, VIDEOS, class, filled, find,
    is_empty, list, named, path, shown, structured, text, tokens,
};
use crate::config::{Config, Form, Turns};
use crate::conversation::{self, Origin, Turn};
use crate::source::Row;
use crate::{Finder, Kind, Time};

#[derive(Clone, Debug)]
pub struct Draft {
    pub id: Option<String>,
    pub prompt: Prompt,
    /// The answer to it on record.
    pub answer: Option<Message>,
    /// True if that is the reference, which says nothing about the length of answers.
    pub answer_is_reference: bool,
    pub following: Vec<Turn>,
    /// True if it is a pair of ShareGPT, for which SGLang's bounds hold.
    pub pair: bool,
    /// True if it is one session of turns.
    pub session: bool,
    pub of_session: Option<String>,
    /// The reference for the last answer.
    pub reference: Option<Value>,
    pub output_tokens: Option<u32>,
    pub class: Option<String>,
    pub adapter: Option<String>,
    pub tools: Option<Value>,
    pub parameters: Map<String, Value>,
    pub arrival: Option<Time>,
    /// True if it is a recorded request, whose time is in seconds.
    pub recorded: bool,
}

enum RowPrompt {
    Prompt(Prompt),
    Pair(String, String),
    Turns(Origin, Vec<Turn>),
}

pub struct Reader {
    pub config: Config,
    pub finder: Finder,
    /// True if every row has every column, so that a missing one is a mistake.
    pub strict: bool,
}

impl Reader {
    pub fn draft(&self, row: &Row) -> Result<Draft, String> {
        let of = &self.config.columns;
        self.check(row)?;
        let body = match row.get("body").map(structured) {
            Some(Value::Object(body)) if of.prompt.is_none() && of.messages.is_none() => Some(body),
            _ => None,
        };
        let request = body.as_ref().unwrap_or(row);
        let row_prompt = self.row_prompt(request, body.is_some().then_some(row))?;
        let output_tokens = named(row, of.output_tokens.as_deref(), OUTPUT_TOKENS)
            .or_else(|| named(request, None, OUTPUT_TOKENS));
        let output_tokens = match output_tokens {
            Some((name, value)) => tokens(name, value)?,
            None => None,
        };
        let reference = find(row, of.reference.as_deref(), REFERENCE);
        let tools = find(request, of.tools.as_deref(), TOOLS).map(structured);
        let parameters = self.parameters(row, request, body.is_some(), tools.as_ref())?;
        // Tools beside the prompt make it a conversation; tools among the parameters only count as
        // tokens.
        let has_tools = tools.is_some();
        let arrival = find(row, of.arrival.as_deref(), ARRIVAL);
        let mut draft = Draft {
            id: find(row, of.id.as_deref(), ID).map(text),
            prompt: Prompt::Text(String::new()),
            answer: None,
            answer_is_reference: false,
            following: Vec::new(),
            pair: false,
            session: false,
            of_session: find(row, of.session.as_deref(), SESSION).map(text),
            reference: reference.cloned(),
            output_tokens,
            class: class(of, row),
            adapter: find(row, of.adapter.as_deref(), ADAPTER).map(text),
            tools: tools.or_else(|| parameters.get("tools").cloned()),
            parameters,
            arrival: arrival.map(Time::read).transpose()?,
            recorded: body.is_some(),
        };
        let system = find(row, of.system.as_deref(), SYSTEM).map(text);
        let system = system.or_else(|| self.config.system.clone());
        let media = self.media(request)?;
        let wants_chat = system.is_some() || !media.is_empty() || has_tools;
        self.shape(&mut draft, row_prompt, system, media, wants_chat)?;
        if draft.answer.is_none()
            && draft.following.is_empty()
            && let Some(Value::String(answer)) = reference
        {
            draft.answer = Some(Message::text(Role::Assistant, answer.clone()));
            draft.answer_is_reference = true;
        }
        Ok(draft)
    }

    /// Configured columns must be in rows that have all columns.
    fn check(&self, row: &Row) -> Result<(), String> {
        let of = &self.config.columns;
        let needed = [&of.prompt, &of.messages];
        let needed = needed.into_iter().filter_map(|name| name.as_deref());
        let optional = of.optional().map(|(_, name)| name);
        for name in needed.chain(optional.filter(|_| self.strict)) {
            if path(row, name).is_none() {
                return Err(format!("there is no column `{name}`; {}", list(row)));
            }
        }
        Ok(())
    }

    fn row_prompt(&self, request: &Row, recorded: Option<&Row>) -> Result<RowPrompt, String> {
        let of = &self.config.columns;
        let prompt = |text: String| RowPrompt::Prompt(Prompt::Text(text));
        if let Some(template) = &self.config.template {
            return match filled(template, request)? {
                empty if empty.is_empty() => Err(
                    "`template` gives an empty prompt; fill in its columns, or leave such rows out with \
                     `skip-invalid = true`"
                        .to_owned(),
                ),
                text => Ok(prompt(text)),
            };
        }
        if let Some(name) = &of.prompt {
            return match path(request, name).filter(|value| !is_empty(value)) {
                Some(value) => self.prompt(name, value),
                None => Err(format!(
                    "the prompt's column `{name}` is empty; fill it in, or leave such rows out with \
                     `skip-invalid = true`"
                )),
            };
        }
        if let Some(name) = &of.messages {
            let value = structured(path(request, name).unwrap_or(&Value::Null));
            return self.conversation(name, &value);
        }
        for name in MESSAGES {
            if let Some(value) = find(request, None, &[name]) {
                return self.conversation(name, &structured(value));
            }
        }
        let content = request.get("content").map(structured);
        if let Some(content @ Value::Array(_)) = &content {
            let parts = conversation::content(Some(content), &self.finder)
                .map_err(|cause| format!("`content`: {cause}"))?;
            let message = Message { role: Role::User, parts, extra: None };
            let turn = Turn { messages: vec![message], answer: None };
            return Ok(RowPrompt::Turns(Origin::Messages, vec![turn]));
        }
        let documents = ["documents", "passages", "texts"];
        let documents = documents.iter().find_map(|name| request.get(*name));
        if let (Some(query), Some(documents)) = (request.get("query"), documents)
            && let (Value::String(query), Value::Array(documents)) = (query, structured(documents))
        {
            let documents = documents.iter().map(|document| {
                let text = document.get("text").unwrap_or(document);
                text.as_str().map(str::to_owned)
            });
            let documents: Option<Vec<_>> = documents.collect();
            return Ok(RowPrompt::Prompt(Prompt::Ranking(Candidates {
                query: query.clone(),
                documents: documents.ok_or("`documents`: expected a list of texts")?,
            })));
        }
        let embeds = recorded
            .and_then(|row| row.get("url")?.as_str())
            .is_some_and(|url| url.ends_with("/embeddings"));
        if embeds && let Some(input) = request.get("input") {
            let texts = texts(input).ok_or("`input`: expected a text or a list of texts")?;
            return Ok(RowPrompt::Prompt(Prompt::Embedding(texts)));
        }
        let one = |name| find(request, None, &[name]).and_then(Value::as_str);
        if let (Some(instruction), Some(input)) = (one(ALPACA.0), one(ALPACA.1)) {
            // As LLaMA-Factory joins them.
            return Ok(prompt(format!("{instruction}\n{input}")));
        }
        if let Some((name, value)) = named(request, None, PROMPT) {
            return self.prompt(name, value);
        }
        // Not a vector, as datasets have it under this name.
        if let Some(texts) = find(request, None, EMBEDDING).and_then(texts) {
            return Ok(RowPrompt::Prompt(Prompt::Embedding(texts)));
        }
        if let Some(Value::String(text)) = content {
            return Ok(prompt(text));
        }
        Err(format!(
            "no prompt was found; name its column under `columns`, such as `columns = {{ prompt = \"question\" }}`; {}",
            list(request)
        ))
    }

    /// A prompt's column: a text, token ids, or a conversation.
    fn prompt(&self, name: &str, value: &Value) -> Result<RowPrompt, String> {
        if let Value::Array(items) = value {
            let ids = items.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()));
            return match ids.collect::<Option<Vec<_>>>() {
                Some(ids) if !ids.is_empty() => Ok(RowPrompt::Prompt(Prompt::Tokens(ids))),
                _ => self.conversation(name, value),
            };
        }
        match value {
            Value::String(text) => Ok(RowPrompt::Prompt(Prompt::Text(text.clone()))),
            other => Err(format!(
                "`{name}`: expected a text, token ids or a list of messages as the prompt, found {}; name the prompt's \
                 column with `columns.prompt`, or make a text of columns with `template`",
                shown(other)
            )),
        }
    }

    fn conversation(&self, name: &str, value: &Value) -> Result<RowPrompt, String> {
        if let Value::String(text) = value {
            return Ok(RowPrompt::Prompt(Prompt::Text(text.clone())));
        }
        let first = matches!(self.config.turns, None | Some(Turns::First));
        if first
            && name.starts_with("conversation")
            && let Some((prompt, answer)) = conversation::first_pair(value)
        {
            return Ok(RowPrompt::Pair(prompt, answer));
        }
        let (origin, turns) = conversation::read(name, value, &self.finder)?;
        Ok(RowPrompt::Turns(origin, turns))
    }

    fn media(&self, row: &Row) -> Result<Vec<Part>, String> {
        let of = &self.config.columns;
        let mut parts = Vec::new();
        type Wrap = fn(Media) -> Part;
        let kinds = [
            (&of.images, IMAGES, Kind::Image, Part::Image as Wrap, "images"),
            (&of.audio, AUDIO, Kind::Audio, Part::Audio, "audio"),
            (&of.videos, VIDEOS, Kind::Video, Part::Video, "videos"),
        ];
        for (configured, usual, kind, part, name) in kinds {
            if let Some(value) = find(row, configured.as_deref(), usual) {
                let media = self.finder.all(&structured(value), kind);
                let media = media.map_err(|cause| format!("the {name}: {cause}"))?;
                parts.extend(media.into_iter().map(part));
            }
        }
        Ok(parts)
    }

    fn parameters(
        &self,
        row: &Row,
        request: &Row,
        recorded: bool,
        tools: Option<&Value>,
    ) -> Result<Map<String, Value>, String> {
        let mut parameters = Map::new();
        let passes = |key: &str| {
            if recorded {
                !OWN.contains(&key)
            } else {
                PASSED.contains(&key) && request.contains_key("messages")
            }
        };
        for (key, value) in request.iter().filter(|(key, _)| passes(key)) {
            if recorded || !value.is_null() {
                parameters.insert(key.clone(), value.clone());
            }
        }
        if let Some(tools) = tools {
            parameters.insert("tools".to_owned(), tools.clone());
        }
        let own = self.config.columns.parameters.as_deref();
        match find(row, own, PARAMETERS).map(structured) {
            None => {}
            Some(Value::Object(own)) => parameters.extend(own),
            Some(other) => {
                return Err(format!("the parameters: expected an object, found `{other}`"));
            }
        }
        Ok(parameters)
    }

    /// Gives the prompt its form.
    fn shape(
        &self,
        draft: &mut Draft,
        row_prompt: RowPrompt,
        system: Option<String>,
        media: Vec<Part>,
        wants_chat: bool,
    ) -> Result<(), String> {
        let form = self.config.form;
        let wants_chat = form == Form::Chat || (form == Form::Auto && wants_chat);
        let mut only_user = false;
        let mut turns = match row_prompt {
            RowPrompt::Prompt(Prompt::Text(text)) if form == Form::Embedding => {
                draft.prompt = Prompt::Embedding(vec![text]);
                return Ok(());
            }
            RowPrompt::Prompt(Prompt::Text(text)) if wants_chat => vec![turn(text, None)],
            RowPrompt::Pair(text, answer) if wants_chat => vec![turn(text, Some(answer))],
            RowPrompt::Prompt(prompt) => {
                draft.prompt = prompt;
                return Ok(());
            }
            RowPrompt::Pair(text, answer) => {
                draft.prompt = Prompt::Text(text);
                draft.answer = Some(Message::text(Role::Assistant, answer));
                draft.pair = true;
                return Ok(());
            }
            RowPrompt::Turns(origin, turns) => {
                let first = turns.first().and_then(|turn| turn.messages.first());
                if draft.of_session.is_some()
                    && first.is_some_and(|message| message.role == Role::Assistant)
                {
                    return Err(
                        "its first message is an answer, so it continues a conversation, and this dataset sends each row \
                         as a whole prompt; read the file with --dataset-name conversation"
                            .to_owned(),
                    );
                }
                only_user = origin == Origin::User;
                let which = self.config.turns.unwrap_or(match origin {
                    Origin::Messages => Turns::Last,
                    Origin::User | Origin::ShareGpt => Turns::First,
                });
                match which {
                    Turns::First => turns.into_iter().take(1).collect(),
                    Turns::Last => vec![joined(turns)],
                    Turns::All => {
                        draft.session = true;
                        turns
                    }
                }
            }
        };
        let mut first = turns.remove(0);
        if let Some(system) = system
            && !first
                .messages
                .iter()
                .any(|message| matches!(message.role, Role::System | Role::Developer))
        {
            first.messages.insert(0, Message::text(Role::System, system));
        }
        let mut user = first.messages.iter_mut();
        match user.find(|message| message.role == Role::User) {
            Some(user) => user.parts.extend(media),
            None if media.is_empty() => {}
            None => {
                return Err("the row has media, but no user's message for them".to_owned());
            }
        }
        draft.answer = first.answer;
        draft.following = turns;
        let plain = match form {
            Form::Auto => only_user && !wants_chat && !draft.session,
            Form::Text => !draft.session,
            Form::Chat | Form::Embedding => false,
        };
        draft.prompt = match only_text(&first.messages) {
            Some(text) if plain => Prompt::Text(text.to_owned()),
            Some(text) if form == Form::Embedding => Prompt::Embedding(vec![text.to_owned()]),
            _ if matches!(form, Form::Text | Form::Embedding) => {
                return Err(
                    "`form` asks for text, and this is a conversation; leave `form` out, or name a column of text"
                        .to_owned(),
                );
            }
            _ => Prompt::Messages(first.messages),
        };
        Ok(())
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(texts) => {
            let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect()
        }
        _ => None,
    }
}

fn turn(text: String, answer: Option<String>) -> Turn {
    Turn {
        messages: vec![Message::text(Role::User, text)],
        answer: answer.map(|answer| Message::text(Role::Assistant, answer)),
    }
}

/// The text of a conversation that is one text of a user.
fn only_text(messages: &[Message]) -> Option<&str> {
    match messages {
        [Message { role: Role::User, parts, extra: None }] => match parts.as_slice() {
            [Part::Text(text)] => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The last turn, with everything before it.
fn joined(turns: Vec<Turn>) -> Turn {
    let mut messages = Vec::new();
    let mut answer: Option<Message> = None;
    for turn in turns {
        messages.extend(answer.take());
        messages.extend(turn.messages);
        answer = turn.answer;
    }
    Turn { messages, answer }
}
