//! Adapters (LoRA) that requests ask for.

crate::words! {
    /// The assignment of adapters to requests.
    pub enum Assignment {
        /// At random, from the plan's seed and the request's number.
        Random = "random",
        /// Each in turn, by the request's number.
        RoundRobin = "round-robin",
    }
    default Random
}
