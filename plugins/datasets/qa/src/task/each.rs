//! The parts of each task's module: facts, subjects, questions and examples.

use super::bfcl::{self, Answers};
use super::gpqa::{self, Orders};
use super::{Facts, Question, Task, arc, code, gsm8k, ifeval, longbench, mmlu, mmlu_pro};
use crate::prompt::QuestionText;
use crate::row::Row;
use crate::table::Table;

/// Inputs of a question beside its row.
pub struct Context<'a> {
    /// The subject of rows that do not name theirs.
    pub subject: Option<&'a str>,
    /// The number of the row in its file, from 0.
    pub number: usize,
    /// The orders of the choices of GPQA.
    pub orders: &'a Orders,
    pub answers: &'a Answers,
}

impl Task {
    /// Returns the facts that are the same for all its questions.
    pub fn facts(self) -> Facts {
        match self {
            Task::Gsm8k => gsm8k::PLAIN,
            Task::Gsm8kCot => gsm8k::COT,
            Task::Gsm8kCotLlama => gsm8k::COT_LLAMA,
            Task::Gsm8kCotZeroshot => gsm8k::COT_ZEROSHOT,
            Task::Mmlu => mmlu::PLAIN,
            Task::MmluCotZeroshot => mmlu::COT_ZEROSHOT,
            Task::MmluPro => mmlu_pro::FACTS,
            Task::Gpqa => gpqa::PLAIN,
            Task::GpqaCot => gpqa::COT,
            Task::GpqaCotZeroshot => gpqa::COT_ZEROSHOT,
            Task::Arc => arc::FACTS,
            Task::Humaneval | Task::HumanevalInstruct => code::HUMANEVAL,
            Task::Mbpp => code::MBPP,
            Task::MbppInstruct => code::MBPP_INSTRUCT,
            Task::Ifeval => ifeval::FACTS,
            Task::Longbench => longbench::FACTS,
            Task::Bfcl => bfcl::FACTS,
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

    /// True if a row of the file `data` is one of its questions.
    ///
    /// # Errors
    /// If the row has a mistake.
    pub fn asks(self, row: &Row) -> Result<bool, String> {
        match self {
            Task::Mbpp | Task::MbppInstruct => code::is_of_test_split(row),
            _ => Ok(true),
        }
    }

    /// The subject of a row; none if it has none.
    ///
    /// # Errors
    /// The message, with the mistake in the row.
    pub fn subject(self, row: &Row, only: Option<&str>) -> Result<Option<String>, String> {
        match self {
            Task::Mmlu | Task::MmluCotZeroshot => mmlu::subject(row, only).map(Some),
            Task::MmluPro => row.label("category").map(Some),
            Task::Gpqa | Task::GpqaCot | Task::GpqaCotZeroshot => Ok(gpqa::subject(row)),
            Task::Longbench => longbench::subject(row, only).map(Some),
            Task::Bfcl => bfcl::subject(row).map(Some),
            _ => Ok(None),
        }
    }

    /// The question of a row.
    ///
    /// # Errors
    /// The message, with the mistake in the row.
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

    /// A row as an example.
    ///
    /// # Errors
    /// The message, with the mistake in the row.
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
