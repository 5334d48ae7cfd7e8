//! `ebp query`: items like the given ones, and documents like a document.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use ebp::model::{Data, Model, Settings, TopicData};
use ebp::rng::Stream;
use ebp::topic::TopicModel;
use ebp::topic::bayesian_sets::{BayesianSets, STRENGTH};
use miette::miette;
use serde::Serialize;

use crate::args::Common;
use crate::failure::Failure;
use crate::{output, progress};

const HELP: &str = "\
With --like, items are ranked by Bayesian sets: log p(item | given ones) / p(item) for binary features with Beta
priors, in nats. Of bags of words, items are words (their features: the documents that have them) if all names
are in the vocabulary, otherwise documents by number from 0 (their features: their words). Of a CSV table, items
are rows by the name in the first column or by number from 0, and features are columns with a number above 0.

With --document, MODEL is the folder of a trained model of documents: the training documents whose shares of
topics are nearest (Hellinger's distance), with the document's own topics.

Examples:
  ebp query 20news.feat --like god,jesus,church
  ebp query 20news.feat --like 17,23 -n 5 --json
  ebp query animals.csv --like lion,tiger
  ebp query runs/lda --document 12";

/// Arguments of `ebp query`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct QueryArguments {
    /// Bags of words, a CSV table, or the folder of a model
    #[arg(value_name = "DATA|MODEL")]
    data: PathBuf,

    /// The given items, by name or number, separated by commas
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', required_unless_present = "document")]
    like: Vec<String>,

    /// A training document, by number from 0
    #[arg(long, value_name = "K", conflicts_with = "like")]
    document: Option<usize>,

    /// How many are shown
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = crate::args::at_least_one)]
    count: usize,

    /// Strength of the prior of a feature
    #[arg(long, value_name = "S", default_value_t = STRENGTH)]
    strength: f64,

    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Serialize)]
struct Report {
    /// What items are.
    items: &'static str,
    given: Vec<String>,
    /// What the numbers mean.
    measure: &'static str,
    found: Vec<Found>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    topics: Vec<TopicShare>,
}

#[derive(Debug, Serialize)]
struct Found {
    item: String,
    score: f64,
}

#[derive(Debug, Serialize)]
struct TopicShare {
    topic: usize,
    share: f64,
    words: Vec<String>,
}

/// Ranks and prints.
pub(crate) fn run(arguments: &QueryArguments) -> Result<(), Failure> {
    let report = arguments.common.install(|| match arguments.document {
        Some(document) => nearest(arguments, document),
        None => ranked(arguments),
    })?;
    if arguments.common.json {
        return output::print_json(None, &report);
    }
    let mut text =
        format!("{} like {}: {}\n\n", report.items, report.given.join(", "), report.measure);
    // Writing to a string does not fail.
    for TopicShare { topic, share, words } in &report.topics {
        let _ = writeln!(text, "{:6.1} %  topic {topic}  {}", 100.0 * share, words.join(" "));
    }
    for Found { item, score } in &report.found {
        let _ = writeln!(text, "{score:10.3}  {item}");
    }
    output::print(&text)
}

/// Items and what they are called.
struct Items {
    kind: &'static str,
    names: Vec<String>,
    num_features: usize,
    features: Vec<Vec<u32>>,
}

fn ranked(arguments: &QueryArguments) -> Result<Report, Failure> {
    let items = items(&arguments.data, &arguments.like)?;
    let place = |given: &String| {
        let by_name = items.names.iter().position(|name| name == given);
        let by_number = || given.parse().ok().filter(|place: &usize| *place < items.names.len());
        by_name.or_else(by_number).ok_or_else(|| {
            Failure::Usage(miette!(
                help = "give names of items or numbers from 0",
                "there is no item `{given}` among {} {}",
                items.names.len(),
                items.kind
            ))
        })
    };
    let query: Vec<usize> = arguments.like.iter().map(place).collect::<Result<_, _>>()?;
    let sets = BayesianSets::new(items.num_features, &items.features)?;
    // The given items are the likest of all, and known already.
    let found =
        sets.rank(&query, arguments.strength, arguments.count.saturating_add(query.len()))?;
    let others = found.into_iter().filter(|(item, _)| !query.contains(item));
    let found = others.take(arguments.count);
    let found = found.map(|(item, score)| Found { item: items.names[item].clone(), score });
    Ok(Report {
        items: items.kind,
        given: arguments.like.clone(),
        measure: "log p(item | given) / p(item) in nats",
        found: found.collect(),
        topics: Vec::new(),
    })
}

/// The items that the names speak of.
fn items(path: &Path, like: &[String]) -> Result<Items, Failure> {
    let is_table = path.extension().is_some_and(|ending| ending == "csv" || ending == "tsv");
    if is_table {
        return table_items(path);
    }
    let data = documents(path)?;
    let all = |index: usize| data.training.document(index).words.to_vec();
    let rows: Vec<Vec<u32>> = (0..data.training.len()).map(all).collect();
    if !like.iter().all(|name| data.vocabulary.contains(name)) {
        let names = (0..rows.len()).map(|index| index.to_string()).collect();
        let num_features = data.vocabulary.len();
        return Ok(Items { kind: "documents", names, num_features, features: rows });
    }
    let mut features = vec![Vec::new(); data.vocabulary.len()];
    for (number, row) in (0_u32..).zip(&rows) {
        for &word in row {
            features[word as usize].push(number);
        }
    }
    Ok(Items { kind: "words", names: data.vocabulary, num_features: rows.len(), features })
}

/// All documents of a source, none held out.
fn documents(path: &Path) -> Result<TopicData, Failure> {
    let source = toml::Value::String(path.display().to_string());
    let settings = Settings::preset("lda", &[format!("data.source={source}")])?;
    match settings {
        Settings::Topics(settings) => Ok(TopicData::load_all(&settings)?),
        _ => Err(Failure::Failed(miette!("the preset `lda` is of another kind"))),
    }
}

/// Rows of a table: a name, then numbers.
fn table_items(path: &Path) -> Result<Items, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::cannot("read", path, &error))?;
    let separator = if path.extension().is_some_and(|ending| ending == "tsv") { '\t' } else { ',' };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let width = lines.next().map_or(0, |header| header.split(separator).count());
    let (mut names, mut features) = (Vec::new(), Vec::new());
    for (number, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(separator).map(str::trim).collect();
        if cells.len() != width {
            let found = cells.len();
            return Err(Failure::Usage(miette!(
                "row {number} must have {width} columns, found {found}"
            )));
        }
        let mut has = Vec::new();
        for (column, cell) in (0_u32..).zip(&cells[1..]) {
            match cell.parse::<f64>() {
                Ok(value) if value.is_finite() => has.extend((value > 0.0).then_some(column)),
                _ => {
                    return Err(Failure::Usage(miette!(
                        help = "the first column names a row, the others are its features",
                        "row {number}, column {} must be a number, found `{cell}`",
                        column + 1
                    )));
                }
            }
        }
        names.push(cells[0].to_owned());
        features.push(has);
    }
    if names.is_empty() || width < 2 {
        let path = path.display();
        return Err(Failure::Usage(miette!(
            "`{path}` must have a header, a column of names and features, and rows"
        )));
    }
    Ok(Items { kind: "rows", names, num_features: width - 1, features })
}

/// Training documents with nearly the same shares of topics.
fn nearest(arguments: &QueryArguments, document: usize) -> Result<Report, Failure> {
    let model = Model::load(&arguments.data)?;
    let Data::Topics(data) = Data::load(model.settings())? else {
        model.topics()?;
        return Err(Failure::Failed(miette!("the data are of another kind")));
    };
    let law: &dyn TopicModel = model.topics()?.model();
    let count = data.training.len();
    if document >= count {
        return Err(Failure::Usage(miette!(
            "`--document` must be below {count}, found {document}"
        )));
    }
    let shares = |index: usize| {
        law.shares(data.training.document(index), Stream::new(0, "query").child(index as u64))
    };
    let own = shares(document)?;
    let mut found = Vec::with_capacity(count);
    let done = progress::count(count as u64, arguments.common.quiet, "documents");
    for index in (0..count).filter(|&index| index != document) {
        let other = shares(index)?;
        done.inc(1);
        let square: f64 = own.iter().zip(&other).map(|(a, b)| (a.sqrt() - b.sqrt()).powi(2)).sum();
        found.push(((0.5 * square).sqrt(), index));
    }
    done.finish();
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let name = |index: usize| {
        let class = data.labels.get(index).map(|&class| format!(", class {}", data.classes[class]));
        let words =
            top(&data, data.training.document(index).counts, data.training.document(index).words);
        format!("document {index}{}: {words}", class.unwrap_or_default())
    };
    let found = found.into_iter().take(arguments.count);
    let found = found.map(|(score, index)| Found { item: name(index), score }).collect();
    let topics = law.topics();
    let best = ebp::topic::top_words(&own, 3).into_iter().map(|topic| TopicShare {
        topic: topic + 1,
        share: own[topic],
        words: ebp::topic::top_words(&topics[topic], 8)
            .into_iter()
            .map(|word| data.vocabulary[word].clone())
            .collect(),
    });
    Ok(Report {
        items: "documents",
        given: vec![name(document)],
        measure: "Hellinger's distance of their shares of topics",
        found,
        topics: best.collect(),
    })
}

/// The most frequent words of a document.
fn top(data: &TopicData, counts: &[u32], words: &[u32]) -> String {
    let weights: Vec<f64> = counts.iter().map(|&count| f64::from(count)).collect();
    let names = ebp::topic::top_words(&weights, 6).into_iter();
    names.map(|place| data.vocabulary[words[place] as usize].as_str()).collect::<Vec<_>>().join(" ")
}
