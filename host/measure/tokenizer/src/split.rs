//! Cuts a text into the words that merges stay within, as the regular expressions of well-known
//! tokenizers do.
//!
//! These expressions take a backtracking engine, because they look ahead. The functions here are
//! these expressions written out; properties hold them to the engine's results.

use super::class::{Classes, HAN, LETTER, LOWER, NUMBER, SPACE, UPPER};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Gpt2,
    /// The pattern of Llama 3 and of Qwen, with numbers of at most `digits` digits. The pattern of
    /// `cl100k` also takes the spaces and lines that end a text as one word.
    Cl100k {
        digits: usize,
        whole_end: bool,
    },
    /// The pattern of `o200k`, where a word begins anew at a capital, and the pattern of Kimi,
    /// where Chinese characters are words apart.
    Cased {
        apart: bool,
    },
}

/// The text of a pattern, as files hold it.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KIMI: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

impl Pattern {
    pub(super) const LLAMA3: Self = Pattern::Cl100k { digits: 3, whole_end: false };
    pub(super) const QWEN: Self = Pattern::Cl100k { digits: 1, whole_end: false };
    /// The pattern of GPT-4.
    pub(super) const CL100K: Self = Pattern::Cl100k { digits: 3, whole_end: true };
    /// The pattern of GPT-4o and gpt-oss.
    pub(super) const O200K: Self = Pattern::Cased { apart: false };
    pub(super) const KIMI: Self = Pattern::Cased { apart: true };

    pub(super) const KNOWN: [(&'static str, Pattern); 6] = [
        (GPT2, Pattern::Gpt2),
        (LLAMA3, Pattern::LLAMA3),
        (QWEN, Pattern::QWEN),
        (CL100K, Pattern::CL100K),
        (O200K, Pattern::O200K),
        (KIMI, Pattern::KIMI),
    ];

    pub(super) fn from_regex(regex: &str) -> Option<Self> {
        Self::KNOWN.iter().find_map(|(text, pattern)| (*text == regex).then_some(*pattern))
    }

    /// The words of a text; together they are the text.
    pub(super) fn words(self, classes: Classes, text: &str) -> Words<'_> {
        Words { pattern: self, reader: Reader { classes, text }, at: 0 }
    }
}

pub(super) struct Words<'t> {
    pattern: Pattern,
    reader: Reader<'t>,
    at: usize,
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    #[inline]
    fn next(&mut self) -> Option<&'t str> {
        let start = self.at;
        let first = self.reader.at(start)?;
        self.at = match self.pattern {
            Pattern::Gpt2 => self.reader.gpt2(start, first),
            Pattern::Cl100k { digits, whole_end } => {
                self.reader.cl100k(start, first, digits, whole_end)
            }
            Pattern::Cased { apart } => self.reader.cased(start, first, apart),
        };
        Some(&self.reader.text[start..self.at])
    }
}

#[derive(Clone, Copy)]
struct Char {
    value: char,
    class: u8,
    end: usize,
}

impl Char {
    /// `[^\s\p{L}\p{N}]`
    fn is_other(self) -> bool {
        self.class & (LETTER | NUMBER | SPACE) == 0
    }

    fn is(self, classes: u8) -> bool {
        self.class & classes != 0
    }

    fn is_newline(self) -> bool {
        matches!(self.value, '\r' | '\n')
    }
}

struct Reader<'t> {
    classes: Classes,
    text: &'t str,
}

impl Reader<'_> {
    #[inline]
    fn at(&self, at: usize) -> Option<Char> {
        let first = *self.text.as_bytes().get(at)?;
        let value =
            if first < 0x80 { char::from(first) } else { self.text[at..].chars().next()? };
        Some(Char { value, class: self.classes.get(value), end: at + value.len_utf8() })
    }

    /// Returns the end of the run of such characters that begins here.
    #[inline]
    fn run(&self, mut at: usize, mut of: impl FnMut(Char) -> bool) -> usize {
        while let Some(c) = self.at(at).filter(|c| of(*c)) {
            at = c.end;
        }
        at
    }

    fn gpt2(&self, start: usize, first: Char) -> usize {
        if first.value == '\''
            && let Some(end) = self.contraction(first.end, |c, letter| c == letter)
        {
            return end;
        }
        let second = self.at(first.end);
        // ` ?` before letters, numbers and others.
        let leading = match second {
            Some(second) if first.value == ' ' => second,
            _ => first,
        };
        for class in [LETTER, NUMBER] {
            if leading.is(class) {
                return self.run(leading.end, |c| c.is(class));
            }
        }
        if leading.is_other() {
            return self.run(leading.end, Char::is_other);
        }
        self.spaces(start, first)
    }

    fn cl100k(&self, start: usize, first: Char, digits: usize, whole_end: bool) -> usize {
        if first.is(LETTER) {
            return self.run(first.end, |c| c.is(LETTER));
        }
        if first.is(NUMBER) {
            return self.number(first, digits);
        }
        if first.value == '\''
            && let Some(end) = self.contraction(first.end, folded)
        {
            return end;
        }
        let second = self.at(first.end);
        if let Some(second) = second.filter(|second| second.is(LETTER))
            && !first.is_newline()
        {
            return self.run(second.end, |c| c.is(LETTER));
        }
        if let Some(end) = self.others(first, Char::is_newline) {
            return end;
        }
        self.lines(start, first, whole_end)
    }

    fn cased(&self, start: usize, first: Char, apart: bool) -> usize {
        if apart && first.is(HAN) {
            return self.run(first.end, |c| c.is(HAN));
        }
        let of = |class: u8| move |c: Char| c.is(class) && !(apart && c.is(HAN));
        let leads = !first.is(LETTER | NUMBER) && !first.is_newline();
        let starts = [leads.then_some(first.end), Some(start)];
        let word = (starts.into_iter().flatten())
            .find_map(|start| self.lower_word(start, of(UPPER), of(LOWER)))
            .or_else(|| {
                // No letter that may be a small one is in reach: capitals alone.
                (starts.into_iter().flatten()).find_map(|start| {
                    let end = self.run(start, of(UPPER));
                    (end > start).then_some(end)
                })
            });
        if let Some(end) = word {
            let quote = self.at(end).filter(|c| c.value == '\'');
            return quote.and_then(|quote| self.contraction(quote.end, folded)).unwrap_or(end);
        }
        if first.is(NUMBER) {
            return self.number(first, 3);
        }
        let behind = |c: Char| c.is_newline() || (!apart && c.value == '/');
        if let Some(end) = self.others(first, behind) {
            return end;
        }
        self.lines(start, first, false)
    }

    /// `U*L+`. A character may be of both classes, so the capitals give back characters that the
    /// rest needs.
    fn lower_word(
        &self,
        start: usize,
        upper: impl Fn(Char) -> bool,
        lower: impl Fn(Char) -> bool,
    ) -> Option<usize> {
        let mut of_both = None;
        let end = self.run(start, |c| {
            if upper(c) && lower(c) {
                of_both = Some(c.end);
            }
            upper(c)
        });
        match self.at(end).filter(|c| lower(*c)) {
            Some(c) => Some(self.run(c.end, lower)),
            None => of_both,
        }
    }

    /// `\p{N}{1,3}`, for three digits.
    fn number(&self, first: Char, digits: usize) -> usize {
        let mut end = first.end;
        for _ in 1..digits {
            match self.at(end) {
                Some(c) if c.is(NUMBER) => end = c.end,
                _ => break,
            }
        }
        end
    }

    /// ` ?[^\s\p{L}\p{N}]+[\r\n]*`, with what may follow.
    fn others(&self, first: Char, behind: impl Fn(Char) -> bool) -> Option<usize> {
        let leading = match self.at(first.end) {
            Some(second) if first.value == ' ' => second,
            _ => first,
        };
        leading.is_other().then(|| {
            let end = self.run(leading.end, Char::is_other);
            self.run(end, behind)
        })
    }

    /// `\s*[\r\n]+|\s+(?!\S)|\s+`; with `\s++$` before it where the end is whole.
    fn lines(&self, start: usize, first: Char, whole_end: bool) -> usize {
        // `\s*[\r\n]+` ends behind the last line end of the run.
        let mut last_newline = None;
        let end = self.run(start, |c| {
            if c.is_newline() {
                last_newline = Some(c.end);
            }
            c.is(SPACE)
        });
        match last_newline {
            Some(_) if whole_end && end == self.text.len() => end,
            Some(end) => end,
            None => self.spaces(start, first),
        }
    }

    /// `\s+(?!\S)|\s+`: a run of spaces; where something follows, the last of them is left to it.
    fn spaces(&self, start: usize, first: Char) -> usize {
        let end = self.run(first.end, |c| c.is(SPACE));
        if end == self.text.len() || end == first.end {
            return end;
        }
        let last = self.text[start..end].chars().next_back();
        end - last.map_or(0, char::len_utf8)
    }

    /// Returns the end of `s`, `t`, `re`, `ve`, `m`, `ll` or `d`, if one begins here.
    fn contraction(&self, start: usize, is: impl Fn(char, char) -> bool) -> Option<usize> {
        let first = self.at(start)?;
        if ['s', 't', 'm', 'd'].iter().any(|letter| is(first.value, *letter)) {
            return Some(first.end);
        }
        let second = self.at(first.end)?;
        [('r', 'e'), ('v', 'e'), ('l', 'l')]
            .iter()
            .any(|(one, two)| is(first.value, *one) && is(second.value, *two))
            .then_some(second.end)
    }
}

/// Equality without regard to case, as Unicode folds it: the long s is an s.
fn folded(c: char, letter: char) -> bool {
    c.eq_ignore_ascii_case(&letter) || (c == 'ſ' && letter == 's')
}
