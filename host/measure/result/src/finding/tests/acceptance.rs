use super::*;
use model::exchange::Speculation;

/// The sound run with `answers` answers that report these steps by accepted tokens. Each step
/// proposed `draft` tokens.
fn speculative(answers: usize, steps_by_accepted: &[u32], draft: u32) -> (RunFacts, Vec<Exchange>) {
    let (facts, mut run) = sound();
    let steps: u32 = steps_by_accepted.iter().sum();
    for exchange in &mut run[..answers] {
        let list = steps_by_accepted.to_vec();
        exchange.speculation = Some(Speculation { steps, steps_by_accepted: list });
        exchange.usage.as_mut().unwrap().draft_tokens = Some(steps * draft);
    }
    (facts, run)
}

/// The lengths of InferenceX's golden files: 2.73 of Qwen3.5 with two draft tokens, as it is and as
/// other runs may have it.
#[test]
fn a_length_that_is_not_as_expected_differs() {
    for (expected, found) in [
        (2.73, None),
        // Within the tolerance.
        (2.78, None),
        (2.68, None),
        (
            3.39,
            Some(
                "2.73 (95 % interval 2.73 to 2.73 from 100 answers), and the scenario expects 3.39",
            ),
        ),
        (1.93, Some("expects 1.93")),
    ] {
        let (mut facts, run) = speculative(100, &[7, 13, 80], 2);
        facts.run.expected_acceptance_length = Some(expected);
        let seen = finding(&facts, &run, Id::AcceptanceDiffers);
        assert_eq!(seen.is_some(), found.is_some(), "{expected}: {seen:?}");
        if let Some((severity, seen, _)) = seen {
            assert!(severity == Severity::Suspect && seen.contains(found.unwrap()), "{seen}");
        }
    }
}

/// Lengths of 2 and 4 with a mean of 3. Two answers contradict nothing, and a
/// hundred do.
#[test]
fn a_wide_interval_contradicts_no_expectation() {
    for (answers, differs) in [(2, false), (100, true)] {
        let (mut facts, mut run) = speculative(answers, &[0, 10], 3);
        for exchange in run.iter_mut().take(answers).step_by(2) {
            exchange.speculation.as_mut().unwrap().steps_by_accepted = vec![0, 0, 0, 10];
        }
        facts.run.expected_acceptance_length = Some(3.5);
        let found = finding(&facts, &run, Id::AcceptanceDiffers);
        assert_eq!(found.is_some(), differs, "{answers}: {found:?}");
    }
}

#[test]
fn an_expectation_without_reports_is_named() {
    for (answers, expected, found) in
        [(0, Some(2.73), true), (1, Some(2.73), true), (2, Some(2.73), false), (0, None, false)]
    {
        let (mut facts, run) = speculative(answers, &[7, 13, 80], 2);
        facts.run.expected_acceptance_length = expected;
        let seen = finding(&facts, &run, Id::AcceptanceNotReported);
        assert_eq!(seen.is_some(), found, "{answers}: {seen:?}");
    }
}

/// Simulated lengths of the minimal variance that vLLM, ATOM and TensorRT-LLM give, and real ones.
#[test]
fn steps_that_are_too_regular_are_simulated() {
    for (answers, steps, draft, found) in [
        (30, &[0, 27, 73][..], 3, Some("accepted 1 or 2 of 3.0 proposed tokens")),
        (30, &[0, 0, 100], 4, Some("accepted 2 of 4.0 proposed tokens")),
        (30, &[0, 20], 2, Some("accepted 1 of 2.0 proposed tokens")),
        (100, &[0, 0, 50, 50], 4, Some("accepted 2 or 3 of 4.0 proposed tokens")),
        // A step in 300 that the end of an answer cuts.
        (100, &[1, 0, 150, 149], 4, Some("accepted 2 or 3")),
        // Too few answers, or steps.
        (29, &[0, 27, 73], 3, None),
        (30, &[0, 5, 14], 3, None),
        // Drafts of one token, and of two whose first is easy.
        (100, &[7, 93], 1, None),
        (100, &[0, 27, 73], 2, None),
        // A perfect draft, a useless draft, and repeated prompts.
        (100, &[0, 0, 0, 100], 3, None),
        (100, &[100, 0, 0, 0], 3, None),
        (100, &[20, 16, 13, 51], 3, None),
        // A head of two tokens whose third is rarely right.
        (100, &[3, 38, 58, 1], 8, None),
        (100, &[0, 40, 55, 5], 8, None),
    ] {
        let (facts, run) = speculative(answers, steps, draft);
        let seen = finding(&facts, &run, Id::AcceptanceSimulated);
        assert_eq!(seen.is_some(), found.is_some(), "{answers} {steps:?} {draft}: {seen:?}");
        if let Some((severity, seen, _)) = seen {
            assert!(severity == Severity::Suspect && seen.contains(found.unwrap()), "{seen}");
        }
    }
    // Without the number of proposed tokens, a perfect draft looks the same.
    let (facts, mut run) = speculative(100, &[0, 0, 100], 4);
    run.iter_mut().for_each(|exchange| exchange.usage = output_usage(2));
    assert_eq!(finding(&facts, &run, Id::AcceptanceSimulated), None);
}

#[test]
fn a_stated_simulation_is_a_note_without_scores() {
    let (mut facts, run) = speculative(100, &[0, 27, 73], 3);
    facts.run.simulated_acceptance = Some("SGLANG_SIMULATE_ACC_LEN".to_owned());
    let mut summary = Summary::new(&facts, &run);
    let found = |summary: &Summary| {
        let found = findings(summary).into_iter();
        let mut found = found.filter(|finding| finding.id == Id::AcceptanceSimulated);
        let found = found.next().unwrap();
        assert!(found.seen.ends_with("sets `SGLANG_SIMULATE_ACC_LEN`"), "{}", found.seen);
        (found.severity, found.why.contains("scores mean nothing"))
    };
    assert_eq!(found(&summary), (Severity::Note, false));
    summary.run_scores.insert("corpus-bleu".to_owned(), 0.3);
    assert_eq!(found(&summary), (Severity::Suspect, true));
}
