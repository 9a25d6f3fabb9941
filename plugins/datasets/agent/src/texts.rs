//! Texts of a session that is drawn. The session is visited twice: once to collect its texts, and,
//! after all are written at once, again to place them.

use std::rc::Rc;

use dialogue::draw::generator;
use dialogue::words::{CountedText, TextRequest, Writer};
use runner_plugin::{Error, Tokenizer};

/// Parts of a session from here on are texts; lower parts draw lengths and waits.
const TEXTS: u64 = 1 << 32;

/// The texts of a session.
pub(crate) struct Texts {
    seed: u64,
    session: u64,
    wanted: Vec<TextRequest>,
    written: std::vec::IntoIter<CountedText>,
    learning: bool,
}

impl Texts {
    /// A text of this many tokens; empty while the session is visited for the first time.
    pub(crate) fn text(&mut self, tokens: u32) -> String {
        if self.learning {
            let part = TEXTS + self.wanted.len() as u64;
            self.wanted
                .push(TextRequest { random: generator(self.seed, self.session, part), tokens });
            return String::new();
        }
        self.written.next().unwrap_or_default().0
    }
}

/// Goes through a session twice with `build`, which must ask for the same texts both times.
pub(crate) fn with_texts<T>(
    seed: u64,
    session: u64,
    writer: &Writer,
    tokenizer: &Rc<dyn Tokenizer>,
    mut build: impl FnMut(&mut Texts) -> Result<T, String>,
) -> Result<Result<T, String>, Error> {
    let mut texts = Texts {
        seed,
        session,
        wanted: Vec::new(),
        written: Vec::new().into_iter(),
        learning: true,
    };
    if let Err(cause) = build(&mut texts) {
        return Ok(Err(cause));
    }
    texts.written = writer.write(&**tokenizer, &texts.wanted)?.into_iter();
    texts.learning = false;
    Ok(build(&mut texts))
}
