//! The backends of engines whose routes the scripts in `host/base/mock/engines` play, streamed
//! and not, and with replies that break.

use model::exchange::Class;
use result::metric::Source;

use super::with_backend;
use crate::support::trial::Trial;

/// An engine that cannot be made to ignore the end-of-sequence token.
const FREE: &str = "request.ignore-eos = false\n";

/// An engine that answers anywhere but on this machine, with the model of its script.
macro_rules! hosted {
    ($model:literal) => {
        concat!(
            "request.ignore-eos = false\ntarget.base-url = 'http://127.0.0.1:8000'\ntarget.model = '",
            $model,
            "'"
        )
    };
}

/// A backend, its configuration, and the source of the input tokens of a reply that is not
/// streamed. The mock engine sets no header fields, where TGI states them.
const ENGINES: [(&str, &str, &str, Source); 10] = [
    ("anthropic", hosted!("claude-mock"), ANTHROPIC, Source::Usage),
    (
        "bedrock",
        concat!(hosted!("mock"), "\nbackend.config.key = 'bearer'"),
        BEDROCK,
        Source::Usage,
    ),
    ("cohere", hosted!("command-mock"), COHERE, Source::Usage),
    ("gemini", hosted!("gemini-mock"), GEMINI, Source::Usage),
    ("tgi", FREE, TGI, Source::Dataset),
    ("llamacpp", "", LLAMACPP, Source::Usage),
    ("ollama", FREE, OLLAMA, Source::Usage),
    ("ollama", "request.ignore-eos = false\nbackend.config.route = 'chat'", OLLAMA, Source::Usage),
    (
        "tensorrt-llm",
        "backend.config.route = 'generate'\ntarget.model = 'ensemble'",
        TENSORRT_LLM,
        Source::Usage,
    ),
    (
        "tensorrt-llm",
        "backend.config = { route = 'generate', accumulated = true }\ntarget.model = 'tensorrt_llm_bls'",
        TENSORRT_LLM,
        Source::Usage,
    ),
];

const ANTHROPIC: &str = include_str!("../../host/base/mock/engines/anthropic.toml");
const BEDROCK: &str = include_str!("../../host/base/mock/engines/bedrock.toml");
const COHERE: &str = include_str!("../../host/base/mock/engines/cohere.toml");
const GEMINI: &str = include_str!("../../host/base/mock/engines/gemini.toml");
const TGI: &str = include_str!("../../host/base/mock/engines/tgi.toml");
const LLAMACPP: &str = include_str!("../../host/base/mock/engines/llamacpp.toml");
const OLLAMA: &str = include_str!("../../host/base/mock/engines/ollama.toml");
const TENSORRT_LLM: &str = include_str!("../../host/base/mock/engines/tensorrt-llm.toml");

/// A run against the engine's script, after `settings` of the mock engine, which must come before
/// tables.
fn trial((name, config, script, _): (&str, &str, &str, Source), settings: &str) -> Trial {
    with_backend(name).with(config).against(settings).against(script)
}

#[tokio::test(start_paused = true)]
async fn replies_are_counted_and_timed() {
    for engine in ENGINES {
        for (settings, per_event) in [("", 1.0), ("tokens-per-chunk = 4", 11.0 / 4.0)] {
            let ran = trial(engine, settings).run().await;
            let about = format!("{} {}\n{}", engine.0, engine.1, ran.text);
            assert_eq!(ran.failures(), [], "{about}");
            let tokens = &ran.summary.tokens;
            assert_eq!(tokens.input.total, Some(200), "{about}");
            assert_eq!(tokens.output.total, Some(55), "{about}");
            let usage = [(Source::Usage, 5)].into_iter().collect();
            assert_eq!(tokens.input.exchanges_by_source, usage, "{about}");
            assert_eq!(tokens.output.exchanges_by_source, usage, "{about}");
            assert_eq!(tokens.per_event, Some(per_event), "{about}");
            assert_eq!(ran.everywhere("ttft"), (120.0, 5), "{about}");
            assert_eq!(ran.everywhere("e2e"), (320.0, 5), "{about}");
            for exchange in ran.measured() {
                assert_eq!(exchange.output.len(), 11, "{about}");
            }
        }
    }
}

/// Engines give the reason for the end in their own terms, which are kept.
#[tokio::test(start_paused = true)]
async fn finish_reasons_are_the_engines_own() {
    for (name, reason) in [
        ("anthropic", "max_tokens"),
        ("bedrock", "max_tokens"),
        ("cohere", "MAX_TOKENS"),
        ("gemini", "MAX_TOKENS"),
    ] {
        let engine = ENGINES.into_iter().find(|engine| engine.0 == name).unwrap();
        let ran = trial(engine, "").run().await;
        for exchange in ran.measured() {
            assert_eq!(exchange.finish.as_deref(), Some(reason), "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whole_replies_are_counted() {
    for engine in ENGINES {
        let ran = trial(engine, "").with("request.stream = false").run().await;
        let about = format!("{} {}\n{}", engine.0, engine.1, ran.text);
        assert_eq!(ran.failures(), [], "{about}");
        let tokens = &ran.summary.tokens;
        assert_eq!(tokens.input.total, Some(200), "{about}");
        assert_eq!(tokens.output.total, Some(55), "{about}");
        let by_source = |source| [(source, 5)].into_iter().collect();
        assert_eq!(tokens.input.exchanges_by_source, by_source(engine.3), "{about}");
        assert_eq!(tokens.output.exchanges_by_source, by_source(Source::Usage), "{about}");
        assert_eq!(ran.everywhere("e2e"), (320.0, 5), "{about}");
    }
}

#[tokio::test(start_paused = true)]
async fn broken_replies_are_failures() {
    for engine in ENGINES {
        for (fault, class) in [
            ("kind = 'in-band-error'\nafter-tokens = 3", Class::InBandError),
            ("kind = 'cut'\nafter-tokens = 3", Class::Truncated),
            ("kind = 'no-done'\nafter-tokens = 3", Class::Truncated),
            ("kind = 'html'", Class::Protocol),
        ] {
            let trial = trial(engine, "").against(&format!("[[fault]]\n{fault}\nrequests = [1]"));
            let about = format!("{} {} {fault}", engine.0, engine.1);
            let ran = trial.run().await;
            assert_eq!(ran.failures(), [(1, class)], "{about}\n{}", ran.text);
        }
    }
}
