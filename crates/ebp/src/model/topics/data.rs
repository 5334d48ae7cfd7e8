//! Documents to learn from, documents to be judged by, and what their words are called.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bars;
use super::settings::{TopicDataSettings, TopicSettings};
use crate::data::Cache;
use crate::data::cache::Kind;
use crate::data::import::{SourceKind, detect};
use crate::data::words::{Bags, read_bags, read_vocabulary};
use crate::files::entries;
use crate::topic::{Corpus, TopicMixture};
use crate::{Error, Result};

/// Documents in two parts.
#[derive(Clone, Debug)]
pub struct TopicData {
    /// What is learned from.
    pub training: Arc<Corpus>,
    /// What a model is judged by.
    pub held_out: Corpus,
    /// What the words are called, `[V]`.
    pub vocabulary: Vec<String>,
    /// The class of every training document; empty where there are none.
    pub labels: Vec<usize>,
    /// What the classes are called.
    pub classes: Vec<String>,
    /// The law that the documents were drawn from, where it is known.
    pub truth: Option<TopicMixture>,
    /// Documents without words, which were left out.
    pub num_empty: usize,
    /// Words outside the vocabulary, which were left out.
    pub num_unknown: u64,
}

/// Documents before they are split.
#[derive(Debug, Default)]
pub(in crate::model) struct Collected {
    /// Words and counts of each.
    pub(in crate::model) documents: Vec<Vec<(u32, u32)>>,
    /// The class of each; empty where there are none.
    pub(in crate::model) labels: Vec<String>,
    /// Documents without words, which are not among them.
    pub(in crate::model) num_empty: usize,
}

impl TopicData {
    /// Draws or reads what the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no such documents or too few; otherwise what a file is wrong about.
    pub fn load(settings: &TopicSettings) -> Result<Self> {
        let data = &settings.data;
        if data.source == "bars" {
            data.check_parts()?;
            let documents = bars::documents(data.num_documents, data.document_length)?;
            let read = Collected { documents, ..Collected::default() };
            let mut found = Self::split(read, bars::vocabulary(), data)?;
            found.truth = Some(bars::truth()?);
            return Ok(found);
        }
        let (read, path) = read_documents(Path::new(&data.source))?;
        let vocabulary = vocabulary_of(&path, &data.vocabulary)?;
        Self::of_documents(settings, read, vocabulary)
    }

    /// Documents that were read or given; without a vocabulary words are numbers.
    pub(in crate::model) fn of_documents(
        settings: &TopicSettings,
        read: Collected,
        vocabulary: Option<Vec<String>>,
    ) -> Result<Self> {
        let data = &settings.data;
        data.check_parts()?;
        let vocabulary = vocabulary.unwrap_or_else(|| {
            let largest = read.documents.iter().flatten().map(|(word, _)| *word).max();
            (0..=largest.unwrap_or(0)).map(|word| format!("word {}", u64::from(word) + 1)).collect()
        });
        Self::split(read, vocabulary, data)
    }

    /// All documents of a file, folder or cache to learn from; those that are held out are among them.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_all(settings: &TopicSettings) -> Result<Self> {
        let mut found = Self::load(settings)?;
        let (read, _) = read_documents(Path::new(&settings.data.source))?;
        let known = |&(word, _): &(u32, u32)| (word as usize) < found.vocabulary.len();
        let documents = read
            .documents
            .into_iter()
            .map(|document| document.into_iter().filter(known).collect::<Vec<_>>());
        let documents: Vec<Vec<(u32, u32)>> = documents.filter(|d| !d.is_empty()).collect();
        found.training = Arc::new(Corpus::new(found.vocabulary.len(), documents)?);
        found.labels.clear();
        Ok(found)
    }

    /// Leaves out what the vocabulary does not have, and holds some documents out.
    fn split(read: Collected, vocabulary: Vec<String>, data: &TopicDataSettings) -> Result<Self> {
        let Collected { documents, labels, mut num_empty } = read;
        let mut num_unknown = 0;
        let mut classes: Vec<String> = labels.clone();
        // Numbers in their order, other labels by name.
        classes.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => a.cmp(b),
        });
        classes.dedup();
        let (mut training, mut held_out, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut number = 0;
        for (index, mut document) in documents.into_iter().enumerate() {
            document.retain(|(word, count)| {
                let is_known = (*word as usize) < vocabulary.len();
                num_unknown += if is_known { 0 } else { u64::from(*count) };
                is_known
            });
            if document.is_empty() {
                num_empty += 1;
                continue;
            }
            let part = number % data.num_parts;
            number += 1;
            if Some(part) == data.left_out_part {
                continue;
            }
            if part == data.held_out_part {
                held_out.push(document);
            } else {
                training.push(document);
                kept.extend(
                    labels.get(index).and_then(|label| classes.iter().position(|c| c == label)),
                );
            }
        }
        if training.is_empty() || held_out.is_empty() {
            let message = format!(
                "`{}` must have documents to learn from and to hold out, found {} and {}",
                data.source,
                training.len(),
                held_out.len()
            );
            let help = "give more documents, or lower `data.num_parts`";
            return Err(Error::refused(message).with_help(help));
        }
        Ok(Self {
            training: Arc::new(Corpus::new(vocabulary.len(), training)?),
            held_out: Corpus::new(vocabulary.len(), held_out)?,
            vocabulary,
            labels: if classes.len() > 1 { kept } else { Vec::new() },
            classes,
            truth: None,
            num_empty,
            num_unknown,
        })
    }
}

/// The documents of a file, of the one such file of a folder, or of a cache; and where they were.
fn read_documents(source: &Path) -> Result<(Collected, PathBuf)> {
    if !source.exists() {
        let message = format!("`data.source` must name documents, found `{}`", source.display());
        let help = "bars, a file of `label id:count` lines, UCI's docword, or a cache of either";
        return Err(Error::refused(message).with_help(help));
    }
    if source.is_file() && Cache::is_cache(source) {
        return Ok((read_cache(source)?, source.to_owned()));
    }
    let path = if source.is_dir() { only_file(source)? } else { source.to_owned() };
    if !matches!(detect(&path)?, SourceKind::Svmlight | SourceKind::Docword) {
        let message = format!("`{}` must hold bags of words", path.display());
        let help = "a file ending in .feat, .svm, .svmlight or .libsvm, or called docword…";
        return Err(Error::refused(message).with_help(help));
    }
    let Bags { offsets, words, counts, ids, labels } = read_bags(&path)?;
    let document =
        |index| offsets.range(index).map(|place| (words[place], counts[place])).collect();
    let documents: Vec<Vec<(u32, u32)>> = (0..offsets.num_sets()).map(document).collect();
    let num_empty = ids.last().map_or(0, |last| last + 1 - documents.len());
    let labels = labels.iter().map(ToString::to_string).collect();
    Ok((Collected { documents, labels, num_empty }, path))
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let is_wanted =
        |path: &PathBuf| matches!(detect(path), Ok(SourceKind::Svmlight | SourceKind::Docword));
    let mut found: Vec<PathBuf> =
        entries(folder)?.into_iter().map(|name| folder.join(name)).filter(is_wanted).collect();
    match (found.pop(), found.len()) {
        (Some(path), 0) => Ok(path),
        (_, others) => {
            let message = format!("`{}` must hold one file of documents", folder.display());
            let help = if others == 0 { "it holds none" } else { "it holds several: name one" };
            Err(Error::refused(message).with_help(help))
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just before")]
fn read_cache(path: &Path) -> Result<Collected> {
    let cache = Cache::open(path)?;
    if cache.meta().kind != Kind::Words {
        let message = format!("the cache `{}` holds no bags of words", path.display());
        return Err(Error::refused(message).with_help("make one by `ebp data import`"));
    }
    let mut read = Collected::default();
    for index in 0..cache.len() {
        let pair = |pair: &[f32]| {
            let is_whole = |x: f32| (0.0..16_777_216.0).contains(&x) && x.fract() == 0.0;
            if pair.len() == 2 && pair.iter().all(|x| is_whole(*x)) {
                return Ok((pair[0] as u32, pair[1] as u32));
            }
            let expected = "whole numbers below 2^24, which f32 holds exactly";
            Err(Error::invalid(format!("set {index}"), expected, format!("{pair:?}")))
        };
        read.documents.push(cache.set(index).chunks(2).map(pair).collect::<Result<_>>()?);
        let class = cache.label(index).and_then(|label| cache.meta().classes.get(label as usize));
        read.labels.extend(class.cloned());
    }
    if read.labels.len() != read.documents.len() {
        read.labels.clear();
    }
    Ok(read)
}

/// The vocabulary that was named, or one that stands beside the documents.
fn vocabulary_of(path: &Path, named: &str) -> Result<Option<Vec<String>>> {
    if !named.is_empty() {
        return Ok(Some(read_vocabulary(Path::new(named))?));
    }
    let beside = path.with_extension("vocab");
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let uci = name.strip_prefix("docword").map(|rest| path.with_file_name(format!("vocab{rest}")));
    let found = [Some(beside), uci].into_iter().flatten().find(|path| path.is_file());
    found.map(|path| read_vocabulary(&path)).transpose()
}
