//! The table *How sure* as lines of the block.

use super::block::Block;
use crate::sure::{COLUMNS, NOTE, Row, TITLE, rows};
use result::summary::Summary;

/// Every figure that has intervals.
pub(super) fn all(block: &mut Block, summary: &Summary) {
    let rows = rows(summary);
    table(block, &rows);
    if !rows.is_empty() {
        block.prose(NOTE);
    }
}

/// The figures by which people decide, in the lines that [`all`] has.
pub(super) fn short(block: &mut Block, summary: &Summary) {
    let mut rows = rows(summary);
    rows.retain(|row| row.decides);
    table(block, &rows);
}

fn table(block: &mut Block, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    block.section(TITLE);
    block.prose(&line("", &COLUMNS));
    for row in rows {
        block.prose(&line(&row.name, &row.cells.each_ref().map(String::as_str)));
    }
}

fn line(name: &str, [value, same, new]: &[&str; 3]) -> String {
    format!("{name:<19} {value:>9}   {same:<17} {new}")
}
