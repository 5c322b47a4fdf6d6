//! Maps ids of the parts to ids of the merged store, and collects the tables that are written at the end.

use super::error::too_many;
use super::part::Part;
use crate::ImportError;
use iodock_event::tables::{TaskIo, NO_INDEX};
use iodock_event::{
    CallId, ErrnoId, EventColumns, FileEntry, FileKind, MountPoint, Site, Tables, TaskOrigin, TaskRow, NONE,
    UNKNOWN,
};
use iodock_store::{Record, SymbolRow};
use std::collections::{HashMap, HashSet};

type FileKey = (bool, bool, Box<[u8]>);

#[derive(Default)]
pub struct Numbers {
    pub tables: Tables,
    pub build_ids: Vec<Option<String>>,
    pub symbols: Vec<SymbolRow>,
    files: HashMap<FileKey, u32>,
    mounts: HashMap<(String, String), u32>,
    /// Files that are on different mounts on different hosts.
    unplaced: HashSet<u32>,
    sites: HashMap<(Site, Option<String>), u32>,
    stacks: HashMap<Box<[u32]>, u32>,
    commands: Vec<Command>,
    next_upid: u32,
    next_handle: u32,
    next_interface_call: u32,
    next_profile: u32,
}

struct Command {
    part: usize,
    utid: u32,
    ts: i64,
    path: String,
    argv: Option<String>,
}

/// Calls `take` with each row of a table of the part.
fn each(
    part: &Part,
    file: &str,
    mut take: impl FnMut(&Record) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut records = part.records(file);
    while let Some(record) = records.next_row()? {
        take(&record)?;
    }
    Ok(())
}

fn index_of(names: &mut Vec<String>, name: &str) -> u16 {
    let index = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    });
    u16::try_from(index).unwrap_or(NO_INDEX)
}

impl Numbers {
    /// Reads the part's tables. `several_hosts`: whether the merged store has several hosts.
    ///
    /// # Errors
    /// A table cannot be read, or there are more rows than ids.
    pub fn add(&mut self, number: usize, part: &mut Part, several_hosts: bool) -> Result<(), ImportError> {
        self.add_names(part)?;
        self.add_files(part)?;
        self.add_tasks(part, several_hosts)?;
        self.add_commands(number, part)?;
        self.add_stacks(part)?;
        self.add_rest(part)
    }

    /// Maps the part's calls and errors by name, because their numbers may differ between versions.
    fn add_names(&mut self, part: &mut Part) -> Result<(), ImportError> {
        let (mut calls, mut errnos) = (Vec::new(), Vec::new());
        each(part, "calls.parquet", |row| {
            let call = CallId::intern(row.text("name").unwrap_or_default().as_bytes());
            calls.push(call.ok_or_else(too_many)?.0);
            Ok(())
        })?;
        each(part, "errnos.parquet", |row| {
            let errno = ErrnoId::intern(row.text("name").unwrap_or_default().as_bytes());
            errnos.push(errno.ok_or_else(too_many)?.0);
            Ok(())
        })?;
        (part.calls, part.errnos) = (calls, errnos);
        Ok(())
    }

    fn add_files(&mut self, part: &mut Part) -> Result<(), ImportError> {
        let mut ids = Vec::new();
        each(part, "files.parquet", |row| {
            ids.push(self.file(row)?);
            Ok(())
        })?;
        part.files = ids;
        Ok(())
    }

    fn file(&mut self, row: &Record) -> Result<u32, ImportError> {
        let kind = row.text("kind").unwrap_or_default();
        let kind = FileKind::ALL.iter().copied().find(|one| one.name() == kind).unwrap_or(FileKind::Other);
        let relative = row.flag("relative").unwrap_or(false);
        let name = row.bytes("name_raw").or_else(|| row.bytes("name")).unwrap_or_default();
        let size = row.number("size_bytes").unwrap_or(UNKNOWN);
        let mount = self.mount(row);
        let key: FileKey = (kind.has_path(), relative, name.into());
        let Some(&id) = self.files.get(&key) else {
            let entry = FileEntry { size, relative, mount, ..FileEntry::new(kind) };
            let id = self.tables.files.push(name, entry);
            if id == NONE - 1 {
                return Err(too_many());
            }
            self.files.insert(key, id);
            return Ok(id);
        };
        let entry = &mut self.tables.files.entries[id as usize];
        if entry.kind == FileKind::File {
            entry.kind = kind;
        }
        // UNKNOWN is the smallest number, so a known size wins.
        entry.size = entry.size.max(size);
        if mount != entry.mount {
            let is_new = entry.mount == NONE && !self.unplaced.contains(&id);
            if is_new {
                entry.mount = mount;
            } else if mount != NONE {
                entry.mount = NONE;
                self.unplaced.insert(id);
            }
        }
        Ok(id)
    }

    fn mount(&mut self, row: &Record) -> u32 {
        let (Some(point), Some(fs_type)) = (row.text("mount_point"), row.text("fs_type")) else {
            return NONE;
        };
        let mounts = &mut self.tables.files.mounts;
        *self.mounts.entry((point.into(), fs_type.into())).or_insert_with(|| {
            mounts.push(MountPoint { mount_point: point.into(), fs_type: fs_type.into() });
            mounts.len() as u32 - 1
        })
    }

    fn add_tasks(&mut self, part: &mut Part, several_hosts: bool) -> Result<(), ImportError> {
        part.first_utid = self.tables.tasks.len() as u32;
        part.first_upid = self.next_upid;
        let own_host = part.host().map(str::to_owned);
        let (first_utid, first_upid) = (part.first_utid, part.first_upid);
        let (mut tasks, mut roots) = (Vec::new(), Vec::new());
        each(part, "processes.parquet", |row| {
            let host = row.text("host").map(str::to_owned).or_else(|| own_host.clone());
            let upid = first_upid.checked_add(row.id("upid").unwrap_or(0)).ok_or_else(too_many)?;
            self.next_upid = self.next_upid.max(upid.checked_add(1).ok_or_else(too_many)?);
            let task = TaskRow {
                upid,
                host: match host.as_deref().filter(|_| several_hosts) {
                    Some(host) => index_of(&mut self.tables.hosts, host),
                    None => NO_INDEX,
                },
                exit_signal: match row.text("exit_signal") {
                    Some(signal) => index_of(&mut self.tables.signals, signal),
                    None => NO_INDEX,
                },
                rank: row.narrow("rank"),
                pid: row.narrow("pid").unwrap_or(0),
                tid: row.narrow("tid").unwrap_or(0),
                generation: row.narrow("generation").unwrap_or(0),
                parent_utid: row.id("parent_utid").map_or(NONE, |parent| parent.saturating_add(first_utid)),
                parent_pid: row.narrow("parent_pid"),
                how: origin(row.text("how")),
                core_dumped: row.flag("core_dumped").unwrap_or(false),
                exit_code: row.narrow("exit_code"),
                start: row.number("start_ts").unwrap_or(UNKNOWN),
                end: row.number("end_ts").unwrap_or(UNKNOWN),
                cpu_user: row.number("cpu_user_ns").unwrap_or(UNKNOWN),
                cpu_system: row.number("cpu_system_ns").unwrap_or(UNKNOWN),
            };
            if task.parent_utid == NONE {
                roots.push((task.tid, task.start));
            }
            tasks.push((task.rank, host));
            self.tables.tasks.push(task);
            let known = |column| row.number(column).unwrap_or(UNKNOWN);
            self.tables.task_io.push(TaskIo { io: known("io_ns"), waiting: known("waiting_ns") });
            if self.tables.tasks.len() >= NONE as usize {
                return Err(too_many());
            }
            Ok(())
        })?;
        (part.tasks, part.roots) = (tasks, roots);
        Ok(())
    }

    fn add_commands(&mut self, number: usize, part: &Part) -> Result<(), ImportError> {
        each(part, "commands.parquet", |row| {
            let argv = row.list("argv");
            self.commands.push(Command {
                part: number,
                utid: row.id("utid").unwrap_or(0).saturating_add(part.first_utid),
                ts: row.number("ts").unwrap_or(UNKNOWN),
                path: row.text("path").unwrap_or_default().into(),
                argv: (!argv.is_empty()).then(|| argv.join("\0")),
            });
            Ok(())
        })
    }

    fn add_stacks(&mut self, part: &mut Part) -> Result<(), ImportError> {
        let mut symbols: HashMap<u32, Vec<SymbolRow>> = HashMap::new();
        each(part, "symbols.parquet", |row| {
            let site = row.id("site_id").unwrap_or(NONE);
            symbols.entry(site).or_default().push(SymbolRow {
                site,
                level: row.id("level").unwrap_or(0),
                function: row.text("function").map(str::to_owned),
                file: row.text("file").map(str::to_owned),
                line: row.id("line"),
            });
            Ok(())
        })?;
        let mut ids = Vec::new();
        each(part, "sites.parquet", |row| {
            let known = symbols.remove(&(ids.len() as u32)).unwrap_or_default();
            ids.push(self.site(row, known));
            Ok(())
        })?;
        part.sites = ids;
        let mut stacks: Vec<Vec<u32>> = Vec::new();
        each(part, "stacks.parquet", |row| {
            let stack = row.id("stack_id").unwrap_or(0) as usize;
            if stack == stacks.len() {
                stacks.push(Vec::new());
            }
            let site = row.id("site_id").and_then(|site| part.sites.get(site as usize).copied());
            if let (Some(sites), Some(site)) = (stacks.get_mut(stack), site) {
                sites.push(site);
            }
            Ok(())
        })?;
        let known = &mut self.tables.stacks.stacks;
        let numbered = stacks.into_iter().map(|sites| {
            let sites: Box<[u32]> = sites.into();
            *self.stacks.entry(sites.clone()).or_insert_with(|| {
                known.push(sites);
                known.len() as u32 - 1
            })
        });
        part.stacks = numbered.collect();
        Ok(())
    }

    /// Maps a site. A site without a module, such as one in a Python file, is identified by its source file.
    fn site(&mut self, row: &Record, known: Vec<SymbolRow>) -> u32 {
        let module = row.text("module").unwrap_or_default();
        let own = known.first().filter(|_| module.is_empty());
        let text = |text: Option<&String>| text.map(|text| text.as_bytes().into()).unwrap_or_default();
        let site = Site {
            module: module.as_bytes().into(),
            offset: row.number("offset_bytes").and_then(|offset| u64::try_from(offset).ok()),
            function: text(own.and_then(|own| own.function.as_ref())),
            file: text(own.and_then(|own| own.file.as_ref())),
            line: own.and_then(|own| own.line),
            ..Site::default()
        };
        let build_id = row.text("build_id").map(str::to_owned);
        let key = (site, build_id);
        if let Some(&id) = self.sites.get(&key) {
            return id;
        }
        let id = self.tables.stacks.sites.len() as u32;
        self.tables.stacks.sites.push(key.0.clone());
        self.build_ids.push(key.1.clone());
        self.symbols.extend(known.into_iter().map(|symbol| SymbolRow { site: id, ..symbol }));
        self.sites.insert(key, id);
        id
    }

    /// Sets the offsets for ids that are dense from 0: those of tables that are copied row by row, and of
    /// open file descriptions.
    fn add_rest(&mut self, part: &mut Part) -> Result<(), ImportError> {
        part.first_interface_call = self.next_interface_call;
        part.first_profile = self.next_profile;
        part.first_handle = self.next_handle;
        let rows = |table| u32::try_from(part.rows(table)).map_err(|_| too_many());
        let after = |first: u32, rows: u32| first.checked_add(rows).filter(|&next| next < NONE);
        self.next_interface_call =
            after(self.next_interface_call, rows("interface_calls")?).ok_or_else(too_many)?;
        self.next_profile = after(self.next_profile, rows("profiles")?).ok_or_else(too_many)?;
        let handles = self.handles(part)?;
        self.next_handle = after(self.next_handle, handles).ok_or_else(too_many)?;
        Ok(())
    }

    /// Returns one more than the highest number of an open file description in the part.
    fn handles(&self, part: &Part) -> Result<u32, ImportError> {
        let (mut events, mut columns) = (part.events(), EventColumns::default());
        let mut most = 0;
        while events.read_handles(1 << 15, &mut columns)? {
            let known = columns.handle.iter().filter(|&&handle| handle != NONE);
            most = known.map(|&handle| handle.saturating_add(1)).fold(most, u32::max);
            columns.clear();
        }
        each(part, "interface_calls.parquet", |row| {
            most = most.max(row.id("handle_id").map_or(0, |handle| handle.saturating_add(1)));
            Ok(())
        })?;
        Ok(most)
    }

    /// Completes the tables. The caller must have added all parts and set their clock offsets.
    pub fn finish(&mut self, parts: &[Part]) {
        iodock_tracker::fill_patterns(&mut self.tables.files);
        let mut commands = std::mem::take(&mut self.commands);
        commands.sort_by_key(|command| command.ts.saturating_add(parts[command.part].clock_offset));
        let table = &mut self.tables.commands;
        for command in commands {
            let path = table.add_text(command.path.as_bytes());
            let argv = command.argv.map_or(NONE, |argv| table.add_text(argv.as_bytes()));
            table.push(command.utid, command.ts, path, argv);
        }
        // These maps were only needed for numbering, so their memory is freed.
        self.files = HashMap::new();
        self.sites = HashMap::new();
        self.stacks = HashMap::new();
    }
}

fn origin(name: Option<&str>) -> TaskOrigin {
    let found = TaskOrigin::ALL.iter().copied().find(|origin| Some(origin.name()) == name);
    found.unwrap_or(TaskOrigin::Root)
}
