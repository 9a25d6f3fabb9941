//! Rules on the requests' content: the dataset's changes to it, and answers in histories.

use super::{Finding, Id};
use crate::summary::{Dataset, Summary, Treatment};

/// Share of the requests from which repeated or truncated samples make another workload.
const ANOTHER: f64 = 0.1;

pub(super) fn dataset_altered(summary: &Summary) -> Option<Finding> {
    let dataset = summary.dataset.as_ref()?;
    if dataset.remarks.is_empty() {
        return None;
    }
    let total = summary.requests.total;
    let beyond = |what| dataset.count(what) as f64 > ANOTHER * total as f64;
    let (repeated, truncated) = (beyond(Treatment::Repeated), beyond(Treatment::Truncated));
    let altered: Vec<String> =
        Treatment::ALL.iter().filter_map(|what| altered(dataset, *what)).collect();
    let why = match (repeated, truncated) {
        (true, true) => {
            "repeated prompts are found in the server's prefix cache, so they are answered faster than new prompts; and truncated samples are shorter than the known dataset's samples"
        }
        (true, false) => {
            "repeated prompts are found in the server's prefix cache, so they are answered faster than new prompts, and their share grows during the run"
        }
        (false, true) => {
            "truncated samples are shorter than the known dataset's samples, so the figures belong to another workload"
        }
        (false, false) => {
            "the sent prompts differ from the input, and another tool may alter the input differently"
        }
    };
    let advice = match (repeated, truncated) {
        (true, _) => {
            "use a larger dataset or fewer requests, or compare only runs that repeat as much"
        }
        (false, true) => {
            "raise the dataset's limit on lengths, or compare only runs that truncate as much"
        }
        (false, false) => "read the reasons under Dataset; `dataset.json` has them too",
    };
    Some(Id::DatasetAltered.doubted(
        repeated || truncated,
        format!("for {total} measured requests, the dataset {}", altered.join("; ")),
        why,
        advice,
    ))
}

fn altered(dataset: &Dataset, what: Treatment) -> Option<String> {
    let same = dataset.remarks.iter().filter(|remark| remark.what == what);
    // The first of several that are equally common.
    let commonest = same.rev().max_by_key(|remark| remark.count)?;
    let all = dataset.count(what);
    Some(if all == commonest.count {
        format!("{} {all} ({})", what.name(), commonest.reason)
    } else {
        format!("{} {all} ({}, and others)", what.name(), commonest.reason)
    })
}

/// Shares of requests from which answers on record in histories are worth knowing, and from which
/// the run did not have the conversations that it was to have.
const KNOWN: f64 = 0.01;
const OTHERS: f64 = 0.1;

pub(super) fn recorded_answers(summary: &Summary) -> Option<Finding> {
    let histories = summary.histories?;
    let share = histories.with_recorded as f64 / histories.requests.max(1) as f64;
    if summary.run.recorded_histories || share <= KNOWN {
        return None;
    }
    Some(Id::RecordedAnswers.doubted(
        share > OTHERS,
        format!(
            "{} of {} histories hold recorded answers in place of the server's answers ({} of {} answers)",
            histories.with_recorded, histories.requests, histories.recorded, histories.answers
        ),
        "the server did not write the recorded answers: its prefix cache does not hold them, and prompts have the recorded length, not the length with the server's answers",
        "check for failed requests, and for answers whose tool calls differ from the recorded calls; if you want recorded answers, set request.history = \"recorded\"",
    ))
}

pub(super) fn options_ignored(summary: &Summary) -> Option<Finding> {
    let ignored = &summary.run.ignored_options;
    if ignored.is_empty() {
        return None;
    }
    let named: Vec<String> = ignored.iter().map(|key| format!("`{key}`")).collect();
    let backend = &summary.run.backend;
    Some(Id::OptionsIgnored.suspect(
        format!(
            "the backend `{backend}` ignores {}: its requests are the same with and without",
            named.join(", ")
        ),
        "the server was not told, so the run measured its defaults in their place",
        if ignored.iter().any(|key| key == "request.ignore-eos") && backend == "openai" {
            "for vLLM or SGLang add --set backend.config.ignore-eos-field=ignore_eos, or name their own backend (--backend vllm-chat); leave others out, or state them under `request.extra-body`"
        } else {
            "leave them out, state them under `request.extra-body` in the server's own words, or use a backend that has them"
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::tests::finding as found;
    use crate::finding::{Severity, Verdict};
    use crate::summary::fixture::{facts, output_usage, reply};
    use crate::summary::{Remark, RunFacts};
    use model::exchange::Kind::{End, Text};
    use model::exchange::{Exchange, History};

    fn run() -> Vec<Exchange> {
        let request = |index: u64| {
            let at = 1000 + index * 200;
            let events = [(at + 50, Text, None, 2), (at + 90, End, None, 0)];
            let mut exchange = reply(index, at, &events);
            exchange.usage = output_usage(4);
            exchange
        };
        (0..200).map(request).collect()
    }

    fn remarked(remarks: &[(Treatment, &str, u64)]) -> RunFacts {
        let remark = |(what, reason, count): &(Treatment, &str, u64)| Remark {
            what: *what,
            reason: (*reason).to_owned(),
            count: *count,
            first: None,
        };
        RunFacts {
            dataset: Some(Dataset { remarks: remarks.iter().map(remark).collect() }),
            ..facts()
        }
    }

    #[test]
    fn options_that_the_backend_ignores_are_reported() {
        let mut facts = facts();
        assert_eq!(found(&facts, &run(), Id::OptionsIgnored), None);
        facts.run.ignored_options = ["request.top-k", "request.stop"].map(str::to_owned).into();
        let (severity, seen, _) = found(&facts, &run(), Id::OptionsIgnored).unwrap();
        assert_eq!(severity, Severity::Suspect);
        assert!(seen.contains("ignores `request.top-k`, `request.stop`"), "{seen}");
        facts.run.backend = "openai".to_owned();
        facts.run.ignored_options = vec!["request.ignore-eos".to_owned()];
        let findings = Summary::new(&facts, &run()).findings;
        let finding = findings.into_iter().find(|finding| finding.id == Id::OptionsIgnored);
        let advice = finding.unwrap().advice;
        for way in ["--backend vllm-chat", "--set backend.config.ignore-eos-field=ignore_eos"] {
            assert!(advice.contains(way), "{advice}");
        }
    }

    #[test]
    fn a_dataset_that_alters_its_input_is_reported() {
        use Treatment::{Dropped, Repeated, Truncated};
        let run = run();
        let of = |remarks: &[_]| found(&remarked(remarks), &run, Id::DatasetAltered);
        assert_eq!(of(&[]), None);
        let (severity, seen, _) = of(&[
            (Dropped, "too short", 70),
            (Dropped, "no turns", 900),
            (Repeated, "too few prompts", 20),
        ])
        .unwrap();
        assert_eq!(severity, Severity::Note);
        let expected = "for 200 measured requests, the dataset dropped 970 (no turns, and others); repeated 20 (too few prompts)";
        assert_eq!(seen, expected);
        let (severity, _, why) = of(&[(Repeated, "too few prompts", 21)]).unwrap();
        assert_eq!(severity, Severity::Suspect);
        assert!(why.contains("prefix cache"), "{why}");
        let (severity, _, why) =
            of(&[(Truncated, "too long", 11), (Truncated, "cut", 10)]).unwrap();
        assert_eq!(severity, Severity::Suspect);
        assert!(!why.contains("prefix cache") && why.contains("shorter"), "{why}");
        let repeats = Summary::new(&remarked(&[(Repeated, "x", 21)]), &run);
        assert_eq!(repeats.verdict, Verdict::Suspect);
    }

    #[test]
    fn answers_on_record_in_live_histories_are_reported() {
        let mut run = run();
        for (place, exchange) in run[100..].iter_mut().enumerate() {
            exchange.sample.history =
                Some(History { continues: 0, answers: 2, recorded: u32::from(place < 1) });
        }
        let facts = facts();
        assert_eq!(found(&facts, &run, Id::RecordedAnswers), None, "1 %");
        let mut record = |upto: usize| {
            for exchange in &mut run[100..100 + upto] {
                exchange.sample.history.as_mut().unwrap().recorded = 1;
            }
            run.clone()
        };
        let (severity, seen, _) = found(&facts, &record(10), Id::RecordedAnswers).unwrap();
        assert_eq!(severity, Severity::Note);
        let wanted = "10 of 100 histories hold recorded answers in place of the server's answers (10 of 200 answers)";
        assert_eq!(seen, wanted);
        let (severity, ..) = found(&facts, &record(11), Id::RecordedAnswers).unwrap();
        assert_eq!(severity, Severity::Suspect);
        let mut meant = facts;
        meant.run.recorded_histories = true;
        assert_eq!(found(&meant, &record(50), Id::RecordedAnswers), None);
    }
}
