use goldens::agree;

use super::{FinalNumber, comparable, last, marked};

#[test]
fn scores_agree_with_the_harness() {
    assert_eq!(agree::<FinalNumber>(include_str!("../golden.jsonl")), 500);
}

#[test]
fn the_strict_number_follows_the_first_mark_that_has_one() {
    assert_eq!(marked("so #### 42 and #### 43"), Some("42"));
    assert_eq!(marked("#### none, #### -1,234.5 apples"), Some("-1,234.5"));
    assert_eq!(marked("####42"), None);
}

#[test]
fn the_flexible_number_is_the_last() {
    assert_eq!(last("3 + 4 = 7."), Some("7."));
    assert_eq!(last("costs $1,234.50 in all"), Some("$1,234.50"));
    assert_eq!(last("it is -5 or --6"), Some("-6"));
    assert_eq!(last("x - $ . y"), None);
    assert_eq!(last("5 é..."), Some("..."));
}

#[test]
fn deletions_come_in_the_order_of_the_task() {
    assert_eq!(comparable("a #### b #### $1,000."), "1000");
    assert_eq!(comparable("7.\n"), "7\n");
    assert_eq!(comparable("#,### 7"), "7");
}
