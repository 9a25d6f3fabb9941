use super::*;
use crate::summary::cache::Cache;
use crate::summary::server::{Figure, Server, TargetMetrics};
use model::session::Cache as Policy;

/// The cache of ten requests with 1,000 tokens and this number of reusable tokens. The server
/// counts `server` tokens of each prompt.
fn cache(policy: Policy, reusable: u32, server: u32, cached: Option<u32>) -> Cache {
    let mut cache = Cache { policy, page: 16, ..Cache::default() };
    (0..10).for_each(|_| cache.add(1000, reusable, cached.map(|cached| (server, cached))));
    cache
}

fn found(policy: Policy, reusable: u32, cached: Option<u32>) -> Vec<(Id, Severity)> {
    found_of(1000, policy, reusable, cached)
}

fn found_of(
    server: u32,
    policy: Policy,
    reusable: u32,
    cached: Option<u32>,
) -> Vec<(Id, Severity)> {
    let cache = Some(cache(policy, reusable, server, cached));
    let summary = Summary::new(&RunFacts { cache, ..facts() }, &[reply(0, 1000, &[])]);
    let own = [Id::CacheDiffers, Id::WarmByAccident, Id::WarmCache];
    let findings = findings(&summary).into_iter().filter(|finding| own.contains(&finding.id));
    findings.map(|finding| (finding.id, finding.severity)).collect()
}

#[test]
fn the_found_share_is_held_against_the_repeats() {
    for policy in [Policy::Keep, Policy::Salt, Policy::Flush] {
        assert_eq!(found(policy, 480, Some(480)), []);
        assert_eq!(found(policy, 480, None), []);
        // Within the margin of 5 percentage points.
        assert_eq!(found(policy, 480, Some(431)), []);
        assert_eq!(found(policy, 480, Some(529)), []);
    }
    let differs = [(Id::CacheDiffers, Severity::Note)];
    assert_eq!(found(Policy::Keep, 480, Some(429)), differs);
    // A page more for each request is explained by smaller pages, but is worth a note.
    assert_eq!(found(Policy::Keep, 480, Some(540)), differs);
    assert_eq!(found(Policy::Salt, 480, Some(900)), differs);
    let warm = [(Id::WarmByAccident, Severity::Suspect)];
    assert_eq!(found(Policy::Keep, 480, Some(900)), warm);
    assert_eq!(found(Policy::Keep, 0, Some(67)), warm);
    assert_eq!(found(Policy::Keep, 0, Some(66)), [(Id::CacheDiffers, Severity::Note)]);
    // 496 of its own 1,040 tokens are 47.7 %; of the 1,000 that are counted here, they would be
    // 49.6 %.
    assert_eq!(found_of(1040, Policy::Salt, 430, Some(496)), []);
    assert_eq!(found_of(1000, Policy::Salt, 430, Some(496)), [(Id::CacheDiffers, Severity::Note)]);
    // A tokenizer that is not the model's: the two shares cannot be compared.
    assert_eq!(found_of(250, Policy::Keep, 480, Some(240)), []);
    assert_eq!(found_of(4000, Policy::Keep, 0, Some(3000)), []);
}

#[test]
fn names_a_server_without_a_cache_report() {
    let findings_without_report = |requests, cached: Option<u32>| {
        let mut cache = Cache { page: 16, ..Cache::default() };
        (0..requests).for_each(|_| cache.add(1000, 480, cached.map(|cached| (1000, cached))));
        let facts = RunFacts { cache: Some(cache), ..facts() };
        let findings = findings(&Summary::new(&facts, &[reply(0, 1000, &[])])).into_iter();
        findings.filter(|finding| finding.id == Id::CacheNotReported).count()
    };
    assert_eq!(findings_without_report(10, None), 1);
    assert_eq!(findings_without_report(10, Some(0)), 0, "nothing found is an answer");
    assert_eq!(findings_without_report(0, None), 0, "nothing was sent");
}

#[test]
fn repeated_prompts_are_no_warm_cache() {
    let is_warm = |reusable| {
        let counts = [(Figure::PrefixCacheQueries, 10_000.0), (Figure::PrefixCacheHits, 7360.0)];
        let target = TargetMetrics { during: counts.into(), ..TargetMetrics::default() };
        let cache = Some(cache(Policy::default(), reusable, 1000, None));
        let server = Some(Server { targets: vec![target] });
        let facts = RunFacts { cache, server, ..facts() };
        finding(&facts, &[reply(0, 1000, &[])], Id::WarmCache).is_some()
    };
    assert!(!is_warm(755), "the run's own");
    assert!(is_warm(100), "of another run");
}
