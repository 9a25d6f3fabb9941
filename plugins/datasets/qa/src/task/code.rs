//! HumanEval: `HumanEval.jsonl.gz`, or the Parquet file of openai/openai_humaneval. MBPP:
//! `mbpp.jsonl`, `sanitized-mbpp.json`, or the Parquet files of google-research-datasets/mbpp.

use serde_json::{Value, json};

use super::{Facts, PLAIN, Question, Source, Task};
use crate::QuestionText;
use crate::row::{Row, unexpected};

/// `humaneval` and `humaneval_instruct`.
pub const HUMANEVAL: Facts = Facts {
    stop: &["\nclass", "\ndef", "\n#", "\nif", "\nprint"],
    output_tokens: Some(1024),
    ..PLAIN
};

pub const MBPP: Facts = Facts {
    shots: 3,
    examples: Source::Rows(&[2, 3, 4]),
    delimiter: "",
    stop: &["[DONE]"],
    ..PLAIN
};

/// `mbpp_instruct`.
pub const MBPP_INSTRUCT: Facts = Facts { stop: &[], ..MBPP };

/// The rows of MBPP that are its test split, by `task_id`.
const TEST_SPLIT: std::ops::RangeInclusive<u64> = 11..=510;

pub fn function(task: Task, row: &Row) -> Result<Question, String> {
    let prompt = row.text("prompt")?;
    let id = row.label("task_id")?;
    let wording = match task {
        Task::HumanevalInstruct => QuestionText {
            text: format!(
                "Write a solution to the following problem and make sure that it passes the tests:\n```python\n{prompt}\n```\n"
            ),
            begins: Some(format!("Here is the completed function:\n```python\n{prompt}\n")),
            answer: None,
        },
        _ => QuestionText { text: prompt.to_owned(), ..QuestionText::default() },
    };
    Ok(Question {
        wording,
        reference: Some(json!({
            "task_id": id,
            "prompt": prompt,
            "test": row.text("test")?,
            "entry_point": row.text("entry_point")?,
        })),
        id: Some(id),
        ..Question::default()
    })
}

fn number(row: &Row) -> Result<u64, String> {
    let value = row.value("task_id")?;
    value.as_u64().ok_or_else(|| unexpected("task_id", "a whole number", value))
}

pub fn is_of_test_split(row: &Row) -> Result<bool, String> {
    Ok(TEST_SPLIT.contains(&number(row)?))
}

/// Returns the text of a question of MBPP. The sanitized file calls the text `prompt`.
fn program_wording(task: Task, row: &Row) -> Result<QuestionText, String> {
    let text = match row.any("text") {
        None if row.any("prompt").is_some() => row.text("prompt")?,
        _ => row.text("text")?,
    };
    let tests = row.texts("test_list")?;
    let [first, second, third, ..] = &tests[..] else {
        return Err(unexpected("test_list", "at least three tests", &json!(tests)));
    };
    let tests = format!("{first}\n{second}\n{third}");
    Ok(match task {
        Task::MbppInstruct => QuestionText {
            text: format!(
                "You are an expert Python programmer, and here is your task:\n{text}\nYour code should pass these tests:\n{tests}"
            ),
            begins: Some("\n```python\n".to_owned()),
            answer: None,
        },
        _ => QuestionText {
            text: format!(
                "You are an expert Python programmer, and here is your task: {text} Your code should pass these \
                 tests:\n\n{tests}\n[BEGIN]\n"
            ),
            ..QuestionText::default()
        },
    })
}

pub fn program(task: Task, row: &Row) -> Result<Question, String> {
    let setup = match row.any("test_imports") {
        Some(_) => row.texts("test_imports")?.join("\n"),
        None => {
            let setup = row.any("test_setup_code").and_then(Value::as_str);
            setup.unwrap_or_default().to_owned()
        }
    };
    Ok(Question {
        id: Some(number(row)?.to_string()),
        wording: program_wording(task, row)?,
        reference: Some(json!({
            "task_id": row.value("task_id")?,
            "tests": row.texts("test_list")?,
            "setup": setup,
        })),
        ..Question::default()
    })
}

pub fn example(task: Task, row: &Row) -> Result<QuestionText, String> {
    let code = row.text("code")?;
    let ends = match task {
        Task::MbppInstruct => "```",
        _ => "[DONE]",
    };
    Ok(QuestionText { answer: Some(format!("{code}\n{ends}")), ..program_wording(task, row)? })
}
