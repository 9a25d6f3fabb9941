//! Scores as figures: `score.exact-match` is the mean of the score of that name, or the score of
//! the run as a whole.

use super::Better;

/// The beginning of names of scores.
pub(super) const PREFIX: &str = "score.";

/// Finds the direction in which a score is better: the higher, as right answers are counted. Scores
/// that count faults are better the lower they are: `NAME-unparsed`, the single checks of `sanity`,
/// error rates and the word errors. A ratio of lengths and the length of a sound are neither.
pub fn better(name: &str) -> Better {
    match first_of(name) {
        "output-length-ratio" | "audio-seconds" => Better::Neither,
        "word-substitutions" | "word-deletions" | "word-insertions" => Better::Lower,
        rate if rate.ends_with("-error-rate") => Better::Lower,
        fault if fault.ends_with("-unparsed") || fault.starts_with("sanity-") => Better::Lower,
        _ => Better::Higher,
    }
}

/// The name without the number of a second score of that name, given later: `sanity-empty` of
/// `sanity-empty.2`.
fn first_of(name: &str) -> &str {
    let numbered = name.rsplit_once('.').filter(|(_, number)| number.parse::<u32>().is_ok());
    numbered.map_or(name, |(first, _)| first)
}

/// True if a score depends on an answer's content, which an answer without its end no longer has in
/// full. Lengths are not, and the checks of `sanity` have one for the cut itself.
pub(crate) fn needs_the_end(name: &str) -> bool {
    let name = first_of(name);
    !(name == "sane" || name.starts_with("sanity-") || name.starts_with("output-length"))
}

/// Writes the error of a name that ends where the score's begins.
pub(super) fn unnamed(text: &str) -> String {
    format!("`{text}`: name the score, as in `score.exact-match`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_better_the_fewer_there_are() {
        for (name, wanted) in [
            ("exact-match", Better::Higher),
            ("exact-match.2", Better::Higher),
            ("final-number-unparsed", Better::Lower),
            ("sanity-empty.12", Better::Lower),
            ("sane", Better::Higher),
            ("output-length-ratio", Better::Neither),
            ("word-error-rate", Better::Lower),
            ("sample-character-error-rate.2", Better::Lower),
            ("word-insertions", Better::Lower),
            ("word-hits", Better::Higher),
            ("audio-seconds", Better::Neither),
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
}
