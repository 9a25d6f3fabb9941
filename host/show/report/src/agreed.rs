//! Agreement of a run's answers with a baseline's, as text.

use crate::text::Block;
use compare::agreed::Agreed;
use result::agreement::{Floor, Judgement};

/// The agreement as text, with a newline at its end.
pub fn text(agreed: &Agreed) -> String {
    let mut block = Block::titled(" Agreement of Answers ");
    let Agreed { answers, scores, .. } = agreed;
    block.line("Run:", Some(&agreed.run));
    block.line("Baseline:", Some(&agreed.baseline));
    block.line("Samples that both answered:", Some(answers.samples));
    if answers.baseline_only + answers.run_only > 0 {
        let alone = format!("{} / {}", answers.baseline_only, answers.run_only);
        block.line("Answered by one, baseline / run:", Some(alone));
    }
    block.line("Identical answers:", Some(answers.identical));
    block.line("Identical answers (%):", answers.identical_share.map(percent));
    let bounds = answers.confidence;
    block.line("  95% confidence:", bounds.map(|bounds| bounds.label(" - ", percent)));
    if let Some(apart) = &answers.apart {
        let character = format!("{:.0}", apart.first_character);
        block.line("First character that differs, median:", Some(character));
        let token = apart.first_token.map(|token| format!("{token:.0}"));
        block.line("First token that differs, median:", token);
        let prefix = percent(apart.shared_prefix);
        block.line("Shared prefix, mean (%):", Some(prefix));
        let ratio = apart.length_ratio.map(|ratio| format!("{ratio:.4}"));
        block.line("Length of answers to the baseline's:", ratio);
        block.count("Not compared by character:", apart.not_held);
    }
    for (name, flipped) in scores {
        let of = format!("{:.4} -> {:.4}", flipped.baseline, flipped.value);
        block.line(&format!("{name}:"), Some(of));
        block.line("  flips:", Some(flipped.label()));
    }
    if let Some(floor) = &answers.floor {
        block.section("Noise Floor");
        repeats(&mut block, agreed, floor);
    }
    block.section("Answers That Differ");
    for parting in &answers.examples {
        let token = parting.token.map(|token| format!(" (token {token})"));
        block.prose(&format!(
            "{}, request {}, at character {}{}: …{}",
            parting.id,
            parting.index,
            parting.character,
            token.unwrap_or_default(),
            parting.before
        ));
        block.prose(&format!("  baseline: {}", parting.baseline));
        block.prose(&format!("  run:      {}", parting.run));
    }
    block.end(&agreed.cautions)
}

fn repeats(block: &mut Block, agreed: &Agreed, floor: &Floor) {
    block.line("Repeats of the baseline:", Some(agreed.floor.join(", ")));
    block.line("Samples that all answered:", Some(floor.samples));
    let repeats = percent(floor.differing_share);
    block.line("Answers of repeats that differ (%):", Some(repeats));
    let run = percent(floor.run_differing_share);
    block.line("Answers of the run that differ (%):", Some(run));
    let bounds = floor.confidence;
    let signed = |share: f64| format!("{:+.2}", share * 100.0);
    block.line(
        "  more than repeats, 95% confidence:",
        bounds.map(|bounds| bounds.label(" - ", signed)),
    );
    let verdict = match floor.judgement {
        Judgement::Changed => {
            "! changed: the run's answers differ more than repeats do, beyond chance"
        }
        Judgement::Cleared => {
            "= cleared: the run's answers are not shown to differ more than repeats do"
        }
        Judgement::Unknown => "? unknown: too few samples to say",
    };
    let chance = floor.probability.map(|p| format!(" (p = {p:.4})")).unwrap_or_default();
    block.line("Verdict:", Some(format!("{verdict}{chance}")));
}

fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::exchanges::{facts, reply};
    use compare::agreed::Agreeing;
    use model::exchange::Exchange;
    use model::exchange::Kind::{End, Text};
    use result::summary::RunFacts;

    fn run(wrong: impl Fn(u64) -> bool) -> (RunFacts, Vec<Exchange>) {
        let exchanges = (0..50).map(|index| {
            let mut exchange = reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
            exchange.sample.id = format!("s{index}");
            exchange.output = if wrong(index) {
                "It is Lyon\u{1b}[2J".to_owned()
            } else {
                "It is Paris".to_owned()
            };
            exchange
        });
        let scores = (0..50).map(|index| (index, f64::from(!wrong(index))));
        let mut facts = facts();
        facts.scores.insert("contains".into(), scores.collect());
        (facts, exchanges.collect())
    }

    #[test]
    fn the_text_shows_changed_answers() {
        let plan = crate::charts::fixture::plan("a");
        let mut agreeing = Agreeing::default();
        let read = |run: Vec<Exchange>| run.into_iter().map(Ok::<_, Infallible>);
        let (before, exchanges) = run(|_| false);
        let Ok(()) = agreeing.baseline(("a", &plan, &before), read(exchanges));
        let Ok(()) = agreeing.repeat("b", read(run(|index| index == 7).1));
        let (after, exchanges) = run(|index| index % 5 == 0);
        let Ok(agreed) = agreeing.run(("c", &plan, &after), read(exchanges));
        let text = text(&agreed);
        for line in [
            "Samples that both answered:              50",
            "Identical answers:                       40",
            "Identical answers (%):                   80.00",
            "First character that differs, median:    6",
            "contains:                                1.0000 -> 0.8000",
            "Answers of repeats that differ (%):      2.00",
            "Answers of the run that differ (%):      20.00",
            "s0, request 0, at character 6: …It is ",
            "  run:      Lyon [2J",
        ] {
            assert!(text.lines().any(|shown| shown == line), "no {line} in\n{text}");
        }
        assert!(text.contains("! changed"), "{text}");
        assert!(text.contains("caution: a sampled its answers"), "{text}");
        assert!(text.contains("0 higher, 10 lower (McNemar's test, exact; p = 0.0020)"), "{text}");
        let json = serde_json::to_string(&agreed).unwrap();
        assert_eq!(serde_json::from_str::<Agreed>(&json).unwrap(), agreed);
    }
}
