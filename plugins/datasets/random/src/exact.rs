//! Texts of exact lengths: token ids become text, and the text is adjusted until it tokenizes to
//! the number of ids.

use runner_plugin::Tokenizer;

/// The number of times that a text is converted to ids and back before its end is searched for.
const MENDINGS: u32 = 6;

/// The number of more ids than that are wanted the text has in which an end is searched for.
const SPARE: usize = 32;

/// Characters that are tried as the end, on each side of the wanted length.
const AROUND: usize = 64;

/// A text for each of these, which tokenizes to the number of its ids. Missing ids are taken from
/// the beginning again, and surplus ones are cut off. A text without such an end is as near as it
/// came.
pub(crate) fn texts(tokenizer: &dyn Tokenizer, drawn: Vec<Vec<u32>>) -> Vec<String> {
    let mut texts = vec![String::new(); drawn.len()];
    let mut open: Vec<(usize, Vec<u32>)> = drawn.iter().cloned().enumerate().collect();
    for _ in 0..=MENDINGS {
        let (places, ids): (Vec<usize>, Vec<_>) = open.into_iter().unzip();
        let made = tokenizer.decode(&ids);
        let counted = tokenizer.encode(&made, false);
        open = Vec::new();
        for ((place, text), ids) in places.into_iter().zip(made).zip(counted) {
            let wanted = &drawn[place];
            if ids.len() != wanted.len() {
                open.push((place, to_length(ids, wanted)));
            }
            texts[place] = text;
        }
        if open.is_empty() {
            return texts;
        }
    }
    for (place, _) in open {
        if let Some(text) = cut(tokenizer, &drawn[place]) {
            texts[place] = text;
        }
    }
    texts
}

/// Cuts surplus ids off, and repeats the ids of `wanted` for missing ones.
fn to_length(mut ids: Vec<u32>, wanted: &[u32]) -> Vec<u32> {
    ids.truncate(wanted.len());
    let missing = wanted.len() - ids.len();
    ids.extend(wanted.iter().cycle().take(missing));
    ids
}

/// The beginning of the ids' text with the number of ids, if a cut near that number has it.
fn cut(tokenizer: &dyn Tokenizer, ids: &[u32]) -> Option<String> {
    let wanted = u32::try_from(ids.len()).ok()?;
    let count = |text: &str| tokenizer.count(&[text.to_owned()], false).pop();
    let mut most = ids.len() + SPARE;
    let text = loop {
        let longer = ids.iter().copied().cycle().take(most).collect();
        let text = tokenizer.decode(&[longer]).pop()?;
        if count(&text)? > wanted {
            break text;
        }
        // Text that becomes longer and has no more tokens never has enough.
        if most > 64 * (ids.len() + SPARE) {
            return None;
        }
        most *= 2;
    };
    let ends = text.char_indices().map(|(at, _)| at).skip(1);
    let ends: Vec<usize> = ends.chain([text.len()]).collect();
    let passed = ends.partition_point(|end| count(&text[..*end]).is_some_and(|it| it <= wanted));
    let near = &ends[passed.saturating_sub(AROUND)..(passed + AROUND).min(ends.len())];
    let beginnings: Vec<String> = near.iter().map(|end| text[..*end].to_owned()).collect();
    let counts = tokenizer.count(&beginnings, false);
    let found = counts.iter().rposition(|count| *count == wanted)?;
    beginnings.into_iter().nth(found)
}
