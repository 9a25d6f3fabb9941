//! Raises the findings of a run: calls every rule, and orders the findings.

use super::{
    Finding, cache, client, cold, course, devices, fleet, input, load, rules, series, server,
    tokens, vitals,
};
use crate::summary::Summary;

/// Every rule, in the order in which findings of equal weight are listed.
const RULES: &[fn(&Summary) -> Option<Finding>] = &[
    rules::nothing_answered,
    rules::failures,
    rules::not_sent,
    fleet::agent_lost,
    fleet::agent_failed,
    fleet::agent_clock,
    rules::records_damaged,
    series::damaged,
    rules::interrupted,
    rules::short_dataset,
    input::dataset_altered,
    input::recorded_answers,
    input::options_ignored,
    rules::errors_accepted,
    rules::insecure,
    rules::rate_not_reached,
    rules::overloaded,
    load::arrivals_changed,
    client::limits,
    rules::plugin_errors,
    rules::scorer_silent,
    rules::answers_cut,
    vitals::plugin_overruns,
    client::send_lag,
    client::read_lag,
    client::connection_waits,
    vitals::saturated,
    vitals::paused,
    vitals::stolen,
    vitals::throttled,
    vitals::clock_step,
    vitals::decode_behind,
    vitals::held_back,
    vitals::sessions_waited,
    vitals::shared_machine,
    rules::cap_reached,
    rules::short_answers,
    rules::beyond_context,
    tokens::unknown,
    tokens::approximate,
    tokens::input_disagree,
    tokens::output_disagree,
    tokens::events_disagree,
    tokens::per_event,
    server::disagrees,
    server::warm_cache,
    cache::warm_by_accident,
    cache::differs,
    cache::not_reported,
    server::preempted,
    series::server_queue,
    series::admission_throttled,
    series::gaps,
    devices::throttled,
    devices::power_capped,
    devices::gaps,
    cold::cold_start,
    cold::warmup_unstable,
    course::drift,
    course::swing,
    course::not_steady,
    load::short_run,
    load::long_drain,
    client::buffered_replies,
    client::clean_ups_failed,
    client::renewals_failed,
    rules::objective_unknown,
    rules::few_samples,
    rules::few_loads,
    rules::wide_interval,
];

/// The findings of a run, the worst first. Ignores the findings and the verdict in the summary
/// itself.
pub fn findings(summary: &Summary) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule(summary)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
