//! Time of plugins: `cargo bench --bench plugins [decode] [cumulative] [instance]`.
//!
//! Each figure is the best of many short rounds: other work of the machine can only add to it. All
//! are taken through the host's own calls, so the host's work around the guest is part of them.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a program of its own")]
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use model::frame::{Framer, Frames, Framing};
use model::units::Nanos;
use plugins::backend::{Backend, Fold};
use scenario::Scenario;
use session::{Source, resolve};

/// Length of a round, about.
const ROUND: Duration = Duration::from_millis(50);
const ROUNDS: usize = 40;

/// An event of an OpenAI-like engine with 260 bytes of data; `{}` is where the text differs.
const EVENT: [&str; 2] = [
    concat!(
        r#"{"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk","#,
        r#""created":1732190000,"model":"meta-llama/Llama-3.1-8B-Instruct","#,
        r#""system_fingerprint":"fp_0123456","choices":[{"index":0,"delta":{"content":""#
    ),
    r#""},"logprobs":null,"finish_reason":null}]}"#,
];

fn main() -> ExitCode {
    let figures: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    // What `cargo test` does with benches: see that they start.
    if figures.iter().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    match exec(&figures) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn exec(figures: &[String]) -> Result<()> {
    for name in figures {
        if !["decode", "cumulative", "instance"].contains(&name.as_str()) {
            bail!("`{name}` is no figure; there are decode, cumulative and instance");
        }
    }
    let wanted = |name: &str| figures.is_empty() || figures.iter().any(|figure| figure == name);
    let backend = backend("openai", "chat")?;
    if wanted("cumulative") {
        cumulative()?;
    }
    if wanted("decode") {
        for batch in [1, 16, 64] {
            decode(&backend, batch)?;
        }
    }
    if wanted("instance") {
        instance(&backend)?;
    }
    Ok(())
}

/// A backend that ships, on one of its routes.
fn backend(name: &str, route: &str) -> Result<Backend> {
    let text = format!(
        r#"
        target.model = "mock"
        backend.plugin = "backends/{name}.wasm"
        backend.config.route = "{route}"
        dataset.plugin = "datasets/random.wasm"
        dataset.config = {{ like = "vllm", input-len = 20, output-len = 5 }}
        load = {{ requests = 1, warmup = 0 }}
    "#
    );
    let scenario = Scenario::parse("plugins", &text);
    let source = Source {
        scenario: scenario.map_err(|error| anyhow::anyhow!("{error:?}"))?,
        name: "plugins".to_owned(),
        shipped: shipped::PLUGINS,
        ..Source::default()
    };
    let resolved = resolve(&source).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    Ok(resolved.parts.backend)
}

/// The least time of one unit over all rounds, in nanoseconds.
fn best(mut unit: impl FnMut() -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    unit()?;
    let once = began.elapsed().max(Duration::from_nanos(100));
    let units = (ROUND.as_nanos() / once.as_nanos()).clamp(1, 1_000_000) as u32;
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..units {
            unit()?;
        }
        least = least.min(began.elapsed().as_nanos() as f64 / f64::from(units));
    }
    Ok(least)
}

/// Decoding a batch of events of a reply that goes on.
fn decode(backend: &Backend, batch: usize) -> Result<()> {
    let mut framer = Framer::new(Framing::EventStream);
    let mut frames = Frames::default();
    for number in 0..batch {
        let [before, after] = EVENT;
        let event = format!("data: {before} word{number:02}{after}\n\n");
        framer.push(Nanos::ZERO, event.as_bytes(), &mut frames)?;
    }
    let bytes = frames.bytes().len() / batch;
    let mut dialect = backend.open()?;
    let mut after = Fold::default();
    dialect.decode(&mut after, &mut frames)?;
    let each = best(|| {
        let events = dialect.decode(&mut after.clone(), black_box(&mut frames))?;
        if events.len() != batch {
            bail!("{} events of {batch} frames", events.len());
        }
        black_box(events);
        Ok(())
    })?;
    println!(
        "decode    {:>7.3} us an event of {bytes} bytes, {batch} at a time",
        each / batch as f64 / 1e3
    );
    Ok(())
}

/// Decoding events that repeat the answer, as SGLang's do: 24 KB each, a character more each time.
fn cumulative() -> Result<()> {
    const TEXT: usize = 12_000;
    const EVENTS: usize = 40;
    const FIRST: usize = 2_408;
    let mut dialect = backend("sglang", "generate")?.open()?;
    let mut framer = Framer::new(Framing::EventStream);
    let chunks = |from: usize, to: usize, framer: &mut Framer| -> Result<Frames> {
        let mut frames = Frames::default();
        for tokens in from..to {
            let text = &" word".repeat(tokens)[..TEXT + tokens - FIRST];
            let ids = vec!["1234"; tokens].join(",");
            let event = format!(
                r#"data: {{"text":"{text}","output_ids":[{ids}],"meta_info":{{"id":"x","finish_reason":null,"prompt_tokens":9,"completion_tokens":{tokens},"cached_tokens":0}}}}"#
            );
            framer.push(Nanos::ZERO, event.as_bytes(), &mut frames)?;
            framer.push(Nanos::ZERO, b"\n\n", &mut frames)?;
        }
        Ok(frames)
    };
    // The first two say that texts repeat.
    let mut begun = chunks(FIRST, FIRST + 2, &mut framer)?;
    let mut frames = chunks(FIRST + 2, FIRST + 2 + EVENTS, &mut framer)?;
    let mut after = Fold::default();
    dialect.decode(&mut after, &mut begun)?;
    let again = best(|| {
        let events = dialect.decode(&mut after.clone(), black_box(&mut frames))?;
        if events.len() != EVENTS {
            bail!("{} events of {EVENTS} frames", events.len());
        }
        black_box(events);
        Ok(())
    })?;
    let bytes = frames.bytes().len();
    println!(
        "cumulative {:>6.0} MB/s, {EVENTS} events of {} KB at a time",
        bytes as f64 / again * 1e3,
        bytes / EVENTS / 1_000,
    );
    Ok(())
}

/// Making an instance, its store included, and opening it with its configuration.
fn instance(backend: &Backend) -> Result<()> {
    let made = best(|| {
        backend.instance()?;
        Ok(())
    })?;
    println!("instance  {:>7.2} us made and dropped", made / 1e3);
    let opened = best(|| {
        black_box(backend.open()?);
        Ok(())
    })?;
    println!("instance  {:>7.2} us made, opened and dropped", opened / 1e3);
    Ok(())
}
