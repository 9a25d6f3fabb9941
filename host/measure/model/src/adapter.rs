//! Which adapter (LoRA) a request asks for.

crate::words! {
    /// How adapters are assigned to requests.
    pub enum Assignment {
        /// At random, from the plan's seed and the request's number.
        Random = "random",
        /// Each in turn, by the request's number.
        RoundRobin = "round-robin",
    }
    default Random
}
