//! `runner fleet manifest`: what starts a fleet on Kubernetes or under Slurm.

use std::process::ExitCode;

use ::fleet::manifest::{Batch, Pods, Scenario, SecretKey, Unusable, kubernetes, slurm};
use ::fleet::place::PORT;

use super::super::failure::{Exit, Failure};
use super::super::print::write_stdout;

/// Write what starts a fleet: a manifest for Kubernetes, or a batch script for Slurm
///
/// Secrets are named and never written. Pipe the result to `kubectl apply -f -` or `sbatch`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner fleet manifest --for kubernetes --size 4 --image registry/runner:1 --scenario chat.toml \\\n           \
            --results results -- --base-url http://engine:8000\n  \
        runner fleet manifest --for slurm --size 4 --scenario chat.toml --time 00:30:00 -- --request-rate 400\n\n\
        On Kubernetes the token is a Secret that is there already:\n  \
        kubectl create secret generic runner-fleet --from-literal=token=$(openssl rand -hex 32)")]
pub(super) struct Args {
    /// The system that starts the fleet
    #[arg(long = "for", env = "RUNNER_MANIFEST_FOR", value_name = "WHAT", value_parser = ["kubernetes", "slurm"])]
    what: String,
    /// Number of processes, each on a node of its own
    #[arg(long, env = "RUNNER_MANIFEST_SIZE", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    size: u32,
    /// Name of the objects that the manifest defines
    #[arg(long, env = "RUNNER_MANIFEST_NAME", value_name = "NAME", default_value = "runner-fleet")]
    name: String,
    /// An image with `runner` in its path [Kubernetes; for Slurm, where the cluster has pyxis]
    #[arg(
        long,
        env = "RUNNER_MANIFEST_IMAGE",
        value_name = "IMAGE",
        required_if_eq("what", "kubernetes")
    )]
    image: Option<String>,
    /// The scenario: a path in the image, or on all nodes
    #[arg(
        long,
        env = "RUNNER_MANIFEST_SCENARIO",
        value_name = "PATH",
        required_unless_present = "config_map",
        conflicts_with = "config_map"
    )]
    scenario: Option<String>,
    /// The scenario as a key of a ConfigMap [Kubernetes]
    #[arg(long, env = "RUNNER_MANIFEST_CONFIG_MAP", value_name = "NAME/KEY", value_parser = named)]
    config_map: Option<(String, String)>,
    /// The port of rank 0
    #[arg(long, env = "RUNNER_MANIFEST_PORT", value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// The namespace [Kubernetes; default: that of kubectl's context]
    #[arg(
        long,
        env = "RUNNER_MANIFEST_NAMESPACE",
        value_name = "NAME",
        help_heading = "Kubernetes"
    )]
    namespace: Option<String>,
    /// Cores of each pod
    #[arg(
        long,
        env = "RUNNER_MANIFEST_CPU",
        value_name = "CORES",
        default_value = "8",
        help_heading = "Kubernetes"
    )]
    cpu: String,
    /// Place of the fleet's token
    #[arg(long, env = "RUNNER_MANIFEST_TOKEN_SECRET", value_name = "NAME/KEY", default_value = "runner-fleet/token", value_parser = named, help_heading = "Kubernetes")]
    token_secret: (String, String),
    /// A variable from a Secret, such as OPENAI_API_KEY=engine/key; repeatable
    #[arg(long, env = "RUNNER_MANIFEST_SECRET", value_name = "VARIABLE=NAME/KEY", value_parser = variable, help_heading = "Kubernetes")]
    secret: Vec<(String, (String, String))>,
    /// Make a JobSet, and not a Job with a Service
    #[arg(long, env = "RUNNER_MANIFEST_JOBSET", value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Kubernetes")]
    jobset: bool,
    /// Memory of each pod or node, such as 16Gi (Kubernetes) or 16G (Slurm)
    #[arg(long, env = "RUNNER_MANIFEST_MEMORY", value_name = "SIZE")]
    memory: Option<String>,
    /// Place for results: a volume claim that many pods can mount (Kubernetes), or a folder (Slurm)
    #[arg(long, env = "RUNNER_MANIFEST_RESULTS", value_name = "CLAIM|FOLDER")]
    results: Option<String>,
    /// Cores of each process
    #[arg(
        long,
        env = "RUNNER_MANIFEST_CPUS_PER_TASK",
        value_name = "CORES",
        default_value_t = 8,
        help_heading = "Slurm"
    )]
    cpus_per_task: u32,
    /// The job's time limit
    #[arg(
        long,
        env = "RUNNER_MANIFEST_TIME",
        value_name = "HH:MM:SS",
        default_value = "01:00:00",
        help_heading = "Slurm"
    )]
    time: String,
    /// The partition
    #[arg(long, env = "RUNNER_MANIFEST_PARTITION", value_name = "NAME", help_heading = "Slurm")]
    partition: Option<String>,
    /// The account
    #[arg(long, env = "RUNNER_MANIFEST_ACCOUNT", value_name = "NAME", help_heading = "Slurm")]
    account: Option<String>,
    /// A file with the token that all nodes can read [default: the job makes a token]
    #[arg(long, env = "RUNNER_MANIFEST_TOKEN_FILE", value_name = "FILE", help_heading = "Slurm")]
    token_file: Option<String>,
    /// Further words of `runner fleet`
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

fn named(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('/');
    let (name, key) = parts.ok_or("expected NAME/KEY, such as runner-fleet/token")?;
    Ok((name.to_owned(), key.to_owned()))
}

fn variable(text: &str) -> Result<(String, (String, String)), String> {
    let parts = text.split_once('=');
    let (name, secret) =
        parts.ok_or("expected VARIABLE=NAME/KEY, such as OPENAI_API_KEY=engine/key")?;
    Ok((name.to_owned(), named(secret)?))
}

fn secret((name, key): (String, String)) -> SecretKey {
    SecretKey { name, key }
}

/// Writes the manifest.
pub(super) fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let args = args.clone();
    let made = match &*args.what {
        "slurm" => args.slurm(),
        _ => args.kubernetes(),
    };
    let text = made.map_err(|wrong| Failure::several(Exit::CommandLine, wrong.0))?;
    write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn kubernetes(self) -> Result<String, Unusable> {
        kubernetes(&Pods {
            name: self.name,
            namespace: self.namespace,
            image: self.image.unwrap_or_default(),
            size: self.size,
            port: self.port,
            scenario: match (self.config_map, self.scenario) {
                (Some((name, key)), _) => Scenario::ConfigMap { name, key },
                (None, path) => Scenario::Path(path.unwrap_or_default()),
            },
            arguments: self.arguments,
            cpu: self.cpu,
            memory: self.memory.unwrap_or_else(|| "16Gi".to_owned()),
            token: secret(self.token_secret),
            variables: self.secret.into_iter().map(|(name, key)| (name, secret(key))).collect(),
            results: self.results,
            jobset: self.jobset,
        })
    }

    fn slurm(self) -> Result<String, Unusable> {
        let Some(scenario) = self.scenario else {
            let words = "--config-map is for Kubernetes; expected --scenario PATH";
            return Err(Unusable(vec![words.to_owned()]));
        };
        slurm(&Batch {
            name: self.name,
            size: self.size,
            cpus: self.cpus_per_task,
            memory: self.memory,
            time: self.time,
            partition: self.partition,
            account: self.account,
            image: self.image,
            port: self.port,
            scenario,
            arguments: self.arguments,
            token_file: self.token_file,
            results: self.results.unwrap_or_else(|| "runs".to_owned()),
        })
    }
}
