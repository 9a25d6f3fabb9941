//! The limits on a backend's WebSocket.

use crate::bindings::backend_world::exports::runner::plugin::backend::{Outgoing, Socket};
use model::frame::OUTGOING_BYTES;

/// The longest time between one message and the next, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;
/// Header fields that begin with this belong to the host, except the field of subprotocols.
const OF_HANDSHAKES: &str = "sec-websocket-";
const PROTOCOLS: &str = "sec-websocket-protocol";

pub(super) fn fault(socket: &Socket) -> Option<String> {
    let own = socket.headers.iter().find_map(|(name, _)| {
        let lower = name.to_ascii_lowercase();
        let is_hosts = lower.starts_with(OF_HANDSHAKES) && lower != PROTOCOLS;
        is_hosts.then(|| format!("the header `{name}` belongs to the host"))
    });
    let bytes: usize =
        (socket.messages.iter()).map(|outgoing| outgoing.message.as_bytes().len()).sum();
    let large = (bytes > OUTGOING_BYTES)
        .then(|| format!("its messages have {bytes} bytes, at most {OUTGOING_BYTES} are allowed"));
    own.or(large).or_else(|| socket.messages.iter().find_map(fault_of_message))
}

pub(super) fn fault_of_message(outgoing: &Outgoing) -> Option<String> {
    (outgoing.delay > LONGEST).then(|| {
        format!(
            "a message has a delay of {} ns, at most {LONGEST} (an hour) are allowed",
            outgoing.delay
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::SocketMessage;

    fn socket(header: &str, bytes: usize, delay: u64) -> Socket {
        let message =
            Outgoing { message: SocketMessage::Binary(vec![0; bytes]), delay, hold: false };
        Socket {
            path: "/ws".to_owned(),
            headers: vec![(header.to_owned(), "x".to_owned())],
            messages: vec![message.clone(), message],
        }
    }

    #[test]
    fn forbidden_socket_parts_are_named() {
        let half = OUTGOING_BYTES / 2;
        assert_eq!(fault(&socket(PROTOCOLS, half, LONGEST)), None);
        for (socket, what) in [
            (socket("Sec-WebSocket-Key", 0, 0), "`Sec-WebSocket-Key` belongs"),
            (socket("x", half + 1, 0), "messages have 67108866 bytes"),
            (socket("x", 0, LONGEST + 1), "a delay of 3600000000001 ns"),
        ] {
            let fault = fault(&socket).unwrap();
            assert!(fault.contains(what), "{fault}");
        }
    }
}
