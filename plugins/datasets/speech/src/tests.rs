//! Every layout gives the same recordings, bad files are named together, and headers say lengths.

use runner_plugin::{Dataset, Error, Part, Sample, Treatment};
use runner_plugin_testing::datasets;
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;
use serde_json::{Value, json};

use super::{Speech, sound};

/// A WAV file of this many samples at 16 000 a second.
fn wav(samples: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let format = hound::WavSpec {
        channels: 1,
        sample_rate: 16_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::new(&mut bytes, format).unwrap();
    (0..samples).for_each(|at| writer.write_sample(at as i16).unwrap());
    writer.finalize().unwrap();
    bytes.into_inner()
}

/// The beginning of a FLAC file: its header, and something behind it.
fn flac(rate: u64, samples: u64) -> Vec<u8> {
    let mut bytes = b"fLaC\x80\0\0\x22".to_vec();
    bytes.extend([0; 10]);
    bytes.extend((rate << 44 | 15 << 36 | samples).to_be_bytes());
    bytes.extend([0; 16]);
    bytes.extend(b"frames");
    bytes
}

/// Files in folders, as the host names them.
fn folder(files: &[(&str, &[u8])]) -> Named {
    let mut named = Named::default();
    for folder in ["data", "audio"] {
        let below = |name: &str| Some(name.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        let mut list: Vec<_> = files.iter().filter_map(|(name, _)| below(name)).collect();
        list.sort();
        if !list.is_empty() {
            named = named.with_bytes(&format!("{folder}/"), list.join("\n") + "\n");
        }
    }
    files.iter().fold(named, |named, (name, bytes)| named.with_bytes(name, *bytes))
}

fn open(files: Named, config: &str) -> Result<Speech, Error> {
    datasets::open(config, 3, None, files, StandIn)
}

fn refused(files: Named, config: &str) -> String {
    datasets::mistake(open(files, config).and_then(|mut dataset| dataset.next(9)))
}

/// Name, media type, length of the file, and reference.
fn facts(sample: &Sample) -> (String, String, usize, Value) {
    let [.., Part::Audio(media)] = &sample.prompt.messages()[0].parts[..] else {
        panic!("{:?}", sample.prompt)
    };
    let reference = serde_json::from_str(sample.reference.as_deref().unwrap()).unwrap();
    (sample.id.clone(), media.media_type.clone(), media.bytes.len(), reference)
}

fn all(files: Named, config: &str) -> Vec<(String, String, usize, Value)> {
    let mut dataset = open(files, config).unwrap_or_else(|error| panic!("{error:?}"));
    dataset.next(99).unwrap().iter().map(facts).collect()
}

#[test]
fn every_layout_gives_the_same() {
    let (one, two) = (wav(16_000), flac(8_000, 20_000));
    let sounds = |folder: &str| {
        vec![
            (format!("{folder}/84/1/84-1-0.wav"), one.clone()),
            (format!("{folder}/84/1/84-1-1.flac"), two.clone()),
        ]
    };
    let with = |texts: &[(&str, &str)], of: &str| {
        let texts = texts.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        let files: Vec<(String, Vec<u8>)> = texts.chain(sounds(of)).collect();
        let files: Vec<_> =
            files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        folder(&files)
    };
    let layouts = [
        // LibriSpeech.
        with(&[("data/84/1/84-1.trans.txt", "84-1-0 ONE TWO\n84-1-1 THREE\n")], "data"),
        // The hub's folders, in each of their forms.
        with(
            &[(
                "data/metadata.csv",
                "file_name,transcription\n84/1/84-1-0.wav,ONE TWO\n84/1/84-1-1.flac,\"THREE\"\n",
            )],
            "data",
        ),
        with(
            &[(
                "data/84/metadata.jsonl",
                "{\"file_name\": \"1/84-1-0.wav\", \"text\": \"ONE TWO\"}\n{\"file_name\": \"./1/../1/84-1-1.flac\", \"text\": \"THREE\"}\n",
            )],
            "data",
        ),
        // NeMo's manifest, with paths of another machine, in the folder and beside it.
        with(
            &[(
                "data/manifest.json",
                "{\"audio_filepath\": \"/mnt/x/84/1/84-1-0.wav\", \"text\": \"ONE TWO\", \"duration\": 1.0}\n{\"audio_filepath\": \"/mnt/x/84/1/84-1-1.flac\", \"text\": \"THREE\", \"duration\": 2.4}\n",
            )],
            "data",
        ),
        with(
            &[(
                "data",
                "[{\"audio_filepath\": \"C:\\\\x\\\\84\\\\1\\\\84-1-0.wav\", \"text\": \"ONE TWO\"}, {\"audio_filepath\": \"84/1/84-1-1.flac\", \"text\": \"THREE\"}]",
            )],
            "audio",
        ),
        with(&[("data", "84-1-0 ONE TWO\n84-1-1\tTHREE")], "audio"),
        // A text beside each, and something else.
        with(
            &[
                ("data/info.json", "{}"),
                ("data/84/1/84-1-0.txt", " ONE TWO\n"),
                ("data/84/1/84-1-1.txt", "\u{feff}THREE"),
            ],
            "data",
        ),
    ];
    for (at, files) in layouts.into_iter().enumerate() {
        let name = |name: &str| format!("84/1/{name}");
        assert_eq!(
            all(files, "{}"),
            [
                (
                    name("84-1-0"),
                    "audio/wav".to_owned(),
                    one.len(),
                    json!({"text": "ONE TWO", "seconds": 1.0})
                ),
                (
                    name("84-1-1"),
                    "audio/flac".to_owned(),
                    two.len(),
                    json!({"text": "THREE", "seconds": 2.5})
                ),
            ],
            "layout {at}"
        );
    }
}

#[test]
fn tables_of_other_forms_name_their_sounds() {
    let sound = wav(16_000);
    let tabs = b"client_id\tpath\tsentence\nx\tb.wav\tBE\n";
    let files = folder(&[("data", tabs), ("audio/clips/a.wav", &sound), ("audio/b.wav", &sound)]);
    assert_eq!(all(files, "{}")[0].3["text"], "BE");
    // A path without folders does not mean a sound in another folder.
    let files = folder(&[("data", tabs), ("audio/clips/b.wav", &sound)]);
    assert!(refused(files, "{}").contains("there is no sound `b.wav`"));
    // A file that the scenario names by itself.
    let files = folder(&[("data", tabs), ("b.wav", &sound)]);
    assert_eq!(all(files, "{}")[0].0, "b");
}

#[test]
fn bad_files_are_named_together() {
    let whole = wav(100);
    let files = || {
        folder(&[
            ("data/a.wav", &whole[..whole.len() - 50]),
            ("data/a.txt", b"a"),
            ("data/b.wav", b"not a sound"),
            ("data/b.txt", b"b"),
            ("data/c.flac", &flac(0, 1)),
            ("data/c.txt", b"c"),
            ("data/d.wav", &whole),
            ("data/e.wav", &whole),
            ("data/e.txt", b"\xff"),
            ("data/f.wav", &whole),
            ("data/f.txt", b"f"),
            ("data/g.wav", b""),
            ("data/g.txt", b"g"),
        ])
    };
    let message = refused(files(), "{}");
    for expected in [
        "file `data/a.wav`: it is cut off: its header says 200 bytes of sound, and it has 150",
        "file `data/b.wav`: it is neither WAV nor FLAC",
        "file `data/c.flac`: its header says 0 samples a second",
        "file `data/d.wav`: no text for it: expected a file `data/d.txt`",
        "file `data/e.txt`: expected UTF-8",
        "file `data/g.wav`: it is empty",
        "set `skip-invalid = true`",
    ] {
        assert!(message.contains(expected), "{expected}\nin\n{message}");
    }
    let mut dataset = open(files(), r#"{"skip-invalid": true}"#).unwrap();
    let ids: Vec<_> = dataset.next(9).unwrap().into_iter().map(|sample| sample.id).collect();
    assert_eq!(ids, ["f"]);
    let [remark] = &dataset.remarks()[..] else { panic!("{:?}", dataset.remarks()) };
    assert_eq!((remark.what, remark.count), (Treatment::Dropped, 6));
}

#[test]
fn bad_rows_are_named_with_their_line() {
    let sound = wav(16_000);
    for (name, text, expected) in [
        (
            "data/metadata.csv",
            "file_name,text\nx.wav,a\n",
            "file `data/metadata.csv`, line 2: there is no sound `x.wav`",
        ),
        (
            "data/metadata.csv",
            "file_name,words\na.wav,a\n",
            "no column for the text: expected text, transcription",
        ),
        (
            "data/m.jsonl",
            "{\"audio\": \"a.wav\", \"text\": 3}",
            "column `text`: expected a text, found 3",
        ),
        (
            "data/m.jsonl",
            "{\"audio\": \"a.wav\", \"text\": \"a\", \"offset\": 1.5}",
            "a part of a sound, from second 1.5 on",
        ),
        (
            "data/m.jsonl",
            "{\"audio\": \"a.wav\", \"text\": \"a\", \"duration\": 9}",
            "its `duration` is 9 s, and the sound `data/a.wav` has 1.000 s",
        ),
        ("data/m.jsonl", "{\"audio\"", "line 1: expected a JSON object"),
        ("data/x.trans.txt", "a A\nb B", "file `data/x.trans.txt`, line 2: there is no sound `b`"),
    ] {
        let message = refused(folder(&[(name, text.as_bytes()), ("data/a.wav", &sound)]), "{}");
        assert!(message.contains(expected), "{expected}\nin\n{message}");
    }
    let message = refused(folder(&[("data/x.md", b"")]), "{}");
    assert!(message.contains("folder `data`: it has no sound"), "{message}");
    let message = refused(folder(&[("data/x.md", b"")]), r#"{"layout": "librispeech"}"#);
    assert!(message.contains("it has no .trans.txt"), "{message}");
    assert!(refused(Named::default(), "{}").contains("--dataset-path"));
}

#[test]
fn columns_prompts_and_lengths_are_chosen() {
    let (long, short) = (wav(32_000), wav(8_000));
    let files = || {
        folder(&[
            ("data/metadata.csv", b"clip,said,text\na.wav,A,x\nb.wav,B,y\nb.wav,C,z\n"),
            ("data/a.wav", &long),
            ("data/b.wav", &short),
        ])
    };
    let config = r#"{"file-column": "clip", "text-column": "said", "max-seconds": 1, "prompt": "Write it down.", "language": "en"}"#;
    let mut dataset = open(files(), config).unwrap();
    let samples = dataset.next(9).unwrap();
    let ids: Vec<_> = samples.iter().map(|sample| sample.id.as_str()).collect();
    // Two rows of one sound.
    assert_eq!(ids, ["b", "b#3"]);
    assert_eq!(facts(&samples[1]).3, json!({"text": "C", "seconds": 0.5}));
    assert_eq!(samples[0].parameters.as_deref(), Some(r#"{"language":"en"}"#));
    assert_eq!(samples[0].prompt.messages()[0].parts[0], Part::Text("Write it down.".to_owned()));
    assert_eq!(dataset.remarks()[0].reason, "sound longer than `max-seconds`");
    let message = refused(files(), r#"{"file-column": "clip", "min-seconds": 60}"#);
    assert!(message.contains("3 were left out"), "{message}");
}

#[test]
fn recordings_come_in_order_and_spares_from_the_end() {
    let sound = wav(10);
    let names: Vec<String> = (0..8).map(|at| format!("data/{at}.wav")).collect();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for name in &names {
        files.push((name.clone(), sound.clone()));
        files.push((name.replace("wav", "txt"), b"t".to_vec()));
    }
    let files: Vec<_> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let ids =
        |samples: Vec<Sample>| samples.into_iter().map(|sample| sample.id).collect::<Vec<_>>();
    let mut dataset = open(folder(&files), r#"{"repeat": true}"#).unwrap();
    assert_eq!(dataset.spare(3).unwrap().len(), 3);
    assert_eq!(ids(dataset.next(7).unwrap()), ["0", "1", "2", "3", "4", "0#6", "1#7"]);
    assert_eq!(dataset.remarks()[0].count, 2);
    let mut dataset = open(folder(&files), "{}").unwrap();
    assert_eq!(dataset.spare(99).unwrap().len(), 7);
    assert_eq!(ids(dataset.next(9).unwrap()), ["0"]);
    assert_eq!(dataset.next(9).unwrap(), []);
    let shuffled = |config: &str| ids(open(folder(&files), config).unwrap().next(9).unwrap());
    let order = shuffled(r#"{"shuffle": true}"#);
    assert_ne!(order, shuffled("{}"));
    assert_eq!(order, shuffled(r#"{"shuffle": true}"#));
    assert_eq!(order.len(), 8);
}

fn header(bytes: &[u8]) -> Result<sound::Sound, String> {
    let files = Named::default().with_bytes("x", bytes);
    sound::read(&*runner_plugin::Files::open(&files, "x").unwrap())
}

#[test]
fn headers_say_lengths() {
    let seconds = |bytes: &[u8]| header(bytes).unwrap().seconds;
    assert_eq!(seconds(&wav(4_000)), Some(0.25));
    assert_eq!(seconds(&flac(44_100, 66_150)), Some(1.5));
    // Samples of a stream are not counted beforehand.
    assert_eq!(seconds(&flac(44_100, 0)), None);
    assert_eq!(seconds(b"OggS and more"), None);
    // In a file that a program wrote into a pipe, the rest is sound.
    let mut piped = wav(8_000);
    let at = piped.windows(4).position(|bytes| bytes == b"data").unwrap() + 4;
    piped[at..at + 4].copy_from_slice(&[0xff; 4]);
    assert_eq!(seconds(&piped), Some(0.5));
    // Chunks before the sound, one of odd length.
    let mut chunks = wav(8_000);
    chunks.splice(at - 4..at - 4, *b"LIST\x03\0\0\0abc\0");
    assert_eq!(seconds(&chunks), Some(0.5));
}

#[test]
fn damaged_headers_end_in_words() {
    let (wav, flac) = (wav(100), flac(8_000, 100));
    for whole in [&wav[..], &flac[..]] {
        for end in 0..whole.len() {
            // A cut file has a length only if enough of its header is left.
            if let Ok(sound) = header(&whole[..end]) {
                assert!(whole == flac && end > 42, "{end}: {sound:?}");
            }
        }
        for at in 0..44 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.to_vec();
                changed[at] = value;
                if let Ok(sound) = header(&changed) {
                    assert!(
                        sound.seconds.is_none_or(|seconds| seconds.is_finite() && seconds > 0.0)
                    );
                }
            }
        }
    }
}
