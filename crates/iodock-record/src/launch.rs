//! Finding a program as execvp does, and starting it so that a tracer is there before its first call.

use crate::error::{RecordError, Refusal};
use crate::process;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, fs, io, ptr};

/// A program ready to be started: everything the child needs is made before the fork, since between
/// fork and exec a process with threads may only make plain system calls.
#[derive(Clone)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    /// Also what it does before a recorder inside of it is there shall be recorded.
    pub complete: bool,
    c_path: CString,
    c_arguments: Vec<CString>,
    c_environment: Vec<CString>,
    /// The signal mask it shall start with: that of the thread which looked it up.
    mask: libc::sigset_t,
    /// SIGCHLD was ignored, which a program inherits; a recorder can't ignore it.
    ignores_children: bool,
}

const SHELL: &std::ffi::CStr = c"/bin/sh";

impl Program {
    /// Looks `command[0]` up in PATH as execvp does.
    ///
    /// # Errors
    /// Not found, not executable, or privileged in a way that a recorder would take away.
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
            mask: signal_mask(),
            ignores_children: ignores_children(),
            path,
        })
    }

    /// What the program finds in its environment under `name`, if anything.
    pub fn variable(&self, name: &str) -> Option<&[u8]> {
        self.c_environment
            .iter()
            .find_map(|pair| pair.to_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// Puts `name=value` into the program's environment.
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

/// Ours, entry by entry and in its order, as a program would find it without us. Python itself has put `LC_CTYPE` there
/// where no locale was set (PEP 538); another locale changes what programs do.
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

/// By the effective ids, as exec.
fn may_execute(path: &CStr) -> bool {
    // SAFETY: `path` is a NUL-terminated string.
    let asked = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    match io::Error::last_os_error().raw_os_error() {
        _ if asked == 0 => true,
        // It says nothing of the file: old containers answer so to calls that they don't know, as faccessat2, which this is.
        // access goes by the real ids, which are mostly the same.
        // SAFETY: as above.
        Some(libc::EPERM) => unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 },
        _ => false,
    }
}

/// Can so many more files be open at once?
///
/// # Errors
/// `ulimit -n` or the machine's own limit.
pub fn may_open(files: usize) -> io::Result<()> {
    let one = fs::File::open("/dev/null")?;
    (1..files).map(|_| one.try_clone()).collect::<io::Result<Vec<_>>>().map(drop)
}

/// What a shell says when a program can't be started.
pub fn launch_error(name: &str, error: &io::Error) -> RecordError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => RecordError::NotFound(Refusal::new(
            format!("{name}: no such program"),
            "check the name, PATH, and the interpreter that a script's first line names",
        )),
        Some(libc::E2BIG) => RecordError::NotExecutable(Refusal::new(
            format!("{name}: can't be executed: {}", plain(error)),
            "its arguments and environment are too large, perhaps with the variables that rewrite adds: see ulimit -s, or choose --backend ptrace",
        )),
        Some(libc::ETXTBSY) => RecordError::NotExecutable(Refusal::new(
            format!("{name}: can't be executed: {}", plain(error)),
            "somebody has it open for writing: wait until it is whole",
        )),
        _ => RecordError::NotExecutable(Refusal::new(
            format!("{name}: can't be executed: {}", plain(error)),
            "is it a program, and executable for you (chmod +x)?",
        )),
    }
}

/// The error's words without "(os error N)".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

/// The kernel takes a set-user-id program's privileges away when an ordinary user traces it: it would
/// run, but not do its work.
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

/// Does the file give its caller rights that a traced program does not get?
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

/// A child that waits for its tracer.
pub struct Waiting {
    pub pid: libc::pid_t,
    gate: libc::c_int,
    report: libc::c_int,
}

impl Waiting {
    /// Lets the child go on to exec.
    pub fn release(&mut self) {
        // SAFETY: writes one byte to a pipe that we own.
        unsafe {
            libc::write(self.gate, b"g".as_ptr().cast(), 1);
            libc::close(self.gate);
        }
        self.gate = -1;
    }

    /// Why the child, which has ended, did so before it could exec; `None` if it did exec.
    pub fn failure(&self) -> Option<io::Error> {
        let mut errno = [0u8; 4];
        let mut wanted = libc::pollfd { fd: self.report, events: libc::POLLIN, revents: 0 };
        // SAFETY: reads into a buffer of that size from a pipe that we own. (A child that another thread makes may have its other end.)
        let count = unsafe {
            match libc::poll(&mut wanted, 1, 0) {
                1 => libc::read(self.report, errno.as_mut_ptr().cast(), 4),
                _ => 0,
            }
        };
        (count == 4).then(|| io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
    }

    /// Ends a child that never got a tracer.
    pub fn abandon(self) {
        // SAFETY: our own child, which waits at the gate; a plain wait for it.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), libc::__WALL);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        for descriptor in [self.gate, self.report] {
            if descriptor >= 0 {
                // SAFETY: ours, closed once.
                unsafe { libc::close(descriptor) };
            }
        }
    }
}

/// Forks a child that waits until [`Waiting::release`], then puts `filter` (unless it is empty) on itself
/// and executes the program.
pub fn fork(program: &Program, filter: &[libc::sock_filter]) -> io::Result<Waiting> {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let arguments = pointers(&program.c_arguments);
    let environment = pointers(&program.c_environment);
    // A file that is no program is a shell script, as for execvp.
    let mut shell = vec![SHELL.as_ptr(), program.c_path.as_ptr()];
    shell.extend(&arguments[1..]);
    let (gate, report) = (pipe()?, pipe()?);
    let plan = Plan {
        path: program.c_path.as_ptr(),
        arguments: arguments.as_ptr(),
        shell_arguments: shell.as_ptr(),
        environment: environment.as_ptr(),
        filter: libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() },
        gate: gate[0],
        report: report[1],
        mask: program.mask,
        privileged: is_root(),
        ignores_children: program.ignores_children,
    };
    // SAFETY: the child only runs `start`, which keeps to async-signal-safe calls on memory made before.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // The parent's ends, so that the child sees the parent's death at the gate.
        unsafe {
            libc::close(gate[1]);
            libc::close(report[0]);
            start(&plan)
        }
    }
    // SAFETY: the child's ends, ours to close.
    unsafe {
        libc::close(gate[0]);
        libc::close(report[1]);
    }
    let waiting = Waiting { pid, gate: gate[1], report: report[0] };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(waiting)
}

fn pipe() -> io::Result<[libc::c_int; 2]> {
    let mut ends = [-1; 2];
    // SAFETY: an array of two to write to.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
        0 => Ok(ends),
        _ => Err(io::Error::last_os_error()),
    }
}

struct Plan {
    path: *const libc::c_char,
    arguments: *const *const libc::c_char,
    shell_arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    filter: libc::sock_fprog,
    gate: libc::c_int,
    report: libc::c_int,
    mask: libc::sigset_t,
    privileged: bool,
    ignores_children: bool,
}

/// The child, up to its exec.
///
/// # Safety
/// To be called in a forked child only; every pointer of `plan` is valid.
unsafe fn start(plan: &Plan) -> ! {
    // Python and Rust ignore these two for themselves; a program expects them as a shell leaves them.
    libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
    if plan.ignores_children {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
    let mut byte = 0u8;
    loop {
        let count = libc::read(plan.gate, ptr::addr_of_mut!(byte).cast(), 1);
        if count == 1 {
            break;
        }
        if count == 0 || *libc::__errno_location() != libc::EINTR {
            libc::_exit(127);
        }
    }
    let filtered = plan.filter.len > 0;
    if filtered && !plan.privileged && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
        report(plan.report);
    }
    if filtered
        && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, ptr::addr_of!(plan.filter)) != 0
        // Root of a container without CAP_SYS_ADMIN needs the promise too.
        && (libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, ptr::addr_of!(plan.filter)) != 0)
    {
        report(plan.report);
    }
    libc::pthread_sigmask(libc::SIG_SETMASK, &plan.mask, ptr::null_mut());
    libc::execve(plan.path, plan.arguments, plan.environment);
    if *libc::__errno_location() == libc::ENOEXEC {
        libc::execve(SHELL.as_ptr(), plan.shell_arguments, plan.environment);
    }
    report(plan.report)
}

/// Tells the recorder what went wrong, and ends.
///
/// # Safety
/// In the forked child only.
unsafe fn report(descriptor: libc::c_int) -> ! {
    let errno = *libc::__errno_location();
    libc::write(descriptor, errno.to_ne_bytes().as_ptr().cast(), 4);
    let missing = matches!(errno, libc::ENOENT | libc::ENOTDIR);
    libc::_exit(if missing { 127 } else { 126 })
}
