//! The stages that a request passes in the server before its first token, as means over an
//! interval. For one server they are its queue and its prefill. Where prefill and decode are on
//! different machines, they are both queues and the transfer of keys and values between them.
//!
//! A server's histograms give the total time of its requests and their number: their mean, but no
//! single time. A server's series show its role.

use model::units::Nanos;

use crate::figures::Figure;
use crate::names::Name;
use crate::pieces::{finite, rates_of, total};
use crate::recording::Recording;

model::words! {
    /// A stage of a request in the server, in the order in which it passes them.
    pub enum Stage {
        /// The queue of the scheduler, where one machine does everything.
        Queue = "queue",
        /// The queue of a server that does prefills alone, and its wait for a decode server.
        PrefillQueue = "prefill-queue",
        /// The prefill.
        Prefill = "prefill",
        /// The transfer of keys and values to the server that decodes.
        Transfer = "transfer",
        /// The queue of a server that decodes, without the transfer.
        DecodeQueue = "decode-queue",
        /// The first step of a server that decodes, if it computes the first token.
        FirstStep = "first-step",
    }
}

/// The stages before the first token, by the server's own series.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Stages {
    /// The base URLs of the servers that do prefills alone; absent if none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefill_servers: Vec<String>,
    /// The base URLs of the servers that decode after these prefills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decode_servers: Vec<String>,
    /// The stages that are known, in the order in which a request passes them.
    pub stages: Vec<Staged>,
}

impl Stages {
    /// The mean time of a stage, in milliseconds; absent if the series do not show it.
    pub fn mean_ms(&self, stage: Stage) -> Option<f64> {
        let found = self.stages.iter().find(|staged| staged.stage == stage)?;
        Some(found.mean_ms)
    }
}

/// A stage with its mean time.
#[model::apply(model::document!)]
pub struct Staged {
    /// The stage.
    pub stage: Stage,
    /// The mean over the observations, in milliseconds.
    pub mean_ms: f64,
    /// The number of observations, of the metric with the fewest.
    pub count: f64,
    /// The server's own metrics that it is made of.
    pub metrics: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Prefill,
    Decode,
}

/// An engine whose servers can have one of the two roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Vllm,
    Sglang,
}

/// A histogram of times, the factor to milliseconds, and a label that its series must have.
#[derive(Clone, Copy)]
struct Times(&'static str, f64, Option<(&'static str, &'static str)>);

/// The way to a stage's mean.
struct Row {
    stage: Stage,
    role: Role,
    /// Means that are added up; of several ways, the first whose metrics were all observed counts.
    ways: &'static [&'static [Times]],
    /// True if the transfer is within these times.
    with_transfer: bool,
}

const fn row(stage: Stage, role: Role, ways: &'static [&'static [Times]]) -> Row {
    Row { stage, role, ways, with_transfer: false }
}

/// The counter that grows where a server of vLLM reads keys and values from another: the connector
/// NIXL has the decoding side read, and counts there
/// (`vllm/distributed/kv_transfer/kv_connector/v1/nixl_connector.py`).
const VLLM_READS: &str = "vllm:nixl_xfer_time_seconds_count";

const VLLM_QUEUE: Times = Times("vllm:request_queue_time_seconds", 1e3, None);
const VLLM_PREFILL: Times = Times("vllm:request_prefill_time_seconds", 1e3, None);
const VLLM_TRANSFER: Times = Times("vllm:nixl_xfer_time_seconds", 1e3, None);

/// vLLM's metrics. A request that waits for keys and values of another server is not scheduled yet
/// (`WAITING_FOR_REMOTE_KVS` in `vllm/v1/core/sched/scheduler.py`). So the queue of a decoding
/// server includes the transfer. That server computes the last token of the prompt and the first
/// token of the answer.
const VLLM: &[Row] = &[
    row(Stage::PrefillQueue, Role::Prefill, &[&[VLLM_QUEUE]]),
    row(Stage::Prefill, Role::Prefill, &[&[VLLM_PREFILL]]),
    row(Stage::Transfer, Role::Decode, &[&[VLLM_TRANSFER]]),
    Row { with_transfer: true, ..row(Stage::DecodeQueue, Role::Decode, &[&[VLLM_QUEUE]]) },
    row(Stage::FirstStep, Role::Decode, &[&[VLLM_PREFILL]]),
];

/// The label with the role of a server of SGLang: `prefill`, `decode` or `unified`.
const SGLANG_ROLE: &str = "engine_type";

const SGLANG_QUEUE: Times = Times("sglang:queue_time_seconds", 1e3, None);

const fn sglang(stage: &'static str) -> Times {
    let name = "sglang:per_stage_req_latency_seconds";
    Times(name, 1e3, Some(("stage", stage)))
}

const SGLANG_BOOTSTRAP: Times = sglang("prefill_bootstrap");
const SGLANG_FORWARD: Times = sglang("prefill_forward");
const SGLANG_TRANSFER: Times = sglang("prefill_transfer_kv_cache");
const SGLANG_KV: Times = Times("sglang:kv_transfer_latency_ms", 1.0, None);

/// SGLang's metrics (`sglang/srt/observability/metrics_collector.py`, and the stages in
/// `req_time_stats.py` beside it). A request is first in the bootstrap queue of the prefill server,
/// until the decode server has room for it, then in the queue of the scheduler. The decode server
/// has it in its queue when the transfer is complete; its stage `decode_transferred` begins before
/// the prefill does, and is no part of the sum.
const SGLANG: &[Row] = &[
    row(Stage::PrefillQueue, Role::Prefill, &[&[SGLANG_BOOTSTRAP, SGLANG_QUEUE], &[SGLANG_QUEUE]]),
    row(Stage::Prefill, Role::Prefill, &[&[SGLANG_FORWARD]]),
    row(Stage::Transfer, Role::Prefill, &[&[SGLANG_TRANSFER], &[SGLANG_KV]]),
    row(Stage::DecodeQueue, Role::Decode, &[&[SGLANG_QUEUE]]),
];

/// Less than this of an observation is none: it is rounding.
const NONE: f64 = 1e-6;

impl Recording {
    /// The stages over an interval. `figures` has the figures of all targets over the same
    /// interval: where no target has a role, the stages are the stages of servers that do
    /// everything.
    pub(crate) fn stages<'a>(
        &self,
        over: (Nanos, Nanos),
        figure: impl Fn(Name) -> Option<&'a Figure>,
    ) -> Option<Stages> {
        let targets: Vec<u32> = self.pages.keys().copied().collect();
        let roles: Option<Vec<_>> =
            (targets.iter()).map(|target| self.role(*target, over)).collect();
        let apart = roles.and_then(|roles| self.apart(&targets, &roles, over));
        apart.or_else(|| {
            let of = |stage: Stage, name: Name| {
                let figure = figure(name)?;
                Some(Staged {
                    stage,
                    mean_ms: figure.mean?,
                    count: figure.total?,
                    metrics: figure.metrics.clone(),
                })
            };
            // Without the other role's servers, a server shows half of the way.
            let has_role = |target: &u32| self.sglang_role(*target).is_some();
            if targets.iter().any(has_role) {
                return None;
            }
            let stages = [of(Stage::Queue, Name::QueueTime), of(Stage::Prefill, Name::PrefillTime)];
            let stages: Vec<Staged> = stages.into_iter().flatten().collect();
            (!stages.is_empty()).then(|| Stages { stages, ..Stages::default() })
        })
    }

    fn apart(
        &self,
        targets: &[u32],
        roles: &[(Engine, Role)],
        over: (Nanos, Nanos),
    ) -> Option<Stages> {
        let (engine, _) = *roles.first()?;
        if roles.iter().any(|(other, _)| *other != engine) {
            return None;
        }
        let of = |role: Role| -> Vec<u32> {
            let servers = targets.iter().zip(roles).filter(|(_, (_, own))| *own == role);
            servers.map(|(target, _)| *target).collect()
        };
        let (prefill, decode) = (of(Role::Prefill), of(Role::Decode));
        if prefill.is_empty() || decode.is_empty() {
            return None;
        }
        let rows = match engine {
            Engine::Vllm => VLLM,
            Engine::Sglang => SGLANG,
        };
        let mut stages: Vec<Staged> = Vec::new();
        for row in rows {
            let servers = match row.role {
                Role::Prefill => &prefill,
                Role::Decode => &decode,
            };
            let mut ways = row.ways.iter();
            let staged = ways.find_map(|way| self.staged(row.stage, way, servers, over));
            let Some(mut staged) = staged else { continue };
            if row.with_transfer {
                let transfer = stages.iter().find(|it| it.stage == Stage::Transfer);
                let Some(transfer) = transfer else { continue };
                staged.mean_ms = (staged.mean_ms - transfer.mean_ms).max(0.0);
                staged.metrics.extend_from_slice(&transfer.metrics);
            }
            stages.push(staged);
        }
        let urls = |servers: &[u32]| -> Vec<String> {
            let urls = servers.iter().filter_map(|it| self.targets.get(*it as usize));
            urls.cloned().collect()
        };
        (!stages.is_empty()).then(|| Stages {
            prefill_servers: urls(&prefill),
            decode_servers: urls(&decode),
            stages,
        })
    }

    fn role(&self, target: u32, over: (Nanos, Nanos)) -> Option<(Engine, Role)> {
        if let Some(role) = self.sglang_role(target) {
            return Some((Engine::Sglang, role));
        }
        let queued = format!("{}_count", VLLM_QUEUE.0);
        self.series_of(target, &queued).next()?;
        let read = self.growth_over(target, VLLM_READS, None, over);
        let role = if read.is_some_and(|read| read > NONE) { Role::Decode } else { Role::Prefill };
        Some((Engine::Vllm, role))
    }

    fn sglang_role(&self, target: u32) -> Option<Role> {
        let own = self.series.values().map(|recorded| &recorded.series);
        let mut own = own.filter(|it| it.target == target && it.name.starts_with("sglang:"));
        own.find_map(|series| match series.labels.get(SGLANG_ROLE)?.as_str() {
            "prefill" => Some(Role::Prefill),
            "decode" => Some(Role::Decode),
            _ => None,
        })
    }

    /// A stage by one way; `None` if one of its metrics was not observed.
    fn staged(
        &self,
        stage: Stage,
        way: &[Times],
        servers: &[u32],
        over: (Nanos, Nanos),
    ) -> Option<Staged> {
        let mut staged = Staged { stage, mean_ms: 0.0, count: f64::INFINITY, metrics: Vec::new() };
        for Times(name, unit, label) in way {
            let of = |suffix: &str| -> f64 {
                let name = format!("{name}{suffix}");
                let growth = |server: &u32| self.growth_over(*server, &name, *label, over);
                servers.iter().filter_map(growth).sum()
            };
            let (sum, count) = (of("_sum"), of("_count"));
            if count <= NONE {
                return None;
            }
            staged.mean_ms = finite(staged.mean_ms + sum * unit / count)?;
            staged.count = staged.count.min(count);
            staged.metrics.push(match label {
                Some((key, value)) => format!("{name}{{{key}=\"{value}\"}}"),
                None => (*name).to_owned(),
            });
        }
        Some(staged)
    }

    /// The growth over an interval of the counters of that name, with that label.
    fn growth_over(
        &self,
        target: u32,
        name: &str,
        label: Option<(&str, &str)>,
        over: (Nanos, Nanos),
    ) -> Option<f64> {
        let series = self.series_of(target, name).filter(|recorded| recorded.has(label));
        Some(total(&[rates_of(self, target, series)?], over))
    }
}

#[cfg(test)]
mod tests;
