//! The questions of published benchmarks, with examples before them, and the references that
//! scorers compare answers with: GSM8K, MMLU, MMLU-Pro, GPQA, ARC, HumanEval, MBPP, IFEval and
//! LongBench, worded as EleutherAI's lm-evaluation-harness 0.4.13 words them, and BFCL as
//! `bfcl-eval` 2026.3.23 asks them. Files have the form that their authors publish. Multiple choice
//! is generative: a scorer takes the letter from the answer's text.
//!
//! This module orders questions and makes samples of them. `table` reads rows, `task` words them,
//! `examples` chooses the examples before them, `prompt` puts both together.
#![deny(unsafe_code)]

mod examples;
mod row;
mod table;
mod task;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use runner_plugin::random::Python;
use runner_plugin::requests::{fill, fingerprint};
use runner_plugin::{
    Amount, Dataset, Error, Inputs, Message, Part, Prompt, Role, Sample, Tokenizer,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use examples::Examples;
use row::is_space;
use table::Table;
use task::{Answers, Context, Orders, Question, Source, Task};

/// The scenario's names for the files of questions and of BFCL's answers.
const DATA: &str = "data";
const ANSWERS: &str = "answers";

pub struct Qa {
    config: Config,
    data: Table,
    examples: Examples,
    orders: Orders,
    answers: Answers,
    tokenizer: Box<dyn Tokenizer>,
    /// The numbers of rows in the order of questions, and the place of the next row.
    order: Vec<u32>,
    at: usize,
    /// Number of questions of each subject so far, if limited.
    counts: HashMap<String, u32>,
    names: HashSet<u64>,
    /// Number of samples for requests that are not measured, and the next row for these.
    spared: u64,
    spare_at: usize,
}

runner_plugin::export_dataset!(Qa);

impl Dataset for Qa {
    type Config = Config;

    fn open(config: Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        config.check()?;
        let task = config.task;
        let files = &*inputs.files;
        let Some(data) = Table::open(files, DATA, task.bare_columns())? else {
            return Err(Error::InvalidConfig(format!(
                "no file of questions: pass --dataset-path FILE, or set `{DATA} = \"FILE\"` under [dataset.files]"
            )));
        };
        let answers = match task {
            Task::Bfcl => Table::open(files, ANSWERS, None)?.map(Answers::open).transpose()?,
            _ => None,
        };
        let answers = answers.unwrap_or_default();
        let orders = task.orders(&data, config.choices_seed);
        let of = Context {
            subject: config.only_subject(),
            number: 0,
            orders: &orders,
            answers: &answers,
        };
        let examples = Examples::open(&config, files, &data, &of)?;
        let mut order = chosen(&config, &data)?;
        if config.order == Order::Shuffled {
            Python::new(seed).shuffle(&mut order);
        }
        Ok(Self {
            config,
            data,
            examples,
            orders,
            answers,
            tokenizer: inputs.tokenizer,
            order,
            at: 0,
            counts: HashMap::new(),
            names: HashSet::new(),
            spared: 0,
            spare_at: 0,
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = fill(limit, || {
            while let Some(number) = self.order.get(self.at).copied() {
                self.at += 1;
                let number = number as usize;
                if let Some(question) = self.question(number)?
                    && self.is_within_limit(&question)
                {
                    let id = self.name(number, &question)?;
                    return self.sample(number, id, question).map(Some);
                }
            }
            Ok(None)
        })?;
        if samples.is_empty() && self.names.is_empty() {
            return Err(Error::InvalidInput(format!(
                "file `{DATA}`: no row is a question of the task {}{}",
                self.config.task.name(),
                match self.config.task {
                    Task::Mbpp | Task::MbppInstruct => ", whose `task_id` is from 11 to 510",
                    _ => "",
                }
            )));
        }
        self.count(&mut samples);
        Ok(samples)
    }

    /// The same questions with a number before them. So no question is lost to requests that are
    /// not measured, and no cache knows the beginning of a measured one.
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = fill(limit, || {
            for _ in 0..self.order.len() {
                let number = self.order[self.spare_at] as usize;
                self.spare_at = (self.spare_at + 1) % self.order.len();
                if let Some(question) = self.question(number)? {
                    self.spared += 1;
                    let id = format!("qa-spare-{:06}", self.spared);
                    let mut sample = self.sample(number, id, question)?;
                    begin_with(&mut sample.prompt, &format!("Warm-up {}.\n\n", self.spared));
                    sample.reference = None;
                    return Ok(Some(sample));
                }
            }
            Ok(None)
        })?;
        self.count(&mut samples);
        Ok(samples)
    }
}

impl Qa {
    /// The question of a row; none if the row is not one.
    fn question(&self, number: usize) -> Result<Option<Question>, Error> {
        let row = self.data.row(number)?;
        let of = Context {
            subject: self.config.only_subject(),
            number,
            orders: &self.orders,
            answers: &self.answers,
        };
        let task = self.config.task;
        let question = task
            .asks(&row)
            .and_then(|asks| if asks { task.question(&row, &of).map(Some) } else { Ok(None) });
        question.map_err(|message| self.data.wrong(row.place, &message))
    }

    /// True if there may be one more question of this subject; counts it.
    fn is_within_limit(&mut self, question: &Question) -> bool {
        let Some(limit) = self.config.limit else { return true };
        let subject = question.subject.clone().unwrap_or_default();
        let count = self.counts.entry(subject).or_default();
        *count += 1;
        *count <= limit
    }

    /// A name that no other question has.
    fn name(&mut self, number: usize, question: &Question) -> Result<String, Error> {
        let task = self.config.task.name();
        let id = question.id.clone();
        let id = id.unwrap_or_else(|| format!("{task}-{:06}", number + 1));
        if !self.names.insert(fingerprint(&id)) {
            let place = self.data.row(number)?.place;
            return Err(self.data.wrong(
                place,
                &format!("the name `{id}` belongs to an earlier question; expected a unique name"),
            ));
        }
        Ok(id)
    }

    fn sample(
        &mut self,
        number: usize,
        id: String,
        mut question: Question,
    ) -> Result<Sample, Error> {
        let config = &self.config;
        let facts = config.task.facts();
        let of = Context {
            subject: config.only_subject(),
            number,
            orders: &self.orders,
            answers: &self.answers,
        };
        let subject = question.subject.as_deref();
        let examples = self.examples.for_question(config, &self.data, subject, &of)?;
        if !config.begin_answer {
            question.wording.begins = None;
        }
        let mut parameters = Map::new();
        let stop: Vec<_> = facts.stop.iter().chain(question.stop).collect();
        if config.stop && !stop.is_empty() {
            parameters.insert("stop".to_owned(), json!(stop));
        }
        if let Some(tools) = question.tools.take() {
            parameters.insert("tools".to_owned(), tools);
        }
        let form = config.form();
        if question.wording.begins.is_some() && form != Form::Text {
            // As vLLM and SGLang call it: the answer continues the last message.
            parameters.insert("add_generation_prompt".to_owned(), false.into());
            parameters.insert("continue_final_message".to_owned(), true.into());
        }
        let prompt = if question.messages.is_empty() {
            let description = question.description.as_deref();
            prompt(form, description, facts.delimiter, &examples, &question.wording)
        } else {
            Prompt::Messages(question.messages)
        };
        let output_tokens = config.output_len.or(question.output_tokens);
        Ok(Sample {
            output_tokens: output_tokens.or(facts.output_tokens),
            reference: question.reference.as_ref().map(Value::to_string),
            class: match config.class {
                Class::Subject => question.subject,
                Class::Category => question.category,
            },
            parameters: (!parameters.is_empty()).then(|| Value::Object(parameters).to_string()),
            ..Sample::new(id, prompt)
        })
    }

    /// Counts the tokens of prompts, of texts in one call of the host.
    fn count(&self, samples: &mut [Sample]) {
        let text = |sample: &Sample| match &sample.prompt {
            Prompt::Text(text) => Some(text.clone()),
            _ => None,
        };
        let texts: Vec<_> = samples.iter().filter_map(text).collect();
        let mut counts = self.tokenizer.count(&texts, true).into_iter();
        for sample in samples {
            sample.input_tokens = match &sample.prompt {
                Prompt::Text(_) => counts.next(),
                // The template's beginning of an answer would be counted where one has begun.
                Prompt::Messages(messages)
                    if messages
                        .last()
                        .is_some_and(|last| last.role != runner_plugin::Role::Assistant) =>
                {
                    let parameters =
                        sample.parameters.as_deref().map(serde_json::from_str::<Value>);
                    let parameters = parameters.and_then(Result::ok);
                    let tools = parameters.and_then(|own| Some(own.get("tools")?.to_string()));
                    let conversation = std::slice::from_ref(messages);
                    let counted = self.tokenizer.count_chat(conversation, tools.as_deref());
                    counted.into_iter().next().flatten()
                }
                _ => None,
            };
        }
    }
}

/// The numbers of the rows to ask: of the subjects that the user names, or all.
fn chosen(config: &Config, data: &Table) -> Result<Vec<u32>, Error> {
    let all = 0..u32::try_from(data.len()).unwrap_or(u32::MAX);
    if config.subjects.is_empty() {
        return Ok(all.collect());
    }
    let (mut chosen, mut found) = (Vec::new(), BTreeSet::new());
    for number in all {
        let row = data.row(number as usize)?;
        let subject = config.task.subject(&row, config.only_subject());
        let subject = subject.map_err(|message| data.wrong(row.place, &message))?;
        let Some(subject) = subject else { continue };
        if config.subjects.contains(&subject) {
            chosen.push(number);
        }
        found.insert(subject);
    }
    match config.subjects.iter().find(|subject| !found.contains(*subject)) {
        None => Ok(chosen),
        Some(missing) => {
            let found: Vec<_> = found.iter().take(60).map(String::as_str).collect();
            Err(Error::InvalidConfig(format!(
                "key `subjects`: no row of the file `{DATA}` is of the subject `{missing}`; it has {}",
                if found.is_empty() { "no subjects".to_owned() } else { found.join(", ") }
            )))
        }
    }
}

fn begin_with(prompt: &mut Prompt, text: &str) {
    match prompt {
        Prompt::Text(own) => own.insert_str(0, text),
        Prompt::Messages(messages) => {
            let first = messages.first_mut().and_then(|message| message.parts.first_mut());
            if let Some(Part::Text(own)) = first {
                own.insert_str(0, text);
            }
        }
        _ => {}
    }
}

// A question and its examples as a prompt, in the three forms that lm-evaluation-harness 0.4.13
// has (`ConfigurableTask.fewshot_context` and `build_qa_turn` of `lm_eval/api/task.py`,
// `lm_eval/api/utils.py`).

const BETWEEN: &str = "\n\n";

/// The text of a question, with or without its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionText {
    pub text: String,
    /// The way its answer begins.
    pub begins: Option<String>,
    /// The answer, of an example.
    pub answer: Option<String>,
}

/// A message, and the text that follows it where messages become one text.
struct Line {
    role: Role,
    text: String,
    then: String,
}

/// The prompt of a question.
///
/// `description` comes before everything, `delimiter` between a question and its successor.
fn prompt(
    form: Form,
    description: Option<&str>,
    delimiter: &str,
    examples: &[QuestionText],
    question: &QuestionText,
) -> Prompt {
    let mut lines = Vec::new();
    for wording in examples.iter().chain([question]) {
        lines.extend(turn(wording, delimiter));
    }
    let description = description.filter(|text| !text.is_empty());
    let message = |role, text: String| Message::text(role, text);
    let system = description.map(|text| message(Role::System, text.to_owned()));
    let messages = match form {
        Form::Text => {
            let mut whole = description.unwrap_or_default().to_owned();
            whole.push_str(&joined(&lines));
            return Prompt::Text(whole);
        }
        Form::Turns => lines.into_iter().map(|line| message(line.role, line.text)).collect(),
        Form::Message => {
            let begun = lines.pop_if(|last| last.role == Role::Assistant);
            if let Some(last) = lines.last_mut() {
                last.then.clear();
            }
            let begun = begun.map(|line| message(line.role, line.text));
            let whole = message(Role::User, joined(&lines));
            [whole].into_iter().chain(begun).collect::<Vec<_>>()
        }
    };
    Prompt::Messages(system.into_iter().chain(messages).collect())
}

fn joined(lines: &[Line]) -> String {
    let pieces = lines.iter().flat_map(|line| [line.text.as_str(), line.then.as_str()]);
    pieces.collect()
}

fn turn(wording: &QuestionText, delimiter: &str) -> Vec<Line> {
    let answer = wording.answer.as_deref().filter(|answer| !answer.is_empty());
    let begins = wording.begins.as_deref().filter(|begins| !begins.is_empty());
    let delimited = match (answer, begins) {
        (Some(_), None) => true,
        (_, Some(begins)) => !wording.text.is_empty() && are_close(&wording.text, begins),
        (None, None) => false,
    };
    let mut lines = vec![Line {
        role: Role::User,
        text: wording.text.clone(),
        then: if delimited { delimiter.to_owned() } else { String::new() },
    }];
    let then = if answer.is_some() { BETWEEN } else { "" };
    let text = match (begins, answer) {
        (Some(begins), Some(answer)) if are_close(begins, answer) => format!("{begins} {answer}"),
        (begins, answer) => [begins, answer].into_iter().flatten().collect(),
    };
    if !text.is_empty() {
        lines.push(Line { role: Role::Assistant, text, then: then.to_owned() });
    }
    lines
}

fn are_close(before: &str, after: &str) -> bool {
    !before.ends_with(is_space) && !after.starts_with(is_space)
}

// The user's configuration, and its requests that cannot be met.

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
