//! Agreement of a run's answers with a baseline's answers, as a result (`runner schema agreement`).
//!
//! `result::agreement` compares the answers; this module adds the scores of the same samples.

use std::collections::BTreeMap;

use crate::{Answers as Scored, Flipped, flipped};
use model::exchange::Exchange;
use result::agreement::{Agreement, Answers, FirstToken};
use result::summary::RunFacts;
use scenario::plan::Plan;

/// The agreement of a run's answers with a baseline's answers.
#[model::apply(model::document!)]
pub struct Agreed {
    /// The folder of the run.
    pub run: String,
    /// The folder of the baseline.
    pub baseline: String,
    /// The folders of the repeats of the baseline, which are the noise floor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floor: Vec<String>,
    /// Cautions to read before the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<String>,
    /// The answers.
    pub answers: Agreement,
    /// Scores that both have, on the same samples, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, Flipped>,
}

/// Runs under comparison. Their answers are added in order: the baseline, its repeats, the run.
#[derive(Default)]
pub struct Agreeing<'t> {
    answers: Answers<'t>,
    baseline: Option<(String, Scored)>,
    floor: Vec<String>,
    cautions: Vec<String>,
}

impl<'t> Agreeing<'t> {
    /// Runs whose answers are compared by their tokens too.
    pub fn tokenized(first_token: FirstToken<'t>) -> Self {
        Agreeing { answers: Answers::tokenized(first_token), ..Self::default() }
    }

    /// Adds the baseline. Errors: the first exchange that cannot be read.
    pub fn baseline<X>(
        &mut self,
        (folder, plan, facts): (&str, &Plan, &RunFacts),
        exchanges: impl Iterator<Item = Result<Exchange, X>>,
    ) -> Result<(), X> {
        let mut scored = Scored::new(&facts.scores);
        for exchange in exchanges {
            let exchange = exchange?;
            self.answers.add_baseline(&exchange);
            scored.add(&exchange);
        }
        self.cautions.extend(sampled(folder, plan));
        self.baseline = Some((folder.to_owned(), scored));
        Ok(())
    }

    /// Adds a repeat of the baseline. Errors: the first exchange that cannot be read.
    pub fn repeat<X>(
        &mut self,
        folder: &str,
        exchanges: impl Iterator<Item = Result<Exchange, X>>,
    ) -> Result<(), X> {
        self.answers.begin_repeat();
        for exchange in exchanges {
            self.answers.add_repeat(&exchange?);
        }
        self.floor.push(folder.to_owned());
        Ok(())
    }

    /// Adds the run, and returns its agreement. Errors: the first exchange that cannot be read.
    pub fn run<X>(
        mut self,
        (folder, plan, facts): (&str, &Plan, &RunFacts),
        exchanges: impl Iterator<Item = Result<Exchange, X>>,
    ) -> Result<Agreed, X> {
        let mut scored = Scored::new(&facts.scores);
        for exchange in exchanges {
            let exchange = exchange?;
            self.answers.add_run(&exchange);
            scored.add(&exchange);
        }
        self.cautions.extend(sampled(folder, plan));
        let (baseline, before) = self.baseline.unwrap_or_default();
        Ok(Agreed {
            run: folder.to_owned(),
            baseline,
            floor: self.floor,
            cautions: self.cautions,
            answers: self.answers.finish(),
            scores: flipped(&before, &scored),
        })
    }
}

/// Writes the caution that a run's answers are drawn by chance.
fn sampled(folder: &str, plan: &Plan) -> Option<String> {
    let how = match plan.request.temperature {
        Some(0.0) => return None,
        _ if plan.request.top_k == Some(1) => return None,
        Some(temperature) => format!("at temperature {temperature}"),
        None => "at the server's own temperature".to_owned(),
    };
    Some(format!(
        "{folder} sampled its answers {how}, so they differ by chance; set request.temperature = 0"
    ))
}
