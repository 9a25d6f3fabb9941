//! Anchors of headings as GitHub makes them: small letters, digits, hyphens and underscores, and a
//! number after one that was there before.

use std::collections::HashMap;

/// The anchors of a page's headings, in the order of the headings.
#[derive(Default)]
pub(crate) struct Slugs {
    /// The number of times that each was given again.
    given: HashMap<String, usize>,
}

impl Slugs {
    pub(crate) fn next(&mut self, heading: &str) -> String {
        let base: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || ['-', '_', ' '].contains(c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut slug = base.clone();
        while self.given.contains_key(&slug) {
            let again = self.given.entry(base.clone()).or_default();
            *again += 1;
            slug = format!("{base}-{again}");
        }
        self.given.insert(slug.clone(), 0);
        slug
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_githubs() {
        let mut slugs = Slugs::default();
        for (heading, slug) in [
            ("Turbomind Engine", "turbomind-engine"),
            ("Qwen3-30B-A3B-FP8", "qwen3-30b-a3b-fp8"),
            ("Qwen/Qwen3-8B", "qwenqwen3-8b"),
            ("Qwen3-30B-A3B-FP8", "qwen3-30b-a3b-fp8-1"),
            ("vLLM 0.10.1, 8x H800", "vllm-0101-8x-h800"),
            ("a & b_c", "a--b_c"),
            ("Qwen3-30B-A3B-FP8 1", "qwen3-30b-a3b-fp8-1-1"),
            ("Qwen3-30B-A3B-FP8", "qwen3-30b-a3b-fp8-2"),
            ("模型 Ü", "模型-ü"),
        ] {
            assert_eq!(slugs.next(heading), slug, "{heading}");
        }
    }
}
