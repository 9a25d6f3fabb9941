//! Rows that are not measured because the warm-up has them.

use std::collections::HashSet;

use runner_plugin::{Dataset, Treatment};

use super::{Custom, all, lines, open, text};

fn prompts(rows: &[&str]) -> Custom {
    let rows: Vec<_> = rows.iter().map(|row| format!("{{\"prompt\": \"{row}\"}}")).collect();
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    open("{}", lines(&rows))
}

fn split(dataset: &mut Custom, spare: u32) -> (Vec<String>, Vec<String>) {
    let texts = |samples: Vec<_>| samples.iter().map(|one| text(one).to_owned()).collect();
    let mut spares = Vec::new();
    // As the host asks, until there are none.
    while spares.len() < spare as usize {
        let more = dataset.spare(spare - spares.len() as u32).expect("spares");
        if more.is_empty() {
            break;
        }
        spares.extend(more);
    }
    (texts(spares), texts(all(dataset, 2)))
}

#[test]
fn a_prompt_that_comes_once_is_taken_first() {
    let rows = ["same", "same", "other", "same", "same", "same"];
    let mut dataset = prompts(&rows);
    assert_eq!(split(&mut dataset, 1), (vec!["other".to_owned()], vec!["same".to_owned(); 5]));
    assert!(dataset.remarks().is_empty());
    // If every prompt comes twice or nothing would be left, nothing is taken.
    for rows in [&["a", "a", "b", "b"][..], &["a"]] {
        let (spares, measured) = split(&mut prompts(rows), 3);
        assert!(spares.is_empty());
        assert_eq!(measured, rows);
    }
    let (spares, measured) = split(&mut prompts(&["a", "b", "c"]), 9);
    assert_eq!((spares.len(), measured), (2, vec!["c".to_owned()]));
}

#[test]
fn rows_that_the_warm_up_costs_are_counted() {
    // The second comes too late to be compared.
    let mut rows = vec!["a".to_owned()];
    rows.extend((0..300).map(|row| row.to_string()));
    rows.push("a".to_owned());
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    let mut dataset = prompts(&rows);
    let (spares, measured) = split(&mut dataset, 1);
    assert_eq!((spares[0].as_str(), measured.len()), ("a", 300));
    let [remark] = &dataset.remarks()[..] else { panic!("expected one remark") };
    assert_eq!((remark.what, remark.count), (Treatment::Dropped, 1));
    assert_eq!(remark.first.as_deref(), Some("line 302"));
    assert!(remark.reason.contains("warm-up"), "{}", remark.reason);
}

#[test]
fn a_session_is_measured_whole_or_not_at_all() {
    let session =
        |name: &str, text: &str| format!("{{\"session\": \"{name}\", \"prompt\": \"{text}\"}}");
    let mut rows = vec![session("a", "1"), session("a", "2"), session("b", "3"), session("b", "4")];
    let files = |rows: &[String]| {
        let rows: Vec<_> = rows.iter().map(String::as_str).collect();
        lines(&rows)
    };
    let mut dataset = open("{}", files(&rows));
    assert_eq!(
        split(&mut dataset, 5),
        (vec!["1".to_owned()], vec!["3".to_owned(), "4".to_owned()])
    );
    let [remark] = &dataset.remarks()[..] else { panic!("expected one remark") };
    assert_eq!((remark.count, remark.first.as_deref()), (1, Some("line 2")));
    // A row of no session is preferred.
    rows.push("{\"prompt\": \"5\"}".to_owned());
    let mut dataset = open("{}", files(&rows));
    let (spares, measured) = split(&mut dataset, 1);
    assert_eq!((spares[0].as_str(), measured.len()), ("5", 4));
    // Also where the file is read again.
    let mut dataset = open(r#"{"repeat": true}"#, files(&rows[..4]));
    assert_eq!(dataset.spare(1).expect("a spare").len(), 1);
    let samples = dataset.next(6).expect("samples");
    let texts: HashSet<_> = samples.iter().map(text).collect();
    assert_eq!(texts, HashSet::from(["3", "4"]));
}

#[test]
fn the_warm_up_takes_no_row_that_is_to_be_measured() {
    let rows: Vec<String> = (0..5).map(|at| format!("{{\"prompt\": \"p{at}\"}}")).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    for (measured, spare, left) in [(5, 0, 5), (3, 2, 3), (4, 1, 4)] {
        let opened = super::open_with("{}", 7, super::Amount::Samples(measured), lines(&rows));
        let (spares, given) = split(&mut opened.expect("a dataset"), 2);
        assert_eq!((spares.len(), given.len()), (spare, left), "{measured}");
        assert_eq!(given.first().map(String::as_str), Some("p0"));
    }
}
