//! Slurm's host lists: `node[01-03,7],x-[1-2]-y` stands for six hosts.
//!
//! The grammar is `scontrol show hostnames`'. Names are separated by commas outside brackets, a
//! group in brackets holds numbers and ranges, and a number keeps its digits. A name with several
//! groups stands for all combinations; the last group changes fastest. This module owns only the
//! expansion; `place` knows which variable holds a list.

use std::ops::RangeInclusive;

/// The most hosts of a list: a mistyped range is an error and does not fill the memory.
pub const MOST: usize = 65_536;

/// A list that cannot be read, with the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{list}` is not a host list: {mistake}, at character {at}; expected names such as `node[01-03,7],login2`"
)]
pub struct NotAList {
    pub list: String,
    pub mistake: String,
    /// Position in the text, counted from 1.
    pub at: usize,
}

/// One piece of a name: text, or a group of numbers in brackets.
enum Piece<'a> {
    Text(&'a str),
    Group(Vec<Numbers>),
}

/// A range of numbers, each with at least this number of digits.
struct Numbers {
    range: RangeInclusive<u64>,
    digits: usize,
}

/// All hosts of a list, in order. Fails if it is no list, or stands for more than [`MOST`] hosts.
pub fn expand(list: &str) -> Result<Vec<String>, NotAList> {
    let wrong = |mistake: &str, at: usize| NotAList {
        list: list.to_owned(),
        mistake: mistake.to_owned(),
        at: list[..at].chars().count() + 1,
    };
    let mut hosts = Vec::new();
    let mut at = 0;
    loop {
        let (pieces, end) = name(list, at, &wrong)?;
        let room = MOST - hosts.len();
        let mut names = (pieces.iter())
            .try_fold(vec![String::new()], |names, piece| combine(&names, piece, room))
            .filter(|names| names.len() <= room)
            .ok_or_else(|| wrong(&format!("it stands for more than {MOST} hosts"), at))?;
        hosts.append(&mut names);
        if end == list.len() {
            return Ok(hosts);
        }
        at = end + 1;
    }
}

/// The pieces of the name that begins here, and the end of the name.
fn name<'a>(
    list: &'a str,
    from: usize,
    wrong: &impl Fn(&str, usize) -> NotAList,
) -> Result<(Vec<Piece<'a>>, usize), NotAList> {
    let mut pieces = Vec::new();
    let mut begin = from;
    let mut at = from;
    let bytes = list.as_bytes();
    loop {
        match bytes.get(at) {
            None | Some(b',') => {
                if begin < at {
                    pieces.push(Piece::Text(&list[begin..at]));
                }
                if pieces.is_empty() {
                    return Err(wrong("a name is missing", at));
                }
                return Ok((pieces, at));
            }
            Some(b'[') => {
                if begin < at {
                    pieces.push(Piece::Text(&list[begin..at]));
                }
                let close =
                    list[at..].find(']').ok_or_else(|| wrong("the bracket is not closed", at))?;
                pieces.push(Piece::Group(group(list, at + 1, at + close, wrong)?));
                at += close + 1;
                begin = at;
            }
            Some(b']') => return Err(wrong("a bracket is closed that was not opened", at)),
            Some(byte) if byte.is_ascii_whitespace() => {
                return Err(wrong("there is white space", at));
            }
            Some(_) => at += 1,
        }
    }
}

/// The numbers between two brackets.
fn group(
    list: &str,
    from: usize,
    to: usize,
    wrong: &impl Fn(&str, usize) -> NotAList,
) -> Result<Vec<Numbers>, NotAList> {
    let mut at = from;
    let mut all = Vec::new();
    for part in list[from..to].split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str, at: usize| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let value = digits.then(|| text.parse::<u64>().ok()).flatten();
            value.ok_or_else(|| wrong("expected a number or a range such as 01-16", at))
        };
        let begin = number(first, at)?;
        let end = number(last, at + part.len() - last.len())?;
        if end < begin {
            return Err(wrong("the range ends before it begins", at));
        }
        all.push(Numbers { range: begin..=end, digits: first.len() });
        at += part.len() + 1;
    }
    Ok(all)
}

/// Every name with every continuation; none if there would be more than `most`.
fn combine(names: &[String], piece: &Piece<'_>, most: usize) -> Option<Vec<String>> {
    match piece {
        Piece::Text(text) => Some(names.iter().map(|name| format!("{name}{text}")).collect()),
        Piece::Group(numbers) => {
            let mut count = 0_u64;
            for numbers in numbers {
                let span = numbers.range.end() - numbers.range.start();
                count = count.checked_add(span)?.checked_add(1)?;
            }
            let total = count.checked_mul(names.len() as u64)?;
            if total > most as u64 {
                return None;
            }
            let mut combined = Vec::with_capacity(total as usize);
            for name in names {
                for numbers in numbers {
                    let digits = numbers.digits;
                    let one = |number| format!("{name}{number:0digits$}");
                    combined.extend(numbers.range.clone().map(one));
                }
            }
            Some(combined)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_stand_for_their_hosts() {
        let cases: [(&str, &[&str]); 9] = [
            ("alone", &["alone"]),
            ("node[01-03,7],x-[1-2]-y", &["node01", "node02", "node03", "node7", "x-1-y", "x-2-y"]),
            ("r[1-2]n[08-10]", &["r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"]),
            ("a,b,c", &["a", "b", "c"]),
            ("n[9-11]", &["n9", "n10", "n11"]),
            ("n[098-101]", &["n098", "n099", "n100", "n101"]),
            ("n[5]", &["n5"]),
            ("gpu-[1,3].cluster.example", &["gpu-1.cluster.example", "gpu-3.cluster.example"]),
            ("[1-2]", &["1", "2"]),
        ];
        for (list, hosts) in cases {
            assert_eq!(expand(list).unwrap(), hosts, "{list}");
        }
    }

    #[test]
    fn errors_name_the_place_in_the_list() {
        let cases = [
            ("", "a name is missing, at character 1"),
            ("a,,b", "a name is missing, at character 3"),
            ("a,", "a name is missing, at character 3"),
            ("n[1-3", "the bracket is not closed, at character 2"),
            ("n1-3]", "a bracket is closed that was not opened, at character 5"),
            ("n[3-1]", "the range ends before it begins, at character 3"),
            ("n[]", "expected a number or a range such as 01-16, at character 3"),
            ("n[1,x]", "expected a number or a range such as 01-16, at character 5"),
            ("n[1-x]", "expected a number or a range such as 01-16, at character 5"),
            ("n[1-2-3]", "expected a number or a range such as 01-16, at character 5"),
            ("a b", "there is white space, at character 2"),
            ("n[0-9999999]", "it stands for more than 65536 hosts, at character 1"),
            ("n[0-999]m[0-999]", "it stands for more than 65536 hosts, at character 1"),
            ("n[0-18446744073709551615]", "it stands for more than 65536 hosts, at character 1"),
        ];
        for (list, mistake) in cases {
            let error = expand(list).unwrap_err().to_string();
            assert!(error.contains(mistake), "{list}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_takes_more_than_its_bound(list in "[a-z0-9\\[\\],-]{0,40}") {
            if let Ok(hosts) = expand(&list) {
                prop_assert!(hosts.len() <= MOST && !hosts.is_empty());
            }
        }

        #[test]
        fn plain_names_are_themselves(names in prop::collection::vec("[a-z][a-z0-9.-]{0,12}", 1..20)) {
            prop_assert_eq!(expand(&names.join(",")).unwrap(), names);
        }
    }
}
