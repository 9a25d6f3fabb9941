//! Requests that are answered in one batch, compared with the simulator's results.

use std::time::Duration;

use simulator::{Lengths, Parameters, Random, ServedRequest, Work, closed, open};
use tokio::time::{sleep, sleep_until};

use super::*;
use crate::batch::Batch;
use crate::{BatchRecord, End, Truth};

/// Every step takes 10 ms and a millisecond for each request.
const EVEN: &str =
    "[batching]\nslots = 4\nstep = '10ms'\nrequest = '1ms'\nprompt-token = '0s'\njitter = 0";

fn batching(toml: &str) -> Arc<Engine> {
    let script: Script = toml.parse().unwrap_or_else(|error| panic!("{error}"));
    Engine::with_truth(script).unwrap()
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn ask(work: Work, stream: bool) -> String {
    let (prompt, tokens) = ("p".repeat(work.prompt_tokens as usize), work.output_tokens);
    format!(r#"{{"prompt":"{prompt}","max_tokens":{tokens},"stream":{stream}}}"#)
}

fn work(prompt_tokens: u32, output_tokens: u32) -> Work {
    Work { prompt_tokens, output_tokens, ..Work::default() }
}

/// Returns the simulator's results for requests with the arrivals that the mock engine recorded.
fn simulated(engine: &Engine) -> Vec<ServedRequest> {
    let truths = engine.truths();
    let due: Vec<Nanos> = truths.iter().map(|truth| truth.received).collect();
    let work: Vec<Work> = (truths.iter())
        .map(|truth| work(truth.prompt_tokens.unwrap(), truth.output_tokens.unwrap()))
        .collect();
    let script = engine.script();
    let parameters = script.batching.clone().unwrap();
    open(&mut simulator::Engine::new(parameters, script.seed), &due, &work)
}

fn generated(truth: &Truth) -> &[Nanos] {
    &truth.batched.as_ref().unwrap().generated
}

/// The whole millisecond at which the timer fires that waits for an instant.
fn tick(at: Nanos) -> Nanos {
    Nanos(at.0.div_ceil(1_000_000) * 1_000_000)
}

/// With random arrivals, a full batch at times, prompts in chunks, a cache that overflows, and
/// jitter. The schedule is the simulator's to the nanosecond, and each token is seen at the next
/// tick.
#[tokio::test(start_paused = true)]
async fn an_open_loop_agrees_with_the_simulator() {
    let engine = batching(
        "seed = 5\n[batching]\nslots = 6\nstep = '7ms'\nchunk = 100\nkv = 900\njitter = 0.2\ncorrelation = 0.5\nrun = 0.1",
    );
    let lengths = |mean| Lengths { mean, spread: 0.6 };
    let mut random = Random::new(3);
    let mut at = 0.0;
    let requests: Vec<_> = (0..60)
        .map(|_| {
            at += 60.0 * random.exponential();
            let due = engine.origin() + millis(at as u64);
            let body =
                ask(work(lengths(120.0).draw(&mut random), lengths(40.0).draw(&mut random)), true);
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                sleep_until(due).await;
                post(&engine, "/v1/completions", &body).await
            })
        })
        .collect();
    let mut got = Vec::new();
    for request in requests {
        got.push(request.await.unwrap());
    }
    let truths = engine.truths();
    let simulated = simulated(&engine);
    let mut waited = 0;
    for ((truth, served), got) in truths.iter().zip(&simulated).zip(&got) {
        assert_eq!(generated(truth), served.tokens);
        let seen: Vec<Nanos> = got.pieces.iter().map(|(at, _)| *at).collect();
        let ticks: Vec<Nanos> = served.tokens.iter().copied().map(tick).collect();
        // The last piece is the end marker.
        assert_eq!(seen[..seen.len() - 1], ticks);
        assert!(truth.started >= Some(truth.received));
        waited += u32::from(truth.started.unwrap().since(truth.received) > Nanos(20_000_000));
    }
    assert!(waited > 5, "{waited}");
    let preempted: u32 =
        truths.iter().map(|truth| truth.batched.as_ref().unwrap().preemptions).sum();
    let page = get(&engine, "/metrics").await.body();
    let line =
        format!("vllm:num_preemptions_total{{engine=\"0\",model_name=\"mock\"}} {preempted}.0");
    assert!(preempted > 0 && page.contains(&line), "{line}\n{page}");
}

/// Each user sends the next request when its answer ends, at the end of a step. The request is in
/// the next step, as in the simulator.
#[tokio::test(start_paused = true)]
async fn a_closed_loop_agrees_with_the_simulator() {
    // Fewer than there are places, and more.
    for users in [2, 5] {
        compare_closed_loop(users).await;
    }
}

async fn compare_closed_loop(users: usize) {
    let parameters = "slots=3,step=10ms,request=1ms,prompt-token=1ms,chunk=4,jitter=0";
    let script = Script { batching: Some(parameters.parse().unwrap()), ..Script::default() };
    let engine = Engine::with_truth(script).unwrap();
    let work: Vec<Work> = (0..40).map(|i| work(1 + i * 7 % 11, 1 + i * 5 % 17)).collect();
    let queue = Arc::new(std::sync::Mutex::new(work.clone().into_iter()));
    let at_work: Vec<_> = (0..users)
        .map(|_| {
            let (engine, queue) = (Arc::clone(&engine), Arc::clone(&queue));
            tokio::spawn(async move {
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some(work) = next else { return };
                    let got = post(&engine, "/v1/completions", &ask(work, false)).await;
                    assert_eq!(got.status, 200);
                }
            })
        })
        .collect();
    for user in at_work {
        user.await.unwrap();
    }
    let mut model = simulator::Engine::new(parameters.parse().unwrap(), 0);
    let expected = closed(&mut model, users, &work);
    let truths = engine.truths();
    assert_eq!(truths.len(), expected.len());
    for (truth, served) in truths.iter().zip(&expected) {
        assert_eq!(truth.received, served.sent);
        assert_eq!(generated(truth), served.tokens);
        assert_eq!(truth.first_token(), served.tokens.last().copied());
    }
}

/// The same request in every dialect, streamed and whole, and on a route of the script.
#[tokio::test(start_paused = true)]
async fn every_dialect_is_answered_by_the_batch() {
    let routes = r#"
[[route]]
path = "/infer"
prompt = "/input"
tokens = "/new"
stream = "/stream"
event = '{"text":{text}}'
last = '{"text":{text},"took":{seconds}}'
whole = '{"text":{text},"took":{seconds}}'
"#;
    let asks = [
        ("/v1/completions", "", r#""prompt":"hello","max_tokens":3"#),
        (
            "/v1/chat/completions",
            "",
            r#""messages":[{"role":"user","content":"hello"}],"max_tokens":3"#,
        ),
        ("/generate", "", r#""text":"hello","sampling_params":{"max_new_tokens":3}"#),
        ("/generate", "generate = 'lmdeploy'\n", r#""prompt":"hello","max_tokens":3"#),
        ("/infer", "", r#""input":"hello","new":3"#),
    ];
    for (path, generate, keys) in asks {
        for stream in [true, false] {
            let engine = batching(&format!("{generate}{EVEN}\n{routes}"));
            let body = format!(r#"{{{keys},"stream":{stream}}}"#);
            let got = post(&engine, path, &body).await;
            let truth = &engine.truths()[0];
            let at: Vec<u64> = (truth.chunks.iter())
                .filter(|sent| sent.tokens > 0)
                .map(|sent| sent.at.0 / 1_000_000)
                .collect();
            // The first step reads the prompt, so no request of it adds to its time.
            let wanted: &[u64] = if stream { &[10, 21, 32] } else { &[32] };
            assert_eq!(at, wanted, "{path} {stream}");
            assert_eq!(truth.end, End::Whole, "{path} {stream}");
            // Dialects that state the latency state the model's latency.
            let latency = match path {
                "/generate" if generate.is_empty() => Some(r#""e2e_latency":0.032"#),
                "/infer" => Some(r#""took":0.032"#),
                _ => None,
            };
            assert!(latency.is_none_or(|latency| got.body().contains(latency)), "{}", got.body());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn events_hold_the_tokens_of_a_chunk() {
    let got = complete(&batching(&format!("tokens-per-chunk = 2\n{EVEN}")), 6).await;
    assert_eq!(got.at_ms(), [10.0, 32.0, 54.0, 65.0, 65.0]);
    let headers = format!("headers = 'first-token'\n{EVEN}");
    let got = complete(&batching(&headers), 1).await;
    assert_eq!(got.headers_at, Nanos(10_000_000));
    let empty = format!("{EVEN}\n[[fault]]\nkind = 'stop-early'\nafter-tokens = 0");
    assert_eq!(complete(&batching(&empty), 6).await.text(), "");
}

/// The pieces' times in milliseconds and the end of a reply, with a fault.
async fn befallen(fault: &str) -> (Vec<f64>, Result<Nanos, Nanos>, Truth) {
    let engine = batching(&format!("{EVEN}\n[[fault]]\n{fault}"));
    let got = complete(&engine, 5).await;
    // The model goes on until the reply has ended, and no longer.
    sleep(millis(500)).await;
    let load = engine.batch.as_ref().unwrap().load();
    assert_eq!((load.running, load.waiting), (0, 0), "{fault}");
    (got.at_ms(), got.ended, engine.truths().remove(0))
}

#[tokio::test(start_paused = true)]
async fn faults_befall_a_batch_too() {
    let (at, ended, truth) = befallen("kind = 'cut'\nafter-tokens = 2").await;
    assert_eq!((at, ended), (vec![10.0, 21.0], Err(Nanos(32_000_000))));
    assert_eq!((truth.end, generated(&truth).len()), (End::Broken, 3));
    let (at, ..) = befallen("kind = 'stall'\nafter-tokens = 2\nfor = '100ms'").await;
    assert_eq!(at, [10.0, 21.0, 132.0, 143.0, 154.0, 154.0]);
    let (at, ..) = befallen("kind = 'merge'\nevents = 3").await;
    assert_eq!(at, [32.0, 54.0]);
    let (at, ended, _) =
        befallen("kind = 'merge'\nevents = 3\n[[fault]]\nkind = 'cut'\nafter-tokens = 2").await;
    assert_eq!((at, ended), (vec![21.0], Err(Nanos(32_000_000))));
    let (at, ..) = befallen("kind = 'stop-early'\nafter-tokens = 2").await;
    assert_eq!(at, [10.0, 21.0, 21.0]);
    let (at, ..) = befallen("kind = 'slow-headers'\nfor = '25ms'").await;
    assert_eq!(at, [25.0, 25.0, 32.0, 43.0, 54.0, 54.0]);
    let (at, _, truth) = befallen("kind = 'in-band-error'\nafter-tokens = 1").await;
    assert_eq!((at, truth.end), (vec![10.0, 21.0, 21.0], End::Broken));
    let (at, _, truth) = befallen("kind = 'http-error'").await;
    assert_eq!((at, truth.batched), (vec![0.0], None));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_frees_its_place_in_the_batch() {
    let engine = batching(&EVEN.replace("slots = 4", "slots = 1"));
    for stream in [true, false] {
        // The second is in the queue when it leaves.
        let [leaving, second] = [(); 2].map(|()| {
            let (engine, body) = (Arc::clone(&engine), ask(work(5, 1000), stream));
            tokio::spawn(async move { post(&engine, "/v1/completions", &body).await })
        });
        let begun = now(&engine);
        sleep(millis(45)).await;
        let page = get(&engine, "/metrics").await.body();
        for gauge in [
            r#"vllm:num_requests_running{engine="0",model_name="mock"} 1.0"#,
            r#"vllm:num_requests_waiting{engine="0",model_name="mock"} 1.0"#,
        ] {
            assert!(page.contains(gauge), "{page}");
        }
        leaving.abort();
        second.abort();
        // Steps end after 43 and 54 ms: the next request's begins then.
        let got = complete(&engine, 1).await;
        assert_eq!(got.pieces[0].0.since(begun), Nanos(64_000_000));
        sleep(millis(1) - Duration::from_nanos(now(&engine).0 % 1_000_000)).await;
    }
    let truths = engine.truths();
    let left = |truth: &Truth| (truth.end, truth.started.is_some(), generated(truth).len());
    assert_eq!(left(&truths[0]), (End::Abandoned, true, 4));
    assert_eq!(left(&truths[1]), (End::Abandoned, false, 0));
}

#[tokio::test(start_paused = true)]
async fn the_kv_cache_is_published_if_it_has_a_limit() {
    let gauge = r#"vllm:kv_cache_usage_perc{engine="0",model_name="mock"}"#;
    for (kv, wanted) in [("", None), ("\nkv = 100", Some(" 0.08"))] {
        let engine = batching(&format!("{EVEN}{kv}"));
        let asking = spawn_complete(&engine, 9);
        // Five tokens of the prompt and three that were generated.
        sleep(millis(35)).await;
        let page = get(&engine, "/metrics").await.body();
        let line = page.lines().find_map(|line| line.strip_prefix(gauge));
        assert_eq!(line, wanted, "{page}");
        asking.await.unwrap();
    }
}

/// A prefix that is in the prefix cache is not read again.
#[tokio::test(start_paused = true)]
async fn a_cached_prefix_takes_no_time() {
    let script = EVEN.replace("prompt-token = '0s'", "prompt-token = '1ms'");
    let engine = batching(&format!("prefix-cache = true\n{script}"));
    for (began, took) in [(0, 50), (50, 18)] {
        let got = post(&engine, "/v1/completions", &ask(work(40, 1), true)).await;
        assert_eq!(got.at_ms()[0], f64::from(began + took));
    }
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_queue_are_refused() {
    let parameters: Parameters =
        "slots=1,step=10ms,request=0,prompt-token=0,jitter=0".parse().unwrap();
    let script = Script { batching: Some(parameters.clone()), ..Script::default() };
    let mut engine = Engine::with_truth(script).unwrap();
    let one_waits = Batch::with_queue(parameters, 0, true, 1);
    Arc::get_mut(&mut engine).unwrap().batch = Some(one_waits);
    let mut asking = Vec::new();
    for _ in 0..3 {
        asking.push(spawn_complete(&engine, 3));
        sleep(millis(2)).await;
    }
    let mut got = Vec::new();
    for asking in asking {
        got.push(asking.await.unwrap());
    }
    assert_eq!(got[0].at_ms(), [10.0, 20.0, 30.0, 30.0]);
    assert_eq!(got[1].at_ms(), [40.0, 50.0, 60.0, 60.0]);
    assert_eq!((got[2].status.as_u16(), got[2].at_ms()), (503, vec![4.0]));
    assert!(got[2].body().contains("The request queue is full."));
    let refused = &engine.truths()[2];
    assert_eq!((refused.end, &refused.batched), (End::Refused, &None));
}

#[tokio::test(start_paused = true)]
async fn the_seed_decides_the_steps() {
    let ended = async |seed: u32| {
        let engine = batching(&format!("seed = {seed}\n[batching]\nrun = 0.1"));
        complete(&engine, 20).await;
        let [truth] = &engine.truths()[..] else { panic!() };
        truth.batched.clone().unwrap()
    };
    let (one, again, other): (BatchRecord, BatchRecord, BatchRecord) =
        (ended(1).await, ended(1).await, ended(2).await);
    assert_eq!(one, again);
    assert_ne!(one, other);
}

#[test]
fn all_mistakes_are_listed_with_their_places() {
    let text = r#"ttft = "1s"
itl = "1ms"
spread = 0.1
max-concurrency = 3
[batching]
slots = 0
step = 5
jitter = "a lot"
kv = [1]
slot = 3
"#;
    let error = text.parse::<Script>().unwrap_err();
    let mistakes: Vec<String> = (error.problems().iter())
        .map(|problem| format!("{}: {}", problem.place().unwrap(), problem.message()))
        .collect();
    let wanted = [
        "script:1:8: `ttft`: it contradicts `batching`, whose steps decide when tokens come",
        "script:2:7: `itl`: it contradicts `batching`, whose steps decide when tokens come",
        "script:3:10: `spread`: it contradicts `batching`, whose steps decide when tokens come",
        "script:4:19: `max-concurrency`: it contradicts `batching`, whose steps decide when tokens come",
        "script:6:9: `batching`: `slots=0`: expected a whole number from 1 to 100000",
        "script:7:8: `batching`: `step=5`: `5`: a unit is missing; write `5ms`, `5s` or another of ns us ms s m h",
        "script:8:10: `batching`: `jitter=a lot`: expected a number from 0 to 2",
        "script:9:6: `batching`: `kv=[1]`: expected a whole number from 0 to 1000000000000",
        "script:10:1: unknown key `slot`; did you mean `slots`?",
    ];
    assert_eq!(mistakes, wanted);
    let text = "batching = 'slots=4'".parse::<Script>().unwrap_err();
    assert!(text.to_string().contains("expected a table, under [batching]"), "{text}");
    let script = Script { batching: Some(Parameters::default()), spread: 0.1, ..Script::default() };
    let error = script.check().unwrap_err();
    assert!(error.to_string().contains("the script's `spread` is wrong"), "{error}");
}
