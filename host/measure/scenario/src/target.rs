//! `[target]`, `[tokenizer]`, `[connection]` and `[timeouts]`: the server, and the way to it.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::Fate::{May, Must, Silent};
use crate::Kind;
use crate::field::{Entry, Field, Maybe};
use crate::key::{
    Key,
    heading::{CONNECTIONS, REQUESTS, TARGET},
    plan, unplanned,
};
use crate::table::table;
use model::connection::{PairOrder, Reuse, Timestamps, Version};
use model::duration::Span;
use reader::{Located, Reader};

table! {
    /// `[target]`: the server under test.
    pub struct Target {
        /// Base URL of the engine, such as http://127.0.0.1:8000; if there are several, requests go
        /// to each in turn.
        ///
        /// Without a scheme, as in localhost:8000, it is http.
        base_url: Maybe<Vec<Located<String>>> => plan("target.base-urls", May)
            .flag("base-url", "URL", TARGET)
            .delimiter(',')
            .otherwise("where the backend's engine listens")
            .theirs(&["url"]);
        /// Model name, as the server knows it.
        model: Maybe<String> => plan("target.model", Must(Kind::Model))
            .flag("model", "MODEL", TARGET)
            .otherwise("the only one the server lists");
        /// Environment variable that holds the API key.
        ///
        /// The key itself does not belong in a scenario. It goes to the targets that you name, or
        /// without any only to this machine. The run states where it goes.
        api_key_env: Maybe<String> => plan("target.api-key", Silent)
            .flag("api-key-env", "VARIABLE", TARGET)
            .otherwise("the backend's, else OPENAI_API_KEY")
            .theirs(&["api-key"]);
        /// Time to wait for a server that is not ready yet; the flag takes a number of seconds
        /// too.
        wait_ready: Maybe<Span> => plan("control.wait-ready", Silent)
            .flag("ready-check-timeout-sec", "SECONDS", TARGET)
            .unit("s")
            .otherwise("not at all")
            .theirs(&["ready-check-timeout-sec"]);
        /// Header to send with every request; the flag takes `Name: value` or `Name=value`, and is
        /// repeatable.
        ///
        /// Values never appear in results or logs. They go where the API key goes.
        headers: Headers => plan("target.headers", Silent).flag("header", "FIELD", TARGET).secret();
        /// Hosts beside the target's to which a reply may lead the next request of its exchange,
        /// each a name with a port unless that is the usual one, such as stream.replicate.com.
        ///
        /// Only a backend whose exchanges have several requests needs any. Neither the API key nor
        /// headers go there.
        hosts: Maybe<Vec<Located<String>>> => plan("target.hosts", Silent)
            .flag("allow-host", "HOST", TARGET)
            .delimiter(',')
            .otherwise("the targets' alone");
        /// Base URLs of the engines behind a router (prefill, decode) whose metrics pages are read.
        ///
        /// `report.server-series` sets the interval. Neither the API key nor headers go to a URL
        /// that is not a target's.
        metrics_url: Maybe<Vec<Located<String>>> => plan("target.metrics-urls", Silent)
            .flag("metrics-url", "URL", TARGET)
            .delimiter(',')
            .otherwise("the targets");
    }
}

table! {
    /// One of `[[sides]]`: a server to compare with `[target]`, which gets the same requests.
    pub struct Side {
        /// Name of the side in the result.
        name: Maybe<String> => unplanned().otherwise("a letter");
        /// Base URL of the side's server.
        base_url: Maybe<Vec<Located<String>>> => unplanned().otherwise("the target's");
        /// Model name, as this server knows it.
        model: Maybe<String> => unplanned().otherwise("the target's");
        /// Environment variable that holds the API key for this server.
        api_key_env: Maybe<String> => unplanned().otherwise("the target's");
        /// The backend, if the server needs another.
        backend: Maybe<String> => unplanned().otherwise("the target's");
    }
}

table! {
    /// `[paired]`: how the sides of a paired run are measured.
    pub struct Paired {
        /// Name of the first side, the server of `[target]`.
        baseline: Maybe<String> => unplanned().otherwise("A");
        /// Order in which the sides are measured: turns or together.
        ///
        /// Use together only if the sides share no engine and no machine.
        order: Maybe<PairOrder> => unplanned()
            .flag("paired-order", "ORDER", TARGET)
            .otherwise("turns, unless the load cannot be cut");
        /// Number of turns of each side, from 3 to 100.
        turns: Maybe<u64> => unplanned().flag("turns", "N", TARGET).otherwise("10");
    }
}

table! {
    /// `[tokenizer]`: the model's tokenizer.
    pub struct Tokenizer {
        /// The model's tokenizer: its file or folder, or its name on the Hugging Face hub, such as
        /// Qwen/Qwen3-8B.
        ///
        /// A name is looked up in the local cache, after `runner fetch tokenizer NAME`; nothing is
        /// downloaded here.
        path: Maybe<PathBuf> => plan("tokenizer", Must(Kind::Tokenizer))
            .flag("tokenizer", "PATH", REQUESTS)
            .otherwise("the model's own in the local cache, else a stand-in that counts bytes");
    }
}

table! {
    /// `[connection]`: how to connect to the server.
    pub struct Connection {
        /// HTTP version.
        http: Maybe<Version> = Version::default()
            => plan("connection.http", Must(Kind::Client)).flag("http", "VERSION", CONNECTIONS);
        /// Connection that a request uses.
        reuse: Maybe<Reuse> = Reuse::default()
            => plan("connection.reuse", Must(Kind::Client)).flag("connections", "WHICH", CONNECTIONS);
        /// Certificates to trust in addition to the system's (PEM).
        ca_cert: Maybe<PathBuf>
            => plan("connection.trust.ca-cert", Must(Kind::Client)).flag("ca-cert", "FILE", CONNECTIONS);
        /// Accept any certificate; every result states this.
        insecure: Maybe<bool> = false
            => plan("connection.trust.insecure", Must(Kind::Client)).switch("insecure", CONNECTIONS);
        /// Receive timestamps to use.
        timestamps: Maybe<Timestamps> = Timestamps::default()
            => plan("connection.timestamps", Must(Kind::Client)).flag("timestamps", "WHOSE", CONNECTIONS);
        /// Threads that send requests and read replies, from 1 to 64.
        ///
        /// A request goes to the thread with the fewest in flight.
        readers: Maybe<u64> => plan("connection.readers", May)
            .flag("readers", "N", CONNECTIONS)
            .otherwise("one for every two cores, at most 8");
        /// The most threads that decode replies, from 1 to 64.
        ///
        /// The first always works; each of the others begins when replies have to wait.
        decoders: Maybe<u64> => plan("connection.decoders", May)
            .flag("decoders", "N", CONNECTIONS)
            .otherwise("one for every core, at most 16");
    }
}

table! {
    /// `[timeouts]`: when to give up.
    pub struct Timeouts {
        /// Timeout for opening a connection.
        connect: Maybe<Span> = Span(Duration::from_secs(10))
            => plan("timeouts.connect", Must(Kind::Client)).flag("connect-timeout", "TIME", CONNECTIONS);
        /// Timeout for the first token of an answer, from the sending of its request.
        first_token: Maybe<Span> => plan("timeouts.first-token", Must(Kind::Client))
            .flag("first-token-timeout", "TIME", CONNECTIONS)
            .otherwise("the request timeout");
        /// Timeout for each next token.
        token_gap: Maybe<Span> = Span(Duration::from_secs(600))
            => plan("timeouts.token-gap", Must(Kind::Client)).flag("token-gap-timeout", "TIME", CONNECTIONS);
        /// Timeout for a whole answer.
        request: Maybe<Span> = Span(Duration::from_secs(6 * 3600))
            => plan("timeouts.request", Must(Kind::Client)).flag("request-timeout", "TIME", CONNECTIONS);
    }
}

/// `[target.headers]`: header fields by their names in lower case.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Headers(BTreeMap<String, Located<String>>);

impl Headers {
    /// Sets a field, whatever the case of its name.
    pub fn insert(&mut self, name: &str, value: Located<String>) {
        self.0.insert(name.to_ascii_lowercase(), value);
    }
}

impl Deref for Headers {
    type Target = BTreeMap<String, Located<String>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Field for Headers {
    type Value = Headers;

    fn declare(key: Key, keys: &mut Vec<Key>) {
        BTreeMap::<String, Located<String>>::declare(key, keys);
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, expected: Option<&'static str>) -> Self {
        let mut headers = Headers::default();
        for (name, value) in BTreeMap::<String, Located<String>>::read(t, key, expected) {
            headers.insert(&name, value);
        }
        headers
    }

    fn merged(self, over: Self) -> Self {
        Headers(self.0.merged(over.0))
    }

    fn say(&mut self, _: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
        for text in texts {
            let (name, value) = text
                .split_once(':')
                .or_else(|| text.split_once('='))
                .filter(|(name, _)| !name.trim().is_empty())
                .ok_or_else(|| format!("{flag} takes `Name: value` or `Name=value`"))?;
            self.insert(name.trim(), Located::flag(flag, value.trim().to_owned()));
        }
        Ok(())
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        let from = entries.len();
        self.0.entries(path, entries);
        entries[from..].iter_mut().for_each(|entry| entry.secret = true);
    }
}
