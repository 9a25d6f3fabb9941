//! Folders of cases and components, mistakes in cases, and `--bless`.

use super::{Project, SAMPLE, WORDS};
use crate::support::process::run;

#[test]
fn blessing_writes_expectations_that_hold() {
    let project = Project::asking("", "reply.lines", b"one\nTWO\nend\n");
    project.write("cases/words/explained.json", "{}\n");
    let ended = project.test(&[]).with_code(4);
    assert!(ended.stdout.contains("events.json is missing, but the plugin gave a result for it"));
    assert!(
        ended.stdout.contains("+  {\"frame\":0,\"kind\":\"text\",\"text\":\"one#1\",\"tokens\":1}")
    );
    assert!(ended.stdout.contains("explained.json is there, but the plugin gave no result for it"));
    assert!(ended.stderr.contains("--bless"), "{}", ended.stderr);

    let ended = project.test(&["--bless"]).with_code(0);
    for line in [
        "wrote words/request.http",
        "wrote words/events.json",
        "wrote words/error.txt",
        "removed words/explained.json",
    ] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    assert_eq!(project.read("cases/words/request.http"), "POST /1\n");
    assert_eq!(project.read("cases/words/error.txt"), "protocol: `TWO` is no word\n");
    let expected = "[\n  {\"frame\":0,\"kind\":\"text\",\"text\":\"one#1\",\"tokens\":1}\n]\n";
    assert_eq!(project.read("cases/words/events.json"), expected);
    let ended = project.test(&[]).with_code(0);
    assert_eq!(ended.stderr, "");
    // A second time there is nothing to write.
    let ended = project.test(&["--bless"]).with_code(0);
    assert!(!ended.stdout.contains("wrote"), "{}", ended.stdout);
}

#[test]
fn a_project_brings_its_component() {
    let project = Project::asking("", "reply.lines", WORDS);
    run(&mut project.command(&[])).with_stderr(4, "run `runner plugin build .`");
    std::fs::create_dir_all(project.path("target/plugin")).unwrap();
    std::fs::copy(&project.component, project.path("target/plugin/mine.wasm")).unwrap();
    run(&mut project.command(&["--bless"])).with_code(0);
    for dir in [".", "cases", "cases/words"] {
        let ended = run(&mut project.command(&[dir])).with_code(0);
        assert!(ended.stdout.contains("1 case: passed"), "{dir}: {}", ended.stdout);
    }
}

#[test]
fn cases_in_no_project_need_the_component_named() {
    let project = Project::new("unsteady-backend");
    project.write("some/a/sample.json", SAMPLE);
    let ended = run(&mut project.command(&["some"])).with_code(2);
    assert!(ended.stderr.contains("name the component with --plugin"));
    project.test(&["some", "--bless"]).with_code(0);
    project.test(&["some/a"]).with_code(0);
}

#[test]
fn a_filter_chooses_and_must_choose_something() {
    let project = Project::asking("", "reply.lines", WORDS);
    project.write("cases/other/sample.json", SAMPLE);
    let ended = project.test(&["--bless", "--filter", "oth"]).with_code(0);
    assert!(ended.stdout.contains("other") && !ended.stdout.contains("words"));
    project.test(&["--filter", "nothing"]).with_stderr(3, "none of the 2 cases");
}

#[test]
fn all_mistakes_of_all_cases_are_reported_at_once() {
    let project = Project::new("unsteady-backend");
    project.write("cases/a/sample.json", "{\"id\": 1}");
    project.write("cases/a/event.json", "[]");
    project.write("cases/a/config.toml", "framing = \"lines\"\nframing = \"raw\"\n");
    project.write("cases/b/settings.json", "{\"modell\": \"tiny\"}");
    project.write("cases/b/reply.sse", "");
    project.write("cases/b/reply.lines", "");
    project.write("cases/b/reply.ok.json", "");
    project.write("cases/b/reply.xml", "");
    project.write("cases/c/control.txt", "reboot\n");
    project.write("cases/d/case.toml", "");
    project.write("cases/d/sample.json", SAMPLE);
    let ended = project.test(&[]).with_code(3);
    assert_eq!(ended.stdout, "");
    for part in [
        "cases/a/sample.json: invalid type: integer `1`",
        "cases/a/event.json: a backend case has no such file; did you mean events.json?",
        "cases/a/config.toml: ",
        "cases/b/settings.json: unknown field `modell`",
        "cases/b/: a backend's case needs a sample.json",
        "cases/b/: a case has one reply, but this one has several",
        "cases/b/reply.ok.json: `ok` is not an error status",
        "cases/b/reply.xml: a reply file must end in .sse, .lines, .grpc, .json, .txt, .bin",
        "cases/c/control.txt: expected one of health, list-models, flush-cache, metrics",
        "cases/d/case.toml: a backend case has no such file",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

#[test]
fn mistakes_in_cases_of_datasets_and_scorers_are_reported() {
    let project = Project::new("unsteady-dataset");
    project.write("cases/a/config.toml", "x = inf\n");
    project.write("cases/b/case.toml", "tokenizer = \"pears\"\nfiles.data = \"../none.json\"\n");
    let ended = project.test(&[]).with_code(3);
    for part in [
        "cases/a/: a dataset's case needs a case.toml",
        "cases/a/config.toml: inf cannot be passed to a plugin",
        "tokenizer: expected `bytes`, `pairs` or the path of a tokenizer.json",
        "files.data: no such file",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let project = Project::new("hostile-scorer");
    project.write("cases/a/exchanges.json", "[]");
    project.write("cases/a/exchanges.jsonl", "");
    project.write("cases/b/exchanges.jsonl", "{\"id\": \"a\"}\n\n{\"id\": 2}\n");
    project.write("cases/c/config.toml", "");
    let ended = project.test(&[]).with_code(3);
    for part in [
        "cases/a/exchanges.jsonl: a case has an exchanges.json or an exchanges.jsonl",
        "cases/b/exchanges.jsonl: line 3: invalid type",
        "cases/c/: a scorer's case needs an exchanges.json",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

#[test]
fn no_case_no_folder_no_plugin_and_a_wrong_framing() {
    let project = Project::new("unsteady-backend");
    project.test(&[]).with_stderr(3, "has no cases");
    project.test(&["nowhere"]).with_stderr(3, "is not a folder");
    project.write("cases/a/sample.json", SAMPLE);
    project.write("cases/a/reply.sse", "data: one\n\n");
    run(project.command(&["--plugin", "none.wasm"]).arg("."))
        .with_stderr(4, "`none.wasm` not found");
    let ended = project.test(&["--bless"]).with_code(4);
    assert!(ended.stdout.contains("belongs in reply.lines, not in reply.sse"));
    project.test(&["--json", "--format", "junit"]).with_code(2);
}

#[test]
fn pictures_lie_beside_the_sample_and_must_be_there() {
    let project = Project::new("unsteady-backend");
    let sample = "{\"id\": \"1\", \"prompt\": {\"messages\": [{\"role\": \"user\", \"content\": [{\"image\": {\"media-type\": \"image/png\", \"file\": \"a.png\"}}]}]}}";
    project.write("cases/a/sample.json", sample);
    let ended = project.test(&[]).with_code(3);
    assert!(
        ended.stderr.contains("cases/a/a.png: the file does not exist, but sample.json names it")
    );
    project.write("cases/a/a.png", "x");
    project.test(&["--bless"]).with_code(0);
    project.write("cases/a/b.png", "x");
    let ended = project.test(&[]).with_code(3);
    assert!(ended.stderr.contains("b.png: a backend case has no such file"));
}
