//! ARC: `ARC-Challenge-Test.jsonl` and the like, or the Parquet files of allenai/ai2_arc.

use serde_json::{Value, json};

use super::{Facts, PLAIN, Question, Source};
use crate::QuestionText;
use crate::row::{Row, strip, texts, unexpected};

pub const FACTS: Facts =
    Facts { examples: Source::Drawn, stop: &["\n\n", "."], output_tokens: Some(100), ..PLAIN };

/// The question and its choices, at least three.
fn parts(row: &Row) -> Result<(&str, Vec<String>), String> {
    let value = row.value("question")?;
    // The authors' files have the choices within the question, and a table for each.
    let (question, choices) = match value.as_str() {
        Some(question) => {
            let choices = row.value("choices")?;
            (question, choices.get("text").and_then(texts))
        }
        None => {
            let stem = value.get("stem").and_then(Value::as_str);
            let stem = stem
                .ok_or_else(|| unexpected("question", "a text, or a table with `stem`", value))?;
            let text = |choice: &Value| choice.get("text")?.as_str().map(str::to_owned);
            let choices = value.get("choices").and_then(Value::as_array);
            (stem, choices.and_then(|choices| choices.iter().map(text).collect()))
        }
    };
    match choices {
        Some(choices) if choices.len() >= 3 => Ok((question, choices)),
        _ => {
            let (name, found) = match row.fields.get("choices") {
                Some(choices) => ("choices", choices),
                None => ("question", value),
            };
            Err(unexpected(name, "at least three choices, each with `text`", found))
        }
    }
}

/// The letter of the right choice; the file may have its number.
pub fn letter(row: &Row) -> Result<String, String> {
    let key = row.label("answerKey")?;
    Ok(match key.as_str() {
        "1" => "A".to_owned(),
        "2" => "B".to_owned(),
        "3" => "C".to_owned(),
        "4" => "D".to_owned(),
        _ => key,
    })
}

pub fn question(row: &Row) -> Result<Question, String> {
    let (question, choices) = parts(row)?;
    // The harness writes the task between single quotation marks: two characters for a line's end.
    let mut text = format!(
        "Given the following question and four candidate answers (A, B, C and D), choose the best answer.\\nQuestion: {}",
        strip(question)
    );
    for (letter, choice) in "ABCD".chars().zip(&choices) {
        text.push_str(&format!("\\n{letter}. {choice}"));
    }
    text.push_str(
        "\\nYour response should end with \"The best answer is [the_answer_letter]\" where the [the_answer_letter] is one \
         of A, B, C or D.",
    );
    Ok(Question {
        id: row.label("id").ok(),
        wording: QuestionText { text, begins: Some("The best answer is".to_owned()), answer: None },
        reference: Some(json!({"answer": letter(row)?, "choices": choices})),
        ..Question::default()
    })
}
