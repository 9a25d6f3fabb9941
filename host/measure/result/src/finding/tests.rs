mod cache;
mod devices;
mod failures;
mod load;
mod series;
mod vitals;

use super::raise::of;
use super::*;
use crate::summary::fixture::{facts, failed, ms, output_usage, reply};
use crate::summary::{RunFacts, Summary, Tokenizer};
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
    let summary = Summary::of(&facts, &run);
    assert_eq!(summary.verdict, Verdict::of(&summary.findings));
    for finding in &summary.findings {
        let texts = [&finding.seen, &finding.why, &finding.advice];
        assert!(texts.iter().all(|text| !text.is_empty()), "{finding:?}");
    }
    let findings = summary.findings.iter();
    let others = findings.filter(|finding| finding.id != Id::FewSamples);
    others.map(|finding| (finding.id, finding.severity)).collect()
}

fn fail(exchange: &mut Exchange, class: Class) {
    *exchange = failed(exchange.clone(), class, "seen");
}

#[test]
fn a_sound_run_is_valid() {
    assert_eq!(after(|_, _| {}), []);
}

#[test]
fn an_empty_run_is_invalid() {
    assert_eq!(after(|_, run| run.clear()), [(Id::NothingAnswered, Severity::Invalid)]);
}

#[test]
fn a_stopped_run_is_suspect() {
    let spoil = |facts: &mut RunFacts, _: &mut Vec<Exchange>| {
        (facts.run.interrupted, facts.run.planned) = (true, Some(500));
    };
    assert_eq!(after(spoil), [(Id::Interrupted, Severity::Suspect)]);
}

#[test]
fn scores_of_answers_that_the_limit_ended() {
    let scored = |name: &'static str, cut: usize| {
        move |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
            facts.run.ignore_eos = false;
            let column = (0..100).map(|index| (index, 0.0)).collect();
            facts.scores.insert(name.to_owned(), column);
            for exchange in &mut run[..cut] {
                exchange.finish = Some("length".into());
            }
            for exchange in &mut run[cut..] {
                exchange.finish = Some("stop".into());
            }
        }
    };
    let found = |severity| vec![(Id::AnswersCut, severity)];
    assert_eq!(after(scored("final-number-strict", 0)), []);
    assert_eq!(after(scored("final-number-strict", 1)), found(Severity::Note));
    assert_eq!(after(scored("final-number-strict", 2)), found(Severity::Suspect));
    let words = |name: &'static str| {
        let (mut facts, mut run) = sound();
        scored(name, 7)(&mut facts, &mut run);
        scored("final-number", 7)(&mut facts, &mut run);
        let findings = Summary::of(&facts, &run).findings.into_iter();
        let mut cut = findings.filter(|finding| finding.id == Id::AnswersCut);
        cut.next().unwrap().seen
    };
    assert_eq!(
        words("final-number-unparsed"),
        "the limit of tokens ended 7 of the 100 answers with the score final-number"
    );
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
fn reports_unchecked_certificates() {
    let spoil = |facts: &mut RunFacts, _: &mut Vec<Exchange>| facts.run.insecure = true;
    assert_eq!(after(spoil), [(Id::Insecure, Severity::Note)]);
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
            for exchange in run {
                exchange.events.at.iter_mut().for_each(|at| at.0 += ms(950).0);
            }
        }
    };
    assert_eq!(after(slow_server(10_000_000, Some(2.0))), []);
    // A burst has a last request; it is late only where the lag shows.
    assert_eq!(after(slow_server(40_000_000, None)), []);
    assert_eq!(after(slow_server(10_100_000, Some(2.0))), [(Id::SendLag, Severity::Suspect)]);
}

#[test]
fn a_fast_server_does_not_make_the_scheduler_suspect() {
    let spoil = |_: &mut RunFacts, run: &mut Vec<Exchange>| {
        for exchange in run {
            exchange.due = Nanos(exchange.due.0 - 200_000);
            exchange.events.at[0] = Nanos(exchange.sent.unwrap().0 + 300_000);
        }
    };
    assert_eq!(after(spoil), []);
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
        move |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
            facts.run.ignore_eos = ignore_eos;
            for (i, exchange) in run.iter_mut().enumerate() {
                exchange.sample.output_tokens = Some(if i < n { 3 } else { 2 });
            }
        }
    };
    assert_eq!(after(short(false, 100)), []);
    assert_eq!(after(short(true, 0)), []);
    assert_eq!(after(short(true, 1)), [(Id::ShortAnswers, Severity::Note)]);
    assert_eq!(after(short(true, 2)), [(Id::ShortAnswers, Severity::Suspect)]);
}

#[test]
fn requests_beyond_the_context_are_found() {
    let asking = |context, n: usize| {
        move |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
            facts.run.context_tokens = context;
            for exchange in run.iter_mut().take(n) {
                exchange.usage = None;
                (exchange.sample.input_tokens, exchange.sample.output_tokens) =
                    (Some(2040), Some(9));
            }
        }
    };
    let found = |context, n| {
        let found = after(asking(context, n));
        found.into_iter().find(|(id, _)| *id == Id::BeyondContext)
    };
    assert_eq!(found(None, 100), None);
    assert_eq!(found(Some(2049), 100), None);
    assert_eq!(found(Some(2048), 1), Some((Id::BeyondContext, Severity::Note)));
    assert_eq!(found(Some(2048), 2), Some((Id::BeyondContext, Severity::Suspect)));
}

#[test]
fn token_counts_and_their_sources() {
    let approximate =
        Some(Tokenizer { name: "words".into(), approximate: true, ..Tokenizer::default() });
    let unknown = |_: &mut RunFacts, run: &mut Vec<Exchange>| run[0].usage = None;
    assert_eq!(after(unknown), [(Id::TokensUnknown, Severity::Suspect)]);

    let name = approximate.clone();
    let estimated = |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
        run[0].usage = None;
        facts.run.tokenizer = name;
        facts.retokenized.insert(0, 2);
    };
    assert_eq!(after(estimated), [(Id::ApproximateTokens, Severity::Suspect)]);

    let beside = |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
        facts.run.tokenizer = approximate;
        facts.retokenized = (0..run.len() as u64).map(|index| (index, 90)).collect();
    };
    assert_eq!(after(beside), [(Id::ApproximateTokens, Severity::Note)]);
}

#[test]
fn counts_that_disagree() {
    let input = |dataset| {
        move |_: &mut RunFacts, run: &mut Vec<Exchange>| {
            for exchange in run {
                exchange.sample.input_tokens = Some(dataset);
                exchange.usage.as_mut().unwrap().input_tokens = Some(100);
            }
        }
    };
    assert_eq!(after(input(104)), []);
    assert_eq!(after(input(105)), [(Id::InputTokensDisagree, Severity::Note)]);
    assert_eq!(after(input(80)), [(Id::InputTokensDisagree, Severity::Suspect)]);

    let output = |own: u32| {
        move |facts: &mut RunFacts, run: &mut Vec<Exchange>| {
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
        }
    };
    assert_eq!(after(output(96)), []);
    assert_eq!(after(output(95)), [(Id::OutputTokensDisagree, Severity::Note)]);
    assert_eq!(after(output(50)), [(Id::OutputTokensDisagree, Severity::Suspect)]);
}

#[test]
fn a_server_that_contradicts_itself() {
    let stating = |first: u32, n: usize| {
        move |_: &mut RunFacts, run: &mut Vec<Exchange>| {
            for (i, exchange) in run.iter_mut().enumerate() {
                let stated = if i < n { first } else { 1 };
                exchange.events.tokens = vec![Some(stated), Some(1), None];
            }
        }
    };
    let id = Id::EventTokensDisagree;
    assert_eq!(after(stating(1, 100)), []);
    assert_eq!(after(stating(2, 2)), [(id, Severity::Note)]);
    assert_eq!(after(stating(2, 3)), [(id, Severity::Suspect)]);
}

#[test]
fn a_dataset_that_is_shorter_than_the_plan() {
    let planned = |planned, interrupted| {
        move |facts: &mut RunFacts, _: &mut Vec<Exchange>| {
            (facts.run.planned, facts.run.interrupted) = (Some(planned), interrupted);
        }
    };
    assert_eq!(after(planned(100, false)), []);
    assert_eq!(after(planned(101, false)), [(Id::ShortDataset, Severity::Suspect)]);
    assert_eq!(after(planned(101, true)), [(Id::Interrupted, Severity::Suspect)]);
}

#[test]
fn replies_that_are_read_late() {
    let lag = |nanos, slower: u64| {
        move |_: &mut RunFacts, run: &mut Vec<Exchange>| {
            for exchange in run {
                exchange.read_lag = Some(Nanos(nanos));
                let at = exchange.events.at.iter_mut();
                at.for_each(|at| *at = *at + ms(slower));
            }
        }
    };
    // The median TTFT is 50 ms, the median gap 20 ms.
    assert_eq!(after(lag(2_500_000, 0)), []);
    assert_eq!(after(lag(2_600_000, 0)), [(Id::ReadLag, Severity::Note)]);
    assert_eq!(after(lag(20_000_000, 950)), []);
    assert_eq!(after(lag(21_000_000, 950)), [(Id::ReadLag, Severity::Note)]);
}

#[test]
fn requests_that_waited_for_a_connection() {
    let waits = |n: usize| {
        move |_: &mut RunFacts, run: &mut Vec<Exchange>| {
            for exchange in &mut run[..n] {
                let sent = exchange.sent.unwrap();
                exchange.connection = Some(model::exchange::Connection {
                    waited: true,
                    begun: Nanos(sent.0 - 500_000),
                    connected: sent,
                    ..Default::default()
                });
            }
        }
    };
    assert_eq!(after(waits(1)), []);
    assert_eq!(after(waits(2)), [(Id::ConnectionWaits, Severity::Note)]);
}

#[test]
fn pieces_that_come_together() {
    let apart = |nanos| {
        move |_: &mut RunFacts, run: &mut Vec<Exchange>| {
            for exchange in run {
                exchange.events.at[1] = exchange.events.at[0] + Nanos(nanos);
            }
        }
    };
    assert_eq!(after(apart(10_000)), []);
    assert_eq!(after(apart(9_999)), [(Id::BufferedReplies, Severity::Suspect)]);
}

#[test]
fn objectives_that_cannot_be_judged() {
    let objective = |metric: &str| {
        let objective = crate::metric::Objective::new(metric, 1000.0).unwrap();
        move |facts: &mut RunFacts, _: &mut Vec<Exchange>| facts.run.goodput = vec![objective]
    };
    assert_eq!(after(objective("ttft")), []);
    assert_eq!(after(objective("e2e-usage")), [(Id::ObjectiveUnknown, Severity::Suspect)]);
}

#[test]
fn means_that_are_known_roughly() {
    let vary = |by: u64| {
        move |_: &mut RunFacts, run: &mut Vec<Exchange>| {
            for exchange in run {
                let later =
                    ms(u64::from(model::random::mix(exchange.index).is_multiple_of(8)) * by);
                let at = exchange.events.at.iter_mut();
                at.for_each(|at| *at = *at + later);
            }
        }
    };
    // An eighth is later than 50 ms by chance. The mean of 100 varies by a thirtieth of the delay,
    // twice that at 95 %.
    assert_eq!(after(vary(50)), []);
    assert_eq!(after(vary(811)), [(Id::WideInterval, Severity::Note)]);
}

#[test]
fn events_of_several_tokens_and_of_less_than_one() {
    let spoil = |_: &mut RunFacts, run: &mut Vec<Exchange>| {
        run.iter_mut().for_each(|exchange| exchange.usage = output_usage(1));
    };
    assert_eq!(after(spoil), [(Id::TokensPerEvent, Severity::Note)]);
}

#[test]
fn events_of_several_tokens() {
    let spoil = |_: &mut RunFacts, run: &mut Vec<Exchange>| {
        run.iter_mut().for_each(|exchange| exchange.usage = output_usage(8));
    };
    assert_eq!(after(spoil), [(Id::TokensPerEvent, Severity::Note)]);
}

#[test]
fn percentiles_from_too_few_samples_are_named() {
    let (mut facts, run) = sound();
    facts.run.percentiles = vec![50.0, 95.0, 95.1, 99.9, 100.0];
    let findings = Summary::of(&facts, &run).findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].seen, "P95.1, P99, P99.9 from only 100 samples");
}

#[test]
fn the_worst_comes_first_and_decides() {
    let finding = |severity| Finding {
        id: Id::Failures,
        severity,
        seen: String::new(),
        why: String::new(),
        advice: String::new(),
    };
    let verdict = |severities: &[Severity]| {
        Verdict::of(&severities.iter().map(|severity| finding(*severity)).collect::<Vec<_>>())
    };
    assert_eq!(verdict(&[]), Verdict::Valid);
    assert_eq!(verdict(&[Severity::Note]), Verdict::Valid);
    assert_eq!(verdict(&[Severity::Note, Severity::Suspect]), Verdict::Suspect);
    assert_eq!(verdict(&[Severity::Suspect, Severity::Invalid]), Verdict::Invalid);
}

#[test]
fn names_equal_the_serialized_names() {
    for rule in [
        Id::NothingAnswered,
        Id::TokensPerEvent,
        Id::FewSamples,
        Id::SendLag,
        Id::ClientSaturated,
        Id::ClientPaused,
        Id::StolenTime,
        Id::DecodeBehind,
        Id::SharedMachine,
    ] {
        assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
    }
}
