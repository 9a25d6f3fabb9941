//! A probe of a server ([`runs::probe`]) as text to read, with the command that benchmarks it.

use std::fmt::Write;

use model::exchange::Usage;
use model::number::plural;
use model::shell::quoted;
use runs::probe::{Control, Model, Outcome, Probe, Route, Shape};

fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answers => "answers",
        Outcome::NeedsKey => "needs a key",
        Outcome::NoRoute => "no such route",
        Outcome::UnknownModel => "unknown model",
        Outcome::Refuses => "refuses the request",
        Outcome::Fails => "fails",
        Outcome::Broken => "cannot be read",
    }
}

fn form(shape: &Shape) -> &'static str {
    if shape.streamed { "streams" } else { "gives one document, although a stream was requested" }
}

/// The parts of a reply as text, a clause each.
fn parts(shape: &Shape) -> Vec<String> {
    let chunks = plural(shape.chunks, "chunk");
    let tokens = match (shape.tokens, shape.tokens_per_chunk) {
        (Some(tokens), Some(each)) => {
            format!("{} in {chunks} ({each:.2} per chunk)", plural(tokens, "token"))
        }
        _ => format!("{chunks}, tokens unknown"),
    };
    let clause = |holds: bool, clause: &str| holds.then(|| clause.to_owned());
    let reasoning = plural(shape.reasoning_chunks, "chunk");
    let marker = if shape.end_marker { "end marker" } else { "no end marker" };
    let clauses = [
        Some(tokens),
        clause(shape.opens_empty, "the first chunk holds no text"),
        (shape.reasoning_chunks > 0).then(|| format!("reasoning in {reasoning}")),
        clause(shape.states_chunk_tokens, "states the tokens of each chunk"),
        clause(shape.cumulative, "each chunk repeats the text before it"),
        Some(shape.usage.map_or_else(|| "no usage".to_owned(), usage)),
        shape.finish.as_ref().map(|finish| format!("finish reason {finish}")),
        clause(shape.streamed, marker),
    ];
    clauses.into_iter().flatten().collect()
}

/// Lists the counts that a usage has.
fn usage(usage: Usage) -> String {
    let counts = [
        ("input", usage.input_tokens),
        ("cached input", usage.cached_input_tokens),
        ("output", usage.output_tokens),
        ("reasoning", usage.reasoning_tokens),
        ("draft", usage.draft_tokens),
        ("accepted draft", usage.accepted_draft_tokens),
        ("input image", usage.input_image_tokens),
        ("input video", usage.input_video_tokens),
        ("input audio", usage.input_audio_tokens),
        ("output audio", usage.output_audio_tokens),
    ];
    let counts = counts.iter().filter(|(_, count)| count.is_some());
    let counts: Vec<&str> = counts.map(|(name, _)| *name).collect();
    match counts.as_slice() {
        [] => "usage without counts".to_owned(),
        counts => format!("usage with {} tokens", counts.join(", ")),
    }
}

pub fn text(probe: &Probe) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<8} {value}");
    };
    line("Target", &probe.url);
    let engine = probe.engine.as_ref().map_or_else(
        || "unknown: it shows none of the engines' own routes".to_owned(),
        |engine| match &engine.version {
            Some(version) => format!("{} {version} ({})", engine.name, engine.seen),
            None => format!("{}, version unknown ({})", engine.name, engine.seen),
        },
    );
    line("Engine", &engine);
    if let Some(server) = &probe.server {
        line("Server", server);
    }
    let mut label = "Models";
    for model in &probe.models {
        line(label, &model_line(model));
        label = "";
    }
    if probe.models.is_empty() {
        line(label, "none listed");
    }
    text.push_str("\nRoutes\n");
    let width = (probe.controls.iter().map(|control| control.path.len()))
        .chain(probe.routes.iter().map(|route| route.path.len()))
        .max()
        .unwrap_or(0);
    for Control { method, path, outcome, said: message, .. } in &probe.controls {
        let seen = outcome_line(*outcome, message.as_deref());
        let _ = writeln!(text, "  {method:<4} {path:<width$}  {seen}");
    }
    for route in &probe.routes {
        let Route { method, path, outcome, said: message, shape, .. } = route;
        let seen = match shape {
            Some(shape) => {
                let made_of = parts(shape).join("; ");
                format!("{}\n       {made_of}", form(shape))
            }
            None => outcome_line(*outcome, message.as_deref()),
        };
        let _ = writeln!(text, "  {method:<4} {path:<width$}  {seen}");
    }
    let generated = probe.routes.len() as u64;
    let _ = writeln!(
        text,
        "\n{} sent, {generated} of them to generating routes.",
        plural(probe.requests.into(), "request")
            + if probe.requests == 1 { " was" } else { " were" },
    );
    if !probe.command.is_empty() {
        let _ = writeln!(text, "\nTo benchmark it:\n{}", command(&probe.command));
    }
    text
}

fn model_line(model: &Model) -> String {
    let mut words = model.name.clone();
    if let Some(root) = model.root.as_ref().filter(|root| **root != model.name) {
        let _ = write!(words, ", made from {root}");
    }
    if let Some(context) = model.context_tokens {
        let _ = write!(words, ", context {context} tokens");
    }
    words
}

fn outcome_line(outcome: Outcome, message: Option<&str>) -> String {
    match message {
        None => outcome_words(outcome).to_owned(),
        Some(message) => format!("{}: {message}", outcome_words(outcome)),
    }
}

/// A command for a shell: a flag with its value on each line that would become too long.
fn command(words: &[String]) -> String {
    const LONGEST: usize = 100;
    let mut lines = vec![String::from(" ")];
    let mut words = words.iter().map(|word| quoted(word)).peekable();
    while let Some(word) = words.next() {
        let mut part = word;
        // A flag stays with its value.
        if part.starts_with("--")
            && let Some(value) = words.next_if(|next| !next.starts_with("--"))
        {
            part = format!("{part} {value}");
        }
        match lines.last_mut() {
            Some(line) if line.len() + part.len() < LONGEST => {
                line.push(' ');
                line.push_str(&part);
            }
            _ => lines.push(format!("      {part}")),
        }
    }
    lines.join(" \\\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use runs::probe::Engine;

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

    #[test]
    fn shows_all_known_facts() {
        let text = text(&answered());
        for part in [
            "Engine   vLLM 0.32.0 (GET /version)",
            "Models   m, made from /models/m, context 2048 tokens",
            "  GET  /metrics              fails: HTTP 503: not yet\n",
            "  POST /v1/chat/completions  streams\n",
            "8 tokens in 4 chunks (2.00 per chunk)",
            "the first chunk holds no text; reasoning in 1 chunk; states the tokens of each chunk",
            "each chunk repeats the text before it; usage with input, output tokens; finish reason length; end marker",
            "6 requests were sent, 1 of them to generating routes.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_shell_reads_the_command_back() {
        let words = [
            "runner",
            "--model",
            "it's a model; rm -rf /",
            "--insecure",
            "--base-url",
            "http://[::1]:80",
        ];
        let words: Vec<String> = words.map(str::to_owned).into();
        let shown = command(&words);
        assert_eq!(
            shown,
            r"  runner --model 'it'\''s a model; rm -rf /' --insecure --base-url 'http://[::1]:80'"
        );
    }

    #[test]
    fn a_long_command_keeps_flags_with_their_values() {
        let mut words = vec!["runner".to_owned()];
        for number in 0..8 {
            words.extend([format!("--flag-{number}"), "a-value-of-some-length".to_owned()]);
        }
        let shown = command(&words);
        assert!(shown.lines().count() > 1, "{shown}");
        for line in shown.lines() {
            assert!(line.len() <= 102, "{line}");
            assert!(
                line.trim_start().starts_with("runner") || line.starts_with("      --flag"),
                "{line}"
            );
        }
    }

    #[test]
    fn leaves_unknown_facts_out() {
        let probe = Probe { url: "http://127.0.0.1:1".to_owned(), requests: 1, ..Probe::default() };
        let text = text(&probe);
        assert!(text.contains("1 request was sent, 0 of them"), "{text}");
        assert!(!text.contains("benchmark"), "{text}");
        assert!(!text.contains("Server"), "{text}");
    }
}
