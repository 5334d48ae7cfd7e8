//! Documents as sparse counts, checked once.

use crate::{Error, Result, SetOffsets};

/// One document: its distinct words in rising order, and how often each of them occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Distinct words, by number.
    pub words: &'a [u32],
    /// Of each word, at least 1.
    pub counts: &'a [u32],
}

impl Document<'_> {
    /// n, the number of its words.
    pub fn num_tokens(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Every occurrence of every word, in the order of the words' numbers.
    pub fn tokens(&self) -> Vec<u32> {
        let times = |(&word, &count)| std::iter::repeat_n(word, count as usize);
        self.words.iter().zip(self.counts).flat_map(times).collect()
    }

    /// Words with their counts as numbers.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let pair = |(&word, &count): (&u32, &u32)| (word as usize, f64::from(count));
        self.words.iter().zip(self.counts).map(pair)
    }

    /// That every word is in a vocabulary of `num_words`.
    pub(super) fn check(&self, num_words: usize) -> Result<()> {
        match self.words.iter().find(|&&word| word as usize >= num_words) {
            None => Ok(()),
            Some(word) => {
                let expected = format!("below {num_words}, the size of the vocabulary");
                Err(Error::invalid("word", expected, word))
            }
        }
    }
}

/// Documents over one vocabulary. None is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Corpus {
    offsets: SetOffsets,
    words: Vec<u32>,
    counts: Vec<u32>,
    num_words: usize,
}

impl Corpus {
    /// Documents from their words (with repetitions, in any order) and counts.
    ///
    /// ```
    /// use ebp::topic::Corpus;
    ///
    /// let corpus = Corpus::new(9, [vec![(7, 1), (3, 2), (7, 4)], vec![(0, 1)]])?;
    /// assert_eq!(corpus.document(0).words, [3, 7]);
    /// assert_eq!(corpus.document(0).counts, [2, 5]);
    /// # Ok::<(), ebp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EmptySet`] if a document has no words, [`Error::InvalidValue`] if there is no document
    /// or a word is outside the vocabulary.
    pub fn new(
        num_words: usize,
        documents: impl IntoIterator<Item = Vec<(u32, u32)>>,
    ) -> Result<Self> {
        let (mut sizes, mut words, mut counts) = (Vec::new(), Vec::<u32>::new(), Vec::<u32>::new());
        for mut document in documents {
            let start = words.len();
            document.retain(|&(_, count)| count > 0);
            document.sort_unstable();
            for (word, count) in document {
                match counts.last_mut() {
                    Some(last) if words.len() > start && words.last() == Some(&word) => {
                        *last = last.saturating_add(count);
                    }
                    _ => {
                        words.push(word);
                        counts.push(count);
                    }
                }
            }
            sizes.push(words.len() - start);
        }
        let corpus = Self { offsets: SetOffsets::from_sizes(sizes)?, words, counts, num_words };
        for document in corpus.documents() {
            document.check(num_words)?;
        }
        Ok(corpus)
    }

    /// V, the size of the vocabulary.
    pub fn num_words(&self) -> usize {
        self.num_words
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.offsets.num_sets()
    }

    /// Whether there is none, which [`new`](Self::new) does not allow.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Words of all documents together.
    pub fn num_tokens(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// One of the documents.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    pub fn document(&self, index: usize) -> Document<'_> {
        let range = self.offsets.range(index);
        Document { words: &self.words[range.clone()], counts: &self.counts[range] }
    }

    /// All of them, in order.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = Document<'_>> {
        (0..self.len()).map(|index| self.document(index))
    }

    /// The documents of these numbers, over the same vocabulary.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `members` is empty.
    pub fn select(&self, members: &[usize]) -> Result<Self> {
        let pairs = |&index: &usize| {
            let Document { words, counts } = self.document(index);
            words.iter().copied().zip(counts.iter().copied()).collect()
        };
        Self::new(self.num_words, members.iter().map(pairs))
    }

    /// Where each document's distinct words begin in an array over all of them.
    pub(super) fn offsets(&self) -> &SetOffsets {
        &self.offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_corpus_is_an_error() {
        assert!(matches!(
            Corpus::new(3, [vec![(0, 1)], vec![(2, 0)]]),
            Err(Error::EmptySet { set: 1, .. })
        ));
        assert!(Corpus::new(3, []).is_err());
        let error = Corpus::new(3, [vec![(3, 1)]]).unwrap_err().to_string();
        assert_eq!(error, "`word` must be below 3, the size of the vocabulary, found 3");
    }

    #[test]
    fn tokens_are_all_occurrences() {
        let corpus = Corpus::new(5, [vec![(4, 1), (1, 2)], vec![(0, 3)]]).unwrap();
        assert_eq!(corpus.document(0).tokens(), [1, 1, 4]);
        assert_eq!((corpus.num_tokens(), corpus.document(1).num_tokens()), (6, 3));
        assert_eq!(corpus.select(&[1]).unwrap().document(0), corpus.document(1));
    }
}
