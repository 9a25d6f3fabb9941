//! Scores as figures: `score.exact-match` is the mean of the score of that name, or the score of
//! the run as a whole.

use super::Better;
use crate::summary::Summary;

/// The beginning of names of scores.
pub(super) const PREFIX: &str = "score.";

/// Finds the direction in which a score is better: the higher, as right answers are counted. Those
/// that count faults are better the lower they are: `NAME-unparsed`, and the single checks of
/// `sanity`. A ratio of lengths is neither.
pub fn better(name: &str) -> Better {
    match first_of(name) {
        "output-length-ratio" => Better::Neither,
        fault if fault.ends_with("-unparsed") || fault.starts_with("sanity-") => Better::Lower,
        _ => Better::Higher,
    }
}

/// The name without the number of a second score of that name, given later: `sanity-empty` of
/// `sanity-empty.2`.
fn first_of(name: &str) -> &str {
    let numbered = name
        .rsplit_once('.')
        .filter(|(_, number)| number.parse::<u32>().is_ok());
    numbered.map_or(name, |(first, _)| first)
}

/// True if a score is of what an answer says, which an answer without its end no longer says in
/// full. Lengths are not, and the checks of `sanity` have one for the cut itself.
pub(crate) fn needs_the_end(name: &str) -> bool {
    let name = first_of(name);
    !(name == "sane" || name.starts_with("sanity-") || name.starts_with("output-length"))
}

/// The value of a score in a summary; absent if no scorer gave it.
pub(super) fn read(name: &str, summary: &Summary) -> Option<f64> {
    let mean = summary.scores.get(name).map(|score| score.mean);
    mean.or_else(|| summary.run_scores.get(name).copied())
}

/// The mean where requests that failed or were not sent count as the worst: as 0, or as 1 for a
/// share of faults. Otherwise a run could pass because it loses the samples that it would answer
/// wrongly. Absent for scores of the run as a whole, which are no means, and for those that are
/// neither better nor worse.
pub(super) fn with_failures(name: &str, summary: &Summary) -> Option<f64> {
    let score = summary.scores.get(name)?;
    let worst = match better(name) {
        Better::Higher => 0.0,
        Better::Lower => 1.0,
        Better::Neither => return None,
    };
    let (judged, failed) = (score.count as f64, summary.requests.failed as f64);
    Some((score.mean * judged + worst * failed) / (judged + failed)).filter(|_| failed > 0.0)
}

/// Scores that a message names at most.
const NAMED: usize = 12;

/// Says that a score was not measured, and which were.
pub(crate) fn there_are(summary: &Summary) -> String {
    let names = summary.scores.keys().chain(summary.run_scores.keys());
    let names: Vec<String> = names
        .take(NAMED)
        .map(|name| format!("{PREFIX}{name}"))
        .collect();
    let silent = summary.silent_scorers.iter().map(|scorer| scorer.words());
    let silent: Vec<String> = silent.collect();
    let (names, silent) = (names.join(", "), silent.join("; "));
    match (names.is_empty(), silent.is_empty()) {
        (false, true) => format!("not measured; the run has {names}"),
        (false, false) => format!("not measured: {silent}; the run has {names}"),
        (true, false) => format!("not measured: {silent}"),
        (true, true) => {
            "not measured: no scorer judged the answers; name one under [[scorers]]".to_owned()
        }
    }
}

/// Writes the error of a name that ends where the score's begins.
pub(super) fn unnamed(text: &str) -> String {
    format!("`{text}`: name the score, as in `score.exact-match`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;
    use crate::summary::fixture::{facts, failed, reply};
    use model::exchange::Class;
    use model::exchange::Kind::{End, Text};

    #[test]
    fn faults_are_better_the_fewer_there_are() {
        for (name, wanted) in [
            ("exact-match", Better::Higher),
            ("exact-match.2", Better::Higher),
            ("final-number-unparsed", Better::Lower),
            ("sanity-empty.12", Better::Lower),
            ("sane", Better::Higher),
            ("output-length-ratio", Better::Neither),
        ] {
            assert_eq!(better(name), wanted, "{name}");
        }
    }

    #[test]
    fn lengths_and_sanity_need_no_end_of_an_answer() {
        for (name, needs) in [
            ("final-number-strict", true),
            ("exact-match.2", true),
            ("output-length", false),
            ("output-length-ratio.3", false),
            ("sane", false),
            ("sanity-cut", false),
        ] {
            assert_eq!(needs_the_end(name), needs, "{name}");
        }
    }

    #[test]
    fn scores_are_figures_and_lost_requests_are_wrong_answers() {
        let answer = |index| reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
        let mut run: Vec<_> = (0..10).map(answer).collect();
        let mut facts = facts();
        let right = (0..10).map(|index| (index, f64::from(index % 5 != 0)));
        facts.scores.insert("exact-match".into(), right.collect());
        let unparsed = (0..10).map(|index| (index, 0.0));
        facts
            .scores
            .insert("exact-match-unparsed".into(), unparsed.collect());
        facts.run_scores.insert("needle:4k".into(), 0.25);
        let read = |run: &[_]| {
            let summary = Summary::of(&facts, run);
            ["exact-match", "exact-match-unparsed", "needle:4k", "none"].map(|name| {
                let figure: Figure = format!("score.{name}").parse().unwrap();
                (figure.read(&summary), figure.read_with_failures(&summary))
            })
        };
        let same = |value: f64| (Some(value), Some(value));
        assert_eq!(read(&run), [same(0.8), same(0.0), same(0.25), (None, None)]);
        for exchange in &mut run[1..3] {
            *exchange = failed(exchange.clone(), Class::Truncated, "cut off");
        }
        let [right, unparsed, whole, _] = read(&run);
        assert_eq!(right, (Some(0.75), Some(0.6)));
        assert_eq!(unparsed, (Some(0.0), Some(0.2)));
        assert_eq!(whole, same(0.25));
    }
}
