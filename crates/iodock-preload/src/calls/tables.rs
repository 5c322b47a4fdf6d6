//! Moves tables of counters (--light) from the session to the file when their programs have ended.

use super::file::CallsWriter;
use crate::session::Session;
use std::io;

/// Tables to which programs still write.
#[derive(Default)]
pub struct Tables {
    /// Number of tables at the last check.
    known: u64,
    live: Vec<Live>,
}

struct Live {
    number: u64,
    /// Whether the table was marked as over at the last check. It is read one check later, because other
    /// threads may still be counting calls when the mark is set.
    was_over: bool,
}

impl Tables {
    /// Skips tables that the file already contains.
    pub fn skip(&mut self, session: &Session, is_held: impl Fn(u64) -> bool) -> io::Result<()> {
        self.look(session)?;
        self.live.retain(|one| !is_held(one.number));
        Ok(())
    }

    fn look(&mut self, session: &Session) -> io::Result<()> {
        let count = session.tables()?;
        self.live.extend((self.known..count).map(|number| Live { number, was_over: false }));
        self.known = count.max(self.known);
        Ok(())
    }

    /// Writes the tables of ended programs, and frees their memory.
    pub fn hand_over(&mut self, session: &Session, file: &mut CallsWriter) -> io::Result<()> {
        self.look(session)?;
        let mut done = Vec::new();
        for one in &mut self.live {
            let is_over = session.is_table_over(one.number)?;
            if is_over && one.was_over {
                hand_over_one(session, file, one.number)?;
                done.push(one.number);
            }
            one.was_over = is_over;
        }
        if !done.is_empty() {
            file.flush()?;
            self.live.retain(|one| done.binary_search(&one.number).is_err());
            done.iter().for_each(|&number| session.discard_table(number));
        }
        Ok(())
    }

    /// Writes all remaining tables.
    pub fn end(&mut self, session: &Session, file: &mut CallsWriter) -> io::Result<()> {
        self.look(session)?;
        self.live.drain(..).try_for_each(|one| hand_over_one(session, file, one.number))
    }
}

fn hand_over_one(session: &Session, file: &mut CallsWriter, number: u64) -> io::Result<()> {
    session.table(number)?.map_or(Ok(()), |bytes| file.table(number, &bytes))
}
