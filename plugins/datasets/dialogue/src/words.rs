//! Texts of a given number of tokens, drawn from a seed: English words at random, or passages of
//! the file `text`.
//!
//! A text is cut after the wanted token, decoded, and counted again, since a text may tokenize to
//! another number than it was made of. Missing tokens are added and surplus tokens are cut, a few
//! times; the returned count is always the text's own.
//!
//! Only texts of [`Writer::apart`] begin with a `z`. So a warm-up prompt never begins like a
//! measured one.

use runner_plugin::lengths::MOST_TOKENS;
use runner_plugin::random::{NumpyGenerator, mixed};
use runner_plugin::{Error, File, Files, Tokenizer};

pub const TEXT: &str = "text";

/// Tokens to write in one call of the host.
const BATCH: usize = 1 << 16;

/// The number of times that a text is cut or extended.
const ROUNDS: usize = 6;

/// Bytes to read of the file for each token.
const BYTES: u64 = 8;

#[derive(Clone, Debug)]
pub struct TextRequest {
    pub random: NumpyGenerator,
    pub tokens: u32,
}

/// A text, and its number of tokens.
pub type CountedText = (String, u32);

pub struct Writer {
    file: Option<Box<dyn File>>,
}

impl Writer {
    /// Takes passages of the file `text` if the scenario names one, and words otherwise.
    pub fn open(files: &dyn Files) -> Result<Self, Error> {
        let file = files.open(TEXT);
        if file.as_ref().is_some_and(|file| file.size() == 0) {
            return Err(Error::InvalidInput(format!(
                "the file `{TEXT}` is empty; expected text, such as a book: name another under [dataset.files], or \
                 none to get random words"
            )));
        }
        Ok(Self { file })
    }

    /// Writes the texts of a session. Errors: [`Error::InvalidConfig`] if together they have more
    /// than [`MOST_TOKENS`], and [`Error::InvalidInput`] if the file cannot be read.
    pub fn write(
        &self,
        tokenizer: &dyn Tokenizer,
        wanted: &[TextRequest],
    ) -> Result<Vec<CountedText>, Error> {
        let all: u64 = wanted.iter().map(|each| u64::from(each.tokens)).sum();
        if all > MOST_TOKENS.into() {
            return Err(Error::InvalidConfig(format!(
                "the texts of a session have {all} tokens; expected at most {MOST_TOKENS}: set smaller lengths or numbers, \
                 or a `max` for a distribution"
            )));
        }
        let mut drawn = Vec::with_capacity(wanted.len());
        for each in wanted {
            let mut random = each.random.clone();
            let text = self.draw(&mut random, each.tokens)?;
            drawn.push((random, text, each.tokens));
        }
        self.fit(tokenizer, drawn)
    }

    /// Writes a text that none of [`write`](Self::write) begins like.
    pub fn apart(
        &self,
        tokenizer: &dyn Tokenizer,
        wanted: &TextRequest,
    ) -> Result<CountedText, Error> {
        let mut random = wanted.random.clone();
        let text = chosen(&mut random, APART, wanted.tokens);
        let written = self.fit(tokenizer, vec![(random, text, wanted.tokens)])?;
        Ok(written.into_iter().next().unwrap_or_default())
    }

    /// Draws text of about this many tokens, or more.
    fn draw(&self, random: &mut NumpyGenerator, tokens: u32) -> Result<String, Error> {
        if tokens == 0 {
            return Ok(String::new());
        }
        if let Some(file) = &self.file {
            let passage = passage(&**file, random, tokens)?;
            if !passage.is_empty() {
                return Ok(passage);
            }
        }
        Ok(chosen(random, WORDS, tokens))
    }

    /// Cuts and extends texts until they have the wanted number of tokens.
    fn fit(
        &self,
        tokenizer: &dyn Tokenizer,
        mut drawn: Vec<(NumpyGenerator, String, u32)>,
    ) -> Result<Vec<CountedText>, Error> {
        let mut written = Vec::with_capacity(drawn.len());
        while !drawn.is_empty() {
            let mut tokens = 0;
            let fits = drawn.iter().take_while(|(_, _, wanted)| {
                tokens += *wanted as usize;
                tokens <= BATCH
            });
            let rest = drawn.split_off(fits.count().max(1));
            written.extend(self.fit_batch(tokenizer, std::mem::replace(&mut drawn, rest))?);
        }
        Ok(written)
    }

    fn fit_batch(
        &self,
        tokenizer: &dyn Tokenizer,
        drawn: Vec<(NumpyGenerator, String, u32)>,
    ) -> Result<Vec<CountedText>, Error> {
        let (mut sources, mut texts, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for (random, text, tokens) in drawn {
            sources.push(random);
            texts.push(text);
            wanted.push(tokens);
        }
        let mut counts = vec![0; texts.len()];
        let mut open: Vec<usize> = (0..texts.len()).filter(|at| wanted[*at] > 0).collect();
        for _ in 0..ROUNDS {
            if open.is_empty() {
                break;
            }
            let of_open = |texts: &[String]| -> Vec<String> {
                open.iter().map(|at| texts[*at].clone()).collect()
            };
            let mut ids = tokenizer.encode(&of_open(&texts), false);
            for (at, ids) in open.iter().zip(&mut ids) {
                ids.truncate(wanted[*at] as usize);
            }
            for (at, text) in open.iter().zip(tokenizer.decode(&ids)) {
                // A cut within a character leaves a replacement character.
                texts[*at] = text.trim_start().replace('\u{fffd}', "");
            }
            for (at, count) in open.iter().zip(tokenizer.count(&of_open(&texts), false)) {
                counts[*at] = count;
            }
            open.retain(|at| counts[*at] != wanted[*at]);
            for at in &open {
                let missing = wanted[*at].saturating_sub(counts[*at]);
                if missing > 0 {
                    let more = self.draw(&mut sources[*at], missing)?;
                    texts[*at] = format!("{} {more}", texts[*at]);
                }
            }
        }
        // Texts that were extended and not cut again are cut to a length that can be reported.
        for at in open {
            let text = std::slice::from_ref(&texts[at]);
            let mut ids = tokenizer.encode(text, false);
            for ids in &mut ids {
                ids.truncate(wanted[at] as usize);
            }
            if let Some(text) = tokenizer.decode(&ids).into_iter().next() {
                texts[at] = text.trim_start().replace('\u{fffd}', "");
            }
            let count = tokenizer.count(std::slice::from_ref(&texts[at]), false);
            counts[at] = count.first().copied().unwrap_or(0);
        }
        Ok(texts.into_iter().zip(counts).collect())
    }
}

/// Words of a list, with spaces between them: each is a token or more.
fn chosen(random: &mut NumpyGenerator, words: &str, count: u32) -> String {
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    let chosen: Vec<&str> =
        (0..count).map(|_| words[random.integers(0, words.len() as u64) as usize]).collect();
    chosen.join(" ")
}

/// Text from somewhere in a file, from a word's beginning on; the file repeats at its end.
fn passage(file: &dyn File, random: &mut NumpyGenerator, tokens: u32) -> Result<String, Error> {
    let size = file.size();
    let mut at = random.integers(0, size);
    let mut missing = u64::from(tokens) * BYTES + 64;
    let mut bytes = Vec::with_capacity(missing as usize);
    while missing > 0 {
        let length = missing.min(size - at);
        bytes.extend(file.read_all(at, length).map_err(|cause| {
            Error::InvalidInput(format!("the file `{TEXT}` cannot be read: {cause}"))
        })?);
        missing -= length;
        at = (at + length) % size;
    }
    let text = String::from_utf8_lossy(&bytes).replace('\u{fffd}', "");
    let mut behind_space = false;
    let begins = text.char_indices().find(|(_, letter)| {
        let begins = behind_space && letter.is_alphanumeric() && !matches!(letter, 'z' | 'Z');
        behind_space = letter.is_whitespace();
        begins
    });
    Ok(begins.map_or_else(String::new, |(start, _)| text[start..].to_owned()))
}

/// Words that begin with a `z`.
const APART: &str = "zero zone zoom zest zeal zinc zip zebra zenith zigzag";

/// Common English words; none begins with a `z`.
const WORDS: &str = "\
able about above accept across act add after again age agree air all allow almost alone along already also always \
among amount animal answer any appear apple area arm army around arrive art ask attack author away baby back bad bag \
ball bank base basic bear beat beauty bed before begin behind believe bell below best better between big bird black \
blood blow blue board boat body bone book born both bottom box boy branch bread break bridge bright bring broad \
brother brown build burn business busy buy call calm camp capital captain car card care carry case catch cause cell \
center central century certain chair chance change chapter charge chart check chief child choose church circle city \
claim class clean clear climb clock close cloth cloud coast coat cold collect color column come common company \
compare complete condition consider contain continue control cook cool copper copy corn corner correct cost cotton \
count country couple course cover create crop cross crowd current cut dance danger dark data day dead deal dear \
death decide deep degree depend describe desert design detail develop dictionary die differ dinner direct discuss \
distance divide doctor dog dollar door double down draw dream dress drink drive drop dry during duty each ear early \
earth east easy eat edge effect egg eight either electric element else empty end enemy energy engine enough enter \
equal even evening event ever every exact example except excite exercise expect experience explain express eye face \
fact fair fall family famous far farm fast fat father favor fear feed feel few field fight figure fill final find \
fine finger finish fire first fish fit five flat floor flow flower fly follow food foot force foreign forest forget \
form forward four free fresh friend front fruit full fun game garden gas gather general gentle girl give glad glass \
goal gold good govern grand grass gray great green ground group grow guess guide gun hair half hand happen happy \
hard hat head hear heart heat heavy help here high hill history hit hold hole home hope horse hot hour house huge \
human hundred hunt hurry ice idea imagine inch include indicate industry insect instant instrument interest invent \
iron island job join joy jump just keep key kill kind king knew know lady lake land language large last late laugh \
law lay lead learn least leave left leg length less letter level lie life lift light like line liquid list listen \
little live locate log long look lost loud love low machine made magnet main major make man many map mark market \
master match material matter mean measure meat meet melody member men metal method middle might mile milk million \
mind mine minute miss mix modern molecule moment money month moon morning mother motion mount mountain mouth move \
much multiply music name nation natural nature near necessary neck need neighbor never new next night nine noise \
noon north nose note nothing notice noun number object observe ocean offer office often oil old once open operate \
opposite order organ original other oxygen page paint pair paper parent part party pass past path pattern pay people \
perhaps period person phrase picture piece place plain plan plane planet plant play please plural poem point poor \
port position possible pound power practice prepare present press pretty print probable problem process produce \
product promise proper protect prove provide pull push race radio rail rain raise range rather reach read ready real \
reason receive record red region remember repeat reply represent require rest result rice rich ride right ring rise \
river road rock roll room root rope rose round row rub rule run safe sail salt same sand save say scale school \
science score sea search season seat second section see seed seem segment select self sell send sense sentence \
separate serve set seven several shape share sharp sheet shell shine ship shoe shop shore short should shoulder \
show side sign silent silver similar simple single sister six size skill skin sleep slip slow small smell smile snow \
soft soil soldier solution solve some song soon sound south space speak special speech speed spell spend spread \
spring square stand star start state station stay steam steel step stick still stone stop store story straight \
strange stream street stretch string strong student study subject substance success sudden sugar suggest suit summer \
sun supply support sure surface surprise swim symbol system table tail take talk tall teach team temperature ten \
term test thank their then there thick thin thing think third thought thousand three through time tiny together tone \
tool top total touch toward town track trade train travel tree triangle trip trouble truck true try tube turn \
twenty two type under unit until usual valley value vary verb very view village visit voice vowel wait walk wall \
want war warm wash watch water wave way wear weather week weight west wheel when while white whole wide wife wild \
will win wind window winter wire wish woman wonder wood word work world write wrong yard year yellow yes young";

/// The generator of a `part` of session `session`. Equal arguments give equal numbers.
pub fn generator(seed: u64, session: u64, part: u64) -> NumpyGenerator {
    NumpyGenerator::new(mixed(mixed(mixed(seed) ^ session) ^ part))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use runner_plugin_testing::files::Named;
    use runner_plugin_testing::tokenizer::{Pairs, StandIn};

    use super::*;
    use crate::words::generator;

    fn wanted(number: u64, tokens: u32) -> TextRequest {
        TextRequest { random: generator(7, number, 0), tokens }
    }

    fn book() -> Named {
        let line =
            |number| format!("{number} Zwölf Boxkämpfer jagen Viktor über den Sylter Deich.\n");
        let text: Vec<String> = (0..4000).map(line).collect();
        Named::default().with_bytes(TEXT, text.concat())
    }

    #[test]
    fn texts_have_their_stated_length() {
        for files in [Named::default(), book()] {
            let writer = Writer::open(&files).expect("a writer");
            let all: Vec<TextRequest> = (0..60).map(|at| wanted(at, at as u32 * 7)).collect();
            for tokenizer in [&Pairs as &dyn Tokenizer, &StandIn] {
                let written = writer.write(tokenizer, &all).expect("texts");
                for ((text, count), each) in written.iter().zip(&all) {
                    let counted = tokenizer.count(std::slice::from_ref(text), false)[0];
                    assert_eq!(*count, counted, "{text}");
                    assert!(!text.starts_with(['z', 'Z']), "{text}");
                    let off = counted.abs_diff(each.tokens);
                    assert!(off <= each.tokens / 20, "{counted} for {}", each.tokens);
                }
            }
        }
    }

    #[test]
    fn a_text_depends_on_its_own_generator_alone() {
        for files in [Named::default(), book()] {
            let writer = Writer::open(&files).expect("a writer");
            let all: Vec<TextRequest> = (0..9).map(|at| wanted(at, 30_000)).collect();
            let together = writer.write(&Pairs, &all).expect("texts");
            for (each, text) in all.iter().zip(&together) {
                let alone = writer.write(&Pairs, std::slice::from_ref(each));
                assert!(alone.expect("a text") == std::slice::from_ref(text));
            }
            assert!(together[0] != together[1]);
        }
    }

    #[test]
    fn spare_texts_begin_like_no_other() {
        let writer = Writer::open(&book()).expect("a writer");
        for tokens in [1, 2, 50] {
            let (text, count) = writer.apart(&Pairs, &wanted(1, tokens)).expect("a text");
            assert!(text.starts_with('z'), "{text}");
            assert_eq!(count, tokens);
        }
        assert!(WORDS.split(' ').all(|word| !word.starts_with('z')));
    }

    #[test]
    fn an_empty_file_is_refused() {
        let files = Named::default().with_bytes(TEXT, "");
        assert!(matches!(Writer::open(&files), Err(Error::InvalidInput(_))));
        // A file of nothing but spaces and a `z` has no beginning to take.
        let files = Named::default().with_bytes(TEXT, "  z ");
        let writer = Writer::open(&files).expect("a writer");
        let written = writer.write(&StandIn, &[wanted(1, 9)]).expect("texts");
        assert_eq!(written[0].1, 9);
    }

    #[test]
    fn every_part_of_every_session_draws_its_own_numbers() {
        let mut seen = BTreeSet::new();
        for seed in 0..8 {
            for session in 0..64 {
                for part in 0..8 {
                    let drawn = generator(seed, session, part).integers(0, u64::MAX);
                    assert_eq!(generator(seed, session, part).integers(0, u64::MAX), drawn);
                    assert!(seen.insert(drawn), "{seed}, {session}, {part}");
                }
            }
        }
    }
}
