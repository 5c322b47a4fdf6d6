//! Finds a program as execvp does, with its environment.

use crate::error::{launch_error, RecordError, Refusal};
use crate::process;
use iodock_preload::light::{Light, Whole};
use iodock_preload::session::{Layers, Stacks};
use std::cell::OnceCell;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, fs, io, ptr};

/// A program ready to start: everything that the child needs is prepared before the fork, because between
/// fork and exec a process with threads may only make plain system calls.
#[derive(Clone)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    /// Also record its calls before a recorder inside it is loaded.
    pub complete: bool,
    /// Its calls are counted, not recorded.
    pub light: Option<Light>,
    /// But those of these ranks are recorded.
    pub whole: Option<Whole>,
    /// Calls of interfaces, such as MPI-IO, are recorded too.
    pub interfaces: Layers,
    /// Where its calls come from is recorded too.
    pub stacks: Stacks,
    /// Its initial libraries, once they were determined.
    pub(crate) libraries: OnceCell<Option<Vec<PathBuf>>>,
    pub(crate) c_path: CString,
    pub(crate) c_arguments: Vec<CString>,
    pub(crate) c_environment: Vec<CString>,
    /// The signal mask at its start: that of the thread which looked it up.
    pub(crate) mask: libc::sigset_t,
    /// SIGCHLD was ignored, which a program inherits; a recorder can't ignore it.
    pub(crate) ignores_children: bool,
}

impl Program {
    /// Looks up `command[0]` in PATH as execvp does.
    ///
    /// # Errors
    /// Not found, not executable, or with privileges that recording would remove.
    pub fn find(command: &[OsString]) -> Result<Program, RecordError> {
        let name = command.first().filter(|name| !name.is_empty()).ok_or_else(|| {
            RecordError::NotFound(Refusal::new("no program given", "iodock record -- PROGRAM ARGUMENT..."))
        })?;
        let path = look_up(name)?;
        refuse_privileged(&path)?;
        let text = |bytes: &OsStr| {
            CString::new(bytes.as_bytes()).map_err(|_| {
                RecordError::NotFound(Refusal::new("an argument holds a NUL byte", "leave it out"))
            })
        };
        Ok(Program {
            c_path: text(path.as_os_str())?,
            c_arguments: command.iter().map(|argument| text(argument)).collect::<Result<_, _>>()?,
            c_environment: environment(),
            arguments: command.to_vec(),
            complete: false,
            light: None,
            whole: None,
            interfaces: Layers::default(),
            stacks: Stacks::Off,
            libraries: OnceCell::new(),
            mask: signal_mask(),
            ignores_children: ignores_children(),
            path,
        })
    }

    /// The value of `name` in the program's environment, if it is set.
    pub fn variable(&self, name: &str) -> Option<&[u8]> {
        self.c_environment
            .iter()
            .find_map(|pair| pair.to_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// Sets `name=value` in the program's environment.
    pub fn set_variable(&mut self, name: &str, value: &[u8]) {
        self.c_environment.retain(|pair| {
            pair.to_bytes().strip_prefix(name.as_bytes()).is_none_or(|rest| rest.first() != Some(&b'='))
        });
        let pair = [name.as_bytes(), b"=", value].concat();
        self.c_environment.extend(CString::new(pair));
    }

    /// Arguments, NUL-separated.
    pub fn command_text(&self) -> Vec<u8> {
        self.arguments.iter().map(|argument| argument.as_bytes()).collect::<Vec<_>>().join(&0)
    }
}

extern "C" {
    static environ: *const *const libc::c_char;
}

/// Our environment, in the same order, as a program would get it without us. Python itself sets `LC_CTYPE` if
/// no locale was set (PEP 538); another locale changes the behaviour of programs.
fn environment() -> Vec<CString> {
    let names_it = |own: Vec<u8>| own.split(|&byte| byte == 0).any(|pair| pair.starts_with(b"LC_CTYPE="));
    let was_given = process::read_short("/proc/self/environ").map_or(true, names_it);
    let coerced = [&b"LC_CTYPE=C.UTF-8"[..], b"LC_CTYPE=C.utf8", b"LC_CTYPE=UTF-8"];
    let mut found = Vec::new();
    // SAFETY: a list of NUL-terminated texts that ends with NULL; nobody changes it while a recording begins.
    unsafe {
        let mut pair = environ;
        while !pair.is_null() && !(*pair).is_null() {
            let text = CStr::from_ptr(*pair);
            if was_given || !coerced.contains(&text.to_bytes()) {
                found.push(text.to_owned());
            }
            pair = pair.add(1);
        }
    }
    found
}

fn signal_mask() -> libc::sigset_t {
    // SAFETY: only reads this thread's mask.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask);
        mask
    }
}

fn ignores_children() -> bool {
    // SAFETY: only reads the handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, ptr::null(), &mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
}

fn look_up(name: &OsStr) -> Result<PathBuf, RecordError> {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        return check(Path::new(name)).map_err(|error| launch_error(&shown, &error));
    }
    let mut denied = None;
    let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    for folder in env::split_paths(&path) {
        // An empty entry is the working directory.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        match check(&folder.join(name)) {
            Ok(found) => return Ok(found),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied = Some(error),
            Err(_) => {}
        }
    }
    Err(launch_error(&shown, &denied.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))))
}

fn check(path: &Path) -> io::Result<PathBuf> {
    let status = fs::metadata(path)?;
    let text = CString::new(path.as_os_str().as_bytes())?;
    if !status.is_file() || !may_execute(&text) {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok(path.to_path_buf())
}

/// By the effective ids, like exec.
fn may_execute(path: &CStr) -> bool {
    // SAFETY: `path` is a NUL-terminated string.
    let asked = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    match io::Error::last_os_error().raw_os_error() {
        _ if asked == 0 => true,
        // This does not depend on the file: old containers answer so to unknown calls, such as faccessat2,
        // which this is. access uses the real ids, which are usually the same. SAFETY: as above.
        Some(libc::EPERM) => unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 },
        _ => false,
    }
}

/// The kernel removes a set-user-id program's privileges when an ordinary user traces it: it would run, but
/// not do its work.
fn refuse_privileged(path: &Path) -> Result<(), RecordError> {
    if is_root() {
        return Ok(());
    }
    match privilege(path) {
        None => Ok(()),
        Some(what) => Err(RecordError::Refused(Refusal::new(
            format!(
                "{} is {what}: recorded by an ordinary user it would run without its privileges",
                path.display()
            ),
            "record it as root (sudo iodock record ...), or record the programs it starts",
        ))),
    }
}

pub fn is_root() -> bool {
    // SAFETY: can't fail.
    unsafe { libc::geteuid() == 0 }
}

/// Privileges that the file gives its caller and that a traced program does not get.
pub fn privilege(path: &Path) -> Option<&'static str> {
    let status = fs::metadata(path).ok()?;
    let mode = status.permissions().mode();
    // SAFETY: can't fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    if mode & libc::S_ISUID != 0 && status.uid() != user {
        return Some("set-user-id");
    }
    if mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && status.gid() != group {
        return Some("set-group-id");
    }
    let text = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: asks only for the attribute's size; both strings are NUL-terminated.
    let size = unsafe { libc::getxattr(text.as_ptr(), c"security.capability".as_ptr(), ptr::null_mut(), 0) };
    (size > 0).then_some("a program with file capabilities")
}
