use std::collections::HashSet;

use super::*;

fn everything() -> RequestIds {
    let list = |name: &str| vec![name.to_owned()];
    RequestIds {
        request: vec!["x-request-id".to_owned(), "x-correlation-id".to_owned()],
        session: list("x-session-id"),
        parent: list("x-parent"),
        routing_key: list("x-smg-routing-key"),
        traceparent: true,
        ..RequestIds::default()
    }
}

fn run() -> RunId {
    RunId::new(*b"0123456789abcdef")
}

fn member(index: u64) -> Member<'static> {
    Member {
        phase: Phase::Measure,
        index,
        root: index,
        session: None,
        parent: None,
        beginning: None,
    }
}

fn ids_of(ids: &RequestIds, member: &Member<'_>) -> Ids {
    let identities = Identities::new(run(), ids, std::iter::empty());
    *identities.ids(member).unwrap()
}

#[test]
fn a_prefix_is_followed_by_the_number() {
    let ids = RequestIds { prefix: Some("bench-".to_owned()), ..everything() };
    let alone = ids_of(&ids, &member(17));
    assert_eq!(alone.request.as_deref(), Some("bench-17"));
    assert_eq!(alone.session.as_deref(), Some("bench-s17"));
    assert_eq!(alone.parent, None);
    assert_eq!(alone.routing_key, alone.session);
    let warm = ids_of(&ids, &Member { phase: Phase::Warmup, ..member(17) });
    assert_eq!(warm.request.as_deref(), Some("bench-w17"));
    assert_eq!(warm.session.as_deref(), Some("bench-ws17"));
}

#[test]
fn requests_of_a_session_share_its_id_and_its_trace() {
    let turn = |index| Member { root: 3, session: Some("a"), ..member(index) };
    let sub = |index| Member { session: Some("b"), parent: Some("a"), ..turn(index) };
    let [first, second, agent] = [turn(3), turn(4), sub(5)].map(|it| ids_of(&everything(), &it));
    assert_eq!(first.session, second.session);
    assert_eq!(agent.parent, first.session);
    assert_ne!(agent.session, first.session);
    assert_eq!(first.trace, second.trace);
    assert_eq!(first.trace, agent.trace);
    assert_ne!(first.span, second.span);
    assert_ne!(first.request, second.request);
}

#[test]
fn no_two_requests_of_any_phase_or_process_have_an_id_in_common() {
    for form in Form::ALL {
        let mut seen = HashSet::new();
        let ids = RequestIds { form, ..everything() };
        for process in 0..4 {
            let run = RunId::new([process; 16]);
            let identities = Identities::new(run, &ids, std::iter::empty());
            for phase in [Phase::Warmup, Phase::Measure] {
                for index in 0..2_000 {
                    let ids = *identities.ids(&Member { phase, ..member(index) }).unwrap();
                    let parts = [
                        ids.request.unwrap(),
                        ids.session.unwrap(),
                        ids.trace.unwrap().to_string(),
                        ids.span.unwrap().to_string(),
                    ];
                    for part in parts {
                        assert!(seen.insert(part.clone()), "{part}");
                    }
                }
            }
        }
    }
}

/// The form of RFC 9562, 4: version 4 and the variant of the standard.
#[test]
fn uuids_have_the_standards_form() {
    let all = uuid(u128::MAX);
    assert_eq!(all, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
}

#[test]
fn only_requested_fields_are_sent_and_the_users_first() {
    let taken = ["X-Session-ID"];
    let identities = Identities::new(run(), &everything(), taken.into_iter());
    let mut ids = identities.ids(&member(1));
    let fields = identities.fields(&mut ids, |name| name == "x-smg-routing-key");
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-request-id", "x-correlation-id", "traceparent"]);
    let ids = ids.unwrap();
    assert_eq!((&ids.session, &ids.routing_key), (&None, &None));
    assert_eq!(fields[0].1, fields[1].1);
    assert_eq!(fields[0].1.to_str().unwrap(), ids.request.unwrap());
    let [trace, span] = [ids.trace.unwrap().to_string(), ids.span.unwrap().to_string()];
    assert_eq!((trace.len(), span.len()), (32, 16));
    assert_eq!(fields[2].1.to_str().unwrap(), format!("00-{trace}-{span}-01"));
}

#[test]
fn nothing_is_made_where_nothing_is_sent() {
    let off = RequestIds::default();
    let identities = Identities::new(run(), &off, std::iter::empty());
    assert_eq!(identities.ids(&member(0)), None);
}

#[test]
fn prompts_that_begin_alike_have_a_routing_key_in_common() {
    let ids = RequestIds { routing_by: Routing::Prefix, ..everything() };
    let key = |index, text: &str| {
        let beginning = Some(beginning(text.bytes()));
        ids_of(&ids, &Member { beginning, ..member(index) }).routing_key
    };
    assert_eq!(key(1, "alike"), key(2, "alike"));
    assert_ne!(key(1, "alike"), key(1, "other"));
}

#[test]
fn ids_are_read_back_from_records() {
    let ids = ids_of(&everything(), &Member { parent: Some("a"), ..member(1) });
    let json = serde_json::to_string(&ids).unwrap();
    assert_eq!(serde_json::from_str::<Ids>(&json).unwrap(), ids);
    for wrong in [
        r#"{"trace":"00000000000000000000000000000000"}"#,
        r#"{"trace":"+000000000000000000000000000001f"}"#,
        r#"{"span":"1"}"#,
        r#"{"span":"000000000000000G"}"#,
    ] {
        assert!(serde_json::from_str::<Ids>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn prefixes_that_a_header_and_a_log_can_hold() {
    for good in ["bench-", "a/b:c_1.2-"] {
        assert!(RequestIds::is_prefix(good), "{good}");
    }
    for bad in ["", "a b", "é", "a\r\nx: y", "a,b", &"a".repeat(65)] {
        assert!(!RequestIds::is_prefix(bad), "{bad}");
    }
}
