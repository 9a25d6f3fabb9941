//! The user's configuration, and its requests that cannot be met.

use runner_plugin::Error;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::task::{Source, Task};

const MOST_SHOTS: u32 = 100;

/// The user's configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The task: its files, the wording of questions, and the reference.
    pub task: Task,
    /// Examples before each question. Default: as many as the task has in lm-evaluation-harness.
    pub shots: Option<u32>,
    /// The form of prompts. Default: text, and turns for bfcl.
    pub form: Option<Form>,
    /// Ask about these subjects alone: of MMLU, such as `anatomy`; of MMLU-Pro its categories; of
    /// GPQA its subdomains; of LongBench its datasets; of BFCL its categories.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// Ask at most this many questions of each subject, or of the file if the task has no subjects.
    pub limit: Option<u32>,
    /// The order of questions.
    #[serde(default)]
    pub order: Order,
    /// Class of a sample.
    #[serde(default)]
    pub class: Class,
    /// The seed by which examples are drawn, if the task draws them: the fourth of the harness'
    /// `--seed`.
    #[serde(default = "examples_seed")]
    pub examples_seed: u64,
    /// The seed by which the choices of GPQA are put in order: the first of the harness' `--seed`.
    #[serde(default)]
    pub choices_seed: u64,
    /// Begin the answer if the task does, such as with `The best answer is`.
    #[serde(default = "yes")]
    pub begin_answer: bool,
    /// Send the task's stop texts with each request, as the field `stop`. They replace
    /// `request.stop`.
    #[serde(default = "yes")]
    pub stop: bool,
    /// Output tokens to request, instead of the task's.
    pub output_len: Option<u32>,
}

fn examples_seed() -> u64 {
    1234
}

fn yes() -> bool {
    true
}

/// The form of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One text, as the harness without a chat template.
    Text,
    /// A conversation in which each example is a turn, as the harness with `--apply_chat_template`.
    Turns,
    /// One user's message with the examples in it, as the harness with `--fewshot_as_multiturn
    /// False` in addition.
    Message,
}

/// The order of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As in the file.
    #[default]
    File,
    /// Shuffled by the seed, as Python's `random.shuffle` does. A question keeps its examples.
    Shuffled,
}

/// The class of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The subject.
    #[default]
    Subject,
    /// The group of the subject: of MMLU such as `stem`, of GPQA such as `Physics`, of LongBench
    /// such as `single`.
    Category,
}

impl Config {
    pub fn shots(&self) -> usize {
        let shots = self.shots.unwrap_or(self.task.facts().shots);
        usize::try_from(shots).unwrap_or(usize::MAX)
    }

    pub fn form(&self) -> Form {
        self.form.unwrap_or(match self.task {
            Task::Bfcl => Form::Turns,
            _ => Form::Text,
        })
    }

    /// The subject of rows that do not name theirs: the only requested one.
    pub fn only_subject(&self) -> Option<&str> {
        match &self.subjects[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    pub fn check(&self) -> Result<(), Error> {
        let mut wrong = Vec::new();
        let facts = self.task.facts();
        let name = self.task.name();
        let shots = self.shots();
        let most = match facts.examples {
            Source::None => 0,
            Source::Rows(ids) => ids.len(),
            _ => MOST_SHOTS as usize,
        };
        if shots > most {
            wrong.push(match most {
                0 => format!(
                    "key `shots`: expected 0 or none, because the task {name} has no examples, got {shots}"
                ),
                most => format!(
                    "key `shots`: expected at most {most} for the task {name}, got {shots}"
                ),
            });
        }
        if self.task == Task::Bfcl && self.form() == Form::Text {
            wrong.push(
                "key `form`: expected \"turns\" or none, because the questions of bfcl are conversations with tools, \
                 got \"text\""
                    .to_owned(),
            );
        }
        if !facts.subjects && !self.subjects.is_empty() {
            wrong.push(format!(
                "key `subjects`: expected none, because the task {name} has no subjects"
            ));
        }
        let known = self.task.known_subjects();
        for subject in &self.subjects {
            if !known.is_empty() && !known.contains(&subject.as_str()) {
                wrong.push(format!(
                    "key `subjects`: expected subjects of {name}, got `{subject}`; they are {}",
                    known.join(", ")
                ));
            }
        }
        if self.limit == Some(0) {
            wrong.push("key `limit`: expected at least 1, got 0".to_owned());
        }
        if self.output_len == Some(0) {
            wrong.push("key `output-len`: expected at least 1, got 0".to_owned());
        }
        if wrong.is_empty() { Ok(()) } else { Err(Error::InvalidConfig(wrong.join("; "))) }
    }
}
