//! Other tools' results.

use audit::claim;
use audit::text::{self, text};

/// A file with claims in any format: it is refused with words, or audited and shown.
pub fn audit(data: &[u8]) {
    match claim::read("file", data) {
        Ok(document) => {
            let report = audit::documents(std::slice::from_ref(&document));
            assert_eq!(report.results.len(), document.claims.len());
            let totals = &report.totals;
            let counted = totals.valid + totals.suspect + totals.invalid;
            assert_eq!(counted, report.results.len());
            for headline in &report.headlines {
                assert!(headline.rests_on.iter().all(|index| *index < counted));
            }
            assert!(!text(&report).is_empty());
            for result in &report.results {
                assert!(!text::described(&result.claim).is_empty());
                assert!(!text::verdict(result).is_empty());
            }
            serde_json::to_vec(&report).expect("a report is JSON");
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
