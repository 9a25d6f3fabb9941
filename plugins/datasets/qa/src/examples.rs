//! The examples before a question: which rows they are, as the samplers of lm-evaluation-harness
//! 0.4.13 choose them (`lm_eval/api/samplers.py`).

use std::collections::HashMap;

use runner_plugin::random::Python;
use runner_plugin::{Error, Files};
use serde_json::Value;

use crate::row::Row;
use crate::table::Table;
use crate::task::{Context, Source, Task};
use crate::{Config, QuestionText};

pub const FILE: &str = "examples";

/// The most subjects that examples are kept of.
const MOST_SUBJECTS: usize = 1000;

/// The most examples that are drawn for all questions together: each takes four bytes.
const MOST_DRAWN: usize = 8 << 20;

pub enum Examples {
    Same(Vec<QuestionText>),
    OfSubject(HashMap<String, Vec<QuestionText>>),
    /// Drawn for each question, from a file of examples or from the questions.
    Drawn(Option<Table>, Draws),
}

/// Draws the rows of the examples for each question. One generator draws for all questions in the
/// file's order, so each draw depends on the earlier ones.
pub struct Draws {
    random: Python,
    /// Number of rows to draw from, and of rows that are drawn.
    rows: usize,
    shots: usize,
    /// True if the question is one of the rows, which must not be its own example.
    without_itself: bool,
    drawn: Vec<u32>,
}

impl Draws {
    /// The rows for the question of this number in its file.
    fn rows_for(&mut self, question: usize) -> &[u32] {
        while self.drawn.len() < (question + 1) * self.shots {
            let itself = self.drawn.len() / self.shots;
            let more = usize::from(self.without_itself);
            let sample = self.random.sample(self.rows, self.shots + more).unwrap_or_default();
            let others = sample.into_iter().filter(|row| !self.without_itself || *row != itself);
            self.drawn.extend(others.take(self.shots).map(|row| row as u32));
        }
        &self.drawn[question * self.shots..][..self.shots]
    }
}

impl Examples {
    pub fn open(
        config: &Config,
        files: &dyn Files,
        data: &Table,
        of: &Context<'_>,
    ) -> Result<Self, Error> {
        let (task, shots) = (config.task, config.shots());
        let source = task.facts().examples;
        if shots == 0 {
            return Ok(Self::Same(Vec::new()));
        }
        let table = Table::open(files, FILE, task.bare_columns())?;
        if let (None, Source::First | Source::FirstOfSubject | Source::Drawn) = (&table, source) {
            return Err(Error::InvalidConfig(format!(
                "the task {} has {shots} examples before each question: set `{FILE} = \"FILE\"` under [dataset.files], \
                 or `shots = 0`",
                task.name()
            )));
        }
        if let (Some(_), Source::DrawnFromData) = (&table, source) {
            return Err(Error::InvalidConfig(format!(
                "the task {} draws its examples from the file `data`: leave out `{FILE}` under [dataset.files]",
                task.name()
            )));
        }
        let pool = table.as_ref().unwrap_or(data);
        let needed = shots + usize::from(source == Source::DrawnFromData);
        if pool.len() < needed {
            return Err(Error::InvalidInput(format!(
                "file `{}`: expected at least {needed} rows for {shots} examples, found {}",
                pool.name(),
                pool.len()
            )));
        }
        match source {
            Source::None => Ok(Self::Same(Vec::new())),
            Source::First => {
                let rows = 0..shots;
                rows.map(|number| example(task, pool, number, of))
                    .collect::<Result<_, _>>()
                    .map(Self::Same)
            }
            Source::FirstOfSubject => of_subjects(task, pool, shots, of).map(Self::OfSubject),
            Source::Rows(ids) => named(task, pool, &ids[..shots], of).map(Self::Same),
            Source::Drawn | Source::DrawnFromData => {
                if data.len().saturating_mul(shots) > MOST_DRAWN {
                    return Err(Error::InvalidInput(format!(
                        "file `data`: expected at most {} rows with {shots} examples each, found {}",
                        MOST_DRAWN / shots,
                        data.len()
                    )));
                }
                let draws = Draws {
                    random: Python::new(config.examples_seed),
                    rows: pool.len(),
                    shots,
                    without_itself: source == Source::DrawnFromData,
                    drawn: Vec::new(),
                };
                Ok(Self::Drawn(table, draws))
            }
        }
    }

    pub fn for_question(
        &mut self,
        config: &Config,
        data: &Table,
        subject: Option<&str>,
        of: &Context<'_>,
    ) -> Result<Vec<QuestionText>, Error> {
        match self {
            Self::Same(examples) => Ok(examples.clone()),
            Self::OfSubject(subjects) => {
                let found = subject.and_then(|subject| subjects.get(subject));
                let found = found.map_or(&[][..], Vec::as_slice);
                if found.len() < config.shots() {
                    return Err(Error::InvalidInput(format!(
                        "file `{FILE}`: expected {} rows of the subject `{}`, found {}",
                        config.shots(),
                        subject.unwrap_or_default(),
                        found.len()
                    )));
                }
                Ok(found.to_vec())
            }
            Self::Drawn(table, draws) => {
                let pool = table.as_ref().unwrap_or(data);
                let rows = draws.rows_for(of.number).iter();
                rows.map(|row| example(config.task, pool, *row as usize, of)).collect()
            }
        }
    }
}

fn example(
    task: Task,
    pool: &Table,
    number: usize,
    of: &Context<'_>,
) -> Result<QuestionText, Error> {
    let row = pool.row(number)?;
    made(task, pool, &row, &Context { number, ..*of })
}

fn made(task: Task, pool: &Table, row: &Row, of: &Context<'_>) -> Result<QuestionText, Error> {
    task.example(row, of).map_err(|cause| pool.wrong(row.place, &cause))
}

fn of_subjects(
    task: Task,
    pool: &Table,
    shots: usize,
    of: &Context<'_>,
) -> Result<HashMap<String, Vec<QuestionText>>, Error> {
    let mut subjects = HashMap::<String, Vec<QuestionText>>::new();
    for number in 0..pool.len() {
        let row = pool.row(number)?;
        let subject = task.subject(&row, of.subject);
        let subject = subject.map_err(|cause| pool.wrong(row.place, &cause))?;
        let kept = subjects.entry(subject.unwrap_or_default()).or_default();
        if kept.len() < shots {
            kept.push(made(task, pool, &row, of)?);
        }
        if subjects.len() > MOST_SUBJECTS {
            return Err(
                pool.wrong(row.place, &format!("expected at most {MOST_SUBJECTS} subjects"))
            );
        }
    }
    Ok(subjects)
}

/// The rows with these values of `task_id`, in this order.
fn named(
    task: Task,
    pool: &Table,
    ids: &[u64],
    of: &Context<'_>,
) -> Result<Vec<QuestionText>, Error> {
    let mut found = vec![None; ids.len()];
    for number in 0..pool.len() {
        if found.iter().all(Option::is_some) {
            break;
        }
        let row = pool.row(number)?;
        let id = row.any("task_id").and_then(Value::as_u64);
        if let Some(at) = ids.iter().position(|own| Some(*own) == id) {
            found[at] = Some(made(task, pool, &row, of)?);
        }
    }
    let pairs = ids.iter().zip(found);
    let pairs = pairs.map(|(id, example)| {
        example.ok_or_else(|| {
            Error::InvalidInput(format!(
                "file `{}`: expected the row whose `task_id` is {id}, which is an example; give the file that has it as \
                 `{FILE}` under [dataset.files], or set `shots = 0`",
                pool.name()
            ))
        })
    });
    pairs.collect()
}
