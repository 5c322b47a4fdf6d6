//! A light recording without a recorder: the store contains everything that programs need to count, and the
//! first process to open it makes the tables. For jobs that are always counted (docs/how-to/light-mode.md).

use crate::backends::choice::{named, Choice};
use crate::backends::reason::Reason;
use crate::backends::ProgramExit;
use crate::clock::pair;
use crate::error::{plain, RecordError, Refusal};
use crate::parts::Part;
use crate::{closing, meta, sampler, Clock};
use iodock_journal::{JournalError, JournalMeta};
use iodock_preload::calls::{CallsWriter, ENDING};
use iodock_preload::left;
use iodock_preload::light::Light;
use iodock_preload::session::{self, Session, Wanted};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The uncertainty of the readings is some millionths of it.
const APART: Duration = Duration::from_millis(20);

/// Result of beginning.
#[derive(Debug)]
pub struct Begun {
    pub store: PathBuf,
    /// For the environment of the programs.
    pub variables: Vec<(&'static str, Vec<u8>)>,
}

/// Creates the store at `store`, in which programs with these variables count.
///
/// # Errors
/// Rewriting can't be used here, or the store can't be created. Nothing is left then.
pub fn begin_counting(store: &Path, light: Light) -> Result<Begun, RecordError> {
    let choice = Choice { backend: named("rewrite")?, reason: Reason::Asked };
    let mut meta = meta(choice, Vec::new());
    meta.extra.insert("light".into(), light.memory.to_string());
    let part = Part::claim(store, false, &meta)?;
    let begun = begin(&part, &meta, light);
    begun.inspect_err(|_| part.abandon())
}

fn begin(part: &Part, meta: &JournalMeta, light: Light) -> Result<Begun, RecordError> {
    let clock = Clock::start();
    let failed = |error: JournalError| RecordError::Store(Refusal::new(error.to_string(), error.hint()));
    let mut journal = part.open_journal(meta)?;
    let mounts = sampler::mounts(&sampler::Settings::default().root, &mut Vec::new());
    journal.mounts(&mounts).map_err(failed)?;
    let folder = std::path::absolute(part.session()).unwrap_or_else(|_| part.session());
    let refused = |error: io::Error| {
        let message = format!("{}: the shared buffers can't be made: {}", folder.display(), plain(&error));
        RecordError::Store(Refusal::new(message, "give another place with -o"))
    };
    let wanted = Wanted { light: Some(light), ..Wanted::default() };
    let session = Session::create_for(&folder, &session::libraries(), wanted).map_err(refused)?;
    let path = journal.path().with_extension(ENDING);
    let write = || {
        let mut file = CallsWriter::create(&path, &session, 0)?;
        file.clock(pair(&session, &clock))?;
        // A second reading, to determine the length of a tick.
        std::thread::sleep(APART);
        file.clock(pair(&session, &clock))?;
        file.flush()?;
        left::name_calls(&session, &path)
    };
    write().map_err(refused)?;
    // Closed now, because no process will do it later.
    journal.close(&closing(ProgramExit::Running, clock.now(), false)).map_err(failed)?;
    let variables = vec![
        ("LD_PRELOAD", session.library().as_os_str().as_bytes().to_vec()),
        ("IODOCK_SESSION", session.path().as_os_str().as_bytes().to_vec()),
    ];
    Ok(Begun { store: part.store.clone(), variables })
}
