//! The single-turn categories of BFCL: `BFCL_v4_simple_python.json` and the like (JSON lines), with
//! the file of `possible_answer` that has the same name as `answers`. Messages and tools are as
//! `bfcl-eval` 2026.3.23 sends them to OpenAI's models with function calling (`bfcl_eval/utils.py`,
//! `bfcl_eval/model_handler/utils.py`).

use std::collections::HashMap;

use runner_plugin::{Error, Message, Role};
use serde_json::{Map, Value, json};

use super::{Facts, PLAIN, Question};
use crate::row::{Row, unexpected};
use crate::table::Table;

pub const FACTS: Facts = Facts { subjects: true, output_tokens: None, ..PLAIN };

#[derive(Default)]
pub struct Answers {
    table: Option<Table>,
    rows: HashMap<String, usize>,
}

impl Answers {
    pub fn open(table: Table) -> Result<Self, Error> {
        let mut rows = HashMap::new();
        for number in 0..table.len() {
            let row = table.row(number)?;
            let id = row.label("id").map_err(|cause| table.wrong(row.place, &cause))?;
            rows.insert(id, number);
        }
        Ok(Self { table: Some(table), rows })
    }

    /// The calls that answer a question.
    fn calls(&self, id: &str) -> Result<Value, String> {
        let Some(table) = &self.table else {
            return Err(
                "its answer is in a separate file: set `answers = \"FILE\"` under [dataset.files], the file of the same \
                 name in BFCL's folder `possible_answer`"
                    .to_owned(),
            );
        };
        let number = self
            .rows
            .get(id)
            .ok_or_else(|| format!("file `answers`: expected a row with the id `{id}`"))?;
        let row = table.row(*number).map_err(|error| match error {
            Error::InvalidInput(cause) => cause,
            other => format!("{other:?}"),
        })?;
        let truth = row.value("ground_truth");
        truth.cloned().map_err(|cause| format!("file `{}`, {}: {cause}", table.name(), row.place))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Java,
    JavaScript,
}

impl Language {
    fn from_category(category: &str) -> Self {
        match category {
            category if category.contains("javascript") => Language::JavaScript,
            category if category.contains("java") => Language::Java,
            _ => Language::Python,
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Language::Python => " Note that the provided function is in Python 3 syntax.",
            Language::Java => " Note that the provided function is in Java 8 SDK syntax.",
            Language::JavaScript => " Note that the provided function is in JavaScript syntax.",
        }
    }
}

/// Categories whose questions need tools that run.
const MANY_TURNS: [&str; 3] = ["multi_turn", "web_search", "memory"];

/// The category: the part of the name before the last `_`.
pub fn subject(row: &Row) -> Result<String, String> {
    let id = row.label("id")?;
    let category = id.rsplit_once('_').map(|(category, _)| category.to_owned());
    category.ok_or_else(|| unexpected("id", "a category, `_` and a number", &Value::from(id)))
}

pub fn question(row: &Row, answers: &Answers) -> Result<Question, String> {
    let id = row.label("id")?;
    let category = subject(row)?;
    if MANY_TURNS.iter().any(|many| category.contains(many)) {
        return Err(format!(
            "the category {category} needs tools that run; use the files of the single-turn \
             categories"
        ));
    }
    let language = Language::from_category(&category);
    let functions = row.value("function")?;
    let reference = match () {
        // Any call is right, which no scorer judges.
        () if category.contains("relevance") && !category.contains("irrelevance") => None,
        // The scorer `tool-call` has the rules for Python alone.
        () if language != Language::Python => None,
        () if category.contains("irrelevance") => {
            Some(json!({"function": functions, "ground_truth": []}))
        }
        () => Some(json!({"function": functions, "ground_truth": answers.calls(&id)?})),
    };
    let listed = functions.as_array();
    let listed = listed.ok_or_else(|| unexpected("function", "a list of functions", functions))?;
    let tools = listed.iter().map(|function| tool(function, language));
    let tools = tools.collect::<Option<Vec<_>>>();
    let tools = tools.ok_or_else(|| {
        unexpected(
            "function",
            "functions with `name`, `description` and `parameters.properties`",
            functions,
        )
    })?;
    Ok(Question {
        id: Some(id),
        category: Some(if category.starts_with("live") { "live" } else { "non_live" }.to_owned()),
        messages: messages(row)?,
        tools: (!tools.is_empty()).then_some(Value::Array(tools)),
        reference,
        ..Question::default()
    })
}

fn messages(row: &Row) -> Result<Vec<Message>, String> {
    let value = row.value("question")?;
    let message = |message: &Value| {
        let role = match message.get("role")?.as_str()? {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return None,
        };
        Some(Message::text(role, message.get("content")?.as_str()?))
    };
    let turns = value.as_array().map(Vec::as_slice);
    let messages = match turns {
        Some([turn]) => turn.as_array().and_then(|turn| turn.iter().map(message).collect()),
        _ => None,
    };
    let messages: Option<Vec<Message>> = messages;
    let messages = messages.filter(|messages| !messages.is_empty());
    messages.ok_or_else(|| {
        unexpected("question", "one turn, a list of messages with `role` and `content`", value)
    })
}

/// A function as a tool of OpenAI's API.
fn tool(function: &Value, language: Language) -> Option<Value> {
    let mut function = function.as_object()?.clone();
    let name = function.get("name")?.as_str()?.replace('.', "_");
    function.insert("name".to_owned(), name.into());
    describe(&mut function, language.hint())?;
    let parameters = function.get_mut("parameters")?.as_object_mut()?;
    parameters.insert("type".to_owned(), "object".into());
    let properties = parameters.get_mut("properties")?.as_object_mut()?;
    if language != Language::Python {
        for value in properties.values_mut() {
            as_texts(value.as_object_mut()?, language)?;
        }
    }
    cast(properties)?;
    Some(json!({"type": "function", "function": function}))
}

fn describe(of: &mut Map<String, Value>, sentence: &str) -> Option<()> {
    let before = of.get("description").map_or(Some(""), Value::as_str)?;
    let after = format!("{before}{sentence}");
    of.insert("description".to_owned(), after.into());
    Some(())
}

/// A parameter of a language other than Python: its value is a text of that language.
fn as_texts(value: &mut Map<String, Value>, language: Language) -> Option<()> {
    let of = match language {
        Language::Java => "Java",
        _ => "JavaScript",
    };
    let kind = value.get("type")?.as_str()?.to_owned();
    let sentence = match kind.as_str() {
        "any" => {
            format!(" This parameter can be of any type of {of} object in string representation.")
        }
        kind => format!(" This is {of} {kind} type parameter in string representation."),
    };
    describe(value, &sentence)?;
    let lists: &[&str] = match language {
        Language::Java => &["ArrayList", "Array"],
        _ => &["array"],
    };
    if lists.contains(&kind.as_str()) {
        let items = value.get("items")?.get("type")?.as_str()?;
        let sentence = format!(
            " The list elements are of type {items}; they are not in string representation."
        );
        describe(value, &sentence)?;
        value.shift_remove("items");
    }
    if language == Language::JavaScript && kind == "dict" && value.contains_key("properties") {
        let properties = value.shift_remove("properties")?;
        let sentence = format!(
            " The dictionary entries have the following schema; they are not in string representation. {}",
            dumps(&properties)
        );
        describe(value, &sentence)?;
    }
    value.insert("type".to_owned(), "string".into());
    Some(())
}

/// A value as Python's `json.dumps` writes it.
fn dumps(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(dumps).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                format!("{}: {}", dumps(&Value::from(key.as_str())), dumps(value))
            };
            let fields: Vec<_> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::String(_) => {
            let mut ascii = String::new();
            for c in value.to_string().chars() {
                match c {
                    ' '..='~' => ascii.push(c),
                    _ => {
                        let units = &mut [0; 2];
                        for unit in c.encode_utf16(units) {
                            ascii.push_str(&format!("\\u{unit:04x}"));
                        }
                    }
                }
            }
            ascii
        }
        other => other.to_string(),
    }
}

/// JSON Schema's name of one of BFCL's types.
fn mapped(kind: &str) -> &'static str {
    match kind {
        "integer" | "byte" | "short" | "long" | "Bigint" => "integer",
        "number" | "float" | "double" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" | "tuple" | "ArrayList" | "Array" | "Queue" | "Stack" => "array",
        "dict" | "object" | "HashMap" | "Hashtable" => "object",
        _ => "string",
    }
}

/// Gives parameters the types of JSON Schema.
fn cast(properties: &mut Map<String, Value>) -> Option<()> {
    for value in properties.values_mut() {
        let value = value.as_object_mut()?;
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("string").to_owned();
        if kind == "float" {
            value.insert("format".to_owned(), "float".into());
            describe(value, " This is a float type value.")?;
        }
        let kind = mapped(&kind);
        value.insert("type".to_owned(), kind.into());
        if !matches!(kind, "array" | "object") {
            continue;
        }
        if let Some(properties) = value.get_mut("properties") {
            cast(properties.as_object_mut()?)?;
        } else if let Some(items) = value.get_mut("items") {
            let items = items.as_object_mut()?;
            let kind = items.get("type")?.as_str().map(mapped)?;
            items.insert("type".to_owned(), kind.into());
            if kind == "array"
                && let Some(inner) = items.get_mut("items")
            {
                let inner = inner.as_object_mut()?;
                let kind = inner.get("type")?.as_str().map(mapped)?;
                inner.insert("type".to_owned(), kind.into());
            } else if kind == "object"
                && let Some(properties) = items.get_mut("properties")
            {
                cast(properties.as_object_mut()?)?;
            }
        }
    }
    Some(())
}
