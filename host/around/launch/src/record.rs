//! The record of an engine that was launched.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::target::REDACTED;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::is_withheld;
use crate::port::Holder;
use crate::spec::{Spec, Value};

/// Beginnings of the names of variables that change what an engine does. Those of ours that an
/// engine inherits are on record.
const TELLING: [&str; 27] = [
    "ASCEND_",
    "CUBLAS",
    "CUDA_",
    "CUDNN_",
    "FLASHINFER_",
    "GGML_",
    "GLOO_",
    "HF_",
    "HIP_",
    "HSA_",
    "KMP_",
    "LD_PRELOAD",
    "LLAMA_",
    "LMDEPLOY_",
    "MKL_",
    "NCCL_",
    "NVIDIA_",
    "NVTE_",
    "OMP_",
    "PYTORCH_",
    "RAY_",
    "ROCR_",
    "SGLANG_",
    "SGL_",
    "TORCH",
    "TRTLLM_",
    "VLLM_",
];

/// An engine as it was launched. It holds no secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// The launch's identifier, which its processes have as `RUNNER_LAUNCH_ID`.
    pub launch: String,
    /// The engine's name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its working folder; absent where that is the runner's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The variables that were set for it. One that was taken away has no value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Option<String>>,
    /// Variables that it inherits and that are known to matter to engines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inherited: BTreeMap<String, String>,
    /// The host where it is to listen.
    pub host: String,
    /// The port on which it is to listen.
    pub port: u16,
    /// The process that was started.
    pub pid: u32,
    /// The time of its start.
    pub started: String,
    /// The file of its output.
    pub log: PathBuf,
    /// Seconds from its start to its first real answer; absent if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_after_s: Option<f64>,
    /// The process that listens on its port, known once it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<Listener>,
    /// Its version, where the caller asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The process that listens on an engine's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Listener {
    /// A process of the engine.
    Engine,
    /// Others: what hands connections on to a container, or a stranger who came between the start
    /// and the answer.
    Others(Vec<Holder>),
    /// The system does not say.
    Unknown,
}

impl Record {
    /// Of an engine that has just been started.
    pub(crate) fn new(spec: &Spec, launch: &str, pid: u32) -> Self {
        let secrets = spec.secrets();
        let plain = |name: &str, text: &str| {
            if model::redact::is_secret(name) { REDACTED.to_owned() } else { secrets.redact(text) }
        };
        let environment: BTreeMap<String, Option<String>> = (spec.environment.iter())
            .map(|(name, value)| {
                let value = match value {
                    Value::Plain(text) => Some(plain(name, text)),
                    Value::Secret(_) => Some(REDACTED.to_owned()),
                    Value::Unset => None,
                };
                (name.clone(), value)
            })
            .collect();
        let inherited = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let telling = TELLING.iter().any(|begin| name.starts_with(begin));
            let withheld = is_withheld(&name) || spec.withheld.contains(&name);
            let shown = telling && !withheld && !environment.contains_key(&name);
            let value = plain(&name, &value.to_string_lossy());
            shown.then_some((name, value))
        });
        let started = jiff::Timestamp::try_from(model::clock::date());
        Record {
            launch: launch.to_owned(),
            name: spec.name.clone(),
            command: secrets.redact_command(&spec.command),
            directory: spec.directory.clone(),
            inherited: inherited.collect(),
            environment,
            host: spec.host.clone(),
            port: spec.port,
            pid,
            started: started.map(|date| date.to_string()).unwrap_or_default(),
            log: spec.log.clone(),
            ready_after_s: None,
            listener: None,
            version: None,
        }
    }
}
