//! The times when requests are due: from a file, read once for both its times and its digest, or
//! from the dataset's samples.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{Resolution, path_of};
use crate::prepare::{all, arrivals};
use model::arrival::{Arrival, Trace, TraceError};
use model::file::PlannedFile;
use model::hex;
use plugins::PluginError;
use plugins::dataset::Dataset;
use scenario::plan::Load;

impl Resolution<'_> {
    /// Completes the load with the due times of the dataset's samples, if it leaves them to these.
    pub(super) fn planned_arrivals(&mut self, load: &mut Load, dataset: &Dataset) -> Trace {
        if !matches!(load.arrival, Arrival::Dataset { .. }) {
            return Trace::default();
        }
        let table = &self.source.scenario.load;
        let scale = table.trace.time_scale();
        let arrival = table.arrival.as_ref().map(|entry| &entry.place);
        let has_amount =
            table.requests.is_some() || table.sessions.is_some() || table.duration.is_some();
        let amount = if has_amount { Ok(load.amount) } else { all(load, dataset) };
        let drawn = amount.and_then(|amount| {
            load.amount = amount;
            arrivals(load, dataset)
        });
        let trace = match drawn {
            Ok(arrivals) => {
                let trace = Trace::from_instants(&arrivals);
                if too_long(&trace, scale) {
                    let error = format!("the dataset's arrival times: {}", too_long_message());
                    let problem = reader::Problem::new(error).at(arrival.cloned(), "here");
                    self.faults.scenario.push(problem);
                    return Trace::default();
                }
                trace
            }
            Err(error) => {
                let dataset = self.source.scenario.dataset.plugin.as_ref();
                let is_contract = matches!(error, PluginError::Contract { .. });
                let place = if is_contract { arrival } else { dataset.map(|entry| &entry.place) };
                self.faults.add(error, place);
                return Trace::default();
            }
        };
        if let Arrival::Dataset { time_scale, timestamps, first, length, peak } = &mut load.arrival
        {
            *timestamps = trace.len() as u64;
            *first = trace.first(*time_scale);
            *length = trace.length(*time_scale);
            *peak = trace.peak(*time_scale) as f64;
        }
        trace
    }

    /// The trace that the scenario names, and the plan's record of its file.
    pub(super) fn trace(&mut self) -> Option<(PlannedFile, Trace)> {
        let entry = self.source.scenario.load.trace.file.as_ref()?;
        let path = path_of(self.source, entry);
        let time_scale = self.source.scenario.load.trace.time_scale();
        match read(&path) {
            Ok((trace, ..)) if too_long(&trace, time_scale) => {
                let error = format!("the trace `{}`: {}", path.display(), too_long_message());
                self.problem(&error, &entry.place);
                None
            }
            Ok((trace, bytes, digest)) => Some((PlannedFile { path, bytes, digest }, trace)),
            Err(error) => {
                let path = path.display();
                let error = match error {
                    TraceError::Read(cause) => format!("cannot read the trace `{path}`: {cause}"),
                    wrong => format!("the trace `{path}`: {wrong}"),
                };
                self.problem(&error, &entry.place);
                None
            }
        }
    }
}

/// The longest that a trace may take, as played.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

fn too_long(trace: &Trace, time_scale: f64) -> bool {
    trace.length(time_scale) > LONGEST.as_secs_f64()
}

fn too_long_message() -> String {
    let longest = model::duration::format(LONGEST);
    format!(
        "its last time is more than {longest} after its first; play it faster with `time-scale` in [load.trace] (--time-scale)"
    )
}

fn read(path: &Path) -> Result<(Trace, u64, String), TraceError> {
    let mut file =
        BufReader::new(HashingReader { file: File::open(path)?, hash: Sha256::new(), bytes: 0 });
    let trace = Trace::read(&mut file)?;
    let HashingReader { hash, bytes, .. } = file.into_inner();
    Ok((trace, bytes, hex(&hash.finalize())))
}

struct HashingReader {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Read for HashingReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
