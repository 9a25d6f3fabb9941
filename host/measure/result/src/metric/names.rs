//! The names of metrics that other modules mention. The catalogue defines each.

pub const TTFT: &str = "ttft";
pub const TTFA: &str = "ttfa";
pub const REAL_TIME_FACTOR: &str = "real-time-factor";
pub const INPUT_REAL_TIME_FACTOR: &str = "input-real-time-factor";
pub const E2E: &str = "e2e";
pub const TPOT: &str = "tpot";
pub const ITL: &str = "itl";
pub const TTFT_FROM_DUE: &str = "ttft-from-due";
pub const E2E_FROM_DUE: &str = "e2e-from-due";
pub const SEND_LAG: &str = "send-lag";
pub const QUEUE: &str = "queue";
pub const CONNECTION_WAIT: &str = "connection-wait";
pub(crate) const READ_LAG: &str = "read-lag";
pub const SERVER_QUEUE: &str = "server-queue";
pub const SERVER_PREFILL: &str = "server-prefill";
pub const SERVER_TTFT: &str = "server-ttft";
pub const SERVER_DECODE: &str = "server-decode";
pub const GATEWAY_OVERHEAD: &str = "gateway-overhead";
pub const PARENT_WAIT: &str = "parent-wait";
pub const SESSION_TIME: &str = "session-time";
pub const SESSION_IN_FLIGHT: &str = "session-in-flight";
pub const SESSION_IDLE: &str = "session-idle";
pub const SESSION_TURNS: &str = "session-turns";
pub const STALL_SHARE: &str = "stall-share";
pub const OUTPUT_SPEED: &str = "output-speed";

/// Names of `vllm bench serve` for metrics that have another name here.
pub const ALIASES: [(&str, &str); 1] = [("e2el", "e2e")];
