//! The lines on requests that were not answered in full.

use super::block::Block;
use model::exchange::Class;
use result::summary::{Requests, Summary, Tokens};

/// Writes the numbers of requests by their end; the whole block divides classes of failures.
pub(super) fn counts(block: &mut Block, requests: &Requests) {
    block.line("Successful requests:", Some(requests.successful));
    block.line("Failed requests:", Some(requests.failed));
    for (class, failures) in &requests.failures {
        block.line(&format!("Failed requests ({}):", class.name()), Some(failures.count));
        if block.is_short {
            continue;
        }
        for (status, count) in &failures.statuses {
            block.line(&format!("  HTTP {status}:"), Some(*count));
        }
        for (reason, count) in &failures.reasons {
            let label = format!("  {} ({}):", class.name(), reason.name());
            block.line(&label, Some(*count));
        }
    }
    if !block.is_short {
        block.line("Failed by themselves:", requests.failed_by_themselves);
    }
    block.count("Cancelled requests (on purpose):", requests.cancelled);
    block.count("After the measurement, not measured:", requests.tail);
}

/// The output tokens that totals and throughput leave out.
pub(super) fn left_out(block: &mut Block, tokens: &Tokens) {
    let Some(left_out) = tokens.left_out else { return };
    block.line("Incomplete answers:", Some(left_out.answers));
    block.line("Left out, of incomplete answers (tok):", Some(left_out.output));
    block.count("Incomplete answers, tokens unknown:", left_out.unknown);
}

/// The share of the requests that failed, and their treatment in the latencies that follow.
pub(super) fn failed(block: &mut Block, summary: &Summary) {
    let requests = &summary.requests;
    let judged = requests.total - requests.cancelled;
    let percent = 100.0 * requests.failed as f64 / judged.max(1) as f64;
    let label = if summary.run.failures_as_infinite {
        "Failed, as infinitely late (%):"
    } else {
        "Failed, not in these figures (%):"
    };
    let share = format!("{percent:.2}");
    block.line(label, Some(share).filter(|_| requests.failed > 0));
}

pub(super) fn failures(block: &mut Block, summary: &Summary) {
    block.section("Failures");
    let failures = summary.requests.failures.iter();
    for (class, failures) in failures.filter(|(class, _)| **class != Class::NotSent) {
        let class = class.name();
        for message in &failures.messages {
            let times = match message.count {
                count @ 2.. => format!(" ({count} like this)"),
                _ => String::new(),
            };
            block.prose(&format!("{class}: {}{times}", message.text));
        }
        if failures.other_messages > 0 {
            let others = failures.other_messages;
            block.prose(&format!("{class}: {others} with other messages"));
        }
    }
}
