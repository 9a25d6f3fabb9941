//! A probe of a server ([`runs::probe`]) as text.

mod text;

pub use text::text;

#[cfg(test)]
pub(crate) mod tests {
    use model::exchange::Usage;
    use runs::probe::{Control, Engine, Model, Outcome, Probe, Route, Shape};

    /// A server with all that can be said of one.
    pub(crate) fn answered() -> Probe {
        let control = Control {
            method: "GET".to_owned(),
            path: "/metrics".to_owned(),
            outcome: Outcome::Fails,
            status: Some(503),
            said: Some("HTTP 503: not yet".to_owned()),
        };
        let shape = Shape {
            streamed: true,
            frames: 7,
            opens_empty: true,
            chunks: 4,
            reasoning_chunks: 1,
            tokens: Some(8),
            tokens_per_chunk: Some(2.0),
            states_chunk_tokens: true,
            usage: Some(Usage {
                input_tokens: Some(5),
                output_tokens: Some(8),
                ..Usage::default()
            }),
            cumulative: true,
            finish: Some("length".to_owned()),
            end_marker: true,
        };
        Probe {
            url: "http://127.0.0.1:1".to_owned(),
            engine: Some(Engine {
                name: "vLLM".to_owned(),
                version: Some("0.32.0".to_owned()),
                seen: "GET /version".to_owned(),
            }),
            server: Some("uvicorn".to_owned()),
            models: vec![Model {
                name: "m".to_owned(),
                root: Some("/models/m".to_owned()),
                context_tokens: Some(2048),
            }],
            model: Some("m".to_owned()),
            controls: vec![control],
            routes: vec![Route {
                backend: "vllm".to_owned(),
                route: Some("chat".to_owned()),
                method: "POST".to_owned(),
                path: "/v1/chat/completions".to_owned(),
                outcome: Outcome::Answers,
                status: Some(200),
                said: None,
                shape: Some(shape),
            }],
            requests: 6,
            command: vec!["runner".to_owned()],
        }
    }
}
