//! The rank of this process, the size of the fleet, and the address where rank 0 listens: read from
//! the variables that starters set.
//!
//! This module owns the names and the meaning of those variables. It takes the environment as a map
//! and reads nothing itself. Where a starter lacks a value, the error names the variable for it.
//!
//! For each starter, the variables of the rank, the size, and the host of rank 0:
//!
//! - Any starter: `RUNNER_FLEET_RANK`; `RUNNER_FLEET_SIZE`; `RUNNER_FLEET_COORDINATOR`
//! - Open MPI's `mpirun`: `OMPI_COMM_WORLD_RANK`; `OMPI_COMM_WORLD_SIZE`; this host, if
//!   `OMPI_COMM_WORLD_LOCAL_SIZE` is the size
//! - MPICH's and Intel's `mpiexec`: `PMI_RANK`; `PMI_SIZE`; this host, if `MPI_LOCALNRANKS` is
//!   the size
//! - Slurm's `srun`: `SLURM_PROCID`; `SLURM_STEP_NUM_TASKS`, `SLURM_NTASKS`; first of
//!   `SLURM_STEP_NODELIST`, `SLURM_JOB_NODELIST`
//! - PMIx alone: `PMIX_RANK`; `RUNNER_FLEET_SIZE`; `RUNNER_FLEET_COORDINATOR`
//! - Indexed Job, JobSet: `JOB_COMPLETION_INDEX`; `RUNNER_FLEET_SIZE`; `RUNNER_FLEET_COORDINATOR`
//!
//! The order is by nearness: `mpirun` within a Slurm job starts its daemons with `srun`, so Slurm's
//! variables are then a daemon's and not this process's. Where PMI agrees with Slurm about rank and
//! size, `srun` started this process itself (`srun --mpi=pmi2`), and Slurm knows the hosts.
//!
//! Sources: the manual of `srun`, section on output environment variables; Open MPI's
//! documentation, "Environment variables set for MPI applications"; MPICH's hydra; Kubernetes'
//! documentation of Indexed Jobs.

pub mod hostlist;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// The port where rank 0 listens unless `RUNNER_FLEET_COORDINATOR` names one.
pub const PORT: u16 = 7433;
/// The most processes of a fleet.
pub const MOST: u32 = 4096;

/// The variable with this process's rank.
pub const RANK: &str = "RUNNER_FLEET_RANK";
/// The variable with the number of processes.
pub const SIZE: &str = "RUNNER_FLEET_SIZE";
/// The variable with the address of rank 0: a host, or host and port.
pub const COORDINATOR: &str = "RUNNER_FLEET_COORDINATOR";

/// An environment: variables by name. Empty values count as not set.
pub type Environment = BTreeMap<String, String>;

model::names! {
    /// The program that started the processes, by its name in messages.
    pub enum Starter {
        /// The user's own variables.
        Explicit = "RUNNER_FLEET_*",
        /// `mpirun` of Open MPI.
        OpenMpi = "Open MPI",
        /// `mpiexec` of MPICH, Intel MPI and others that speak PMI.
        Pmi = "PMI",
        /// `srun`.
        Slurm = "Slurm",
        /// A PMIx server.
        Pmix = "PMIx",
        /// An Indexed Job or a JobSet of Kubernetes.
        Kubernetes = "Kubernetes",
    }
}

/// The place of this process in the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The rank of this process, from 0. Rank 0 coordinates.
    pub rank: u32,
    pub size: u32,
    /// The host of rank 0, as the others reach it.
    pub host: String,
    pub port: u16,
    /// The starter that set these.
    pub starter: Starter,
}

/// All mistakes of an environment, a sentence each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process's place in the fleet cannot be read from its environment:\n  {}", .0.join("\n  "))]
pub struct NoPlace(pub Vec<String>);

/// The variables of one starter.
struct Variables {
    starter: Starter,
    rank: Option<u32>,
    rank_variable: &'static str,
    size: Option<u32>,
    size_variable: &'static str,
    host: Host,
}

/// The host of rank 0. Errors: the reason why it is not known, as text.
type Host = Result<String, String>;

/// The place of the process with this environment. Fails with all mistakes of its variables.
pub fn read(environment: &Environment) -> Result<Place, NoPlace> {
    let mut reading = Reading { environment, wrong: Vec::new() };
    reading.place().filter(|_| reading.wrong.is_empty()).ok_or(NoPlace(reading.wrong))
}

struct Reading<'a> {
    environment: &'a Environment,
    wrong: Vec<String>,
}

impl Reading<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.environment.get(name)?.trim();
        (!text.is_empty()).then_some(text)
    }

    fn number(&mut self, name: &str) -> Option<u32> {
        let text = self.text(name)?.to_owned();
        let number = text.parse().ok();
        if number.is_none() {
            let shown: String = text.chars().take(40).collect();
            self.wrong.push(format!("{name} is `{shown}`; expected a whole number"));
        }
        number
    }

    fn place(&mut self) -> Option<Place> {
        let rank = self.number(RANK);
        let size = self.number(SIZE);
        let coordinator = self.coordinator();
        let starter = self.starter();
        if !self.wrong.is_empty() {
            return None;
        }
        let found = self.rank_and_size(rank, size, starter.as_ref());
        let (rank, size, by) = found.map_err(|mistake| self.wrong.push(mistake)).ok()?;
        self.check(rank, size);
        let (host, port) = match (coordinator, starter.map(|variables| variables.host)) {
            (Some(address), _) => address,
            (None, _) if size == 1 => ("127.0.0.1".to_owned(), PORT),
            (None, Some(Ok(host))) => (host, PORT),
            (None, unknown) => {
                let why = match unknown {
                    Some(Err(why)) => format!("{why}: set {COORDINATOR}"),
                    _ => format!("{COORDINATOR} is not set: set it"),
                };
                let to = "to the host of rank 0, or host:port, for every process";
                self.wrong.push(format!("{why} {to}"));
                return None;
            }
        };
        Some(Place { rank, size, host, port, starter: by })
    }

    /// Rank and size, each from the user's variable where it is set, and the source of the rank.
    fn rank_and_size(
        &self,
        rank: Option<u32>,
        size: Option<u32>,
        starter: Option<&Variables>,
    ) -> Result<(u32, u32, Starter), String> {
        const BOTH: &str = "set both, or neither where a starter sets them";
        let variables = match (rank, size, starter) {
            (Some(rank), Some(size), _) => return Ok((rank, size, Starter::Explicit)),
            (Some(_), None, _) => return Err(format!("{RANK} is set and {SIZE} is not: {BOTH}")),
            (None, Some(_), None) => {
                return Err(format!("{SIZE} is set and {RANK} is not: {BOTH}"));
            }
            (None, None, None) => {
                return Err(format!(
                    "no starter is known: start the processes with srun, mpirun or an Indexed Job of Kubernetes, \
                     or set {RANK}, {SIZE} and {COORDINATOR} for every process"
                ));
            }
            (None, _, Some(variables)) => variables,
        };
        let (from, variable) = (variables.starter, variables.rank_variable);
        let size_variable = variables.size_variable;
        let Some(rank) = variables.rank else {
            return Err(format!(
                "{size_variable} is set and {variable} is not: {} sets both, so one was lost on the way",
                from.name()
            ));
        };
        match (size, variables.size) {
            (Some(given), Some(size)) if given != size => Err(format!(
                "{SIZE} is {given} and {size_variable} is {size}: unset {SIZE}, or set {RANK} too"
            )),
            (Some(size), _) | (None, Some(size)) => Ok((rank, size, from)),
            (None, None) => {
                let why = match from {
                    Starter::Kubernetes => "a pod of an Indexed Job cannot see the number of pods",
                    Starter::Pmix => "PMIx gives the number of processes only to its library",
                    _ => "the number of processes is not known",
                };
                Err(format!("{variable} is set and {size_variable} is not; {why}: set {SIZE}"))
            }
        }
    }

    fn check(&mut self, rank: u32, size: u32) {
        if size == 0 || size > MOST {
            self.wrong.push(format!("the fleet has {size} processes; expected 1 to {MOST}"));
        } else if rank >= size {
            self.wrong.push(format!(
                "the rank is {rank} of {size} processes; ranks run from 0 to {}",
                size - 1
            ));
        }
    }

    /// Host and port of the user's variable.
    fn coordinator(&mut self) -> Option<(String, u16)> {
        let text = self.text(COORDINATOR)?.to_owned();
        let address = address(&text);
        if address.is_none() {
            let shown: String = text.chars().take(80).collect();
            self.wrong.push(format!(
                "{COORDINATOR} is `{shown}`; expected a host, host:port, or [address]:port for IPv6"
            ));
        }
        address
    }

    /// Reads the variables of the nearest starter.
    fn starter(&mut self) -> Option<Variables> {
        let slurm = self.slurm();
        let nearer = [
            (
                Starter::OpenMpi,
                ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
                "OMPI_COMM_WORLD_LOCAL_SIZE",
            ),
            (Starter::Pmi, ["PMI_RANK", "PMI_SIZE"], "MPI_LOCALNRANKS"),
        ];
        let unknown = |starter: Starter| {
            let name = starter.name();
            Err(format!("{name} does not tell the processes where rank 0 runs"))
        };
        for (starter, [rank_variable, size_variable], local_variable) in nearer {
            let rank = self.number(rank_variable);
            let size = self.number(size_variable);
            if rank.is_none() && size.is_none() {
                continue;
            }
            let local = self.number(local_variable);
            // `srun` speaks PMI itself, and never sets Open MPI's variables.
            let by_slurm = slurm.as_ref().filter(|slurm| {
                let is_same = slurm.rank == rank && slurm.size == size;
                starter == Starter::Pmi && self.in_step() && is_same
            });
            let host = match (by_slurm, local) {
                (Some(Variables { host: Ok(host), .. }), _) => Ok(host.clone()),
                // All processes are on this machine.
                (_, Some(_)) if local == size => Ok("127.0.0.1".to_owned()),
                _ => unknown(starter),
            };
            return Some(Variables { starter, rank, rank_variable, size, size_variable, host });
        }
        if slurm.is_some() {
            return slurm;
        }
        let alone = [(Starter::Pmix, "PMIX_RANK"), (Starter::Kubernetes, "JOB_COMPLETION_INDEX")];
        for (starter, rank_variable) in alone {
            if let Some(rank) = self.number(rank_variable) {
                return Some(Variables {
                    starter,
                    rank: Some(rank),
                    rank_variable,
                    size: None,
                    size_variable: SIZE,
                    host: unknown(starter),
                });
            }
        }
        None
    }

    /// Reads Slurm's variables of this process, if `srun` started it.
    fn slurm(&mut self) -> Option<Variables> {
        let rank = self.number("SLURM_PROCID");
        let of_step = self.number("SLURM_STEP_NUM_TASKS");
        let of_tasks = self.number("SLURM_NTASKS");
        if rank.is_none() && of_step.is_none() {
            return None;
        }
        let size_variable = if of_step.is_some() { "SLURM_STEP_NUM_TASKS" } else { "SLURM_NTASKS" };
        let nearer = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", RANK];
        if !self.in_step() && !nearer.iter().any(|name| self.text(name).is_some()) {
            self.wrong.push(
                "the batch script itself started this process, once, and not srun: write `srun runner fleet …` \
                 in the script"
                    .to_owned(),
            );
        }
        Some(Variables {
            starter: Starter::Slurm,
            rank,
            rank_variable: "SLURM_PROCID",
            size: of_step.or(of_tasks),
            size_variable,
            host: self.slurm_host(),
        })
    }

    /// True if `srun` started this process or one of its ancestors.
    fn in_step(&self) -> bool {
        ["SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NODELIST"]
            .iter()
            .any(|name| self.text(name).is_some())
    }

    fn slurm_host(&mut self) -> Host {
        if self.text(COORDINATOR).is_some() {
            return Err(String::new());
        }
        let distribution = self.text("SLURM_DISTRIBUTION").unwrap_or_default();
        if distribution.starts_with("arbitrary") {
            return Err(
                "SLURM_DISTRIBUTION is arbitrary, so rank 0 may run on any host of the list"
                    .to_owned(),
            );
        }
        for name in ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"] {
            let Some(list) = self.text(name) else { continue };
            return match hostlist::expand(list) {
                Ok(hosts) => match hosts.into_iter().next() {
                    Some(first) => Ok(first),
                    None => continue,
                },
                Err(error) => {
                    self.wrong.push(format!("{name}: {error}"));
                    Err(String::new())
                }
            };
        }
        Err("neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST is set".to_owned())
    }
}

/// A host and a port; [`PORT`] if the text names none.
fn address(text: &str) -> Option<(String, u16)> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
    } else if text.parse::<std::net::Ipv6Addr>().is_ok() {
        (text, None)
    } else {
        text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
    if host.is_empty() || host.len() > 253 || !host.bytes().all(allowed) {
        return None;
    }
    let port = port.map_or(Some(PORT), |port| port.parse().ok().filter(|port| *port > 0))?;
    Some((host.to_owned(), port))
}
