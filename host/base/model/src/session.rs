//! Sessions: requests that depend on others, and conversations that go on.

crate::words! {
    /// The answers in the history of a conversation.
    pub enum History {
        /// Those that the server gave.
        Live = "live",
        /// Those on record in the dataset.
        Recorded = "recorded",
    }
    default Live
}

crate::words! {
    /// The treatment of requests that depend on one that failed.
    pub enum AfterFailure {
        /// They are not sent, and counted as failed for this reason.
        Drop = "drop",
        /// They go on with the answer on record; where there is none, they are not sent.
        Continue = "continue",
    }
    default Drop
}

crate::words! {
    /// The unit of work that a user of a closed loop has one of at a time.
    pub enum Users {
        /// A session: it waits for whatever follows, and begins another one at the end.
        Sessions = "sessions",
        /// A request: while a session waits, it takes whatever is due next.
        Requests = "requests",
    }
    default Sessions
}

crate::words! {
    /// The requests that are sent before the measurement.
    pub enum Warming {
        /// A number of requests, all at once, or as many as the cap lets through.
        Requests = "requests",
        /// As many as the measurement has in flight, at its pace.
        LikeLoad = "like-load",
        /// Waves of these until the last two do not differ.
        UntilStable = "until-stable",
    }
    default Requests
}

crate::words! {
    /// The treatment of the server's prefix cache, which may hold prompts of earlier runs.
    pub enum Cache {
        /// It is left as it is.
        Keep = "keep",
        /// Every prompt begins with a text that no other run has, so that nothing of an earlier run
        /// is found. Prompts of this run share what they share otherwise.
        Salt = "salt",
        /// The server clears it between the warmup and the measurement.
        Flush = "flush",
    }
    default Keep
}
