mod acceptance;
mod cache;
mod devices;
mod failures;
mod load;
mod series;
mod vitals;

use super::raise::findings;
use super::*;
use crate::summary::fixture::{facts, failed, ms, output_usage, reply};
use crate::summary::{Rules, RunFacts, Summary, Tokenizer};
use model::exchange::Kind::{End, Text};
use model::exchange::{Class, Exchange};
use model::units::Nanos;

/// A run that nothing speaks against: 100 answers of two tokens, one a piece, over 15 seconds.
fn sound() -> (RunFacts, Vec<Exchange>) {
    let run = (0..100).map(|index| {
        let sent = 1000 + 150 * index;
        let events =
            [(sent + 50, Text, None, 3), (sent + 70, Text, None, 3), (sent + 70, End, None, 0)];
        let mut exchange = reply(index, sent, &events);
        exchange.usage = output_usage(2);
        exchange
    });
    (facts(), run.collect())
}

/// The findings after something was done to the sound run. All these runs have too few answers for
/// a P99; that finding is left out.
fn after(spoil: impl FnOnce(&mut RunFacts, &mut Vec<Exchange>)) -> Vec<(Id, Severity)> {
    let (mut facts, mut run) = sound();
    spoil(&mut facts, &mut run);
    let summary = Summary::new(&facts, &run);
    assert_eq!(summary.verdict, Verdict::from_findings(&summary.findings));
    for finding in &summary.findings {
        let texts = [&finding.seen, &finding.why, &finding.advice];
        assert!(texts.iter().all(|text| !text.is_empty()), "{finding:?}");
    }
    let others = summary.findings.iter().filter(|finding| finding.id != Id::FewSamples);
    others.map(|finding| (finding.id, finding.severity)).collect()
}

fn after_each(spoil: impl Fn(&mut Exchange)) -> Vec<(Id, Severity)> {
    after(|_, run| run.iter_mut().for_each(spoil))
}

/// The severity of the finding of an id, its observation and its reason.
pub(super) fn finding(
    facts: &RunFacts,
    run: &[Exchange],
    id: Id,
) -> Option<(Severity, String, String)> {
    let found = Summary::new(facts, run).findings.into_iter().find(|finding| finding.id == id)?;
    Some((found.severity, found.seen, found.why))
}

fn delay(exchange: &mut Exchange, by: Nanos) {
    exchange.events.at.iter_mut().for_each(|at| *at = *at + by);
}

fn fail(exchange: &mut Exchange, class: Class) {
    *exchange = failed(exchange.clone(), class, "seen");
}

#[test]
fn runs_that_are_sound_empty_stopped_or_insecure() {
    assert_eq!(after(|_, _| {}), []);
    assert_eq!(after(|_, run| run.clear()), [(Id::NothingAnswered, Severity::Invalid)]);
    let stopped = after(|facts, _| (facts.run.interrupted, facts.run.planned) = (true, Some(500)));
    assert_eq!(stopped, [(Id::Interrupted, Severity::Suspect)]);
    assert_eq!(after(|facts, _| facts.run.insecure = true), [(Id::Insecure, Severity::Note)]);
}

#[test]
fn scores_of_answers_that_the_limit_ended() {
    let scored = |name: &'static str, cut: usize| {
        move |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
            facts.run.ignore_eos = false;
            let column = (0..100).map(|index| (index, 0.0)).collect();
            facts.scores.insert(name.to_owned(), column);
            for (place, exchange) in run.iter_mut().enumerate() {
                exchange.finish = Some(if place < cut { "length" } else { "stop" }.into());
            }
        }
    };
    let found = |severity| vec![(Id::AnswersCut, severity)];
    assert_eq!(after(scored("final-number-strict", 0)), []);
    assert_eq!(after(scored("final-number-strict", 1)), found(Severity::Note));
    assert_eq!(after(scored("final-number-strict", 2)), found(Severity::Suspect));
    let (mut facts, mut run) = sound();
    scored("final-number-unparsed", 7)(&mut facts, &mut run);
    scored("final-number", 7)(&mut facts, &mut run);
    let expected = "the limit of tokens ended 7 of the 100 answers with the score final-number";
    assert_eq!(finding(&facts, &run, Id::AnswersCut).unwrap().1, expected);
    // Scores of the length, and scores that count the cut themselves.
    for name in ["output-length", "output-length-ratio.2", "sane", "sanity-cut"] {
        assert_eq!(after(scored(name, 100)), [], "{name}");
    }
    // Without a score, the limit is a length like any other.
    let unscored = |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
        scored("any", 100)(facts, run);
        facts.scores.clear();
    };
    assert_eq!(after(unscored), []);
}

#[test]
fn send_lag_that_is_large_or_shows_in_ttft() {
    let late = |by: u64| {
        move |_: &mut RunFacts, run: &mut Vec<Exchange>| {
            for exchange in run {
                exchange.due = Nanos(exchange.due.0 - by);
            }
        }
    };
    // The median TTFT is 50 ms.
    assert_eq!(after(late(2_500_000)), []);
    assert_eq!(after(late(2_600_000)), [(Id::SendLag, Severity::Suspect)]);
    let slow_server = |by: u64, rate: Option<f64>| {
        move |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
            facts.run.request_rate = rate;
            late(by)(facts, run);
            run.iter_mut().for_each(|exchange| delay(exchange, ms(950)));
        }
    };
    assert_eq!(after(slow_server(10_000_000, Some(2.0))), []);
    // A burst has a last request; it is late only where the lag shows.
    assert_eq!(after(slow_server(40_000_000, None)), []);
    assert_eq!(after(slow_server(10_100_000, Some(2.0))), [(Id::SendLag, Severity::Suspect)]);
}

#[test]
fn a_fast_server_does_not_make_the_scheduler_suspect() {
    let spoilt = after_each(|exchange| {
        exchange.due = Nanos(exchange.due.0 - 200_000);
        exchange.events.at[0] = Nanos(exchange.sent.unwrap().0 + 300_000);
    });
    assert_eq!(spoilt, []);
}

#[test]
fn the_cap_matters_only_to_a_run_held_to_a_rate() {
    let waits = |n: usize, rate| {
        move |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
            (facts.run.max_in_flight, facts.run.request_rate) = (Some(1), rate);
            for exchange in run {
                let waited = if exchange.index < n as u64 { 5 } else { 0 };
                (exchange.due, exchange.granted) =
                    (Nanos(exchange.due.0 - ms(waited).0), Some(exchange.due));
            }
        }
    };
    assert_eq!(after(waits(100, None)), []);
    let late_pacer = |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
        waits(100, Some(100.0))(facts, run);
        facts.run.max_in_flight = Some(32);
    };
    assert_eq!(after(late_pacer), [(Id::NotSteady, Severity::Note)]);
    assert_eq!(after(waits(0, Some(100.0))), []);
    assert_eq!(after(waits(1, Some(100.0))), [(Id::CapReached, Severity::Note)]);
    assert_eq!(after(waits(2, Some(100.0))), [(Id::CapReached, Severity::Suspect)]);
}

#[test]
fn short_answers_matter_if_the_end_is_ignored() {
    let short = |ignore_eos, n: usize| {
        after(move |facts, run| {
            facts.run.ignore_eos = ignore_eos;
            for (i, exchange) in run.iter_mut().enumerate() {
                exchange.sample.output_tokens = Some(if i < n { 3 } else { 2 });
            }
        })
    };
    assert_eq!(short(false, 100), []);
    assert_eq!(short(true, 0), []);
    assert_eq!(short(true, 1), [(Id::ShortAnswers, Severity::Note)]);
    assert_eq!(short(true, 2), [(Id::ShortAnswers, Severity::Suspect)]);
}

#[test]
fn requests_beyond_the_context_are_found() {
    let found = |context, n| {
        let (mut facts, mut run) = sound();
        facts.run.context_tokens = context;
        for exchange in run.iter_mut().take(n) {
            exchange.usage = None;
            (exchange.sample.input_tokens, exchange.sample.output_tokens) = (Some(2040), Some(9));
        }
        finding(&facts, &run, Id::BeyondContext).map(|(severity, ..)| severity)
    };
    assert_eq!(found(None, 100), None);
    assert_eq!(found(Some(2049), 100), None);
    assert_eq!(found(Some(2048), 1), Some(Severity::Note));
    assert_eq!(found(Some(2048), 2), Some(Severity::Suspect));
}

#[test]
fn token_counts_and_their_sources() {
    let approximate =
        Some(Tokenizer { name: "words".into(), approximate: true, ..Tokenizer::default() });
    let unknown = after(|_, run| run[0].usage = None);
    assert_eq!(unknown, [(Id::TokensUnknown, Severity::Suspect)]);

    let name = approximate.clone();
    let estimated = after(|facts, run| {
        run[0].usage = None;
        facts.run.tokenizer = name;
        facts.retokenized.insert(0, 2);
    });
    assert_eq!(estimated, [(Id::ApproximateTokens, Severity::Suspect)]);

    let retokenized = after(|facts, run| {
        facts.run.tokenizer = approximate;
        facts.retokenized = (0..run.len() as u64).map(|index| (index, 90)).collect();
    });
    assert_eq!(retokenized, [(Id::ApproximateTokens, Severity::Note)]);
}

#[test]
fn counts_that_disagree() {
    let input = |dataset| {
        after_each(|exchange| {
            exchange.sample.input_tokens = Some(dataset);
            exchange.usage.as_mut().unwrap().input_tokens = Some(100);
        })
    };
    assert_eq!(input(104), []);
    assert_eq!(input(105), [(Id::InputTokensDisagree, Severity::Note)]);
    assert_eq!(input(80), [(Id::InputTokensDisagree, Severity::Suspect)]);

    let output = |own: u32| {
        after(move |facts, run| {
            facts.retokenized = run.iter().map(|exchange| (exchange.index, own)).collect();
            for exchange in run {
                exchange.usage = output_usage(100);
                // Text for as many pieces as tokens, so that nothing else is remarkable.
                let at = exchange.events.at[0].0;
                let pieces = (0..99).map(|i| Nanos(at + i * 1_000_000));
                exchange.events = model::exchange::Events {
                    at: pieces.chain([Nanos(at + ms(99).0)]).collect(),
                    kind: [vec![Text; 99], vec![End]].concat(),
                    tokens: vec![None; 100],
                    bytes: [vec![1; 99], vec![0]].concat(),
                };
            }
        })
    };
    assert_eq!(output(96), []);
    assert_eq!(output(95), [(Id::OutputTokensDisagree, Severity::Note)]);
    assert_eq!(output(50), [(Id::OutputTokensDisagree, Severity::Suspect)]);
}

#[test]
fn a_server_that_contradicts_itself() {
    let stating = |first: u32, n: u64| {
        after_each(|exchange| {
            let stated = if exchange.index < n { first } else { 1 };
            exchange.events.tokens = vec![Some(stated), Some(1), None];
        })
    };
    assert_eq!(stating(1, 100), []);
    assert_eq!(stating(2, 2), [(Id::EventTokensDisagree, Severity::Note)]);
    assert_eq!(stating(2, 3), [(Id::EventTokensDisagree, Severity::Suspect)]);
}

#[test]
fn a_dataset_that_is_shorter_than_the_plan() {
    let planned = |planned, interrupted| {
        after(|facts, _| {
            (facts.run.planned, facts.run.interrupted) = (Some(planned), interrupted);
        })
    };
    assert_eq!(planned(100, false), []);
    assert_eq!(planned(101, false), [(Id::ShortDataset, Severity::Suspect)]);
    assert_eq!(planned(101, true), [(Id::Interrupted, Severity::Suspect)]);
}

#[test]
fn replies_that_are_read_late() {
    let lag = |nanos, slower: u64| {
        after_each(|exchange| {
            exchange.read_lag = Some(Nanos(nanos));
            delay(exchange, ms(slower));
        })
    };
    // The median TTFT is 50 ms, the median gap 20 ms.
    assert_eq!(lag(2_500_000, 0), []);
    assert_eq!(lag(2_600_000, 0), [(Id::ReadLag, Severity::Note)]);
    assert_eq!(lag(20_000_000, 950), []);
    assert_eq!(lag(21_000_000, 950), [(Id::ReadLag, Severity::Note)]);
}

#[test]
fn requests_that_waited_for_a_connection() {
    let waits = |n: usize| {
        after(move |_, run| {
            for exchange in &mut run[..n] {
                let sent = exchange.sent.unwrap();
                exchange.connection = Some(model::exchange::Connection {
                    waited: true,
                    begun: Nanos(sent.0 - 500_000),
                    connected: sent,
                    ..Default::default()
                });
            }
        })
    };
    assert_eq!(waits(1), []);
    assert_eq!(waits(2), [(Id::ConnectionWaits, Severity::Note)]);
}

#[test]
fn pieces_that_come_together() {
    let apart =
        |nanos| after_each(|exchange| exchange.events.at[1] = exchange.events.at[0] + Nanos(nanos));
    assert_eq!(apart(10_000), []);
    assert_eq!(apart(9_999), [(Id::BufferedReplies, Severity::Suspect)]);
}

#[test]
fn objectives_that_cannot_be_judged() {
    let objective = |metric: &str| {
        let objective = crate::metric::Objective::new(metric, 1000.0).unwrap();
        after(|facts, _| facts.run.goodput = vec![objective])
    };
    assert_eq!(objective("ttft"), []);
    assert_eq!(objective("e2e-usage"), [(Id::ObjectiveUnknown, Severity::Suspect)]);
}

#[test]
fn means_that_are_known_roughly() {
    let vary = |by: u64| {
        after_each(|exchange| {
            let is_later = model::random::mix(exchange.index).is_multiple_of(8);
            delay(exchange, ms(u64::from(is_later) * by));
        })
    };
    // An eighth is later than 50 ms by chance. The mean of 100 varies by a thirtieth of the delay,
    // twice that at 95 %.
    assert_eq!(vary(50), []);
    assert_eq!(vary(811), [(Id::WideInterval, Severity::Note)]);
}

#[test]
fn events_of_several_tokens_and_of_less_than_one() {
    for tokens in [1, 8] {
        let found = after_each(|exchange| exchange.usage = output_usage(tokens));
        assert_eq!(found, [(Id::TokensPerEvent, Severity::Note)], "{tokens}");
    }
}

#[test]
fn percentiles_from_too_few_samples_are_named() {
    let (mut facts, run) = sound();
    facts.run.percentiles = vec![50.0, 95.0, 95.1, 99.9, 100.0];
    let findings = Summary::new(&facts, &run).findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].seen, "P95.1, P99, P99.9 from only 100 samples");
}

#[test]
fn the_worst_comes_first_and_decides() {
    let verdict = |severities: &[Severity]| {
        let raised = severities.iter().map(|one| Id::Failures.finding(*one, "", "", ""));
        Verdict::from_findings(&raised.collect::<Vec<_>>())
    };
    assert_eq!(verdict(&[]), Verdict::Valid);
    assert_eq!(verdict(&[Severity::Note]), Verdict::Valid);
    assert_eq!(verdict(&[Severity::Note, Severity::Suspect]), Verdict::Suspect);
    assert_eq!(verdict(&[Severity::Suspect, Severity::Invalid]), Verdict::Invalid);
}

#[test]
fn names_equal_the_serialized_names() {
    for rule in Id::ALL {
        assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
    }
}

/// AgentX's limits: more than 1 % of context overflows, and more than 10 % of other failures.
#[test]
fn broken_rules_of_a_benchmark_are_named() {
    let rules = Rules {
        name: "agentx".into(),
        loosened: Vec::new(),
        context_overflow_most: Some(0.01),
        failures_most: Some(0.1),
    };
    const LONG: &str = "This model's Maximum Context is 10 tokens";
    for (overflows, others, loosened, expected) in [
        (1, 10, &[][..], None),
        (2, 0, &[], Some("2 of 100 requests had too long a context (2.0 %, at most 1 %)")),
        (0, 11, &[], Some("11 of 100 requests failed otherwise (11.0 %, at most 10 %)")),
        (0, 0, &["`load.duration` contradicts"], Some("`load.duration` contradicts")),
    ] {
        let (mut facts, mut run) = sound();
        for exchange in &mut run[..overflows] {
            *exchange = failed(exchange.clone(), Class::HttpStatus, LONG);
        }
        run[50..50 + others].iter_mut().for_each(|exchange| fail(exchange, Class::HttpStatus));
        let loosened = loosened.iter().map(|text| (*text).to_owned()).collect();
        facts.run.rules = Some(Rules { loosened, ..rules.clone() });
        let found = finding(&facts, &run, Id::RulesBroken);
        let seen = found.as_ref().map(|(_, seen, _)| seen.as_str());
        assert_eq!(found.is_some(), expected.is_some(), "{seen:?}");
        assert!(seen.unwrap_or_default().contains(expected.unwrap_or_default()), "{seen:?}");
        assert_eq!(Summary::new(&facts, &run).requests.context_overflows, overflows as u64);
    }
}
