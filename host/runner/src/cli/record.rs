//! `runner record`: a proxy that records traffic as an anonymous workload.

use std::net::TcpListener;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueHint;
use tokio::sync::watch;

use super::artifacts::Artifacts;
use super::destination::Destination;
use super::failure::{Exit, Failure, exits};
use super::mock::interrupted;
use super::print::{tell, write_stdout};
use crate::cli::flags::Flags;
use crate::cli::print::columns;
use crate::cli::sources::{Text, source_of};
use load::pace::Signal;
use mock::Tls;
use model::connection::Trust;
use model::duration::Span;
use model::number::{change, fixed, percent, short};
use model::target::{Target, with_scheme};
use reader::{Located, Size};
use recorder::{
    Coarseness, Compared, Counts, Recorded, Recording, RecordingError, RowsError, Settings, Sides,
    Workload, compare,
};
use scenario::Scenario;
use session::outlook::{DrawnSession, Question};
use session::resolve::on_all_routes;
use session::{Faults, Source, TextTokenizer, resolve};

/// The backends whose requests are recorded unless the user names others.
const USUAL: [&str; 2] = ["openai", "anthropic"];

/// Record your own traffic as an anonymous workload
///
/// A reverse proxy: clients connect to --listen, and every byte goes on to --to and back unchanged,
/// streamed or not. The file gets a row for each request of a known route: arrival, token counts,
/// session, and the ids of its prompt's blocks of 64 tokens. Equal prefixes have equal ids. The ids
/// depend on a random key that is thrown away at the end, so no text can be found by its id. No
/// text, key, header, address or name is written.
///
/// The rows have Mooncake's format with further fields; the dataset `trace` replays them.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner record --to http://10.0.0.7:8000 traffic.jsonl           then send clients to port 8100\n  \
        runner record --to http://10.0.0.7:8000 --tokenizer Qwen/Qwen3-8B --sessions agents.jsonl traffic.jsonl\n  \
        runner record --sessions agents.jsonl traffic.jsonl             sessions of rows that are there, as after a crash\n  \
        runner record --fit synthetic.toml traffic.jsonl                a small synthetic scenario\n  \
        runner plan traffic.jsonl                                       describe it\n  \
        runner traffic.jsonl --base-url URL --backend vllm --ignore-eos replay it, with answers of the recorded length\n\n\
        `runner guide recording` has the rules of sessions, and the facts that a recording gives away.\n\n\
        Exit codes: 0 done (also after Ctrl-C), 2 command line, 3 a file or a tokenizer, 4 plugin")]
#[command(next_help_heading = "Rows")]
pub struct Args {
    /// File for the rows, which must not exist; without traffic, files of a recording
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath, help_heading = None)]
    files: Vec<PathBuf>,
    /// URL of the server
    #[arg(long, value_name = "URL", env = "RUNNER_RECORD_TO", help_heading = "Where")]
    to: Option<String>,
    /// Read this log instead of traffic: access logs with bodies, or OpenTelemetry's spans of GenAI,
    /// a JSON object a line
    #[arg(long, value_name = "LOG", env = "RUNNER_RECORD_FROM_LOG", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "to", help_heading = "Where")]
    from_log: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", env = "RUNNER_RECORD_LISTEN")]
    #[arg(default_value = "127.0.0.1:8100", help_heading = "Where")]
    listen: String,
    /// Serve TLS with the certificate in this file (PEM, followed by its authorities' certificates)
    #[arg(long, value_name = "FILE", env = "RUNNER_RECORD_TLS_CERT", value_hint = ValueHint::FilePath, requires = "tls_key", help_heading = "Where")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", env = "RUNNER_RECORD_TLS_KEY", value_hint = ValueHint::FilePath, requires = "tls_cert", help_heading = "Where")]
    tls_key: Option<PathBuf>,
    /// File with certificates (PEM) to trust besides the system's
    #[arg(long, value_name = "FILE", env = "RUNNER_RECORD_CA_CERT", value_hint = ValueHint::FilePath, help_heading = "Where")]
    ca_cert: Option<PathBuf>,
    /// Do not check the server's certificate
    #[arg(long, env = "RUNNER_RECORD_INSECURE", help_heading = "Where")]
    insecure: bool,
    /// Backends whose requests are recorded, on all of their routes; the first one that knows a
    /// route reads it [default: openai,anthropic]
    #[arg(long, value_name = "NAME", env = "RUNNER_RECORD_BACKEND", value_delimiter = ',')]
    backend: Vec<String>,
    /// Set a key of the backend's configuration, such as backend.config.path=/generate; repeatable
    #[arg(long, value_name = "KEY=VALUE", env = "RUNNER_RECORD_SET", hide_env_values = true)]
    set: Vec<String>,
    /// Tokenizer that cuts prompts into blocks [default: none; see --bytes-per-token]
    #[arg(long, value_name = "NAME", env = "RUNNER_RECORD_TOKENIZER")]
    tokenizer: Option<String>,
    /// Bytes of text that count as a token without a tokenizer
    #[arg(long, value_name = "N", env = "RUNNER_RECORD_BYTES_PER_TOKEN", default_value = "4")]
    #[arg(conflicts_with = "tokenizer")]
    bytes_per_token: NonZeroUsize,
    /// Header fields that name the session of a request
    #[arg(long, value_name = "NAME", env = "RUNNER_RECORD_SESSION_HEADER", value_delimiter = ',')]
    #[arg(default_value = "x-session-id,session-id,x-correlation-id,x-conversation-id")]
    session_header: Vec<String>,
    /// Header fields that name the session to which a sub-agent's session belongs
    #[arg(long, value_name = "NAME", env = "RUNNER_RECORD_PARENT_HEADER", value_delimiter = ',')]
    #[arg(default_value = "x-parent-session-id,x-dynamo-parent-session-id")]
    parent_session_header: Vec<String>,
    /// Round times to multiples of this
    #[arg(long, value_name = "TIME", env = "RUNNER_RECORD_TIME_STEP", default_value = "1us")]
    time_step: Span,
    /// Round token counts up to multiples of this
    #[arg(long, value_name = "N", env = "RUNNER_RECORD_TOKEN_STEP", default_value = "1")]
    token_step: NonZeroU32,
    /// Size after which the next file begins: FILE.1, FILE.2 and so on
    #[arg(long, value_name = "SIZE", env = "RUNNER_RECORD_FILE_SIZE", default_value = "1GiB")]
    #[arg(value_parser = Size::parse)]
    file_size: Size,
    /// Write the sessions to this file at the end, in the format `weka`
    #[arg(long, value_name = "FILE", env = "RUNNER_RECORD_SESSIONS", value_hint = ValueHint::FilePath)]
    sessions: Option<PathBuf>,
    /// Write a small synthetic scenario with the recording's distributions to this file, and print
    /// its distance from the recording by statistic
    #[arg(long, value_name = "FILE", env = "RUNNER_RECORD_FIT", value_hint = ValueHint::FilePath)]
    fit: Option<PathBuf>,
    #[command(flatten)]
    artifacts: Artifacts,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    if let Err(cause) = recorder::stay_out_of_dumps() {
        tell(format_args!("warning: a core dump of this process may hold traffic: {cause}"));
    }
    let rows = match (&args.to, &args.from_log, args.files.as_slice()) {
        (Some(to), _, [file]) => args.record(to, file)?,
        (_, Some(log), [file]) => args.read(log, file)?,
        (None, None, files) if args.sessions.is_some() || args.fit.is_some() => files.to_vec(),
        (None, None, _) => {
            let message = "no traffic: pass --to URL or --from-log LOG; or --sessions FILE or --fit FILE, which read rows that are there";
            return Err(Failure::command_line(message));
        }
        _ => return Err(Failure::command_line("a recording has one FILE of rows; give one")),
    };
    if let Some(path) = &args.sessions {
        let mut out = Destination::open(path)?;
        let count = recorder::sessions(&rows, |session| out.text(session).map(drop))?;
        out.finish()?;
        tell(format_args!("{count} sessions are in {}", path.display()));
    }
    if let Some(path) = &args.fit {
        write_fitted(path, &rows, args.tokenizer.as_deref())?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Reads a log. Returns the files of rows.
    fn read(&self, log: &Path, file: &Path) -> Result<Vec<PathBuf>, Failure> {
        let settings = self.settings(file, "http://127.0.0.1")?;
        self.note_bytes();
        let (counts, files) = recorder::record_log(log, settings, |message| tell(message))?;
        closing(&counts, &files);
        Ok(files)
    }

    /// Records until an interrupt. Returns the files of rows.
    fn record(&self, to: &str, file: &Path) -> Result<Vec<PathBuf>, Failure> {
        let target = Target::parse(&with_scheme(to)).map_err(|cause| wrong("--to", &cause))?;
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::read(certificate, key).map_err(Failure::command_line)?)
            }
            _ => None,
        };
        let scheme = tls.as_ref().map_or("http", |_| "https");
        let listener = TcpListener::bind(&self.listen).map_err(|cause| {
            let address = &self.listen;
            Failure::command_line(format!("--listen {address}: {cause}; expected HOST:PORT"))
        })?;
        let sides = Sides {
            target,
            trust: Trust { insecure: self.insecure, ca_cert: self.ca_cert.clone() },
            acceptor: tls.map(Tls::into_acceptor),
        };
        let recording = Recording::prepare(sides, self.settings(file, to)?)?;
        self.note_bytes();
        let counts = recording.counts();
        let at = listener.local_addr().map_err(system)?;
        let stop = stop_on_interrupt()?;
        write_stdout(&format!("listening on {scheme}://{at}\n"))?;
        let files = recording.run(&listener, &stop, |message| tell(message)).map_err(system)?;
        closing(&counts, &files);
        Ok(files)
    }

    fn note_bytes(&self) {
        if self.tokenizer.is_none() {
            tell(format_args!(
                "note: without --tokenizer, {} bytes of text count as a token, so shared prefixes are approximate",
                self.bytes_per_token
            ));
        }
    }

    fn settings(&self, file: &Path, to: &str) -> Result<Settings, Failure> {
        let headers = |flag, names: &[String]| {
            let parsed = names.iter().map(|name| {
                name.parse().map_err(|cause| wrong(flag, &format!("`{name}`: {cause}")))
            });
            parsed.collect::<Result<Vec<_>, _>>()
        };
        let tokenizer = self.tokenizer.as_deref().map(TextTokenizer::named).transpose();
        let tokenizer = tokenizer.map_err(Failure::input)?.map(TextTokenizer::into_inner);
        Ok(Settings {
            backends: self.backends(to)?,
            tokenizer,
            coarseness: Coarseness { time: self.time_step.0.into(), tokens: self.token_step },
            bytes_of_token: self.bytes_per_token,
            session_headers: headers("--session-header", &self.session_header)?,
            parent_headers: headers("--parent-session-header", &self.parent_session_header)?,
            file: file.to_owned(),
            most: self.file_size.0,
        })
    }

    fn backends(&self, to: &str) -> Result<Vec<plugins::backend::Backend>, Failure> {
        let usual = || USUAL.map(str::to_owned).to_vec();
        let names = if self.backend.is_empty() { usual() } else { self.backend.clone() };
        if !self.set.is_empty() && names.len() > 1 {
            let message = "--set configures one backend: name it with --backend";
            return Err(Failure::command_line(message));
        }
        let (assigned, problems) = Scenario::assigned(&self.set);
        Failure::of_faults(Faults { scenario: problems, ..Faults::default() })?;
        let mut backends = Vec::new();
        for name in names {
            let is_path = name.contains('/') || name.ends_with(".wasm");
            let plugin = if is_path { name } else { format!("backends/{name}.wasm") };
            let mut source = Source {
                name: "record".to_owned(),
                shipped: shipped::PLUGINS,
                ..Source::default()
            };
            let url = Located::flag("--to", with_scheme(to).into_owned());
            source.scenario.target.base_url = Some(Located::flag("--to", vec![url]));
            source.scenario.backend.plugin = Some(Located::flag("--backend", plugin));
            source.scenario = source.scenario.overlay(assigned.clone());
            backends.extend(on_all_routes(&source)?);
        }
        Ok(backends)
    }
}

fn wrong(flag: &str, cause: &dyn std::fmt::Display) -> Failure {
    Failure::command_line(format!("{flag}: {cause}"))
}

/// Prints the counts of a recording, and the next command.
fn closing(counts: &Counts, files: &[PathBuf]) {
    tell(counts.lines().join("\n"));
    tell(format_args!("rows are in {}", files[0].display()));
    tell(format_args!("replay: runner {} --base-url URL", files[0].display()));
}

/// Listens for interrupts, from now on.
fn stop_on_interrupt() -> Result<watch::Receiver<bool>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(system)?;
    let (stopped, stop) = watch::channel(false);
    let entered = runtime.enter();
    let interrupted = interrupted();
    drop(entered);
    std::thread::spawn(move || {
        runtime.block_on(interrupted);
        let _ = stopped.send(true);
    });
    Ok(stop)
}

fn system(cause: std::io::Error) -> Failure {
    Failure::new(Exit::Bug, format!("the recorder cannot run: {cause}"))
}

exits! {
    RecordingError(Plugin) {
        RecordingError::NoForm(_) => Plugin,
        RecordingError::Random(_) | RecordingError::System(_) => Bug,
        RecordingError::File { .. } | RecordingError::Log { .. } | RecordingError::Trust(_) => Input,
    }
    RowsError => Input {}
}

/// Requests of the fitted scenario that are compared with the recording, about.
const DRAWN: u64 = 20_000;

/// Writes the scenario of these rows to `path` and prints its distance from the recording.
fn write_fitted(path: &Path, rows: &[PathBuf], tokenizer: Option<&str>) -> Result<(), Failure> {
    let recorded = Recorded::read(rows)?;
    let name = rows[0].file_name().unwrap_or_default().to_string_lossy();
    let scenario = recorded.scenario(&name, tokenizer).ok_or_else(|| {
        Failure::input(format!("`{}` has no row, so nothing can be fitted", rows[0].display()))
    })?;
    let mut out = Destination::open(path)?;
    let text = Text { name: path.display().to_string(), folder: None, text: scenario.clone() };
    let distance = table(&compare(&recorded.workload, &drawn(text)?));
    let comments = distance.lines().map(|line| format!("#{line}\n"));
    let (first, rest) = scenario.split_once('\n').unwrap_or((&scenario, ""));
    out.text(&format!("{first}\n{}{rest}", comments.collect::<String>()))?;
    out.finish()?;
    write_stdout(&distance)?;
    tell(format_args!("the fitted scenario is in {}", path.display()));
    tell(format_args!("run: runner {} --base-url URL --backend vllm --ignore-eos", path.display()));
    Ok(())
}

/// The workload that a scenario would send.
fn drawn(text: Text) -> Result<Workload, Failure> {
    let (source, _) = source_of(Some(text), &Flags::default())?;
    let (run, _) = resolve(&source)?.unasked();
    let question =
        Question { at_most: Some(DRAWN), show: 0, cut: None, answers: Default::default() };
    let mut workload = Workload::default();
    let outlook = run.outlook(&question, &Signal::for_thread(), |session| {
        add(&mut workload, session);
        Ok::<_, Failure>(())
    })?;
    workload.cached = outlook.cache.map_or(0.0, |cache| cache.share);
    Ok(workload)
}

fn add(workload: &mut Workload, session: &DrawnSession) {
    workload.turns.push(session.requests.len() as f64);
    workload.starts.extend(session.due.map(|due| due.as_secs_f64()));
    for request in &session.requests {
        workload.add(request.input_tokens.unwrap_or(0), request.output_tokens.unwrap_or(0).into());
        let pauses = request.given.after.iter().map(|after| after.delay as f64 / 1e9);
        workload.pauses.extend(pauses);
    }
}

/// The distance by statistic, a line each.
fn table(rows: &[Compared]) -> String {
    let head = ["", "", "recorded", "fitted", "difference", "KS distance"].map(str::to_owned);
    let mut before = "";
    let lines = rows.iter().map(|row| {
        let is_share = row.statistic.starts_with("share");
        let number = |value: Option<f64>| match value {
            Some(share) if is_share => percent(share),
            Some(value) => short(value, 4),
            None => "-".to_owned(),
        };
        let difference = match (row.recorded, row.fitted) {
            (Some(own), Some(other)) if is_share => {
                format!("{:+.1} points", (other - own) * 100.0)
            }
            (Some(own), Some(other)) if row.statistic.contains("correlation") => {
                format!("{:+.2}", other - own)
            }
            (Some(own), Some(other)) if own != 0.0 => change((other / own - 1.0) * 100.0),
            _ => "-".to_owned(),
        };
        let name = if row.name == before { "" } else { row.name };
        before = row.name;
        let distance = row.distance.map_or_else(String::new, |distance| fixed(distance, 3));
        [name, row.statistic, &number(row.recorded), &number(row.fitted), &difference, &distance]
            .map(str::to_owned)
    });
    let rows: Vec<_> = [head].into_iter().chain(lines).collect();
    columns(&rows)
}
