//! Agreement of a run's answers with those of a baseline, as text.

use std::fmt::Write;

use super::plain;
use compare::agreed::Agreed;
use result::agreement::{Floor, Judgement};

/// The column of the values, minus one.
const LABELS: usize = 40;

/// The agreement as text, with a newline at its end.
pub fn text(agreed: &Agreed) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{:=^50}", " Agreement of Answers ");
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<LABELS$} {}", plain(&value));
    };
    let Agreed {
        answers, scores, ..
    } = agreed;
    line("Run:", agreed.run.clone());
    line("Baseline:", agreed.baseline.clone());
    line("Samples that both answered:", answers.samples.to_string());
    if answers.baseline_only + answers.run_only > 0 {
        let alone = format!("{} / {}", answers.baseline_only, answers.run_only);
        line("Answered by one, baseline / run:", alone);
    }
    line("Identical answers:", answers.identical.to_string());
    if let Some(share) = answers.identical_share {
        line("Identical answers (%):", percent(share));
    }
    if let Some(bounds) = answers.confidence {
        line("  95% confidence:", bounds.words(" - ", percent));
    }
    if let Some(apart) = &answers.apart {
        let character = format!("{:.0}", apart.first_character);
        line("First character that differs, median:", character);
        if let Some(token) = apart.first_token {
            line("First token that differs, median:", format!("{token:.0}"));
        }
        line("Shared prefix, mean (%):", percent(apart.shared_prefix));
        if let Some(ratio) = apart.length_ratio {
            line(
                "Length of answers to the baseline's:",
                format!("{ratio:.4}"),
            );
        }
        if apart.not_held > 0 {
            line("Not compared by character:", apart.not_held.to_string());
        }
    }
    for (name, flipped) in scores {
        let of = format!("{:.4} -> {:.4}", flipped.baseline, flipped.value);
        line(&format!("{}:", plain(name)), of);
        line("  flips:", flipped.words());
    }
    if let Some(floor) = &answers.floor {
        let _ = writeln!(text, "{:-^50}", "Noise Floor");
        floor_text(&mut text, agreed, floor);
    }
    if !answers.examples.is_empty() {
        let _ = writeln!(text, "{:-^50}", "Answers That Differ");
    }
    for parting in &answers.examples {
        let token = parting.token.map(|token| format!(" (token {token})"));
        let _ = writeln!(
            text,
            "{}, request {}, at character {}{}: …{}\n  baseline: {}\n  run:      {}",
            plain(&parting.id),
            parting.index,
            parting.character,
            token.unwrap_or_default(),
            plain(&parting.before),
            plain(&parting.baseline),
            plain(&parting.run)
        );
    }
    for caution in &agreed.cautions {
        let _ = writeln!(text, "caution: {}", plain(caution));
    }
    let _ = writeln!(text, "{:=^50}", "");
    text
}

fn floor_text(text: &mut String, agreed: &Agreed, floor: &Floor) {
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<LABELS$} {}", plain(&value));
    };
    line("Repeats of the baseline:", agreed.floor.join(", "));
    line("Samples that all answered:", floor.samples.to_string());
    let repeats = percent(floor.differing_share);
    line("Answers of repeats that differ (%):", repeats);
    let run = percent(floor.run_differing_share);
    line("Answers of the run that differ (%):", run);
    if let Some(bounds) = floor.confidence {
        let bounds = bounds.words(" - ", |share| format!("{:+.2}", share * 100.0));
        line("  more than repeats, 95% confidence:", bounds);
    }
    let verdict = match floor.judgement {
        Judgement::Changed => {
            "! changed: the run's answers differ more than those of repeats, beyond chance"
        }
        Judgement::Cleared => {
            "= cleared: that the run's answers differ more than those of repeats is not shown"
        }
        Judgement::Unknown => "? unknown: too few samples to say",
    };
    let chance = floor.probability.map(|p| format!(" (p = {p:.4})"));
    line(
        "Verdict:",
        format!("{verdict}{}", chance.unwrap_or_default()),
    );
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
            exchange.output = match wrong(index) {
                true => "It is Lyon\u{1b}[2J".to_owned(),
                false => "It is Paris".to_owned(),
            };
            exchange
        });
        let scores = (0..50).map(|index| (index, f64::from(!wrong(index))));
        let mut facts = facts();
        facts.scores.insert("contains".into(), scores.collect());
        (facts, exchanges.collect())
    }

    #[test]
    fn what_an_option_changes_is_told_in_words() {
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
            assert!(
                text.lines().any(|shown| shown == line),
                "no {line} in\n{text}"
            );
        }
        assert!(text.contains("! changed"), "{text}");
        assert!(text.contains("caution: a sampled its answers"), "{text}");
        assert!(
            text.contains("0 higher, 10 lower (McNemar's test, exact; p = 0.0020)"),
            "{text}"
        );
        let json = serde_json::to_string(&agreed).unwrap();
        assert_eq!(serde_json::from_str::<Agreed>(&json).unwrap(), agreed);
    }
}
