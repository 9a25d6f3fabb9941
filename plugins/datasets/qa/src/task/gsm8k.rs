//! GSM8K: `test.jsonl` and `train.jsonl` of openai/grade-school-math, or the Parquet files of
//! openai/gsm8k, with `question` and `answer`.

use serde_json::Value;

use super::{Facts, Question, Source, Task};
use crate::QuestionText;
use crate::row::{Row, strip};

const FACTS: Facts = Facts {
    shots: 8,
    examples: Source::First,
    stop: &["Q:", "</s>", "<|im_end|>"],
    ..super::PLAIN
};

pub const PLAIN: Facts = Facts {
    shots: 5,
    examples: Source::Drawn,
    stop: &["Question:", "</s>", "<|im_end|>"],
    ..FACTS
};

pub const COT: Facts = FACTS;

pub const COT_LLAMA: Facts = Facts {
    delimiter: "",
    stop: &["<|eot_id|>", "<|start_header_id|>user<|end_header_id|>", "Q:", "</s>", "<|im_end|>"],
    ..FACTS
};

pub const COT_ZEROSHOT: Facts = Facts { shots: 0, examples: Source::None, ..FACTS };

fn text(task: Task, row: &Row) -> Result<String, String> {
    let question = row.text("question")?;
    Ok(match task {
        Task::Gsm8kCot => format!("Q: {question}\nA:"),
        Task::Gsm8kCotLlama => format!(
            "Given the following problem, reason and give a final answer to the problem.\nProblem: {question}\nYour \
             response should end with \"The final answer is [answer]\" where [answer] is the response to the problem.\n"
        ),
        Task::Gsm8kCotZeroshot => format!("Q: {question}\nA: Let's think step by step."),
        _ => format!("Question: {question}\nAnswer:"),
    })
}

/// The result, which follows the reasoning.
fn result(answer: &str) -> &str {
    strip(answer.rsplit("####").next().unwrap_or(answer))
}

pub fn question(task: Task, row: &Row) -> Result<Question, String> {
    let text = text(task, row)?;
    let answer = row.text("answer")?;
    let answer = match task {
        Task::Gsm8kCot | Task::Gsm8kCotLlama => result(answer),
        _ => answer,
    };
    Ok(Question {
        wording: QuestionText { text, ..QuestionText::default() },
        reference: Some(Value::from(answer)),
        ..Question::default()
    })
}

/// An example. Without reasoning in `target`, it shows only the result of `answer`, as the harness.
pub fn example(task: Task, row: &Row) -> Result<QuestionText, String> {
    let answer = match row.any("answer") {
        Some(_) => result(row.text("answer")?),
        None => row.text("target")?,
    };
    Ok(QuestionText { text: text(task, row)?, begins: None, answer: Some(answer.to_owned()) })
}
