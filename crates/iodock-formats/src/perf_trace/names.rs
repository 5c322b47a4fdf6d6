//! Names of the arguments of calls.

/// Sorted names of arguments, from the events `syscalls:sys_enter_*` of Linux 6, and other names that older
/// versions used.
#[rustfmt::skip]
const NAMES: &[&[u8]] = &[
    b"_callout_info", b"_description", b"_fs_name", b"_key", b"_payload", b"_type", b"_value", b"a0", b"a1",
    b"a2", b"a3", b"a4", b"a5", b"act", b"addr", b"addr_len", b"addrlen", b"advice", b"arg", b"arg0", b"arg1",
    b"arg2", b"arg3", b"arg4", b"arg5", b"argp", b"args", b"argsz", b"argv", b"at_flags", b"attr",
    b"attr_flags", b"attr_uptr", b"aux", b"backlog", b"behavior", b"brk", b"buf", b"buff", b"buffer",
    b"bufsiz", b"bufsize", b"bytecount", b"child_tidptr", b"clockid", b"clone_flags", b"cmd", b"compat_sigset",
    b"count", b"cpu", b"cpu_id", b"cpup", b"created_timer_id", b"cstat", b"cstat_range", b"ctx", b"ctx_id",
    b"ctxp", b"data", b"dataptr", b"destringid", b"dev", b"dev_name", b"dfd", b"dir_name", b"dirent",
    b"dirent64", b"domain", b"egid", b"egidp", b"entries", b"envp", b"epfd", b"error_code", b"euid", b"euidp",
    b"event", b"event_f_flags", b"events", b"exp", b"family", b"fanotify_fd", b"fd", b"fd_in", b"fd_out",
    b"fdin", b"fdout", b"fildes", b"filename", b"flag", b"flags", b"flags2", b"fn", b"from", b"from_dfd",
    b"from_fd", b"from_pathname", b"fs_fd", b"func", b"gid", b"gidsetsize", b"group", b"group_fd",
    b"grouplist", b"handle", b"head", b"head_ptr", b"header", b"home_node", b"how", b"id", b"ids", b"idx1",
    b"idx2", b"in", b"in_fd", b"info", b"infop", b"init_val", b"inp", b"interval", b"iocb", b"iocbpp",
    b"ioprio", b"key", b"len", b"len_in", b"len_ptr", b"length", b"level", b"library", b"liovcnt", b"list",
    b"lvec", b"magic1", b"magic2", b"mask", b"max_fd", b"maxevents", b"maxnode", b"min_complete", b"min_nr",
    b"mmsg", b"mnt_id", b"mnt_ids", b"mode", b"mountdirfd", b"mountflags", b"mqdes", b"msg", b"msg_len",
    b"msg_prio", b"msgflg", b"msgp", b"msgsz", b"msgtyp", b"msqid", b"n", b"name", b"nbytes", b"new_addr",
    b"new_fd", b"new_len", b"new_nodes", b"new_rlim", b"new_root", b"new_setting", b"newdfd", b"newfd",
    b"newname", b"newsp", b"nfds", b"niceval", b"nmask", b"nodep", b"nodes", b"nr", b"nr_args", b"nr_events",
    b"nr_futexes", b"nr_mnt_ids", b"nr_pages", b"nr_requeue", b"nr_segs", b"nr_wake", b"nsems", b"nset",
    b"nsops", b"num", b"oact", b"off", b"off_in", b"off_out", b"offset", b"oflag", b"old_fd", b"old_len",
    b"old_nodes", b"old_rlim", b"old_setting", b"olddfd", b"oldfd", b"oldname", b"oldset", b"op", b"opcode",
    b"option", b"options", b"optlen", b"optname", b"optval", b"oset", b"otmr", b"out_fd", b"outp", b"ovalue",
    b"p", b"pages", b"param", b"params", b"parent_tidptr", b"path", b"pathname", b"personality", b"pgid",
    b"pgoff", b"pid", b"pid1", b"pid2", b"pidfd", b"pkey", b"plen", b"policy", b"pos", b"pos_h", b"pos_l",
    b"prot", b"protocol", b"ptr", b"put_old", b"req", b"request", b"resource", b"result", b"rgid", b"rgidp",
    b"ringid", b"riovcnt", b"rlim", b"rmtp", b"rqtp", b"rseq", b"rseq_len", b"ru", b"ruid", b"ruidp",
    b"rule_attr", b"rule_type", b"ruleset_fd", b"rvec", b"seconds", b"semflg", b"semid", b"semnum", b"set",
    b"setting", b"sgid", b"sgidp", b"shmaddr", b"shmflg", b"shmid", b"sig", b"sigmask", b"sigsetsize", b"size",
    b"sizemask", b"special", b"specialfile", b"start", b"stat_addr", b"statbuf", b"status", b"suid", b"suidp",
    b"swap_flags", b"tbuf", b"tgid", b"tidptr", b"timeout", b"timeout_msecs", b"timer_event_spec", b"timer_id",
    b"times", b"tloc", b"tls", b"to_dfd", b"to_fd", b"to_pathname", b"to_submit", b"tp", b"tsops", b"tsp",
    b"turn_on", b"tv", b"tvp", b"txc_p", b"type", b"tz", b"u_abs_timeout", b"u_attr", b"u_mqstat",
    b"u_msg_prio", b"u_msg_ptr", b"u_name", b"u_notification", b"u_omqstat", b"uaddr", b"uaddr2", b"uargs",
    b"uattr", b"ubuf", b"ufattr", b"ufd", b"ufds", b"uid", b"uinfo", b"uiov", b"umode", b"umyaddr", b"uname",
    b"unewset", b"unsafe", b"unshare_flags", b"unused", b"uoss", b"upeer_addrlen", b"upeer_sockaddr", b"upid",
    b"user", b"user_mask", b"user_mask_ptr", b"uservaddr", b"uset", b"usig", b"usize", b"usockaddr",
    b"usockaddr_len", b"usockvec", b"uss", b"uthese", b"utime", b"utimes", b"utmr", b"uts", b"utx", b"val",
    b"val3", b"value", b"vec", b"vlen", b"waiters", b"wd", b"whence", b"which", b"which_clock", b"who",
];

/// Returns whether any call has an argument with this name.
pub fn is_argument(name: &[u8]) -> bool {
    NAMES.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_names_are_sorted() {
        assert!(NAMES.is_sorted());
        assert!(is_argument(b"fd") && is_argument(b"_type") && is_argument(b"whence") && !is_argument(b"fe"));
    }
}
