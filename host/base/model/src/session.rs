//! Sessions: requests that depend on others, and conversations that go on.

crate::words! {
    /// The answers in the history of a conversation.
    pub enum History {
        /// The server's answers.
        Live = "live",
        /// The dataset's recorded answers.
        Recorded = "recorded",
    }
    default Live
}

crate::words! {
    /// The treatment of requests that depend on a failed request.
    pub enum AfterFailure {
        /// They are not sent, and counted as failed for this reason.
        Drop = "drop",
        /// They continue with the recorded answer; without one, they are not sent.
        Continue = "continue",
    }
    default Drop
}

crate::words! {
    /// The unit of work of a user in a closed loop.
    pub enum Users {
        /// A session: the user finishes it, and then begins another.
        Sessions = "sessions",
        /// A request: while a session waits, the user sends the next request that is due.
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
    /// The texts of their own that sessions in lanes have in their prompts.
    pub enum LaneSalt {
        /// None.
        None = "none",
        /// AIPerf's: one before everything for each replay of a session. No replay finds another in
        /// the server's prefix cache.
        Session = "session",
        /// MLPerf's: one before the system prompt for each pass over the dataset, and one after it
        /// for each session. Sessions of one pass share the system prompt alone.
        Pass = "pass",
    }
    default None
}

crate::words! {
    /// The treatment of the server's prefix cache, which may hold prompts of earlier runs.
    pub enum Cache {
        /// It is left as it is.
        Keep = "keep",
        /// Every prompt begins with a text that no other run has, so that the cache finds nothing
        /// of an earlier run. Prompts of this run share their usual beginnings.
        Salt = "salt",
        /// The server clears it between the warmup and the measurement.
        Flush = "flush",
    }
    default Keep
}
