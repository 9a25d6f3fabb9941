//! Calls of the hostile scorer.

use plugins::PluginError;
use plugins::scorer::Scorer;
use serde_json::{Value, json};

use super::fixture::{
    self, DEEDS, SCORER, contract, exchange, fails, grants, load_bytes, patched, roomy, scorer,
    trapped,
};

#[test]
fn a_failure_costs_the_instance_alone() {
    for (deed, cause) in DEEDS {
        let mut judge =
            fixture::judge(&json!({"call": "score", "misbehave": deed, "only-on": "!"}));
        for _ in 0..2 {
            trapped(&fails(judge.score(&exchange("bad!"))), SCORER, "score", cause);
            assert_eq!(judge.score(&exchange("fine")).unwrap(), [("length".to_owned(), 4.0)]);
        }
        assert!(judge.finish().is_ok());
    }
}

#[test]
fn failures_in_open_and_finish_name_the_call() {
    for (deed, cause) in DEEDS {
        let config = json!({"call": "open", "misbehave": deed});
        trapped(&fails(scorer(&config, grants(&config)).open()), SCORER, "open", cause);
        let mut judge = fixture::judge(&json!({"call": "finish", "misbehave": deed}));
        trapped(&fails(judge.finish()), SCORER, "finish", cause);
        assert!(judge.score(&exchange("fine")).is_ok());
    }
}

#[test]
fn a_score_has_a_name_and_a_finite_value() {
    for (answer, says) in [
        ("nan", "the score `length` is NaN; scores have a name and a finite value"),
        ("infinite", "the score `length` is inf; scores have a name and a finite value"),
        ("nameless", "the score `` is 4; scores have a name and a finite value"),
    ] {
        let mut judge = fixture::judge(&json!({"call": "score", "answer": answer}));
        let error = fails(judge.score(&exchange("fine")));
        contract(&error, SCORER, "score", says);
        assert!(judge.finish().is_ok());
    }
    let mut judge = fixture::judge(&json!({"call": "finish", "answer": "nan"}));
    let says = "the score `length` is NaN; scores have a name and a finite value";
    contract(&fails(judge.finish()), SCORER, "finish", says);
}

#[test]
fn an_answer_above_the_limit_is_not_taken() {
    for answer in ["huge", "million"] {
        let config = json!({"call": "score", "answer": answer});
        let mut judge = scorer(&config, roomy(&config)).open().unwrap();
        let says = "it returned more data than the 4 MiB allowed in one call";
        trapped(&fails(judge.score(&exchange("fine"))), SCORER, "score", says);
    }
}

#[test]
fn work_of_the_host_is_charged_to_the_scorer() {
    let mut too_long = "it asked for the tokens of a text, or the text of tokens, of more than the 8 MiB allowed at once (ask for it in pieces)";
    for answer in ["tokens", "tokens-for-ever"] {
        let config = json!({"call": "score", "answer": answer});
        let mut roomy = roomy(&config);
        roomy.limits.returned_bytes = 64 << 20;
        if answer == "tokens-for-ever" {
            roomy.limits.scorer_call_ms = 200;
            too_long = DEEDS[0].1;
        }
        let mut judge = scorer(&config, roomy).open().unwrap();
        let error = fails(judge.score(&exchange("fine")));
        trapped(&error, SCORER, "score", too_long);
        assert!(judge.finish().is_ok());
    }
    // Long prompts are decoded whole.
    let config = json!({"call": "score", "answer": "text"});
    let mut roomy = roomy(&config);
    roomy.limits.returned_bytes = 64 << 20;
    let mut judge = scorer(&config, roomy).open().unwrap();
    assert_eq!(judge.score(&exchange("fine")).unwrap()[0].1, f64::from(3 << 20));
}

#[test]
fn a_refusal_is_no_misbehaviour() {
    let config = json!({"call": "open", "answer": "refuse"});
    let error = fails(scorer(&config, grants(&config)).open());
    assert!(matches!(error, PluginError::Config { .. }), "{error:?}");
    let mut judge = fixture::judge(&json!({"call": "score", "answer": "fault"}));
    let error = fails(judge.score(&exchange("fine")));
    assert!(matches!(error, PluginError::Input { .. }), "{error:?}");
    assert!(!error.is_misbehaviour());
}

/// The hostile scorer, which says this of itself in place of running nothing.
fn running(declared: &str, config: &Value) -> Scorer {
    let folder = tempfile::tempdir().unwrap();
    let plugin = load_bytes(folder.path(), &patched(SCORER, "x-runs-nothing", declared)).unwrap();
    Scorer::new(plugin, config, grants(config)).unwrap()
}

/// Returns the scores of a program of one byte, which passes.
fn ran() -> Vec<(String, f64)> {
    vec![("length".to_owned(), 1.0), ("stopped".to_owned(), 0.0)]
}

/// Returns the scores of a program that the sandbox stopped.
fn stopped() -> Vec<(String, f64)> {
    vec![("length".to_owned(), 0.0), ("stopped".to_owned(), 1.0)]
}

#[test]
fn a_program_that_is_stopped_costs_itself_alone() {
    for (deed, _) in DEEDS {
        let config = json!({"call": "score", "misbehave": deed, "only-on": "!"});
        let mut judge = running("x-runs-answers", &config).open().unwrap();
        for _ in 0..2 {
            assert_eq!(judge.score(&exchange("bad!")).unwrap(), stopped(), "{deed}");
            assert_eq!(judge.score(&exchange("x")).unwrap(), ran(), "{deed}");
        }
        // One sample with four programs; two of them passed.
        let run =
            [("length:pass@1".to_owned(), 1.0 / 2.0), ("length:pass@2".to_owned(), 5.0 / 6.0)];
        let found = judge.finish().unwrap();
        assert_eq!(found.len(), run.len(), "{found:?}");
        for (found, wanted) in found.iter().zip(run) {
            assert_eq!(found.0, wanted.0);
            assert!((found.1 - wanted.1).abs() < 1e-12, "{found:?}");
        }
    }
}

#[test]
fn each_answer_of_an_exchange_is_run_alone() {
    let config = json!({"call": "score", "misbehave": "panic", "only-on": "!"});
    let mut judge = running("x-runs-answers", &config).open().unwrap();
    let mut several = exchange("x");
    several.choices = vec!["bad!".to_owned(), "x".to_owned(), "bad!".to_owned()];
    let mean = [("length".to_owned(), 0.5), ("stopped".to_owned(), 0.5)];
    assert_eq!(judge.score(&several).unwrap(), mean);
    assert_eq!(judge.finish().unwrap()[0], ("length:pass@1".to_owned(), 0.5));
}

#[test]
fn a_program_that_breaks_the_scorers_contract_fails() {
    for answer in ["nan", "infinite", "nameless"] {
        let config = json!({"call": "score", "answer": answer});
        let mut judge = running("x-runs-answers", &config).open().unwrap();
        assert_eq!(judge.score(&exchange("x")).unwrap(), stopped(), "{answer}");
    }
}

#[test]
fn failures_before_a_program_runs_are_the_scorers() {
    let config = json!({"call": "open", "misbehave": "panic"});
    let error = fails(running("x-runs-answers", &config).open());
    trapped(&error, "plugin.wasm", "open", "a panic on purpose");
    let config = json!({"call": "score", "answer": "fault"});
    let mut judge = running("x-runs-answers", &config).open().unwrap();
    let error = fails(judge.score(&exchange("x")));
    assert!(matches!(error, PluginError::Input { .. }), "{error:?}");
    assert_eq!(judge.finish().unwrap(), []);
}
