//! A scorer that asks WASI for the facts that its configuration names, and returns the results as
//! the names of its scores. No plugin written with the SDK would; tools for other languages put
//! such imports into everything they build.

use std::collections::HashMap;

use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

use wasi::wasi::cli::{environment, exit, stderr, stdin, stdout, terminal_stdout};
use wasi::wasi::clocks::{monotonic_clock, wall_clock};
use wasi::wasi::filesystem::preopens;
use wasi::wasi::io::poll;
use wasi::wasi::random::{insecure_seed, random};
use wasi::wasi::sockets::{instance_network, tcp_create_socket};

#[allow(missing_docs, unsafe_code, clippy::all)]
mod wasi {
    wit_bindgen::generate!({ path: "wit", world: "guest", generate_all });
}

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

/// Something that WASI offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    /// Nothing.
    #[default]
    Nothing,
    /// Variables, arguments and the working folder.
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
    /// To print to standard output.
    Print,
    /// To print to standard error, and then to abort.
    PrintAndAbort,
    /// To end the program.
    Exit,
    /// The network.
    Network,
    /// A socket.
    Socket,
    /// Endless handles.
    Handles,
}

pub struct Curious {
    config: Config,
    /// Made once; its order is its hasher's.
    map: HashMap<String, u32>,
}

runner_plugin::export_scorer!(Curious);

fn map() -> HashMap<String, u32> {
    (0..64).map(|number| (format!("key {number}"), number)).collect()
}

impl Scorer for Curious {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Curious { config, map: map() })
    }

    /// Without `ask`: the order of a hash map made at first, of a new one, and floats as text.
    fn score(&mut self, _exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let name = match self.config.ask {
            Ask::Nothing => {
                let floats = [0.1 + 0.2, 1e21, 1.0 / 3.0, f64::MIN_POSITIVE, -0.0, f64::NAN];
                let roots: Vec<f64> = (2..9).map(|number| f64::from(number).sqrt()).collect();
                return Ok(vec![
                    score(format!("{:?}", self.map.values().collect::<Vec<_>>())),
                    score(format!("anew {:?}", map().values().collect::<Vec<_>>())),
                    score(format!("{floats:?} {roots:?} {:e}", (0.1_f64).sin())),
                ]);
            }
            Ask::Environment => format!(
                "{:?} {:?} {:?}",
                environment::get_environment(),
                environment::get_arguments(),
                environment::initial_cwd()
            ),
            Ask::Clocks => {
                let before = monotonic_clock::now();
                let slept = monotonic_clock::subscribe_duration(3_600_000_000_000);
                let ready = poll::poll(&[&slept]);
                slept.block();
                let wall = wall_clock::now();
                format!(
                    "{before} {ready:?} {} {}.{} {}",
                    monotonic_clock::now(),
                    wall.seconds,
                    wall.nanoseconds,
                    slept.ready()
                )
            }
            Ask::Random => {
                format!("{} {:?}", random::get_random_u64(), insecure_seed::insecure_seed())
            }
            Ask::RandomBytes => {
                let bytes = random::get_random_bytes(self.config.bytes);
                format!("{} {:?}", bytes.len(), &bytes[..bytes.len().min(4)])
            }
            Ask::Files => format!("{}", preopens::get_directories().len()),
            Ask::Input => format!("{:?}", stdin::get_stdin().blocking_read(8).is_err()),
            Ask::Terminal => format!("{}", terminal_stdout::get_terminal_stdout().is_none()),
            Ask::Print => {
                let out = stdout::get_stdout();
                let room = out.check_write().unwrap_or(0);
                let printed = out.blocking_write_and_flush(self.config.print.as_bytes());
                format!("{room} {}", printed.is_ok())
            }
            Ask::PrintAndAbort => {
                let _ = stderr::get_stderr().blocking_write_and_flush(self.config.print.as_bytes());
                std::process::abort();
            }
            Ask::Exit => {
                exit::exit(Ok(()));
                String::new()
            }
            Ask::Network => {
                let _network = instance_network::instance_network();
                String::new()
            }
            Ask::Socket => {
                let family = wasi::wasi::sockets::network::IpAddressFamily::Ipv4;
                let _socket = tcp_create_socket::create_tcp_socket(family);
                String::new()
            }
            Ask::Handles => {
                let mut held = Vec::new();
                loop {
                    held.push(monotonic_clock::subscribe_duration(1));
                }
            }
        };
        Ok(vec![score(name)])
    }

    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        Ok(Vec::new())
    }
}

fn score(name: String) -> Score {
    Score { name, value: 0.0 }
}
