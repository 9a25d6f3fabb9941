//! Conversations of files with a conversation, a turn or a message a line.

use dialogue::messages::{self, content, object, picture, role};
use dialogue::rows::{Rows, nanoseconds, parse, wrong};
use dialogue::turns::Splitter;
use dialogue::{FILE, MOST_TURNS};
use runner_plugin::{Error, Files, Message, Part, Role};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sharegpt_file::Utterance;

use crate::config::Format;
use crate::{Conversation, Source, sharegpt};

pub(crate) struct Lines {
    files: Box<dyn Files>,
    format: Format,
    rows: Rows,
    /// Spare conversations, the first of the file.
    left_out: u64,
    read: u64,
}

type Fields = Map<String, Value>;

impl Lines {
    pub(crate) fn open(files: Box<dyn Files>, format: Format) -> Result<Self, Error> {
        Ok(Self { rows: rows(&*files)?, files, format, left_out: 0, read: 0 })
    }

    fn read(&mut self) -> Result<Option<Conversation>, Error> {
        let Some((number, line)) = self.rows.line()? else { return Ok(None) };
        let wrong = |cause: String| wrong(number, &cause);
        let fields: Fields = parse(&line).map_err(wrong)?;
        if self.format == Format::Mlperf && is_about_the_file(&fields) {
            return self.read();
        }
        self.read += 1;
        let read = match self.format {
            Format::Sharegpt => of_sharegpt(fields),
            Format::Mlperf => return self.grouped("conversation_id", number, fields, mlperf),
            Format::Aiperf if !fields.contains_key("turns") => {
                return self.grouped("session_id", number, fields, aiperf_row);
            }
            Format::Aiperf => aiperf(fields),
            Format::Messages | Format::Synthetic => of_messages(fields),
        };
        let conversation = read.map_err(wrong)?;
        Ok(Some(Conversation { place: format!("line {number}"), ..conversation }))
    }

    /// A conversation of several lines, which are together and have the same `key`.
    fn grouped(
        &mut self,
        key: &str,
        first: u64,
        fields: Fields,
        read: fn(&mut Group, Fields) -> Result<(), String>,
    ) -> Result<Option<Conversation>, Error> {
        let mut group = Group::default();
        let (mut number, mut fields) = (first, fields);
        let name = named(&fields, key);
        loop {
            if name.is_none() && number == first && self.format == Format::Mlperf {
                return Err(wrong(number, &format!("`{key}` is missing")));
            }
            read(&mut group, fields).map_err(|cause| wrong(number, &cause))?;
            within(group.splitter.len()).map_err(|cause| wrong(number, &cause))?;
            // A turn without a name is a conversation of its own.
            if name.is_none() {
                break;
            }
            let Some((next, line)) = self.rows.line()? else { break };
            let following: Fields = parse(&line).map_err(|cause| wrong(next, &cause))?;
            if named(&following, key) != name || following.contains_key("turns") {
                self.rows.put_back(next, line);
                break;
            }
            (number, fields) = (next, following);
        }
        Ok(Some(Conversation { name, place: format!("line {first}"), ..group.finish() }))
    }
}

fn rows(files: &dyn Files) -> Result<Rows, Error> {
    Rows::open(files).ok_or_else(|| Error::InvalidConfig(format!("there is no file `{FILE}`")))
}

impl Source for Lines {
    fn next(&mut self) -> Result<Option<Conversation>, Error> {
        self.read()
    }

    /// The first of the file.
    fn spare(&mut self) -> Result<Option<Conversation>, Error> {
        let spare = self.read()?;
        self.left_out = self.read;
        Ok(spare)
    }

    fn rewind(&mut self) -> Result<(), Error> {
        self.rows = rows(&*self.files)?;
        self.read = 0;
        while self.read < self.left_out && self.read()?.is_some() {}
        Ok(())
    }
}

#[derive(Default)]
struct Group {
    splitter: Splitter,
    parameters: Fields,
    class: Option<String>,
    /// The time when the first turn arrives, in nanoseconds.
    arrival: Option<u64>,
    turn: Option<f64>,
    before: Vec<Value>,
    /// True if rows hold the whole conversation so far; not known before the second one.
    whole: Option<bool>,
    /// The system prompt, whichever row states it.
    system: Option<Message>,
}

impl Group {
    fn finish(self) -> Conversation {
        let mut turns = self.splitter.finish();
        if let Some(first) = turns.first_mut() {
            first.messages.splice(0..0, self.system);
        }
        Conversation {
            class: self.class,
            arrival: self.arrival,
            parameters: self.parameters,
            turns,
            ..Conversation::default()
        }
    }

    /// The new messages of a row: all, unless they begin with the previous row's messages.
    fn new_of(&mut self, messages: Vec<Value>) -> Result<Vec<Value>, String> {
        let known = self.before.len();
        if known == 0 {
            self.before.clone_from(&messages);
            return Ok(messages);
        }
        let begins = messages.len() > known && messages[..known] == self.before;
        if !*self.whole.get_or_insert(begins) {
            return Ok(messages);
        }
        if !begins {
            let cause = "`messages` do not begin with the previous row's, as in earlier rows of the session: give this \
                         row a `session_id` of its own";
            return Err(cause.to_owned());
        }
        let new = messages[known..].to_vec();
        self.before = messages;
        Ok(new)
    }

    /// Takes the fields that are sent with each request.
    fn take_parameters(&mut self, fields: &mut Fields) -> Result<(), String> {
        match fields.remove("tools") {
            None | Some(Value::Null) => {}
            Some(Value::Array(tools)) if tools.is_empty() => {}
            Some(tools @ Value::Array(_)) => {
                self.parameters.insert("tools".to_owned(), tools);
            }
            Some(_) => return Err("`tools`: expected a list of tools".to_owned()),
        }
        for key in ["tool_choice", "parallel_tool_calls"] {
            if let Some(value) = fields.remove(key).filter(|value| !value.is_null()) {
                self.parameters.insert(key.to_owned(), value);
            }
        }
        for key in ["class", "category"] {
            if let Some(Value::String(class)) = fields.remove(key) {
                self.class.get_or_insert(class);
            }
        }
        Ok(())
    }
}

/// True for a row of MLPerf's files that describes the file, and holds no message.
pub(crate) fn is_about_the_file(fields: &Fields) -> bool {
    fields.get("_type").is_some_and(|kind| kind == "dataset_metadata")
}

fn named(fields: &Fields, key: &str) -> Option<String> {
    match fields.get(key)? {
        Value::String(name) => Some(name.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn within(turns: usize) -> Result<(), String> {
    if turns <= MOST_TURNS {
        return Ok(());
    }
    Err(format!("the conversation has more than {MOST_TURNS} turns: cut it into several"))
}

/// Takes a field away; none if it is missing or `null`.
fn take<T>(fields: &mut Fields, key: &str, expected: &str) -> Result<Option<T>, String>
where
    T: DeserializeOwned,
{
    let value = fields.remove(key).unwrap_or_default();
    serde_json::from_value(value).map_err(|_| format!("`{key}`: expected {expected}"))
}

fn list(fields: &mut Fields, key: &str) -> Result<Option<Vec<Value>>, String> {
    take(fields, key, "a list")
}

fn number(fields: &mut Fields, key: &str) -> Result<Option<f64>, String> {
    take(fields, key, "a number")
}

fn text(fields: &mut Fields, key: &str) -> Result<Option<String>, String> {
    take(fields, key, "a text")
}

fn of_sharegpt(mut fields: Fields) -> Result<Conversation, String> {
    let list = fields
        .remove("conversations")
        .or_else(|| fields.remove("conversation"))
        .ok_or("`conversations` is missing")?;
    let utterances: Vec<Utterance> =
        serde_json::from_value(list).map_err(|error| format!("`conversations`: {error}"))?;
    let (turns, fault) = sharegpt::turns(utterances);
    Ok(Conversation { turns, fault, ..Conversation::default() })
}

fn of_messages(mut fields: Fields) -> Result<Conversation, String> {
    let names = ["id", "conversation_id", "session_id"];
    let name = names.iter().find_map(|key| named(&fields, key));
    let mut group = Group::default();
    let items = list(&mut fields, "messages")?.ok_or(
        "`messages` is missing; expected {\"messages\": [{\"role\": \"user\", \"content\": \"…\"}]}",
    )?;
    for message in messages::messages(items)? {
        group.splitter.push(message);
    }
    group.take_parameters(&mut fields)?;
    within(group.splitter.len())?;
    Ok(Conversation { name, ..group.finish() })
}

/// The fields of a row that are sent with its request: `to_endpoint_request` of MLCommons endpoints
/// (`openai/openai_msgspec_adapter.py`, line 158), but for `n` answers.
const SAMPLING: [&str; 12] = [
    "temperature",
    "seed",
    "top_p",
    "top_k",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "stop",
    "logit_bias",
    "user",
    "chat_template",
    "chat_template_kwargs",
];

/// A row of MLPerf's agentic benchmark. Each row of a user or of tools is a request.
///
/// The rules are `_build_conversation_metadata` of MLCommons endpoints
/// (`dataset_manager/agentic_inference_dataset.py`, line 111).
fn mlperf(group: &mut Group, mut fields: Fields) -> Result<(), String> {
    let turn = number(&mut fields, "turn")?.ok_or("`turn` is missing; expected a number")?;
    if let Some(before) = group.turn.filter(|before| turn <= *before) {
        return Err(format!(
            "`turn` is {turn} after {before}; expected the messages of a conversation in order"
        ));
    }
    group.turn = Some(turn);
    let author = role(&text(&mut fields, "role")?.ok_or("`role` is missing")?)?;
    if let Some(system) = text(&mut fields, "system")?.filter(|text| !text.is_empty()) {
        group.system.get_or_insert_with(|| Message::text(Role::System, system));
    }
    if let Some(seconds) = number(&mut fields, "delay_seconds")?
        && author != Role::Assistant
    {
        group.splitter.wait(nanoseconds("delay_seconds", seconds)?);
    }
    group.take_parameters(&mut fields)?;
    if author != Role::Assistant {
        let own = SAMPLING.iter().filter_map(|key| fields.remove_entry(*key));
        group.splitter.set(own.filter(|(_, value)| !value.is_null()).collect());
    }
    if let Some(results) = list(&mut fields, "tool_results")?.filter(|_| author == Role::Tool) {
        for (index, result) in results.into_iter().enumerate() {
            let message =
                tool_result(result).map_err(|cause| format!("`tool_results[{index}]`: {cause}"))?;
            group.splitter.push(message);
        }
        group.splitter.ask();
        return Ok(());
    }
    let reference = reference(&fields);
    let mut extra = Fields::new();
    for key in ["tool_calls", "tool_call_id", "reasoning_content", "name"] {
        if let Some(value) = fields.remove(key).filter(|value| !value.is_null()) {
            extra.insert(key.to_owned(), value);
        }
    }
    let parts = match fields.remove("content").filter(|content| !content.is_null()) {
        None => Vec::new(),
        found => content(found)?,
    };
    group.splitter.push(Message { role: author, parts, extra: object(extra) });
    if let Some(reference) = reference.filter(|_| author == Role::Assistant) {
        group.splitter.refer(reference);
    }
    group.splitter.ask();
    Ok(())
}

/// The part of a recorded answer that the scorer `mlperf-agentic` needs: intents in conversations
/// named `sim_` and a number, and calls of tools in others.
fn reference(fields: &Fields) -> Option<String> {
    let number = fields.get("conversation_id")?.as_str().and_then(|name| name.strip_prefix("sim_"));
    let is_workflow = number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    let key = if is_workflow { "intent_codes" } else { "tool_calls" };
    let found =
        fields.get(key).filter(|value| value.as_array().is_some_and(|list| !list.is_empty()));
    found.map(|value| json!({ key: value }).to_string())
}

/// A result of a tool: a text, or an object with `content` and `tool_call_id`.
fn tool_result(result: Value) -> Result<Message, String> {
    let mut fields = match result {
        Value::String(text) => return Ok(Message::text(Role::Tool, text)),
        Value::Object(fields) => fields,
        _ => return Err("expected {\"tool_call_id\": \"…\", \"content\": \"…\"}".to_owned()),
    };
    let answer = ["content", "output", "result"].iter().find_map(|key| fields.remove(*key));
    let parts = match answer {
        Some(value @ (Value::Object(_) | Value::Number(_) | Value::Bool(_))) => {
            vec![Part::Text(value.to_string())]
        }
        value => content(value)?,
    };
    if let Some(id) = fields.remove("id") {
        fields.entry("tool_call_id").or_insert(id);
    }
    fields.retain(|key, value| key == "tool_call_id" && !value.is_null());
    Ok(Message { role: Role::Tool, parts, extra: object(fields) })
}

/// A line of AIPerf's with all turns of a conversation.
fn aiperf(mut fields: Fields) -> Result<Conversation, String> {
    let name = named(&fields, "session_id");
    let turns = list(&mut fields, "turns")?.unwrap_or_default();
    within(turns.len())?;
    let mut group = Group::default();
    group.take_parameters(&mut fields)?;
    for (index, turn) in turns.into_iter().enumerate() {
        let Value::Object(turn) = turn else {
            return Err(format!("`turns[{index}]`: expected an object"));
        };
        aiperf_row(&mut group, turn).map_err(|cause| format!("`turns[{index}]`: {cause}"))?;
    }
    Ok(Conversation { name, ..group.finish() })
}

fn aiperf_row(group: &mut Group, mut fields: Fields) -> Result<(), String> {
    if let Some(milliseconds) = number(&mut fields, "delay")? {
        group.splitter.wait(nanoseconds("delay", milliseconds / 1e3)?);
    }
    if let Some(milliseconds) = number(&mut fields, "timestamp")?
        && group.splitter.is_empty()
    {
        if !(0.0..1e16).contains(&milliseconds) {
            return Err(format!("`timestamp` is {milliseconds}; expected milliseconds, 0 or more"));
        }
        // Kept exact to the microsecond, also in milliseconds since 1970.
        group.arrival = Some((milliseconds * 1e3).round() as u64 * 1000);
    }
    group.take_parameters(&mut fields)?;
    if let Some(items) = list(&mut fields, "messages")? {
        let new = group.new_of(items)?;
        for message in messages::messages(new)? {
            group.splitter.push(message);
        }
    } else if group.whole == Some(true) {
        return Err(
            "expected `messages` with the whole conversation so far, as in earlier rows of the session"
                .to_owned(),
        );
    } else {
        group.splitter.push(aiperf_message(&mut fields)?);
    }
    group.splitter.ask();
    let mut limit = None;
    for key in ["max_tokens", "output_length"] {
        let Some(tokens) = number(&mut fields, key)? else { continue };
        if !(1.0..=f64::from(u32::MAX)).contains(&tokens) {
            return Err(format!("`{key}` is {tokens}; expected at least 1"));
        }
        limit = Some(tokens as u32);
    }
    group.splitter.limit(limit);
    Ok(())
}

/// The message of a turn that has texts and pictures of its own.
fn aiperf_message(fields: &mut Fields) -> Result<Message, String> {
    let author = match text(fields, "role")? {
        Some(name) => role(&name)?,
        None => Role::User,
    };
    let mut parts = Vec::new();
    for key in ["text", "text_input"] {
        parts.extend(text(fields, key)?.map(Part::Text));
    }
    for each in list(fields, "texts")?.unwrap_or_default() {
        match each {
            Value::String(text) => parts.push(Part::Text(text)),
            Value::Object(mut named) => {
                for content in list(&mut named, "contents")?.unwrap_or_default() {
                    let Value::String(text) = content else {
                        return Err("`texts`: expected texts in `contents`".to_owned());
                    };
                    parts.push(Part::Text(text));
                }
            }
            _ => return Err("`texts`: expected texts".to_owned()),
        }
    }
    let mut pictures = list(fields, "images")?.unwrap_or_default();
    pictures.extend(fields.remove("image").filter(|image| !image.is_null()));
    for each in pictures {
        let Value::String(url) = each else {
            return Err("`images`: expected data URLs".to_owned());
        };
        parts.push(picture(&url).map_err(|cause| format!("`images`: {cause}"))?);
    }
    if parts.is_empty() {
        return Err(if fields.contains_key("input_length") {
            "`input_length` without a text is a row of a trace: use the trace dataset".to_owned()
        } else {
            "expected `text`, `texts` or `messages`".to_owned()
        });
    }
    Ok(Message { role: author, parts, extra: None })
}
