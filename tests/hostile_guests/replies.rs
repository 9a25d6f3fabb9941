//! Bytes of replies that the hostile backend keeps, carries to the next request, and leaves unread.

use model::frame::{Framer, Frames, Framing};
use model::units::Nanos;
use plugins::backend::{Fold, Meaning};
use serde_json::json;

use super::backend::{head, is_well, touchy};
use super::fixture::{self, BACKEND, backend, contract, fails, frames, roomy};

#[test]
fn values_at_the_size_limit_are_accepted() {
    let mut dialect = fixture::dialect(&touchy("decode", "answer", "full-carry"));
    let events = dialect.decode(&mut Fold::default(), &mut frames(&["!"]));
    let carried = events.unwrap().into_iter().find_map(|(_, what)| match what {
        Meaning::Carry(bytes) => Some(bytes.len()),
        _ => None,
    });
    assert_eq!(carried, Some(64 << 10));

    let mut dialect = fixture::dialect(&touchy("decode", "answer", "full-steps"));
    let events = dialect.decode(&mut Fold::default(), &mut frames(&["!"])).unwrap();
    let is_there = |wanted: fn(&Meaning) -> bool| events.iter().any(|(_, what)| wanted(what));
    assert!(is_there(|what| matches!(what, Meaning::Timings(seen) if seen.decode == Some(0.0))));
    assert!(is_there(
        |what| matches!(what, Meaning::Speculation(seen) if seen.steps_by_accepted.len() == 1024)
    ));

    let mut dialect = fixture::dialect(&touchy("decode", "answer", "full-state"));
    let mut fold = Fold::default();
    dialect.decode(&mut fold, &mut frames(&["!"])).unwrap();
    assert_eq!(fold.state.len(), 64 << 10);

    let mut dialect = fixture::dialect(&json!({"call": "begin", "answer": "full-state"}));
    assert_eq!(dialect.begin(&head()).unwrap().len(), 64 << 10);
}

#[test]
fn the_state_that_a_reply_begins_with_is_small() {
    let mut dialect = fixture::dialect(&json!({"call": "begin", "answer": "large-state"}));
    let error = fails(dialect.begin(&head()));
    contract(&error, BACKEND, "begin", "it keeps 65537 bytes of state, at most 65536 are allowed");
    is_well(&mut dialect);
    // A request that it refuses to begin is no misbehaviour.
    let mut dialect = fixture::dialect(&json!({"call": "begin", "answer": "refuse"}));
    assert!(!fails(dialect.begin(&head())).is_misbehaviour());
}

/// Bytes as a network delivers them.
fn raw(bytes: &[u8]) -> Frames {
    let mut frames = Frames::default();
    let mut framer = Framer::new(Framing::Raw);
    framer.push(Nanos::ZERO, bytes, &mut frames).unwrap();
    frames
}

#[test]
fn unread_bytes_come_again_in_front() {
    let mut dialect = fixture::dialect(&json!({"raw": true}));
    let mut fold = Fold::default();
    for piece in ["one ", "two", "\n"] {
        let events = dialect.decode(&mut fold, &mut raw(piece.as_bytes())).unwrap();
        assert!(events.is_empty(), "{events:?}");
    }
    assert_eq!((fold.state.len(), fold.bytes()), (0, 8));
    let events = dialect.decode(&mut fold, &mut raw(b"\n")).unwrap();
    let texts: Vec<&str> = (events.iter())
        .filter_map(|(_, what)| match what {
            Meaning::Text(piece) => Some(piece.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((texts, fold.bytes()), (vec!["9"], 0));
}

#[test]
fn a_frame_of_raw_bytes_may_be_16_mib_and_no_more() {
    let config = json!({"raw": true});
    let mut roomy = roomy(&config);
    roomy.limits.returned_bytes = 64 << 20;
    let mut dialect = backend(&config, roomy).open().unwrap();
    let most = 16 << 20;
    let mut fold = Fold::default();
    let mut half = raw(&vec![b'x'; most / 2]);
    dialect.decode(&mut fold, &mut half).unwrap();
    dialect.decode(&mut fold, &mut half).unwrap();
    assert_eq!(fold.bytes(), most);
    let before = fold.clone();
    let error = fails(dialect.decode(&mut fold, &mut raw(b"x")));
    let says = "it leaves 16777217 bytes unread, at most 16777216 are allowed";
    contract(&error, BACKEND, "decode", says);
    assert!(fold == before, "after an error, nothing has changed");
}

#[test]
fn unread_bytes_and_raw_state_have_limits() {
    for (answer, says) in [
        ("unread-too-much", "it leaves 4 bytes unread of a batch of 3"),
        ("large-state", "it keeps 65537 bytes of state, at most 65536 are allowed"),
    ] {
        let mut dialect = fixture::dialect(
            &json!({"raw": true, "call": "decode", "answer": answer, "only-on": "!"}),
        );
        let error = fails(dialect.decode(&mut Fold::default(), &mut raw(b"ab!")));
        contract(&error, BACKEND, "decode", says);
    }
}
