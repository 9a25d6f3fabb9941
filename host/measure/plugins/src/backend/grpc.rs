//! Replies to control requests over gRPC: one message with its prefix, and the trailer fields as
//! the last frame.

/// The flags of a frame with trailer fields.
const TRAILERS: u8 = 0x80;

pub(super) fn message(reply: &[u8]) -> Result<&[u8], String> {
    let mut rest = reply;
    let mut message = None;
    loop {
        let Some((prefix, after)) = rest.split_first_chunk::<5>() else {
            return Err(
                "a reply of gRPC has no trailers; expected a message and a frame with the trailer fields"
                    .to_owned(),
            );
        };
        let [flags, length @ ..] = *prefix;
        let length = u32::from_be_bytes(length) as usize;
        let Some((bytes, after)) = after.split_at_checked(length) else {
            return Err("a reply of gRPC ends in the middle of a message".to_owned());
        };
        match (flags, message) {
            (0, None) => message = Some(bytes),
            (0, Some(_)) => {
                return Err("a reply of gRPC to a control request has several messages".to_owned());
            }
            (TRAILERS, Some(message)) => return Ok(message),
            (TRAILERS, None) => return Err("a reply of gRPC has no message".to_owned()),
            _ => return Err(format!("a message of gRPC has the flags {flags}; expected 0")),
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_reply_is_a_message_and_trailers() {
        let trailers = b"\x80\0\0\0\x10grpc-status: 0\r\n";
        let reply = |frames: &[&[u8]]| [frames.concat(), trailers.to_vec()].concat();
        assert_eq!(message(&reply(&[b"\0\0\0\0\x02ab"])), Ok(&b"ab"[..]));
        assert_eq!(message(&reply(&[b"\0\0\0\0\0"])), Ok(&b""[..]));
        for (wrong, expected) in [
            (b"\0\0\0\0\x02ab".to_vec(), "has no trailers"),
            (b"ab".to_vec(), "has no trailers"),
            (b"\0\0\0\0\x03ab".to_vec(), "in the middle of a message"),
            (reply(&[]), "has no message"),
            (reply(&[b"\0\0\0\0\x01a", b"\0\0\0\0\x01b"]), "several messages"),
            (reply(&[b"\x01\0\0\0\x01a"]), "the flags 1"),
        ] {
            let error = message(&wrong).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
