//! The folder of one share: what it is a part of, and its pieces.

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

use ebp::checkpoint::crc32c;
use ebp::data::CloudSource;
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::files::{is_leftover, read_json, write_json};
use ebp::model::Model;
use ebp::{Error, Share};
use miette::miette;
use serde::{Deserialize, Serialize};

use crate::device;
use crate::failure::Failure;

/// Of what is written here.
const FORMAT: u32 = 1;
/// Says what the folder is.
const HEADER_FILE: &str = "part.json";

/// What all parts of a whole have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    /// The command, such as `score`.
    pub(crate) command: String,
    /// Its arguments but for those that change no result, with the values of those left out.
    pub(crate) arguments: String,
    /// What the model and the sets are.
    pub(crate) inputs: String,
    /// Pieces of all shares together.
    pub(crate) num_pieces: usize,
}

/// What `part.json` holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) format: u32,
    /// Of the program.
    pub(super) version: String,
    pub(super) question: Question,
    pub(super) share: Share,
    /// What was typed, without the program's name.
    pub(super) typed: Vec<String>,
    /// Where it was computed, if a device was opened: devices may round differently.
    pub(super) device: Option<String>,
    /// Whether all pieces are there.
    pub(super) is_whole: bool,
}

impl Header {
    /// What the folder says it is; `None` if it says nothing.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(HEADER_FILE))
    }

    /// What was typed, for people.
    pub(super) fn words(&self) -> String {
        format!("ebp {}", self.typed.join(" "))
    }
}

/// The folder of one share.
#[derive(Debug)]
pub(crate) struct Part {
    folder: PathBuf,
    header: Header,
}

impl Part {
    /// Begins a part in a new or empty folder, or goes on with the same one.
    pub(crate) fn begin(folder: &Path, share: Share, question: Question) -> Result<Self, Failure> {
        let typed = std::env::args_os().skip(1).map(|word| {
            word.into_string().map_err(|word| {
                let word = word.display().to_string();
                Failure::Usage(miette!("a part keeps what was typed, and `{word}` is no text"))
            })
        });
        let header = Header {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            question,
            share,
            typed: typed.collect::<Result<_, _>>()?,
            device: device::opened(),
            is_whole: false,
        };
        let part = Self { folder: folder.to_owned(), header };
        if let Some(known) = Header::read(folder) {
            let is_same = |known: &Header| {
                (known.format, &known.version, &known.question, known.share)
                    == (FORMAT, &part.header.version, &part.header.question, share)
            };
            if !is_same(&known) {
                return Err(Failure::Usage(miette!(
                    help = "name another folder, or remove this one",
                    "`{}` holds a part of something else: `{}` by ebp {}",
                    folder.display(),
                    known.words(),
                    known.version
                )));
            }
            let header = if known.is_whole { known } else { part.header };
            return Ok(Self { header, ..part });
        }
        if folder.exists() && !is_free(folder)? {
            return Err(Failure::Usage(miette!(
                help = "name another folder, or remove this one",
                "`{}` must be new or the folder of a part, but holds something else",
                folder.display()
            )));
        }
        part.write_header()?;
        Ok(part)
    }

    fn write_header(&self) -> Result<(), Error> {
        write_json(&self.folder.join(HEADER_FILE), &self.header)
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Pieces of this share that are not there yet.
    pub(crate) fn missing(&self) -> Vec<usize> {
        let all = self.header.share.range(self.header.question.num_pieces);
        let is_there =
            |piece: &usize| self.header.is_whole || rows_file(&self.folder, *piece).is_file();
        all.filter(|piece| !is_there(piece)).collect()
    }

    /// Whether there is nothing left to do.
    pub(crate) fn is_whole(&self) -> bool {
        self.header.is_whole
    }

    /// Keeps a piece: rows, and numbers beside them. Whoever sees the rows sees the numbers.
    pub(crate) fn keep(
        &self,
        piece: usize,
        rows: &impl Serialize,
        values: Option<Array<f32>>,
    ) -> Result<(), Error> {
        if let Some(values) = values {
            write_npy(&values_file(&self.folder, piece), &values, Precision::Single)?;
        }
        write_json(&rows_file(&self.folder, piece), rows)
    }

    /// Says that everything is there.
    pub(crate) fn finish(mut self) -> Result<Report, Failure> {
        if !self.header.is_whole {
            // A GPU for distances is opened only when its work begins.
            self.header.device = device::opened();
            self.header.is_whole = true;
            self.write_header()?;
        }
        Ok(Report {
            command: self.header.question.command,
            shard: self.header.share,
            part: self.folder.display().to_string(),
        })
    }
}

/// What a command with `--shard` says.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Stands in the head of the object.
    #[serde(skip)]
    command: String,
    shard: Share,
    part: String,
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, shard, part } = self;
        writeln!(f, "share {shard} of `ebp {command}` is whole: {part}")
    }
}

/// Whether a folder holds nothing, or no more than what a killed process was about to say in it.
fn is_free(folder: &Path) -> Result<bool, Failure> {
    let unreadable = |error| Failure::cannot("read", folder, &error);
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        if !is_leftover(&name.to_string_lossy()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where the rows of a piece are.
pub(super) fn rows_file(folder: &Path, piece: usize) -> PathBuf {
    folder.join(format!("{piece:06}.json"))
}

/// Where the numbers of a piece are.
pub(super) fn values_file(folder: &Path, piece: usize) -> PathBuf {
    folder.join(format!("{piece:06}.npy"))
}

/// What a model and the sets that it is asked about are, in words that differ if they do: the model by all
/// its numbers, the sets by their names and sizes.
pub(crate) fn inputs_of(model: &Model, clouds: Option<&CloudSource>) -> String {
    let model = format!("model {}", model.fingerprint());
    let Some(clouds) = clouds else { return model };
    let mut sum = 0;
    for index in 0..clouds.num_sets() {
        let size = (clouds.size(index) as u64).to_le_bytes();
        sum = crc32c(&[&u32::to_le_bytes(sum), clouds.name(index).as_bytes(), &size]);
    }
    let (sets, dim) = (clouds.num_sets(), clouds.dim());
    format!("{model}; {sets} sets of {dim} numbers a point, names and sizes {sum:08x}")
}

/// A part's version and format, where they are not this program's.
pub(super) fn strange_version(header: &Header) -> Option<String> {
    let is_ours = header.format == FORMAT && header.version == env!("CARGO_PKG_VERSION");
    (!is_ours).then(|| format!("ebp {} (format {})", header.version, header.format))
}
