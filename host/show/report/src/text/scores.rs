//! Scores as text: means with their intervals, groups, unjudged answers, and examples of the worst
//! answers.

use super::block::{Block, or_dash};
use result::summary::{Bounds, ScoredGroup, Summary};

/// Characters of a name of a score or a group in a table.
const NAME: usize = 32;

/// Scores of the whole run, then each score's mean, interval and unjudged answers.
pub(super) fn headline(block: &mut Block, summary: &Summary) {
    block.section("Scores");
    // A scorer's figure of the run as a whole is its main figure; there is room for few lines.
    for (name, value) in &summary.run_scores {
        block.line(&format!("{name}:"), Some(decimals(*value)));
    }
    for (name, score) in &summary.scores {
        block.line(&format!("{name} (mean of {}):", score.count), Some(decimals(score.mean)));
        block.line("  95% confidence:", score.confidence.map(between));
        block.line("  not judged:", score.unjudged.label());
    }
    for silent in &summary.silent_scorers {
        block.prose(&silent.label());
    }
}

/// The sections on scores, if the run has any.
pub(super) fn scores(block: &mut Block, summary: &Summary) {
    headline(block, summary);
    table(block, ("Scores by Turn", "Turn", "later"), summary, |score| &score.by_turn);
    table(block, ("Scores by Class", "Class", "all others"), summary, |score| &score.by_class);
    block.section("Worst Answers");
    for (name, score) in &summary.scores {
        for example in &score.examples {
            block.prose(&format!(
                "{name} {} of request {}, sample {}",
                decimals(example.score),
                example.index,
                example.id
            ));
            if let Some(prompt) = &example.prompt_end {
                block.prose(&format!("  prompt:    …{prompt}"));
            }
            block.prose(&format!("  answer:    {}", example.answer));
            if let Some(reference) = &example.reference {
                block.prose(&format!("  reference: {reference}"));
            }
        }
    }
}

fn table(
    block: &mut Block,
    (title, head, others): (&'static str, &str, &str),
    summary: &Summary,
    groups: impl Fn(&result::summary::Score) -> &[ScoredGroup],
) {
    let judged = [("Judged", 8), ("Mean", 8), ("95% confidence", 19), ("Not judged", 10)];
    let heads = [&[("Score", 0), (head, 0)][..], &judged].concat();
    let scores = summary.scores.iter();
    let groups = scores.flat_map(|(name, score)| groups(score).iter().map(move |own| (name, own)));
    let rows = groups.map(|(name, group)| {
        vec![
            shown(name),
            shown(group.name.as_deref().unwrap_or(others)),
            group.count.to_string(),
            or_dash(group.mean, decimals),
            or_dash(group.confidence, between),
            group.unjudged.count().to_string(),
        ]
    });
    block.section(title);
    block.table(2, &heads, rows);
}

fn shown(name: &str) -> String {
    name.chars().take(NAME).collect()
}

fn between(bounds: Bounds) -> String {
    bounds.label(" - ", decimals)
}

/// Scores are often shares, so they have four decimals, while times have two.
fn decimals(score: f64) -> String {
    format!("{score:.4}")
}

#[cfg(test)]
mod tests {
    use crate::exchanges::{facts, reply};
    use crate::text::text;
    use model::exchange::Kind::{End, Text};
    use result::summary::Summary;

    #[test]
    fn scores_have_intervals_groups_and_examples() {
        let run: Vec<_> = (0..20)
            .map(|index| {
                let mut exchange =
                    reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
                exchange.sample.id = format!("s{index}");
                exchange.sample.class = Some(["easy", "hard"][(index % 2) as usize].into());
                exchange.sample.reference = (index > 0).then(|| "Paris".into());
                exchange.output = "Lyon\nI think\u{1b}[31m".into();
                exchange
            })
            .collect();
        let mut facts = facts();
        let wrong = (1..20).map(|index| (index, f64::from(index % 4 != 1)));
        facts.scores.insert("exact-match".into(), wrong.collect());
        facts.run_scores.insert("needle:4k".into(), 0.25);
        let block = text(&Summary::new(&facts, &run));
        for line in [
            "exact-match (mean of 19):                0.7368",
            "  95% confidence:                        0.5121 - 0.8819",
            "  not judged:                            1 without a reference",
            "needle:4k:                               0.2500",
            "Score       Class   Judged     Mean      95% confidence Not judged",
            "exact-match easy         9   1.0000     0.7009 - 1.0000          1",
            "exact-match hard        10   0.5000     0.2366 - 0.7634          0",
            "exact-match 0.0000 of request 1, sample s1",
            "  answer:    Lyon I think [31m",
            "  reference: Paris",
        ] {
            assert!(block.lines().any(|shown| shown == line), "no {line} in\n{block}");
        }
        assert!(!block.contains("Scores by Turn"), "{block}");
    }
}
