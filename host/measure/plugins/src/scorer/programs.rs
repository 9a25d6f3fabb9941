//! Scorers that run answers as programs: their declaration, the scores of a killed program, and
//! pass@k.
//!
//! A program may loop, exhaust memory, or change the interpreter that runs it. So each is judged by
//! an instance of its own. A program that the sandbox stops has not passed, which is a score and no
//! failure of the scorer.
//!
//! # The declaration
//!
//! The configuration schema of such a scorer has an annotation beside `properties`:
//!
//! ```json
//! "x-runs-answers": {"passed": "code", "killed": "code-killed"}
//! ```
//!
//! The score `passed` is 1 for a program that passed its tests; `killed` is 1 for a program that
//! was stopped. The host gives a program that it stops 0 for `passed` and 1 for `killed`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

const KEY: &str = "x-runs-answers";

/// Most bytes of sample ids that are kept for pass@k, which must cover all samples.
const IDS: usize = 16 << 20;

/// The numbers of attempts for which pass@k is given, if every sample has as many answers.
const ATTEMPTS: [u32; 11] = [1, 2, 5, 8, 10, 16, 20, 32, 50, 64, 100];

/// The declaration of a scorer that runs answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declaration {
    /// The score that is 1 for a program that passed.
    passed: String,
    /// The score that is 1 for a program that was stopped.
    killed: String,
}

impl Declaration {
    /// Reads the declaration in a configuration schema; `None` if the scorer does not run answers.
    pub fn from_schema(schema: &Value) -> Result<Option<Self>, String> {
        let Some(value) = schema.get(KEY) else { return Ok(None) };
        let expected = || {
            format!(
                "`{KEY}` in its configuration schema is `{value}`; expected two different names of scores, as in \
                 {{\"passed\": \"code\", \"killed\": \"code-killed\"}}"
            )
        };
        let declared = Self::deserialize(value).map_err(|_| expected())?;
        let named = !declared.passed.is_empty() && !declared.killed.is_empty();
        (named && declared.passed != declared.killed).then_some(Some(declared)).ok_or_else(expected)
    }

    pub fn killed(&self) -> Vec<(String, f64)> {
        vec![(self.passed.clone(), 0.0), (self.killed.clone(), 1.0)]
    }

    /// The scores of a program, with 0 for the score of stopped programs.
    pub fn finished(&self, mut scores: Vec<(String, f64)>) -> Vec<(String, f64)> {
        let has = |name: &str| scores.iter().any(|(own, _)| own == name);
        if has(&self.passed) && !has(&self.killed) {
            scores.push((self.killed.clone(), 0.0));
        }
        scores
    }

    /// Returns true if a program with these scores passed; `None` if it was not judged.
    fn has_passed(&self, scores: &[(String, f64)]) -> Option<bool> {
        let passed = scores.iter().find(|(name, _)| *name == self.passed);
        passed.map(|(_, value)| (value - 1.0).abs() < f64::EPSILON)
    }
}

/// The programs of a run: the number of each sample's, and of its passes.
#[derive(Debug, Default)]
pub(super) struct Programs {
    samples: BTreeMap<String, Count>,
    bytes: usize,
    /// True if there were too many samples to count.
    too_many: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    tried: u32,
    passed: u32,
}

impl Programs {
    /// Counts a program of a sample by its scores.
    pub fn add(&mut self, declared: &Declaration, sample: &str, scores: &[(String, f64)]) {
        let Some(passed) = declared.has_passed(scores) else { return };
        if !self.samples.contains_key(sample) {
            self.bytes += sample.len();
            self.too_many |= self.bytes > IDS;
        }
        if self.too_many {
            self.samples.clear();
            return;
        }
        let count = self.samples.entry(sample.to_owned()).or_default();
        count.tried += 1;
        count.passed += u32::from(passed);
    }

    /// pass@k of the run, as `NAME:pass@K`: the mean over the samples, if all have `k` answers.
    pub fn pass_at_k(&self, declared: &Declaration) -> Vec<(String, f64)> {
        let Some(fewest) = self.samples.values().map(|count| count.tried).min() else {
            return Vec::new();
        };
        let samples = self.samples.len() as f64;
        (ATTEMPTS.iter())
            .take_while(|k| **k <= fewest)
            .map(|k| {
                let each = |count: &Count| pass_at_k(count.tried, count.passed, *k);
                let sum: f64 = self.samples.values().map(each).sum();
                (format!("{}:pass@{k}", declared.passed), sum / samples)
            })
            .collect()
    }
}

/// The unbiased estimate of the probability that at least one of `k` programs passes, where
/// `passed` of `tried` pass: `1 - C(n - c, k) / C(n, k)`, by Chen et al., 2021 (figure 3).
fn pass_at_k(tried: u32, passed: u32, k: u32) -> f64 {
    let failed = tried - passed;
    if failed < k {
        return 1.0;
    }
    let factors = (failed + 1..=tried).map(|i| 1.0 - f64::from(k) / f64::from(i));
    1.0 - factors.product::<f64>()
}

/// The mean of each score of several programs for one request.
pub(super) fn mean(programs: &[Vec<(String, f64)>]) -> Vec<(String, f64)> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (name, value) in programs.iter().flatten() {
        let (sum, count) = sums.entry(name).or_default();
        *sum += value;
        *count += 1.0;
    }
    let mean = |(name, (sum, count)): (&str, (f64, f64))| (name.to_owned(), sum / count);
    sums.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declared() -> Declaration {
        let schema = json!({KEY: {"passed": "code", "killed": "code-killed"}});
        Declaration::from_schema(&schema).unwrap().unwrap()
    }

    fn scores(passed: bool) -> Vec<(String, f64)> {
        vec![("code".to_owned(), f64::from(u8::from(passed)))]
    }

    #[test]
    fn declaration_requires_two_names() {
        assert_eq!(Declaration::from_schema(&json!({"type": "object"})), Ok(None));
        for wrong in [
            json!(true),
            json!({"passed": "code"}),
            json!({"passed": "code", "killed": "code"}),
            json!({"passed": "", "killed": "code"}),
            json!({"passed": "a", "killed": "b", "more": "c"}),
        ] {
            let error = Declaration::from_schema(&json!({KEY: wrong})).unwrap_err();
            assert!(error.contains("expected two different names"), "{error}");
        }
    }

    #[test]
    fn killed_program_does_not_pass() {
        assert_eq!(declared().has_passed(&declared().killed()), Some(false));
        assert_eq!(declared().has_passed(&[]), None);
    }

    #[test]
    fn estimate_is_the_share_of_passing_choices() {
        // All choices of k of n programs, counted one by one; the first c programs pass.
        for tried in 1_u32..=10 {
            for passed in 0..=tried {
                for k in 1..=tried {
                    let choices = || (0_u32..1 << tried).filter(|set| set.count_ones() == k);
                    let good = choices().filter(|set| set & ((1 << passed) - 1) != 0);
                    let share = good.count() as f64 / choices().count() as f64;
                    let estimate = pass_at_k(tried, passed, k);
                    assert!((estimate - share).abs() < 1e-12, "{tried} {passed} {k}");
                }
            }
        }
    }

    #[test]
    fn pass_at_k_is_the_mean_over_samples_that_all_have_k_answers() {
        let mut programs = Programs::default();
        for (sample, passed) in [("a", true), ("a", false), ("b", false), ("b", false), ("b", true)]
        {
            programs.add(&declared(), sample, &scores(passed));
        }
        let wanted = [
            ("code:pass@1".to_owned(), f64::midpoint(1.0 / 2.0, 1.0 / 3.0)),
            ("code:pass@2".to_owned(), f64::midpoint(1.0, 2.0 / 3.0)),
        ];
        let found = programs.pass_at_k(&declared());
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found.0, wanted.0);
            assert!((found.1 - wanted.1).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(Programs::default().pass_at_k(&declared()), []);
    }

    #[test]
    fn unjudged_program_is_not_counted() {
        let mut programs = Programs::default();
        programs.add(&declared(), "a", &[]);
        assert_eq!(programs.pass_at_k(&declared()), []);
    }

    #[test]
    fn too_many_samples_have_no_pass_at_k() {
        let mut programs = Programs::default();
        for number in 0..=16 {
            let id = format!("{number}{}", "x".repeat(1 << 20));
            programs.add(&declared(), &id, &scores(true));
        }
        programs.add(&declared(), "one more", &scores(true));
        assert!(programs.samples.is_empty());
        assert_eq!(programs.pass_at_k(&declared()), []);
    }

    #[test]
    fn scores_of_several_programs_are_averaged() {
        let found = mean(&[declared().finished(scores(true)), declared().killed()]);
        let wanted = [("code".to_owned(), 0.5), ("code-killed".to_owned(), 0.5)];
        assert_eq!(found, wanted);
        assert_eq!(declared().finished(Vec::new()), []);
    }
}
