//! Which adapter (LoRA) a request asks for.

crate::words! {
    /// Which adapter a request gets.
    pub enum Assignment {
        /// Any, from the plan's seed and the request's number.
        Random = "random",
        /// Each in turn, by the request's number.
        RoundRobin = "round-robin",
    }
    default Random
}
