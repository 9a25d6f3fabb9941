//! The result on one screen: the figures that people publish, the verdict, and each finding in a
//! line. Every line has the form that it has in the whole block, so a script reads both.

use crate::sure;
use result::finding::Severity;
use result::metric;
use result::summary::{Distribution, Summary};

use super::block::{Block, MS};
use super::{devices, first_token, metrics_not_measured, scores};

/// The height of a terminal that shows the block at once.
const SCREEN: usize = 50;

/// The lines that always end it: a rule, the verdict, the unmeasured figures, a rule.
const END: usize = 4;

/// Lines on time slices, which are drawn beyond the screen's height because they were asked for.
const SLICES: usize = 24;

const FAILURES: usize = 4;

/// The title and the headings of *How Sure*, and the number of the rows that do not fit.
const SURE_HEADING: usize = 3;

/// The share of the TTFT by which its figures from the due time must differ to stand beside them.
const DIFFERS: f64 = 0.02;

/// The result as at most 50 lines, with a newline at its end. More than that is drawn only where
/// the findings that put the run in doubt, or time slices, need it.
pub fn short(summary: &Summary) -> String {
    let mut block = Block { is_short: true, ..Block::titled(" Serving Benchmark Result ") };
    super::load(&mut block, summary);
    super::latencies(&mut block, summary);
    if due_differs(summary) {
        block.section("Latency from Due Time");
        block.distribution(summary, metric::TTFT_FROM_DUE, "TTFT from Due", MS);
    }
    // A section without a line has no heading: the next one brings its own.
    block.pending = None;

    let used = block.text.lines().count() + END;
    let doubts = findings(summary, |severity| severity != Severity::Note);
    let mut room = SCREEN.saturating_sub(used + doubts.len());
    let mut deciding = sure::rows(summary);
    deciding.retain(|row| row.decides);
    // Whatever is first here gets its lines first.
    let mut part = |draw: &dyn Fn(&mut Block)| fitting(drawn(draw), &mut room);
    let failures = part(&|block| failures(block, summary));
    let thresholds = part(&|block| super::thresholds(block, summary));
    let scores = part(&|block| scores::headline(block, summary));
    let power = part(&|block| {
        first_token::shares(block, summary);
        super::sound(block, summary);
        devices::headline(block, summary);
        devices::cost(block, summary);
        super::cache(block, summary);
    });
    let confidence = part(&|block| super::sure_table(block, &deciding));
    // Headings without a row say nothing.
    let is_cut = confidence.last().is_some_and(|line| line.starts_with('…'));
    let is_bare = is_cut && confidence.len() <= SURE_HEADING;
    let confidence = if is_bare { Vec::new() } else { confidence };
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

/// True if the TTFT from the due time shows more than the TTFT.
fn due_differs(summary: &Summary) -> bool {
    let (Some(due), Some(sent)) =
        (summary.metric(metric::TTFT_FROM_DUE), summary.metric(metric::TTFT))
    else {
        return true;
    };
    let highest = |of: &Distribution| of.percentile(*summary.run.percentiles.last()?);
    let pairs = [(due.mean, sent.mean), (due.median, sent.median)].into_iter();
    let mut pairs = pairs.chain(highest(due).zip(highest(sent)));
    pairs.any(|(due, sent)| (due - sent).abs() > DIFFERS * sent)
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
