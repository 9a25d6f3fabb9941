//! The facts that a summary needs about a plan.

use crate::assessment::{Assessment, Later};
use model::plugin::Kind;
use model::session::{History, Warming};
use model::simulation::simulated_acceptance;
use result::summary::{Loop, Run, RunFacts, Used};
use scenario::plan::Plan;

/// Collects the facts that a summary needs in addition to the exchanges, from the plan and the
/// assessment of the answers. The caller adds the client's performance, the server's own metrics,
/// and the dataset's treatment of its input.
pub fn facts(plan: &Plan, assessment: Assessment, interrupted: bool) -> RunFacts {
    let launch = plan.about.launch_command.as_deref();
    let rate = plan.load.arrival.rate().filter(|rate| rate.is_finite());
    RunFacts {
        scorer_errors: assessment.error_count(),
        retokenized: assessment.retokenized,
        reasoning: assessment.reasoning,
        scores: assessment.scores,
        unscored: assessment.unscored,
        run_scores: assessment.run_scores,
        silent_scorers: assessment.silent,
        ..RunFacts::from(Run {
            backend: plan.backend.name.clone(),
            arrival: plan.load.arrival.to_string(),
            r#loop: if plan.load.arrival.is_open() { Loop::Open } else { Loop::Closed },
            request_rate: rate,
            even_rate: rate.is_some() && plan.load.arrival.is_even(),
            // A lane's session may have several requests in flight.
            max_in_flight: (plan.slots().filter(|_| plan.load.lanes.is_none()))
                .map(|slots| slots as u64),
            users: plan.slots().filter(|_| !plan.load.arrival.is_open()).map(|users| users as u64),
            machines: plan.machines,
            warmup_wave: (plan.load.warming == Warming::UntilStable)
                .then_some(u64::from(plan.load.warmup)),
            planned: plan.held_requests(),
            streamed: plan.request.stream,
            expected_acceptance_length: plan.expect.acceptance_length,
            simulated_acceptance: (launch.and_then(simulated_acceptance))
                .map(|setting| setting.name.to_owned()),
            ignore_eos: plan.request.ignore_eos,
            unforced: plan.request.unforced,
            context_tokens: plan.target.context_tokens,
            percentiles: plan.percentiles.clone(),
            failures_as_infinite: plan.failures_as_infinite,
            time_slice: plan.time_slice,
            first_due: plan.first_due(),
            goodput: plan.goodput.clone(),
            thresholds: plan.thresholds.clone(),
            tokenizer: Some(plan.tokenizer.summary()),
            rules: plan.rules.clone(),
            insecure: plan.connection.trust.insecure,
            plugins: plan.plugins(),
            sandbox: Some(plan.sandbox.clone()),
            interrupted,
            recorded_histories: plan.request.history == History::Recorded,
            ignored_options: plan.request.ignored.clone(),
            cost: plan.cost.clone(),
            ..Run::default()
        })
    }
}

/// Adds scores that were given later to the run's own scores.
pub(super) fn add_later(facts: &mut RunFacts, later: Vec<Later>) {
    for later in later {
        facts.run.plugins.extend(later.scorers.iter().map(|scorer| Used {
            kind: Kind::Scorer,
            name: scorer.name.clone(),
            version: scorer.version.clone(),
            digest: scorer.digest.clone(),
        }));
        facts.scores.extend(later.scores);
        facts.unscored.extend(later.unscored);
        facts.left_out.extend(later.left_out);
        facts.run_scores.extend(later.run_scores);
        facts.silent_scorers.extend(later.silent);
        facts.scorer_errors += later.errors;
    }
}
