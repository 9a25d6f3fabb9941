//! The known facts about a component before it is compiled.

use model::plugin::Limits;
use plugins::imports;
use plugins::outline::Outline;

/// Bytes that may be a component: malformed, or counted within bounds of their length.
pub fn outline(data: &[u8]) {
    let Ok(outline) = Outline::read(data) else { return };
    let limits = Limits::default();
    let refused = outline.beyond(&limits);
    if outline.functions > limits.functions || outline.nesting > limits.nesting {
        assert!(refused.is_some());
    }
    // Every name takes bytes.
    let named = outline.imports.iter().chain(&outline.exports);
    assert!(named.map(String::len).sum::<usize>() <= data.len());
    assert!(outline.nesting <= data.len() as u64);
    assert_eq!(imports::list(&outline).len(), outline.imports.len());
}
