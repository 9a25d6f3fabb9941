//! A run that several processes make together: what each has measured, and one result of all of it.

use report::record::Written;
use result::summary::{Client, Dataset, Fleet, Server};
use serde::{Deserialize, Serialize};

use super::{Begun, Ending, Kept, Status};
use crate::run::RunError;

/// What one process measured, beside its records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Part {
    /// Requests that were due, and have no record.
    pub unsent: u64,
    /// Why its load ended early, if it did.
    pub error: Option<String>,
    /// How it fared as a client.
    pub client: Option<Client>,
    /// What the server counted, if this process asked.
    pub server: Option<Server>,
    /// What the dataset did to its input.
    pub dataset: Option<Dataset>,
}

/// What others measured of a run whose records are in its folder.
pub struct Elsewhere {
    /// The records that were written.
    pub records: Written,
    /// Requests that were due, and have no record.
    pub unsent: u64,
    /// Who made the run.
    pub fleet: Fleet,
    /// How the worst of them fared as a client.
    pub client: Option<Client>,
    /// What the server counted.
    pub server: Option<Server>,
    /// What the dataset did to its input.
    pub dataset: Option<Dataset>,
    /// Why the load ended early, if it did.
    pub ended: Result<(), RunError>,
}

impl<E> Begun<E> {
    /// Writes what others measured, in place of a load of its own.
    pub fn made_elsewhere(self, made: Elsewhere, ending: &Ending) -> Kept {
        let Begun {
            run,
            folder,
            started,
            control,
            ..
        } = self;
        let status = Status {
            started,
            ended: ending.at.clone(),
            interrupted: ending.interrupted,
            unsent: made.unsent,
            timings: run.timings.reached(),
            records: Some(made.records),
            error: (made.ended.as_ref().err())
                .map(|error| run.parts.secrets.redact(&error.to_string())),
        };
        let mut kept = folder.end(&status).and(folder.write_fleet(&made.fleet));
        if let Some(client) = &made.client {
            kept = kept.and(folder.write_client(client));
        }
        if let Some(server) = &made.server {
            kept = kept.and(folder.write_server(server));
        }
        if let Some(dataset) = &made.dataset {
            kept = kept.and(folder.write_dataset(dataset));
        }
        Kept {
            cut_short: status.interrupted || status.error.is_some(),
            unsent: status.unsent,
            crew: control.crew,
            ended: made.ended,
            fleet: Some(made.fleet),
            client: made.client,
            server: made.server,
            devices: None,
            dataset: made.dataset,
            run,
            folder,
            kept,
        }
    }
}

impl Kept {
    /// What this process measured, for a run that several make together.
    pub fn part(&self) -> Part {
        Part {
            unsent: self.unsent,
            error: self.ended.as_ref().err().map(ToString::to_string),
            client: self.client.clone(),
            server: self.server.clone(),
            dataset: self.dataset.clone(),
        }
    }
}
