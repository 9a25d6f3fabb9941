//! A run of several processes: the measurement of each, and one result of all.

use std::sync::Arc;

use model::clock::Clock;
use result::summary::{Client, Dataset, Fleet, Server};
use runs::folder::FolderError;
use runs::record::Written;
use serde::{Deserialize, Serialize};

use super::{Ending, SavedRun, StartedRun, saved};
use crate::check::CheckedRun;
use crate::parts::RunError;
use crate::series::Sampling;
use crate::telemetry::Watching;

/// The measurements of one process, beside its records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Part {
    /// Requests that were due, and have no record.
    pub unsent: u64,
    /// Reason why its load ended early, if it did.
    pub error: Option<String>,
    /// Performance of the process as a client.
    pub client: Option<Client>,
    /// The server's own counts, if this process asked.
    pub server: Option<Server>,
    /// The dataset's changes to its input.
    pub dataset: Option<Dataset>,
}

/// The measurements of a load whose records are in its run's folder.
pub struct Measurements {
    /// The records that were written; absent if not all could be.
    pub records: Option<Written>,
    /// Requests that were due, and have no record.
    pub unsent: u64,
    /// The processes that made the load, if they were several.
    pub fleet: Option<Fleet>,
    /// Performance of the client; of several, of the worst.
    pub client: Option<Client>,
    pub server: Option<Server>,
    /// The dataset's changes to its input.
    pub dataset: Option<Dataset>,
    /// The end of the load: an error if it ended early.
    pub ended: Result<(), RunError>,
}

/// The devices and the server's metrics pages of a run that others make, while they are read.
pub struct Devices(Option<Watching>, Option<Sampling>);

impl<E> StartedRun<E> {
    /// Begins to read the devices that the plan names, and the server's metrics pages, by this
    /// clock, for a run that others make. The clock is the run's.
    pub fn watch_devices(&self, clock: Clock) -> Result<Devices, RunError> {
        self.control.live.date(clock);
        let live = Arc::clone(&self.control.live);
        let enlist = move |thread| live.enlist(thread);
        let (live, folder) = (&self.control.live, self.folder.path());
        let devices = live.telemetry.watch(clock, folder, enlist.clone())?;
        let made = (&self.run.plan, &self.run.parts);
        let pages = live.pages.watch(made, clock, folder, enlist)?;
        Ok(Devices(devices, pages))
    }

    /// Takes the last sample of the devices, and the last page of each server.
    pub fn leave_devices(&self, devices: Devices) {
        self.control.live.telemetry.finish(devices.0);
        self.control.live.pages.finish(devices.1);
    }

    /// Writes the measurements of others, in place of a load of its own.
    pub fn made_elsewhere(self, made: Measurements, ending: &Ending) -> SavedRun {
        let StartedRun { run, folder, started, control, .. } = self;
        saved((run, folder, started), (&control.live, control.group), made, ending)
    }
}

impl CheckedRun {
    /// Leaves the devices and the server's pages out, which another process reads for all.
    #[must_use]
    pub fn without_devices(mut self) -> Self {
        self.plan.device_metrics = None;
        self.plan.control.server_series = None;
        self
    }
}

impl SavedRun {
    /// Returns the end of the load, and an error if files could not be written, if nothing else is
    /// made of it.
    pub fn ended(self) -> (Result<(), RunError>, Result<(), FolderError>) {
        (self.made.ended, self.kept)
    }

    /// Returns the measurements of this process, for a run that several make together.
    pub fn part(&self) -> Part {
        Part {
            unsent: self.made.unsent,
            error: self.made.ended.as_ref().err().map(ToString::to_string),
            client: self.made.client.clone(),
            server: self.made.server.clone(),
            dataset: self.made.dataset.clone(),
        }
    }
}
