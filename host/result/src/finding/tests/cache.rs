use super::*;
use crate::summary::cache::Cache;
use model::session::Cache as Policy;

/// The findings on the cache of a run of ten requests with 1,000 tokens each, of which so many are reusable and found.
fn found(policy: Policy, reusable: u32, cached: Option<u32>) -> Vec<(Id, Severity)> {
    let mut cache = Cache {
        policy,
        page: 16,
        ..Cache::default()
    };
    (0..10).for_each(|_| cache.add(1000, reusable, cached));
    let facts = RunFacts {
        cache: Some(cache),
        ..facts()
    };
    let summary = Summary::of(&facts, &[reply(0, 1000, &[])]);
    let own = [Id::CacheDiffers, Id::WarmByAccident, Id::WarmCache];
    let findings = of(&summary).into_iter();
    let findings = findings.filter(|finding| own.contains(&finding.id));
    findings
        .map(|finding| (finding.id, finding.severity))
        .collect()
}

#[test]
fn a_cache_that_finds_what_repeats_is_no_finding() {
    for policy in [Policy::Keep, Policy::Salt, Policy::Flush] {
        assert_eq!(found(policy, 480, Some(480)), []);
        assert_eq!(found(policy, 480, None), []);
        // Within the margin of 5 percentage points.
        assert_eq!(found(policy, 480, Some(431)), []);
        assert_eq!(found(policy, 480, Some(529)), []);
    }
}

#[test]
fn a_cache_that_finds_less_or_counts_otherwise_differs() {
    let differs = [(Id::CacheDiffers, Severity::Note)];
    assert_eq!(found(Policy::Keep, 480, Some(429)), differs);
    // A page more for each request is explained by smaller pages, but is worth a note.
    assert_eq!(found(Policy::Keep, 480, Some(540)), differs);
    assert_eq!(found(Policy::Salt, 480, Some(900)), differs);
}

#[test]
fn a_cache_that_finds_more_than_the_run_repeats_was_warm() {
    let warm = [(Id::WarmByAccident, Severity::Suspect)];
    assert_eq!(found(Policy::Keep, 480, Some(900)), warm);
    assert_eq!(found(Policy::Keep, 0, Some(67)), warm);
    assert_eq!(
        found(Policy::Keep, 0, Some(66)),
        [(Id::CacheDiffers, Severity::Note)]
    );
}
