//! What a judging model said of a run's answers, as text and as a result (`runner schema judgement`): grades, or which of
//! two runs it prefers; how far it agrees with itself and with other scores; and what it cost.
//!
//! `result::judged` and `result::summary` have the arithmetic; this module says it in words.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plain;
use model::exchange::Class;
use result::judged::{Against, Preference, Repeated};
use result::summary::{Score, ScoredGroup, Summary};

/// A judgement of a run's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Judged {
    /// When, in UTC.
    pub at: String,
    /// The folder of the run.
    pub run: String,
    /// The folder of the run that its answers were held against; absent where answers were graded one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Who judged, and by what.
    pub judge: Judge,
    /// Whether the judging was stopped before all verdicts were there.
    pub interrupted: bool,
    /// What to know before the figures are believed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<String>,
    /// What was put before the judge, and what was not.
    pub answers: Answers,
    /// What became of the requests to the judge.
    pub requests: Requests,
    /// The grades; absent if none was given, and where two runs were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grades: Option<Grades>,
    /// Which run the judge prefers; absent where answers were graded one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<Preference>,
    /// What the verdicts cost.
    pub cost: Cost,
}

/// A model that judges answers, and what it judges them by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Judge {
    /// The model's name, as its server knows it.
    pub model: String,
    /// The backend that asked it.
    pub backend: String,
    /// The sampling temperature; absent if the server's own was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The rubric's file, or the names of those that ship.
    pub rubric: String,
    /// SHA-256 of its text; where samples with a reference have a rubric of their own, of both digests.
    pub rubric_digest: String,
    /// The folder of the judging, which is a run with records of what was asked and answered.
    pub folder: String,
}

/// What was put before the judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Answers {
    /// Answers of the run that could be judged; of two runs, samples that both answered.
    pub total: u64,
    /// Of these, those that were put before the judge.
    pub judged: u64,
    /// Those that were not drawn (`--sample`).
    pub left_out: u64,
    /// Those whose question is no text, such as tokens or texts to embed.
    pub without_text: u64,
    /// Those without a reference, which the rubric shows.
    pub without_reference: u64,
    /// Of two runs, samples that only one of them answered. `total` does not include them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answered_by_one: u64,
    /// Of those that were put before the judge, those whose question held images or audio, which a judge does not see.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub with_media: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What became of the requests to the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Requests {
    /// Those that were to be made.
    pub planned: u64,
    /// Those that were answered with a verdict.
    pub with_verdict: u64,
    /// Those that were answered without one.
    pub without_verdict: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that failed, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<Class, u64>,
    /// Those that were never made, because the judging was stopped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent: u64,
}

/// The grades of a run's answers. An answer that was judged several times has the mean of its grades.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Grades {
    /// The worst grade that there is.
    pub lowest: f64,
    /// The best grade that there is.
    pub highest: f64,
    /// The name under which the run has them as a score; absent if they were not added to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Their mean, its interval, groups and the worst answers, as of any score.
    pub score: Score,
    /// How far the judge agrees with itself; absent without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeated>,
    /// Against the run's other scores that call answers right or wrong, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub against: BTreeMap<String, Against>,
}

/// What the verdicts cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cost {
    /// Requests that were sent.
    pub requests: u64,
    /// Tokens of the prompts of answered requests; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of all answers, those that broke off included as far as they are known; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Requests of which one of both counts is not known, failed ones included: they may have cost something too.
    pub uncounted: u64,
    /// Seconds from the first request to the end of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// The price of tokens, if it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<TokenPrice>,
    /// What the counted tokens cost; absent without a price, or where a count is not known at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

/// What a million tokens cost, in any currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TokenPrice {
    /// Of prompts.
    pub input: f64,
    /// Of answers.
    pub output: f64,
}

impl std::str::FromStr for TokenPrice {
    type Err = String;

    /// `0.15,0.6`: input, then output.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let price = |text: &str| {
            let price: Option<f64> = text.trim().parse().ok();
            price.filter(|price| price.is_finite() && *price >= 0.0)
        };
        let both = text
            .split_once(',')
            .and_then(|(input, output)| Some((price(input)?, price(output)?)));
        match both {
            Some((input, output)) => Ok(TokenPrice { input, output }),
            None => Err(
                "expected the prices of a million input and output tokens, as in 0.15,0.6"
                    .to_owned(),
            ),
        }
    }
}

impl Cost {
    /// Of a judging, by its summary.
    pub fn of(summary: &Summary, price: Option<TokenPrice>) -> Self {
        let tokens = &summary.tokens;
        let broken = tokens.left_out.unwrap_or_default();
        let input_tokens = tokens.input.total;
        let output_tokens = tokens.output.total;
        let output_tokens = match broken.output {
            0 => output_tokens,
            more => Some(output_tokens.unwrap_or(0) + more),
        };
        let counted = input_tokens.zip(output_tokens).zip(price);
        let total = counted.map(|((input, output), price)| {
            (input as f64 * price.input + output as f64 * price.output) / 1e6
        });
        let requests = &summary.requests;
        let unknown = tokens.input.unknown.max(tokens.output.unknown);
        Cost {
            requests: requests.sent,
            input_tokens,
            output_tokens,
            uncounted: unknown + requests.sent.saturating_sub(requests.successful),
            duration_s: summary.throughput.duration_s,
            price,
            total,
        }
    }
}

/// The column of the values, minus one.
const LABELS: usize = 40;

/// A text under construction.
struct Block(String);

impl Block {
    fn section(&mut self, title: &str) {
        let _ = writeln!(self.0, "{title:-^50}");
    }

    fn line(&mut self, label: &str, value: impl std::fmt::Display) {
        let label = plain(label);
        let value = plain(&value.to_string());
        let _ = writeln!(self.0, "{label:<LABELS$} {value}");
    }

    /// A line if there is something to say.
    fn count(&mut self, label: &str, count: u64) {
        if count > 0 {
            self.line(label, count);
        }
    }
}

impl Judged {
    /// As text, with a newline at its end.
    pub fn text(&self) -> String {
        let mut block = Block(format!("{:=^50}\n", " Judgement "));
        block.line("Run:", &self.run);
        if let Some(baseline) = &self.baseline {
            block.line("Baseline:", baseline);
        }
        self.judge.text(&mut block);
        let Judged {
            answers, requests, ..
        } = self;
        let of = match self.baseline {
            Some(_) => "Samples that both answered:",
            None => "Answers that can be judged:",
        };
        block.line(of, answers.total);
        block.count("Answered by one run only:", answers.answered_by_one);
        block.line("Put before the judge:", answers.judged);
        block.count("  not drawn:", answers.left_out);
        block.count("  whose question is no text:", answers.without_text);
        block.count("  without a reference:", answers.without_reference);
        block.line("Requests to the judge:", requests.planned);
        block.line("  with a verdict:", requests.with_verdict);
        block.count("  without a verdict:", requests.without_verdict);
        block.count("  failed:", requests.failed);
        for (class, count) in &requests.failures {
            block.line(&format!("    {}:", class.name()), count);
        }
        block.count("  never made:", requests.unsent);
        if let Some(grades) = &self.grades {
            grades.text(&mut block);
        }
        if let Some(preference) = &self.preference {
            preferred(&mut block, preference);
        }
        self.cost.text(&mut block);
        let Block(mut text) = block;
        for caution in &self.cautions {
            let _ = writeln!(text, "caution: {}", plain(caution));
        }
        let _ = writeln!(text, "{:=^50}", "");
        text
    }
}

impl Judge {
    fn text(&self, block: &mut Block) {
        let temperature = match self.temperature {
            Some(temperature) => format!("temperature {temperature}"),
            None => "the server's own temperature".to_owned(),
        };
        let Judge { model, backend, .. } = self;
        block.line("Judge:", format!("{model} ({backend}, {temperature})"));
        let digest: String = self.rubric_digest.chars().take(12).collect();
        block.line("Rubric:", format!("{} (sha256 {digest}…)", self.rubric));
    }
}

impl Grades {
    fn text(&self, block: &mut Block) {
        block.section("Grades");
        let Grades { score, .. } = self;
        let name = self.name.as_deref().unwrap_or("grade");
        let scale = format!("{}-{}", self.lowest, self.highest);
        block.line(
            &format!("{name} ({scale}, mean of {}):", score.count),
            decimals(score.mean),
        );
        if let Some(bounds) = score.confidence {
            block.line("  95% confidence:", bounds.words(" - ", decimals));
        }
        if let Some(words) = score.unjudged.words() {
            block.line("  not judged:", words);
        }
        groups(block, "of class", "all others", &score.by_class);
        groups(block, "of turn", "later", &score.by_turn);
        if let Some(repeats) = &self.repeats {
            repeated(block, repeats);
        }
        for (name, against) in &self.against {
            block.line(
                &format!("against {name}, right / wrong:"),
                format!("{} / {}", against.right, against.wrong),
            );
            let mean = |mean: Option<f64>| mean.map_or("-".to_owned(), decimals);
            block.line(
                "  mean grade, right / wrong:",
                format!(
                    "{} / {}",
                    mean(against.right_mean),
                    mean(against.wrong_mean)
                ),
            );
            if let Some(correlation) = against.correlation {
                block.line("  correlation (point-biserial):", decimals(correlation));
            }
            if let Some(concordance) = against.concordance {
                block.line("  right graded above wrong (%):", percent(concordance));
            }
        }
    }
}

fn groups(block: &mut Block, of: &str, others: &str, groups: &[ScoredGroup]) {
    for group in groups {
        let name = group.name.as_deref().unwrap_or(others);
        let name: String = name.chars().take(20).collect();
        let mean = group.mean.map_or("-".to_owned(), decimals);
        let bounds = group
            .confidence
            .map(|bounds| format!(" ({})", bounds.words(" - ", decimals)));
        block.line(
            &format!("  {of} {name}, {} judged:", group.count),
            format!("{mean}{}", bounds.unwrap_or_default()),
        );
    }
}

fn repeated(block: &mut Block, repeats: &Repeated) {
    block.line("Judged more than once:", repeats.prompts);
    block.line(
        "  pairs of verdicts that agree (%):",
        percent(repeats.identical_share),
    );
    if let Some(apart) = repeats.mean_difference {
        block.line("  distance of two grades, mean:", decimals(apart));
    }
}

fn preferred(block: &mut Block, preference: &Preference) {
    block.section("Preference");
    let Preference {
        wins, ties, losses, ..
    } = preference;
    block.line(
        "Wins / ties / losses of the run:",
        format!("{wins} / {ties} / {losses}"),
    );
    block.count("  without a verdict in both orders:", preference.unjudged);
    if let Some(rate) = preference.win_rate {
        block.line("Win rate, ties as half (%):", percent(rate));
    }
    if let Some(bounds) = preference.confidence {
        block.line("  95% confidence:", bounds.words(" - ", percent));
    }
    if let Some(probability) = preference.probability {
        block.line("  sign test, p:", decimals(probability));
    }
    if let Some(share) = preference.consistent_share {
        let of = format!(
            "{} ({} of {})",
            percent(share),
            preference.consistent,
            preference.pairs
        );
        block.line("Pairs both orders agree on (%):", of);
    }
    if let Some(share) = preference.first_share {
        block.line("Verdicts for the answer shown first (%):", percent(share));
    }
    if let Some(repeats) = &preference.repeats {
        repeated(block, repeats);
    }
}

impl Cost {
    fn text(&self, block: &mut Block) {
        block.section("Cost of the Judging");
        block.line("Requests:", self.requests);
        let tokens = |tokens: Option<u64>| tokens.map_or("-".to_owned(), |own| own.to_string());
        block.line("Input tokens:", tokens(self.input_tokens));
        block.line("Output tokens:", tokens(self.output_tokens));
        block.count("Requests with unknown counts:", self.uncounted);
        if let Some(duration) = self.duration_s {
            block.line("Duration (s):", format!("{duration:.2}"));
        }
        if let (Some(price), Some(total)) = (self.price, self.total) {
            let TokenPrice { input, output } = price;
            block.line(
                "Price:",
                format!("{total:.6} (a million tokens: {input} in, {output} out)"),
            );
        }
    }
}

fn decimals(value: f64) -> String {
    format!("{value:.4}")
}

fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

#[cfg(test)]
mod tests;
