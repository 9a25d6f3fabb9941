//! The rules for samples that depend on others: a session's samples follow its root directly.

use std::collections::HashMap;

use crate::backend::{Point, Prompt, Sample};

/// The most samples of a session in a run.
const MOST: usize = 100_000;

/// The first sample that breaks a rule, and how. The last session may be incomplete.
pub fn fault(samples: &[Sample]) -> Option<String> {
    let mut session: HashMap<&str, &Sample> = HashMap::new();
    for sample in samples {
        if sample.after.is_empty() {
            session.clear();
        } else if session.is_empty() {
            return Some(format!(
                "sample `{}` depends on others, but no independent sample came before it",
                sample.id
            ));
        }
        let fault = dependencies(&session, sample)
            .or_else(|| continuation(&session, sample))
            .or_else(|| answers(&session, sample));
        if fault.is_some() {
            return fault;
        }
        session.insert(&sample.id, sample);
        if session.len() > MOST {
            return Some(format!(
                "the session that sample `{}` belongs to has more than {MOST} samples",
                sample.id
            ));
        }
    }
    None
}

fn dependencies(session: &HashMap<&str, &Sample>, sample: &Sample) -> Option<String> {
    let mut after = sample.after.iter().map(|on| on.sample.as_str());
    let unknown = after.find(|on| !session.contains_key(on))?;
    Some(format!(
        "sample `{}` depends on `{unknown}`, which did not come before it in its session",
        sample.id
    ))
}

/// True if a sample waits for the end of another's reply.
fn waits_for(sample: &Sample, other: &str) -> bool {
    let mut after = sample.after.iter();
    after.any(|on| on.sample == other && on.point == Point::End)
}

fn continuation(session: &HashMap<&str, &Sample>, sample: &Sample) -> Option<String> {
    let parent = parent(sample)?;
    if !waits_for(sample, parent) {
        return Some(format!(
            "sample `{}` continues `{parent}` without depending on its end",
            sample.id
        ));
    }
    let prompt = &session.get(parent)?.prompt;
    let is_conversation =
        matches!(prompt, Prompt::Text(_) | Prompt::Messages(_) | Prompt::Continuation(_));
    (!is_conversation).then(|| {
        format!("sample `{}` continues `{parent}`, whose prompt is not a conversation", sample.id)
    })
}

/// The sample whose conversation this one continues.
fn parent(sample: &Sample) -> Option<&str> {
    match &sample.prompt {
        Prompt::Continuation(next) => Some(&next.parent),
        _ => None,
    }
}

/// An answer must be there when the sample is due: the sample or its predecessor waits for it.
fn answers(session: &HashMap<&str, &Sample>, sample: &Sample) -> Option<String> {
    let early = sample.prompt.quotes().into_iter().find(|of| {
        let mut one = Some(sample);
        while let Some(waiting) = one {
            if waits_for(waiting, of) {
                return false;
            }
            // Parents came before, so this ends.
            one = parent(waiting).and_then(|parent| session.get(parent).copied());
        }
        true
    })?;
    Some(format!(
        "sample `{}` holds the answer to `{early}`, but neither it nor a sample whose conversation it continues depends on the end of `{early}`",
        sample.id
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Continuation, Dependency, Message, Part, Role};
    use crate::case::format::SampleFile;

    fn sample(id: &str, prompt: Prompt, after: &[&str]) -> Sample {
        let after = after.iter().map(|on| Dependency {
            sample: (*on).to_owned(),
            point: Point::End,
            delay: 0,
        });
        let plain = serde_json::json!({ "id": id, "prompt": { "text": "" } });
        let plain = serde_json::from_value::<SampleFile>(plain).unwrap().sample(&mut |_| None);
        Sample { prompt, after: after.collect(), ..plain.unwrap() }
    }

    fn root(id: &str) -> Sample {
        sample(id, Prompt::Text("Hello".to_owned()), &[])
    }

    fn turn(id: &str, parent: &str, after: &[&str], parts: Vec<Part>) -> Sample {
        let messages = vec![Message { role: Role::User, parts, extra: None }];
        let parent = parent.to_owned();
        sample(id, Prompt::Continuation(Continuation { parent, messages }), after)
    }

    fn answer(of: &str) -> Vec<Part> {
        vec![Part::Answer(of.to_owned())]
    }

    #[test]
    fn forks_and_joins_are_fine() {
        let all = [
            root("a"),
            turn("b", "a", &["a"], Vec::new()),
            turn("c", "a", &["a"], Vec::new()),
            // It waits for both, and its next turn may repeat the answers.
            turn("d", "a", &["a", "b", "c"], answer("c")),
            turn("e", "d", &["d"], answer("b")),
            root("f"),
            turn("g", "f", &["f"], Vec::new()),
        ];
        assert_eq!(fault(&all), None);
        assert_eq!(fault(&all[..3]), None);
    }

    #[test]
    fn every_rule_has_its_message() {
        let mut hasty = turn("b", "a", &["a"], Vec::new());
        hasty.after[0].point = Point::FirstOutput;
        let ids = sample("a", Prompt::Tokens(vec![1]), &[]);
        for (samples, words) in [
            (
                vec![turn("b", "a", &["a"], Vec::new())],
                "`b` depends on others, but no independent sample came before it",
            ),
            (
                vec![root("a"), turn("b", "x", &["x"], Vec::new())],
                "`b` depends on `x`, which did not come before it in its session",
            ),
            (
                vec![root("a"), root("c"), turn("b", "a", &["a"], Vec::new())],
                "`b` depends on `a`, which did not come before it in its session",
            ),
            (vec![root("a"), hasty], "`b` continues `a` without depending on its end"),
            (
                vec![turn("b", "a", &[], Vec::new())],
                "`b` continues `a` without depending on its end",
            ),
            (
                vec![ids, turn("b", "a", &["a"], Vec::new())],
                "`b` continues `a`, whose prompt is not a conversation",
            ),
            (
                vec![
                    root("a"),
                    turn("b", "a", &["a"], Vec::new()),
                    turn("c", "a", &["a"], answer("b")),
                ],
                "`c` holds the answer to `b`, but neither it nor a sample whose conversation it continues depends on the end of `b`",
            ),
        ] {
            assert_eq!(fault(&samples), Some(format!("sample {words}")));
        }
    }
}
