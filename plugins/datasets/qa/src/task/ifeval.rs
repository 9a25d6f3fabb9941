//! IFEval: `input_data.jsonl` of google-research, or `ifeval_input_data.jsonl` of google/IFEval.

use serde_json::json;

use super::{Facts, PLAIN, Question};
use crate::QuestionText;
use crate::row::{Row, unexpected};

pub const FACTS: Facts = Facts { output_tokens: Some(1280), ..PLAIN };

pub fn question(row: &Row) -> Result<Question, String> {
    let prompt = row.text("prompt")?;
    let instructions = row.texts("instruction_id_list")?;
    let kwargs = row.value("kwargs")?;
    let count = kwargs.as_array().map(Vec::len);
    if count != Some(instructions.len()) {
        return Err(unexpected("kwargs", "a list with a table for each instruction", kwargs));
    }
    Ok(Question {
        id: Some(row.label("key")?),
        wording: QuestionText { text: prompt.to_owned(), ..QuestionText::default() },
        reference: Some(json!({
            "key": row.value("key")?,
            "prompt": prompt,
            "instruction_id_list": instructions,
            "kwargs": kwargs,
        })),
        ..Question::default()
    })
}
