//! The effect of a difference between two runs on their comparison.

model::words! {
    /// The parts of a plan that must agree, under the names that `--allow` takes.
    pub enum Kind {
        /// The prompts: dataset, its settings and files, the seed, the requests themselves.
        Prompts = "prompts",
        /// The requested token counts.
        Lengths = "lengths",
        /// The number of requests, or the duration.
        Count = "count",
        /// The load: arrival, rate, cap, warm-up, cache.
        Load = "load",
        /// Options of every request: streaming, ignore-eos, sampling.
        Request = "request",
        /// The model.
        Model = "model",
        /// The tokenizer of the client.
        Tokenizer = "tokenizer",
        /// The definition of a figure.
        Definition = "definition",
        /// The client: connections, time stamps, timeouts.
        Client = "client",
        /// An invalid run.
        Verdict = "verdict",
        /// The engine and its version, where `--must-agree` asks for it.
        Engine = "engine",
        /// The engine's stated hardware, where `--must-agree` asks for it.
        Hardware = "hardware",
        /// The machine of the client: processor and cores, where `--must-agree` asks for it.
        Machine = "machine",
    }
}

impl Kind {
    /// The kinds that people compare on purpose, and that `--must-agree` takes.
    pub const ON_PURPOSE: [Kind; 3] = [Kind::Engine, Kind::Hardware, Kind::Machine];
}

/// The treatment of a key of the plan that differs between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It must agree: without `--allow` of its kind, the runs are not compared.
    Must(Kind),
    /// It may differ: people compare it, or it is good to know.
    May,
    /// It does not affect the measurement, or another key covers it.
    Silent,
}
