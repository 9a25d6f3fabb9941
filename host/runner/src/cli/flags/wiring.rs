//! The flags for connections to the server and for timeouts.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;

use super::said;
use model::connection::Reuse;
use model::connection::{Timestamps, Version};
use model::duration::Span;
use reader::Said;
use scenario::Scenario;

/// Connections and timeouts.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Wiring {
    /// HTTP version; with 2, requests share a connection
    #[arg(
        long,
        value_enum,
        value_name = "VERSION",
        env = "RUNNER_HTTP",
        hide_possible_values = true,
        help_heading = "Connections"
    )]
    http: Option<Version>,
    /// Which connection a request uses: keep-alive (any free one), never (a new one) or session (its conversation's)
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        env = "RUNNER_CONNECTIONS",
        hide_possible_values = true,
        help_heading = "Connections"
    )]
    connections: Option<Reuse>,
    /// Certificates to trust in addition to the system's (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "RUNNER_CA_CERT",
        help_heading = "Connections"
    )]
    ca_cert: Option<PathBuf>,
    /// Accept any certificate; every result will say so
    #[arg(long, env = "RUNNER_INSECURE", value_parser = FalseyValueParser::new(), help_heading = "Connections")]
    insecure: bool,
    /// Which receive timestamps to use: kernel (independent of late reads) or user (when bytes are read)
    #[arg(
        long,
        value_enum,
        value_name = "WHOSE",
        env = "RUNNER_TIMESTAMPS",
        hide_possible_values = true,
        help_heading = "Connections"
    )]
    timestamps: Option<Timestamps>,
    /// Timeout for opening a connection [default: 10s]
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_CONNECT_TIMEOUT",
        help_heading = "Connections"
    )]
    connect_timeout: Option<Span>,
    /// Timeout for the first token of an answer [default: the request timeout]
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_FIRST_TOKEN_TIMEOUT",
        help_heading = "Connections"
    )]
    first_token_timeout: Option<Span>,
    /// Timeout for each next token [default: 10m]
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_TOKEN_GAP_TIMEOUT",
        help_heading = "Connections"
    )]
    token_gap_timeout: Option<Span>,
    /// Timeout for a whole answer [default: 6h]
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_REQUEST_TIMEOUT",
        help_heading = "Connections"
    )]
    request_timeout: Option<Span>,
}

impl Wiring {
    /// Lays the given flags over a scenario.
    pub fn lay_on(&self, scenario: &mut Scenario) {
        let connection = &mut scenario.connection;
        connection.http = said("--http", &self.http);
        connection.reuse = said("--connections", &self.connections);
        connection.ca_cert = said("--ca-cert", &self.ca_cert);
        connection.insecure = self.insecure.then(|| Said::flag("--insecure", true));
        connection.timestamps = said("--timestamps", &self.timestamps);
        let timeouts = &mut scenario.timeouts;
        timeouts.connect = said("--connect-timeout", &self.connect_timeout);
        timeouts.first_token = said("--first-token-timeout", &self.first_token_timeout);
        timeouts.token_gap = said("--token-gap-timeout", &self.token_gap_timeout);
        timeouts.request = said("--request-timeout", &self.request_timeout);
    }
}
