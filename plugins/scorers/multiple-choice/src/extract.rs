//! The extractions: from an answer to its choice. Each function is one filter of the harness;
//! callers choose the filter and judge the choice.

use judging::python;

/// The first match of `answer is \(?([LETTERS])\)?`: the letter.
pub fn letter_after_answer_is(text: &str, letters: &[char]) -> Option<String> {
    let phrase = "answer is ";
    text.match_indices(phrase).find_map(|(at, _)| {
        let rest = &text[at + phrase.len()..];
        let letter = rest.strip_prefix('(').unwrap_or(rest).chars().next()?;
        letters.contains(&letter).then(|| letter.to_string())
    })
}

pub fn first_line(text: &str) -> Option<String> {
    text.split('\n').next().map(|line| python::strip(line).to_owned())
}

/// The first match of `(?<=PHRASE)(.*)(?=.)` for any of the phrases: the rest of a line that is not
/// empty, without its last character.
pub fn rest_of_line(text: &str, phrases: &[&str]) -> Option<String> {
    let ends = phrases.iter().filter_map(|phrase| {
        (text.match_indices(phrase))
            .map(|(at, _)| at + phrase.len())
            .find(|end| !text[*end..].is_empty() && !text[*end..].starts_with('\n'))
    });
    let line = text[ends.min()?..].split('\n').next()?;
    let mut characters = line.chars();
    characters.next_back();
    Some(python::strip(characters.as_str()).to_owned())
}

/// `multi_choice_regex` with `(\([A-Z]\))`, `group_select: -1` and both flags to ignore.
pub fn flexible(text: &str, letters: &[char], choices: &[String]) -> Option<String> {
    last_in_parentheses(text, letters).or_else(|| last_choice(text, letters, choices)).or_else(
        || {
            // Without choices, every letter may be meant.
            let count = if choices.is_empty() { letters.len() } else { choices.len() };
            last_after_colon(text, &letters[..count])
        },
    )
}

fn last_in_parentheses(text: &str, letters: &[char]) -> Option<String> {
    let found = text.rmatch_indices('(').find_map(|(at, _)| {
        let mut rest = text[at + 1..].chars();
        let letter = rest.next().filter(|letter| letters.contains(letter))?;
        (rest.next() == Some(')')).then_some(letter)
    });
    found.map(|letter| letter.to_string())
}

/// The last choice whose text the answer repeats, without regard to case and punctuation; of
/// several at one place the longest. Two equal choices count as the later.
fn last_choice(text: &str, letters: &[char], choices: &[String]) -> Option<String> {
    let plain = |text: &str| python::without_punctuation(&text.to_lowercase());
    let mut wanted: Vec<(String, char)> = choices
        .iter()
        .map(|choice| plain(python::strip(choice)))
        .zip(letters.iter().copied())
        .collect();
    // A choice of nothing but punctuation matches the empty text at the end, which is no choice; so
    // it is there.
    if wanted.is_empty() || wanted.iter().any(|(choice, _)| choice.is_empty()) {
        return None;
    }
    wanted.reverse();
    wanted.sort_by_key(|(choice, _)| std::cmp::Reverse(choice.len()));
    let text = plain(text);
    let mut found = None;
    let mut at = 0;
    while at < text.len() {
        match wanted.iter().find(|(choice, _)| text[at..].starts_with(choice.as_str())) {
            Some((choice, letter)) => {
                found = Some((choice, letter));
                at += choice.len();
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    found
        .map(|(choice, letter)| {
            let bare = python::strip(choice);
            // The harness looks the text up without the white space that was beside punctuation,
            // and so may not find it.
            match wanted.iter().find(|(choice, _)| choice == bare) {
                Some((_, other)) if bare != choice => other.to_string(),
                _ if bare == choice => letter.to_string(),
                _ => bare.to_owned(),
            }
        })
        .filter(|found| !found.is_empty())
}

/// The last match of `:[\s]*(LETTERS)`.
fn last_after_colon(text: &str, letters: &[char]) -> Option<String> {
    let found = text.rmatch_indices(':').find_map(|(at, _)| {
        let rest = text[at + 1..].trim_start_matches(python::is_space);
        rest.chars().next().filter(|letter| letters.contains(letter))
    });
    found.map(|letter| letter.to_string())
}
