//! The parts of every tokenizer: facts about its vocabulary, and a model as it was read.

/// Facts that hold for every text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Token ids are below this.
    pub vocabulary_size: u32,
    /// Ids from here on were added to the vocabulary the model's tokenizer was made with.
    pub base_size: u32,
    /// Number of special tokens that are put around a single text.
    pub added_tokens: u32,
    /// Ids without a text of their own, ascending.
    pub special: Vec<u32>,
    /// True if it is a substitute for the model's own tokenizer.
    pub approximate: bool,
}

/// A model as read from its file.
pub(super) struct ParsedModel<M> {
    pub(super) facts: Facts,
    pub(super) model: M,
}

impl<M> ParsedModel<M> {
    /// The model in another type.
    pub(super) fn map<N>(self, change: impl FnOnce(M) -> N) -> ParsedModel<N> {
        ParsedModel { facts: self.facts, model: change(self.model) }
    }
}
