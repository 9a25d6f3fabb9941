//! SQuAD's comparison of texts: `normalize_answer`, `exact_match_score` and `f1_score` of its
//! `evaluate-v1.1.py` (Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of
//! Text", 2016).

use std::collections::HashMap;

use judging::python;

/// 1 if the normalized texts are equal, 0 if not.
pub fn exact(answer: &str, reference: &str) -> f64 {
    let (answer, reference) = (normalized(answer), normalized(reference));
    f64::from(u8::from(python::split(&answer).eq(python::split(&reference))))
}

/// F1 of the words; 0 if none is common, so also where both texts have none.
pub fn f1(answer: &str, reference: &str) -> f64 {
    let (answer, reference) = (normalized(answer), normalized(reference));
    let mut counts: HashMap<&str, u64> = HashMap::new();
    let mut wanted = 0_u64;
    for word in python::split(&reference) {
        *counts.entry(word).or_default() += 1;
        wanted += 1;
    }
    let (mut same, mut had) = (0_u64, 0_u64);
    for word in python::split(&answer) {
        had += 1;
        if let Some(left) = counts.get_mut(word).filter(|left| **left > 0) {
            *left -= 1;
            same += 1;
        }
    }
    if same == 0 {
        return 0.0;
    }
    let precision = same as f64 / had as f64;
    let recall = same as f64 / wanted as f64;
    2.0 * precision * recall / (precision + recall)
}

/// Lower case, without ASCII punctuation and, afterwards, without articles: `\b(a|an|the)\b`.
fn normalized(text: &str) -> String {
    let text = python::without_ascii_punctuation(&text.to_lowercase());
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        // `_` is part of a word in a pattern, but the punctuation is gone.
        let word = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        kept.push_str(match &rest[..word] {
            "a" | "an" | "the" => " ",
            word => word,
        });
        rest = &rest[word..];
        let gap = rest.find(char::is_alphanumeric).unwrap_or(rest.len());
        kept.push_str(&rest[..gap]);
        rest = &rest[gap..];
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_are_words_of_their_own() {
        assert_eq!(exact("The—cat's   paw", "—cats paw"), 1.0);
        assert_eq!(exact("a theme", "theme"), 1.0);
        assert_eq!(exact("anthem", "m"), 0.0);
        assert_eq!(f1("the", "a"), 0.0);
        assert_eq!(f1("cat cat", "cat dog"), 0.5);
    }
}
