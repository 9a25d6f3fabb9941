//! `runner probe`: asks a server about itself, and suggests a benchmark.

use std::process::ExitCode;

use super::artifacts::Artifacts;
use super::failure::{Failure, exits};
use super::flags::TargetKeys;
use super::print::{finish, json, tell};
use reader::Located;
use report::probe::text;
use session::probe::{ProbeError, Prober};
use session::{Source, Variables};

/// Ask a server for its engine, its models and the form of its replies
///
/// Sends at most 16 requests, at most four of them for an answer of eight tokens. Prints the engine
/// and its version, the models, the routes that answer, the form of each route's stream, and the
/// command that benchmarks the server. The form has the tokens per chunk, usage, reasoning and the
/// end marker. It also shows whether a chunk without text comes first, and whether each chunk
/// repeats the text before it.
///
/// The built-in backends write the requests, with the timeouts, certificates and headers of a run.
/// As the server may be anything, it gets only the key that --api-key-env names, or else the key in
/// OPENAI_API_KEY. A backend's own variable is read for a server on this machine, for the service's
/// own host, and where you name the --backend.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner probe http://127.0.0.1:8000                         identify it\n  \
        runner probe localhost:8000 --model llama --format json | jq .engine\n  \
        runner probe https://gateway.example/tenant --api-key-env GATEWAY_KEY\n  \
        runner probe 10.0.0.7:9000 --backend sglang                only the routes of one backend\n\n\
        Each route has one of these results: answers, needs a key (401, 403), no such route (404, 405), unknown model, \
        refuses the request (other 4xx), fails (5xx, an error inside a reply), cannot be read.\n\n\
        Exit codes: 0 a generating route answers, 2 command line, 3 unknown model or none to choose, 4 plugin, \
        5 not reachable, needs a key, or no generating route answers")]
pub struct Args {
    /// Base URL of the server; without a scheme it is http://
    #[arg(value_name = "URL")]
    url: String,
    /// Try only the routes of this backend
    #[arg(long, value_name = "NAME", env = "RUNNER_PROBE_BACKEND", help_heading = "Plugins")]
    backend: Option<String>,
    /// Output format
    #[arg(long, env = "RUNNER_PROBE_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    keys: TargetKeys,
    #[command(flatten)]
    artifacts: Artifacts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// JSON that follows `runner schema probe`
    Json,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    args.artifacts.apply();
    let source = source(&args.keys, &args.url, "probe")?;
    let prober = Prober::new(source, args.backend.as_deref())?;
    let dial = prober.dial()?;
    let probed = prober.probe_now(&dial, &args.keys.words())?;
    probed.remarks.iter().for_each(tell);
    let shown = finish(&match args.format {
        Format::Text => text(&probed.probe),
        Format::Json => json(&probed.probe)?,
    })?;
    probed.failure.map_or(Ok(shown), |failure| Err(failure.into()))
}

/// The source of a command that asks one server.
pub(super) fn source(keys: &TargetKeys, url: &str, name: &str) -> Result<Source, Failure> {
    let mut scenario = keys.scenario()?;
    let url = Located::flag("URL", base(url));
    scenario.target.base_url = Some(Located::flag("URL", vec![url]));
    Ok(Source {
        scenario,
        name: name.to_owned(),
        shipped: shipped::PLUGINS,
        variables: Variables::Process,
        ..Source::default()
    })
}

/// The URL below which the routes lie: with a scheme, without the `/v1` of OpenAI's clients.
fn base(url: &str) -> String {
    let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let trimmed = url.trim_end_matches('/');
    trimmed.strip_suffix("/v1").unwrap_or(trimmed).to_owned()
}

exits! { ProbeError(Preflight) => Target {} }

#[cfg(test)]
mod tests {
    use super::base;

    #[test]
    fn completes_a_url_and_drops_its_v1() {
        for (given, expected) in [
            ("localhost:8000", "http://localhost:8000"),
            ("http://10.0.0.7:9000/", "http://10.0.0.7:9000"),
            ("https://gateway.example/tenant/v1/", "https://gateway.example/tenant"),
            ("http://h/v1", "http://h"),
            ("http://h/v1beta", "http://h/v1beta"),
        ] {
            assert_eq!(base(given), expected);
        }
    }
}
