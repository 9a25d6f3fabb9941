//! Every key of a scenario.

use std::sync::LazyLock;

use crate::field::Field;
use crate::key::Key;
use crate::scenario::Scenario;

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    Scenario::declare(Key::default(), &mut keys);
    keys
});

/// Every key of a scenario, in the order of its tables.
pub fn keys() -> &'static [Key] {
    &KEYS
}

/// Names that other tools give to keys, each with ours.
pub(crate) fn aliases() -> Vec<(&'static str, &'static str)> {
    let keys = keys().iter();
    keys.flat_map(|key| key.theirs.iter().map(|theirs| (*theirs, key.name()))).collect()
}
