//! Prompts of a session that begin like an earlier one: each holds its end alone, so that a session
//! whose prompts repeat all earlier turns takes the memory of its longest prompt.

use plugins::backend::Prompt;

/// The cuts of a session's prompts, by position; none beyond the last entry.
#[derive(Default)]
pub struct Beginnings(Vec<Cut>);

struct Cut {
    /// The earlier prompt.
    of: usize,
    /// The bytes or tokens of it that this prompt begins with; 0 for a prompt that is whole.
    length: usize,
    /// True if a later prompt begins like this one.
    is_base: bool,
}

impl Beginnings {
    /// Takes the next prompt, and cuts off the beginning that it shares with an earlier one.
    pub fn cut<'p>(
        &mut self,
        prompt: &mut Prompt,
        base: Option<usize>,
        held: impl Fn(usize) -> &'p Prompt,
    ) {
        let mut cut = Cut { of: 0, length: 0, is_base: false };
        if let Some(base) = base {
            let pieces = self.pieces(base, held);
            (cut.of, cut.length) = (base, shared(prompt, &pieces));
            // The prompts in between add nothing.
            while cut.length > 0 && cut.length <= self.0[cut.of].length {
                cut.of = self.0[cut.of].of;
            }
            self.0[cut.of].is_base |= cut.length > 0;
        }
        match prompt {
            Prompt::Text(text) => *text = text[cut.length..].to_owned(),
            Prompt::Tokens(ids) => *ids = ids[cut.length..].to_vec(),
            _ => {}
        }
        self.0.push(cut);
    }

    /// A prompt with its beginning.
    pub fn whole<'p>(&self, position: usize, held: impl Fn(usize) -> &'p Prompt) -> Prompt {
        let pieces = self.pieces(position, &held);
        match held(position) {
            Prompt::Text(_) => Prompt::Text(pieces.iter().map(|piece| text(*piece)).collect()),
            Prompt::Tokens(_) => {
                Prompt::Tokens(pieces.iter().flat_map(|piece| tokens(*piece)).copied().collect())
            }
            other => other.clone(),
        }
    }

    /// True if a later prompt needs this one.
    pub fn is_base(&self, position: usize) -> bool {
        self.0.get(position).is_some_and(|cut| cut.is_base)
    }

    /// The pieces of a prompt in order, each the beginning of a held prompt with its length.
    fn pieces<'p>(
        &self,
        position: usize,
        held: impl Fn(usize) -> &'p Prompt,
    ) -> Vec<(&'p Prompt, usize)> {
        let (mut at, mut most, mut pieces) = (position, usize::MAX, Vec::new());
        loop {
            let (of, length) = self.0.get(at).map_or((0, 0), |cut| (cut.of, cut.length));
            pieces.push((held(at), most.saturating_sub(length)));
            if length == 0 {
                break;
            }
            (at, most) = (of, most.min(length));
        }
        pieces.reverse();
        pieces
    }
}

fn text((prompt, length): (&Prompt, usize)) -> &str {
    let Prompt::Text(text) = prompt else { return "" };
    &text[..length.min(text.len())]
}

fn tokens((prompt, length): (&Prompt, usize)) -> &[u32] {
    let Prompt::Tokens(ids) = prompt else { return &[] };
    &ids[..length.min(ids.len())]
}

/// The length of the beginning that a prompt shares with these pieces.
fn shared(prompt: &Prompt, pieces: &[(&Prompt, usize)]) -> usize {
    match prompt {
        Prompt::Text(own) => {
            let pieces = pieces.iter().map(|piece| text(*piece).as_bytes());
            own.floor_char_boundary(common(own.as_bytes(), pieces))
        }
        Prompt::Tokens(own) => common(own, pieces.iter().map(|piece| tokens(*piece))),
        _ => 0,
    }
}

fn common<'p, T: PartialEq + 'p>(own: &[T], pieces: impl Iterator<Item = &'p [T]>) -> usize {
    let mut at = 0;
    for piece in pieces {
        let left = &own[at..];
        if left.starts_with(piece) {
            at += piece.len();
            continue;
        }
        at += left.iter().zip(piece).take_while(|(own, other)| own == other).count();
        break;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::prompt_bytes;
    use model::generator::Generator;

    #[test]
    fn growing_prompts_take_the_memory_of_the_longest() {
        let (mut beginnings, mut held, mut text) =
            (Beginnings::default(), Vec::new(), String::new());
        for turn in 0..1_000_usize {
            text.push_str(&format!("turn {turn} of é;"));
            let mut prompt = Prompt::Text(text.clone());
            beginnings.cut(&mut prompt, turn.checked_sub(1), |at| &held[at]);
            held.push(prompt);
        }
        assert_eq!(held.iter().map(prompt_bytes).sum::<usize>(), text.len());
    }

    /// Prompts that grow, go back, fork and differ in the middle of a character.
    #[test]
    fn prompts_come_back_whole_and_are_held_once() {
        let mut generator = Generator::new(41);
        let mut texts = vec!["<é>".repeat(50)];
        let mut bases = vec![None];
        for _ in 1..300 {
            let base = (generator.uniform(0.7, 1.0) * texts.len() as f64) as usize;
            let mut text = texts[base].clone();
            let kept = generator.uniform(0.5, 1.4) * text.len() as f64;
            text.truncate(text.floor_char_boundary(kept as usize));
            let ends = ["é", "è", "plain", "𝄞", ""];
            let end = ends[(generator.uniform(0.0, 5.0)) as usize];
            text.push_str(&end.repeat(generator.uniform(1.0, 30.0) as usize));
            texts.push(text);
            bases.push(Some(base));
        }
        for as_prompt in [(|text| Prompt::Text(text)) as fn(String) -> Prompt, |text| {
            Prompt::Tokens(text.chars().map(u32::from).collect())
        }] {
            let mut beginnings = Beginnings::default();
            let mut held: Vec<Prompt> = Vec::new();
            for (text, base) in texts.iter().zip(&bases) {
                let mut prompt = as_prompt(text.clone());
                beginnings.cut(&mut prompt, *base, |at| &held[at]);
                held.push(prompt);
            }
            // A prompt that no later one needs may go once it was sent.
            for (at, text) in texts.iter().enumerate() {
                let [whole, expected] =
                    [beginnings.whole(at, |at| &held[at]), as_prompt(text.clone())];
                assert_eq!(format!("{whole:?}"), format!("{expected:?}"), "{at}");
                if !beginnings.is_base(at) {
                    held[at] = Prompt::Tokens(Vec::new());
                }
            }
        }
    }
}
