//! MMLU: the Parquet files of cais/mmlu, with `question`, `subject`, `choices` and `answer` (an
//! index); or a subject's CSV file as its authors publish it, without names of columns.

use serde_json::json;

use super::{Facts, Question, Source, Task};
use crate::QuestionText;
use crate::row::{Row, strip, unexpected};

/// The columns of the authors' CSV files.
pub const BARE: &[&str] = &["question", "A", "B", "C", "D", "answer"];

const LETTERS: [&str; 4] = ["A", "B", "C", "D"];

/// `mmlu_*_generative`.
pub const PLAIN: Facts = Facts {
    examples: Source::FirstOfSubject,
    subjects: true,
    stop: &["</s>", "\n"],
    ..super::PLAIN
};

/// `mmlu_*_flan_cot_zeroshot`.
pub const COT_ZEROSHOT: Facts =
    Facts { examples: Source::None, stop: &["</s>", "Q:", "<|im_end|>"], ..PLAIN };

/// The subjects by the groups that the harness has for them.
const GROUPS: [(&str, &str); 4] = [
    (
        "stem",
        "abstract_algebra anatomy astronomy college_biology college_chemistry college_computer_science \
         college_mathematics college_physics computer_security conceptual_physics electrical_engineering \
         elementary_mathematics high_school_biology high_school_chemistry high_school_computer_science \
         high_school_mathematics high_school_physics high_school_statistics machine_learning",
    ),
    (
        "other",
        "business_ethics clinical_knowledge college_medicine global_facts human_aging management marketing \
         medical_genetics miscellaneous nutrition professional_accounting professional_medicine virology",
    ),
    (
        "social_sciences",
        "econometrics high_school_geography high_school_government_and_politics high_school_macroeconomics \
         high_school_microeconomics high_school_psychology human_sexuality professional_psychology \
         public_relations security_studies sociology us_foreign_policy",
    ),
    (
        "humanities",
        "formal_logic high_school_european_history high_school_us_history high_school_world_history \
         international_law jurisprudence logical_fallacies moral_disputes moral_scenarios philosophy \
         prehistory professional_law world_religions",
    ),
];

pub fn subjects() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, subjects)| subjects.split_ascii_whitespace())
}

fn choices(row: &Row) -> Result<Vec<String>, String> {
    let choices = match row.any("choices") {
        None if row.fields.contains_key("A") => {
            // A choice may be empty in a CSV file.
            let choice = |letter: &&str| row.fields.get(*letter)?.as_str().map(str::to_owned);
            LETTERS.iter().filter_map(choice).collect()
        }
        _ => row.texts("choices")?,
    };
    match choices.len() {
        4 => Ok(choices),
        _ => Err(unexpected("choices", "four texts", &json!(choices))),
    }
}

/// The letter of the right choice: the column is its index, or the letter.
pub fn letter(row: &Row) -> Result<&'static str, String> {
    let answer = row.value("answer")?;
    let mut letters = (0..).zip(LETTERS);
    let right = letters.find(|(index, letter)| {
        answer.as_u64() == Some(*index) || answer.as_str() == Some(*letter)
    });
    right.map(|(_, letter)| letter).ok_or_else(|| {
        unexpected("answer", "an index from 0 to 3, or a letter from A to D", answer)
    })
}

pub fn question(task: Task, row: &Row, only: Option<&str>) -> Result<Question, String> {
    let subject = row.subject("subject", only, "anatomy")?;
    let question = strip(row.text("question")?);
    let choices = choices(row)?;
    let [a, b, c, d] = &choices[..] else {
        return Err(unexpected("choices", "four texts", &json!(choices)));
    };
    let text = match task {
        Task::MmluCotZeroshot => {
            format!("Q: {question}\n(A) {a} (B) {b} (C) {c} (D) {d}\nA: Let's think step by step.")
        }
        _ => format!("{question}\nA. {a}\nB. {b}\nC. {c}\nD. {d}\nAnswer:"),
    };
    let mut groups = GROUPS.iter();
    let group = groups.find(|(_, subjects)| subjects.split(' ').any(|own| own == subject));
    Ok(Question {
        category: group.map(|(name, _)| (*name).to_owned()),
        description: Some(format!(
            "The following are multiple choice questions (with answers) about {}.\n\n",
            subject.replace('_', " ")
        )),
        wording: QuestionText { text, ..QuestionText::default() },
        reference: Some(json!({"answer": letter(row)?, "choices": choices})),
        ..Question::default()
    })
}
