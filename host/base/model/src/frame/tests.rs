use super::*;
use proptest::prelude::*;

fn cut(framing: Framing, reads: &[&[u8]]) -> Vec<(u64, Option<String>, String, bool)> {
    let mut framer = Framer::new(framing);
    let mut frames = Frames::default();
    for (i, read) in reads.iter().enumerate() {
        framer.push(Nanos(i as u64), read, &mut frames).unwrap();
    }
    framer.finish(Nanos(reads.len() as u64), &mut frames);
    frames
        .iter()
        .map(|f| {
            let data = String::from_utf8(f.data.to_vec()).unwrap();
            (f.at.0, f.name.map(str::to_owned), data, f.unfinished)
        })
        .collect()
}

fn texts(framing: Framing, reads: &[&[u8]]) -> Vec<String> {
    cut(framing, reads).into_iter().map(|(_, _, data, _)| data).collect()
}

fn events(reads: &[&[u8]]) -> Vec<String> {
    texts(Framing::EventStream, reads)
}

/// Returns a reply in pieces that end at these places.
fn pieces(reply: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
    cuts.retain(|cut| *cut <= reply.len());
    cuts.extend([0, reply.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &reply[cut[0]..cut[1]]).collect()
}

#[test]
fn a_frame_has_its_instant_its_name_and_its_end() {
    let frames = cut(Framing::EventStream, &[b"data: a\n", b"\ndata: b\n\ndata", b": c\n\n"]);
    let instants: Vec<u64> = frames.iter().map(|f| f.0).collect();
    assert_eq!(instants, [1, 1, 2]);
    let frames = cut(Framing::EventStream, &[b"event: e\ndata: a\n\ndata: b\n\n"]);
    assert_eq!(frames[0].1.as_deref(), Some("e"));
    assert_eq!(frames[1].1, None);
    let frames = cut(Framing::EventStream, &[b"data: a\n\ndata: [DO"]);
    assert!(!frames[0].3);
    assert_eq!((frames[1].2.as_str(), frames[1].3), ("[DO", true));
}

#[test]
fn the_standard_says_what_ends_lines_and_events() {
    assert_eq!(events(&[b"data: a\r\n\r\ndata: b\r\rdata: c\n\n"]), ["a", "b", "c"]);
    assert_eq!(events(&[b"data: a\r", b"\n\r", b"\ndata: b\r\n", b"\r\n"]), ["a", "b"]);
    let separators = "data: a\u{2028}b\u{85}c\n\n";
    assert_eq!(events(&[separators.as_bytes()]), ["a\u{2028}b\u{85}c"]);
    // Data lines are joined, and one space is dropped.
    assert_eq!(events(&[b"data:  a\ndata:b\ndata\n\n"]), [" a\nb\n"]);
    // Comments and empty events mean nothing.
    assert_eq!(events(&[b": ping\n\nevent: x\n\nid: 3\n\ndata: a\n\n"]), ["a"]);
}

#[test]
fn lines_whole_bodies_and_raw_reads() {
    assert_eq!(texts(Framing::Lines, &[b"{1}\n\n{2", b"}\r\n{3}"]), ["{1}", "{2}", "{3}"]);
    assert_eq!(texts(Framing::Whole, &[b"a\n", b"b"]), ["a\nb"]);
    assert!(cut(Framing::Whole, &[]).is_empty());
    assert!(cut(Framing::Whole, &[b""]).is_empty());
    let expected = [(0, None, "a\n\n".to_owned(), false), (2, None, "b".to_owned(), false)];
    assert_eq!(cut(Framing::Raw, &[b"a\n\n", b"", b"b"]), expected);
}

proptest! {
    /// Checks that the places at which a reply is cut on its way make no difference to its frames.
    #[test]
    fn cuts_make_no_difference(
        text in "(data: ?[a-zé]{0,4}|event: [ab]|:c|\r\n|\n|\r|\n\n){0,24}",
        cuts in prop::collection::vec(0usize..200, 0..12),
    ) {
        let reads = pieces(text.as_bytes(), cuts);
        let strip = |frames: Vec<(u64, Option<String>, String, bool)>| {
            frames.into_iter().map(|(_, n, d, u)| (n, d, u)).collect::<Vec<_>>()
        };
        prop_assert_eq!(
            strip(cut(Framing::EventStream, &reads)),
            strip(cut(Framing::EventStream, &[text.as_bytes()]))
        );
    }
}

const FOUR: Framing =
    Framing::LengthPrefixed(LengthPrefix { skip: 1, width: 4, adjust: 0, little_endian: false });

#[test]
fn frames_with_their_length_before_them() {
    let reply = b"\0\0\0\0\x02ab\0\0\0\0\0\x01\0\0\0\x03cde";
    let expected = [
        (0, None, "ab".to_owned(), false),
        (0, None, String::new(), false),
        (0, None, "cde".to_owned(), false),
    ];
    assert_eq!(cut(FOUR, &[reply]), expected);
    for at in 0..=reply.len() {
        let (head, tail) = reply.split_at(at);
        assert_eq!(texts(FOUR, &[head, tail]), ["ab", "", "cde"], "cut at {at}");
    }
    let little =
        Framing::LengthPrefixed(LengthPrefix { skip: 0, width: 2, adjust: 0, little_endian: true });
    let one = [(0, None, "ab".to_owned(), false)];
    assert_eq!(cut(little, &[b"\x02\0ab"]), one);
}

#[test]
fn a_frame_that_lacks_bytes_is_unfinished_and_one_too_long_refused() {
    let ends = cut(FOUR, &[b"\0\0\0\0\x02a"]);
    assert_eq!(ends.last().map(|end| (end.2.as_str(), end.3)), Some(("a", true)));
    assert!(cut(FOUR, &[b"\0\0\0"]).is_empty());
    let mut framer = Framer::new(FOUR);
    let pushed = framer.push(Nanos(0), b"\0\xff\xff\xff\xff", &mut Frames::default());
    assert_eq!(pushed, Err(FrameError::Oversized));
}

#[test]
fn messages_of_grpc_and_their_trailers() {
    let fields = [("grpc-status", &b"0"[..]), ("grpc-message", b"all well")];
    let mut reply = b"\0\0\0\0\x02ab\0\0\0\0\0".to_vec();
    reply.extend(trailers(fields.into_iter()));
    let fields = "grpc-status: 0\r\ngrpc-message: all well\r\n";
    let expected = [
        (0, None, "ab".to_owned(), false),
        (0, None, String::new(), false),
        (0, Some(TRAILERS.to_owned()), fields.to_owned(), false),
    ];
    assert_eq!(cut(Framing::Grpc, &[&reply]), expected);
    for at in 0..=reply.len() {
        let (head, tail) = reply.split_at(at);
        assert_eq!(cut(Framing::Grpc, &[head, tail]).len(), 3, "cut at {at}");
    }
    let mut framer = Framer::new(Framing::Grpc);
    let pushed = framer.push(Nanos(0), b"\x01\0\0\0\x01a", &mut Frames::default());
    assert_eq!(pushed, Err(FrameError::Flags(1)), "a compressed message");
}

/// Each byte is copied once to be held, for reads and frames of any size.
#[test]
fn held_bytes_are_copied_once() {
    for framing in [FOUR, Framing::EventStream, Framing::Lines] {
        for size in [1_000_u32, 10_000, 100_000] {
            let content = "x".repeat(size as usize);
            let mut reply = match framing {
                Framing::EventStream => format!("data: {content}\n\n").into_bytes(),
                Framing::Lines => format!("{content}\n").into_bytes(),
                _ => [&[0], &size.to_be_bytes()[..], content.as_bytes()].concat(),
            };
            reply.extend_from_within(..);
            for piece in [1, 3, 1 << 10] {
                let mut framer = Framer::new(framing);
                let mut frames = Frames::default();
                for read in reply.chunks(piece) {
                    framer.push(Nanos(0), read, &mut frames).unwrap();
                }
                assert_eq!(frames.len(), 2);
                assert!(frames.iter().all(|frame| frame.data == content.as_bytes()));
                assert!(
                    framer.copied <= reply.len(),
                    "{framing:?} of {size} in pieces of {piece}: {} for {}",
                    framer.copied,
                    reply.len()
                );
            }
        }
    }
}

proptest! {
    /// Checks that the ends of reads make no difference to frames with their length before them.
    #[test]
    fn cuts_make_no_difference_to_prefixed_frames(
        sizes in prop::collection::vec(0_u32..40, 0..6),
        cuts in prop::collection::vec(0_usize..200, 0..12),
    ) {
        let mut reply = Vec::new();
        for size in &sizes {
            reply.push(9);
            reply.extend_from_slice(&size.to_be_bytes());
            reply.extend(std::iter::repeat_n(b'y', *size as usize));
        }
        let got = texts(FOUR, &pieces(&reply, cuts)).into_iter().map(|text| text.len() as u32);
        prop_assert_eq!(got.collect::<Vec<_>>(), sizes);
    }
}
