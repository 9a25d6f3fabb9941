//! Normalization form C for texts that are not in it yet. Only the few characters that may change
//! are looked at.

use std::borrow::Cow;

use unicode_normalization_alignments::UnicodeNormalization;

use super::class::{Classes, UNSETTLED};

/// The text in normalization form C.
///
/// A settled character joins with none before it. So a settled character and the text up to the
/// next normalize by themselves.
pub(super) fn composed(classes: Classes, text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut composed = String::new();
    let mut copied = 0;
    let mut settled = 0;
    let mut segment = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if !classes.is(c, UNSETTLED) {
            settled = at;
            continue;
        }
        let next = chars.find(|(_, c)| !classes.is(*c, UNSETTLED));
        let end = next.map_or(text.len(), |(at, _)| at);
        segment.clear();
        segment.extend(text[settled..end].nfc().map(|(c, _)| c));
        if segment != text[settled..end] {
            composed.push_str(&text[copied..settled]);
            composed.push_str(&segment);
            copied = end;
        }
        settled = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    composed.push_str(&text[copied..]);
    Cow::Owned(composed)
}
