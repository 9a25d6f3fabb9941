//! Where requests go and how: addresses, secrets, connections.

use super::Resolution;
use super::ahead::seen;
use model::connection::Trust;
use model::target::{Secrets, Target, TargetError};
use plugins::backend::{Backend, Control};
use reader::{Place, Problem};
use scenario::plan::Wiring;

impl Resolution<'_> {
    pub(super) fn secrets(&mut self) -> (Secrets, Vec<String>) {
        let target = &self.source.scenario.target;
        let variable = target.api_key_env();
        let variable = variable.as_str();
        let api_key = (self.source.variables.get(variable)).filter(|key| !key.is_empty());
        // Text that is no variable's name may be the key itself; the scenario's check has refused it already.
        let is_name = variable
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if let (None, Some(said), true) = (&api_key, &target.api_key_env, is_name) {
            let error =
                format!("the variable `{variable}`, which should hold the API key, is not set");
            self.problem(&error, &said.place);
        }
        let headers: Vec<(String, String)> = target
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.value.clone()))
            .collect();
        let names = headers.iter().map(|(name, _)| name.clone()).collect();
        (Secrets { api_key, headers }, names)
    }

    /// Where requests go: what the scenario sets, else where the backend's engine listens by default.
    pub(super) fn targets(&mut self, backend: Option<&Backend>) -> Option<Vec<Target>> {
        let Some(said) = &self.source.scenario.target.base_url else {
            let opened = backend?.open();
            return match opened.and_then(|mut dialect| dialect.default_url()) {
                Ok(url) => self.target(&url, None).map(|target| vec![target]),
                Err(error) => {
                    self.faults.add(error, None);
                    None
                }
            };
        };
        let urls = said.value.iter();
        let targets: Vec<Option<Target>> = urls
            .map(|url| self.target(&url.value, Some(&url.place)))
            .collect();
        targets.into_iter().collect()
    }

    /// Checks that the backend knows how to ask what is asked in addition to the measured requests.
    pub(super) fn questions(&mut self, backend: &Backend) {
        let scenario = &self.source.scenario;
        let flush = (
            &scenario.load.flush_cache,
            Control::FlushCache,
            "flush the prefix cache",
        );
        let metrics = (
            &scenario.report.server_metrics,
            Control::Metrics,
            "report its metrics",
        );
        for (said, what, to) in [flush, metrics] {
            let Some(said) = said.as_ref().filter(|said| said.value) else {
                continue;
            };
            let asked = backend.open().and_then(|mut dialect| dialect.control(what));
            match asked {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let name = &backend.plugin().asked;
                    let problem =
                        Problem::new(format!("the backend `{name}` cannot ask a server to {to}"));
                    self.faults.scenario.push(
                        problem
                            .at(said.place.clone(), "not with this backend")
                            .help("leave it out, or use the engine's own backend"),
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

    /// How to connect to the targets.
    pub(super) fn wiring(&self) -> Wiring {
        let connection = &self.source.scenario.connection;
        Wiring {
            http: connection.http(),
            reuse: connection.reuse(),
            trust: Trust {
                ca_cert: (connection.ca_cert.as_ref()).map(|said| seen(self.source, said)),
                insecure: connection.insecure(),
            },
            timestamps: connection.timestamps(),
        }
    }
}
