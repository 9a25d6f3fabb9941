//! After the start: lost agents, agents that come back, and stops.

use super::*;

#[test]
fn an_agent_is_lost_from_its_last_message_on() {
    let mut scene = Scene::running(2);
    scene.wait(10);
    let live = Message::Live { figures: json!(1) };
    scene.on(Input::Message(11, live));
    let last_contact = Nanos(scene.now);
    scene.wait(2);
    scene.on(Input::Broken(11, "no answer for 10 s".to_owned()));
    assert!(scene.wait(19).is_empty());
    let who = scene.machine.seats()[1].who.clone();
    let lost = Event::Lost { who, from: last_contact, why: "no answer for 10 s".to_owned() };
    assert_eq!(scene.wait(1), [Action::Event(lost)]);
    // It is too late to come back.
    let back = scene.greet(30, 1);
    assert!(is_refused(&back, 30, "rank 1 (node1) came back too late"));
    assert!(scene.wait(30).is_empty());
    let over = scene.on(Input::Finished(10, finished()));
    assert_eq!(over.last(), Some(&Action::Event(Event::Over)));
}

#[test]
fn an_agent_that_comes_back_gets_missed_messages() {
    let mut scene = Scene::running(2);
    scene.on(Input::Broken(11, "reset".to_owned()));
    let sent = scene.on(Input::Interrupt("SIGTERM".to_owned()));
    assert_eq!(sent.len(), 1);
    let back = scene.greet(31, 1);
    assert_eq!(back[0], Action::Welcome(31, 1));
    assert!(matches!(&back[1], Action::Send(31, Message::Start { .. })));
    assert!(matches!(&back[2], Action::Send(31, Message::Interrupt(it)) if it.times == 1));
    scene.on(Input::Finished(31, finished()));
    scene.on(Input::Broken(31, "reset".to_owned()));
    // It did not receive its leave, and repeats that it has finished.
    let back = scene.greet(32, 1);
    assert_eq!(back.last(), Some(&Action::Send(32, Message::Bye)));
    scene.on(Input::Finished(32, finished()));
    let endings = |event: &&&Event| matches!(event, Event::Finished { rank: 1, .. });
    assert_eq!(scene.events().iter().filter(endings).count(), 1);
}

#[test]
fn the_batch_systems_signal_at_an_agent_stops_all() {
    let mut scene = Scene::running(2);
    let stop = || Message::Interrupt(Interrupt { times: 1, why: "SIGTERM".to_owned() });
    let actions = scene.on(Input::Message(11, stop()));
    assert!(matches!(&actions[0], Action::Event(Event::Interrupted { who, why })
        if who.rank == 1 && why == "SIGTERM"));
    assert!(matches!(&actions[1], Action::Send(10, Message::Interrupt(it))
        if it.why == "rank 1 (node1): SIGTERM"));
    assert_eq!(actions.len(), 3);
    // An agent cannot continue for ever.
    scene.on(Input::Message(11, stop()));
    assert!(scene.on(Input::Message(11, stop())).is_empty());
}

#[test]
fn a_clock_that_moves_during_the_run_is_reported() {
    let mut scene = Scene::running(2);
    scene.wait(3);
    scene.answer(11, 3600 * SECOND, 200_000);
    scene.wait(3);
    let actions = scene.answer(11, 3601 * SECOND, 200_000);
    let [Action::Event(Event::ClockMoved { who, moved })] = &actions[..] else {
        panic!("{actions:?}");
    };
    assert_eq!(who.rank, 1);
    assert!(moved.by > 999_000_000, "{moved:?}");
    assert_eq!(moved.from.0 + 3 * SECOND + 200_000, moved.seen.0);
}

#[test]
fn an_unusable_message_loses_the_agent() {
    let mut scene = Scene::running(1);
    let actions = scene.on(Input::Failed(10, "the records came damaged".to_owned()));
    // It gets the reason, and stops sending.
    assert!(is_refused(&actions, 10, "the records came damaged"));
    assert_eq!(actions[1], Action::Close(10));
    assert!(matches!(&actions[2], Action::Event(Event::Lost { why, .. })
        if why == "the records came damaged"));
    assert_eq!(actions.last(), Some(&Action::Event(Event::Over)));
}

#[test]
fn messages_out_of_turn_close_the_connection() {
    for message in [Message::Ready, Message::Bye, Message::Ack { offset: 1 }] {
        let mut scene = Scene::new(rules(1));
        scene.greet(1, 0);
        assert_eq!(scene.on(Input::Message(1, message)), [Action::Close(1)]);
    }
    // Messages of nobody change nothing.
    let mut scene = Scene::new(rules(1));
    assert!(scene.on(Input::Message(77, Message::Ready)).is_empty());
}

/// An agent whose ending never comes answers for its clock for ever; the run does not wait for it.
#[test]
fn an_agent_that_only_answers_for_its_clock_is_lost() {
    let mut scene = Scene::running(2);
    scene.on(Input::Finished(10, finished()));
    let quiet = QUIET.0 / SECOND;
    let answer = |scene: &mut Scene| {
        let (now, arrived) = (Nanos(scene.now), Nanos(scene.now + 1));
        let exchange = Exchange { origin: now, received: now, sent: now, arrived };
        scene.on(Input::Clock(11, exchange));
    };
    // Records and figures are signs of work.
    for input in [Input::Records(11), Input::Message(11, Message::Live { figures: json!(1) })] {
        for _ in 0..quiet - 20 {
            answer(&mut scene);
            assert!(scene.wait(1).is_empty());
        }
        scene.on(input);
    }
    for _ in 0..quiet + 20 {
        answer(&mut scene);
        scene.wait(1);
    }
    let events = scene.events();
    let lost = events.iter().find_map(|event| match event {
        Event::Lost { who, why, .. } => Some((who.rank, why.clone())),
        _ => None,
    });
    let (rank, why) = lost.expect("it is lost");
    assert!(rank == 1 && why.contains("no figures, records or ending for 600 s"));
    assert_eq!(events.last(), Some(&&Event::Over));
}

/// A process whose part is over comes again for the next run of a study, before rank 0 has ended
/// this one: it is neither taken nor refused, and asks again.
#[test]
fn a_process_that_has_finished_waits_for_the_next_run() {
    let mut scene = Scene::running(2);
    scene.on(Input::Finished(11, finished()));
    let again = Hello { instance: 7, ..Scene::hello(1, 2) };
    assert_eq!(scene.on(Input::Hello(12, again)), [Action::Close(12)]);
    // The first instance may still come back for the end of its part.
    let back = scene.on(Input::Hello(13, Scene::hello(1, 2)));
    assert!(back.contains(&Action::Welcome(13, 1)), "{back:?}");
}
