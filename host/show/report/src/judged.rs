//! The verdicts of a judging model on a run's answers, as text.

use crate::text::Block;
use result::judged::{Preference, Repeated};
use result::summary::ScoredGroup;
use runs::judged::{Cost, Grades, Judge, Judged, TokenPrice};

/// The judgement as text, with a newline at its end.
pub fn text(judged: &Judged) -> String {
    let mut block = Block::titled(" Judgement ");
    block.line("Run:", Some(&judged.run));
    block.line("Baseline:", judged.baseline.as_ref());
    judge(&judged.judge, &mut block);
    let Judged { answers, requests, .. } = judged;
    let of = match judged.baseline {
        Some(_) => "Samples that both answered:",
        None => "Answers that can be judged:",
    };
    block.line(of, Some(answers.total));
    block.count("Answered by one run only:", answers.answered_by_one);
    block.line("Put before the judge:", Some(answers.judged));
    block.count("  not drawn:", answers.left_out);
    block.count("  whose question is no text:", answers.without_text);
    block.count("  without a reference:", answers.without_reference);
    block.line("Requests to the judge:", Some(requests.planned));
    block.line("  with a verdict:", Some(requests.with_verdict));
    block.count("  without a verdict:", requests.without_verdict);
    block.count("  failed:", requests.failed);
    for (class, count) in &requests.failures {
        block.line(&format!("    {}:", class.name()), Some(count));
    }
    block.count("  never made:", requests.unsent);
    if let Some(grades) = &judged.grades {
        graded(grades, &mut block);
    }
    if let Some(preference) = &judged.preference {
        preferred(&mut block, preference);
    }
    cost(&judged.cost, &mut block);
    block.end(&judged.cautions)
}

fn judge(judge: &Judge, block: &mut Block) {
    let temperature = match judge.temperature {
        Some(temperature) => format!("temperature {temperature}"),
        None => "the server's own temperature".to_owned(),
    };
    let Judge { model, backend, .. } = judge;
    block.line("Judge:", Some(format!("{model} ({backend}, {temperature})")));
    let digest: String = judge.rubric_digest.chars().take(12).collect();
    block.line("Rubric:", Some(format!("{} (sha256 {digest}…)", judge.rubric)));
}

fn graded(grades: &Grades, block: &mut Block) {
    block.section("Grades");
    let Grades { score, .. } = grades;
    let name = grades.name.as_deref().unwrap_or("grade");
    let scale = format!("{}-{}", grades.lowest, grades.highest);
    block.line(&format!("{name} ({scale}, mean of {}):", score.count), Some(decimals(score.mean)));
    block.line("  95% confidence:", score.confidence.map(|bounds| bounds.words(" - ", decimals)));
    block.line("  not judged:", score.unjudged.words());
    groups(block, "of class", "all others", &score.by_class);
    groups(block, "of turn", "later", &score.by_turn);
    if let Some(repeats) = &grades.repeats {
        repeated(block, repeats);
    }
    for (name, against) in &grades.against {
        block.line(
            &format!("against {name}, right / wrong:"),
            Some(format!("{} / {}", against.right, against.wrong)),
        );
        let mean = |mean: Option<f64>| mean.map_or("-".to_owned(), decimals);
        block.line(
            "  mean grade, right / wrong:",
            Some(format!("{} / {}", mean(against.right_mean), mean(against.wrong_mean))),
        );
        block.line("  correlation (point-biserial):", against.correlation.map(decimals));
        block.line("  right graded above wrong (%):", against.concordance.map(percent));
    }
}

fn groups(block: &mut Block, of: &str, others: &str, groups: &[ScoredGroup]) {
    for group in groups {
        let name = group.name.as_deref().unwrap_or(others);
        let name: String = name.chars().take(20).collect();
        let mean = group.mean.map_or("-".to_owned(), decimals);
        let bounds = group.confidence.map(|bounds| format!(" ({})", bounds.words(" - ", decimals)));
        block.line(
            &format!("  {of} {name}, {} judged:", group.count),
            Some(format!("{mean}{}", bounds.unwrap_or_default())),
        );
    }
}

fn repeated(block: &mut Block, repeats: &Repeated) {
    block.line("Judged more than once:", Some(repeats.prompts));
    block.line("  pairs of verdicts that agree (%):", Some(percent(repeats.identical_share)));
    block.line("  distance of two grades, mean:", repeats.mean_difference.map(decimals));
}

fn preferred(block: &mut Block, preference: &Preference) {
    block.section("Preference");
    let Preference { wins, ties, losses, .. } = preference;
    block.line("Wins / ties / losses of the run:", Some(format!("{wins} / {ties} / {losses}")));
    block.count("  without a verdict in both orders:", preference.unjudged);
    block.line("Win rate, ties as half (%):", preference.win_rate.map(percent));
    block.line(
        "  95% confidence:",
        preference.confidence.map(|bounds| bounds.words(" - ", percent)),
    );
    block.line("  sign test, p:", preference.probability.map(decimals));
    if let Some(share) = preference.consistent_share {
        let of = format!("{} ({} of {})", percent(share), preference.consistent, preference.pairs);
        block.line("Pairs both orders agree on (%):", Some(of));
    }
    block.line("Verdicts for the answer shown first (%):", preference.first_share.map(percent));
    if let Some(repeats) = &preference.repeats {
        repeated(block, repeats);
    }
}

fn cost(cost: &Cost, block: &mut Block) {
    block.section("Cost of the Judging");
    block.line("Requests:", Some(cost.requests));
    let tokens = |tokens: Option<u64>| tokens.map_or("-".to_owned(), |own| own.to_string());
    block.line("Input tokens:", Some(tokens(cost.input_tokens)));
    block.line("Output tokens:", Some(tokens(cost.output_tokens)));
    block.count("Requests with unknown counts:", cost.uncounted);
    block.line("Duration (s):", cost.duration_s.map(|duration| format!("{duration:.2}")));
    if let (Some(price), Some(total)) = (cost.price, cost.total) {
        let TokenPrice { input, output } = price;
        block.line(
            "Price:",
            Some(format!("{total:.6} (a million tokens: {input} in, {output} out)")),
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
