//! `runner plugin bench`: the time of a backend for a request and for an event, on its cases.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::{Form, Sandbox, test};
use crate::cli::failure::{Exit, Failure};
use model::clean;
use model::plugin::Kind;
use plugins::PluginError;
use plugins::case::Rehearsal;

const LEAST: Duration = Duration::from_millis(100);

/// The events that a run of 1,000 streams with 50 tokens a second each decodes in a second.
const NEEDED: f64 = 50_000.0;

/// Measure how long a backend takes for a request and for an event of its cases
///
/// Replies are decoded frame by frame. Times are of one processor core. Compare them with a shipped
/// backend's on the same machine: `runner plugin bench CASES --plugin backends/vllm.wasm`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A plugin project (with its cases in cases/), a folder of cases, or a single case
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Component to measure [default: the output of `runner plugin build` in DIR/target/plugin]
    #[arg(long, value_name = "FILE", env = "RUNNER_BENCH_PLUGIN")]
    plugin: Option<String>,
    /// Measure only the cases whose name contains this text
    #[arg(long, value_name = "TEXT", env = "RUNNER_BENCH_FILTER")]
    filter: Option<String>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    sandbox: Sandbox,
}

/// The times of a backend's calls, each of one core.
#[derive(serde::Serialize)]
#[serde(rename_all = "kebab-case")]
struct Bench {
    cases: Vec<Row>,
    /// Events per second of all cases together.
    events_per_s: f64,
}

/// The times of one case.
#[derive(serde::Serialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    case: String,
    events: u32,
    bytes_per_event: f64,
    request_us: f64,
    event_us: f64,
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let suite =
        test::suite(&args.dir, args.plugin.as_deref(), args.filter.as_deref(), &args.sandbox)?;
    if suite.plugin.kind != Kind::Backend {
        return Err(Failure::input(format!(
            "`{}` is a {}: `runner plugin bench` measures backends, whose calls stand between server and result",
            suite.plugin.name,
            suite.plugin.kind.name()
        )));
    }
    let failed = |error: PluginError| Failure::new(Exit::Plugin, error);
    let (mut cases, mut events, mut time) = (Vec::new(), 0_u32, 0.0);
    for case in &suite.cases {
        let Some(mut calls) = suite.rehearse(case).map_err(failed)? else { continue };
        let frames = u32::try_from(calls.frames()).unwrap_or(u32::MAX);
        if frames == 0 {
            continue;
        }
        let request = repeated(&mut calls, Rehearsal::encode).map_err(failed)?;
        let reply = repeated(&mut calls, Rehearsal::decode).map_err(failed)?;
        let bytes = u32::try_from(calls.bytes()).unwrap_or(u32::MAX);
        events += frames;
        time += reply;
        cases.push(Row {
            case: clean::line(&case.name).into_owned(),
            events: frames,
            bytes_per_event: f64::from(bytes) / f64::from(frames),
            request_us: request * 1e6,
            event_us: reply * 1e6 / f64::from(frames),
        });
    }
    if cases.is_empty() {
        return Err(Failure::input(format!(
            "no case in `{}` has one request whose reply has a success status: nothing can be measured",
            args.dir.display()
        )));
    }
    args.form.print(&Bench { cases, events_per_s: f64::from(events) / time }, text)
}

fn text(bench: &Bench) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["case", "events", "bytes/event", "µs/request", "µs/event"]);
    for row in &bench.cases {
        table.add_row([
            row.case.clone(),
            row.events.to_string(),
            format!("{:.0}", row.bytes_per_event),
            format!("{:.1}", row.request_us),
            format!("{:.2}", row.event_us),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{table}\n\n{:.0} events/s on one core. A run of 1,000 streams with 50 tokens a second each has {NEEDED:.0} events/s: \
         {:.2} cores.\n",
        bench.events_per_s,
        NEEDED / bench.events_per_s
    )
}

fn repeated<'c>(
    calls: &mut Rehearsal<'c>,
    call: fn(&mut Rehearsal<'c>) -> Result<(), PluginError>,
) -> Result<f64, PluginError> {
    let (mut times, began) = (0_u32, Instant::now());
    while times == 0 || began.elapsed() < LEAST {
        call(calls)?;
        times += 1;
    }
    Ok(began.elapsed().as_secs_f64() / f64::from(times))
}
