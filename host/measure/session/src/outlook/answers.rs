//! The answers of saved runs beside their questions, as lines of JSON for the dataset `custom`.
//! They are the samples of a run that has a model judge them (`scenarios/judge`).

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{DrawnSession, Request, shown};
use crate::sessions::history::ReplyContent;
use model::exchange::Phase;
use runs::folder::{FolderError, RunFolder};
use scenario::plan::Plan;

/// The answers of one run or of two, each by its sample's name.
#[derive(Clone, Debug, Default)]
pub struct Answers(Vec<HashMap<String, [String; 2]>>);

/// Digits of the text in the marks around an answer: 48 bits.
const NONCE: usize = 12;

impl Answers {
    /// Reads the answers of a further run: text and tool calls.
    pub fn add(&mut self, run: &RunFolder) -> Result<(), FolderError> {
        let mut answers = HashMap::new();
        for exchange in run.read()? {
            let exchange = exchange?;
            let texts = [&exchange.output, &exchange.tool_calls, &exchange.reasoning];
            let has_text = texts.iter().any(|text| !text.is_empty());
            if exchange.phase == Phase::Measure && exchange.has_answer() && has_text {
                answers.insert(exchange.sample.id, [exchange.output, exchange.tool_calls]);
            }
        }
        self.0.push(answers);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first run's answer to a sample, as a part of a history.
    pub(super) fn reply(&self, sample: &str) -> Option<ReplyContent> {
        let [output, tool_calls] = self.0.first()?.get(sample)?;
        Some(ReplyContent::saying(output, tool_calls))
    }

    /// Makes the rows of a session: a row for each request that every run answered.
    pub fn rows(&self, drawn: &DrawnSession) -> impl Iterator<Item = Value> {
        drawn.requests.iter().filter_map(|request| self.row(request))
    }

    fn row(&self, request: &Request) -> Option<Value> {
        let sample = &request.given;
        let reference = sample.reference.as_deref();
        let mut row = json!({
            "id": sample.id,
            "class": sample.class,
            "question": question(request),
            "reference": reference.and_then(|json| serde_json::from_str::<Value>(json).ok()),
        });
        let names: &[&str] = match self.0.len() {
            1 => &["answer"],
            _ => &["answer-a", "answer-b"],
        };
        for (name, run) in names.iter().zip(&self.0) {
            let texts = run.get(&sample.id)?.iter().filter(|text| !text.is_empty());
            row[*name] = json!(texts.map(String::as_str).collect::<Vec<_>>().join("\n"));
        }
        // A digest of all texts, so that whoever wrote one of them does not know it.
        let digest = model::hex(&Sha256::digest(row.to_string()));
        row["nonce"] = json!(digest[..NONCE]);
        Some(row)
    }
}

/// The question as text: a single text as it is, of a conversation every message under its author.
fn question(request: &Request) -> String {
    let messages = shown::messages(&request.sent, None);
    if let [only] = messages.as_slice()
        && only.role.as_deref().is_none_or(|role| role == "user")
    {
        return only.text.clone();
    }
    let under = messages.iter().map(|one| match &one.role {
        Some(role) => format!("[{role}]\n{}", one.text),
        None => one.text.clone(),
    });
    under.collect::<Vec<_>>().join("\n\n")
}

/// True if two plans draw the same samples: as many, from the same dataset, with the same seed.
pub fn draw_alike(one: &Plan, other: &Plan) -> bool {
    let drawn = |plan: &Plan| {
        let plugin = &plan.dataset.plugin;
        let files = plan.dataset.files.iter();
        let files: BTreeMap<_, _> = files.map(|(name, file)| (name, &file.digest)).collect();
        let (load, tokenizer) = (&plan.load, plan.tokenizer.digest.clone());
        let dataset = (plugin.digest.clone(), plugin.config.to_string(), format!("{files:?}"));
        (dataset, tokenizer, load.amount, load.warmup, load.seed)
    };
    drawn(one) == drawn(other)
}
