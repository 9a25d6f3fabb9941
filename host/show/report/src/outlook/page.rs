//! An outlook as a page: its facts, its histograms, and the best possible hits of a prefix cache.

use super::charts;
use super::text::{facts, title};
use crate::document::{Block, Document, Table, pair};
use model::number::{count, percent};
use runs::outlook::Outlook;

pub fn page(outlook: &Outlook) -> Document {
    let mut page = Document::new("Plan", title(outlook));
    page.heading(2, "Requests");
    let facts = facts(outlook).into_iter();
    page.push(Block::Pairs(facts.map(|(label, words)| pair(label.trim(), words)).collect()));
    let mut table = Table::new(["tokens that the cache holds", "best possible hits"]);
    for size in outlook.cache.iter().flat_map(|cache| &cache.sizes) {
        table.row([count(size.tokens), percent(size.share)]);
    }
    if !table.rows.is_empty() {
        page.heading(2, "Prefix cache");
        page.table(table);
        page.say(
            "Pages leave in the order of Belady, which knows the future: no engine has more hits.",
        );
    }
    let charts = charts(outlook);
    if !charts.is_empty() {
        page.heading(2, "Distributions");
    }
    charts.into_iter().for_each(|chart| page.chart(chart));
    page
}
