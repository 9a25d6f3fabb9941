//! MMLU-Pro: the Parquet files of TIGER-Lab/MMLU-Pro, with `question_id`, `question`, `options`,
//! `answer`, `cot_content` and `category`.

use serde_json::json;

use super::{Facts, PLAIN, Question, Source};
use crate::QuestionText;
use crate::row::{Row, strip, unexpected};

const LETTERS: &str = "ABCDEFGHIJ";

/// `mmlu_pro_*`.
pub const FACTS: Facts = Facts {
    shots: 5,
    examples: Source::FirstOfSubject,
    subjects: true,
    stop: &["Question:"],
    output_tokens: Some(2048),
    ..PLAIN
};

fn text(row: &Row, options: &[String]) -> Result<String, String> {
    let mut text = format!("Question:\n{}\nOptions:\n", row.text("question")?);
    for (letter, option) in LETTERS.chars().zip(options) {
        text.push_str(&format!("{letter}. {}\n", strip(option)));
    }
    text.push_str("Answer: Let's think step by step.");
    Ok(text)
}

pub fn question(row: &Row) -> Result<Question, String> {
    let options = row.texts("options")?;
    if options.len() > LETTERS.len() {
        return Err(unexpected("options", "at most ten texts", &json!(options)));
    }
    let answer = row.value("answer")?;
    let right = answer.as_str().filter(|letter| {
        let letters = &LETTERS[..options.len()];
        letter.len() == 1 && letters.contains(letter)
    });
    let right = right.ok_or_else(|| unexpected("answer", "the letter of an option", answer))?;
    Ok(Question {
        id: row.label("question_id").ok(),
        description: Some(format!(
            "The following are multiple choice questions (with answers) about {}. Think step by step and then finish \
             your answer with \"the answer is (X)\" where X is the correct letter choice.\n",
            row.label("category")?
        )),
        wording: QuestionText { text: text(row, &options)?, ..QuestionText::default() },
        reference: Some(json!({"answer": right, "choices": options})),
        ..Question::default()
    })
}

/// A row of the validation split, whose reasoning is written out, as an example.
pub fn example(row: &Row) -> Result<QuestionText, String> {
    let reasoning = row.text("cot_content")?;
    Ok(QuestionText {
        text: text(row, &row.texts("options")?)?,
        begins: None,
        answer: Some(reasoning.replace("A: Let's think step by step. ", "")),
    })
}
