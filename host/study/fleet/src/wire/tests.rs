use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A frame of every kind.
fn frames() -> Vec<Frame> {
    let messages = vec![
        Message::Hello(Hello {
            protocol: PROTOCOL,
            version: "0.1.0".to_owned(),
            rank: 3,
            size: 4,
            host: "gpu03".to_owned(),
            instance: u64::MAX,
        }),
        Message::Welcome(Box::new(Welcome {
            index: 3,
            of: 4,
            began: "2026-01-02T03:04:05Z".to_owned(),
            order: Some("{}".to_owned()),
            records: 0,
        })),
        Message::Prepared { plan: "cd".repeat(32), facts: json!({"cores": 8}) },
        Message::Ping { id: 1, sent: Nanos(5) },
        Message::Pong { id: 1, asked: Nanos(5), received: Nanos(6), sent: Nanos(7) },
        Message::Ready,
        Message::Start { at: Nanos(u64::MAX), bound: Nanos(1000) },
        Message::Live { figures: json!({"requests": 1, "rate": 0.1}) },
        Message::Ack { offset: 9 },
        Message::Interrupt(Interrupt { times: 1, why: "interrupted".to_owned() }),
        Message::Finished(Finished { ending: json!(null), records: 9, sha256: "ef".repeat(32) }),
        Message::Refused { reasons: vec!["no".to_owned()] },
        Message::Bye,
    ];
    let mut frames: Vec<Frame> = messages.into_iter().map(Frame::from).collect();
    frames.push(Frame { message: Message::Records { offset: 0 }, body: vec![1; 1000] });
    frames
}

fn bytes() -> Vec<u8> {
    let encode = |frame: Frame| frame.encode(Bound::Agent).unwrap();
    frames().into_iter().flat_map(encode).collect()
}

/// A decoder's output for bytes that come in pieces of this size, up to the first error.
fn decode(bytes: &[u8], piece: usize, bound: Bound) -> (Vec<Frame>, Option<WireError>, usize) {
    let mut decoder = Decoder::new(bound);
    let mut all = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.feed(piece);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => all.push(frame),
                Ok(None) => break,
                Err(error) => return (all, Some(error), decoder.held()),
            }
        }
        let most = LENGTHS + bound.header() + bound.body() + piece.len();
        assert!(decoder.held() <= most);
        assert!(decoder.held.capacity() <= 2 * decoder.held().max(STEP) + STEP + bytes.len());
    }
    (all, None, decoder.held())
}

#[test]
fn reads_frames_however_they_are_cut() {
    let bytes = bytes();
    for piece in [1, 2, 7, 64, 1000, bytes.len()] {
        let (read, error, left) = decode(&bytes, piece, Bound::Agent);
        assert_eq!((error, left), (None, 0), "pieces of {piece}");
        assert_eq!(read, frames());
    }
}

#[test]
fn a_cut_stream_gives_its_whole_frames() {
    let bytes = bytes();
    for cut in 0..bytes.len() {
        let (read, error, left) = decode(&bytes[..cut], 100, Bound::Agent);
        assert_eq!(error, None);
        assert_eq!(read, frames()[..read.len()]);
        let whole: usize =
            (read.iter()).map(|frame| frame.encode(Bound::Agent).unwrap().len()).sum();
        assert_eq!(whole + left, cut);
    }
}

/// Each byte damaged in turn: an error or other frames, and never a panic.
#[test]
fn damage_does_no_harm() {
    let bytes = bytes();
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            decode(&damaged, 512, Bound::Agent);
        }
    }
}

#[test]
fn claims_beyond_the_bound_take_no_memory() {
    for (bound, lengths, part) in [
        (Bound::Hello, [0xffff_ffff_u32, 0], "header"),
        (Bound::Hello, [4097, 0], "header"),
        (Bound::Hello, [100, 1], "body"),
        (Bound::Agent, [100, 65_537], "body"),
        (Bound::Coordinator, [(4 << 20) + 1, 0], "header"),
        (Bound::Coordinator, [100, 1], "body"),
    ] {
        let mut decoder = Decoder::new(bound);
        decoder.feed(&lengths.map(u32::to_be_bytes).concat());
        let error = decoder.next().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("at most"), "{error}");
    }
    // A claim within the bound takes memory only as its bytes come.
    let mut decoder = Decoder::new(Bound::Coordinator);
    decoder.feed(&[4_u32 << 20, 0].map(u32::to_be_bytes).concat());
    assert_eq!(decoder.next(), Ok(None));
    assert!(decoder.held.capacity() <= 2 * STEP);
}

/// Neither side sends or takes figures beyond their own bound, which is below an agent's.
#[test]
fn figures_have_a_bound_of_their_own() {
    let live = |bytes: usize| {
        let figures = json!("f".repeat(bytes));
        Frame::from(Message::Live { figures })
    };
    let around = live(0).encode(Bound::Agent).unwrap().len() - LENGTHS;
    let largest = live(FIGURES - around);
    let bytes = largest.encode(Bound::Agent).unwrap();
    assert_eq!(decode(&bytes, 4096, Bound::Agent), (vec![largest], None, 0));
    let error = live(FIGURES - around + 1).encode(Bound::Agent).unwrap_err();
    assert!(error.to_string().contains("figures"), "{error}");
    let header = format!(r#"{{"live":{{"figures":"{}"}}}}"#, "f".repeat(FIGURES));
    let mut bytes = [header.len() as u32, 0].map(u32::to_be_bytes).concat();
    bytes.extend(header.as_bytes());
    let (read, came, _) = decode(&bytes, 4096, Bound::Agent);
    assert!(read.is_empty() && matches!(came, Some(WireError::TooLarge { part: "figures", .. })));
}

#[test]
fn bodies_are_where_they_belong() {
    let mut with = Frame::from(Message::Bye);
    with.body = vec![1];
    let without = Frame::from(Message::Records { offset: 1 });
    for frame in [with, without] {
        let (read, error, _) = decode(&frame.encode(Bound::Agent).unwrap(), 64, Bound::Agent);
        assert!(read.is_empty());
        assert_eq!(error, Some(WireError::Body(frame.message.kind())));
    }
}

/// A newer version's greeting is read, so that it can be refused by name.
#[test]
fn a_greeting_may_have_more_fields() {
    let header = br#"{"hello":{"protocol":9,"version":"7.0","rank":0,"size":2,"host":"a","instance":1,"new":[]}}"#;
    let mut bytes = [header.len() as u32, 0].map(u32::to_be_bytes).concat();
    bytes.extend(header);
    let (read, error, _) = decode(&bytes, 4096, Bound::Hello);
    assert_eq!(error, None);
    assert!(matches!(&read[0].message, Message::Hello(hello) if hello.protocol == 9));
}

proptest! {
    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1_usize..50) {
        decode(&bytes, piece, Bound::Agent);
    }

    #[test]
    fn any_header_does_no_harm(header in "[\\[\\]{}\",:a-z0-9 -]{0,200}") {
        let mut bytes = [header.len() as u32, 0].map(u32::to_be_bytes).concat();
        bytes.extend(header.as_bytes());
        decode(&bytes, 4096, Bound::Agent);
    }
}
