//! Checks thresholds against a summary.
//!
//! A figure that was not measured meets no threshold, and neither does an invalid run: a gate must
//! not open for figures that cannot be trusted. For the same reason, requests that failed or were
//! not sent count as infinitely slow, and as a speed of zero. Otherwise a gate on latency opens
//! further with each slow request that fails. An answer that did not come counts as a wrong one.
//! The command line derives the exit code.

use super::{Checked, Threshold};
use crate::figure::{Figure, scores_there_are};
use crate::finding::Verdict;
use crate::metric::{self, Of};
use crate::summary::Summary;

impl Threshold {
    pub fn check(&self, summary: &Summary) -> Checked {
        let mut checked = Checked { threshold: self.to_string(), ..Checked::default() };
        match self {
            Threshold::Verdict(worst) => {
                checked.held = summary.verdict <= *worst;
                let because = format!("the run is {}", summary.verdict.name());
                checked.because = (!checked.held).then_some(because);
            }
            Threshold::Difference(..) => {
                checked.because = Some("one run has no difference of sides".to_owned());
            }
            Threshold::Figure(figure, relation, limit) => {
                let Some(seen) = figure.read_with_failures(summary) else {
                    checked.because = Some(match figure {
                        Figure::Score(_) => scores_there_are(summary),
                        Figure::Of(..) | Figure::Whole(_) => "not measured".to_owned(),
                    });
                    return checked;
                };
                let is_invalid = summary.verdict == Verdict::Invalid;
                let without = figure.read(summary).filter(|without| *without != seen);
                let failures = without.and_then(|without| failures(figure, summary, seen, without));
                let because: Vec<String> = failures
                    .into_iter()
                    .chain(is_invalid.then(|| "the run is invalid".to_owned()))
                    .collect();
                checked.seen = Some(seen).filter(|seen| seen.is_finite());
                checked.infinite = seen.is_infinite();
                checked.without_failures = without;
                checked.held = !is_invalid && relation.holds(seen, *limit);
                checked.because = (!because.is_empty()).then(|| because.join("; "));
            }
        }
        checked
    }
}

/// Describes the effect of failed and unsent requests on a figure, and its value without.
fn failures(figure: &Figure, summary: &Summary, seen: f64, without: f64) -> Option<String> {
    let name = match figure {
        Figure::Of(name, _) => name,
        Figure::Whole(_) => return None,
        Figure::Score(_) => {
            let (failed, total) = (summary.requests.failed, summary.requests.total);
            return Some(format!(
                "with the {failed} of {total} requests that failed or were not sent counted as wrong; {without:.4} over those judged"
            ));
        }
    };
    let metric = metric::by_name(name)?;
    let count = summary.metric(name)?.with_failures.as_ref()?.requests;
    let sessions = summary.sessions.as_ref();
    let (total, missing, kept) = match metric.of {
        Of::Answered => (summary.requests.total, "failed or were not sent", "answered"),
        Of::Sent => (summary.requests.total, "were not sent", "sent"),
        Of::Session => (sessions?.total, "failed or were cut short", "complete"),
    };
    let units = if metric.of == Of::Session { "sessions" } else { "requests" };
    let unit = match figure.unit() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let worst = match metric.unit.worst()? {
        f64::INFINITY => "infinite".to_owned(),
        worst => format!("{worst}{unit}"),
    };
    let counted = match seen.is_infinite() {
        true => format!("{count} of {total} {units} {missing}"),
        false => format!("with the {count} of {total} {units} that {missing} counted as {worst}"),
    };
    Some(format!("{counted}; {without:.2}{unit} over those {kept}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture;
    use model::exchange::Kind::{End, Text};
    use model::exchange::{Class, Exchange};

    fn threshold(text: &str) -> Threshold {
        text.parse().unwrap()
    }

    #[test]
    fn thresholds_hold_only_of_measured_figures() {
        let answered = |index: u64| {
            let events = [(1050, Text, None, 3), (1070 + index, Text, None, 3)];
            fixture::reply(index, 1000, &events)
        };
        let run: Vec<_> = (0..100).map(answered).collect();
        let checked = |text: &str, run: &[Exchange]| {
            let mut facts = fixture::facts();
            facts.run.thresholds = vec![threshold(text)];
            let summary = Summary::new(&facts, run);
            let [checked] = summary.thresholds.as_slice() else {
                panic!("one threshold, {:?}", summary.thresholds);
            };
            (checked.held, checked.outcome())
        };
        assert_eq!(checked("ttft.p99 <= 50ms", &run), (true, "50.00".into()));
        assert_eq!(checked("ttft.p99.9 < 50ms", &run), (false, "50.00".into()));
        assert_eq!(
            checked("tpot.mean <= 50ms", &run),
            (false, "not measured".into()),
            "tokens are unknown"
        );
        assert_eq!(checked("requests.success-share >= 99%", &run), (true, "1.00".into()));
        let (held, because) = checked("verdict <= valid", &run);
        assert!(!held && because == "the run is suspect", "{because}");
        let mut broken = run.clone();
        for exchange in &mut broken[..51] {
            *exchange = fixture::failed(exchange.clone(), Class::Truncated, "seen");
        }
        assert_eq!(
            checked("ttft.p99 <= 50ms", &broken),
            (
                false,
                "infinite, because 51 of 100 requests failed or were not sent; 50.00 ms over those answered; the run is invalid".into()
            )
        );
    }

    /// A run of 100 answers after 50 ms; the last `failed` and `unsent` of them did not come.
    fn checked_of(text: &str, failed: usize, unsent: usize) -> Checked {
        let mut run: Vec<_> = (0..100)
            .map(|index| {
                let events = [(1050 + index, Text, None, 3), (1060 + index, End, None, 0)];
                let mut exchange = fixture::reply(index, 1000, &events);
                exchange.usage = fixture::output_usage(4);
                exchange
            })
            .collect();
        for exchange in &mut run[..failed] {
            *exchange = fixture::failed(exchange.clone(), Class::TokenGapTimeout, "seen");
        }
        for exchange in &mut run[failed..failed + unsent] {
            *exchange = fixture::failed(exchange.clone(), Class::NotSent, "cap");
            exchange.sent = None;
        }
        let mut facts = fixture::facts();
        facts.run.thresholds = vec![threshold(text)];
        Summary::new(&facts, &run).thresholds.remove(0)
    }

    #[test]
    fn a_gate_on_latency_does_not_open_because_requests_failed() {
        let infinite = checked_of("ttft.p99 <= 200ms", 30, 10);
        assert_eq!((infinite.held, infinite.infinite, infinite.seen), (false, true, None));
        // The answered requests took 90 to 149 ms.
        assert_eq!(infinite.without_failures, Some(148.41));
        let expected = "infinite, because 40 of 100 requests failed or were not sent; 148.41 ms over those answered";
        assert_eq!(infinite.outcome(), expected);
        // The median of 60 answers and 40 failures is the median of the 50th and 51st answer.
        let median = checked_of("ttft.median <= 139.5ms", 30, 10);
        assert_eq!((median.held, median.seen), (true, Some(139.5)));
        let wanted = "139.50, with the 40 of 100 requests that failed or were not sent counted as infinite; 119.50 ms over those answered";
        assert_eq!(median.outcome(), wanted);
        assert!(!checked_of("ttft.median <= 139ms", 30, 10).held);
        for (text, held) in [
            ("ttft.min <= 90ms", true),
            ("ttft.mean <= 10s", false),
            ("ttft.std <= 10s", false),
            ("ttft.max <= 10s", false),
            ("output-tokens.mean <= 4", true),
            ("send-lag.p80 <= 1ms", true),
        ] {
            assert_eq!(checked_of(text, 30, 10).held, held, "{text}");
        }
        // Four tokens in 60 to 159 ms: the slowest has 25.2 a second, and P1 lies below 25.4.
        let slowest = checked_of("output-speed.p1 >= 25.3", 0, 0);
        assert!(slowest.held && slowest.seen < Some(25.4), "{slowest:?}");
        let speed = checked_of("output-speed.median >= 20", 60, 0);
        assert_eq!((speed.held, speed.seen), (false, Some(0.0)));
    }

    #[test]
    fn client_figures_fail_if_nothing_was_sent() {
        let failed = checked_of("send-lag.p99 <= 1ms", 30, 0);
        assert!(failed.held && failed.without_failures.is_none());
        let unsent = checked_of("send-lag.p99 <= 1ms", 20, 10);
        assert_eq!(
            (unsent.held, unsent.outcome()),
            (
                false,
                "infinite, because 10 of 100 requests were not sent; 0.00 ms over those sent"
                    .into()
            )
        );
    }
}
