//! Lanes against the requests that AIPerf sent for the same sessions and instants.

use super::*;
use crate::sessions::graph::Policy;
use crate::sessions::history::{ReplyContent, text_message};
use model::session::{AfterFailure, History};
use plugins::backend::{Dependency, Role, Sample, Turn};
use serde_json::{Value, json};

const LANE: Policy =
    Policy { history: History::Live, after_failure: AfterFailure::Continue, by_last: true };

/// AIPerf's own delay from an instant to its request, in milliseconds.
const LATE: std::ops::Range<f64> = -2.0..60.0;

fn file() -> Value {
    serde_json::from_str(include_str!("../../lanes/aiperf.json")).unwrap()
}

fn ms(value: &Value) -> Nanos {
    Nanos::from_millis_f64(value.as_f64().unwrap())
}

fn turn(value: &Value) -> (String, u32) {
    (value[0].as_str().unwrap().to_owned(), value[1].as_u64().unwrap() as u32)
}

fn session(requests: &Value) -> Graph {
    let requests = requests.as_array().unwrap().iter().enumerate();
    let samples = requests.map(|(at, request)| {
        let (session, index) = turn(request);
        let after = request[2].as_array().unwrap().iter();
        let after = after.map(|after| Dependency {
            sample: after[0].to_string(),
            point: Point::End,
            delay: ms(&after[1]).0,
        });
        let sample = Sample {
            after: after.collect(),
            recorded_duration: Some(ms(&request[3]).0),
            turn: Some(Turn { session, index }),
            ..Sample::bare(&at.to_string(), Prompt::Text("text".to_owned()))
        };
        (at as u64, sample)
    });
    Graph::new(samples.collect(), LANE).unwrap()
}

fn reply() -> Option<ReplyContent> {
    Some(ReplyContent { answer: text_message(Role::Assistant, "a"), carry: None })
}

/// Feeds AIPerf's ends of replies to each lane, and expects AIPerf's requests at AIPerf's times.
#[test]
fn lanes_send_what_aiperf_sent() {
    let file = file();
    let rows = file["requests"].as_array().unwrap();
    // The beginning of AIPerf's measured phase, by its earliest requests.
    let (begun, mut compared) = (10_815.0, 0);
    for (lane, first) in file["lanes"].as_array().unwrap().iter().enumerate() {
        let of_lane = |row: &&Value| row[1].as_u64() == Some(lane as u64);
        let mut replays: Vec<(u64, &str)> = Vec::new();
        for row in rows.iter().filter(of_lane) {
            let trace = row[3].as_str().unwrap().split("::").next().unwrap();
            let replay = (row[2].as_u64().unwrap(), trace);
            if !replays.contains(&replay) {
                replays.push(replay);
            }
        }
        for (number, (pass, trace)) in replays.into_iter().enumerate() {
            let mut graph = session(&file["sessions"][trace]);
            let recording = graph.recording();
            let mine = || {
                rows.iter().filter(of_lane).filter(move |row| {
                    row[2].as_u64() == Some(pass) && row[3].as_str().unwrap().starts_with(trace)
                })
            };
            let mut due: HashMap<(String, u32), f64> = HashMap::new();
            let name = |graph: &Graph, node: usize| {
                let turn = graph.nodes[node].sample.turn.as_ref().unwrap();
                (turn.session.clone(), turn.index)
            };
            if number == 0 {
                let entered = graph.enter(&recording, ms(&first[1])).unwrap();
                graph.begin_sub_agents(&recording);
                let warm = mine().filter(|row| row[0] == "warmup");
                let mut warm: Vec<_> =
                    warm.map(|row| (turn(&json!([row[3], row[4]])), &row[7])).collect();
                warm.sort_by(|one, other| one.0.cmp(&other.0));
                let mut primers: Vec<_> = (entered.primers.iter())
                    .map(|primer| (name(&graph, primer.index as usize), primer.lead))
                    .collect();
                primers.sort();
                assert_eq!(primers.len(), warm.len(), "{lane}");
                for ((primer, lead), (expected, at)) in primers.iter().zip(warm) {
                    assert_eq!(*primer, expected);
                    let late = at.as_f64().unwrap() + lead.as_millis_f64() - 10_959.149;
                    assert!(LATE.contains(&late), "{primer:?}: {late} ms");
                }
                for (node, pause) in entered.open {
                    due.insert(name(&graph, node), begun + pause.as_millis_f64());
                }
            } else {
                graph.begin_sub_agents(&recording);
            }
            let mut sent: Vec<_> = mine().filter(|row| row[0] == "profiling").collect();
            sent.sort_by(|one, other| {
                one[8].as_f64().unwrap().total_cmp(&other[8].as_f64().unwrap())
            });
            for row in sent {
                let this = turn(&json!([row[3], row[4]]));
                let node = (0..graph.nodes.len()).find(|node| name(&graph, *node) == this).unwrap();
                if let Some(due) = due.remove(&this) {
                    let late = row[7].as_f64().unwrap() - due;
                    assert!(LATE.contains(&late), "lane {lane}, {this:?}: {late} ms");
                    compared += 1;
                } else {
                    assert_eq!(node, 0, "lane {lane}: {this:?} was not due");
                }
                graph.compose(node).unwrap();
                for ready in graph.over(node, ms(&row[8]), reply()).ready {
                    due.insert(name(&graph, ready), graph.due(ready).as_millis_f64());
                }
            }
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn overflow_ends_the_stream_and_lets_others_go() {
    let file = file();
    let mut graph = session(&file["sessions"]["gamma"]);
    for node in [0, 1] {
        graph.compose(node).unwrap();
        graph.over(node, Nanos(1), reply());
    }
    // Both sub-agents begin, and the agent waits for them: the first reply of one is an overflow.
    graph.compose(2).unwrap();
    assert!(graph.cut(2, Nanos(5)).ready.is_empty());
    for node in [4, 5] {
        graph.compose(node).unwrap();
        let steps = graph.over(node, Nanos(9), reply());
        assert_eq!(steps.ready, if node == 4 { vec![5] } else { vec![6] });
    }
    // An overflow of the agent ends the session: nothing else is under way.
    graph.compose(6).unwrap();
    assert_eq!(graph.cut(6, Nanos(20)), Steps::default());
    assert!(graph.is_over());
}
