//! Targets of requests: addresses and connections.

use super::defaults::narrow;
use super::{Resolution, path_of};
use model::connection::{Trust, Version};
use model::places::AllowedHost;
use model::session::Cache;
use model::target::{Target, TargetError};
use plugins::backend::{Backend, Control, Framing};
use reader::{Place, Problem};
use scenario::ServerSeries;
use scenario::plan::Wiring;

impl Resolution<'_> {
    /// Returns the targets of requests: the scenario's, else the default address of the backend's
    /// engine on this machine. Only the user can name another machine: it gets key and prompts.
    pub(super) fn targets(&mut self, backend: Option<&Backend>) -> Option<Vec<Target>> {
        let Some(entry) = &self.source.scenario.target.base_url else {
            let backend = backend?;
            let opened = backend.open();
            let target = match opened.and_then(|mut dialect| dialect.default_url()) {
                Ok(url) => self.target(&url, None)?,
                Err(error) => {
                    self.faults.add(error, None);
                    return None;
                }
            };
            if !target.is_loopback() {
                let name = &backend.plugin().name;
                let problem = Problem::new(format!(
                    "the backend `{name}` sends requests to {target} by default, which is not this machine"
                ));
                self.faults.scenario.push(problem.help(format!(
                    "a plugin does not choose who gets your prompts, headers and API key; if you want this server, name it with --base-url {target}"
                )));
                return None;
            }
            return Some(vec![target]);
        };
        // Every URL is checked, also behind a wrong one.
        let urls = entry.value.iter();
        let targets: Vec<_> = urls.map(|url| self.target(&url.value, Some(&url.place))).collect();
        targets.into_iter().collect()
    }

    /// Checks that the backend can write the control requests that the scenario needs.
    pub(super) fn questions(&mut self, backend: &Backend) {
        let scenario = &self.source.scenario;
        let load = &scenario.load;
        let report = &scenario.report;
        let cache = load.cache.as_ref().filter(|entry| entry.value == Cache::Flush);
        let flush = load.flush_cache.as_ref().filter(|entry| entry.value);
        let flush = cache.map(|entry| &entry.place).or(flush.map(|entry| &entry.place));
        let metrics = report.server_metrics.as_ref().filter(|entry| entry.value);
        let series = report.server_series.as_ref();
        let series = series.filter(|entry| entry.value != ServerSeries::None);
        let pages = scenario.target.metrics_url.as_ref().map(|entry| &entry.place);
        for (place, control, act) in [
            (flush, Control::FlushCache, "flush the prefix cache"),
            (metrics.map(|entry| &entry.place), Control::Metrics, "report its metrics"),
            (series.map(|entry| &entry.place).or(pages), Control::Metrics, "show its metrics"),
        ] {
            let Some(place) = place else { continue };
            let answer = backend.open().and_then(|mut dialect| dialect.control(control));
            match answer {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let name = &backend.plugin().name;
                    let problem =
                        Problem::new(format!("the backend `{name}` cannot ask a server to {act}"));
                    self.faults.scenario.push(
                        problem
                            .at(place.clone(), "not with this backend")
                            .help("remove this key or flag, or use the engine's own backend"),
                    );
                }
                Err(error) => self.faults.add(error, None),
            }
        }
    }

    fn target(&mut self, url: &str, place: Option<&Place>) -> Option<Target> {
        let error = match Target::parse(url) {
            Ok(target) => return Some(target),
            Err(error) => error,
        };
        let problem = Problem::new(error.to_string()).at(place.cloned(), "this");
        match (&error, place) {
            // The scenario's own check has reported it already.
            (TargetError::NotUrl { .. }, Some(_)) => {}
            (TargetError::Credentials, _) => self.faults.scenario.push(problem.secret()),
            _ => self.faults.scenario.push(problem),
        }
        None
    }

    /// Returns the version of HTTP: the scenario's, else the framing's.
    pub(super) fn http(&mut self, backend: Option<&Backend>) -> Version {
        let scenario = &self.source.scenario;
        let version = scenario.connection.http();
        let named = scenario.connection.http.as_ref();
        let Some(backend) = backend.filter(|_| version == Version::Http1) else { return version };
        let streaming = scenario.request.stream();
        let framing = (backend.open()).and_then(|mut dialect| dialect.framing(streaming));
        match (framing, named) {
            (Ok(Framing::Grpc), None) => return Version::Http2,
            (Ok(Framing::Grpc), Some(named)) => {
                let name = &backend.plugin().name;
                let problem =
                    Problem::new(format!("the backend `{name}` speaks gRPC, which needs HTTP/2"));
                self.faults.scenario.push(
                    problem
                        .at(named.place.clone(), "another version")
                        .help("leave the version out, or set it to \"2\""),
                );
            }
            (Ok(_), _) => {}
            (Err(error), _) => self.faults.add(error, None),
        }
        version
    }

    /// Returns the engines behind the targets whose metrics pages are read.
    pub(super) fn monitored(&mut self) -> Vec<Target> {
        let Some(entry) = &self.source.scenario.target.metrics_url else { return Vec::new() };
        let urls = entry.value.iter();
        urls.filter_map(|url| self.target(&url.value, Some(&url.place))).collect()
    }

    /// Returns the hosts that the user allows beside the targets.
    pub(super) fn hosts(&self) -> Vec<AllowedHost> {
        let hosts = self.source.scenario.target.hosts.iter();
        // The scenario's own check has reported invalid hosts.
        let hosts = hosts.flat_map(|entry| &entry.value);
        hosts.filter_map(|host| host.value.parse().ok()).collect()
    }

    pub(super) fn wiring(&self, http: Version) -> Wiring {
        let connection = &self.source.scenario.connection;
        Wiring {
            http,
            reuse: connection.reuse(),
            trust: Trust {
                ca_cert: (connection.ca_cert.as_ref()).map(|entry| path_of(self.source, entry)),
                insecure: connection.insecure(),
            },
            timestamps: connection.timestamps(),
            readers: connection.readers.as_ref().map(|entry| narrow(entry.value)),
            decoders: connection.decoders.as_ref().map(|entry| narrow(entry.value)),
        }
    }
}
