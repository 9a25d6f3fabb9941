//! Files of the ShareGPT format, which plugins read piece by piece.

use runner_plugin::Error;
use runner_plugin_testing::files::Named;
use sharegpt_file::{Conversations, Like};

use crate::bytes::first;

/// A file: refused as input, or every conversation in it is read or refused as input.
pub fn sharegpt(data: &[u8]) {
    let (choice, data) = first(data);
    let like = [Like::Lmdeploy, Like::Vllm, Like::Sglang][usize::from(choice) % 3];
    let files = Named::default().with_bytes("file", data);
    let found = match Conversations::open(&files, "file", like, choice & 0x80 != 0) {
        Ok(found) => found.expect("the file is there"),
        Err(error) => return refused(&error),
    };
    assert!(found.len() <= data.len());
    for position in 0..found.len() {
        match found.read(position) {
            Ok(Some(pair)) => assert!(pair.prompt.len() + pair.completion.len() <= 3 * data.len()),
            Ok(None) => {}
            Err(error) => refused(&error),
        }
    }
}

fn refused(error: &Error) {
    assert!(matches!(error, Error::InvalidInput(message) if !message.is_empty()), "{error:?}");
}
