//! Every shipped backend on each of its routes, streamed and not. Also a server's faultless
//! variations of a stream: reasoning, role-only chunks, several tokens an event, usage here or
//! there.

use model::exchange::Kind;
use result::metric::Source;

use super::{assert_close, base, with_backend};
use crate::support::trial::{RunResult, Trial};

/// A backend, its configuration and the server's script; and the source of the token counts.
struct Dialect {
    name: &'static str,
    config: &'static str,
    script: &'static str,
    input: Source,
    output: Source,
}

const fn dialect(
    name: &'static str,
    config: &'static str,
    script: &'static str,
    input: Source,
    output: Source,
) -> Dialect {
    Dialect { name, config, script, input, output }
}

const DIALECTS: [Dialect; 13] = {
    use Source::{Dataset, Length, Usage};
    let lmdeploy = "generate = 'lmdeploy'";
    [
        dialect("openai", "", "", Usage, Usage),
        dialect("openai", "backend.config.route = 'completions'", "", Usage, Usage),
        dialect("openai", "backend.config.include-usage = false", "", Dataset, Length),
        dialect("vllm", "", "", Usage, Usage),
        dialect("vllm", "backend.config.route = 'chat'", "", Usage, Usage),
        dialect("vllm", "backend.config.continuous-usage = true", "", Usage, Usage),
        dialect("sglang", "", "", Usage, Usage),
        dialect("sglang", "", "incremental = true", Usage, Usage),
        dialect("sglang", "backend.config.route = 'chat'", "", Usage, Usage),
        dialect("lmdeploy", "", lmdeploy, Dataset, Length),
        dialect("lmdeploy", "backend.config.route = 'chat'", lmdeploy, Dataset, Length),
        dialect("lmdeploy", "backend.config.include-usage = true", lmdeploy, Usage, Usage),
        dialect("lmdeploy", "backend.config.route = 'generate'", lmdeploy, Usage, Usage),
    ]
};

impl Dialect {
    fn trial(&self) -> Trial {
        with_backend(self.name).with(self.config).against(self.script)
    }

    fn check_counts(&self, ran: &RunResult) {
        let about = format!("{} {}\n{}", self.name, self.config, ran.text);
        assert_eq!(ran.failures(), [], "{about}");
        let tokens = &ran.summary.tokens;
        assert_eq!(tokens.input.total, Some(200), "{about}");
        assert_eq!(tokens.output.total, Some(55), "{about}");
        let sources = |source| [(source, 5)].into_iter().collect();
        assert_eq!(tokens.input.exchanges_by_source, sources(self.input), "{about}");
        assert_eq!(tokens.output.exchanges_by_source, sources(self.output), "{about}");
        for exchange in ran.measured() {
            assert_eq!(exchange.output.len(), 11, "{about}");
            assert_eq!(exchange.finish.as_deref(), Some("length"), "{about}");
        }
        assert_eq!(ran.summary.run.backend, self.name);
    }
}

#[tokio::test(start_paused = true)]
async fn streamed() {
    for dialect in &DIALECTS {
        let ran = dialect.trial().run().await;
        dialect.check_counts(&ran);
        for (name, value, count) in
            [("ttft", 120.0, 5), ("tpot", 20.0, 5), ("itl", 20.0, 50), ("e2e", 320.0, 5)]
        {
            assert_eq!(ran.everywhere(name), (value, count), "{name}\n{}", ran.text);
        }
        assert_close(ran.summary.throughput.duration_s, 0.72);
        assert_eq!(ran.summary.concurrency.peak, Some(4));
    }
}

/// A reply in one piece arrives when its last token would have; it has no known first token.
#[tokio::test(start_paused = true)]
async fn not_streamed() {
    for dialect in &DIALECTS {
        let ran = dialect.trial().with("request.stream = false").run().await;
        // Whole replies include usage, whether requested or not.
        let dialect = Dialect { input: Source::Usage, output: Source::Usage, ..*dialect };
        dialect.check_counts(&ran);
        assert_eq!(ran.everywhere("e2e"), (320.0, 5));
        assert_eq!(ran.everywhere("e2e-from-due"), (320.0, 5));
        for absent in ["ttft", "ttft-any", "ttft-answer", "ttft-from-due", "tpot", "itl"] {
            assert!(ran.summary.metric(absent).is_none(), "{absent}\n{}", ran.text);
        }
        assert_eq!(ran.summary.tokens.per_event, None);
    }
}

/// Four tokens an event after the first: tokens 1, 2–5, 6–9, 10–11 come at 120, 200, 280, 320 ms.
#[tokio::test(start_paused = true)]
async fn several_tokens_an_event() {
    for dialect in &DIALECTS {
        let ran = dialect.trial().against("tokens-per-chunk = 4").run().await;
        dialect.check_counts(&ran);
        assert_eq!(ran.everywhere("ttft"), (120.0, 5));
        assert_eq!(ran.everywhere("e2e"), (320.0, 5));
        assert_eq!(ran.everywhere("tpot"), (20.0, 5), "TPOT counts tokens, not events");
        let itl = ran.metric("itl");
        assert_eq!((itl.count, itl.min, itl.max), (15, 40.0, 80.0));
        assert_close(Some(itl.mean), 200.0 / 3.0);
        assert_close(ran.summary.tokens.per_event, 11.0 / 4.0);
    }
}

/// Servers that report the number of tokens of an event give a latency for each token.
#[tokio::test(start_paused = true)]
async fn tokens_of_each_event() {
    let stated = [
        ("sglang", "", ""),
        ("sglang", "", "incremental = true"),
        ("vllm", "backend.config.continuous-usage = true", ""),
        ("vllm", "", "usage = 'continuous'"),
        ("lmdeploy", "backend.config.route = 'generate'", "generate = 'lmdeploy'"),
    ];
    for (backend, config, script) in stated {
        let trial = with_backend(backend).with(config).against(script);
        let ran = trial.against("tokens-per-chunk = 4").run().await;
        assert_eq!(ran.everywhere("itl-token"), (20.0, 50), "{backend} {config}");
        for exchange in ran.measured() {
            let tokens: Vec<u32> = exchange.events.iter().filter_map(|e| e.tokens).collect();
            assert_eq!(tokens, [1, 4, 4, 2], "{backend} {config}");
        }
    }
    let ran = base().against("tokens-per-chunk = 4").run().await;
    assert!(ran.summary.metric("itl-token").is_none());
    let dealt = ran.metric("itl-dealt");
    assert_eq!((dealt.count, dealt.mean), (50, 20.0));
}

/// Usage is found wherever it is in a stream, and if there is none, none is made up.
#[tokio::test(start_paused = true)]
async fn usage_here_or_there() {
    for (usage, input, output) in [
        ("final", Source::Usage, Source::Usage),
        ("always", Source::Usage, Source::Usage),
        ("last-chunk", Source::Usage, Source::Usage),
        ("continuous", Source::Usage, Source::Usage),
        ("none", Source::Dataset, Source::Length),
    ] {
        for route in ["chat", "completions"] {
            let dialect = dialect("vllm", "", "", input, output);
            let ran = dialect
                .trial()
                .with(&format!("backend.config.route = '{route}'"))
                .against(&format!("usage = '{usage}'"))
                .run()
                .await;
            dialect.check_counts(&ran);
            assert_eq!(ran.everywhere("e2e"), (320.0, 5), "{usage} {route}");
            let reported = ran.measured().all(|exchange| exchange.usage.is_some());
            assert_eq!(reported, usage != "none");
        }
    }
}

/// Four tokens of reasoning come first: the first of them at 120 ms, the first of the answer at 200
/// ms.
#[tokio::test(start_paused = true)]
async fn reasoning() {
    for field in ["reasoning", "reasoning_content"] {
        for backend in ["openai", "vllm", "sglang", "lmdeploy"] {
            let ran = with_backend(backend)
                .with("backend.config.route = 'chat'")
                .against(&format!("reasoning-tokens = 4\nreasoning-field = '{field}'"))
                .run()
                .await;
            assert_eq!(ran.failures(), [], "{backend}");
            assert_eq!(ran.everywhere("ttft"), (120.0, 5), "{backend}");
            assert_eq!(ran.everywhere("ttft-reasoning"), (120.0, 5), "{backend}");
            assert_eq!(ran.everywhere("ttft-answer"), (200.0, 5), "{backend}");
            assert_eq!(ran.everywhere("itl"), (20.0, 50), "{backend}");
            assert_eq!(ran.everywhere("tpot"), (20.0, 5), "{backend}");
            for exchange in ran.measured() {
                assert_eq!((exchange.reasoning.len(), exchange.output.len()), (4, 7));
            }
        }
    }
}

/// The chat route of an engine whose usage counts nine tokens of reasoning, with chunks like this.
fn chat_route(first: &str, chunk: &str, tokens: &str) -> String {
    let choices = |choices: &str| format!(r#"{{"choices":[{choices}]}}"#);
    let usage = format!(
        r#"{{"choices":[],"usage":{{"prompt_tokens":{{input-tokens}},"completion_tokens":{tokens},"completion_tokens_details":{{"reasoning_tokens":9}}}}}}"#
    );
    let (first, event) = (choices(first), choices(chunk));
    format!(
        "[[route]]\npath = '/v1/chat/completions'\nprompt = '/messages'\ntokens = '/max_completion_tokens'\n\
         framing = 'event-stream'\nfirst = '{first}'\nevent = '{event}'\nusage = '{usage}'\nend = '[DONE]'\n"
    )
}

/// The chunks of an answer, with its text in this field.
fn chunk(index: u32, delta: &str) -> String {
    format!(r#"{{"index":{index},"delta":{{{delta}}}}}"#)
}

/// The count of reasoning in the usage is compared with the reasoning that came.
#[tokio::test(start_paused = true)]
async fn reasoning_is_shown_or_hidden() {
    // Every chunk states its tokens, so that no tokenizer has to count them.
    let shown = with_backend("vllm")
        .with("backend.config.route = 'chat'")
        .with("backend.config.continuous-usage = true")
        .against("reasoning-tokens = 4")
        .run()
        .await;
    let reasoning = shown.summary.tokens.reasoning.clone().unwrap();
    assert_eq!(reasoning.label(), "shown 5");
    assert_eq!((reasoning.counted, reasoning.in_text), (20, 20));
    assert!(shown.text.contains("shown 5"), "{}", shown.text);

    let text = chunk(0, r#""content":{text}"#);
    let role = chunk(0, r#""role":"assistant""#);
    let thought = chunk(0, r#""reasoning":"hm""#);
    for (first, expected, from_start) in
        [(&role, "hidden 5", None), (&thought, "unknown 5", Some(5))]
    {
        let ran = with_backend("openai")
            .against(&chat_route(first, &text, "{output-tokens}"))
            .run()
            .await;
        assert_eq!(ran.failures(), [], "{expected}");
        let reasoning = ran.summary.tokens.reasoning.clone().unwrap();
        assert_eq!(reasoning.label(), expected);
        let metric = ran.summary.metric("ttft-reasoning");
        assert_eq!(metric.map(|metric| metric.count), from_start, "{expected}");
        assert_eq!(ran.everywhere("ttft-answer"), (120.0, 5), "{expected}");
    }
}

/// A reply that is nothing but a tool call has a first token, gaps, and its tokens.
#[tokio::test(start_paused = true)]
async fn tool_calls_are_output() {
    let call = chunk(0, r#""tool_calls":[{"index":0,"function":{"arguments":{text}}}]"#);
    let role = chunk(0, r#""role":"assistant""#);
    let ran =
        with_backend("openai").against(&chat_route(&role, &call, "{output-tokens}")).run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.everywhere("ttft"), (120.0, 5));
    assert_eq!(ran.everywhere("itl"), (20.0, 50));
    assert_eq!(ran.everywhere("tpot"), (20.0, 5));
    assert_eq!(ran.summary.metric("ttft-answer"), None);
    assert_eq!(ran.summary.tokens.output.total, Some(55));
    for exchange in ran.measured() {
        assert_eq!(exchange.tool_calls.matches("arguments").count(), 11);
        assert_eq!(exchange.output, "");
    }
}

/// Two answers of eleven tokens each: the usage counts 22, once, and each gap is one of the
/// reply's.
#[tokio::test(start_paused = true)]
async fn several_answers_are_counted_once() {
    let role = chunk(0, r#""role":"assistant""#);
    let both = [0, 1].map(|index| chunk(index, r#""content":{text}"#)).join(",");
    let ran = with_backend("openai").against(&chat_route(&role, &both, "22")).run().await;
    assert_eq!(ran.failures(), []);
    let tokens = &ran.summary.tokens;
    assert_eq!((tokens.output.total, tokens.output_requested), (Some(110), Some(110)));
    let against = tokens.output_against_requested.unwrap();
    assert_eq!((against.lower, against.higher), (0, 0));
    // One byte is one token, and both texts are counted.
    assert_eq!(tokens.output_retokenized, Some(110));
    assert_eq!(ran.everywhere("ttft"), (120.0, 5));
    for exchange in ran.measured() {
        assert_eq!((exchange.output.len(), exchange.choices[0].len()), (11, 11));
    }
}

/// A chunk that holds a role alone is an event, and no token.
#[tokio::test(start_paused = true)]
async fn role_only_chunks() {
    for (role_chunk, any) in [("at-once", 0.0), ("first-token", 120.0), ("none", 120.0)] {
        let ran = base()
            .with("backend.config.route = 'chat'")
            .against(&format!("role-chunk = '{role_chunk}'"))
            .run()
            .await;
        assert_eq!(ran.everywhere("ttft-any"), (any, 5), "{role_chunk}");
        assert_eq!(ran.everywhere("ttft"), (120.0, 5), "{role_chunk}");
        assert_eq!(ran.everywhere("itl"), (20.0, 50), "{role_chunk}");
        let roles = ran.exchanges[0].events.iter().filter(|e| e.kind == Kind::Role);
        assert_eq!(roles.count() > 0, role_chunk != "none");
    }
}

/// Headers say nothing about tokens.
#[tokio::test(start_paused = true)]
async fn headers_with_the_first_token() {
    for (headers, at) in [("at-once", 0.0), ("first-token", 120.0)] {
        let ran = base().against(&format!("headers = '{headers}'")).run().await;
        let first = &ran.exchanges[0];
        let waited = first.headers.unwrap().since(first.sent.unwrap());
        assert_eq!(waited.as_millis_f64(), at);
        assert_eq!(ran.everywhere("ttft"), (120.0, 5));
    }
}

/// Answers of one token have no time per further token, and none is made up.
#[tokio::test(start_paused = true)]
async fn answers_of_one_token() {
    let ran = base().with("dataset.config.output-len = 1").run().await;
    assert_eq!(ran.everywhere("ttft"), (120.0, 5));
    assert_eq!(ran.everywhere("e2e"), (120.0, 5));
    assert!(ran.summary.metric("tpot").is_none());
    assert!(ran.summary.metric("itl").is_none());
    assert_eq!(ran.summary.tokens.output.total, Some(5));
}

/// Characters of several bytes come apart over tokens and frames, and whole into the record.
#[tokio::test(start_paused = true)]
async fn characters_of_several_bytes() {
    let answer = "größer 東京 🚀";
    for bytes in [1, 2, 3, 7, 4096] {
        let ran = base()
            .with("dataset.config.output-len = 50\nrequest.ignore-eos = false")
            .against(&format!("answer = {{ text = '{answer}' }}"))
            .against(&format!("[[fault]]\nkind = 'split'\nbytes = {bytes}"))
            .run()
            .await;
        assert_eq!(ran.failures(), []);
        for exchange in ran.measured() {
            assert_eq!(exchange.output, answer, "{bytes} bytes a write");
            assert_eq!(exchange.finish.as_deref(), Some("stop"));
        }
        assert_eq!(ran.everywhere("output-tokens").0, answer.len() as f64);
    }
}

/// A plugin named on the command line replaces the scenario's own: the same load, another engine.
#[tokio::test(start_paused = true)]
async fn another_engine_for_the_same_scenario() {
    let vllm = base().run().await;
    let sglang = with_backend("sglang").run().await;
    assert_eq!(vllm.plan.backend.name, "vllm");
    assert_eq!(sglang.plan.backend.name, "sglang");
    assert_eq!(vllm.truths[0].path, "/v1/completions");
    assert_eq!(sglang.truths[0].path, "/generate");
    let bodies = |ran: &RunResult| -> Vec<_> {
        ran.truths.iter().map(|truth| (truth.prompt_tokens, truth.output_tokens)).collect()
    };
    assert_eq!(bodies(&vllm), bodies(&sglang));
    assert_eq!(vllm.plan.load, sglang.plan.load);
    assert_eq!(vllm.plan.dataset, sglang.plan.dataset);
}
