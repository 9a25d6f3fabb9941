//! A scorer built with the library of WASI 0.3, on a standard library that imports 0.2. It asks for
//! the facts that its configuration names, and returns the results as the names of its scores.

use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

use wasip3::cli::{environment, exit, stderr, stdin, stdout, terminal_stdout};
use wasip3::clocks::{monotonic_clock, system_clock};
use wasip3::filesystem::preopens;
use wasip3::random::{insecure_seed, random};
use wasip3::sockets::types::{IpAddressFamily, TcpSocket};
use wasip3::wit_bindgen::{StreamResult, block_on};

/// The behaviour that is configured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The thing to ask for.
    ask: Ask,
    /// The text to print.
    print: String,
    /// Random bytes to ask for.
    bytes: u64,
}

/// Something that WASI 0.3 offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    /// Nothing.
    #[default]
    Nothing,
    /// Variables, arguments and the working folder, by both versions.
    Environment,
    /// The time, by both clocks, before and after sleeping an hour.
    Clocks,
    /// Random numbers.
    Random,
    /// Random bytes.
    RandomBytes,
    /// Folders.
    Files,
    /// Standard input.
    Input,
    /// The presence of a terminal.
    Terminal,
    /// To print to standard output and to await its end.
    Print,
    /// To print to standard error, and then to abort.
    PrintAndAbort,
    /// To end the program.
    Exit,
    /// A socket.
    Socket,
    /// To wait for a stream that nobody writes to.
    WaitForever,
    /// To give way, without end.
    Loop,
    /// Streams, without end.
    Streams,
    /// Memory, without end.
    Memory,
}

/// The scorer.
pub struct Curious {
    config: Config,
}

runner_plugin::export_scorer!(Curious);

impl Scorer for Curious {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Curious { config })
    }

    fn score(&mut self, _exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let print = self.config.print.clone().into_bytes();
        let name = match self.config.ask {
            Ask::Nothing => "nothing".to_owned(),
            Ask::Environment => format!(
                "{:?} {:?} {:?} {}",
                environment::get_environment(),
                environment::get_arguments(),
                environment::get_initial_cwd(),
                std::env::vars().count(),
            ),
            Ask::Clocks => {
                let before = monotonic_clock::now();
                block_on(monotonic_clock::wait_for(3_600_000_000_000));
                block_on(monotonic_clock::wait_until(before + 3_600_000_000_000));
                let wall = system_clock::now();
                format!(
                    "{before} {} {}.{} {} {}",
                    monotonic_clock::now(),
                    wall.seconds,
                    wall.nanoseconds,
                    monotonic_clock::get_resolution(),
                    system_clock::get_resolution(),
                )
            }
            Ask::Random => format!(
                "{} {:?}",
                random::get_random_u64(),
                insecure_seed::get_insecure_seed()
            ),
            Ask::RandomBytes => {
                let bytes = random::get_random_bytes(self.config.bytes);
                format!("{} {:?}", bytes.len(), &bytes[..bytes.len().min(4)])
            }
            Ask::Files => format!("{}", preopens::get_directories().len()),
            Ask::Input => {
                let (mut input, ended) = stdin::read_via_stream();
                let (status, read) = block_on(input.read(Vec::with_capacity(8)));
                let closed = matches!(status, StreamResult::Dropped);
                format!("{closed} {} {:?}", read.len(), block_on(async { ended.await }))
            }
            Ask::Terminal => format!("{}", terminal_stdout::get_terminal_stdout().is_none()),
            Ask::Print => {
                let (mut writer, reader) = wasip3::wit_stream::new();
                let ended = stdout::write_via_stream(reader);
                let left = block_on(writer.write_all(print));
                drop(writer);
                format!("{} {:?}", left.len(), block_on(async { ended.await }))
            }
            Ask::PrintAndAbort => {
                let (mut writer, reader) = wasip3::wit_stream::new();
                let _ended = stderr::write_via_stream(reader);
                block_on(writer.write_all(print));
                std::process::abort();
            }
            Ask::Exit => {
                exit::exit(Ok(()));
                String::new()
            }
            Ask::Socket => format!("{:?}", TcpSocket::create(IpAddressFamily::Ipv4).is_ok()),
            Ask::WaitForever => {
                let (_writer, mut reader) = wasip3::wit_stream::new::<u8>();
                let (_, read) = block_on(reader.read(Vec::with_capacity(8)));
                format!("{}", read.len())
            }
            Ask::Loop => loop {
                block_on(monotonic_clock::wait_for(1));
            },
            Ask::Streams => {
                let mut held = Vec::new();
                loop {
                    held.push(stdin::read_via_stream());
                }
            }
            Ask::Memory => {
                let mut held = Vec::new();
                loop {
                    held.push(vec![1_u8; 1 << 20]);
                }
            }
        };
        Ok(vec![Score { name, value: 0.0 }])
    }

    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        Ok(Vec::new())
    }
}
