//! The tasks: the facts that all questions of a task share. The modules below word the questions,
//! and `each` has them by task.

mod arc;
mod bfcl;
mod code;
mod each;
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

use crate::prompt::QuestionText;

pub use bfcl::Answers;
pub use each::Context;
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
    /// There are none.
    None,
    /// The first rows of the file `examples`.
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
    /// The text between a question and its answer.
    pub delimiter: &'static str,
    /// True if questions have subjects.
    pub subjects: bool,
    /// Texts that end an answer.
    pub stop: &'static [&'static str],
    /// Output tokens to request; none if the task does not say.
    pub output_tokens: Option<u32>,
}

/// Output tokens that the harness' models request if a task does not say.
const USUAL: Option<u32> = Some(256);

/// A question of a task.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Its name in the file.
    pub id: Option<String>,
    pub subject: Option<String>,
    /// The group that the subject is in.
    pub category: Option<String>,
    /// The text before everything.
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

impl Task {
    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Task::Gsm8k => "gsm8k",
            Task::Gsm8kCot => "gsm8k-cot",
            Task::Gsm8kCotLlama => "gsm8k-cot-llama",
            Task::Gsm8kCotZeroshot => "gsm8k-cot-zeroshot",
            Task::Mmlu => "mmlu",
            Task::MmluCotZeroshot => "mmlu-cot-zeroshot",
            Task::MmluPro => "mmlu-pro",
            Task::Gpqa => "gpqa",
            Task::GpqaCot => "gpqa-cot",
            Task::GpqaCotZeroshot => "gpqa-cot-zeroshot",
            Task::Arc => "arc",
            Task::Humaneval => "humaneval",
            Task::HumanevalInstruct => "humaneval-instruct",
            Task::Mbpp => "mbpp",
            Task::MbppInstruct => "mbpp-instruct",
            Task::Ifeval => "ifeval",
            Task::Longbench => "longbench",
            Task::Bfcl => "bfcl",
        }
    }
}
