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

/// A program that is ready to start. Everything that the child needs is prepared before the fork, because
/// between fork and exec a child of a process with threads may only make plain system calls.
#[derive(Clone)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    /// Whether its calls before the library is loaded are recorded, too.
    pub complete: bool,
    /// Set if its calls are counted and not recorded.
    pub light: Option<Light>,
    /// Ranks whose calls are recorded although others' are only counted.
    pub whole: Option<Whole>,
    /// Interfaces, such as MPI-IO, whose calls are recorded, too.
    pub interfaces: Layers,
    /// Which stacks of its calls are recorded.
    pub stacks: Stacks,
    /// Libraries that are loaded at its start, once they were determined.
    pub(crate) libraries: OnceCell<Option<Vec<PathBuf>>>,
    pub(crate) c_path: CString,
    pub(crate) c_arguments: Vec<CString>,
    pub(crate) c_environment: Vec<CString>,
    /// Signal mask at its start. It is that of the thread that created this value.
    pub(crate) mask: libc::sigset_t,
    /// Whether the caller ignored SIGCHLD, which the program inherits. The recorder itself can't ignore it.
    pub(crate) ignores_children: bool,
}

impl Program {
    /// Finds `command[0]` in PATH as execvp does.
    ///
    /// # Errors
    /// Fails if the program is not found, can't be executed, or has privileges that recording would remove.
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

    /// Returns the value of `name` in the program's environment, if it is set.
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

    /// Returns the arguments, separated by NUL.
    pub fn command_text(&self) -> Vec<u8> {
        self.arguments.iter().map(|argument| argument.as_bytes()).collect::<Vec<_>>().join(&0)
    }
}

extern "C" {
    static environ: *const *const libc::c_char;
}

/// Returns the environment of this process, in the same order, as a program would get it without the
/// recorder. If no locale was set, Python itself sets `LC_CTYPE` (PEP 538), which is removed because another
/// locale changes the behaviour of programs.
fn environment() -> Vec<CString> {
    let names_it = |own: Vec<u8>| own.split(|&byte| byte == 0).any(|pair| pair.starts_with(b"LC_CTYPE="));
    let was_given = process::read_short("/proc/self/environ").map_or(true, names_it);
    let coerced = [&b"LC_CTYPE=C.UTF-8"[..], b"LC_CTYPE=C.utf8", b"LC_CTYPE=UTF-8"];
    let mut found = Vec::new();
    // SAFETY: `environ` is a list of texts that end with NUL. The list ends with NULL, and no thread changes
    // it while a recording begins.
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
    // SAFETY: the call only reads the mask of this thread.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask);
        mask
    }
}

fn ignores_children() -> bool {
    // SAFETY: the call only reads the handler.
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
        // An empty entry in PATH means the working directory.
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

/// Returns whether the file may be executed, for the effective user and group, as in exec.
fn may_execute(path: &CStr) -> bool {
    // SAFETY: the path ends with NUL.
    let asked = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    match io::Error::last_os_error().raw_os_error() {
        _ if asked == 0 => true,
        // This error does not depend on the file: old containers return it for unknown calls such as
        // faccessat2, which this libc function makes. access checks the real ids, which are usually the same.
        // SAFETY: the path ends with NUL.
        Some(libc::EPERM) => unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 },
        _ => false,
    }
}

/// Refuses a set-user-id program. The kernel removes its privileges when an ordinary user traces it, so that
/// it would run but not do its work.
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
    // SAFETY: geteuid has no arguments and can't fail.
    unsafe { libc::geteuid() == 0 }
}

/// Returns the kind of privileges that the file gives its caller and that a traced program does not get.
pub fn privilege(path: &Path) -> Option<&'static str> {
    let status = fs::metadata(path).ok()?;
    let mode = status.permissions().mode();
    // SAFETY: these functions have no arguments and can't fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    if mode & libc::S_ISUID != 0 && status.uid() != user {
        return Some("set-user-id");
    }
    if mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && status.gid() != group {
        return Some("set-group-id");
    }
    let text = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: both texts end with NUL, and the size 0 requests only the attribute's size.
    let size = unsafe { libc::getxattr(text.as_ptr(), c"security.capability".as_ptr(), ptr::null_mut(), 0) };
    (size > 0).then_some("a program with file capabilities")
}
