//! `runner demo`: starts the mock engine and measures it with the quickstart scenario, so that a
//! first run needs no engine, no model and no flags.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::mpsc;

use super::artifacts::Artifacts;
use super::failure::{Exit, Failure};
use super::interrupt::Interrupt;
use super::output::Output;
use super::print::tell;
use super::round::measure_all;
use super::watch::Watch;
use mock::{Engine, Script};
use reader::Located;
use scenario::Scenario;
use session::{Source, resolve};

const SCENARIO: &str = "scenarios/quickstart.toml";

/// Measure the built-in mock engine: every stage is real except the model
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    artifacts: Artifacts,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let address = start_engine().map_err(Failure::cannot("start the mock engine"))?;
    tell(format_args!("mock engine: http://{address}; scenario: {SCENARIO}"));
    let interrupt = Interrupt::listen()?;
    let text = shipped::scenario(SCENARIO)
        .ok_or_else(|| Failure::new(Exit::Bug, format!("{SCENARIO} is not built in")))?;
    let mut scenario = Scenario::parse(SCENARIO, text)?;
    let url = Located::flag("demo", format!("http://{address}"));
    scenario.target.base_url = Some(Located::flag("demo", vec![url]));
    let resolved = resolve(&Source {
        scenario,
        name: "quickstart".to_owned(),
        shipped: shipped::PLUGINS,
        // No variables: the mock engine asks for no key.
        ..Source::default()
    })?;
    measure_all(vec![resolved], &args.output, &args.watch, &interrupt)
}

fn start_engine() -> std::io::Result<SocketAddr> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("mock-engine".into()).spawn(move || {
        let serve = async {
            let listener = mock::listen((Ipv4Addr::LOCALHOST, 0).into())?;
            let engine = Engine::new(Script::default()).map_err(std::io::Error::other)?;
            let _ = sender.send(Ok(listener.local_addr()?));
            mock::serve(listener, engine, std::future::pending()).await;
            Ok::<(), std::io::Error>(())
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Err(cause) = runtime.and_then(|runtime| runtime.block_on(serve)) {
            let _ = sender.send(Err(cause));
        }
    })?;
    receiver.recv().map_err(std::io::Error::other)?
}
