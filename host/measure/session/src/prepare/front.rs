//! The texts in front of prompts: the run's instructions, and before everything its salt.

use crate::sessions::history::text_message;
use plugins::backend::{Part, Prompt, Role};
use scenario::plan::Salt;
use sha2::{Digest, Sha256};
use tokenizer::Tokenizer;

/// Digits of a salt: as many in every run, because many tokenizers make a token of several.
const DIGITS: u64 = 1_000_000_000_000_000_000;

/// The salt of a run with this seed that began at this instant, unique but for one in 10^18.
pub fn salt(seed: u64, started: &str, tokenizer: &Tokenizer) -> Salt {
    let digest = Sha256::digest(format!("{seed} {started}"));
    let number = digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let text = format!("Run {:018}.\n\n", number % DIGITS);
    let encoded = tokenizer.encode(std::slice::from_ref(&text), false);
    Salt {
        // A text of digits is one that every tokenizer takes.
        tokens: encoded.unwrap_or_default().pop().unwrap_or_default(),
        text,
    }
}

/// Puts the run's instructions and a salt in front of a prompt, and a text behind its instructions.
pub(super) fn put(
    prompt: &mut Prompt,
    (system, behind): (Option<&str>, Option<&str>),
    salt: Option<&Salt>,
) {
    if let Some(system) = system {
        instruct(prompt, system);
    }
    if let (Some(behind), Prompt::Messages(messages)) = (behind, &mut *prompt)
        && let Some(own) = messages.iter_mut().find(|message| message.role == Role::System)
    {
        match own.parts.last_mut() {
            Some(Part::Text(text)) => text.push_str(behind),
            _ => own.parts.push(Part::Text(behind.to_owned())),
        }
    }
    if let Some(salt) = salt {
        salted(prompt, salt);
    }
}

/// Puts the instructions in one message with a conversation's own: templates refuse a second.
fn instruct(prompt: &mut Prompt, system: &str) {
    match prompt {
        Prompt::Text(text) => {
            let messages = [(Role::System, system), (Role::User, &**text)];
            *prompt =
                Prompt::Messages(messages.map(|(role, text)| text_message(role, text)).into());
        }
        Prompt::Messages(messages) => match messages.first_mut() {
            Some(first) if first.role == Role::System => {
                first.parts.insert(0, Part::Text(format!("{system}\n\n")));
                if let [Part::Text(run), Part::Text(own)] = first.parts.as_mut_slice() {
                    run.push_str(own);
                    first.parts.truncate(1);
                }
            }
            _ => messages.insert(0, text_message(Role::System, system)),
        },
        // Those that have no place for instructions are sent as they are.
        Prompt::Tokens(_) | Prompt::Continuation(_) | Prompt::Embedding(_) | Prompt::Ranking(_) => {
        }
    }
}

/// Puts the salt before everything else, so that no page of another run's prefix cache fits.
fn salted(prompt: &mut Prompt, salt: &Salt) {
    match prompt {
        Prompt::Text(text) => text.insert_str(0, &salt.text),
        Prompt::Tokens(tokens) => {
            tokens.splice(0..0, salt.tokens.iter().copied());
        }
        Prompt::Messages(messages) => {
            if let Some(first) = messages.first_mut() {
                match first.parts.first_mut() {
                    Some(Part::Text(text)) => text.insert_str(0, &salt.text),
                    _ => first.parts.insert(0, Part::Text(salt.text.clone())),
                }
            }
        }
        // An embedded or ranked text stays as it is: another text has another result.
        Prompt::Continuation(_) | Prompt::Embedding(_) | Prompt::Ranking(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(prompt: &Prompt) -> Vec<String> {
        let Prompt::Messages(messages) = prompt else { panic!("no conversation") };
        let parts = messages.iter().flat_map(|message| &message.parts);
        let texts = parts.map(|part| match part {
            Part::Text(text) => text.clone(),
            _ => "?".to_owned(),
        });
        texts.collect()
    }

    #[test]
    fn salt_depends_on_seed_and_instant() {
        let of = |seed, started| salt(seed, started, &Tokenizer::bytes());
        let one = of(1, "2026-03-01T12:00:00Z");
        assert_eq!(one, of(1, "2026-03-01T12:00:00Z"));
        assert_ne!(one, of(2, "2026-03-01T12:00:00Z"));
        let other = of(1, "2026-03-01T12:00:00.000000001Z");
        assert_ne!(one, other);
        assert_eq!(one.text.len(), other.text.len());
        assert_eq!(one.tokens.len(), one.text.len());
    }

    #[test]
    fn salts_stand_around_the_instructions() {
        let salt = Salt { text: "77 ".into(), tokens: vec![7, 7] };
        let put = |mut prompt: Prompt, system: Option<&str>| {
            put(&mut prompt, (system, Some(" 78")), Some(&salt));
            prompt
        };
        let Prompt::Text(text) = put(Prompt::Text("a".into()), None) else { panic!("a text") };
        assert_eq!(text, "77 a");
        let Prompt::Tokens(tokens) = put(Prompt::Tokens(vec![1]), None) else { panic!("tokens") };
        assert_eq!(tokens, [7, 7, 1]);
        let chat = || Prompt::Messages(vec![text_message(Role::User, "a")]);
        assert_eq!(texts(&put(chat(), None)), ["77 a"]);
        let instructed = ["77 Be brief. 78", "a"];
        assert_eq!(texts(&put(chat(), Some("Be brief."))), instructed);
        assert_eq!(texts(&put(Prompt::Text("a".into()), Some("Be brief."))), instructed);
        let Prompt::Embedding(texts) = put(Prompt::Embedding(vec!["a".into()]), Some("x")) else {
            panic!("texts")
        };
        assert_eq!(texts, ["a"]);
    }

    #[test]
    fn system_prompt_precedes_the_conversations_own() {
        let mut prompt = Prompt::Messages(vec![
            text_message(Role::System, "Own."),
            text_message(Role::User, "a"),
        ]);
        put(&mut prompt, (Some("Run."), None), None);
        assert_eq!(texts(&prompt), ["Run.\n\nOwn.", "a"]);
    }
}
