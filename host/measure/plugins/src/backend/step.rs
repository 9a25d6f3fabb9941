//! The limits of one request of several, and of its framing.

use crate::bindings::backend_world::exports::runner::plugin::backend::{Framing, Step};

/// Most bytes of state a plugin may keep between two batches of a reply.
pub(super) const STATE_BYTES: usize = 64 << 10;
/// The longest delay before a request: an hour, in nanoseconds.
const DELAY: u64 = 3_600_000_000_000;
/// The most other statuses than success whose replies are decoded.
const ACCEPTED: usize = 16;

pub(super) fn fault_of_first(step: &Step) -> Option<String> {
    (step.delay > 0)
        .then(|| {
            "the first request of an exchange has a delay; it is sent when it is due".to_owned()
        })
        .or_else(|| fault(step))
}

/// Describes the fault of a next request, except of its place, which the server named.
pub(super) fn fault(step: &Step) -> Option<String> {
    let Step { framing, delay, accepted, context, request: _ } = step;
    if matches!(framing, Framing::Grpc) {
        return Some(
            "a step of several has the framing `grpc`, which only one request can have".to_owned(),
        );
    }
    if *delay > DELAY {
        let seconds = delay / 1_000_000_000;
        return Some(format!(
            "a next request has a delay of {seconds} s, at most an hour is allowed"
        ));
    }
    if accepted.len() > ACCEPTED {
        let statuses = accepted.len();
        return Some(format!("a step accepts {statuses} statuses, at most {ACCEPTED} are allowed"));
    }
    if context.len() > STATE_BYTES {
        let bytes = context.len();
        return Some(format!(
            "a step has {bytes} bytes of context, at most {STATE_BYTES} are allowed"
        ));
    }
    fault_of_framing(framing)
}

pub(super) fn fault_of_framing(framing: &Framing) -> Option<String> {
    match framing {
        Framing::LengthPrefixed(prefix)
            if prefix.skip > 16 || !matches!(prefix.width, 1 | 2 | 4 | 8) =>
        {
            Some(format!(
                "a length of {} bytes after {}: a length must have 1, 2, 4 or 8 bytes, with at most 16 bytes before it",
                prefix.width, prefix.skip
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Request;

    fn step(path: &str) -> Step {
        Step {
            request: Request {
                method: "GET".to_owned(),
                path: path.to_owned(),
                headers: Vec::new(),
                body: Vec::new(),
            },
            framing: Framing::Whole,
            delay: 0,
            accepted: Vec::new(),
            context: Vec::new(),
        }
    }

    #[test]
    fn steps_have_limits() {
        let most = Step {
            delay: DELAY,
            accepted: vec![404; ACCEPTED],
            context: vec![0; STATE_BYTES],
            ..step("/x")
        };
        assert_eq!(fault(&most), None);
        assert!(fault_of_first(&most).unwrap().contains("has a delay"));
        assert_eq!(fault_of_first(&Step { delay: 0, ..most }), None);
        for (step, expected) in [
            (Step { delay: DELAY + 1, ..step("/") }, "at most an hour"),
            (Step { accepted: vec![404; 17], ..step("/") }, "17 statuses, at most 16"),
            (Step { context: vec![0; STATE_BYTES + 1], ..step("/") }, "65537 bytes of context"),
            (Step { framing: Framing::Grpc, ..step("/") }, "the framing `grpc`"),
        ] {
            let message = fault(&step).unwrap();
            assert!(message.contains(expected), "{message}");
        }
    }
}
