//! The verdicts of a judging model on a run's answers, as text.

use std::fmt::Write;

use super::plain;
use result::judged::{Preference, Repeated};
use result::summary::ScoredGroup;
use runs::judged::{Cost, Grades, Judge, Judged, TokenPrice};

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

/// The judgement as text, with a newline at its end.
pub fn text(judged: &Judged) -> String {
    let mut block = Block(format!("{:=^50}\n", " Judgement "));
    block.line("Run:", &judged.run);
    if let Some(baseline) = &judged.baseline {
        block.line("Baseline:", baseline);
    }
    judge(&judged.judge, &mut block);
    let Judged {
        answers, requests, ..
    } = judged;
    let of = match judged.baseline {
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
    if let Some(grades) = &judged.grades {
        graded(grades, &mut block);
    }
    if let Some(preference) = &judged.preference {
        preferred(&mut block, preference);
    }
    cost(&judged.cost, &mut block);
    let Block(mut text) = block;
    for caution in &judged.cautions {
        let _ = writeln!(text, "caution: {}", plain(caution));
    }
    let _ = writeln!(text, "{:=^50}", "");
    text
}

fn judge(judge: &Judge, block: &mut Block) {
    let temperature = match judge.temperature {
        Some(temperature) => format!("temperature {temperature}"),
        None => "the server's own temperature".to_owned(),
    };
    let Judge { model, backend, .. } = judge;
    block.line("Judge:", format!("{model} ({backend}, {temperature})"));
    let digest: String = judge.rubric_digest.chars().take(12).collect();
    block.line("Rubric:", format!("{} (sha256 {digest}…)", judge.rubric));
}

fn graded(grades: &Grades, block: &mut Block) {
    block.section("Grades");
    let Grades { score, .. } = grades;
    let name = grades.name.as_deref().unwrap_or("grade");
    let scale = format!("{}-{}", grades.lowest, grades.highest);
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
    if let Some(repeats) = &grades.repeats {
        repeated(block, repeats);
    }
    for (name, against) in &grades.against {
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

fn cost(cost: &Cost, block: &mut Block) {
    block.section("Cost of the Judging");
    block.line("Requests:", cost.requests);
    let tokens = |tokens: Option<u64>| tokens.map_or("-".to_owned(), |own| own.to_string());
    block.line("Input tokens:", tokens(cost.input_tokens));
    block.line("Output tokens:", tokens(cost.output_tokens));
    block.count("Requests with unknown counts:", cost.uncounted);
    if let Some(duration) = cost.duration_s {
        block.line("Duration (s):", format!("{duration:.2}"));
    }
    if let (Some(price), Some(total)) = (cost.price, cost.total) {
        let TokenPrice { input, output } = price;
        block.line(
            "Price:",
            format!("{total:.6} (a million tokens: {input} in, {output} out)"),
        );
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
