//! Cutting a reply into frames.

use model::frame::{FrameError, Framer, Frames, Framing, LengthPrefix};
use model::units::Nanos;

use crate::bytes::{Cuts, first};

/// A reply in any framing: the network's cuts make no difference, all bytes of frames come from the
/// reply, and a batch of frames can be taken apart and put together again.
pub fn framer(data: &[u8]) {
    let (choice, data) = first(data);
    let (seed, data) = first(data);
    let framing = framing(choice);
    let whole = frames(framing, std::iter::once(data));
    let cut = frames(framing, Cuts::new(seed, data));
    if framing != Framing::Raw {
        assert_eq!(whole.0, cut.0, "the outcome");
        assert_eq!(whole.1.bytes(), cut.1.bytes());
        assert_eq!(whole.1.ends(), cut.1.ends());
        assert_eq!(whole.1.names(), cut.1.names());
        assert_eq!(last(&whole.1), last(&cut.1), "the last frame");
    }
    for frames in [&whole.1, &cut.1] {
        assert!(frames.bytes().len() <= data.len(), "more than there was");
        let names: usize = frames.names().iter().map(|(_, name)| name.len()).sum();
        // A byte that is not UTF-8 becomes a replacement character of three.
        assert!(names <= 3 * data.len());
        let mut again = Frames::default();
        for alone in frames.each() {
            assert_eq!(alone.len(), 1);
            again.append(&alone);
        }
        assert!(again.iter().eq(frames.iter()));
    }
}

/// The framing that a byte stands for.
fn framing(choice: u8) -> Framing {
    match choice % 5 {
        0 => Framing::EventStream,
        1 => Framing::Lines,
        2 => Framing::LengthPrefixed(LengthPrefix {
            skip: usize::from(choice >> 4),
            width: [1, 2, 4, 8][usize::from(choice >> 3 & 3)],
            adjust: 0,
            little_endian: choice & 4 != 0,
        }),
        3 if choice & 0x80 != 0 => Framing::Grpc,
        3 => Framing::Whole,
        _ => Framing::Raw,
    }
}

fn frames<'d>(
    framing: Framing,
    reads: impl Iterator<Item = &'d [u8]>,
) -> (Result<(), FrameError>, Frames) {
    let mut framer = Framer::new(framing);
    let mut frames = Frames::default();
    let mut at = 0;
    for read in reads {
        if let Err(oversized) = framer.push(Nanos(at), read, &mut frames) {
            return (Err(oversized), frames);
        }
        at += 1;
    }
    framer.finish(Nanos(at), &mut frames);
    assert!(frames.iter().map(|frame| frame.at).is_sorted(), "an instant goes back");
    (Ok(()), frames)
}

fn last(frames: &Frames) -> Option<(&[u8], bool)> {
    frames.last().map(|frame| (frame.data, frame.unfinished))
}
