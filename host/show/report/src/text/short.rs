//! The result on one screen: the figures that people publish, the verdict, and each finding in a
//! line. Every line has the form that it has in the whole block, so a script reads both.

use result::finding::Severity;
use result::metric;
use result::summary::Summary;

use super::block::{Block, MS};
use super::{closed_loop, devices, first_token, metrics_not_measured, outcomes, scores};

/// The height of a terminal that shows the block at once.
const SCREEN: usize = 50;

/// The lines at the end that are always there: the rule of the verdict, the verdict, the unmeasured
/// figures, the last rule.
const END: usize = 4;

/// Lines on time slices, which are drawn beyond the screen's height because they were asked for.
const SLICES: usize = 24;

/// Failures whose messages are shown.
const FAILURES: usize = 4;

/// The result as at most 50 lines, with a newline at its end. More than that is drawn only where
/// the findings that put the run in doubt, or time slices, need it.
pub fn short(summary: &Summary) -> String {
    let mut block = Block { is_short: true, ..Block::titled(" Serving Benchmark Result ") };
    load(&mut block, summary);
    latencies(&mut block, summary);
    // A section without a line has no heading: the next one brings its own.
    block.pending = None;

    let used = block.text.lines().count() + END;
    let doubts = findings(summary, |severity| severity != Severity::Note);
    let mut room = SCREEN.saturating_sub(used + doubts.len());
    // Whatever is first here gets its lines first.
    let failures = fitting(drawn(|block| failures(block, summary)), &mut room);
    let thresholds = fitting(drawn(|block| super::thresholds(block, summary)), &mut room);
    let scores = fitting(drawn(|block| scores::headline(block, summary)), &mut room);
    let power = fitting(
        drawn(|block| {
            first_token::shares(block, summary);
            super::sound(block, summary);
            devices::headline(block, summary);
            devices::cost(block, summary);
            super::cache(block, summary);
        }),
        &mut room,
    );
    let confidence = fitting(drawn(|block| super::confidence::short(block, summary)), &mut room);
    let notes = fitting(findings(summary, |severity| severity == Severity::Note), &mut room);

    let slices = drawn(|block| super::slices(block, summary));
    let slices = fitting(slices, &mut SLICES.clone());

    for line in [confidence, slices, power, failures, scores, thresholds].concat() {
        block.prose(&line);
    }
    block.section("Verdict");
    block.line("Not measured:", metrics_not_measured(summary));
    block.line("Verdict:", Some(summary.verdict.name()));
    for line in [doubts, notes].concat() {
        block.prose(&line);
    }
    block.end(&[])
}

fn load(block: &mut Block, summary: &Summary) {
    let Summary { run, tokens, throughput, concurrency, .. } = summary;
    super::offered(block, run);
    outcomes::classes(block, &summary.requests);
    block.figure("Benchmark duration (s):", throughput.duration_s);
    block.line("Total input tokens:", tokens.input.total);
    block.line("Total generated tokens:", tokens.output.total);
    block.figure("Request throughput (req/s):", throughput.requests_per_s);
    if let Some(goodput) = &summary.goodput {
        block.figure("Request goodput (req/s):", goodput.requests_per_s);
        let attained = goodput.slo_attainment.map(|share| share * 100.0);
        block.figure("SLO attainment (%):", attained);
    }
    block.figure("Output token throughput (tok/s):", throughput.output_tokens_per_s);
    block.line("Peak concurrent requests:", concurrency.peak);
    block.figure("Total token throughput (tok/s):", throughput.total_tokens_per_s);
    block.figure("Concurrency:", concurrency.mean);
}

fn latencies(block: &mut Block, summary: &Summary) {
    block.section("End-to-End Latency");
    block.line("Percentiles are of a:", closed_loop(summary));
    outcomes::failed(block, summary);
    for (title, name, label) in [
        ("End-to-End Latency", metric::E2E, "E2E Latency"),
        ("Time to First Token", metric::TTFT, "TTFT"),
        ("Time per Output Token (excl. 1st token)", metric::TPOT, "TPOT"),
        ("Inter-token Latency", metric::ITL, "ITL"),
        ("Latency from Due Time", metric::TTFT_FROM_DUE, "TTFT from Due"),
    ] {
        if name != metric::E2E {
            block.section(title);
        }
        block.distribution(summary, name, label, MS);
    }
}

/// The most frequent message of each class of failure.
fn failures(block: &mut Block, summary: &Summary) {
    block.section("Failures");
    for (class, failures) in summary.requests.failures.iter().take(FAILURES) {
        if let Some(message) = failures.messages.first() {
            block.prose(&format!("{}: {}", class.name(), message.text));
        }
    }
}

/// Findings, each in a line.
fn findings(summary: &Summary, wanted: impl Fn(Severity) -> bool) -> Vec<String> {
    let findings = summary.findings.iter();
    findings
        .filter(|finding| wanted(finding.severity))
        .map(|finding| {
            let (severity, id) = (finding.severity.name(), finding.id.name());
            format!("{severity} {id}: {}", finding.seen)
        })
        .collect()
}

/// The lines that something draws.
fn drawn(draw: impl FnOnce(&mut Block)) -> Vec<String> {
    let mut block = Block { is_short: true, ..Block::default() };
    draw(&mut block);
    block.text.lines().map(str::to_owned).collect()
}

/// Returns the lines that there is room for, with the number of further ones. Takes the room.
fn fitting(mut lines: Vec<String>, room: &mut usize) -> Vec<String> {
    if lines.len() > *room {
        let kept = room.saturating_sub(1);
        let more = lines.len() - kept;
        lines.truncate(kept);
        if *room > 0 {
            lines.push(format!("… {more} more lines with --details"));
        }
    }
    *room -= lines.len();
    lines
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        for (all, before, shown, after) in [
            (3, 5, vec!["0", "1", "2"], 2),
            (3, 3, vec!["0", "1", "2"], 0),
            (4, 3, vec!["0", "1", "… 2 more lines with --details"], 0),
            (4, 1, vec!["… 4 more lines with --details"], 0),
            (4, 0, vec![], 0),
            (0, 0, vec![], 0),
        ] {
            let mut room = before;
            assert_eq!(fitting(lines(all), &mut room), shown, "{all} in {before}");
            assert_eq!(room, after, "{all} in {before}");
        }
    }
}
