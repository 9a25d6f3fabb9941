//! The guide's page of keys, which `keys` writes.

use crate::keys::{KEYS, Key, OPTION};

fn rows<'k>(keys: impl Iterator<Item = &'k Key>) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "\\<");
    let mut text =
        String::from("| key | takes | without it | meaning |\n| --- | --- | --- | --- |\n");
    for key in keys {
        let [takes, otherwise, about] = [key.takes, key.otherwise, key.about].map(cell);
        text.push_str(&format!("| `{}` | {takes} | {otherwise} | {about} |\n", key.name));
    }
    text
}

fn page() -> String {
    let mut text = String::from(
        "# Lab keys\n\n[Labs](../labs.md) explains labs. This page lists every key of its file.\n",
    );
    let all = KEYS.iter().chain(OPTION);
    let mut tables: Vec<&str> = all.clone().map(|key| key.table).collect();
    tables.dedup();
    for table in tables {
        let heading = if table.is_empty() { "At the top".to_owned() } else { format!("`{table}`") };
        text.push_str(&format!("\n## {heading}\n\n"));
        text.push_str(&rows(all.clone().filter(|key| key.table == table)));
    }
    text
}

/// The guide's page is as `keys` gives it; `BLESS=1` writes the page anew.
#[test]
fn the_guide_lists_every_key() {
    super::pages::golden("../../guide/src/reference/lab-keys.md", &page());
}
