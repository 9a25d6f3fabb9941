//! Tools for APIs with another form than OpenAI's: the definitions that datasets put into a
//! sample's parameters, and the calls in a reply.
//!
//! Definitions have the form of OpenAI's API in every dataset, so a backend of another API writes
//! them anew. Calls in replies are passed on in that form too, because histories and scorers read
//! it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Body, Error, Meaning, Output, Prompt, Sample, Settings};

/// The tools of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Tools {
    /// The definitions.
    pub tools: Vec<Tool>,
    /// The choice between tools; absent if it is left to the server.
    pub choice: Option<Choice>,
}

/// The definition of a tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its action.
    pub description: Option<String>,
    /// A JSON Schema of its arguments.
    pub parameters: Option<Value>,
}

/// The choice between tools: if the model calls one, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As it likes.
    Auto,
    /// None.
    Never,
    /// At least one.
    Any,
    /// The tool of this name.
    Named(String),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Definition {
    Function { function: Tool },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Chosen {
    Word(String),
    Named { function: Named },
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Takes the tools out of a sample's parameters, if they have the form of OpenAI's API; the second
/// value is the rest. Tools in a server's own form stay where they are.
///
/// # Errors
/// [`Error::InvalidInput`] if the parameters are not a JSON object.
pub fn take(sample: &Sample) -> Result<(Option<Tools>, Option<String>), Error> {
    let Some(text) = &sample.parameters else { return Ok((None, None)) };
    let mut parameters: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        Error::InvalidInput(format!(
            "the parameters of sample {}: expected a JSON object: {error}",
            sample.id
        ))
    })?;
    let defined = parameters.get("tools").map(Vec::<Definition>::deserialize);
    let Some(Ok(defined)) = defined else { return Ok((None, Some(text.clone()))) };
    parameters.remove("tools");
    let choice = parameters.get("tool_choice").map(Chosen::deserialize);
    let choice = match choice {
        Some(Ok(Chosen::Named { function })) => Some(Choice::Named(function.name)),
        Some(Ok(Chosen::Word(word))) => match word.as_str() {
            "auto" => Some(Choice::Auto),
            "none" => Some(Choice::Never),
            "required" => Some(Choice::Any),
            _ => None,
        },
        _ => None,
    };
    if choice.is_some() {
        parameters.remove("tool_choice");
    }
    let tools = defined.into_iter().map(|Definition::Function { function }| function);
    let tools = Tools { tools: tools.collect(), choice };
    let rest = (!parameters.is_empty()).then(|| Value::Object(parameters).to_string());
    Ok((Some(tools), rest))
}

/// As [`Settings::lay_over`], with these parameters in place of the sample's.
///
/// # Errors
/// As there.
pub fn lay_over(
    settings: &Settings,
    body: &mut Body,
    sample: &Sample,
    parameters: Option<String>,
) -> Result<(), Error> {
    let sample = Sample { parameters, ..Sample::new(&*sample.id, Prompt::Text(String::new())) };
    settings.lay_over(body, &sample)
}

/// The first piece of a call. `index` tells the calls of a reply apart; `arguments` is the
/// beginning of their JSON text.
pub fn begun(index: u32, id: &str, name: &str, arguments: &str) -> Meaning {
    piece(&json!({
        "index": index,
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }))
}

/// A further piece of a call's arguments.
pub fn continued(index: u32, arguments: &str) -> Meaning {
    piece(&json!({"index": index, "function": {"arguments": arguments}}))
}

fn piece(call: &Value) -> Meaning {
    Meaning::ToolCall(Output::text(call.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(parameters: &str) -> (Option<Tools>, Option<String>) {
        let mut sample = Sample::new("1", Prompt::Text("a".to_owned()));
        sample.parameters = Some(parameters.to_owned());
        take(&sample).unwrap()
    }

    #[test]
    fn tools_are_taken_and_the_rest_stays() {
        let (tools, rest) = taken(
            r#"{"top_k":4,"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object"}}}],
                "tool_choice":{"type":"function","function":{"name":"ls"}}}"#,
        );
        let tools = tools.unwrap();
        assert_eq!(tools.tools[0].name, "ls");
        assert_eq!(tools.tools[0].parameters, Some(json!({"type": "object"})));
        assert_eq!(tools.choice, Some(Choice::Named("ls".to_owned())));
        assert_eq!(rest.as_deref(), Some(r#"{"top_k":4}"#));
        for (word, choice) in
            [("auto", Choice::Auto), ("none", Choice::Never), ("required", Choice::Any)]
        {
            let (tools, rest) = taken(&json!({"tools": [], "tool_choice": word}).to_string());
            assert_eq!(tools.unwrap().choice, Some(choice));
            assert_eq!(rest, None);
        }
    }

    #[test]
    fn tools_in_the_servers_own_form_stay() {
        let own = r#"{"tools":[{"name":"ls","input_schema":{}}],"tool_choice":{"type":"any"}}"#;
        assert_eq!(taken(own), (None, Some(own.to_owned())));
        let mut sample = Sample::new("7", Prompt::Text("a".to_owned()));
        sample.parameters = Some("[]".to_owned());
        assert!(
            matches!(take(&sample), Err(Error::InvalidInput(message)) if message.contains("sample 7"))
        );
    }
}
