//! How often findings on the load are false, and how often they find what they are for.

use crate::table::Section;

pub fn sections(_runs: u64) -> Vec<Section> {
    Vec::new()
}
