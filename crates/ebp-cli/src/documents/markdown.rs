//! What a page of Markdown says to type: blocks of code, code within sentences, links and headings.

use std::path::{Path, PathBuf};

/// A page.
pub(super) struct Page {
    /// Where it is, below the repository.
    pub(super) path: PathBuf,
    text: String,
}

/// A block of code.
pub(super) struct Block<'a> {
    /// The line of its first line of code, from 1.
    pub(super) line: usize,
    /// What it is written in: the first word behind its fence.
    pub(super) language: &'a str,
    /// What it needs to be run: the second word there.
    pub(super) mark: Option<&'a str>,
    /// The code.
    pub(super) code: String,
}

impl Page {
    /// Reads one.
    pub(super) fn read(repository: &Path, path: PathBuf) -> Self {
        let text = std::fs::read_to_string(repository.join(&path)).unwrap();
        Self { path, text }
    }

    /// Every block of code.
    pub(super) fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        let mut open: Option<(&str, Block<'_>)> = None;
        for (number, line) in self.text.lines().enumerate() {
            let bare = line.trim_start();
            match &mut open {
                Some((fence, _)) if bare.trim_end() == *fence => {
                    blocks.extend(open.take().map(|(_, block)| block));
                }
                Some((_, block)) => {
                    block.code.push_str(line);
                    block.code.push('\n');
                }
                None if bare.starts_with("```") => {
                    let information = bare.trim_start_matches('`');
                    let fence = &bare[..bare.len() - information.len()];
                    let mut words = information.split([' ', ',']).filter(|word| !word.is_empty());
                    let language = words.next().unwrap_or_default();
                    let block = Block {
                        line: number + 2,
                        language,
                        mark: words.next(),
                        code: String::new(),
                    };
                    open = Some((fence, block));
                }
                None => {}
            }
        }
        assert!(open.is_none(), "{}: a block of code that never closes", self.path.display());
        blocks
    }

    /// The page without its blocks of code, line for line.
    fn prose(&self) -> String {
        let mut out = String::new();
        let mut fence: Option<&str> = None;
        for line in self.text.lines() {
            let bare = line.trim();
            match fence {
                Some(open) => fence = (bare != open).then_some(open),
                None if bare.starts_with("```") => {
                    fence = Some(&bare[..bare.len() - bare.trim_start_matches('`').len()]);
                }
                None => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }

    /// Code within sentences, with its line. It may go on in the next line.
    pub(super) fn spans(&self) -> Vec<(usize, String)> {
        let prose = self.prose();
        let mut spans = Vec::new();
        let mut line = 1;
        // Paragraph by paragraph, so that a single backtick spoils no more than its own.
        for paragraph in prose.split_inclusive("\n\n") {
            let mut at = line;
            for (number, part) in paragraph.split('`').enumerate() {
                if number % 2 == 1 {
                    let words: Vec<_> = part.split_whitespace().collect();
                    spans.push((at, words.join(" ")));
                }
                at += part.matches('\n').count();
            }
            line = at;
        }
        spans
    }

    /// Where links and pictures point to, with their lines.
    pub(super) fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (number, line) in self.prose().lines().enumerate() {
            let mut rest = line;
            while let Some((_, after)) = rest.split_once("](") {
                let Some((target, after)) = after.split_once(')') else { break };
                links.push((number + 1, target.to_owned()));
                rest = after;
            }
        }
        links
    }

    /// The names by which its headings can be linked to: lower case, spaces as hyphens, no other signs.
    pub(super) fn anchors(&self) -> Vec<String> {
        let prose = self.prose();
        let headings = prose.lines().filter_map(|line| {
            let title = line.trim_start_matches('#');
            (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim())
        });
        let name = |title: &str| -> String {
            let signs = title.to_lowercase().replace(' ', "-");
            signs.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
        };
        headings.map(name).collect()
    }
}
