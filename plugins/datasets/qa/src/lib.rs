//! The questions of published benchmarks, with examples before them, and the references that
//! scorers compare answers with: GSM8K, MMLU, MMLU-Pro, GPQA, ARC, HumanEval, MBPP, IFEval and
//! LongBench, worded as EleutherAI's lm-evaluation-harness 0.4.13 words them, and BFCL as
//! `bfcl-eval` 2026.3.23 asks them. Files have the form that their authors publish. Multiple choice
//! is generative: a scorer takes the letter from the answer's text.
//!
//! This module orders questions and makes samples of them. `table` reads rows, `task` words them,
//! `examples` chooses the examples before them, `prompt` puts both together.
#![deny(unsafe_code)]

mod config;
mod examples;
mod prompt;
mod row;
mod table;
mod task;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use runner_plugin::random::Python;
use runner_plugin::requests::{fill, fingerprint};
use runner_plugin::{Amount, Dataset, Error, Inputs, Part, Prompt, Sample, Tokenizer};
use serde_json::{Map, Value, json};

pub use config::Config;
use config::{Class, Form, Order};
use examples::Examples;
use prompt::prompt;
use table::Table;
use task::{Answers, Context, Orders, Question, Task};

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
