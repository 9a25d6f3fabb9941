//! The tasks: the facts that all questions of a task share. The modules below word the questions.

mod arc;
mod bfcl;
mod code;
mod gpqa;
mod gsm8k;
mod ifeval;
mod longbench;
mod mmlu;
mod mmlu_pro;

use runner_plugin::Message;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::QuestionText;
use crate::row::Row;
use crate::table::Table;

pub use bfcl::Answers;
pub use gpqa::Orders;

/// A task, each with the name of the task of lm-evaluation-harness 0.4.13 that has the same
/// prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// GSM8K, as `gsm8k`: five examples drawn from the file `examples`.
    Gsm8k,
    /// GSM8K, as `gsm8k_cot`: the first eight examples of the file `examples`, with `question` and
    /// `target`.
    Gsm8kCot,
    /// GSM8K, as `gsm8k_cot_llama`: the same questions in another wording.
    Gsm8kCotLlama,
    /// GSM8K, as `gsm8k_cot_zeroshot`: without examples.
    Gsm8kCotZeroshot,
    /// MMLU, as `mmlu_*_generative`: the answer is a letter. Examples are the first of each subject
    /// in `examples`.
    Mmlu,
    /// MMLU, as `mmlu_*_flan_cot_zeroshot`: with reasoning, without examples.
    MmluCotZeroshot,
    /// MMLU-Pro, as `mmlu_pro_*`: the first five examples of the category in `examples`.
    MmluPro,
    /// GPQA, as `gpqa_*_generative_n_shot`: examples are drawn from the file `data`.
    Gpqa,
    /// GPQA, as `gpqa_*_cot_n_shot`: with reasoning.
    GpqaCot,
    /// GPQA, as `gpqa_*_cot_zeroshot`: with reasoning, without examples.
    GpqaCotZeroshot,
    /// ARC, easy or challenge, as `arc_challenge_chat`. Examples are drawn from the file
    /// `examples`.
    Arc,
    /// HumanEval, as `humaneval`: functions to complete.
    Humaneval,
    /// HumanEval, as `humaneval_instruct`.
    HumanevalInstruct,
    /// MBPP, as `mbpp`: the rows 11 to 510 of the file `data`, with three examples.
    Mbpp,
    /// MBPP, as `mbpp_instruct`.
    MbppInstruct,
    /// IFEval, as `ifeval`.
    Ifeval,
    /// LongBench, as `longbench_*`, by the column `dataset`.
    Longbench,
    /// The single-turn questions of the Berkeley Function Calling Leaderboard, as `bfcl-eval`
    /// 2026.3.23 asks OpenAI's models with function calling. The file `answers` has the right
    /// calls.
    Bfcl,
}

/// The source of examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    None,
    First,
    /// The first rows of the question's subject in the file `examples`.
    FirstOfSubject,
    /// Rows of the file `examples`, drawn for each question.
    Drawn,
    /// Other rows of the file `data`, drawn for each question.
    DrawnFromData,
    /// The rows of the file `examples`, or `data`, with these values in the column `task_id`.
    Rows(&'static [u64]),
}

/// Facts that are the same for all questions of a task.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Number of examples before a question if the user does not say.
    pub shots: u32,
    pub examples: Source,
    pub delimiter: &'static str,
    pub subjects: bool,
    pub stop: &'static [&'static str],
    /// Output tokens to request; none if the task does not say.
    pub output_tokens: Option<u32>,
}

/// A task without examples. Where a task does not say, the harness' models request 256 tokens.
const PLAIN: Facts = Facts {
    shots: 0,
    examples: Source::None,
    delimiter: " ",
    subjects: false,
    stop: &[],
    output_tokens: Some(256),
};

#[derive(Clone, Debug, Default)]
pub struct Question {
    pub id: Option<String>,
    pub subject: Option<String>,
    /// The group that the subject is in.
    pub category: Option<String>,
    pub description: Option<String>,
    pub wording: QuestionText,
    /// The messages of a question that is a conversation, in place of `wording`.
    pub messages: Vec<Message>,
    /// The tools that the model may call, in the form of OpenAI's API.
    pub tools: Option<Value>,
    /// The reference for a scorer, to compare the answer with.
    pub reference: Option<Value>,
    /// Texts that end an answer, beside the task's own.
    pub stop: &'static [&'static str],
    /// Output tokens to request, in place of the task's.
    pub output_tokens: Option<u32>,
}

/// Inputs of a question beside its row.
pub struct Context<'a> {
    /// The subject of rows that do not name theirs.
    pub subject: Option<&'a str>,
    /// The number of the row in its file, from 0.
    pub number: usize,
    pub orders: &'a Orders,
    pub answers: &'a Answers,
}

impl Task {
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// Returns the facts that are the same for all its questions.
    pub fn facts(self) -> Facts {
        self.entry().1
    }

    /// Its name in the configuration, and its facts.
    fn entry(self) -> (&'static str, Facts) {
        match self {
            Task::Gsm8k => ("gsm8k", gsm8k::PLAIN),
            Task::Gsm8kCot => ("gsm8k-cot", gsm8k::COT),
            Task::Gsm8kCotLlama => ("gsm8k-cot-llama", gsm8k::COT_LLAMA),
            Task::Gsm8kCotZeroshot => ("gsm8k-cot-zeroshot", gsm8k::COT_ZEROSHOT),
            Task::Mmlu => ("mmlu", mmlu::PLAIN),
            Task::MmluCotZeroshot => ("mmlu-cot-zeroshot", mmlu::COT_ZEROSHOT),
            Task::MmluPro => ("mmlu-pro", mmlu_pro::FACTS),
            Task::Gpqa => ("gpqa", gpqa::PLAIN),
            Task::GpqaCot => ("gpqa-cot", gpqa::COT),
            Task::GpqaCotZeroshot => ("gpqa-cot-zeroshot", gpqa::COT_ZEROSHOT),
            Task::Arc => ("arc", arc::FACTS),
            Task::Humaneval => ("humaneval", code::HUMANEVAL),
            Task::HumanevalInstruct => ("humaneval-instruct", code::HUMANEVAL),
            Task::Mbpp => ("mbpp", code::MBPP),
            Task::MbppInstruct => ("mbpp-instruct", code::MBPP_INSTRUCT),
            Task::Ifeval => ("ifeval", ifeval::FACTS),
            Task::Longbench => ("longbench", longbench::FACTS),
            Task::Bfcl => ("bfcl", bfcl::FACTS),
        }
    }

    /// The subjects that questions may have; none if the file says which there are.
    pub fn known_subjects(self) -> Vec<&'static str> {
        match self {
            Task::Mmlu | Task::MmluCotZeroshot => mmlu::subjects().collect(),
            _ => Vec::new(),
        }
    }

    /// The columns of a CSV file that does not name them.
    pub fn bare_columns(self) -> Option<&'static [&'static str]> {
        match self {
            Task::Mmlu | Task::MmluCotZeroshot => Some(mmlu::BARE),
            _ => None,
        }
    }

    pub fn asks(self, row: &Row) -> Result<bool, String> {
        match self {
            Task::Mbpp | Task::MbppInstruct => code::is_of_test_split(row),
            _ => Ok(true),
        }
    }

    /// The subject of a row; none if it has none.
    pub fn subject(self, row: &Row, only: Option<&str>) -> Result<Option<String>, String> {
        match self {
            Task::Mmlu | Task::MmluCotZeroshot => row.subject("subject", only, "anatomy").map(Some),
            Task::MmluPro => row.label("category").map(Some),
            Task::Gpqa | Task::GpqaCot | Task::GpqaCotZeroshot => Ok(gpqa::subject(row)),
            Task::Longbench => row.subject("dataset", only, "hotpotqa").map(Some),
            Task::Bfcl => bfcl::subject(row).map(Some),
            _ => Ok(None),
        }
    }

    pub fn question(self, row: &Row, of: &Context<'_>) -> Result<Question, String> {
        let mut question = match self {
            Task::Gsm8k | Task::Gsm8kCot | Task::Gsm8kCotLlama | Task::Gsm8kCotZeroshot => {
                gsm8k::question(self, row)?
            }
            Task::Mmlu | Task::MmluCotZeroshot => mmlu::question(self, row, of.subject)?,
            Task::MmluPro => mmlu_pro::question(row)?,
            Task::Gpqa | Task::GpqaCot | Task::GpqaCotZeroshot => {
                gpqa::question(self, row, of.orders.order(of.number))?
            }
            Task::Arc => arc::question(row)?,
            Task::Humaneval | Task::HumanevalInstruct => code::function(self, row)?,
            Task::Mbpp | Task::MbppInstruct => code::program(self, row)?,
            Task::Ifeval => ifeval::question(row)?,
            Task::Longbench => longbench::question(row, of.subject)?,
            Task::Bfcl => bfcl::question(row, of.answers)?,
        };
        question.subject = self.subject(row, of.subject)?;
        Ok(question)
    }

    pub fn example(self, row: &Row, of: &Context<'_>) -> Result<QuestionText, String> {
        match self {
            Task::Gsm8kCot | Task::Gsm8kCotLlama => gsm8k::example(self, row),
            Task::MmluPro => mmlu_pro::example(row),
            Task::Mbpp | Task::MbppInstruct => code::example(self, row),
            _ => {
                let question = self.question(row, of)?;
                let answer = match self {
                    Task::Gsm8k => row.text("answer")?.to_owned(),
                    Task::Mmlu => mmlu::letter(row)?.to_owned(),
                    Task::Gpqa | Task::GpqaCot => gpqa::letter(row, of.orders.order(of.number))?,
                    Task::Arc => arc::letter(row)?,
                    _ => return Err(format!("the task {} has no examples", self.name())),
                };
                Ok(QuestionText { answer: Some(answer), ..question.wording })
            }
        }
    }

    /// The orders of choices, if the task has them drawn.
    pub fn orders(self, data: &Table, seed: u64) -> Orders {
        match self {
            Task::Gpqa | Task::GpqaCot | Task::GpqaCotZeroshot => Orders::draw(data.len(), seed),
            _ => Orders::default(),
        }
    }
}
