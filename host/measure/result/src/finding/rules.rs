//! The rules: each checks one thing in a summary and may return a finding. This module has the
//! rules on the load and the figures. `client` has the rules on this client, `vitals` on its
//! processor, `tokens` on token counts, `load` on the offered load, `server` on the server's own
//! metrics, and `course` on changes over the run.

use super::{Finding, Id, Severity, load};
use crate::figure::{Statistic, score_needs_the_end};
use crate::metric;
use crate::summary::{Comparison, LEAST_LOADS, Summary};
use model::exchange::Class;

/// Share of requests beyond which failures, waits and short answers are more than an accident.
const ACCIDENT: f64 = 0.01;

pub(super) fn nothing_answered(summary: &Summary) -> Option<Finding> {
    let requests = &summary.requests;
    let statuses = requests.failures.get(&Class::HttpStatus).map(|failures| &failures.statuses);
    let has_no_route =
        statuses.is_some_and(|statuses| statuses.keys().all(|status| matches!(status, 404 | 405)));
    (requests.successful == 0).then(|| Id::NothingAnswered.invalid(
        format!("none of {} requests was answered", requests.total),
        "latency and throughput are computed from answered requests, and there are none",
        if has_no_route { "the server does not have the backend's route: `runner probe URL` lists the routes that it has, and prints the command with the right `--backend`" } else { "look at the failures by class and at their messages" },
    ))
}

pub(super) fn failures(summary: &Summary) -> Option<Finding> {
    let requests = &summary.requests;
    // Another finding states the number of each of these.
    let elsewhere = [Class::NotSent, Class::LostWithAgent, Class::Interrupted, Class::Short];
    let elsewhere = elsewhere
        .iter()
        .filter_map(|class| Some((class.name(), requests.failures.get(class)?.count)));
    let others = elsewhere.clone().map(|(class, count)| format!(", besides {count} {class}"));
    let others: String = others.collect();
    let elsewhere: u64 = elsewhere.map(|(_, count)| count).sum();
    let failed = requests.failed - elsewhere.min(requests.failed);
    let share = failed as f64 / requests.total.max(1) as f64;
    let highest = summary.run.percentiles.iter().copied().filter(|percent| *percent < 100.0);
    let highest = highest.reduce(f64::max).unwrap_or(99.0);
    // With half of the requests beyond a percentile failed, it is read where a much lower one
    // belongs: P99 of the answers is then P98.5 of the requests.
    let hides = failed > 0 && share >= (100.0 - highest) / 100.0 / 2.0 - 1e-12;
    if share <= ACCIDENT && !hides {
        return None;
    }
    let severity = match share {
        share if share > 0.5 => Severity::Invalid,
        share if share > ACCIDENT => Severity::Suspect,
        _ => Severity::Note,
    };
    let precise = if share < ACCIDENT { 2 } else { 1 };
    let share = share * 100.0;
    let total = requests.total;
    let who = if failed == requests.failed {
        "they"
    } else {
        "they and those not sent, lost, interrupted or short"
    };
    let hidden = hidden_by_failures(summary, highest, who);
    let followed = summary.requests.failures.get(&Class::ParentFailed);
    let followed = followed.map_or(String::new(), |followed| {
        let count = followed.count;
        let own = failed.saturating_sub(count);
        format!(", {own} of them by themselves and {count} because a request that they depend on had failed")
    });
    let long = match summary.requests.context_overflows {
        0 => String::new(),
        count => format!(", {count} of them because the context is too long"),
    };
    Some(Id::Failures.finding(
        severity,
        format!("{failed} of {total} requests failed ({share:.precise$} %){followed}{long}{others}{hidden}"),
        "latency covers answered requests only: failed requests, often the slowest, are missing, and each failure reduced the server's load",
        "look at the failures by class and at their messages; lower the load, or fix the server",
    ))
}

/// Finds the broken rules of a published benchmark: its settings, and its shares of failures.
pub(super) fn rules_broken(summary: &Summary) -> Option<Finding> {
    let rules = summary.run.rules.as_ref()?;
    let requests = &summary.requests;
    let total = requests.total.max(1) as f64;
    let other = requests.failed.saturating_sub(requests.context_overflows);
    let shares = [
        (requests.context_overflows, rules.context_overflow_most, "had too long a context"),
        (other, rules.failures_most, "failed otherwise"),
    ];
    let beyond = shares.into_iter().filter_map(|(count, most, what)| {
        let (share, most) = (count as f64 / total, most?);
        (share > most).then(|| {
            let (share, most) = (share * 100.0, most * 100.0);
            format!(
                "{count} of {} requests {what} ({share:.1} %, at most {most} %)",
                requests.total
            )
        })
    });
    let broken: Vec<String> = rules.loosened.iter().cloned().chain(beyond).collect();
    (!broken.is_empty()).then(|| {
        Id::RulesBroken.invalid(
            format!("the run does not keep the rules of {}: {}", rules.name, broken.join("; ")),
            "a result under the benchmark's name must come from a run by all of its rules",
            "measure again by the rules, or without `--preset` for a measurement of your own",
        )
    })
}

/// States the value of a percentile over the answered requests if failures were infinite.
fn hidden_by_failures(summary: &Summary, percent: f64, who: &str) -> String {
    let statistic = Statistic::Percentile(percent);
    if summary.run.failures_as_infinite {
        return String::new();
    }
    let metrics = [(metric::TTFT, "TTFT"), (metric::E2E, "E2E")];
    let hidden = metrics.into_iter().filter_map(|(name, label)| {
        let of = summary.metric(name)?;
        let (without, with) =
            (of.statistic(statistic)?, of.with_failures.as_ref()?.statistic(statistic)?);
        let with = if with.is_finite() { format!("{with:.2} ms") } else { "infinite".to_owned() };
        let without = format!("{without:.2} ms");
        (with != without)
            .then(|| format!("P{percent} {label} would be {with} instead of {without}"))
    });
    let hidden: Vec<String> = hidden.collect();
    let hidden = (!hidden.is_empty()).then(|| hidden.join(", and "));
    hidden
        .map(|hidden| format!("; if {who} counted as infinitely slow, {hidden}"))
        .unwrap_or_default()
}

pub(super) fn not_sent(summary: &Summary) -> Option<Finding> {
    let requests = &summary.requests;
    let count = requests.failures.get(&Class::NotSent)?.count;
    let most = count as f64 > 0.5 * requests.total as f64;
    Some(Id::NotSent.finding(
        if most { Severity::Invalid } else { Severity::Suspect },
        format!("{count} of {} requests were due but never sent", requests.total),
        "the server did not receive the planned load",
        "raise the cap on requests in flight, lower the rate, or give the run more time to finish",
    ))
}

pub(super) fn records_damaged(summary: &Summary) -> Option<Finding> {
    let damage = summary.run.damage.as_ref()?;
    Some(Id::RecordsDamaged.invalid(
        damage.label(),
        "the figures come from the readable records only, not from all records of the run",
        "restore the run's folder from a copy, or repeat the run; its `summary.json` has the figures from before the damage",
    ))
}

pub(super) fn errors_accepted(summary: &Summary) -> Option<Finding> {
    let requests = &summary.requests;
    let statuses = requests.accepted_errors.iter();
    let parts: Vec<String> =
        statuses.map(|(status, count)| format!("{count} with the status {status}")).collect();
    let not_yet = match requests.accepted_not_yet {
        0 => String::new(),
        count => format!(", and beside these {count} with 404 before a further request"),
    };
    (!parts.is_empty()).then(|| Id::ErrorsAccepted.suspect(
        format!(
            "the backend `{}` accepted replies in which the server reports an error: {}{not_yet}",
            summary.run.backend,
            parts.join(", ")
        ),
        "such requests count as successful, and the time until the server took them counts as its latency: a server that refuses looks healthy",
        "read `steps` in the records, and use a backend that does not accept these statuses unless they are answers",
    ))
}

pub(super) fn interrupted(summary: &Summary) -> Option<Finding> {
    let answered = summary.requests.successful;
    let of = summary.run.planned.map(|planned| format!(" of {planned}")).unwrap_or_default();
    summary.run.interrupted.then(|| {
        Id::Interrupted.suspect(
            format!("the run was stopped; {answered}{of} requests were answered"),
            "the figures cover only part of the plan: its end is missing",
            "repeat the run and let it finish before you compare it",
        )
    })
}

/// Share of the offered rate below which two rates differ. Over many requests, chance accounts for
/// less than that.
const REACHED: f64 = 0.95;

/// Requests needed to compare two rates.
const MANY: u64 = 100;

/// Requests due per second, if the plan sets a rate and there are enough requests.
fn offered(summary: &Summary) -> Option<f64> {
    summary.run.request_rate?;
    let due = summary.throughput.due_requests_per_s?;
    (summary.requests.total >= MANY).then_some(due)
}

pub(super) fn rate_not_reached(summary: &Summary) -> Option<Finding> {
    let due = offered(summary)?;
    let sent = summary.throughput.sent_requests_per_s?;
    (sent < REACHED * due).then(|| Id::RateNotReached.suspect(
        format!("{due:.2} requests per second were due, but {sent:.2} were sent ({:.0} %)", sent / due * 100.0),
        "the server saw a lower rate than the plan states; latency from the send time describes the lower rate",
        "check whether the cap on requests in flight, connections or this machine held requests back; use latency from the due time, or lower the rate to one that this client can send",
    ))
}

/// Requests arrive faster than the server answers them, so delays grow with the length of the run.
/// At one rate, a growing backlog shows that. At several rates, the backlog may grow by plan, and
/// only a lower rate of answers shows it.
pub(super) fn overloaded(summary: &Summary) -> Option<Finding> {
    let due = offered(summary)?;
    let Some(backlog) = summary.concurrency.backlog else { return answered_slower(summary, due) };
    backlog.grew().then(|| Id::Overloaded.suspect(
        format!(
            "on average, {:.0} requests {} in the second quarter of the time in which they were due, and {:.0} in the fourth; {} {:.0} more",
            backlog.second_quarter,
            if summary.run.streamed { "waited for their first token" } else { "were unanswered" },
            backlog.fourth_quarter,
            if summary.run.streamed { "chance explains" } else { "chance and an engine that fills explain" },
            backlog.chance
        ),
        OVERLOADED,
        LESS_LOAD,
    ))
}

const OVERLOADED: &str = "a queue grew for as long as requests were sent, so latency reflects the length of the run, not the speed of the server";
const LESS_LOAD: &str = "lower the rate to less than the server can answer, or measure its capacity in a closed loop (--concurrency)";

fn answered_slower(summary: &Summary, due: f64) -> Option<Finding> {
    let answered = summary.throughput.requests_per_s?;
    // A run goes on until its last answer: for a short one that alone lowers the rate of answers.
    let draining = summary.metric(metric::E2E)?.median / 1000.0;
    let took = summary.throughput.duration_s?;
    let expected = due * (took - draining).max(0.0) / took;
    (answered < 0.8 * expected).then(|| {
        Id::Overloaded.suspect(
            format!("{due:.2} requests per second were due, but {answered:.2} were answered"),
            OVERLOADED,
            LESS_LOAD,
        )
    })
}

pub(super) fn plugin_errors(summary: &Summary) -> Option<Finding> {
    let failed = summary.requests.failures.get(&Class::Plugin);
    let (failed, scorers) = (failed.map_or(0, |failed| failed.count), summary.scorer_errors);
    if failed + scorers == 0 {
        return None;
    }
    let parts = [
        (failed > 0).then(|| format!("the backend failed on {failed} requests")),
        (scorers > 0).then(|| format!("scorers failed {scorers} times")),
    ];
    Some(Id::PluginErrors.suspect(
        parts.into_iter().flatten().collect::<Vec<_>>().join("; "),
        "requests on which a plugin failed are missing from the figures, although the server may have answered them",
        "read the messages and plugins.log in the run's folder; report it to the plugin's author, with a case for `runner plugin test` that reproduces it",
    ))
}

pub(super) fn scorer_silent(summary: &Summary) -> Option<Finding> {
    let silent = summary.silent_scorers.iter().map(|scorer| scorer.label());
    let seen = silent.collect::<Vec<_>>().join("; ");
    (!seen.is_empty()).then(|| Id::ScorerSilent.suspect(
        seen,
        "the run has no result of this scorer",
        "give the samples the references that the scorer needs (`runner guide scorers` has their forms), or leave the scorer out",
    ))
}

pub(super) fn answers_cut(summary: &Summary) -> Option<Finding> {
    let scores = summary.scores.iter();
    let of_cut = scores.filter(|(name, score)| score.cut > 0 && score_needs_the_end(name));
    // The first of several with the same count: the others, `NAME-unparsed`, are parts of it.
    let (name, score) = of_cut.rev().max_by_key(|(_, score)| score.cut)?;
    let (cut, count) = (score.cut, score.count);
    let (why, advice) = if summary.run.ignore_eos {
        (
            "the server was told to ignore the end of the text, so an answer goes on after its end until the limit, and the score is of both",
            "let answers end by themselves (--disable-ignore-eos), with a limit that the longest one needs (--output-tokens)",
        )
    } else {
        (
            "an answer without its end is judged by its beginning, so the score depends on the limit and not on the model alone",
            "raise the limit (--output-tokens, or the lengths in the dataset's configuration)",
        )
    };
    Some(Id::AnswersCut.doubted(
        cut as f64 > ACCIDENT * count as f64,
        format!("the limit of tokens ended {cut} of the {count} answers with the score {name}"),
        why,
        advice,
    ))
}

pub(super) fn insecure(summary: &Summary) -> Option<Finding> {
    summary.run.insecure.then(|| {
        Id::Insecure.note(
            "TLS certificates were not checked",
            "a man in the middle could read and forge everything, including the API key",
            "pass the certificate of the server's authority with --ca-cert, and drop --insecure",
        )
    })
}

pub(super) fn cap_reached(summary: &Summary) -> Option<Finding> {
    let rate = summary.run.request_rate?;
    let cap = summary.run.max_in_flight?;
    let (held_back, total) = (summary.requests.held_back?, summary.requests.total);
    if held_back == 0 {
        return None;
    }
    let share = held_back as f64 / total.max(1) as f64;
    Some(Id::CapReached.doubted(
        share > ACCIDENT,
        format!("{held_back} of {total} requests waited for the cap of {cap} in flight"),
        &format!(
            "the plan offers {rate} requests per second, but the cap let fewer through; latency from the send time does not include that wait"
        ),
        "use latency from the due time; raise the cap, or lower the rate",
    ))
}

pub(super) fn beyond_context(summary: &Summary) -> Option<Finding> {
    let context = summary.run.context_tokens?;
    let (beyond, total) = (summary.requests.beyond_context, summary.requests.total);
    (beyond > 0).then(|| Id::BeyondContext.doubted(
        beyond as f64 / total.max(1) as f64 > ACCIDENT,
        format!("{beyond} of {total} requests ask for more tokens (prompt plus answer) than the model's context holds: {context}"),
        "an engine refuses such a request, cuts its prompt or ends its answer early",
        "use shorter prompts or answers, or start the engine with a longer context",
    ))
}

pub(super) fn short_answers(summary: &Summary) -> Option<Finding> {
    let short = summary.requests.failures.get(&Class::Short).map_or(0, |failures| failures.count);
    let Comparison { exchanges, lower, higher, counted, reference } =
        summary.tokens.output_against_requested.unwrap_or_default();
    let unforced = summary.run.unforced;
    if !(summary.run.ignore_eos || unforced) || short + lower + higher == 0 {
        return None;
    }
    let answers = exchanges + short;
    let share = (short + lower + higher) as f64 / answers.max(1) as f64;
    let ended = (short > 0).then(|| {
        format!("{short} of {answers} answers ended early although their length was forced, and do not count as complete")
    });
    let differ = (lower + higher > 0).then(|| {
        let complete = if short > 0 { "complete " } else { "" };
        format!("of {exchanges} {complete}answers, {lower} are shorter and {higher} longer than requested ({counted} tokens instead of {reference})")
    });
    let seen: Vec<String> = [ended, differ].into_iter().flatten().collect();
    Some(Id::ShortAnswers.doubted(
        share > ACCIDENT,
        seen.join("; "),
        if unforced {
            "no request told the server to ignore the end of the text; runs whose answers differ in length are not comparable"
        } else {
            "the request told the server to ignore the end of the text and fill the requested length; runs whose answers differ in length are not comparable"
        },
        if unforced {
            "use a backend that tells the server so (`openai` does with --set backend.config.ignore-eos-field=ignore_eos); let answers end by themselves with --disable-ignore-eos"
        } else {
            "check whether this engine supports ignore_eos, and whether its context is long enough; let answers end by themselves with --disable-ignore-eos"
        },
    ))
}

/// Fewer samples than this beyond a percentile do not determine it.
const FEW: f64 = 5.0;

pub(super) fn few_samples(summary: &Summary) -> Option<Finding> {
    let samples = [metric::E2E, metric::TTFT, metric::TPOT]
        .iter()
        .filter_map(|name| summary.metric(name))
        .map(|distribution| distribution.count)
        .min()?;
    let beyond = |percent: &f64| {
        let share = percent.min(100.0 - percent) / 100.0;
        samples as f64 * share < FEW - 1e-9
    };
    let unfounded: Vec<String> = (summary.run.percentiles.iter())
        .filter(|percent| **percent > 0.0 && **percent < 100.0 && beyond(percent))
        .map(|percent| format!("P{percent}"))
        .collect();
    (!unfounded.is_empty()).then(|| Id::FewSamples.note(
        format!("{} from only {samples} samples", unfounded.join(", ")),
        "fewer than five samples are expected beyond such a percentile, so one or two samples decide it",
        "send at least 5 / (1 - p) requests (500 for P99), or use a lower percentile",
    ))
}

pub(super) fn short_dataset(summary: &Summary) -> Option<Finding> {
    let planned = summary.run.planned?;
    let total = summary.requests.total;
    let whole = !summary.run.interrupted && summary.run.damage.is_none();
    (whole && total < planned).then(|| Id::ShortDataset.suspect(
        format!("the plan has {planned} requests, but the dataset had samples for {total}"),
        "the load was shorter than planned; runs of different lengths spend different shares of their time filling and draining the server",
        "plan no more requests than the dataset has samples, or use a larger dataset",
    ))
}

pub(super) fn objective_unknown(summary: &Summary) -> Option<Finding> {
    let goodput = summary.goodput.as_ref()?;
    let unknown = goodput.objectives.iter().filter(|(_, of)| of.unknown > 0);
    let unknown: Vec<String> =
        unknown.map(|(metric, of)| format!("{metric} for {}", of.unknown)).collect();
    (!unknown.is_empty()).then(|| Id::ObjectiveUnknown.suspect(
        format!(
            "not known for some of {} answered requests: {}",
            summary.requests.successful,
            unknown.join(", ")
        ),
        "a request that lacks the metric of an objective does not count as good, so goodput is understated",
        "stream replies and have the server report usage, or drop the objective",
    ))
}

/// Half of an interval's width, as a share of the mean, beyond which it is reported.
const ROUGH: f64 = 0.2;

pub(super) fn wide_interval(summary: &Summary) -> Option<Finding> {
    // A longer run is the advice of these already.
    if load::long_drain(summary).is_some() || load::short_run(summary).is_some() {
        return None;
    }
    let rough = [(metric::TTFT, "TTFT"), (metric::TPOT, "TPOT"), (metric::E2E, "E2E")]
        .iter()
        .filter_map(|(name, label)| {
            let distribution = summary.metric(name)?;
            let bounds = distribution.confidence?.mean?;
            let (low, high) = bounds.low.zip(bounds.high)?;
            let half = (high - low) / 2.0;
            (half > ROUGH * distribution.mean)
                .then(|| format!("{label} ± {:.0} %", 100.0 * half / distribution.mean))
        });
    let rough: Vec<String> = rough.collect();
    (!rough.is_empty()).then(|| Id::WideInterval.note(
        format!("for other requests, some means are known only roughly: {}", rough.join(", ")),
        "runs with other seeds may have any mean of the interval; runs of the same seed differ by less",
        "send more requests: four times as many halve the interval; repeats of the same requests do not narrow it",
    ))
}

/// The load wandered so slowly that the run shows few of its states.
pub(super) fn few_loads(summary: &Summary) -> Option<Finding> {
    let loads = summary.concurrency.independent?;
    (loads < LEAST_LOADS).then(|| Id::FewLoads.note(
        format!(
            "{} rose and fell once or twice: fewer than {LEAST_LOADS} independent loads",
            if summary.run.even_rate { "the queue" } else { "the number of requests in flight" }
        ),
        "requests in flight together share a queue and a batch, so the averages of such a run are luck",
        if summary.run.even_rate { "run 5 new seeds (--repeat 5) or 10 times the requests, or lower the rate" } else { "run 5 new seeds (--repeat 5); where all requests come at once, a cap on requests in flight (--max-concurrency) makes the load even" },
    ))
}
