//! The guide's page of keys, which `keys` writes; `BLESS=1` writes it again.

use crate::keys::{KEYS, Key, OPTION};

fn rows<'k>(keys: impl Iterator<Item = &'k Key>) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "\\<");
    let mut text =
        String::from("| key | takes | without it | meaning |\n| --- | --- | --- | --- |\n");
    for key in keys {
        text.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            key.name,
            cell(key.takes),
            cell(key.otherwise),
            cell(key.about)
        ));
    }
    text
}

fn page() -> String {
    let mut text = String::from(
        "# Lab keys\n\n[Labs](../labs.md) explains labs. This page lists every key of its file.\n",
    );
    let all = KEYS.iter().chain(&OPTION);
    let mut tables: Vec<&str> = all.clone().map(|key| key.table).collect();
    tables.dedup();
    let mut known: Vec<&str> = Vec::new();
    for table in tables {
        if known.contains(&table) {
            continue;
        }
        known.push(table);
        let heading = match table {
            "" => "At the top".to_owned(),
            table => format!("`{table}`"),
        };
        text.push_str(&format!("\n## {heading}\n\n"));
        text.push_str(&rows(all.clone().filter(|key| key.table == table)));
    }
    text
}

#[test]
fn the_guide_lists_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guide/src/reference/lab-keys.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    assert!(text == page(), "{path} is stale; BLESS=1 writes it again");
}
