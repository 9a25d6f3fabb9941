//! Rules on the prefix cache: did the server find the run's repetitions, and nothing else?

use super::{Finding, Id};
use crate::summary::Summary;
use crate::summary::cache::{Cache, Reported};
use model::session::Cache as Policy;

/// The most by which the server's share of cached prompt tokens may differ from the run's own, as a
/// share of all prompt tokens.
const APART: f64 = 0.05;

/// The share of prompt tokens in the cache that the run's own repeats explain, whoever counts it:
/// servers with smaller pages find up to a page more of each prompt. `None` if more may repeat than
/// is known.
pub(super) fn explained(cache: &Cache) -> Option<f64> {
    let most = cache.reusable + u64::from(cache.page) * cache.requests;
    let share = most as f64 / cache.tokens.max(1) as f64;
    (cache.tokens > 0 && !cache.is_bounded).then_some(share + APART)
}

fn shares(summary: &Summary) -> Option<(&Cache, &Reported, f64, f64)> {
    let cache = summary.cache.as_ref()?;
    // With a substitute for the model's tokenizer, the shares say nothing of each other.
    let reported = cache.reported.as_ref().filter(|report| report.is_comparable())?;
    let (reusable, found) = reported.shares()?;
    Some((cache, reported, reusable, found))
}

/// True if the server found more than the run itself can explain. Servers with smaller pages find
/// up to a page more of each prompt.
fn is_warm(cache: &Cache, reported: &Reported) -> bool {
    let explained = reported.reusable + u64::from(cache.page) * reported.requests;
    let margin = APART * reported.tokens as f64;
    cache.policy == Policy::Keep
        && !cache.is_bounded
        && reported.cached as f64 > explained as f64 + margin
}

pub(super) fn warm_by_accident(summary: &Summary) -> Option<Finding> {
    let (cache, reported, reusable, found) = shares(summary)?;
    is_warm(cache, reported).then(|| Id::WarmByAccident.suspect(
        format!(
            "the server found {:.1} % of the prompts' tokens in its prefix cache, but only {:.1} % repeat within the run",
            found * 100.0,
            reusable * 100.0
        ),
        "the other cached tokens come from an earlier run or another client, and were not computed: time to first token and input throughput are better than this workload gives without them",
        "flush the cache (--cache flush), make the prompts of every run new to the server (--cache salt), or restart it",
    ))
}

pub(super) fn not_reported(summary: &Summary) -> Option<Finding> {
    let cache = summary.cache.as_ref()?;
    (cache.reported.is_none() && cache.requests > 0).then(|| Id::CacheNotReported.note(
        "the server reported cached prompt tokens for no request",
        "the repeated tokens of the run are known, but not the share that the server found in its cache",
        "start the server so that it reports cached tokens (vLLM: --enable-prompt-tokens-details, SGLang: --enable-cache-report); the counters of the whole server come with --server-metrics",
    ))
}

/// The reason why a server finds less than the run repeats, and the advice.
const COLDER: (&str, &str) = (
    "prompts that repeat were computed again: the cache is too small for this load, is turned off for some of it, or requests did not reach the server that has their beginnings",
    "look at the server's cache size and evictions, and at how requests are routed to its replicas; otherwise publish both shares together with the result",
);

/// The cache was colder than the run implies, by the server's own counters: of servers that do not
/// say it in their answers.
fn colder(summary: &Summary) -> Option<Finding> {
    let cache = summary.cache.as_ref()?;
    // With a substitute for the model's tokenizer, the shares say nothing of each other.
    let is_exact = summary.run.tokenizer.as_ref().is_some_and(|tokenizer| !tokenizer.approximate);
    let is_known = is_exact && cache.reported.is_none() && cache.tokens > 0;
    let found = super::server::found(summary).filter(|_| is_known)?;
    let reusable = cache.reusable as f64 / cache.tokens as f64;
    (reusable - found > APART).then(|| Id::CacheDiffers.note(
        format!(
            "according to its metrics, the server found {:.1} % of the prompts' tokens in its prefix cache, but {:.1} % repeat within the run",
            found * 100.0,
            reusable * 100.0
        ),
        COLDER.0,
        COLDER.1,
    ))
}

pub(super) fn differs(summary: &Summary) -> Option<Finding> {
    let Some((cache, reported, reusable, found)) = shares(summary) else { return colder(summary) };
    let is_apart = (reusable - found).abs() > APART && !(cache.is_bounded && found > reusable);
    (is_apart && !is_warm(cache, reported)).then(|| {
        let (why, advice) = if found < reusable { COLDER } else { (
                "the server counts cached tokens in another way, for example in pages of another size",
                "give the server's page size (--page-size); otherwise publish both shares together with the result",
            ) };
        Id::CacheDiffers.note(
            format!(
                "the server found {:.1} % of the prompts' tokens in its prefix cache, a cache without limits would have found {:.1} %: they differ by more than {:.0} percentage points",
                found * 100.0,
                reusable * 100.0,
                APART * 100.0
            ),
            why,
            advice,
        )
    })
}
