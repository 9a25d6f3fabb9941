//! Reading takes time in proportion to the text, whatever its author wrote, and its results have a
//! bound.

use super::seek::counted::steps;
use super::*;

const BLOCK: &str =
    "=== Serving Benchmark Result === Successful requests: 3 Mean TTFT (ms): 5.0 ===\n";

/// Shapes that an author may repeat: the beginning, the repeated part, and the end.
const SHAPES: [(&str, &str, &str); 22] = [
    ("", "# a ", BLOCK),
    ("", "\t# a", BLOCK),
    ("", "\t# ", BLOCK),
    ("", "# \t", BLOCK),
    ("", "# a\n## b\n", BLOCK),
    ("", "```x```# a\n", BLOCK),
    ("", "Mean TPOT: 5 ", BLOCK),
    ("", "Mean TPOT(ms)    ", BLOCK),
    ("", "Mean TPOT: 5 (", BLOCK),
    ("|a|b|\n|---|---|\n|c|", "Mean TPOT: 5|", BLOCK),
    ("|a|b|\n|---|---|\n", "|c|Mean TPOT: 5|\n", BLOCK),
    ("", "---|Mean TPOT: 5|", BLOCK),
    ("", BLOCK, ""),
    ("", "=== Serving Benchmark Result ", BLOCK),
    ("", "=== Serving Benchmark Result === ", BLOCK),
    ("=== Serving Benchmark Result === Backend: ", "a ", "x: Successful requests: 3 ==="),
    ("=== Serving Benchmark Result === Backend: ", "a: ", "Successful requests: 3 ==="),
    ("=== Serving Benchmark Result === ", "---a", " Successful requests: 3 ==="),
    (
        "```bash\nvllm serve m\n```\n# Model\nm\n",
        "# a\n```bash\nx serve\n```\n```yaml\na: b\n```\n## p Profile\nvLLM vv\n",
        BLOCK,
    ),
    (
        "# p\n```yaml\na: b\n```\n```bash\nvllm serve m\n```\n",
        "## p Profile\n=== Serving Benchmark Result === Successful requests: 3 ===\n",
        "",
    ),
    ("vLLM v", "vLLM v", BLOCK),
    ("", "??? Namespace(Profile: `", BLOCK),
];

#[test]
fn a_text_of_twice_the_length_takes_twice_the_steps() {
    for (first, again, last) in SHAPES {
        let taken = |bytes: usize| {
            let text = format!("{first}{}{last}", again.repeat(bytes / again.len()));
            steps(|| read("page.md", text.as_bytes()))
        };
        let (once, twice) = (taken(32_000), taken(64_000));
        assert!(once >= 32_000, "{again:?}: {once} steps are not all");
        // A search in a sorted list takes one step more.
        assert!(twice < once * 9 / 4, "{again:?}: {once} steps, then {twice}");
        assert!(once < 32_000 * 60, "{again:?}: {once} steps");
    }
}

#[test]
fn two_titles_may_share_a_rule() {
    let text = format!("=== Serving Benchmark Result {BLOCK}");
    let errors = read("page.md", text.as_bytes()).unwrap_err();
    assert!(errors[0].what.contains("does not state how many"), "{errors:?}");
}

/// The error of a text that repeats something.
#[track_caller]
fn refused(first: &str, again: &str, times: usize, last: &str) -> Vec<ReadError> {
    let text = format!("{first}{}{last}", again.repeat(times));
    read("page.md", text.as_bytes()).unwrap_err()
}

#[test]
fn a_file_has_bounded_contents() {
    let object = r#"{"completed":1,"duration":1}"#;
    for errors in [
        refused("", BLOCK, MOST_RESULTS + 1, ""),
        refused("", &format!("{object}\n"), MOST_RESULTS + 1, ""),
        refused("[", &format!("{object},"), MOST_RESULTS, &format!("{object}]")),
        refused("completed,duration\n", "1,1\n", MOST_RESULTS + 1, ""),
    ] {
        assert_eq!(errors.len(), 1);
        assert!(errors[0].to_string().contains("split the file"), "{errors:?}");
    }
    let errors = refused("", "Mean TPOT: 5 ", quote::MOST_QUOTES + 1, BLOCK);
    assert!(errors[0].what.contains("10000 figures"), "{errors:?}");
    for part in ["# a ", "``````"] {
        let errors = refused("", part, 100_001, BLOCK);
        assert!(errors[0].what.contains("more than 100000 headings"), "{errors:?}");
    }
    let errors = refused("completed,duration\n", "1\n", 5000, "");
    assert_eq!(errors.len(), MOST_ERRORS + 1);
    assert!(errors[MOST_ERRORS].what.contains("more mistakes"));
    let errors = read("page.md", &vec![b' '; MOST_BYTES + 1]).unwrap_err();
    assert!(errors[0].what.contains("larger than 64 MiB"), "{errors:?}");
}

#[test]
fn json_nesting_has_a_bound() {
    for deep in ["[", r#"{"a":"#] {
        let errors = refused("", deep, 100_000, "");
        assert!(errors[0].what.contains("recursion limit"), "{errors:?}");
    }
}

#[test]
fn results_repeat_little_of_their_page() {
    let command = format!("# Model\n{0}\n```sh\nvllm serve {0}\n```\n", "m".repeat(100_000));
    let document = read("page.md", format!("{command}{BLOCK}{BLOCK}").as_bytes()).unwrap();
    for claim in &document.claims {
        let about = &claim.about;
        assert_eq!(about.launch_command.as_ref().unwrap().chars().count(), 4096);
        assert_eq!(claim.model.as_ref().unwrap().chars().count(), 200);
    }
}
