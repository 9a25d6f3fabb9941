//! Pages of labs in a world whose truth is known: curves, hostile names, and the schemas of their
//! data.

use std::path::Path;

use super::world::{Fate, Settings, World};
use crate::findings::{self, LabReport};
use crate::journal::{Event, Journal, Ready};
use crate::page::page;
use crate::walk::SavedLab;
use crate::{Results, schema};
use report::document::Document;

const ENGINE: &str = "[[engines]]\nname = \"vllm\"\nlaunch = [\"vllm\", \"serve\", \"m\"]\n";

/// Compares with a committed file; `BLESS=1` writes it instead.
pub fn golden(path: impl AsRef<Path>, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == now, "{} differs; BLESS=1 writes it anew. Now:\n{now}", path.display());
}

/// Returns the body of a page, without its style, its script and the version of this program.
pub fn body(page: &Document) -> String {
    let html = page.html();
    let (_, rest) = html.split_once("<main").unwrap();
    let (main, _) = rest.split_once("</main>").unwrap();
    let by = concat!("Made by runner ", env!("CARGO_PKG_VERSION"), ".");
    let main = main.replace(by, "Made by runner VERSION.");
    format!("<main{main}</main>\n")
}

fn report(world: &World) -> (LabReport, Results, Vec<Event>) {
    let mut events = Vec::new();
    let results = world.run(&mut events);
    let report = findings::lab_report(&world.lab, &world.scenarios, &results);
    (report, results, events)
}

/// Throughput follows the load up to 400 tokens a second, or 600 if fast; then latency rises.
fn queue(settings: &Settings, scenario: &str) -> Fate {
    let load = scenario.rsplit('-').next().and_then(|load| load.parse().ok());
    let load: f64 = load.unwrap_or(1.0);
    let most = if settings["mode"] == "fast" { 600.0 } else { 400.0 };
    let tokens = (25.0 * load).min(most);
    Fate::Both(tokens, 40.0 * (25.0 * load / tokens))
}

fn loads() -> World {
    let loads = [1, 4, 8, 16, 32, 64].map(|load| format!("\"chat-{load}.toml\""));
    let text = format!(
        "name = \"Loads\"\nstrategy = \"matrix\"\nscenarios = [{}]\n\
         [objective]\nmaximize = \"throughput.output-tokens-per-s\"\n{ENGINE}\
         [engines.options]\nmode = [\"plain\", \"fast\"]\n",
        loads.join(", ")
    );
    World::new(&text, queue)
}

/// The engines of this world answer 20 seconds after their start, and a second later each round.
#[test]
fn starts_have_the_time_of_the_first_answer() {
    let (report, results, events) = report(&loads());
    let trials = report.studies[0].trials.len();
    assert_eq!((trials, results.ready.len()), (2, report.starts.len()));
    assert!(!report.starts.is_empty());
    for start in &report.starts {
        assert_eq!(start.ready_after_s, 20.0 + f64::from(start.round));
    }
    assert!(body(&page(&report)).contains("Ready after, median (s)"));

    // An engine that ran already, and a journal of a program that did not keep the figure.
    let without = events.into_iter().map(|event| match event {
        Event::Ready(ready) => Event::Ready(Ready { ready_after_s: None, ..ready }),
        other => other,
    });
    let lines: String = without.map(|event| event.line()).collect();
    assert!(!lines.contains("ready-after-s"));
    let events = Journal::read(lines.as_bytes()).unwrap().events;
    let world = loads();
    let results = Results::from_events(&events);
    let report = findings::lab_report(&world.lab, &world.scenarios, &results);
    assert!(report.starts.is_empty());
    assert!(!body(&page(&report)).contains("Ready after"));
}

#[test]
fn scenarios_that_differ_in_their_load_are_a_curve() {
    let (report, ..) = report(&loads());
    let curves = &report.studies[0].curves;
    assert_eq!(curves.len(), 1);
    assert_eq!(curves[0].name, "chat");
    let knee = |line: usize| curves[0].lines[line].curve.knee.unwrap().at;
    assert!((knee(0) - 16.0).abs() < 1.0 && (knee(1) - 24.0).abs() < 1.5);
    let on_front = |line: usize| -> Vec<bool> {
        let places = curves[0].lines[line].curve.places.iter();
        places.map(|place| place.on_front.unwrap()).collect()
    };
    assert!(!on_front(0)[4..].contains(&true), "the fast mode beats it");
    assert!(on_front(1)[3..5].contains(&true));
    let page = page(&report);
    golden("src/tests/loads.md", &page.markdown());
    let names: Vec<&str> = page.charts().map(|chart| chart.name.as_str()).collect();
    assert_eq!(names[..2], ["gains-1", "curve-1-1"], "the answer is first");
    assert_eq!(names.len(), 2 + 6, "and a front for each load");
    assert!(body(&page).contains("knee of mode fast at "));
}

/// Suspect runs are counted below the answer and marked in each mean. A throughput at a fixed rate
/// is questioned. Engines that never answered come first.
#[test]
fn doubts_stand_beside_the_answer() {
    let truth = |settings: &Settings, _: &str| match settings["mode"].as_str() {
        "fast" => Fate::Tokens(500.0),
        _ => Fate::Loses(400.0, 0.005),
    };
    let mut world = World { truth, ..loads() };
    for load in world.scenarios.iter_mut().filter_map(|scenario| scenario.load.as_mut()) {
        load.kind = search::Load::Rate;
    }
    let (found, ..) = report(&world);
    let text = page(&found).markdown();
    let (answer, rest) = text.split_once("## Setup").unwrap();
    let runs = found.spent.runs;
    assert!(answer.contains(&format!("{} of {runs} runs are suspect", runs / 2)), "{answer}");
    assert!(answer.contains("chat-4 offers 4 requests per second whatever the engine"), "{answer}");
    assert!(rest.contains("\n| baseline † |") && !rest.contains("mode fast †"), "{rest}");

    let world = World { truth: |_, _| Fate::Crashes, ..loads() };
    let text = page(&report(&world).0).markdown();
    let (first, answer) = text.split_once("## Conclusion").unwrap();
    assert!(first.contains("No engine answered") && first.contains(": ValueError"), "{first}");
    assert!(answer.contains("\nNo trial was measured.\n"), "{answer}");
}

/// A release of two models.
fn release() -> String {
    String::from(
        "name = \"A release\"\nstrategy = \"matrix\"\nscenarios = [\"chat.toml\", \"long.toml\"]\n\
         [[models]]\nname = \"small\"\npath = \"org/small\"\n[[models]]\nname = \"large\"\n\
         [[engines]]\nname = \"a\"\nlaunch = [\"a\", \"{model.path}\"]\n",
    )
}

/// Whatever an engine or a lab file is called, and whatever a log says, a page only shows it.
#[test]
fn hostile_names_have_no_effect() {
    const NAME: &str = "<script>alert(1)</script>|</pre><img src=x onerror=y>`";
    let text = format!(
        "name = '{NAME}'\nabout = '{NAME}'\nscenarios = [\"chat.toml\"]\n\
         [objective]\nmaximize = \"throughput.output-tokens-per-s\"\n\
         [[engines]]\nname = '{NAME}'\nlaunch = ['serve', '{NAME}']\n\
         [engines.options]\nx = ['{NAME}', '{NAME}2']\n"
    );
    let world = World::new(&text, |settings, _| {
        if settings["x"].ends_with('2') { Fate::Crashes } else { Fate::Tokens(100.0) }
    });
    let (mut report, ..) = report(&world);
    let failed = &mut report.studies[0].failed[0];
    failed.log.push(NAME.to_owned());
    failed.why = NAME.to_owned();
    let page = page(&report);
    let body = body(&page);
    assert!(!body.contains("<script") && !body.contains("<img"), "{body}");
    assert!(body.contains("&lt;script&gt;"));
    let markdown = page.markdown();
    let mut lines = markdown.lines().filter(|line| line.contains("<img"));
    assert_eq!(lines.find(|line| line.starts_with(['|', '#', '-', '*'])), None);
}

/// The committed schemas match the types, and a lab's files follow them.
#[test]
fn schemas_are_committed_and_hold() {
    let world = World::new(&release(), |settings, _| match settings["engine"].as_str() {
        "a" => Fate::OnceInvalid(100.0),
        _ => Fate::Crashes,
    });
    let crashing = World::new(&release(), |_, scenario| match scenario {
        "long" => Fate::Dies,
        _ => Fate::Crashes,
    });
    let (mut reports, mut events, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for world in [&world, &crashing, &loads()] {
        let (report, _, happened) = report(world);
        reports.push(serde_json::to_value(&report).unwrap());
        events.extend(happened.iter().map(|event| serde_json::to_value(event).unwrap()));
        let saved = SavedLab {
            version: crate::journal::VERSION,
            path: "lab.toml".to_owned(),
            text: "name = \"A lab\"".to_owned(),
            scenarios: world.scenarios.clone(),
        };
        kept.push(serde_json::to_value(saved).unwrap());
    }
    for (name, instances) in [("lab", kept), ("lab-event", events), ("lab-report", reports)] {
        let text = schema::schema(name).unwrap();
        golden(format!("schemas/{name}.schema.json"), &text);
        let schema = serde_json::from_str(&text).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(!instances.is_empty());
        for mut instance in instances {
            let errors: Vec<String> = (validator.iter_errors(&instance))
                .map(|error| format!("{error} at {}", error.instance_path()))
                .collect();
            assert_eq!(errors, Vec::<String>::new(), "{name}");
            instance["of-a-later-version"] = serde_json::Value::Null;
            assert!(!validator.is_valid(&instance), "{name} must refuse unknown fields");
        }
    }
    assert_eq!(schema::NAMES.map(|name| schema::schema(name).is_some()), [true; 3]);
    assert_eq!(schema::schema("nothing"), None);
}
