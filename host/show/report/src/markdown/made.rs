//! The origin of a page's runs: versions, plugins, data and machines.

use minijinja::value::Value;
use serde::Serialize;

use runs::Reported;
use runs::environment::Environment;
use scenario::plan::{Amount, Plan};

/// The origin of runs. Shared facts appear once.
#[derive(Serialize)]
pub(super) struct Made {
    runs: Vec<Run>,
    plugins: Vec<Plugin>,
    files: Vec<File>,
    machines: Vec<String>,
}

#[derive(Serialize)]
struct Run {
    folder: String,
    runner: String,
    dataset: String,
    requests: String,
    seed: u64,
    tokenizer: String,
}

#[derive(PartialEq, Serialize)]
struct Plugin {
    kind: &'static str,
    name: String,
    version: String,
    digest: Value,
}

#[derive(PartialEq, Serialize)]
struct File {
    path: String,
    bytes: u64,
    digest: Value,
}

impl Made {
    pub(super) fn of(runs: &[&Reported]) -> Self {
        let mut made = Made {
            runs: runs.iter().map(|run| Run::of(run)).collect(),
            plugins: Vec::new(),
            files: Vec::new(),
            machines: Vec::new(),
        };
        for run in runs {
            for used in run.plan.plugins() {
                let plugin = Plugin {
                    kind: used.kind.name(),
                    name: used.name,
                    version: used.version,
                    digest: code(&used.digest),
                };
                once(&mut made.plugins, plugin);
            }
            for file in run.plan.dataset.files.values() {
                let file = File {
                    path: file.path.display().to_string(),
                    bytes: file.bytes,
                    digest: code(&file.digest),
                };
                once(&mut made.files, file);
            }
            if let Some(environment) = &run.environment {
                once(&mut made.machines, machine(environment));
            }
        }
        made
    }
}

impl Run {
    fn of(run: &Reported) -> Self {
        let plan = &run.plan;
        Run {
            folder: run.folder.clone(),
            runner: plan.runner.clone(),
            dataset: plan.dataset.plugin.name.clone(),
            requests: requests(plan),
            seed: plan.load.seed,
            tokenizer: plan.tokenizer.summary().words(),
        }
    }
}

fn requests(plan: &Plan) -> String {
    match plan.load.amount {
        Amount::Requests(requests) => requests.to_string(),
        Amount::Sessions(sessions) => format!("{sessions} sessions"),
        Amount::Duration(span) => format!("for {} s", span.as_secs_f64()),
    }
}

/// The machine of the client: `linux x86_64, Processor, 16 cores, 128 GiB, kernel 6.1.0`.
fn machine(environment: &Environment) -> String {
    let gibibytes = |bytes: u64| format!("{:.0} GiB", bytes as f64 / (1u64 << 30) as f64);
    let parts = [
        Some(environment.platform.clone()),
        environment.cpu.clone(),
        environment.cores.map(|cores| format!("{cores} cores")),
        environment.memory_bytes.map(gibibytes),
        environment
            .kernel
            .as_ref()
            .map(|kernel| format!("kernel {kernel}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A digest, as far as people compare it. It is hexadecimal, or it is not shown.
fn code(digest: &str) -> Value {
    let hexadecimal = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shown = digest.get(..16).filter(|_| hexadecimal).unwrap_or("?");
    Value::from_safe_string(format!("`{shown}`"))
}

fn once<T: PartialEq>(items: &mut Vec<T>, item: T) {
    if !items.contains(&item) {
        items.push(item);
    }
}
