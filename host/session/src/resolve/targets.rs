//! Where requests go and how: addresses, secrets, connections.

use super::Resolution;
use super::ahead::seen;
use model::connection::Trust;
use model::redact;
use model::target::{Secrets, Target, TargetError};
use plugins::backend::{Backend, Control};
use reader::{Place, Problem};
use scenario::plan::{ApiKey, Wiring};

impl Resolution<'_> {
    /// What requests carry that nobody else may see, and what the plan says of it.
    pub(super) fn secrets(&mut self) -> (Secrets, ApiKey, Vec<String>) {
        let target = &self.source.scenario.target;
        let variable = target.api_key_env();
        let api_key = (self.source.variables.get(&variable)).filter(|key| !key.is_empty());
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
        let planned = match api_key {
            Some(_) => ApiKey::From { variable },
            None => ApiKey::Carried(false),
        };
        let body = super::config_json(&self.source.scenario.request.extra_body);
        let fields = redact::secrets_in(&body);
        let secrets = Secrets {
            api_key,
            headers,
            fields,
        };
        (secrets, planned, names)
    }

    /// Where requests go: what the scenario sets, else where the backend's engine listens by default on this machine.
    ///
    /// A plugin does not choose who gets the user's key, headers and prompts: another machine must be named by the user.
    pub(super) fn targets(&mut self, backend: Option<&Backend>) -> Option<Vec<Target>> {
        let Some(said) = &self.source.scenario.target.base_url else {
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
                let name = &backend.plugin().asked;
                let problem = Problem::new(format!(
                    "the backend `{name}` would send requests to {target} by default, which is not this machine"
                ));
                self.faults.scenario.push(problem.help(format!(
                    "a plugin does not choose who gets your prompts, headers and API key; if you want this server, name it with --base-url {target}"
                )));
                return None;
            }
            return Some(vec![target]);
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
