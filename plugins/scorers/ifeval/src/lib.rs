//! Scorer that checks if an answer follows the instructions of its prompt: the checks of IFEval
//! (Zhou et al., 2023) as in the task `ifeval` of EleutherAI's lm-evaluation-harness 0.4.13
//! (`lm_eval/tasks/ifeval/`).
//!
//! The scores:
//!
//! - `prompt-level-strict`: 1 if the answer follows all instructions of its prompt
//! - `prompt-level-loose`: the same, but an instruction may also be followed in the answer without
//!   its first line, its last line, its asterisks, or several of these parts
//! - `inst-level-strict`, `inst-level-loose`, of the run: the followed share of all judged
//!   instructions
//! - `ifeval-unjudged`: 1 if an instruction of the prompt cannot be judged
//!
//! The reference is a row of the dataset: `instruction_id_list`, and `kwargs` with a table for each
//! instruction; other fields are not read.
//!
//! # Unjudged instructions
//!
//! - `language:response_language`: the harness asks `langdetect`, whose answers are random
//! - `change_case:english_capital`, `change_case:english_lowercase`: the same reason, but only for
//!   an answer in the right case; any other answer does not follow the instruction
//! - `length_constraints:number_sentences`, `change_case:capital_word_frequency`: the harness
//!   splits sentences with a trained model (NLTK's Punkt)
//! - any instruction whose letter or number the harness replaces by a random one: nothing remains
//!   to compare with
//!
//! An instruction that is not judged counts in no share. A prompt that has one has a
//! `prompt-level-` score only if another instruction is not followed, which makes it 0. So means
//! are of fewer prompts, and `ifeval-unjudged` says how many are affected.
//!
//! Keywords are patterns of Python's `re` in the harness. `regex-lite`, whose classes are ASCII's,
//! reads keywords with characters that mean something in a pattern; an unreadable one makes the
//! reference unusable; all others are compared with Unicode's cases.
#![deny(unsafe_code)]

mod find;
mod instruction;
mod json;
#[cfg(test)]
mod tests;

use instruction::Instruction;
use judging::{Part, python, reference, score, truth, unusable};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

const INSTRUCTIONS: usize = 100;

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The part of the reply that is judged.
    pub part: Part,
}

/// Number of instructions that were judged, and number of followed ones.
#[derive(Clone, Copy, Default)]
struct Tally {
    judged: u64,
    followed: u64,
}

impl Tally {
    fn add(&mut self, verdicts: &[Option<bool>]) {
        for verdict in verdicts.iter().flatten() {
            self.judged += 1;
            self.followed += u64::from(*verdict);
        }
    }

    fn share(self, name: &str) -> Option<Score> {
        (self.judged > 0).then(|| score(name, self.followed as f64 / self.judged as f64))
    }
}

/// Scores prompts and, at the end, instructions.
pub struct IfEval {
    config: Config,
    strict: Tally,
    loose: Tally,
}

runner_plugin::export_scorer!(IfEval);

impl Scorer for IfEval {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Self { config, strict: Tally::default(), loose: Tally::default() })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let instructions = instructions(exchange, &reference)?;
        let answer = self.config.part.text(exchange);
        let strict: Vec<Option<bool>> =
            (instructions.iter()).map(|instruction| follows(instruction, &answer)).collect();
        let variants = variants(&answer);
        let loose: Vec<Option<bool>> = (instructions.iter())
            .map(|instruction| follows_loosely(instruction, &variants))
            .collect();
        self.strict.add(&strict);
        self.loose.add(&loose);
        let unjudged = [&strict, &loose].iter().any(|all| all.contains(&None));
        let mut scores = vec![truth("ifeval-unjudged", unjudged)];
        for (name, verdicts) in [("prompt-level-strict", strict), ("prompt-level-loose", loose)] {
            scores.extend(all(&verdicts).map(|followed| truth(name, followed)));
        }
        Ok(scores)
    }

    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        let shares = [self.strict.share("inst-level-strict"), self.loose.share("inst-level-loose")];
        Ok(shares.into_iter().flatten().collect())
    }
}

fn instructions(exchange: &Exchange, reference: &Value) -> Result<Vec<Instruction>, Error> {
    let list = |key: &str| reference.get(key).and_then(Value::as_array);
    let (Some(ids), Some(arguments)) = (list("instruction_id_list"), list("kwargs")) else {
        let expected = "a row of IFEval with the lists `instruction_id_list` and `kwargs`";
        return Err(unusable(exchange, reference, expected));
    };
    if ids.len() != arguments.len() || !(1..=INSTRUCTIONS).contains(&ids.len()) {
        let expected = format!(
            "as many tables in `kwargs` as names in `instruction_id_list`, and 1 to {INSTRUCTIONS} of them"
        );
        return Err(unusable(exchange, reference, &expected));
    }
    let none = Map::new();
    let instruction = |(id, arguments): (&Value, &Value)| {
        let given = arguments.as_object().unwrap_or(&none);
        Instruction::new(id.as_str().unwrap_or_default(), given)
            .map_err(|expected| unusable(exchange, reference, &expected))
    };
    ids.iter().zip(arguments).map(instruction).collect()
}

fn follows(instruction: &Instruction, answer: &str) -> Option<bool> {
    if python::strip(answer).is_empty() {
        return Some(false);
    }
    instruction.is_followed(answer)
}

/// Tells if one of the variants follows the instruction; not known if one may and none does.
fn follows_loosely(instruction: &Instruction, variants: &[String]) -> Option<bool> {
    let mut verdict = Some(false);
    for variant in variants {
        match follows(instruction, variant) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => verdict = None,
        }
    }
    verdict
}

/// Tells if all are followed: not, if one is not; not known, if one is not known.
fn all(verdicts: &[Option<bool>]) -> Option<bool> {
    if verdicts.contains(&Some(false)) {
        return Some(false);
    }
    verdicts.iter().copied().collect::<Option<Vec<bool>>>().map(|_| true)
}

/// The answer, and without its first line, its last, and both; each also without asterisks.
fn variants(answer: &str) -> Vec<String> {
    let lines: Vec<&str> = answer.split('\n').collect();
    let joined = |lines: &[&str]| python::strip(&lines.join("\n")).to_owned();
    let last = lines.len() - 1;
    let kept = [
        answer.to_owned(),
        joined(&lines[1..]),
        joined(&lines[..last]),
        joined(lines.get(1..last).unwrap_or_default()),
    ];
    let bare = kept.each_ref().map(|text| text.replace('*', ""));
    kept.into_iter().chain(bare).collect()
}
