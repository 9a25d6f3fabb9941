//! The entries of the catalogue. To add a metric, add one here.

use super::Measure::{self, One, Pooled};
use super::definition::{per_second, span};
use super::names::*;
use super::{Metric, Of, Unit};
use crate::summary::first_token::Part;
use model::units::Nanos;

/// Each entry is a name, the unit, the exchanges and the measure, the definition, and the figures
/// of other tools that equal it.
macro_rules! catalogue {
    ($($name:expr => $unit:ident of $of:ident, $measure:expr, $definition:literal, $equals:literal;)*) => {
        pub static CATALOGUE: &[Metric] = &[$(Metric {
            name: $name,
            unit: Unit::$unit,
            definition: $definition,
            equals: $equals,
            of: Of::$of,
            measure: $measure,
        }),*];
    };
}

catalogue! {
    TTFT => Milliseconds of Answered, One(|reading| reading.ttft()),
        "first output event (text, reasoning, tool call or sound) that carries bytes, else first output event, - sent; streamed replies only",
        "TTFT of LMDeploy, SGLang, AIPerf, guidellm and evalscope";
    "ttft-any" => Milliseconds of Answered,
        One(|reading| reading.streamed_since_sent(reading.first)),
        "first event of any kind, including a role-only event, - sent; streamed replies only",
        "TTFT of vLLM (bench serve, vllm-bench)";
    "ttft-reasoning" => Milliseconds of Answered,
        One(|reading| reading.streamed_since_sent(reading.first_reasoning)),
        "first reasoning event that carries bytes - sent; streamed replies only",
        "in no other tool; ttft is the earliest of this, ttft-answer and the first tool call";
    "ttft-answer" => Milliseconds of Answered,
        One(|reading| reading.streamed_since_sent(reading.first_answer)),
        "first text event that carries bytes, excluding reasoning, - sent; streamed replies only",
        "TTFO of AIPerf, TTFOT of guidellm, TTFT of inference-perf";
    TTFT_FROM_DUE => Milliseconds of Answered,
        One(|reading| Some(span(reading.exchange.due, reading.began()?))),
        "as ttft, but - due instead of - sent",
        "TTFT of MLPerf's Server scenario, which counts from the scheduled arrival";
    "ttft-client" => Milliseconds of Answered, One(|reading| reading.first_token(Part::Client)),
        "part of ttft-from-due: sent - due, without ttft-connection; of requests whose server reports timings of its first token, as all parts",
        "no other tool's";
    "ttft-connection" => Milliseconds of Answered,
        One(|reading| reading.first_token(Part::Connection)),
        "part of ttft-from-due: the wait for a connection to open, TLS included, after the request could have been sent; zero where one was open",
        "no other tool's";
    "ttft-network" => Milliseconds of Answered, One(|reading| reading.first_token(Part::Network)),
        "part of ttft-from-due: ttft - the server's own time to first token, where it reports that by itself; zero where it states more than passed",
        "no other tool's";
    "ttft-front-end" => Milliseconds of Answered,
        One(|reading| reading.first_token(Part::FrontEnd)),
        "part of ttft-from-due: the server's own time to first token - ttft-queue - ttft-prefill, where it reports all three; zero where the two are longer",
        "no other tool's";
    "ttft-network-and-front-end" => Milliseconds of Answered,
        One(|reading| reading.first_token(Part::NetworkAndFrontEnd)),
        "part of ttft-from-due: ttft - ttft-queue - ttft-prefill, where the server reports these two alone; zero where it states more than passed",
        "no other tool's";
    "ttft-queue" => Milliseconds of Answered, One(|reading| reading.first_token(Part::Queue)),
        "part of ttft-from-due: server-queue, of streamed replies with a first token",
        "vllm:request_queue_time_seconds; sglang:queue_time_seconds";
    "ttft-prefill" => Milliseconds of Answered, One(|reading| reading.first_token(Part::Prefill)),
        "part of ttft-from-due: server-prefill, of streamed replies with a first token",
        "vllm:request_prefill_time_seconds";
    "ttft-from-input" => Milliseconds of Answered,
        One(|reading| Some(span(reading.exchange.input_sent?, reading.began()?))),
        "the output event of ttft - the last message handed to the socket before it; WebSockets only",
        "in no other tool; the response latency of a conversation by voice, from the end of the speech";
    "ttft-with-connect" => Milliseconds of Answered, One(|reading| reading.ttft_with_connect()),
        "as ttft, but - start of opening the connection if the request waited for that, else - sent",
        "TTFT of clients that open a connection as part of the request: SGLang's, LMDeploy's and genai-bench";
    "ttft-second" => Milliseconds of Answered,
        One(|reading| Some(span(reading.began()?, reading.second_output?))),
        "second output event that carries bytes - the first; streamed replies only",
        "TTST of AIPerf";
    TTFA => Milliseconds of Answered,
        One(|reading| reading.streamed_since_sent(reading.first_audio)),
        "first event with sound - sent; streamed replies only",
        "TTFA, time to first audio, of vLLM-Omni and of makers of speech models; TTFB of clients that take the first byte of a body for it";
    E2E => Milliseconds of Answered, One(|reading| reading.e2e()),
        "last event (the end marker) - sent",
        "E2E latency of LMDeploy and SGLang";
    "e2e-last-token" => Milliseconds of Answered, One(|reading| reading.e2e_last_token()),
        "last output event that carries bytes, else last output event, - sent",
        "request latency of AIPerf; E2EL of vLLM if the last chunk carries text";
    "e2e-usage" => Milliseconds of Answered,
        One(|reading| reading.streamed_since_sent(reading.usage)),
        "usage event - sent; streamed replies only",
        "latency of evalscope and genai-bench; E2EL of TensorRT-LLM and vllm-bench (chat), where usage comes after the last chunk";
    "e2e-end" => Milliseconds of Answered, One(|reading| reading.e2e_end()),
        "end of the reply's bytes - sent",
        "request latency of guidellm and inference-perf";
    E2E_FROM_DUE => Milliseconds of Answered,
        One(|reading| Some(span(reading.exchange.due, reading.last?))),
        "as e2e, but - due instead of - sent",
        "latency of MLPerf's Server scenario; E2EL including client queue of vLLM";
    TPOT => Milliseconds of Answered, One(|reading| reading.tpot()),
        "(e2e - ttft) / (n - 1), n > 1",
        "TPOT of LMDeploy, SGLang and MLPerf";
    "tpot-last-token" => Milliseconds of Answered,
        One(|reading| reading.per_further_token(reading.last_output?, 1)),
        "(e2e-last-token - ttft) / (n - 1), n > 1",
        "TPOT of inference-perf and vLLM, ITL of AIPerf and GenAI-Perf, ITL per request of guidellm";
    "tpot-usage" => Milliseconds of Answered,
        One(|reading| reading.per_further_token(reading.usage.filter(|_| reading.streamed)?, 1)),
        "(e2e-usage - ttft) / (n - 1), n > 1; streamed replies only",
        "TPOT of evalscope and genai-bench";
    "tpot-after-first-event" => Milliseconds of Answered,
        One(|reading| reading.per_further_token(reading.last_output?, reading.first_tokens?)),
        "(e2e-last-token - ttft) / (n - tokens of the first event), if the server states the tokens of each event",
        "ITL of AIPerf where it subtracts the first chunk's tokens";
    "tpot-with-first" => Milliseconds of Answered,
        One(|reading| reading.per_token(reading.e2e_last_token()?)),
        "e2e-last-token / n, n > 0",
        "TPOT of guidellm, and so of GPUStack's benchmark-runner";
    "normalized-latency" => Milliseconds of Answered,
        One(|reading| reading.per_token(reading.e2e_end()?)),
        "e2e-end / n, n > 0",
        "NTPOT of inference-perf, normalized latency of the vLLM paper";
    ITL => Milliseconds of Answered, Pooled(|reading, show| reading.gaps(show)),
        "gaps between successive output events that carry bytes, pooled over requests; streamed replies only",
        "ITL of LMDeploy and evalscope, of SGLang's OpenAI routes; ICL of AIPerf; of vLLM except for events without text";
    "itl-token" => Milliseconds of Answered, Pooled(|reading, show| reading.token_gaps(show)),
        "gap between successive output events divided equally among the tokens of the later event, one sample per token, if the server states the tokens of each event; pooled over requests; streamed replies only",
        "ITL of SGLang's native route";
    "itl-dealt" => Milliseconds of Answered, Pooled(|reading, show| reading.dealt_gaps(show)),
        "as itl-token, but if the server does not state the tokens of each event, n are distributed over the output events by their bytes, at least one to each event that carries any",
        "approximately the ITL of SGLang's other routes with speculative decoding, which retokenize each event";
    "itl-max" => Milliseconds of Answered,
        One(|reading| Some(reading.longest.filter(|_| reading.streamed)?.as_millis_f64())),
        "longest gap between successive output events that carry bytes; streamed replies only",
        "the largest gap between chunks of a request, as used by SLOs on stutter";
    STALL_SHARE => Share of Answered, One(|reading| reading.stall_share()),
        "tokens after the first that came later than the first token + k * limit, k = 1 for the second token, / (n - 1), n > 1; limit is the run's objective on tpot; tokens of an event as in itl-dealt; streamed replies only; absent without such an objective",
        "no other tool's; as 1 - the fluidity index of Etalon, but its deadlines move after each miss";
    OUTPUT_SPEED => TokensPerSecond of Answered,
        One(|reading| per_second(reading.output_length()?, reading.e2e()?)),
        "n / e2e",
        "tokens per second per user of TensorRT-LLM; E2E output throughput per user of AIPerf";
    "decode-speed" => TokensPerSecond of Answered,
        One(|reading| per_second(1.0, reading.per_further_token(reading.last_output?, 1)?)),
        "1 / tpot-last-token",
        "output token throughput per user of AIPerf and GenAI-Perf; interactivity of InferenceX";
    "prefill-speed" => TokensPerSecond of Answered,
        One(|reading| per_second(reading.input_length()?, reading.ttft()?)),
        "input-tokens / ttft",
        "prefill throughput per user of AIPerf";
    "tokens-per-event" => TokensPerEvent of Answered, One(|reading| reading.tokens_per_event()),
        "n / output events that carry bytes; streamed replies only",
        "tokens per chunk; with speculative decoding, the accepted tokens per step as a client sees them";
    "decoded-tokens-per-event" => TokensPerEvent of Answered,
        One(|reading| reading.decoded_per_event()),
        "(n - 1) / (output events that carry bytes - 1); streamed replies only",
        "decoded tokens per iteration of evalscope; avg_decoded_tokens_per_iter of TensorRT-LLM if each iteration is an event";
    "event-tokens" => Tokens of Answered, Pooled(|reading, show| reading.event_tokens(show)),
        "tokens of each output event except the first, if the server states them; pooled over requests; streamed replies only",
        "accepted length per step of SGLang if each step is an event";
    "audio-duration" => Milliseconds of Answered, One(|reading| reading.audio_duration()),
        "length of the sound in the answer, as its pieces state it",
        "audio duration of vLLM-Omni's benchmark";
    REAL_TIME_FACTOR => Ratio of Answered,
        One(|reading| reading.real_time_factor(reading.audio_duration())),
        "e2e / audio-duration, audio-duration > 0: below 1, the sound is there faster than it is heard",
        "RTF, real-time factor, of speech synthesis";
    "inverse-real-time-factor" => Speedup of Answered,
        One(|reading| reading.real_time_speedup(reading.audio_duration())),
        "audio-duration / e2e",
        "RTFx, inverse real-time factor, of speech synthesis";
    "input-audio-duration" => Milliseconds of Answered,
        One(|reading| reading.input_audio_duration()),
        "length of the sound in the prompt, as the dataset measured it",
        "audio duration of benchmarks of transcription";
    INPUT_REAL_TIME_FACTOR => Ratio of Answered,
        One(|reading| reading.real_time_factor(reading.input_audio_duration())),
        "e2e / input-audio-duration, input-audio-duration > 0: below 1, the answer is there faster than the prompt is heard",
        "RTF, real-time factor, of transcription";
    "inverse-input-real-time-factor" => Speedup of Answered,
        One(|reading| reading.real_time_speedup(reading.input_audio_duration())),
        "input-audio-duration / e2e",
        "RTFx, inverse real-time factor, of the Open ASR Leaderboard for one request; the leaderboard divides the sums";
    SEND_LAG => Milliseconds of Sent, One(|reading| reading.send_lag()),
        "sent - the later of due and granted",
        "schedule delay of inference-perf";
    QUEUE => Milliseconds of Sent,
        One(|reading| Some(span(reading.exchange.due, reading.exchange.granted?))),
        "granted - due, if requests in flight are capped",
        "client queue time of vLLM";
    CONNECTION_WAIT => Milliseconds of Sent,
        One(|reading| reading.waited_for().map(|(begun, ready)| span(begun, ready))),
        "connection ready (including TLS) - start of opening it, if the request waited for that",
        "blocked and connecting time of AIPerf's HTTP trace";
    "lookup" => Milliseconds of Sent,
        One(|reading| Some(span(reading.opened()?.begun, reading.opened()?.looked_up?))),
        "host name resolved - start of opening the connection, once per connection",
        "DNS time of AIPerf's HTTP trace; time_namelookup of curl";
    "connect" => Milliseconds of Sent,
        One(|reading| {
            let own = reading.opened()?;
            Some(span(own.looked_up.unwrap_or(own.begun), own.connected))
        }),
        "connection established - host name resolved, else start of opening the connection, once per connection",
        "connecting time of AIPerf's HTTP trace; time_connect - time_namelookup of curl";
    "tls" => Milliseconds of Sent,
        One(|reading| Some(span(reading.opened()?.connected, reading.opened()?.secured?))),
        "TLS handshake complete - connection established, once per connection",
        "time_appconnect - time_connect of curl";
    "upload" => Milliseconds of Sent,
        One(|reading| Some(span(reading.exchange.sent?, reading.exchange.written?))),
        "last byte of the request written to the socket - sent",
        "sending time of AIPerf's HTTP trace";
    "time-to-first-byte" => Milliseconds of Sent,
        One(|reading| Some(span(reading.exchange.sent?, reading.exchange.first_byte?))),
        "first byte of the reply - sent",
        "waiting time of AIPerf's HTTP trace plus upload; time_starttransfer of curl on an open connection";
    "time-to-headers" => Milliseconds of Sent,
        One(|reading| Some(span(reading.exchange.sent?, reading.exchange.headers?))),
        "headers of the reply complete - sent",
        "time to response headers of browsers and proxies";
    READ_LAG => Milliseconds of Sent,
        One(|reading| reading.exchange.read_lag.map(Nanos::as_millis_f64)),
        "longest time that bytes of the reply waited in the socket before they were read",
        "no other tool's; clients that read late add it to TTFT and gaps unnoticed";
    SERVER_QUEUE => Milliseconds of Answered, One(|reading| reading.timing(|own| own.queue)),
        "time in the server's queue, by its own clock: until it first worked on the request. vLLM's queue_time_ms; SGLang's queue_time, with later waits of a request that was put back; Ollama's load_duration, until a loaded model was there; TensorRT-LLM behind Triton: first_scheduled_time_ns - arrival_time_ns",
        "vllm:request_queue_time_seconds; sglang:queue_time_seconds";
    SERVER_PREFILL => Milliseconds of Answered,
        One(|reading| reading.timing(|own| own.prefill)),
        "time from when the server first worked on the request to its first token, by its own clock. vLLM's time_to_first_token_ms, which counts from there; SGLang's prefill_finished_time - forward_entry_time; llama.cpp's prompt_ms; Ollama's prompt_eval_duration; TensorRT-LLM behind Triton: first_token_time_ns - first_scheduled_time_ns",
        "vllm:request_prefill_time_seconds";
    SERVER_TTFT => Milliseconds of Answered, One(|reading| reading.server_ttft()),
        "time from when the server received the request to its first token, by its own clock. SGLang's first_token_latency; Ollama's total_duration - eval_duration; TensorRT-LLM behind Triton: first_token_time_ns - arrival_time_ns; else, as for vLLM, server-queue + server-prefill, without the time before the queue",
        "sglang:time_to_first_token_seconds; vLLM's value also counts the time before the queue";
    SERVER_DECODE => Milliseconds of Answered,
        One(|reading| reading.timing(|timings| timings.decode)),
        "time from the server's first token to its last, by its own clock. vLLM's generation_time_ms; SGLang's e2e_latency - first_token_latency; llama.cpp's predicted_ms; Ollama's eval_duration; TensorRT-LLM behind Triton: last_token_time_ns - first_token_time_ns",
        "vllm:request_decode_time_seconds";
    GATEWAY_OVERHEAD => Milliseconds of Answered, One(|reading| reading.gateway_overhead()),
        "a gateway's own time, without the engine's, as it states in the reply's header: LiteLLM's x-litellm-overhead-duration-ms, Kong's x-kong-proxy-latency",
        "litellm_overhead_latency_metric of LiteLLM";
    "input-tokens" => Tokens of Answered, One(|reading| reading.input_length()),
        "tokens of the prompt: the server's usage, else the dataset's count",
        "input length of vLLM and AIPerf";
    "output-tokens" => Tokens of Answered, One(|reading| reading.output_length()),
        "n: the server's usage, else the sum of the tokens it states for each chunk, else the requested length if it stopped for length, else the retokenized text",
        "output length of vLLM and AIPerf (with usage)";
    "cached-input-tokens" => Tokens of Answered,
        One(|reading| reading.usage(|usage| usage.cached_input_tokens)),
        "tokens of the prompt that the server reports as found in its prefix cache",
        "cached tokens of SGLang's cache report";
    "reasoning-tokens" => Tokens of Answered,
        One(|reading| reading.usage(|usage| usage.reasoning_tokens)),
        "tokens of the answer that the server reports as reasoning",
        "reasoning tokens of AIPerf";
    "draft-tokens" => Tokens of Answered, One(|reading| reading.usage(|usage| usage.draft_tokens)),
        "tokens that the server reports as proposed by speculative decoding",
        "draft tokens of vLLM's per-request metrics; proposed drafts of SGLang";
    "accepted-draft-tokens" => Tokens of Answered,
        One(|reading| reading.usage(|usage| usage.accepted_draft_tokens)),
        "tokens that the server reports as proposed by speculative decoding and accepted by the model, without the token that the model adds itself in each step",
        "accepted draft tokens of vLLM's per-request metrics; correct drafts of SGLang";
    "draft-acceptance" => Share of Answered, One(|reading| reading.draft_acceptance()),
        "accepted-draft-tokens / draft-tokens, draft-tokens > 0",
        "draft acceptance rate of vLLM; spec_accept_rate of SGLang";
    "acceptance-length" => TokensPerStep of Answered, One(|reading| reading.acceptance_length()),
        "1 + accepted draft tokens / steps of speculative decoding, as the server reports them, steps > 0; accepted by the server's list of steps, else accepted-draft-tokens",
        "mean acceptance length of vLLM; spec_accept_length of SGLang, which divides all tokens of the answer, the first and those cut off at its end included";
    "input-image-tokens" => Tokens of Answered,
        One(|reading| reading.usage(|usage| usage.input_image_tokens)),
        "image tokens of the prompt, as the server reports them",
        "no other tool's";
    "input-video-tokens" => Tokens of Answered,
        One(|reading| reading.usage(|usage| usage.input_video_tokens)),
        "video tokens of the prompt, as the server reports them",
        "no other tool's";
    "input-audio-tokens" => Tokens of Answered,
        One(|reading| reading.usage(|usage| usage.input_audio_tokens)),
        "audio tokens of the prompt, as the server reports them",
        "no other tool's";
    "output-audio-tokens" => Tokens of Answered,
        One(|reading| reading.usage(|usage| usage.output_audio_tokens)),
        "audio tokens of the answer, as the server reports them",
        "no other tool's";
    PARENT_WAIT => Milliseconds of Sent, One(|reading| reading.parent_wait()),
        "due - released, of requests that depend on several: from when the first of its dependencies let it go until the last one did",
        "no other tool's; the wait at a join of parallel branches";
    SESSION_TIME => Milliseconds of Session,
        Measure::Session(|session| Some(session.time.as_millis_f64())),
        "last end of the session's requests - due of its first",
        "task completion time of an agent; duration of a conversation";
    SESSION_IN_FLIGHT => Milliseconds of Session,
        Measure::Session(|session| Some(session.in_flight.as_millis_f64())),
        "time in which at least one request of the session was in flight, each from sent to its end",
        "no other tool's; the server's part of session-time";
    SESSION_IDLE => Milliseconds of Session,
        Measure::Session(|session| Some(session.idle().as_millis_f64())),
        "session-time - session-in-flight: think times, tool times, and waits in this client",
        "no other tool's; the dataset's part of session-time";
    SESSION_TURNS => Requests of Session, Measure::Session(|session| Some(session.requests as f64)),
        "requests of the session",
        "turns per conversation of AIPerf";
}
