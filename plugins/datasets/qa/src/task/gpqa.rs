//! GPQA: `gpqa_main.csv`, `gpqa_diamond.csv` or `gpqa_extended.csv`, as published.

use runner_plugin::random::Python;
use serde_json::{Value, json};

use super::{Facts, Question, Source, Task};
use crate::QuestionText;
use crate::row::{Row, strip};

/// `gpqa_*_generative_n_shot`.
pub const PLAIN: Facts = Facts {
    examples: Source::DrawnFromData,
    subjects: true,
    stop: &["</s>", "Question:", "<|im_end|>"],
    ..super::PLAIN
};

/// `gpqa_*_cot_n_shot`.
pub const COT: Facts = Facts { stop: &["</s>"], ..PLAIN };

/// `gpqa_*_cot_zeroshot`.
pub const COT_ZEROSHOT: Facts = Facts { examples: Source::None, ..COT };

const CHOICES: [&str; 4] =
    ["Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3", "Correct Answer"];

/// The column among them that is right.
const RIGHT: usize = 3;

/// The order of the choices of each row. The harness shuffles them row by row with one generator,
/// so a row's order depends on all rows before it.
#[derive(Debug, Default)]
pub struct Orders(Vec<[u8; 4]>);

impl Orders {
    pub fn draw(rows: usize, seed: u64) -> Self {
        let mut random = Python::new(seed);
        let orders = (0..rows).map(|_| {
            let mut order = [0, 1, 2, 3];
            random.shuffle(&mut order);
            order
        });
        Self(orders.collect())
    }

    pub fn order(&self, number: usize) -> [u8; 4] {
        self.0.get(number).copied().unwrap_or([0, 1, 2, 3])
    }
}

/// A choice as the harness cleans it. A missing choice is a space.
fn choice(row: &Row, name: &str) -> Result<String, String> {
    match row.any(name) {
        Some(_) => {
            let label = row.label(name)?;
            Ok(strip(&label).replace(" [title]", ". ").replace("  ", " "))
        }
        None if row.fields.contains_key(name) => Ok(" ".to_owned()),
        None => row.label(name),
    }
}

/// The choices in their order, and the letter of the right one: the first with its text.
fn choices(row: &Row, order: [u8; 4]) -> Result<(Vec<String>, String), String> {
    let choices = order.map(|at| choice(row, CHOICES[usize::from(at)]));
    let choices = choices.into_iter().collect::<Result<Vec<_>, _>>()?;
    let right = choice(row, CHOICES[RIGHT])?;
    let letters = choices.iter().zip(["(A)", "(B)", "(C)", "(D)"]);
    let letter = letters.filter(|(choice, _)| **choice == right).map(|(_, letter)| letter).next();
    Ok((choices, letter.unwrap_or("(A)").to_owned()))
}

/// The right choice, as `(A)`.
pub fn letter(row: &Row, order: [u8; 4]) -> Result<String, String> {
    choices(row, order).map(|(_, letter)| letter)
}

pub fn subject(row: &Row) -> Option<String> {
    row.any("Subdomain").and_then(Value::as_str).map(str::to_owned)
}

pub fn question(task: Task, row: &Row, order: [u8; 4]) -> Result<Question, String> {
    let question = row.text("Question")?;
    let (choices, letter) = choices(row, order)?;
    let begins = match task {
        Task::GpqaCotZeroshot => "What is the correct answer to this question:",
        _ => "Question: ",
    };
    let ends = match task {
        Task::Gpqa => "Answer:",
        _ => "Let's think step by step: ",
    };
    let mut text = format!("{begins}{question}\nChoices:\n");
    for (letter, choice) in ["(A)", "(B)", "(C)", "(D)"].iter().zip(&choices) {
        text.push_str(&format!("{letter} {choice}\n"));
    }
    text.push_str(ends);
    let description = "Here are some example questions from experts. Answer the final question yourself, following \
                       the format of the previous questions exactly.\n";
    let category = row.any("High-level domain").and_then(Value::as_str);
    Ok(Question {
        id: row.label("Record ID").ok(),
        category: category.map(str::to_owned),
        description: (task != Task::GpqaCotZeroshot).then(|| description.to_owned()),
        wording: QuestionText { text, ..QuestionText::default() },
        reference: Some(json!({"answer": letter, "choices": choices})),
        ..Question::default()
    })
}
