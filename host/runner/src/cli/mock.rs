//! `runner mock`: serves a scripted engine over TCP, to try and to test the runner without a GPU.

#[cfg(feature = "studies")]
mod conformance;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::ValueHint;

use super::failure::{Exit, Failure};
use super::interrupt::{hangups, received};
use super::words::one_of;
use mock::{
    AnswerText, Engine, Fault, Generate, Headers, PARAMETERS, Parameters, ReasoningField,
    RoleChunk, Script, Tls, Transcriptions, UsageIn,
};
use model::duration::Span;

/// Serve a scripted engine, which answers exactly when its script says
///
/// It serves OpenAI's routes for completions, chats and transcriptions, SGLang's or LMDeploy's
/// /generate, and your own routes. The engine answers exactly when its script says, and fails as
/// the script says. A token is one byte of text. Clients may use HTTP/2 from the start (prior
/// knowledge). Flags override the script file. The script can define the wire formats of other
/// engines.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = include_str!("mock/routes.txt"))]
pub struct Args {
    /// TOML file with any of the settings below, including faults and routes
    #[arg(long, value_name = "FILE", env = "RUNNER_MOCK_SCRIPT", value_hint = ValueHint::FilePath)]
    script: Option<PathBuf>,

    /// Name or address to listen on
    #[arg(long, env = "RUNNER_MOCK_HOST", default_value = "127.0.0.1", help_heading = "Where")]
    host: String,
    /// Port to listen on; 0 lets the system choose one
    #[arg(long, env = "RUNNER_MOCK_PORT", default_value_t = 8000, help_heading = "Where")]
    port: u16,

    /// Serve TLS with the certificate in this file (PEM, followed by its authorities' certificates)
    #[arg(long, value_name = "FILE", env = "RUNNER_MOCK_TLS_CERT", value_hint = ValueHint::FilePath, requires = "tls_key", help_heading = "Where")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", env = "RUNNER_MOCK_TLS_KEY", value_hint = ValueHint::FilePath, requires = "tls_cert", help_heading = "Where")]
    tls_key: Option<PathBuf>,

    /// Time from the request to the first token [default: 100ms]
    #[arg(long, value_name = "TIME", env = "RUNNER_MOCK_TTFT", help_heading = "Speed")]
    ttft: Option<Span>,
    /// Time from each token to the next [default: 10ms]
    #[arg(long, value_name = "TIME", env = "RUNNER_MOCK_ITL", help_heading = "Speed")]
    itl: Option<Span>,
    /// Variation of ttft and itl from request to request, as a share, such as 0.1 or 10% [default:
    /// not at all]
    #[arg(long, value_name = "SHARE", env = "RUNNER_MOCK_SPREAD")]
    #[arg(value_parser = model::number::share, help_heading = "Speed")]
    spread: Option<f64>,
    /// Answer many requests in one batch, whose steps decide when tokens come: `slots=32,step=10ms`
    #[arg(long, value_name = "NAME=VALUE,...", env = "RUNNER_MOCK_BATCHING")]
    #[arg(help_heading = "Speed")]
    #[arg(conflicts_with_all = ["ttft", "itl", "spread", "max_concurrency"])]
    #[arg(long_help = batching_help())]
    batching: Option<Parameters>,
    /// Random seed [default: 0]
    #[arg(long, value_name = "N", env = "RUNNER_MOCK_SEED", help_heading = "Speed")]
    seed: Option<u64>,
    /// Tokens per event after the first event, which holds one [default: 1]
    #[arg(long, value_name = "N", env = "RUNNER_MOCK_TOKENS_PER_CHUNK", help_heading = "Speed")]
    tokens_per_chunk: Option<NonZeroU32>,
    /// Maximum number of requests processed at a time; others wait
    #[arg(long, value_name = "N", env = "RUNNER_MOCK_MAX_CONCURRENCY", help_heading = "Speed")]
    max_concurrency: Option<NonZeroUsize>,
    /// Cache prompt prefixes, and report how many tokens were found in the cache
    #[arg(long, env = "RUNNER_MOCK_PREFIX_CACHE", help_heading = "Answers")]
    prefix_cache: bool,
    /// Report the engine's own timings, with this share of the time to first token as queueing
    ///
    /// As vLLM does with --enable-per-request-metrics, and SGLang with --enable-metrics. The wait
    /// for a slot counts as queueing as well.
    #[arg(long, value_name = "SHARE", env = "RUNNER_MOCK_SERVER_TIMINGS")]
    #[arg(help_heading = "Answers")]
    server_timings: Option<f64>,
    /// Time at which a stream's HTTP headers are sent [default: at-once]
    #[arg(long, value_name = "WHEN", env = "RUNNER_MOCK_HEADERS")]
    #[arg(value_parser = one_of::<Headers>(), help_heading = "Speed")]
    headers: Option<Headers>,

    /// Tokens in an answer if the request sets no limit [default: 128]
    #[arg(long, value_name = "N", env = "RUNNER_MOCK_OUTPUT_TOKENS", help_heading = "Answers")]
    output_tokens: Option<u32>,
    /// End answers after N tokens, unless the request sets ignore_eos
    #[arg(long, value_name = "N", env = "RUNNER_MOCK_STOP_AFTER", help_heading = "Answers")]
    stop_after: Option<u32>,
    /// Answer every request with this text instead of generated words
    #[arg(long, value_name = "TEXT", env = "RUNNER_MOCK_ANSWER", help_heading = "Answers")]
    #[arg(conflicts_with = "echo")]
    answer: Option<String>,
    /// Answer with the prompt, or in a chat with its last message
    #[arg(long, env = "RUNNER_MOCK_ECHO", help_heading = "Answers")]
    echo: bool,
    /// Number of tokens at the start of a chat's answer that are reasoning
    #[arg(long, value_name = "N", env = "RUNNER_MOCK_REASONING_TOKENS", help_heading = "Answers")]
    reasoning_tokens: Option<u32>,

    /// Name of the reasoning field [default: reasoning]
    #[arg(long, value_name = "NAME", env = "RUNNER_MOCK_REASONING_FIELD")]
    #[arg(value_parser = one_of::<ReasoningField>(), help_heading = "Dialect")]
    reasoning_field: Option<ReasoningField>,
    /// Place of the chunk that has a role but no text in a chat stream [default: first-token]
    #[arg(long, value_name = "WHEN", env = "RUNNER_MOCK_ROLE_CHUNK")]
    #[arg(value_parser = one_of::<RoleChunk>(), help_heading = "Dialect")]
    role_chunk: Option<RoleChunk>,
    /// Place where the OpenAI routes report token counts [default: final]
    #[arg(long, value_name = "WHERE", env = "RUNNER_MOCK_USAGE")]
    #[arg(value_parser = one_of::<UsageIn>(), help_heading = "Dialect")]
    usage: Option<UsageIn>,
    /// Engine whose /generate to serve [default: sglang]
    #[arg(long, value_name = "ENGINE", env = "RUNNER_MOCK_GENERATE")]
    #[arg(value_parser = one_of::<Generate>(), help_heading = "Dialect")]
    generate: Option<Generate>,
    /// Server whose /v1/audio/transcriptions to serve [default: vllm]
    #[arg(long, value_name = "SERVER", env = "RUNNER_MOCK_TRANSCRIPTIONS")]
    #[arg(value_parser = one_of::<Transcriptions>(), help_heading = "Dialect")]
    transcriptions: Option<Transcriptions>,
    /// Stream only new text on SGLang's /generate, instead of all text so far
    #[arg(long, env = "RUNNER_MOCK_INCREMENTAL", help_heading = "Dialect")]
    incremental: bool,

    /// API key that requests must send as a bearer token
    #[arg(long, value_name = "KEY", env = "RUNNER_MOCK_API_KEY", hide_env_values = true)]
    #[arg(help_heading = "Access")]
    api_key: Option<String>,
    /// Model to serve; repeatable; requests for other models are refused
    ///
    /// `--model slots=32,step=10ms` names no model: it means `--batching slots=32,step=10ms`.
    #[arg(long = "model", value_name = "NAME", env = "RUNNER_MOCK_MODEL", value_delimiter = ',')]
    #[arg(help_heading = "Access")]
    models: Vec<String>,
    /// On exit, write the log of all requests to this file, one line of JSON each
    #[arg(long, value_name = "FILE", env = "RUNNER_MOCK_TRUTH", value_hint = ValueHint::FilePath, help_heading = "Truth")]
    truth: Option<PathBuf>,

    /// Serve the cases that `runner verify` judges clients with, or only the named case
    ///
    /// Each case is an engine below a base path of its own, such as
    /// http://HOST:PORT/stream-role/v1/chat/completions. Below it, truth has the log, a line of
    /// JSON for each request. There, expected has the value of each definition of a figure by that
    /// log. POST reset clears the log. A case that is served alone also answers without its base
    /// path.
    #[arg(
        long, value_name = "CASE", env = "RUNNER_MOCK_CONFORMANCE", num_args = 0..=1,
        default_missing_value = ALL_CASES,
        conflicts_with_all = ["script", "truth", "tls_cert", "faults", "ttft", "itl", "spread", "batching", "api_key", "models"],
        help_heading = "Truth",
    )]
    conformance: Option<String>,

    /// Maximum number of tokens in a prompt and its answer together
    #[arg(long, value_name = "N", env = "RUNNER_MOCK_CONTEXT_LIMIT", help_heading = "Access")]
    context_limit: Option<NonZeroU32>,

    /// Fault to inject, such as `kind = "cut", after-tokens = 5, every = 10`; repeatable, or
    /// separated by `;`
    ///
    /// Kinds: http-error (status, retry-after), html (status), hang-up (reset), goodbye,
    /// slow-headers (for), in-band-error, cut (reset) and no-done (after-tokens), stall
    /// (after-tokens, for), stop-early (after-tokens), split (bytes), merge (events), crlf, ping.
    /// Select requests with every = N, requests = [0, 7] or share = 0.1; without these, the fault
    /// affects all requests.
    #[arg(long = "fault", value_name = "FAULT", env = "RUNNER_MOCK_FAULT", value_delimiter = ';')]
    #[arg(help_heading = "Faults")]
    faults: Vec<Fault>,
}

impl Args {
    /// The script: the file's, or the default one, overridden by the flags.
    fn script(self) -> Result<Script, Failure> {
        let mut script = match &self.script {
            Some(path) => Script::read(path)?,
            None => Script::default(),
        };
        let (parameters, models): (Vec<&str>, Vec<&str>) =
            (self.models.iter()).map(String::as_str).partition(|value| is_parameter(value));
        let models: Vec<String> = models.into_iter().map(str::to_owned).collect();
        let parameters = (!parameters.is_empty()).then(|| parameters.join(","));
        self.check_batching(parameters.as_deref(), script.batching.is_some())?;
        let as_model = parameters.map(|own| {
            let wrong = |why| format!("invalid value '{own}' for '--model': {why}");
            own.parse::<Parameters>().map_err(wrong)
        });
        let as_model = as_model.transpose().map_err(Failure::command_line)?;
        let batching = self.batching.or(as_model);
        fn set<T>(place: &mut T, flag: Option<T>) {
            if let Some(value) = flag {
                *place = value;
            }
        }
        set(&mut script.ttft, self.ttft);
        set(&mut script.itl, self.itl);
        set(&mut script.spread, self.spread);
        set(&mut script.seed, self.seed);
        set(&mut script.batching, batching.map(Some));
        set(&mut script.tokens_per_chunk, self.tokens_per_chunk);
        set(&mut script.max_concurrency, self.max_concurrency.map(Some));
        set(&mut script.headers, self.headers);
        set(&mut script.output_tokens, self.output_tokens);
        set(&mut script.stop_after, self.stop_after.map(Some));
        set(&mut script.answer, self.answer.map(AnswerText::Text));
        set(&mut script.answer, self.echo.then_some(AnswerText::Echo));
        set(&mut script.reasoning_tokens, self.reasoning_tokens);
        set(&mut script.reasoning_field, self.reasoning_field);
        set(&mut script.role_chunk, self.role_chunk);
        set(&mut script.usage, self.usage);
        set(&mut script.generate, self.generate);
        set(&mut script.transcriptions, self.transcriptions);
        set(&mut script.incremental, self.incremental.then_some(true));
        set(&mut script.api_key, self.api_key.map(Some));
        set(&mut script.models, (!models.is_empty()).then_some(models));
        set(&mut script.prefix_cache, self.prefix_cache.then_some(true));
        set(&mut script.server_timings, self.server_timings.map(Some));
        set(&mut script.context_limit, self.context_limit);
        script.faults.extend(self.faults);
        Ok(script)
    }

    /// Refuses flags that contradict a batch in `--model` or in the script's file.
    fn check_batching(&self, as_model: Option<&str>, in_file: bool) -> Result<(), Failure> {
        let batch = match as_model {
            Some(parameters) => format!("'--model {parameters}'"),
            None if in_file => "`batching` in the script".to_owned(),
            None => return Ok(()),
        };
        let contradicting = [
            ("--batching", as_model.is_some() && self.batching.is_some()),
            ("--ttft", self.ttft.is_some()),
            ("--itl", self.itl.is_some()),
            ("--spread", self.spread.is_some()),
            ("--max-concurrency", self.max_concurrency.is_some()),
        ];
        let first = contradicting.into_iter().find(|(_, is_set)| *is_set);
        let wrong = |(flag, _)| format!("the argument '{flag}' cannot be used with {batch}");
        Failure::of_any(Exit::CommandLine, first.map(wrong))
    }
}

/// True if a value of `--model` sets a parameter of a batch, and is no model's name with `=`.
fn is_parameter(text: &str) -> bool {
    let name = text.split_once('=').map(|(name, _)| name.trim());
    name.is_some_and(|name| PARAMETERS.iter().any(|(known, _)| *known == name))
}

fn batching_help() -> String {
    let defaults = Parameters::default().to_string();
    let mut help = "Answer many requests in one batch, whose steps decide when tokens come: `slots=32,step=10ms`\n\n\
                    Each step generates a token for every request of the batch whose prompt has been read, and reads \
                    a chunk of the other prompts. It takes `step`, plus `request` for each of the former, plus \
                    `prompt-token` for each prompt token read, plus `context` for each token in the KV cache, times a \
                    random factor that --seed decides. Parameters and their defaults:\n"
        .to_owned();
    for ((_, about), default) in PARAMETERS.into_iter().zip(defaults.split(',')) {
        help += &format!("\n- {default}: {about}");
    }
    help
}

const ALL_CASES: &str = "*";

#[cfg(feature = "studies")]
use conformance::exec as conform;

#[cfg(not(feature = "studies"))]
fn conform(_: &str, _: SocketAddr, _: &str) -> Result<ExitCode, Failure> {
    Err(Failure::not_built("`--conformance`"))
}

/// The error that the engine cannot listen on an address.
fn unheard(address: &str) -> impl Fn(std::io::Error) -> Failure {
    move |cause| {
        Failure::command_line(format!(
            "cannot listen on {address}: {cause}; choose another with --host and --port (0: any free port)"
        ))
    }
}

/// The error of a system that does not let the engine run.
fn system(cause: std::io::Error) -> Failure {
    Failure::new(Exit::Bug, format!("the mock engine cannot run: {cause}"))
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let address = format!("{}:{}", args.host, args.port);
    let resolved = resolve(&args.host, args.port).map_err(unheard(&address))?;
    if let Some(name) = &args.conformance {
        return conform(name, resolved, &address);
    }
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(Tls::read(certificate, key).map_err(Failure::command_line)?)
        }
        _ => None,
    };
    let script = args.clone().script()?;
    // A client may open thousands of connections; if the limit cannot be raised, they wait for
    // their turn.
    let _ = load::thread_group::allow(u64::MAX);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(system)?.block_on(async {
        let engine = match args.truth {
            Some(_) => Engine::with_truth(script)?,
            None => Engine::new(script)?,
        };
        let listener = mock::listen(resolved).map_err(unheard(&address))?;
        let scheme = tls.as_ref().map_or("http", |_| "https");
        let at = listener.local_addr().map_err(system)?;
        let interrupted = interrupted();
        say(&format!("listening on {scheme}://{at}\n")).map_err(system)?;
        let served = Arc::clone(&engine);
        match tls {
            None => mock::serve(listener, served, interrupted).await,
            Some(tls) => mock::serve_tls(listener, tls, served, interrupted).await,
        }
        if let Some(path) = &args.truth {
            write_truth(path, &engine).map_err(|cause| {
                let path = path.display();
                Failure::command_line(format!(
                    "cannot write the log of requests to `{path}`: {cause}"
                ))
            })?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Prints a text at once, also to a pipe.
fn say(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn resolve(host: &str, port: u16) -> std::io::Result<SocketAddr> {
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    (host, port).to_socket_addrs()?.next().ok_or_else(none)
}

fn write_truth(path: &Path, engine: &Engine) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for truth in engine.truths() {
        serde_json::to_writer(&mut out, &truth)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Waits for an interrupt. Signals count from this call on, which needs a runtime.
pub(super) fn interrupted() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    // If signals cannot be listened to, the default action still ends the program.
    let mut interrupts = signal(SignalKind::interrupt()).ok();
    let mut terminations = signal(SignalKind::terminate()).ok();
    let mut hangups = hangups();
    async move {
        tokio::select! {
            _ = received(&mut interrupts) => {}
            _ = received(&mut terminations) => {}
            _ = received(&mut hangups) => {}
        }
    }
}

#[cfg(test)]
mod tests;
