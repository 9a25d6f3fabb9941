//! Conversations of a ShareGPT file that is one array, shuffled by the seed.

use dialogue::turns::{Splitter, Turn};
use runner_plugin::random::Python;
use runner_plugin::report::Remarks;
use runner_plugin::{Error, Files, Message, Role};
use sharegpt_file::{Conversations, Utterance};

use crate::{Conversation, Source};

/// The reason why a conversation cannot be used.
const UNKNOWN: &str = "a speaker who is neither the user, the model, the system nor a tool";

/// Conversations from the front; spare ones from the back.
pub(crate) struct ShareGpt {
    conversations: Conversations,
    front: usize,
    back: usize,
}

impl ShareGpt {
    /// Passes over the file, if there is one. Shuffles as Python does after `random.seed(seed)`.
    pub(crate) fn open(files: &dyn Files, shuffle: bool, seed: u64) -> Result<Option<Self>, Error> {
        let Some(mut conversations) = Conversations::open_whole(files, dialogue::FILE)? else {
            return Ok(None);
        };
        if shuffle {
            conversations.shuffle(&mut Python::new(seed));
        }
        Ok(Some(Self { front: 0, back: conversations.len(), conversations }))
    }

    /// Returns the parts of the file that were passed over.
    pub(crate) fn remarks(&self) -> &Remarks {
        self.conversations.remarks()
    }

    fn read(&self, position: usize) -> Result<Option<Conversation>, Error> {
        let Some(utterances) = self.conversations.read_whole(position)? else { return Ok(None) };
        let (turns, fault) = turns(utterances);
        Ok(Some(Conversation {
            place: self.conversations.place(position),
            turns,
            fault,
            ..Conversation::default()
        }))
    }
}

impl Source for ShareGpt {
    fn next(&mut self) -> Result<Option<Conversation>, Error> {
        if self.front >= self.back {
            return Ok(None);
        }
        self.front += 1;
        self.read(self.front - 1)
    }

    /// From the back, and at most half of them.
    fn spare(&mut self) -> Result<Option<Conversation>, Error> {
        if self.back <= self.conversations.len().div_ceil(2).max(self.front) {
            return Ok(None);
        }
        self.back -= 1;
        self.read(self.back)
    }

    fn rewind(&mut self) -> Result<(), Error> {
        self.front = 0;
        Ok(())
    }
}

/// The turns of a conversation, or why there are none. Speakers that are not named alternate.
pub(crate) fn turns(utterances: Vec<Utterance>) -> (Vec<Turn>, Option<&'static str>) {
    let mut splitter = Splitter::default();
    for (index, utterances) in utterances.into_iter().enumerate() {
        let role = match utterances.from.as_deref() {
            Some("human" | "user") => Role::User,
            Some("gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model") => Role::Assistant,
            Some("system") => Role::System,
            Some("tool" | "function" | "observation") => Role::Tool,
            None if index % 2 == 0 => Role::User,
            None => Role::Assistant,
            Some(_) => return (Vec::new(), Some(UNKNOWN)),
        };
        splitter.push(Message::text(role, utterances.value));
    }
    (splitter.finish(), None)
}
