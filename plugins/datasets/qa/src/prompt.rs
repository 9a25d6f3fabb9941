//! A question and its examples as a prompt, in the three forms that lm-evaluation-harness 0.4.13
//! has (`ConfigurableTask.fewshot_context` and `build_qa_turn` of `lm_eval/api/task.py`,
//! `lm_eval/api/utils.py`).

use runner_plugin::{Message, Prompt, Role};

use crate::config::Form;
use crate::row::is_space;

const BETWEEN: &str = "\n\n";

/// The text of a question, with or without its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionText {
    pub text: String,
    /// The way its answer begins.
    pub begins: Option<String>,
    /// The answer, of an example.
    pub answer: Option<String>,
}

/// A message, and the text that follows it where messages become one text.
struct Line {
    role: Role,
    text: String,
    then: String,
}

/// The prompt of a question.
///
/// `description` comes before everything, `delimiter` between a question and its successor.
pub fn prompt(
    form: Form,
    description: Option<&str>,
    delimiter: &str,
    examples: &[QuestionText],
    question: &QuestionText,
) -> Prompt {
    let mut lines = Vec::new();
    for wording in examples.iter().chain([question]) {
        lines.extend(turn(wording, delimiter));
    }
    let description = description.filter(|text| !text.is_empty());
    let message = |role, text: String| Message::text(role, text);
    let system = description.map(|text| message(Role::System, text.to_owned()));
    let messages = match form {
        Form::Text => {
            let mut whole = description.unwrap_or_default().to_owned();
            whole.push_str(&joined(&lines));
            return Prompt::Text(whole);
        }
        Form::Turns => lines.into_iter().map(|line| message(line.role, line.text)).collect(),
        Form::Message => {
            let begun = lines.pop_if(|last| last.role == Role::Assistant);
            if let Some(last) = lines.last_mut() {
                last.then.clear();
            }
            let begun = begun.map(|line| message(line.role, line.text));
            let whole = message(Role::User, joined(&lines));
            [whole].into_iter().chain(begun).collect::<Vec<_>>()
        }
    };
    Prompt::Messages(system.into_iter().chain(messages).collect())
}

fn joined(lines: &[Line]) -> String {
    let pieces = lines.iter().flat_map(|line| [line.text.as_str(), line.then.as_str()]);
    pieces.collect()
}

fn turn(wording: &QuestionText, delimiter: &str) -> Vec<Line> {
    let answer = wording.answer.as_deref().filter(|answer| !answer.is_empty());
    let begins = wording.begins.as_deref().filter(|begins| !begins.is_empty());
    let delimited = match (answer, begins) {
        (Some(_), None) => true,
        (_, Some(begins)) => !wording.text.is_empty() && are_close(&wording.text, begins),
        (None, None) => false,
    };
    let mut lines = vec![Line {
        role: Role::User,
        text: wording.text.clone(),
        then: if delimited { delimiter.to_owned() } else { String::new() },
    }];
    let then = if answer.is_some() { BETWEEN } else { "" };
    let text = match (begins, answer) {
        (Some(begins), Some(answer)) if are_close(begins, answer) => format!("{begins} {answer}"),
        (begins, answer) => [begins, answer].into_iter().flatten().collect(),
    };
    if !text.is_empty() {
        lines.push(Line { role: Role::Assistant, text, then: then.to_owned() });
    }
    lines
}

fn are_close(before: &str, after: &str) -> bool {
    !before.ends_with(is_space) && !after.starts_with(is_space)
}
