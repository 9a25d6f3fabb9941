//! Inputs that the host provides to a plugin: files by the names that the scenario gives them, and
//! the tokenizer of the model under test. They are traits so that a plugin's unit tests can use
//! their own.

use std::io;
use std::ops::Deref;

use crate::bindings::host::{files, tokenizer};
use crate::{Facts, Message};

/// The files that the scenario names under `[dataset.files]`.
pub trait Files {
    /// Opens the file that the scenario calls `name`; `None` if there is no such name.
    fn open(&self, name: &str) -> Option<Box<dyn File>>;
}

/// An open file, read-only.
pub trait File {
    /// Its length in bytes.
    fn size(&self) -> u64;

    /// Reads at most `length` bytes from `offset`, and at most 4 MiB; fewer only at the file's end.
    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, String>;

    /// Reads these bytes in as many calls as that takes.
    ///
    /// # Errors
    /// The cause, if they cannot be read, or if the file has fewer.
    fn read_all(&self, offset: u64, length: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity(length as usize);
        while (bytes.len() as u64) < length {
            let missing = (length - bytes.len() as u64).min(MOST) as u32;
            let piece = self.read(offset + bytes.len() as u64, missing)?;
            if piece.is_empty() {
                return Err(SHORTER.to_owned());
            }
            bytes.extend(piece);
        }
        Ok(bytes)
    }
}

/// The most bytes that a file gives at once.
const MOST: u64 = 4 << 20;

const SHORTER: &str = "the file became shorter while it was read";

/// The tokenizer of the model under test.
pub trait Tokenizer {
    /// Facts about the tokenizer that hold for every text.
    fn describe(&self) -> Facts;

    /// Token ids of each text; with `special`, the tokens that the model puts around a text are
    /// added. One call for many texts costs far less than many calls.
    fn encode(&self, texts: &[String], special: bool) -> Vec<Vec<u32>>;

    /// Token counts of each text, for when the ids are not needed.
    fn count(&self, texts: &[String], special: bool) -> Vec<u32>;

    /// Token counts of conversations as the server's chat template writes them, with the beginning
    /// of the answer; `tools` is a JSON array of the tools that the model may call. `None` where
    /// the template is not known, refuses the conversation, or the conversation holds more than
    /// text. The default knows no template.
    fn count_chat(&self, conversations: &[Vec<Message>], tools: Option<&str>) -> Vec<Option<u32>> {
        let _ = tools;
        vec![None; conversations.len()]
    }

    /// Text of each list of ids, special tokens kept. An id outside the vocabulary gives no text.
    fn decode(&self, tokens: &[Vec<u32>]) -> Vec<String>;
}

/// A [`File`] as a stream, for `BufReader`, `serde_json::from_reader` and the like.
pub struct Reader<F> {
    file: F,
    offset: u64,
}

impl<F: Deref<Target: File>> Reader<F> {
    /// Reads `file` from its beginning.
    pub fn new(file: F) -> Self {
        Reader { file, offset: 0 }
    }

    /// Reads `file` from this byte on.
    pub fn at(file: F, offset: u64) -> Self {
        Reader { file, offset }
    }
}

impl<F: Deref<Target: File>> io::Read for Reader<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(MOST as usize) as u32;
        let bytes = self.file.read(self.offset, length).map_err(io::Error::other)?;
        if bytes.is_empty() && length > 0 && self.offset < self.file.size() {
            return Err(io::Error::other(SHORTER));
        }
        let read = bytes.len().min(buffer.len());
        buffer[..read].copy_from_slice(&bytes[..read]);
        self.offset += read as u64;
        Ok(read)
    }
}

pub(crate) struct HostFiles;

impl Files for HostFiles {
    fn open(&self, name: &str) -> Option<Box<dyn File>> {
        Some(Box::new(files::File::open(name)?))
    }
}

impl File for files::File {
    fn size(&self) -> u64 {
        files::File::size(self)
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, String> {
        files::File::read(self, offset, length)
    }
}

pub(crate) struct HostTokenizer;

impl Tokenizer for HostTokenizer {
    fn describe(&self) -> Facts {
        tokenizer::describe()
    }

    fn encode(&self, texts: &[String], special: bool) -> Vec<Vec<u32>> {
        tokenizer::encode(texts, special)
    }

    fn count(&self, texts: &[String], special: bool) -> Vec<u32> {
        tokenizer::count(texts, special)
    }

    fn count_chat(&self, conversations: &[Vec<Message>], tools: Option<&str>) -> Vec<Option<u32>> {
        tokenizer::count_chat(conversations, tools)
    }

    fn decode(&self, tokens: &[Vec<u32>]) -> Vec<String> {
        tokenizer::decode(tokens)
    }
}
