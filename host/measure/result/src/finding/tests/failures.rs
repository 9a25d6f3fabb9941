//! Findings on requests that failed or were not sent.

use super::*;

#[test]
fn failures_beyond_one_in_a_hundred() {
    let first = |n: usize| {
        after(move |_, run| {
            run[..n].iter_mut().for_each(|exchange| fail(exchange, Class::TokenGapTimeout));
        })
    };
    assert_eq!(first(1), [(Id::Failures, Severity::Note)]);
    assert_eq!(first(2), [(Id::Failures, Severity::Suspect)]);
    assert_eq!(first(51), [(Id::Failures, Severity::Invalid)]);
}

#[test]
fn failures_that_a_high_percentile_hides_are_noted() {
    let failed = |count: u64, of: u64| {
        let (facts, mut run) = sound();
        for index in 100..of {
            let again = run[index as usize % 100].clone();
            run.push(Exchange { index, ..again });
        }
        run.iter_mut().take(count as usize).for_each(|exchange| fail(exchange, Class::Truncated));
        for exchange in &mut run {
            delay(exchange, ms(exchange.index));
        }
        finding(&facts, &run, Id::Failures).map(|(severity, seen, _)| (severity, seen))
    };
    assert_eq!(failed(0, 1000), None);
    assert_eq!(failed(4, 1000), None);
    let seen = "5 of 1000 requests failed (0.50 %); if they counted as infinitely slow, P99 TTFT would be 1044.01 ms instead of 1039.06 ms, and P99 E2E would be 1064.01 ms instead of 1059.06 ms";
    assert_eq!(failed(5, 1000), Some((Severity::Note, seen.into())));
    assert_eq!(failed(10, 1000).unwrap().0, Severity::Note);
    let (severity, seen) = failed(11, 1000).unwrap();
    assert_eq!(severity, Severity::Suspect);
    assert!(seen.contains("P99 TTFT would be infinite instead of 1039.12 ms"), "{seen}");
}

#[test]
fn requests_not_sent_are_a_finding_of_their_own() {
    let unsent = |n: usize| {
        after(move |_, run| {
            for exchange in &mut run[..n] {
                fail(exchange, Class::NotSent);
                exchange.sent = None;
            }
        })
    };
    assert_eq!(unsent(5), [(Id::NotSent, Severity::Suspect)]);
    assert!(unsent(50).contains(&(Id::NotSent, Severity::Suspect)));
    assert!(unsent(51).contains(&(Id::NotSent, Severity::Invalid)));
}
