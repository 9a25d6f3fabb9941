use goldens::agree;

use super::Inline;

#[test]
fn scores_are_those_of_mlcommons_endpoints() {
    assert_eq!(agree::<Inline>(include_str!("../golden.jsonl")), 500);
}
