//! The devices of a run: opened before its first request, and read by a thread of its own into the
//! run's folder. In virtual time nothing is read.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use devices::dcgm::{Exporter, Fetch};
use devices::nvml::{Nvml, NvmlError};
use devices::rapl::Rapl;
use devices::{Choice, Entry, Facts, Monitor, Recording, Sample, Source, Watch};
use load::transport::Request;
use load::vitals::{WatchedThread, yield_to_others};
use model::clock::Clock;
use model::connection::{Trust, Version};
use model::target::Target;
use model::units::Nanos;
use runs::record::RecordError;
use runs::telemetry::Log;
use scenario::DeviceMetrics;
use scenario::plan::Plan;

use crate::local::Line;
use crate::lock;
use crate::parts::RunError;

/// Time limit for an exporter's page, and again for the connection.
const PAGE_WITHIN: Duration = Duration::from_secs(5);

/// Path of an exporter's page, if the URL has none.
const PAGE: &str = "/metrics";

#[derive(Debug, thiserror::Error)]
pub enum NoDevices {
    #[error(
        "the devices cannot be sampled: {0} (--device-metrics nvml needs NVIDIA's driver on this machine; --device-metrics http://HOST:9400/metrics reads DCGM's exporter on another, and --device-metrics none leaves the devices out)"
    )]
    Nvml(NvmlError),
    #[error(
        "the devices cannot be sampled from {url}: {why} (look at DCGM's exporter with `curl {url}`; --device-metrics none leaves the devices out)"
    )]
    Page { url: String, why: String },
}

pub(crate) struct DeviceAccess {
    source: Box<dyn Source>,
    host: Option<Rapl>,
    every: Nanos,
}

/// The devices of a run, from before its beginning to after its end.
#[derive(Default)]
pub struct Telemetry {
    opened: Mutex<Option<DeviceAccess>>,
    monitor: OnceLock<Monitor>,
    recorded: Mutex<Option<DeviceRecord>>,
}

/// The recording, and the success of writing all of it into the run's folder.
pub(crate) struct DeviceRecord {
    pub(crate) recording: Recording,
    pub(crate) written: Result<(), RecordError>,
}

pub(crate) struct Watching {
    watch: Watch,
    log: Arc<Mutex<Option<Log>>>,
}

/// Opens the devices that a plan names, and reads them once. Blocks.
pub(crate) fn open(plan: &Plan) -> Result<Option<DeviceAccess>, NoDevices> {
    let Some(watched) = &plan.device_metrics else { return Ok(None) };
    let choice =
        if watched.only.is_empty() { Choice::All } else { Choice::Some(watched.only.clone()) };
    let (source, is_here): (Box<dyn Source>, bool) = match &watched.from {
        DeviceMetrics::None => return Ok(None),
        DeviceMetrics::Nvml => (Box::new(Nvml::open(&choice).map_err(NoDevices::Nvml)?), true),
        DeviceMetrics::Page(url) => {
            let no_page = |why: String| NoDevices::Page { url: url.clone(), why };
            let target = Target::parse(url).map_err(|error| no_page(error.to_string()))?;
            let is_here = target.is_loopback();
            let fetch = fetch(&target, &plan.connection.trust).map_err(no_page)?;
            (Box::new(Exporter::open(fetch, &choice).map_err(no_page)?), is_here)
        }
    };
    Ok(Some(DeviceAccess {
        source,
        // The power of this machine's processors is no fact about another machine's devices.
        host: is_here.then(Rapl::open).and_then(Result::ok),
        every: watched.every,
    }))
}

/// Returns a function that fetches an exporter's page, each time on a connection of its own.
fn fetch(target: &Target, trust: &Trust) -> Result<Fetch, String> {
    let version = Version::Http1;
    let line = Line::open(target, version, trust)?;
    let path = match target.path("") {
        root if root.is_empty() => PAGE.to_owned(),
        path => path,
    };
    let (scheme, authority) = (target.scheme(), target.authority());
    let request =
        Request::new(version, (scheme, &authority), "GET", &path, HeaderMap::new(), Bytes::new());
    let request = request.map_err(|error| error.to_string())?;
    Ok(Box::new(move || {
        let (head, body) = line.page(Clock::start(), request.clone(), PAGE_WITHIN)?;
        match head.status {
            200 => Ok(whole_lines(&body)),
            status => Err(format!("it answered with HTTP {status}")),
        }
    }))
}

/// A page without the beginning of a line that its end cut off: half a number is another number.
fn whole_lines(body: &[u8]) -> String {
    let end = body.iter().rposition(|byte| *byte == b'\n');
    String::from_utf8_lossy(&body[..end.map_or(0, |end| end + 1)]).into_owned()
}

impl Telemetry {
    /// Has these devices read when the run begins.
    pub(crate) fn prepare(&self, opened: Option<DeviceAccess>) {
        *lock(&self.opened) = opened;
    }

    /// Starts to read the devices, if there are any, into the run's folder.
    pub(crate) fn watch(
        &self,
        clock: Clock,
        folder: &std::path::Path,
        enlist: impl FnOnce(WatchedThread) + Send + 'static,
    ) -> Result<Option<Watching>, RunError> {
        let Some(opened) = lock(&self.opened).take() else { return Ok(None) };
        let log = Arc::new(Mutex::new(Some(Log::create(folder)?)));
        let begin = move || {
            // First, because a thread that yields to all others may not run again before the load
            // is over.
            if let Some(thread) = WatchedThread::this_thread("devices") {
                enlist(thread);
            }
            yield_to_others();
        };
        let written = Arc::clone(&log);
        let note = move |entry: &Entry| {
            if let Some(log) = &mut *lock(&written) {
                log.write(entry);
            }
        };
        let sources = (Some(opened.source), opened.host);
        let watch =
            Watch::start(clock, opened.every, sources, begin, note).map_err(RunError::Thread)?;
        let _ = self.monitor.set(watch.monitor());
        Ok(Some(Watching { watch, log }))
    }

    /// Takes the last sample, and ends the file.
    pub(crate) fn finish(&self, watching: Option<Watching>) {
        let Some(Watching { watch, log }) = watching else { return };
        let recording = watch.finish();
        // A source that hangs still has the log, but no more to write.
        let log = lock(&log).take();
        *lock(&self.recorded) =
            Some(DeviceRecord { recording, written: log.map_or(Ok(()), Log::finish) });
    }

    /// The devices and their last sample, while they are read.
    pub fn latest(&self) -> Option<(Facts, Sample)> {
        self.monitor.get()?.latest()
    }

    pub(crate) fn recorded(&self) -> Option<DeviceRecord> {
        lock(&self.recorded).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_line_is_dropped() {
        assert_eq!(whole_lines(b"a 1\nb 2\nc 31"), "a 1\nb 2\n");
        assert_eq!(whole_lines(b"a 1\n"), "a 1\n");
        assert_eq!(whole_lines(b"a 1"), "");
    }
}
