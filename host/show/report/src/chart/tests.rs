use super::*;

fn chart() -> Chart {
    let axis = |title: &str, high| Axis::new(title.to_owned(), 0.0, high, Ticks::Numbers);
    Chart {
        name: "a-chart".to_owned(),
        title: "A <chart> & more".to_owned(),
        note: "Left to right.".to_owned(),
        seen: "It \"rises\".".to_owned(),
        x: axis("time (s)", 10.0),
        panels: vec![Panel {
            y: axis("tok/s", 100.0),
            height: 100.0,
            marks: vec![
                Mark::new(
                    0,
                    Shape::Line,
                    vec![
                        Point::at(0.0, 0.0),
                        Point { x: 5.0, to: 5.0, y: None },
                        Point::at(10.0, 100.0),
                    ],
                )
                .with_column(
                    "one",
                    vec![Some(Cell { x: 0.0, y: 0.0, text: "0 tok/s".to_owned() }), None],
                ),
                Mark::new(1, Shape::Bars, vec![Point { x: 0.0, to: 5.0, y: Some(50.0) }]),
            ],
            rules: vec![Rule::new(Side::X, 5.0, "p50")],
            bands: vec![Band { from: 2.0, to: 8.0, label: "steady".to_owned() }],
        }],
        keys: vec![
            Key { label: "one".to_owned(), tone: Tone::Series(0) },
            Key { label: "</svg><script>".to_owned(), tone: Tone::Series(1) },
        ],
        rows: Rows::new("time", vec!["0 s".to_owned(), "5 s".to_owned()], Snap::X),
        log: Some(Log { side: Side::Y, low: 1.0, first: false }),
        form: Form::Half,
    }
}

fn look(width: Width, log: bool, alone: Option<Theme>) -> Look {
    Look { width, log, alone }
}

#[test]
fn marks_lie_where_their_values_are() {
    let svg = svg(&chart(), look(Width::Wide, false, None));
    // 26 pixels above, 100 high; the labels of the vertical axis take three characters.
    assert!(svg.contains("data-area=\"34.7 26 504 126\""), "{svg}");
    assert!(svg.contains("M34.7 126M504 26"), "the gap has no line: {svg}");
    assert!(svg.contains("data-column=\"0\" data-at=\"34.7,126 -\""), "{svg}");
    assert!(svg.contains(">p50</text>") && svg.contains(">steady</text>"));
    for label in [">0</text>", ">50</text>", ">100</text>", ">time (s)</text>"] {
        assert!(svg.contains(label), "{label}: {svg}");
    }
}

#[test]
fn text_is_escaped_and_ids_are_unique() {
    let chart = chart();
    let mut ids = std::collections::BTreeSet::new();
    for width in [Width::Wide, Width::Narrow] {
        for log in [false, true] {
            let svg = svg(&chart, look(width, log, None));
            assert!(svg.contains("A &lt;chart&gt; &amp; more</title>"), "{svg}");
            assert!(svg.contains("role=\"img\""));
            for id in svg.split(" id=\"").skip(1) {
                assert!(ids.insert(id.split('"').next().unwrap().to_owned()));
            }
        }
    }
    assert_eq!(ids.len(), 8);
    let alone = svg(&chart, look(Width::Wide, false, Some(Theme::Light)));
    assert!(alone.contains("&lt;/svg&gt;&lt;script&gt;</text>"), "{alone}");
    assert_eq!(alone.matches("<svg").count(), 1);
}

#[test]
fn a_chart_is_drawn_the_same_every_time_and_as_a_picture() {
    let drawn = || svg(&chart(), look(Width::Wide, true, Some(Theme::Dark)));
    assert_eq!(drawn(), drawn());
    let picture = png::png(&drawn()).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    assert_eq!(picture, png::png(&drawn()).unwrap());
    // Width and height stand at a fixed place.
    let size = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert_eq!(size(16), 1040);
    // Without its font a picture has no words, and compresses to less.
    let silent = png::png(&drawn().replace("<text", "<desc").replace("</text>", "</desc>"));
    assert!(silent.unwrap().len() + 2_000 < picture.len());
    assert!(png::png("<svg").is_err());
}

#[test]
fn an_axis_without_an_extent_is_drawn() {
    let mut chart = chart();
    chart.x.high = 0.0;
    chart.panels[0].y.high = 0.0;
    let svg = svg(&chart, look(Width::Narrow, true, None));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}
