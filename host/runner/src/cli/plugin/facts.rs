//! Facts as text for people: sizes, times, tables of keys.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::author::keys::{self, Key, wrapped};
use model::plugin::Kind;
use model::target::Target;
use plugins::backend::{Authentication, Outside};
use plugins::load::Plugin;
use plugins::{Info, PluginError, examine};

/// A plugin's description of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Description {
    name: String,
    version: String,
    summary: String,
    kind: Kind,
    contract: String,
    /// Absent of other plugins than backends, and of a backend that needs a configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Server>,
    pub config_keys: Vec<Key>,
    config_schema: Value,
}

impl Description {
    pub fn new(plugin: &Plugin, info: Info) -> Result<Self, PluginError> {
        Ok(Description {
            name: info.name,
            version: info.version,
            summary: info.summary,
            kind: plugin.kind,
            contract: plugin.contract.version().to_owned(),
            server: examine::server(plugin)?.map(Server::new),
            config_keys: keys::keys(&info.config_schema),
            config_schema: info.config_schema,
        })
    }

    pub fn headline(&self) -> String {
        let Description { name, version, summary, kind, .. } = self;
        format!("{name} {version}, a {}: {summary}\n\n", kind.name())
    }

    pub fn contract(&self) -> [String; 2] {
        row("contract", format!("runner:plugin {}", self.contract))
    }

    /// The rows on a backend's server.
    pub fn server(&self) -> impl Iterator<Item = [String; 2]> {
        self.server.iter().flat_map(Server::rows)
    }
}

/// A backend's facts about its server and the user's key, as a run takes them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Server {
    default_url: String,
    /// True if a run uses that address by default.
    default_url_is_this_machine: bool,
    /// The way the key is sent: `bearer`, `header`, `sigv4` or `none`.
    authentication: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_header: Option<String>,
    /// The service of AWS that requests are signed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_variable: Option<String>,
    /// Requests other than inference, by name.
    control_requests: BTreeMap<&'static str, String>,
}

impl Server {
    fn new(outside: Outside) -> Self {
        let is_here = Target::parse(&outside.default_url).is_ok_and(|target| target.is_loopback());
        let names = |headers: &[(String, String)]| {
            let names = headers.iter().map(|(name, _)| name.to_ascii_lowercase());
            names.collect::<Vec<_>>().join(", ")
        };
        let (authentication, key_header, signed_for) = match outside.credentials.scheme {
            Authentication::Bearer => ("bearer", Some("authorization".to_owned()), None),
            Authentication::Header(header) => ("header", Some(header.to_ascii_lowercase()), None),
            Authentication::Sigv4(service) => {
                ("sigv4", Some("authorization".to_owned()), Some(service))
            }
            Authentication::Hmac(hmac) => ("hmac", Some(names(&hmac.headers)), None),
            Authentication::Token(token) => ("token", Some(names(&token.headers)), None),
            Authentication::None => ("none", None, None),
        };
        let controls = outside.controls.into_iter();
        Server {
            default_url: outside.default_url,
            default_url_is_this_machine: is_here,
            authentication,
            key_header,
            signed_for,
            key_variable: outside.credentials.variable,
            control_requests: controls
                .map(|(name, request)| (name, format!("{} {}", request.method, request.path)))
                .collect(),
        }
    }

    fn rows(&self) -> Vec<[String; 2]> {
        let here = match self.default_url_is_this_machine {
            true => "",
            false => " (not this machine: a run needs --base-url)",
        };
        let key = match (&self.key_header, &self.signed_for) {
            (None, _) => "none: the server wants no key".to_owned(),
            (Some(header), Some(service)) => {
                format!("header `{header}`, signed for the service `{service}` of AWS")
            }
            (Some(header), None) if self.authentication == "bearer" => {
                format!("header `{header}`, after `Bearer`")
            }
            (Some(header), None) => format!("header `{header}`"),
        };
        let controls = self.control_requests.iter();
        let controls: Vec<_> =
            controls.map(|(name, request)| format!("{name} ({request})")).collect();
        let controls = if controls.is_empty() { "none".to_owned() } else { controls.join(", ") };
        let mut rows =
            vec![row("default URL", format!("{}{here}", self.default_url)), row("key", key)];
        rows.extend(self.key_variable.iter().map(|name| row("key variable", name.clone())));
        rows.push(row("control requests", controls));
        rows
    }
}

pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..10_485_760 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

pub fn time(duration: Duration) -> String {
    match duration.as_nanos() {
        0..1_000_000 => format!("{:.1} µs", duration.as_secs_f64() * 1e6),
        1_000_000..1_000_000_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

/// Configuration keys, a paragraph each. A table of several keys is listed at the first.
pub fn keys(keys: &[Key]) -> String {
    let mut text = String::new();
    listed(keys, "", 1, &mut BTreeMap::new(), &mut text);
    text
}

/// Lists the keys of the table of `within`; `seen` has the key at which a table was listed.
fn listed(
    keys: &[Key],
    within: &str,
    indent: usize,
    seen: &mut BTreeMap<String, String>,
    text: &mut String,
) {
    let (margin, deeper) = ("  ".repeat(indent), "  ".repeat(indent + 2));
    for key in keys {
        let default = match (&key.default, key.required) {
            (Some(default), _) => format!(", default {default}"),
            (None, true) => ", required".to_owned(),
            (None, false) => ", optional".to_owned(),
        };
        *text += &format!("{margin}{}: {}{default}\n", key.key, key.kind);
        if let Some(description) = &key.description {
            *text += &wrapped(description, &deeper);
        }
        let Some(table) = &key.inner else { continue };
        let path = match within {
            "" => key.key.clone(),
            within => format!("{within}.{}", key.key),
        };
        if let Some(name) = &table.name {
            if let Some(first) = seen.get(name) {
                *text += &format!("{deeper}Its table has the keys of `{first}`.\n");
                continue;
            }
            seen.insert(name.clone(), path.clone());
        }
        *text += &format!("{deeper}Keys of its table:\n");
        listed(&table.keys, &path, indent + 3, seen, text);
    }
}

pub fn row(name: &str, value: String) -> [String; 2] {
    [name.to_owned(), value]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn lists_a_shared_table_at_its_first_key() {
        let schema = json!({
            "$defs": { "Range": {
                "type": "object",
                "required": ["min"],
                "properties": { "min": { "type": "number", "description": "The least." } },
            } },
            "properties": {
                "input": { "anyOf": [{ "type": "number" }, { "$ref": "#/$defs/Range" }] },
                "output": { "$ref": "#/$defs/Range" },
            },
        });
        let text = super::keys(&crate::author::keys::keys(&schema));
        assert_eq!(
            text,
            concat!(
                "  input: number | table, optional\n",
                "      Keys of its table:\n",
                "        min: number, required\n",
                "            The least.\n",
                "  output: table, optional\n",
                "      Its table has the keys of `input`.\n",
            )
        );
    }
}
