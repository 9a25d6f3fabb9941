//! A batch script: one process on each node, started by `srun`, whose variables say each one's
//! place.

use super::{Batch, Check, Unusable};
use crate::place::{COORDINATOR, PORT};
use crate::token;
use model::shell::quoted;

/// Seconds before the job's time limit at which the run is stopped, so that its records are whole.
const STOP: u32 = 120;

/// The batch script of a fleet, for `sbatch`.
///
/// # Errors
/// With everything that is wrong with the description.
pub fn slurm(batch: &Batch) -> Result<String, Unusable> {
    let mut check = Check::default();
    check.name("the name", &batch.name);
    check.size(batch.size, batch.port);
    if batch.cpus == 0 {
        check.wrong("the number of cores", "0", "1 at least");
    }
    check.option("the time limit", &batch.time, "a time such as `00:30:00`");
    for (what, value, expected) in [
        ("the memory", &batch.memory, "an amount such as `16G`"),
        ("the partition", &batch.partition, "the name of a partition"),
        ("the account", &batch.account, "the name of an account"),
    ] {
        if let Some(value) = value {
            check.option(what, value, expected);
        }
    }
    if let Some(image) = &batch.image {
        check.word("the image", image, "an image such as `registry.example/runner:0.1.0`");
    }
    check.text("the scenario's path", &batch.scenario);
    for argument in &batch.arguments {
        check.text("an argument", argument);
    }
    if let Some(path) = &batch.token_file {
        check.text("the token's file", path);
    }
    check.text("the folder for results", &batch.results);
    check.end()?;
    Ok(script(batch))
}

fn script(batch: &Batch) -> String {
    let mut lines = vec!["#!/bin/bash".to_owned()];
    let mut option = |name: &str, value: &str| lines.push(format!("#SBATCH --{name}={value}"));
    let size = batch.size.to_string();
    option("job-name", &batch.name);
    option("nodes", &size);
    option("ntasks", &size);
    option("ntasks-per-node", "1");
    option("cpus-per-task", &batch.cpus.to_string());
    option("time", &batch.time);
    for (name, value) in
        [("mem", &batch.memory), ("partition", &batch.partition), ("account", &batch.account)]
    {
        if let Some(value) = value {
            option(name, value);
        }
    }
    option("output", &format!("{}-%j.log", batch.name));
    lines.push("# Stops the run before the time limit, so that its records are whole.".to_owned());
    lines.push(format!("#SBATCH --signal=TERM@{STOP}"));
    lines.push("set -euo pipefail".to_owned());
    lines.push(String::new());
    match &batch.token_file {
        Some(path) => {
            let variable = token::FILE_VARIABLE;
            lines.push(format!("export {variable}={}", quoted(path)));
        }
        None => {
            let variable = token::VARIABLE;
            lines.push("# A token for this job alone; srun hands it to the processes.".to_owned());
            lines.push(format!("{variable}=\"$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')\""));
            lines.push(format!("export {variable}"));
        }
    }
    if batch.port != PORT {
        lines.push("# The processes know the first host themselves, and not this port.".to_owned());
        lines.push("read -r first < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")".to_owned());
        lines.push(format!("export {COORDINATOR}=\"$first:{}\"", batch.port));
    }
    lines.push(String::new());
    lines.push("# A process that ends early or badly does not end the others: the coordinator judges that.".to_owned());
    let mut command = vec!["exec srun --kill-on-bad-exit=0 --wait=0".to_owned()];
    command.push(format!("--cpus-per-task={}", batch.cpus));
    if let Some(image) = &batch.image {
        command.push(format!("--container-image={}", quoted(image)));
    }
    command.push("runner fleet".to_owned());
    command.push(quoted(&batch.scenario));
    command.push(format!("--output-dir {}", quoted(&batch.results)));
    command.extend(batch.arguments.iter().map(|argument| quoted(argument)));
    lines.push(command.join(" "));
    lines.push(String::new());
    lines.join("\n")
}
