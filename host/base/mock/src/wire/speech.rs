//! Speech: the sound of a text, as OpenAI's server and vLLM-Omni send it
//! (<https://platform.openai.com/docs/api-reference/audio/createSpeech>). The sound is silence: it
//! has a length, and nothing to hear.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::bytes::put;
use super::{Piece, Wire};
use crate::answer::Answer;
use crate::ask::types::{Ask, SpeechForm};
use crate::script::{Script, UsageIn};

/// Samples per second, of two bytes each.
const RATE: u32 = 24_000;
/// Bytes of sound to a token: 80 ms, as of models that make 12.5 tokens a second.
const TOKEN_BYTES: usize = RATE as usize * 2 * 80 / 1000;

pub(super) struct Speech {
    form: SpeechForm,
    prompt_tokens: u32,
    usage: bool,
}

impl Speech {
    pub fn new(script: &Script, ask: &Ask, form: SpeechForm) -> Self {
        Speech { form, prompt_tokens: ask.prompt_tokens, usage: script.usage != UsageIn::None }
    }

    fn sound(&self, from: u32, to: u32) -> Vec<u8> {
        let mut sound = Vec::new();
        if self.form.is_wav && from == 0 {
            // A file that is made while it is sent does not know its length.
            sound.extend(b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0");
            sound.extend(RATE.to_le_bytes());
            sound.extend((RATE * 2).to_le_bytes());
            sound.extend(b"\x02\0\x10\0data\xff\xff\xff\xff");
        }
        sound.resize(sound.len() + (to - from) as usize * TOKEN_BYTES, 0);
        sound
    }
}

impl Wire for Speech {
    fn piece(&self, _: &Answer, piece: Piece, out: &mut Vec<u8>) {
        let sound = self.sound(piece.from, piece.to);
        if self.form.is_raw {
            return out.extend(sound);
        }
        let audio = STANDARD.encode(sound);
        put!(out, "data: {{\"type\":\"speech.audio.delta\",\"audio\":\"{audio}\"}}\n\n");
    }

    fn done(&self, answer: &Answer, out: &mut Vec<u8>) {
        if self.form.is_raw {
            return;
        }
        out.extend(br#"data: {"type":"speech.audio.done""#);
        if self.usage {
            let (input, output) = (self.prompt_tokens, answer.tokens);
            let total = u64::from(input) + u64::from(output);
            put!(
                out,
                r#","usage":{{"input_tokens":{input},"output_tokens":{output},"total_tokens":{total}}}"#
            );
        }
        out.extend(b"}\n\n");
    }

    fn whole(&self, answer: &Answer, _: Piece, out: &mut Vec<u8>) {
        out.extend(self.sound(0, answer.tokens));
    }
}
