//! The built binary as a process with a clean environment, watched, and waited for with an end.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mock::Truth;
use tempfile::TempDir;

/// Longer than anything here takes: it ends hanging tests, and measures nothing.
const PATIENCE: Duration = Duration::from_secs(300);

/// The log of a mock engine, in a folder of its own.
const LOG: &str = "log.jsonl";

/// The same for processes that may compile a standard library.
const COMPILING: Duration = Duration::from_secs(900);

/// The folder of the builds of authors' projects: their dependencies are compiled once.
pub const PROJECTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/projects");

/// Builds the Rust projects below a folder with little optimization, in half the time.
pub fn light_projects(folder: &Path) {
    let profile = "[profile.release]\nopt-level = 1\nlto = \"off\"\ncodegen-units = 16\n";
    std::fs::create_dir(folder.join(".cargo")).unwrap();
    std::fs::write(folder.join(".cargo/config.toml"), profile).unwrap();
}

/// The binary without anything from the caller's environment that it would use.
pub fn runner() -> Command {
    cleaned(heeding_signals(env!("CARGO_BIN_EXE_runner")))
}

/// The binary behind a line of shell that ends in `"$@"`.
pub fn runner_behind(shell: &str) -> Command {
    let mut command = heeding_signals("sh");
    command.args(["-c", shell, "sh", env!("CARGO_BIN_EXE_runner")]);
    cleaned(command)
}

/// A program that signals end, though this process was started to ignore them: behind `nohup`, or
/// in the background of a script, where children would inherit that. A signal that is caught here
/// is at its default in a child.
fn heeding_signals(program: &str) -> Command {
    use tokio::signal::unix::{SignalKind, signal};
    static CAUGHT: std::sync::Once = std::sync::Once::new();
    // In a thread of its own: a runtime may not end within another one, such as a test's.
    let catch = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        for kind in [
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::terminate(),
        ] {
            if ignored & (1 << (kind.as_raw_value() - 1)) != 0 {
                // It stays caught when nobody listens any more.
                drop(signal(kind).unwrap());
            }
        }
    };
    CAUGHT.call_once(|| std::thread::spawn(catch).join().unwrap());
    Command::new(program)
}

/// Sends a signal to a process, by the signal's name: `INT`, `TERM`, `KILL`.
pub fn signal(process: u32, name: &str) {
    let signal: nix::sys::signal::Signal = format!("SIG{name}").parse().unwrap();
    let process = nix::unistd::Pid::from_raw(process.try_into().unwrap());
    nix::sys::signal::kill(process, signal).unwrap();
}

/// The processes whose command line has these words.
pub fn processes_with(words: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
        })
        .collect()
}

fn cleaned(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_ours = ["RUNNER_", "HF_", "AWS_", "OTEL_"].iter().any(|own| name.starts_with(*own));
        if is_ours || name.ends_with("_API_KEY") || name == "NO_COLOR" {
            command.env_remove(name);
        }
    }
    // A folder of its own, shared by all tests: a short run mostly compiles.
    command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    // A run's validity also depends on the machine's load; tests of the exit code remove this.
    command.env("RUNNER_ALLOW_INVALID", "1");
    command.stdin(Stdio::null());
    command
}

/// Gives a command the set variables of another, and removes its removed ones.
pub fn inherit(command: &mut Command, from: &Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

pub fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
}

/// The way a process ended, and its output.
#[derive(Debug)]
pub struct Exit {
    /// The exit code; absent if a signal killed it.
    pub code: Option<i32>,
    pub stdout: String,
    /// All of its stderr, except lines about plugins that took long to compile.
    pub stderr: String,
}

impl Exit {
    /// The same, after checking that it ended with this code and without a panic.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }
}

/// A process whose output is read as it comes. Dropping kills it.
pub struct Process {
    child: Child,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, first) = collect(child.stdout.take().unwrap());
        let (stderr, second) = collect(child.stderr.take().unwrap());
        Process { child, stdout, stderr, readers: vec![first, second] }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by its name: `INT`, `TERM`, `KILL`.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Types into its stdin, which must be a pipe.
    pub fn type_in(&mut self, keys: &str) {
        use std::io::Write;
        let stdin = self.child.stdin.as_mut().expect("stdin is a pipe");
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Its command line as everyone on the machine can read it.
    pub fn command_line(&self) -> String {
        let path = format!("/proc/{}/cmdline", self.child.id());
        String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
    }

    /// Waits until something holds, while it runs.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && began.elapsed() < PATIENCE,
                "{what}: {ended:?} {}",
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// True if it has not ended yet.
    pub fn goes_on(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it has ended, and leaves its output to [`Process::end`].
    #[track_caller]
    pub fn until_gone(&mut self) {
        let began = Instant::now();
        while self.goes_on() {
            assert!(began.elapsed() < PATIENCE, "it does not end: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    pub fn end(self) -> Exit {
        self.end_within(PATIENCE)
    }

    #[track_caller]
    fn end_within(mut self, patience: Duration) -> Exit {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < patience, "it does not end: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        };
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        Exit {
            code: status.code(),
            stdout: text(&self.stdout),
            stderr: (text(&self.stderr).split_inclusive('\n'))
                .filter(|line| !line.starts_with("compiled plugin "))
                .collect(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(
    mut pipe: impl Read + Send + 'static,
) -> (Arc<Mutex<Vec<u8>>>, std::thread::JoinHandle<()>) {
    let collected = Arc::<Mutex<Vec<u8>>>::default();
    let shared = Arc::clone(&collected);
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(read @ 1..) = pipe.read(&mut buffer) {
            shared.lock().unwrap().extend_from_slice(&buffer[..read]);
        }
    });
    (collected, reader)
}

fn text(bytes: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.lock().unwrap()).into_owned()
}

#[track_caller]
pub fn run(command: &mut Command) -> Exit {
    Process::start(command).end()
}

/// Runs a slow command: a compiler, or a client in many cases.
#[track_caller]
pub fn run_patiently(command: &mut Command) -> Exit {
    Process::start(command).end_within(COMPILING)
}

/// `runner mock` as a process of its own, on a port of its own.
pub struct Mock {
    process: Process,
    pub url: String,
    /// The folder of its log, if it keeps one.
    log: Option<TempDir>,
}

impl Mock {
    /// Starts it and waits until it listens.
    pub fn start(flags: &[&str]) -> Self {
        Mock::start_at("0", flags)
    }

    /// Starts one that keeps a log of its requests, for [`Mock::end`].
    pub fn logging(flags: &[&str]) -> Self {
        Mock::logging_at("0", flags)
    }

    /// The same on a port that an earlier one had.
    pub fn logging_at(port: &str, flags: &[&str]) -> Self {
        Mock::logging_as(runner(), port, flags)
    }

    /// The same behind a line of shell that ends in `"$@"`.
    pub fn logging_behind(shell: &str, flags: &[&str]) -> Self {
        Mock::logging_as(runner_behind(shell), "0", flags)
    }

    fn logging_as(command: Command, port: &str, flags: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let log = folder.path().join(LOG).display().to_string();
        let mut mock = Mock::start_as(command, port, &[flags, &["--truth", &log]].concat());
        mock.log = Some(folder);
        mock
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it, and returns its log: one entry for each request, in the order in which they ended.
    pub fn end(self) -> Vec<Truth> {
        self.process.signal("TERM");
        self.process.end().with_code(0);
        let folder = self.log.expect("it keeps a log");
        let lines = std::fs::read_to_string(folder.path().join(LOG)).unwrap();
        lines.lines().map(serde_json::from_str).collect::<Result<_, _>>().unwrap()
    }

    pub fn port(&self) -> &str {
        self.url.rsplit_once(':').unwrap().1
    }

    /// Starts another one in place of this, which is dead.
    pub fn start_again(&self, flags: &[&str]) -> Self {
        Mock::start_at(self.port(), flags)
    }

    fn start_at(port: &str, flags: &[&str]) -> Self {
        Mock::start_as(runner(), port, flags)
    }

    fn start_as(mut command: Command, port: &str, flags: &[&str]) -> Self {
        let mut process = Process::start(command.args(["mock", "--port", port]).args(flags));
        process.until("the mock engine listens", |process| text(&process.stdout).contains('\n'));
        let line = text(&process.stdout);
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        Mock { process, url, log: None }
    }

    pub fn kill(&self) {
        self.process.signal("KILL");
    }

    /// One of its metrics, whatever its labels.
    pub fn metric(&self, name: &str) -> f64 {
        let metrics = self.metrics();
        let line = metrics.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.rsplit(' ').next());
        number.map_or(0.0, |number| number.parse().unwrap())
    }

    pub fn metrics(&self) -> String {
        use std::io::Write;
        let address = self.url.trim_start_matches("http://");
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let request =
            format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// The only run's folder below `runs`, if there is one yet.
pub fn only_run(runs: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(runs).ok()?;
    let run = entries.next()?.unwrap().path();
    assert!(entries.next().is_none(), "more than one run");
    Some(run)
}

/// True if a run has flushed some records to disk.
pub fn has_records(runs: &Path) -> bool {
    let records = only_run(runs).map(|run| run.join(runs::record::FILE));
    records.is_some_and(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 100))
}
