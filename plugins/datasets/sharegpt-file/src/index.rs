//! Finds the conversations of a file, and the places of their first two turns, or of all turns.

use runner_plugin::File;
use runner_plugin::json::LONGEST;
use runner_plugin::report::Remarks;

use crate::scan::{Fault, Scanner};
use crate::{Extent, Like, Span};

/// The part of a list of turns that was seen.
#[derive(Default)]
struct Turns {
    count: u64,
    /// From the first byte of the first turn to behind the last of the second, or of the last.
    start: u64,
    end: u64,
    /// True if the first turn says nothing.
    empty: bool,
    /// The mistake in the turns that count; ignored where there are not two.
    fault: Option<Fault>,
}

/// Passes over the whole file; counts in `remarks` the conversations that are left out.
pub(crate) fn index(
    file: &dyn File,
    like: Like,
    keep_empty: bool,
    remarks: &mut Remarks,
    extent: Extent,
) -> Result<Vec<Span>, Fault> {
    let mut spans = Vec::new();
    let mut scanner = Scanner::new(file);
    let scanner = &mut scanner;
    scanner.mark()?;
    if scanner.after_space()? != Some(b'[') {
        return Err(scanner.unexpected("`[`, the beginning of an array of conversations"));
    }
    scanner.array(|scanner, number| {
        scanner.conversation = number + 1;
        let left_out = match entry(scanner, like, extent)? {
            None => Some("entry without a conversation"),
            Some(turns) if turns.count < 2 => Some("conversation of fewer than two turns"),
            Some(turns) => {
                if let Some(fault) = turns.fault {
                    return Err(fault);
                }
                if keep_empty || !turns.empty {
                    spans.push(span(scanner, &turns)?);
                    None
                } else {
                    Some("conversation whose first turn is empty")
                }
            }
        };
        if let Some(reason) = left_out {
            remarks.dropped(reason, || format!("conversation {}", number + 1));
        }
        scanner.conversation = 0;
        Ok(())
    })?;
    if scanner.after_space()?.is_some() {
        return Err(scanner.unexpected("nothing after the array of conversations"));
    }
    Ok(spans)
}

fn span(scanner: &Scanner<'_>, turns: &Turns) -> Result<Span, Fault> {
    let length = turns.end - turns.start;
    if length > LONGEST as u64 {
        let cause = format!("turns of more than {} MiB", LONGEST >> 20);
        return Err(scanner.misshapen(turns.start, &cause));
    }
    Ok(Span { offset: [turns.start as u32, (turns.start >> 32) as u32], length: length as u32 })
}

/// Passes over one entry; `None` where it has no turns and needs none.
fn entry(scanner: &mut Scanner<'_>, like: Like, extent: Extent) -> Result<Option<Turns>, Fault> {
    let start = scanner.offset();
    match scanner.peek()? {
        Some(b'{') => {}
        Some(b'"' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
            return Err(scanner.misshapen(start, "something else than an object"));
        }
        _ => return Err(scanner.unexpected("`{`, the beginning of a conversation")),
    }
    let mut plural = None;
    let mut singular = None;
    scanner.object(|scanner, key| match key {
        b"conversations" => {
            plural = Some(turns(scanner, extent)?);
            Ok(())
        }
        b"conversation" if like == Like::Sglang => {
            singular = Some(turns(scanner, extent)?);
            Ok(())
        }
        _ => scanner.value(),
    })?;
    match plural.or(singular) {
        None if like == Like::Lmdeploy => {
            Err(scanner.misshapen(start, "an entry without the key `conversations`"))
        }
        found => Ok(found),
    }
}

fn turns(scanner: &mut Scanner<'_>, extent: Extent) -> Result<Turns, Fault> {
    let mut seen = Turns::default();
    if scanner.after_space()? != Some(b'[') {
        let start = scanner.offset();
        scanner.value()?;
        return Err(scanner.misshapen(start, "something else than a list of turns"));
    }
    scanner.array(|scanner, index| {
        seen.count = index + 1;
        if index >= 2 && extent == Extent::Pair {
            return scanner.value();
        }
        let start = scanner.offset();
        let (says, wrong) = turn(scanner)?;
        if index == 0 {
            seen.start = start;
            seen.empty = says == Some(0);
        }
        seen.end = scanner.offset();
        if let Some(wrong) = wrong {
            seen.fault.get_or_insert_with(|| scanner.misshapen(start, wrong));
        }
        Ok(())
    })?;
    Ok(seen)
}

/// Passes over one turn: the number of bytes of its text, or its mistake.
fn turn(scanner: &mut Scanner<'_>) -> Result<(Option<u64>, Option<&'static str>), Fault> {
    if scanner.peek()? != Some(b'{') {
        scanner.value()?;
        return Ok((None, Some("a turn that is not an object")));
    }
    let mut says = None;
    let mut wrong = Some("a turn without the key `value`");
    scanner.object(|scanner, key| {
        if key != b"value" {
            return scanner.value();
        }
        if scanner.after_space()? == Some(b'"') {
            scanner.step();
            says = Some(scanner.string()?);
            wrong = None;
            return Ok(());
        }
        wrong = Some("a turn whose `value` is not a string");
        scanner.value()
    })?;
    Ok((says, wrong))
}
