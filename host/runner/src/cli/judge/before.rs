//! Preparation of a judging: the rubric, the answers with their questions, and the folder with the
//! prompts.

use std::collections::BTreeSet;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::error::CliError;
use crate::cli::failure::Failure;
use crate::cli::print::tell;
use model::private;
use runs::folder::RunFolder;
use runs::judged;
use scenario::Scenario;
use scenario::plan::Plan;
use session::Faults;
use session::judging::answers::{Answer, Answers, reference};
use session::judging::asked::{Question, Questions};
use session::judging::rows::{self, Case};
use session::judging::rubric::{Rubric, Rubrics};
use session::judging::scenario::{Prompts, scenario};

/// The prompts of a judging, which its dataset reads.
const PROMPTS: &str = "prompts.jsonl";

/// The rubric, as it was when the answers were judged.
const RUBRIC: &str = "rubric.txt";

/// The answers to judge, and the rubrics.
pub(super) struct Before {
    pub(super) folder: RunFolder,
    pub(super) plan: Plan,
    pub(super) rubrics: Rubrics,
    /// The answers that are put before the judge, in the order of their numbers.
    pub(super) answers: Vec<Answer>,
    /// The same, with their questions.
    cases: Vec<Case>,
    /// Numbers of the answers that are put before the judge, and of the others.
    pub(super) counts: judged::Answers,
    /// The numbers of the answers that were not drawn, in order.
    pub(super) left_out: Vec<u64>,
    /// The numbers of the answers that cannot be shown to the judge, in order.
    pub(super) unaskable: Vec<u64>,
}

impl Before {
    /// Reads the rubric and the runs, and draws the questions again.
    pub(super) fn look(args: &Args, seed: u64) -> Result<Self, Failure> {
        let rubrics = rubrics(args)?;
        let folder = RunFolder::at(&args.run);
        let plan = folder.plan()?;
        let baseline = args.baseline();
        if let Some(baseline) = &baseline {
            baseline.plan()?;
        }
        let mut answers = Answers::read(&folder, baseline.as_ref(), args.sample, seed)?;
        if answers.drawn.is_empty() {
            return Err(nothing(args, answers.answered_by_one).into());
        }
        let questions = Questions::of(plan.clone(), &args.source())?;
        questions.remarks.iter().for_each(tell);
        let wanted: BTreeSet<u64> = answers.drawn.iter().map(|answer| answer.index).collect();
        let mut found = questions.draw(&wanted, |index| answers.said(index))?;
        let left_out = std::mem::take(&mut answers.left_out);
        let mut before = Before {
            counts: judged::Answers {
                total: (answers.drawn.len() + left_out.len()) as u64,
                left_out: left_out.len() as u64,
                answered_by_one: answers.answered_by_one,
                ..judged::Answers::default()
            },
            folder,
            plan,
            rubrics,
            answers: Vec::new(),
            cases: Vec::new(),
            left_out,
            unaskable: Vec::new(),
        };
        for answer in answers.drawn {
            let question = found.remove(&answer.index);
            let question = question.filter(|own| own.id == answer.sample.id);
            let question = question.ok_or_else(|| changed(args, &answer))?;
            before.put(answer, question);
        }
        if before.cases.is_empty() {
            Err(Failure::input(format!(
                "`{}` has no answer that the judge can be shown: {} have a question that is no text, and {} have no reference, which the rubric shows",
                args.run.display(),
                before.counts.without_text,
                before.counts.without_reference
            )))
        } else {
            Ok(before)
        }
    }

    /// Puts an answer before the judge, unless it cannot be shown.
    fn put(&mut self, answer: Answer, question: Question) {
        let reference = reference(&answer.sample);
        let rubric = self.rubrics.of(reference.is_some());
        let Some(text) = question.text else {
            self.counts.without_text += 1;
            self.unaskable.push(answer.index);
            return;
        };
        if rubric.needs_reference() && reference.is_none() {
            self.counts.without_reference += 1;
            self.unaskable.push(answer.index);
            return;
        }
        self.counts.judged += 1;
        self.counts.with_media += u64::from(question.has_media);
        self.cases.push(Case {
            index: answer.index,
            class: answer.sample.class.clone(),
            question: text,
            reference,
            answers: [answer.text.clone(), answer.baseline.clone().unwrap_or_default()],
        });
        self.answers.push(answer);
    }
}

/// Reports that there is no answer to judge.
fn nothing(args: &Args, answered_by_one: u64) -> CliError {
    let run = args.run.clone();
    match &args.baseline {
        Some(baseline) if answered_by_one > 0 => {
            let baseline = baseline.clone();
            CliError::NothingInCommon { run, baseline }
        }
        _ => CliError::NoAnswer { run, how: " with text" },
    }
}

/// Reports that the dataset gives other samples than it gave the run.
fn changed(args: &Args, answer: &Answer) -> Failure {
    Failure::input(format!(
        "cannot find out what `{}` asked: drawn again, its dataset does not give sample `{}` as request {}",
        args.run.display(),
        answer.sample.id,
        answer.index
    ))
}

/// The rubric that the user gives, or the shipped ones.
fn rubrics(args: &Args) -> Result<Rubrics, Failure> {
    let kind = args.kind();
    let Some(path) = &args.rubric else {
        return Ok(Rubrics::shipped(kind).map_err(|error| Faults::of(&error))?);
    };
    let text = reader::read_text(path).map_err(CliError::read("the rubric ", path))?;
    let name = path.display().to_string();
    let rubric = Rubric::parse(&name, &text, kind).map_err(|error| Faults::of(&error))?;
    if !rubric.has_nonce() {
        tell(format!(
            "note: the rubric `{name}` has no {{nonce}} in its marks, so an answer may end them and pass for part of the rubric"
        ));
    }
    Ok(Rubrics { plain: rubric, with_reference: None })
}

/// The folder of a judging, with the judge's questions.
pub(super) struct JudgingFolder {
    /// The folder, in which the run of the judging gets one of its own.
    pub(super) folder: RunFolder,
    /// The number of prompts.
    pub(super) prompts: u64,
    /// The scenario that asks them.
    pub(super) scenario: Scenario,
}

impl JudgingFolder {
    /// Makes the folder and writes the prompts and the rubric.
    pub(super) fn set_up(args: &Args, before: &Before) -> Result<Self, Failure> {
        let now = jiff::Timestamp::now();
        let name = format!("{} judge", before.plan.name);
        let folder =
            RunFolder::create(&args.within.output_dir, &name, &now).map_err(CliError::NoFolder)?;
        let written = prompts(args, before, folder.path());
        let bench = |prompts| JudgingFolder {
            scenario: scenario(
                "judge",
                &Prompts {
                    file: &folder.path().join(PROMPTS),
                    count: prompts,
                    has_classes: before.cases.iter().any(|case| case.class.is_some()),
                    kind: args.kind(),
                    scale: args.scale,
                },
            ),
            folder: folder.clone(),
            prompts,
        };
        written.map(bench).map_err(|(path, cause)| {
            bench(0).clear();
            CliError::write(&path, "")(cause).into()
        })
    }

    /// Removes the folder, unless a run was begun in it.
    pub(super) fn clear(&self) {
        let folder = self.folder.path();
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let has_run = entries.into_iter().any(|entry| entry.path().is_dir());
        if !has_run {
            for name in [PROMPTS, RUBRIC] {
                let _ = std::fs::remove_file(folder.join(name));
            }
            // Fails, as it should, where anything else lies there.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Writes the prompts and the rubric, and returns the number of prompts.
fn prompts(args: &Args, before: &Before, folder: &Path) -> Result<u64, (PathBuf, io::Error)> {
    let rubric = folder.join(RUBRIC);
    private::write(&rubric, before.rubrics.texts().as_bytes()).map_err(|cause| (rubric, cause))?;
    let file = folder.join(PROMPTS);
    let as_asked = (args.kind(), &before.rubrics, args.scale);
    let written = private::create(&file).and_then(|created| {
        let mut out = BufWriter::new(created);
        rows::write(&mut out, &before.cases, as_asked, args.repeat)
    });
    written.map_err(|cause| (file, cause))
}
