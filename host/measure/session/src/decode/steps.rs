//! Exchanges of several requests: from the step that a backend names to the request that a reader
//! sends. Decides where it may go, and if it carries the key.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Fault, WayBack};
use crate::authenticate::http_request;
use crate::clean_up::CleanUps;
use crate::lease::Refusals;
use load::drive::demand::{self, Demand};
use load::drive::jars::{Cookies, Jars};
use load::transport::Request;
use model::clock::date;
use model::connection::Version;
use model::exchange::{Class, Prepared};
use model::places::{Place, Places};
use model::target::Secrets;
use model::units::Nanos;
use plugins::backend::{self, path_fault};

/// The most requests of an exchange.
pub(super) const MOST: u32 = 1_000;

pub struct Routes {
    pub places: Places,
    pub version: Version,
    /// For paths below the URL of an exchange's target.
    pub secrets: Secrets,
    /// For other hosts: none.
    pub nothing: Secrets,
    /// Takes requests that are to be sent once an exchange has ended; absent where none is.
    pub(crate) clean_ups: Option<CleanUps>,
    /// Receives refusals of tokens; absent without tokens.
    pub(crate) refusals: Option<Refusals>,
    pub(crate) jars: Option<Arc<Jars>>,
}

impl WayBack {
    /// Sends this step next, or nothing more. A step that cannot be sent ends the exchange.
    pub(super) fn demand(
        &self,
        routes: &Routes,
        step: Option<Box<backend::Step>>,
    ) -> Result<(), Fault> {
        let Some(target) = self.get().map(|open| open.target) else { return Ok(()) };
        let (demand, result) = match step.map(|step| routes.step(target, *step)) {
            None => (Demand::Ended, Ok(())),
            Some(Ok(step)) => (Demand::Step(Box::new(step)), Ok(())),
            Some(Err(fault)) => (Demand::Ended, Err(fault)),
        };
        self.send(demand);
        result
    }
}

impl Routes {
    /// For a run that may reach these places, with these secrets for its targets.
    pub fn new(places: Places, version: Version, secrets: Secrets) -> Self {
        Routes {
            places,
            version,
            secrets,
            nothing: Secrets::default(),
            clean_ups: None,
            refusals: None,
            jars: None,
        }
    }

    /// Returns the cookies of the conversation of this request, if cookies are kept.
    pub(super) fn cookies(&self, prepared: &Prepared, key: u64) -> Option<Cookies<'_>> {
        self.jars.as_ref().map(|jars| jars.cookies(prepared, key))
    }

    pub(super) fn secrets_with(&self, cookies: Option<&Cookies<'_>>) -> Cow<'_, Secrets> {
        match cookies.map(Cookies::values) {
            Some(values) if !values.is_empty() => Cow::Owned(self.secrets.and(values)),
            _ => Cow::Borrowed(&self.secrets),
        }
    }

    pub(super) fn refused(&self, target: u32, sent: Nanos) {
        if let Some(refusals) = &self.refusals {
            refusals.put(target, sent);
        }
    }

    /// Has a request sent to the target of an exchange that has ended.
    pub(super) fn clean_up(
        &self,
        target: u32,
        cookies: Option<&Cookies<'_>>,
        request: backend::Request,
    ) {
        if let Some(clean_ups) = &self.clean_ups {
            let request = self.own(target, request);
            match cookies {
                None => clean_ups.take(target, request, Vec::new()),
                Some(cookies) => {
                    let request = request.map(|request| cookies.add(request));
                    clean_ups.take(target, request, cookies.values());
                }
            }
        }
    }

    fn own(&self, target: u32, request: backend::Request) -> Result<Request, String> {
        let (place, path) = self.place(target, &request.path)?;
        if !place.is_target {
            return Err("its path is not below the URL of the exchange's target".to_owned());
        }
        let request =
            http_request(place.origin, self.version, (&self.secrets, &[]), &path, request)?;
        Ok(request.ready(date))
    }

    /// Makes the request of a step ready, in an exchange with this target.
    fn step(&self, target: u32, step: backend::Step) -> Result<demand::Step, Fault> {
        let backend::Step { request, framing, delay, accepted, context } = step;
        let refused = |what: String| {
            let what = format!("the reply leads to a next request that cannot be sent: {what}");
            Fault::new(Class::Protocol, what)
        };
        let (place, path) = self.place(target, &request.path).map_err(refused)?;
        let Place { number, origin, is_target } = place;
        let secrets = if is_target { &self.secrets } else { &self.nothing };
        let request = http_request(origin, self.version, (secrets, &[]), &path, request);
        let request = request.map_err(refused)?;
        Ok(demand::Step {
            request: Box::new(move || request.ready(date)),
            place: number,
            host: (number != target).then(|| origin.authority()),
            framing: framing.into(),
            delay: Nanos(delay),
            accepted,
            context,
        })
    }

    /// Finds the place of a path below the target's URL, or of a whole URL.
    fn place(&self, target: u32, location: &str) -> Result<(Place<'_>, String), String> {
        let (place, path) = if location.starts_with('/') {
            let place = self.places.target(target);
            let place = place.ok_or("its target is not known")?;
            (place, location.to_owned())
        } else {
            let found = self.places.find(target, location);
            found.map_err(|unreachable| unreachable.to_string())?
        };
        match path_fault(&path) {
            Some(fault) => Err(format!("its path {fault}")),
            None if location.starts_with('/') => Ok((place, place.origin.path(&path))),
            None => Ok((place, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::access::Access;
    use model::target::Target;
    use plugins::backend::Framing;

    fn routes() -> Routes {
        let targets = ["http://127.0.0.1:8000/tenant", "http://127.0.0.1:9000"];
        let targets = targets.map(|url| Target::parse(url).unwrap()).to_vec();
        let hosts = ["stream.example.com".parse().unwrap()];
        let secrets = Secrets {
            access: Access::Bearer("the-key".to_owned()),
            headers: vec![("x-tenant".to_owned(), "own".to_owned())],
            ..Secrets::default()
        };
        Routes::new(Places::new(targets, &hosts), Version::Http1, secrets)
    }

    fn step(path: &str) -> backend::Step {
        backend::Step {
            request: backend::Request {
                method: "GET".to_owned(),
                path: path.to_owned(),
                headers: vec![("accept".to_owned(), "text/event-stream".to_owned())],
                body: Vec::new(),
            },
            framing: Framing::EventStream,
            delay: 5,
            accepted: vec![404],
            context: b"c".to_vec(),
        }
    }

    fn sent(path: &str) -> (demand::Step, String) {
        let mut step =
            routes().step(0, step(path)).unwrap_or_else(|fault| panic!("{}", fault.message));
        let request = std::mem::replace(&mut step.request, Box::new(|| unreachable!()))();
        let Request::Http1 { head, .. } = request else { panic!("it is of the run's version") };
        (step, String::from_utf8(head.to_vec()).unwrap())
    }

    #[test]
    fn key_is_sent_only_to_the_target() {
        for path in ["/v1/x", "http://127.0.0.1:8000/tenant/v1/x"] {
            let (step, head) = sent(path);
            assert_eq!((step.place, step.host), (0, None));
            assert_eq!((step.delay, &*step.accepted), (Nanos(5), &[404][..]));
            assert!(head.starts_with("GET /tenant/v1/x HTTP/1.1\r\nhost: 127.0.0.1:8000\r\n"));
            assert!(head.contains("authorization: Bearer the-key\r\n"), "{head}");
            assert!(head.contains("x-tenant: own\r\n"), "{head}");
        }
        let (step, head) = sent("https://stream.example.com/v1/x?y=z");
        assert_eq!(step.host.as_deref(), Some("stream.example.com"));
        assert_eq!(step.place, 3);
        assert!(head.starts_with("GET /v1/x?y=z HTTP/1.1\r\nhost: stream.example.com\r\n"));
        assert!(head.contains("accept: text/event-stream\r\n"), "{head}");
        assert!(!head.contains("the-key") && !head.contains("own"), "{head}");
    }

    #[test]
    fn server_cannot_redirect_to_unlisted_hosts() {
        for (path, expected) in [
            ("http://169.254.169.254/latest", "hosts = [\"169.254.169.254\"]"),
            ("http://127.0.0.1:8001/x", "--allow-host 127.0.0.1:8001"),
            (
                "https://127.0.0.1:8000/tenant/x",
                "neither below the target's nor on an allowed host",
            ),
            ("http://127.0.0.1:8000/admin/keys", "--allow-host 127.0.0.1:8000"),
            ("http://127.0.0.1:9000/admin/keys", "--allow-host 127.0.0.1:9000"),
            ("ftp://127.0.0.1:8000/x", "begins with http:// or https://"),
            ("x", "begins with http:// or https://"),
            ("", "begins with http:// or https://"),
            ("//169.254.169.254/x", "empty segment"),
            ("/../x", "leads upwards"),
            ("http://127.0.0.1:8000/tenant/../b", "leads upwards"),
            ("http://127.0.0.1:8000/tenant/a\r\nx: y", "must escape"),
        ] {
            let Err(fault) = routes().step(0, step(path)) else { panic!("{path} is not refused") };
            assert_eq!(fault.class, Class::Protocol);
            assert!(fault.message.contains(expected), "{path}: {}", fault.message);
        }
    }
}
