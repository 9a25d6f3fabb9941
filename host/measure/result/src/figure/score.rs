//! Scores as figures: `score.exact-match` is the score of that name, as a mean or of the run.

use super::Better;

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

/// Finds the ends of the scale of a score, given the least and the most of its values, and whether
/// all are whole: 0 to 1, and 1 to 5 or to 10 for grades. `None` for counts, lengths and rates of
/// errors, and for other values. Where no grade is above 5 and none is 5, the scale may reach 10.
pub(crate) fn scale(name: &str, [least, most]: [f64; 2], are_whole: bool) -> Option<[f64; 2]> {
    let name = first_of(name);
    let is_count = name == "word-hits" || name.starts_with("output-length");
    if is_count || better(name) != Better::Higher {
        return None;
    }
    if least >= 0.0 && most <= 1.0 {
        return Some([0.0, 1.0]);
    }
    (are_whole && least >= 1.0 && most <= 10.0)
        .then_some([1.0, if most == 5.0 { 5.0 } else { 10.0 }])
}

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
    fn scores_on_a_scale_have_its_ends() {
        for (name, seen, are_whole, wanted) in [
            ("judge.grade", [3.0, 5.0], true, Some([1.0, 5.0])),
            ("judge.grade", [2.0, 4.0], true, Some([1.0, 10.0])),
            ("judge.grade.2", [4.0, 7.0], true, Some([1.0, 10.0])),
            ("judge.grade", [4.0, 11.0], true, None),
            ("mine", [1.5, 4.5], false, None),
            ("rouge-l", [0.0, 0.8], false, Some([0.0, 1.0])),
            ("word-error-rate", [0.0, 0.8], false, None),
            ("word-hits", [1.0, 5.0], true, None),
            ("output-length", [1.0, 5.0], true, None),
        ] {
            assert_eq!(scale(name, seen, are_whole), wanted, "{name} {seen:?}");
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
