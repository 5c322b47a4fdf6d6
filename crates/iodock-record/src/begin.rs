//! Begins a light recording that needs no recorder process. The store contains all files that programs need
//! to count their calls, and the first process that opens the store later makes the tables. It is for jobs
//! that are always counted (docs/how-to/light-mode.md).

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

/// Time between two readings of the clocks. The readings are uncertain by a few millionths of this time.
const APART: Duration = Duration::from_millis(20);

/// Result of beginning a light recording.
#[derive(Debug)]
pub struct Begun {
    pub store: PathBuf,
    /// Environment variables that the counted programs need.
    pub variables: Vec<(&'static str, Vec<u8>)>,
}

/// Creates the store at `store`. Programs with the returned variables count their calls in it.
///
/// # Errors
/// Fails if `rewrite` can't be used here, or if the store can't be created. Then no files remain.
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
        // The second reading of the clocks is needed to determine the length of a tick.
        std::thread::sleep(APART);
        file.clock(pair(&session, &clock))?;
        file.flush()?;
        left::name_calls(&session, &path)
    };
    write().map_err(refused)?;
    // The journal is closed now, because no process closes it later.
    journal.close(&closing(ProgramExit::Running, clock.now(), false)).map_err(failed)?;
    let variables = vec![
        ("LD_PRELOAD", session.library().as_os_str().as_bytes().to_vec()),
        ("IODOCK_SESSION", session.path().as_os_str().as_bytes().to_vec()),
    ];
    Ok(Begun { store: part.store.clone(), variables })
}
