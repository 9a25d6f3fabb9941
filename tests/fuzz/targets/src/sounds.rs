//! Headers of recordings, as the dataset of speech reads them.

use runner_plugin::Files as _;
use runner_plugin_testing::files::Named;

// A component is all that its package builds, so its source is compiled here once more.
#[path = "../../../../plugins/datasets/speech/src/sound.rs"]
mod header;

/// A file's header: it is refused with a message, or the sound has a length that its file can have.
pub fn sound(data: &[u8]) {
    let files = Named::default().with_bytes("file", data);
    let file = files.open("file").expect("the file is there");
    match header::read(&*file) {
        Ok(sound) => {
            assert!(sound.media_type.starts_with("audio/"));
            if let Some(seconds) = sound.seconds {
                assert!(seconds.is_finite() && seconds > 0.0, "{seconds} s");
            }
            if sound.media_type == "audio/wav" {
                // A header states at least a byte a second.
                let seconds = sound.seconds.expect("WAV says its length");
                assert!(seconds <= data.len() as f64, "{seconds} s");
            }
        }
        Err(message) => assert!(!message.is_empty()),
    }
}
