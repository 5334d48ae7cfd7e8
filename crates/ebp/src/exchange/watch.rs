//! A process that dies is noticed by the others, whatever the launcher does.
//!
//! ```text
//! rank 1 ─┐ a byte a second, both ways
//! rank 2 ─┼─ TCP ─ rank 0 ─ Loss of the rank that fell silent, to all others
//! rank 3 ─┘
//! ```
//!
//! In the middle of a collective call of MPI nobody notices: such a call waits for ever. When a process
//! is killed its system closes its connections, which is seen at once; one whose machine is gone is
//! silent for [`SILENCE`]. Nothing but these bytes travels here.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Ranks;
use crate::{Error, Result};

/// A sign of life comes so often.
const BEAT: Duration = Duration::from_secs(1);
/// Who says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(8);
/// How long ranks try to reach the first.
const PATIENCE: Duration = Duration::from_secs(20);

const ALIVE: u8 = b'.';
const GOODBYE: u8 = b'!';
/// Followed by the number of the rank that is lost.
const LOST: u8 = b'?';

/// A process that ended without a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its number.
    pub rank: usize,
    /// Its machine.
    pub host: String,
    /// Whether this process should tell the user: one that heard of it from the first rank need not.
    pub is_news: bool,
}

/// Watches the other processes as long as it lives.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rank: usize,
    /// Connections to others, by rank.
    others: Mutex<Vec<(usize, TcpStream)>>,
    is_over: AtomicBool,
}

/// What to do about a loss; it may come on any thread.
type OnLoss = Arc<dyn Fn(&Loss) + Send + Sync>;

impl Watch {
    /// Begins to watch. All ranks call it, before anything that takes long.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] on all ranks if not all can reach the first by TCP.
    pub fn begin(ranks: &Ranks, on_loss: impl Fn(&Loss) + Send + Sync + 'static) -> Result<Self> {
        let connected = match ranks.rank() {
            0 => wait_for(ranks),
            _ => reach(ranks),
        };
        let reason = connected.as_ref().err().map(ToString::to_string);
        if ranks.any(reason.is_some())? {
            let reason = reason.unwrap_or_else(|| "another process cannot".to_owned());
            let message = format!("the processes cannot watch each other by TCP: {reason}");
            let help = "let them reach each other's machines by name, on any port";
            return Err(Error::failed(message).with_help(help));
        }
        let others = connected?;
        let watched = others
            .iter()
            .map(|other| Ok((other.rank, other.host.clone(), copy_of(&other.stream)?)))
            .collect::<Result<Vec<_>>>()?;
        let others = others.into_iter().map(|other| (other.rank, other.stream)).collect();
        let is_over = AtomicBool::new(false);
        let shared = Arc::new(Shared { rank: ranks.rank(), others: Mutex::new(others), is_over });
        let on_loss: OnLoss = Arc::new(on_loss);
        for (rank, host, stream) in watched {
            let (shared, on_loss) = (Arc::clone(&shared), Arc::clone(&on_loss));
            spawn(move || listen(&shared, (rank, host), stream, &on_loss))?;
        }
        let beating = Arc::clone(&shared);
        spawn(move || {
            while !beating.is_over.load(Ordering::SeqCst) {
                beating.say(&[ALIVE]);
                thread::sleep(BEAT);
            }
        })?;
        Ok(Self { shared })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.say(&[GOODBYE]);
    }
}

impl Shared {
    /// To all; who cannot be written to is missed by whoever listens to it.
    fn say(&self, bytes: &[u8]) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, stream) in others.iter_mut() {
            drop(stream.write_all(bytes));
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name("watch".into()).spawn(work);
    let failed = |error| Error::failed(format!("cannot start a thread to watch: {error}"));
    thread.map(drop).map_err(failed)
}

fn copy_of(stream: &TcpStream) -> Result<TcpStream> {
    stream.try_clone().map_err(|error| failed("copy a connection", &error))
}

fn failed(action: &str, error: &std::io::Error) -> Error {
    Error::failed(format!("cannot {action}: {error}"))
}

/// Until the other end says goodbye or is lost.
fn listen(shared: &Shared, (rank, host): (usize, String), mut stream: TcpStream, on_loss: &OnLoss) {
    let mut bytes = [0; 64];
    loop {
        let lost = match stream.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // Where the first is lost, one of the others is enough to say so.
            Ok(0) | Err(_) => Some((rank, rank != 0 || shared.rank == 1)),
            Ok(count) => match bytes[..count].iter().position(|&byte| byte != ALIVE) {
                None => None,
                Some(place) if bytes[place] == LOST => {
                    // A number of a rank follows, in the same piece or never.
                    let digits: String = bytes[place + 1..count]
                        .iter()
                        .map(|&byte| char::from(byte))
                        .take_while(char::is_ascii_digit)
                        .collect();
                    Some((digits.parse().unwrap_or(rank), false))
                }
                Some(_) => return,
            },
        };
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        if let Some((lost, is_news)) = lost {
            // Whoever is told first tells the others, who would think that it is the one that is lost.
            if shared.is_over.swap(true, Ordering::SeqCst) {
                return;
            }
            if shared.rank == 0 {
                shared.say(format!("{}{lost} ", char::from(LOST)).as_bytes());
            }
            on_loss(&Loss { rank: lost, host, is_news });
            return;
        }
    }
}

/// A connection to another rank.
struct Other {
    rank: usize,
    host: String,
    stream: TcpStream,
}

fn prepared(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(BEAT))?;
    stream.set_read_timeout(Some(SILENCE))
}

/// The first rank: says where it is and waits for all others.
fn wait_for(ranks: &Ranks) -> Result<Vec<Other>> {
    let bound = TcpListener::bind("0.0.0.0:0").and_then(|listener| {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    });
    let (listener, port) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            ranks.share(Some(Vec::new()))?;
            return Err(failed("open a port", &error));
        }
    };
    ranks.share(Some(format!("{port} {}", ranks.host()).into_bytes()))?;
    let (started, mut others) = (Instant::now(), Vec::<Other>::new());
    while others.len() + 1 < ranks.size() {
        match listener.accept() {
            // A line with rank and machine comes at once; what says something else is none of ours.
            Ok((stream, _)) => {
                if let Some(other) = introduced(stream)
                    && (1..ranks.size()).contains(&other.rank)
                    && others.iter().all(|known| known.rank != other.rank)
                {
                    others.push(other);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(failed("accept a connection", &error)),
        }
        if started.elapsed() > PATIENCE {
            let found = format!("{} of {}", others.len(), ranks.size() - 1);
            return Err(Error::failed(format!("only {found} processes connected")));
        }
    }
    Ok(others)
}

fn introduced(mut stream: TcpStream) -> Option<Other> {
    prepared(&stream).ok()?;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < 512 && byte != *b"\n" {
        stream.read_exact(&mut byte).ok()?;
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).ok()?;
    let (rank, host) = line.trim_end().strip_prefix("ebp ")?.split_once(' ')?;
    Some(Other { rank: rank.parse().ok()?, host: host.to_owned(), stream })
}

/// The others: reach the first and say who they are.
fn reach(ranks: &Ranks) -> Result<Vec<Other>> {
    let told = String::from_utf8(ranks.share(None)?).unwrap_or_default();
    let Some((port, host)) = told.split_once(' ') else {
        return Err(Error::failed("the first process has no port"));
    };
    let port: u16 = port.parse().unwrap_or_default();
    let name = if host == ranks.host() { "127.0.0.1" } else { host };
    let started = Instant::now();
    loop {
        let connected = (name, port).to_socket_addrs().and_then(|mut addresses| {
            let address = addresses.next().ok_or(ErrorKind::NotFound)?;
            let mut stream = TcpStream::connect_timeout(&address, SILENCE)?;
            prepared(&stream)?;
            stream.write_all(format!("ebp {} {}\n", ranks.rank(), ranks.host()).as_bytes())?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => return Ok(vec![Other { rank: 0, host: host.to_owned(), stream }]),
            Err(error) if started.elapsed() > PATIENCE => {
                return Err(failed(&format!("reach {name}, port {port}"), &error));
            }
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::ranks::tests::on_ranks;
    use super::*;

    /// A connection that is cut is the end of a process; a goodbye is none.
    #[test]
    fn who_falls_silent_is_named_to_all() {
        let found = on_ranks(3, |ranks| {
            let (sender, receiver) = channel();
            let watch = Watch::begin(&ranks, move |loss| drop(sender.send(loss.clone()))).unwrap();
            ranks.any(false).unwrap();
            if ranks.rank() == 1 {
                // As the system does for a process that is killed.
                watch.shared.is_over.store(true, Ordering::SeqCst);
                for (_, stream) in watch.shared.others.lock().unwrap().iter() {
                    stream.shutdown(std::net::Shutdown::Both).unwrap();
                }
                return None;
            }
            Some(receiver.recv_timeout(SILENCE).unwrap())
        });
        let loss = |is_news| Some(Loss { rank: 1, host: "here".into(), is_news });
        let told = found[2].clone().map(|loss| Loss { host: "here".into(), ..loss });
        assert_eq!((&found[0], &told), (&loss(true), &loss(false)));
        let quiet = on_ranks(2, |ranks| {
            let (sender, receiver) = channel();
            let watch = Watch::begin(&ranks, move |loss| drop(sender.send(loss.clone()))).unwrap();
            ranks.any(false).unwrap();
            drop(watch);
            receiver.recv_timeout(Duration::from_millis(300)).is_err()
        });
        assert_eq!(quiet, [true, true]);
    }
}
