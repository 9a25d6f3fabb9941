//! Secrets of requests: the key in the user's variable, used as the backend describes, and the
//! user's headers.
//!
//! A backend says how a key is used and where people keep it; it never sees one. It does not choose
//! which of the user's secrets leave the machine. A variable that the backend names is read only
//! if the variable's name ends in `_API_KEY`. The user must name others.

use std::sync::Arc;

use http::HeaderValue;

use super::Resolution;
use model::access::hmac::Placeholder;
use model::access::{Access, Key, Sigv4, is_region, region_of, token};
use model::redact;
use model::target::{Secrets, Target};
use plugins::backend::{Authentication, Backend, Credentials};
use reader::Problem;
use scenario::plan::{ApiKey, Scheme};

/// The variable that most clients read.
const USUAL: &str = "OPENAI_API_KEY";
/// The end of the names of variables that a backend may choose.
const KEY: &str = "_API_KEY";
/// The variables in which the tools of AWS keep a key.
const AWS_ID: &str = "AWS_ACCESS_KEY_ID";
const AWS_SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const AWS_TOKEN: &str = "AWS_SESSION_TOKEN";
/// The variables that say in which region of AWS to work.
const AWS_REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

impl Resolution<'_> {
    /// The secrets of requests, the plan's record of them, and the names of the user's headers.
    pub(super) fn secrets(
        &mut self,
        backend: Option<&Backend>,
        targets: &[Target],
    ) -> (Secrets, ApiKey, Vec<String>) {
        let authentication = backend.and_then(|backend| {
            match backend.open().and_then(|mut dialect| dialect.credentials()) {
                Ok(credentials) => Some((&*backend.plugin().name, credentials)),
                Err(error) => {
                    self.faults.add(error, None);
                    None
                }
            }
        });
        // Without a backend there is no run, but a fault of the key is still reported.
        let (name, credentials) = authentication.unwrap_or((
            "",
            Credentials { scheme: Authentication::Bearer, variable: None, cookies: false },
        ));
        let variables = self.sources(&credentials);
        let used = match &credentials.scheme {
            Authentication::None => {
                self.no_key(name);
                None
            }
            scheme => self.found(&variables).and_then(|(variable, key)| {
                let (access, scheme) = self.access(scheme, &variable, key, targets)?;
                Some((access, ApiKey::From { variable: variable.clone(), scheme }, vec![variable]))
            }),
        };
        let (access, planned, variables) =
            used.unwrap_or((Access::Open, ApiKey::Carried(false), variables));
        let target = &self.source.scenario.target;
        let headers = target.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), value.value.clone())).collect();
        let names = target.headers.keys().cloned().collect();
        let body = super::config_json(&self.source.scenario.request.extra_body);
        let secrets = Secrets {
            access,
            variables,
            headers,
            fields: redact::secrets_in(&body, &[]),
            keeps_cookies: credentials.cookies,
            ..Secrets::default()
        };
        (secrets, planned, names)
    }

    /// The variables that may hold the key, in order: the user's, or the backend's and the usual.
    fn sources(&mut self, credentials: &Credentials) -> Vec<String> {
        let mut variables = Vec::new();
        if matches!(credentials.scheme, Authentication::None) {
            return variables;
        }
        if let Some(entry) = &self.source.scenario.target.api_key_env {
            return vec![entry.value.clone()];
        }
        let is_aws = matches!(credentials.scheme, Authentication::Sigv4(_));
        if let Some(own) = &credentials.variable {
            if is_name(own) && own.ends_with(KEY) {
                variables.push(own.clone());
            } else if !is_aws || own != AWS_ID {
                self.not_chosen(own);
            }
        }
        match credentials.scheme {
            Authentication::Sigv4(_) => variables.push(AWS_ID.to_owned()),
            // The engines' users have it, whatever the backend names. To whom a key in a header of
            // its own belongs, the backend's variable says.
            Authentication::Header(_) | Authentication::Hmac(_) if !variables.is_empty() => {}
            _ if variables.iter().any(|variable| variable == USUAL) => {}
            _ => variables.push(USUAL.to_owned()),
        }
        variables
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.source.variables.get(name);
        value.filter(|value| !value.is_empty())
    }

    /// The first variable that is set, with its value. It is an error if the user's own is not set.
    fn found(&mut self, variables: &[String]) -> Option<(String, String)> {
        let found = (variables.iter())
            .find_map(|name| self.variable(name).map(|value| (name.clone(), value)));
        // Text that is no variable's name may be the key itself; the scenario's check has refused
        // it already.
        if let (None, Some(entry)) = (&found, &self.source.scenario.target.api_key_env)
            && is_name(&entry.value)
        {
            let variable = &entry.value;
            let error = "which should hold the API key, is not set";
            self.problem(&format!("the variable `{variable}`, {error}"), &entry.place);
        }
        found
    }

    /// The key in a variable, used as the backend describes; nothing if it cannot be.
    fn access(
        &mut self,
        scheme: &Authentication,
        variable: &str,
        key: String,
        targets: &[Target],
    ) -> Option<(Access, Scheme)> {
        match scheme {
            Authentication::None => None,
            Authentication::Bearer => {
                self.check_header(variable, &key);
                Some((Access::Bearer(key), Scheme::Bearer))
            }
            Authentication::Header(name) => {
                self.check_header(variable, &key);
                let name = name.to_ascii_lowercase();
                Some((Access::Header { name: name.clone(), key }, Scheme::Header(name)))
            }
            Authentication::Sigv4(service) => self.aws(variable, key, service, targets),
            Authentication::Hmac(described) => {
                // Templates were checked when the backend named them.
                let with = Key::parse(&key).and_then(|key| described.with_key(key).ok());
                let with = with.filter(|own| !own.key.id.is_empty() || !own.has(Placeholder::Id));
                let with = self.parted(variable, "signature", with)?;
                Some((Access::Hmac(Arc::new(with)), Scheme::Hmac))
            }
            Authentication::Token(described) => {
                let fits = |key: &Key| !key.id.is_empty() || !described.has(token::Placeholder::Id);
                let with = Key::parse(&key).filter(fits);
                let with = with.and_then(|key| described.with_key(key).ok());
                let with = self.parted(variable, "login", with)?;
                Some((Access::Token(Arc::new(with)), Scheme::Token))
            }
        }
    }

    fn check_header(&mut self, variable: &str, key: &str) {
        if HeaderValue::try_from(key).is_err() {
            let help = "a line break at its end, perhaps; set the variable to the key alone";
            self.wrong_key(variable, "has characters that a header cannot contain", help);
        }
    }

    /// Reports that a key of one or two parts cannot be used.
    fn parted<T>(&mut self, variable: &str, using: &str, with: Option<T>) -> Option<T> {
        if with.is_none() {
            let what = format!("is not a key for the {using} of this backend");
            let help = "expected `SECRET` or `ID:SECRET` in visible characters, the second where the server asks for an identifier";
            self.wrong_key(variable, &what, help);
        }
        with
    }

    /// A key of AWS, which signs.
    fn aws(
        &mut self,
        variable: &str,
        value: String,
        service: &str,
        targets: &[Target],
    ) -> Option<(Access, Scheme)> {
        // The identifier alone is there, as the tools of AWS keep it, and the rest next to it.
        let key = match (variable == AWS_ID, value.contains(':')) {
            (true, false) => {
                let Some(secret) = self.variable(AWS_SECRET) else {
                    let problem = Problem::new(format!("{AWS_ID} is set and {AWS_SECRET} is not"));
                    let help = "set both, and AWS_SESSION_TOKEN if the key is a temporary one";
                    self.faults.scenario.push(problem.help(help));
                    return None;
                };
                let token = self.variable(AWS_TOKEN).map(|token| format!(":{token}"));
                format!("{value}:{secret}{}", token.unwrap_or_default())
            }
            _ => value,
        };
        let (id, secret, session_token) = match Sigv4::parse_key(&key) {
            Ok(parts) => parts,
            Err(not_key) => {
                let what = "is not a key for AWS Signature Version 4";
                self.wrong_key(variable, what, &not_key.to_string());
                return None;
            }
        };
        let (service, region) = (service.to_owned(), self.region(targets));
        let scheme = Scheme::Sigv4(service.clone());
        let with = Sigv4 { service, region, id, secret, session_token };
        Some((Access::Sigv4(Arc::new(with)), scheme))
    }

    /// The region of targets that do not name theirs.
    fn region(&mut self, targets: &[Target]) -> Option<String> {
        let target = (targets.iter()).find(|target| region_of(target.host()).is_none())?;
        let set =
            AWS_REGIONS.iter().find_map(|name| self.variable(name).map(|region| (name, region)));
        let problem = match set {
            Some((_, region)) if is_region(&region) => return Some(region),
            Some((name, region)) => {
                Problem::new(format!("the variable `{name}` holds no region of AWS: {region:?}"))
            }
            None => Problem::new(format!(
                "requests to {target} need an AWS region for their signature, and the host name contains none"
            )),
        };
        let help = "set AWS_REGION, to eu-west-1 for example, or name a target whose host has its region, such as https://bedrock-runtime.eu-west-1.amazonaws.com";
        self.faults.scenario.push(problem.help(help));
        None
    }

    /// A key is named, and the backend sends none.
    fn no_key(&mut self, backend: &str) {
        let Some(entry) = &self.source.scenario.target.api_key_env else { return };
        let problem =
            Problem::new(format!("the backend `{backend}` sends no API key, so none can be named"))
                .at(entry.place.clone(), "not with this backend")
                .help("leave it out; a header that a gateway asks for can be given with --header");
        self.faults.scenario.push(problem);
    }

    fn wrong_key(&mut self, variable: &str, what: &str, help: &str) {
        let problem = Problem::new(format!("the API key in the variable `{variable}` {what}"));
        let problem = match &self.source.scenario.target.api_key_env {
            Some(entry) if entry.value == variable => problem.at(entry.place.clone(), "named here"),
            _ => problem,
        };
        self.faults.scenario.push(problem.help(help));
    }

    /// Notes that a variable of the backend's is not read, where that could have been expected.
    fn not_chosen(&mut self, variable: &str) {
        if is_name(variable) && self.variable(variable).is_some() {
            self.remarks.push(format!(
                "note: {variable} is set but not used, because plugins may only choose variables that end in _API_KEY; to send its value to the targets, give --api-key-env {variable}"
            ));
        }
    }
}

/// True if this can be a variable's name.
fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
