//! The trait of a scorer, and its adapter to the component model.

use std::cell::RefCell;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::bindings::scorer as wit;
use crate::inputs::HostTokenizer;
use crate::{Error, Exchange, Score, Tokenizer, config, export};

/// Scores answers. It reads the records after the run, so it cannot disturb the measurement.
pub trait Scorer: Sized + 'static {
    /// The user's configuration.
    type Config: DeserializeOwned + JsonSchema;

    /// Opens the scorer.
    fn open(config: Self::Config, tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error>;

    /// Scores of one exchange; none if it cannot be scored. The host computes the mean of each.
    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error>;

    /// Scores of the run as a whole, for measures that are not a mean.
    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        Ok(Vec::new())
    }
}

/// An opened scorer as the component's `judge`.
pub struct Judge<S>(RefCell<S>);

impl<S: Scorer> wit::GuestJudge for Judge<S> {
    fn open(config: String) -> Result<wit::Judge, Error> {
        export::hook_panics();
        let scorer = S::open(config::parse(&config)?, Box::new(HostTokenizer))?;
        Ok(wit::Judge::new(Judge(RefCell::new(scorer))))
    }

    fn score(&self, exchange: Exchange) -> Result<Vec<Score>, Error> {
        self.0.borrow_mut().score(&exchange)
    }

    fn finish(&self) -> Result<Vec<Score>, Error> {
        self.0.borrow_mut().finish()
    }
}
