//! The answers of a server to a handful of questions: its engine, its models, and the form of its
//! replies. This module owns the document and its text; `session` asks.

use model::exchange::Usage;

/// The answers of a server.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Probe {
    /// The server's base URL.
    pub url: String,
    /// The engine; absent if the server shows none that is known.
    pub engine: Option<Engine>,
    /// The header `server` of its replies.
    pub server: Option<String>,
    /// The models that it lists.
    pub models: Vec<Model>,
    /// The model in the requests to the generating routes; absent if none is known.
    pub model: Option<String>,
    /// Routes that generate nothing.
    pub controls: Vec<Control>,
    /// Routes that generate, the best to benchmark first.
    pub routes: Vec<Route>,
    /// The number of requests that were sent.
    pub requests: u32,
    /// The words of the command that benchmarks the server; absent if no generating route answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// An engine.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// Its version, if it says so.
    pub version: Option<String>,
    /// The route that shows it, such as `GET /version`.
    pub seen: String,
}

/// A model that the server lists.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Model {
    /// The name to send in requests.
    pub name: String,
    /// Its source, as a folder or a name on a hub, if the server says so.
    pub root: Option<String>,
    /// The most tokens of a prompt and its answer together, if the server says so.
    pub context_tokens: Option<u32>,
}

model::words! {
    /// The outcome of a request.
    pub enum Outcome {
        /// An answer.
        Answers = "answers",
        /// The status 401 or 403.
        NeedsKey = "needs-key",
        /// The status 404 or 405, and not because of the model.
        NoRoute = "no-route",
        /// The server does not serve the model.
        UnknownModel = "unknown-model",
        /// Another status from 400 to 499.
        Refuses = "refuses",
        /// Any other status, such as 500 or a redirection, or an error inside a reply.
        Fails = "fails",
        /// No reply, or one that the backend cannot read.
        Broken = "broken",
    }
}

/// A route that generates nothing.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Control {
    /// The method.
    pub method: String,
    /// The path below the URL.
    pub path: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// The status, if there was a reply.
    pub status: Option<u16>,
    /// The server's message, or the event, if it is no answer.
    pub said: Option<String>,
}

/// A route that generates.
#[model::apply(model::document!)]
pub struct Route {
    /// The backend that wrote the request, as `--backend` takes it.
    pub backend: String,
    /// Its key `route`; absent where its default was taken.
    pub route: Option<String>,
    /// The method.
    pub method: String,
    /// The path below the URL.
    pub path: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// The status, if there was a reply.
    pub status: Option<u16>,
    /// The server's message, or the event, if it is no answer.
    pub said: Option<String>,
    /// The parts of the reply, if it is an answer.
    pub shape: Option<Shape>,
}

/// The parts of a reply.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Shape {
    /// True if it was a stream, as requested, and not one document.
    pub streamed: bool,
    /// Its frames: events, lines or messages.
    pub frames: u64,
    /// True if a frame came before the first piece of the answer, such as a chunk that holds only
    /// the role.
    pub opens_empty: bool,
    /// Frames that hold a piece of the answer or of its reasoning.
    pub chunks: u64,
    /// Of these, pieces of reasoning.
    pub reasoning_chunks: u64,
    /// Tokens of the answer, by the server's usage, else by its count for each piece.
    pub tokens: Option<u64>,
    /// Tokens per chunk.
    pub tokens_per_chunk: Option<f64>,
    /// True if the server states the tokens of each chunk.
    pub states_chunk_tokens: bool,
    /// The server's token counts, if it reports them.
    pub usage: Option<Usage>,
    /// True if each chunk repeats the text before it. The backend takes that apart.
    pub cumulative: bool,
    /// The finish reason, in the server's own word.
    pub finish: Option<String>,
    /// True if the end marker came.
    pub end_marker: bool,
}

impl Route {
    /// True if it gave an answer.
    pub fn answers(&self) -> bool {
        self.outcome == Outcome::Answers
    }
}
