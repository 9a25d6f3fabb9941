//! The fenced blocks of a page: their language, file and text. Used by this package's build and by
//! the test that follows the guide.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The text after the fence.
    pub info: String,
    pub text: String,
}

impl Block {
    /// The language: the first word after the fence.
    pub fn language(&self) -> &str {
        self.info.split(' ').next().unwrap_or_default()
    }

    /// The file that it is: the second word, where that is a path.
    pub fn path(&self) -> Option<&str> {
        self.info.split(' ').nth(1).filter(|word| word.contains('/'))
    }
}

/// The blocks of a page, in order.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in markdown.lines() {
        match (&mut open, line.trim().strip_prefix("```")) {
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, Some(info)) => {
                let (info, text) = (info.to_owned(), String::new());
                open = Some(Block { info, text });
            }
            (None, None) => {}
        }
    }
    blocks
}
