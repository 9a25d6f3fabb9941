//! The names of metrics that other modules mention: the headline's, and the findings'.

/// Time to first token: the headline's definition.
pub const TTFT: &str = "ttft";
/// Time to first audio.
pub const TTFA: &str = "ttfa";
/// The time that an answer took, for each second of its sound.
pub const REAL_TIME_FACTOR: &str = "real-time-factor";
/// The time that an answer took, for each second of sound in the prompt.
pub const INPUT_REAL_TIME_FACTOR: &str = "input-real-time-factor";
/// End-to-end latency: the headline's definition.
pub const E2E: &str = "e2e";
/// Time per output token after the first: the headline's definition.
pub const TPOT: &str = "tpot";
/// Inter-token latency: the headline's definition.
pub const ITL: &str = "itl";
/// First token, counted from when the request was due.
pub const TTFT_FROM_DUE: &str = "ttft-from-due";
/// End, counted from when the request was due.
pub const E2E_FROM_DUE: &str = "e2e-from-due";
/// The lateness with which this client sent a request.
pub const SEND_LAG: &str = "send-lag";
/// The time for which the cap on requests in flight held a request back.
pub const QUEUE: &str = "queue";
/// The time that a request waited for a connection that was opened for it.
pub const CONNECTION_WAIT: &str = "connection-wait";
/// The time that bytes of a reply waited before they were read.
pub(crate) const READ_LAG: &str = "read-lag";
/// Time in the server's queue, by its own clock.
pub const SERVER_QUEUE: &str = "server-queue";
/// Time from when the server began to work on a request to its first token, by its own clock.
pub const SERVER_PREFILL: &str = "server-prefill";
/// Time from when the server received a request to its first token, by its own clock.
pub const SERVER_TTFT: &str = "server-ttft";
/// Time from the server's first token to its last, by its own clock.
pub const SERVER_DECODE: &str = "server-decode";
/// The time that a request waited for the last of the requests that it depends on.
pub const PARENT_WAIT: &str = "parent-wait";
/// The time from when a session was due until its last answer.
pub const SESSION_TIME: &str = "session-time";
/// Time of a session in which a request was in flight.
pub const SESSION_IN_FLIGHT: &str = "session-in-flight";
/// Time of a session in which none was.
pub const SESSION_IDLE: &str = "session-idle";
/// Requests of a session.
pub const SESSION_TURNS: &str = "session-turns";
/// Share of the tokens that a reader at the objective's pace has to wait for.
pub const STALL_SHARE: &str = "stall-share";
/// The headline's speed of one user.
pub const OUTPUT_SPEED: &str = "output-speed";

/// Names of `vllm bench serve` for metrics that have another name here.
pub const ALIASES: [(&str, &str); 1] = [("e2el", "e2e")];
