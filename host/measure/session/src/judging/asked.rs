//! Questions of a saved run. Records have no prompts, so the samples are drawn again, with the
//! calls of the run, and conversations are put together with the answers that the run was given.

use std::collections::{BTreeMap, BTreeSet};

use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::{Message, Part, Prompt, Role, Sample};
use plugins::chat;
use plugins::dataset::Dataset;
use scenario::plan::Plan;

use crate::prepare::draw::{Drawing, spares};
use crate::prepare::gather::{Gathering, Whole};
use crate::prepare::{amount, plan_broken, put_in_front};
use crate::resolve::{Faults, Source, again};
use crate::sessions::graph::{Graph, Policy};
use crate::sessions::history::ReplyContent;

/// The question of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The sample's id, by which it is seen that it is the one on record.
    pub id: String,
    /// The prompt as text: a single text as it is, of a conversation every message under its
    /// author. `None` for what is not made of messages or text, such as tokens or texts to embed.
    pub text: Option<String>,
    /// True if it held images, audio or videos, which a text only mentions.
    pub has_media: bool,
}

/// A saved run's questions.
pub struct Questions {
    plan: Plan,
    dataset: Dataset,
    /// Remarks for the user, one line each.
    pub remarks: Vec<String>,
}

impl Questions {
    /// Opens the dataset of a saved run's plan again. The source says where plugins are searched
    /// for.
    ///
    /// # Errors
    /// What of the dataset, its files and its tokenizer is not there any more, or has changed.
    pub fn of(plan: Plan, source: &Source) -> Result<Self, Faults> {
        let again = again(&plan, source)?;
        Ok(Questions { plan, dataset: again.dataset, remarks: again.remarks })
    }

    /// Returns the questions of the requests with these numbers. `answer` gives the text and the
    /// tool calls that a request was answered with; of conversations, those before the wanted ones
    /// are needed.
    ///
    /// # Errors
    /// If the dataset fails.
    pub fn draw(
        &self,
        wanted: &BTreeSet<u64>,
        answer: impl Fn(u64) -> Option<(String, String)>,
    ) -> Result<BTreeMap<u64, Question>, PluginError> {
        let mut found = BTreeMap::new();
        let Some(last) = wanted.last().copied() else {
            return Ok(found);
        };
        let plan = &self.plan;
        let samples = self.dataset.open(plan.load.seed, amount(&plan.load))?;
        let mut drawing = Drawing::new(samples, plan.requests().unwrap_or(u64::MAX));
        spares(drawing.samples(), plan.load.warmup_requests(), || false)?;
        let mut gathering = Gathering::new(plan);
        let broken = |what: String| plan_broken(plan, &what);
        let mut ended = false;
        while !ended {
            let batch = match drawing.next() {
                Some(batch) => batch?.into_iter().map(Some).collect(),
                None => {
                    ended = true;
                    vec![None]
                }
            };
            for sample in batch {
                let whole = match sample {
                    Some(sample) => gathering.add(sample).map_err(broken)?,
                    None => gathering.finish(),
                };
                if let Some(whole) = whole {
                    let end = self.session(whole, wanted, &answer, &mut found)?;
                    if end >= last {
                        return Ok(found);
                    }
                }
                if gathering.is_over() {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Notes the wanted questions of a session. Returns the number of its last request.
    fn session(
        &self,
        whole: Whole,
        wanted: &BTreeSet<u64>,
        answer: &impl Fn(u64) -> Option<(String, String)>,
        found: &mut BTreeMap<u64, Question>,
    ) -> Result<u64, PluginError> {
        let (_, samples) = whole.into_parts();
        let end = samples.last().map_or(0, |(index, _)| *index);
        if !samples.iter().any(|(index, _)| wanted.contains(index)) {
            return Ok(end);
        }
        if samples.len() == 1 {
            for (index, sample) in samples {
                found.insert(index, self.question(sample));
            }
            return Ok(end);
        }
        let policy = Policy {
            history: self.plan.request.history,
            after_failure: self.plan.request.after_failure,
        };
        let broken = |what: String| plan_broken(&self.plan, &what);
        let mut graph = Graph::new(samples, policy).map_err(broken)?;
        let mut ready = vec![0];
        while let Some(node) = ready.pop() {
            let composed = graph.compose(node).map_err(broken)?;
            let index = graph.index(node);
            if wanted.contains(&index) {
                found.insert(index, self.question(composed.sample));
            }
            let given = answer(index).map(|(output, calls)| ReplyContent::saying(&output, &calls));
            // When it ended makes no difference to what was asked next.
            ready.extend(graph.over(node, Nanos::ZERO, given).ready);
        }
        Ok(end)
    }

    fn question(&self, mut sample: Sample) -> Question {
        let system = self.plan.request.system_prompt.as_deref();
        put_in_front(&mut sample.prompt, system, None);
        Question { has_media: has_media(&sample.prompt), text: text(&sample.prompt), id: sample.id }
    }
}

fn text(prompt: &Prompt) -> Option<String> {
    match prompt {
        Prompt::Text(text) => Some(text.clone()),
        Prompt::Messages(messages) => match messages.as_slice() {
            [only] if only.role == Role::User => Some(words(only)),
            several => {
                let shown = several
                    .iter()
                    .map(|message| format!("[{}]\n{}", chat::role(message.role), words(message)));
                Some(shown.collect::<Vec<_>>().join("\n\n"))
            }
        },
        Prompt::Tokens(_) | Prompt::Continuation(_) | Prompt::Embedding(_) | Prompt::Ranking(_) => {
            None
        }
    }
}

/// Returns a message's text, with its further fields, such as the calls of tools, as JSON.
fn words(message: &Message) -> String {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) | Part::Answer(text) => text.as_str(),
        Part::Image(_) => "(an image)",
        Part::Audio(_) => "(audio)",
        Part::Video(_) => "(a video)",
    });
    let said: String = parts.collect();
    match &message.extra {
        Some(extra) if said.is_empty() => extra.clone(),
        Some(extra) => format!("{said}\n{extra}"),
        None => said,
    }
}

fn has_media(prompt: &Prompt) -> bool {
    let Prompt::Messages(messages) = prompt else {
        return false;
    };
    let mut parts = messages.iter().flat_map(|message| &message.parts);
    parts.any(|part| matches!(part, Part::Image(_) | Part::Audio(_) | Part::Video(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, parts: Vec<Part>) -> Message {
        Message { role, parts, extra: None }
    }

    #[test]
    fn a_conversation_names_who_says_what_and_a_single_text_is_bare() {
        let said = |role, words: &str| message(role, vec![Part::Text(words.to_owned())]);
        let one = Prompt::Messages(vec![said(Role::User, "2 + 2?")]);
        assert_eq!(text(&one).as_deref(), Some("2 + 2?"));
        let several = Prompt::Messages(vec![
            said(Role::System, "Be brief."),
            said(Role::User, "2 + 2?"),
            said(Role::Assistant, "4"),
            said(Role::User, "Sure?"),
        ]);
        assert_eq!(
            text(&several).as_deref(),
            Some("[system]\nBe brief.\n\n[user]\n2 + 2?\n\n[assistant]\n4\n\n[user]\nSure?")
        );
        assert_eq!(text(&Prompt::Tokens(vec![1, 2])), None);
    }

    #[test]
    fn what_a_tool_was_asked_is_part_of_the_conversation() {
        let mut call = message(Role::Assistant, Vec::new());
        call.extra = Some(r#"{"tool_calls":[]}"#.to_owned());
        assert_eq!(words(&call), r#"{"tool_calls":[]}"#);
    }
}
