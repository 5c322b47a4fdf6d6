"""Explains mount options to users who read and write files on the file system.

The texts are based on the manual pages mount(8), ext4(5), xfs(5), nfs(5), mount.lustre(8), mount.cifs(8),
fuse(8), the kernel's Documentation/filesystems (overlayfs, tmpfs, 9p) and IBM's mmchfs and mmmount.
"""

from __future__ import annotations

from collections.abc import Mapping

from iodock.shared.language import N_

ANY = "*"
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "*": {
        "ro": N_("read only"),
        "rw": N_("read and write"),
        "relatime": N_(
            "reading a file updates its access time at most once a day, or after a change: few extra writes"
        ),
        "noatime": N_("reading a file never updates its access time: no extra writes"),
        "strictatime": N_("every read updates the access time: each read of a file causes a metadata write"),
        "nodiratime": N_("reading a folder never updates its access time"),
        "lazytime": N_("times of files are kept in memory and written later"),
        "sync": N_("every write waits until it is on the disk or server: small writes become very slow"),
        "dirsync": N_(
            "changes of folders wait until they are on the disk: creating and removing files is slow"
        ),
        "nosuid": N_("set-user-id bits of programs have no effect here"),
        "nodev": N_("device files can't be used here"),
        "noexec": N_("no program can be started from here"),
        "nosymfollow": N_("symbolic links are not followed"),
        "mand": N_("mandatory file locks are possible"),
        "seclabel": N_("files have SELinux labels: one more extended attribute to read"),
        "acl": N_("access control lists are supported"),
        "noacl": N_("access control lists are not supported"),
        "user_xattr": N_("extended attributes of users are supported"),
        "usrquota": N_("space and files are limited or counted for each user"),
        "grpquota": N_("space and files are limited or counted for each group"),
        "prjquota": N_("space and files are limited or counted for each project or folder"),
        "quota": N_("space and files are limited or counted"),
        "noquota": N_("no limits for users, groups or projects"),
        "discard": N_("freed blocks are reported to the device at once: removing large files may be slow"),
        "nodiscard": N_("freed blocks are not reported to the device"),
        "uid": N_("owner of all files"),
        "gid": N_("group of all files"),
        "mode": N_("permissions of the topmost folder"),
        "size": N_("maximum number of bytes that it may hold"),
        "nr_inodes": N_("maximum number of files and folders that it may hold"),
        "nr_blocks": N_("maximum number of blocks that it may hold"),
        "huge": N_("its contents use large pages"),
        "noswap": N_("its content is never swapped out"),
        "inode32": N_("inode numbers of 32 bits"),
        "inode64": N_("inode numbers of 64 bits: files are stored near their folder on the whole disk"),
        "errors": N_("reaction to an error in the file system: remount-ro, continue or panic"),
    },
    "ext4": {
        "data": N_(
            "ordered: contents are written before the metadata that names them; journal: contents twice, "
            "slower; writeback: no order"
        ),
        "commit": N_("metadata and contents are written this many seconds after a change at the latest"),
        "barrier": N_("the device's cache is flushed where order matters: safe against power failure"),
        "nobarrier": N_(
            "the device's cache is not flushed: faster, but a power failure can damage the file system"
        ),
        "delalloc": N_("blocks are chosen when contents are written out: large contiguous files"),
        "nodelalloc": N_("blocks are chosen at each write: more fragments"),
        "journal_checksum": N_("the journal carries checksums"),
        "journal_async_commit": N_("a commit does not wait for earlier blocks"),
        "stripe": N_("allocation is aligned to this number of blocks, for example those of a RAID stripe"),
        "dax": N_("memory is mapped directly, past the page cache"),
        "bsddf": N_("df leaves the file system's own blocks out"),
        "minixdf": N_("df counts the file system's own blocks too"),
        "resuid": N_("this user may use the reserved blocks"),
        "resgid": N_("this group may use the reserved blocks"),
        "nombcache": N_("identical extended attributes are not cached"),
        "auto_da_alloc": N_("a file that replaces another file is written out at once"),
        "noauto_da_alloc": N_("a file that replaces another file is not written out at once"),
        "max_batch_time": N_("maximum wait, in µs, to write several syncs together"),
        "min_batch_time": N_("shortest wait, in µs, to write several syncs together"),
        "init_itable": N_("inode tables are prepared in the background after mkfs"),
        "noinit_itable": N_("inode tables are not prepared in the background"),
    },
    "xfs": {
        "attr2": N_("extended attributes are stored in the inode if they fit"),
        "noattr2": N_("extended attributes have a fixed share of the inode's space"),
        "logbufs": N_("number of log buffers in memory: more of them help where many files are created"),
        "logbsize": N_("size of a log buffer: larger ones help where many files are created"),
        "sunit": N_("stripe unit of the device below, in blocks of 512 bytes"),
        "swidth": N_("stripe width of the device below, in blocks of 512 bytes"),
        "allocsize": N_("space that is reserved in advance for a growing file"),
        "largeio": N_("reports a large preferred I/O size to programs"),
        "nolargeio": N_("reports the page size to programs as preferred I/O size"),
        "swalloc": N_("large files are aligned to the stripe width"),
        "filestreams": N_("files of one folder are stored together in an area of their own"),
        "ikeep": N_("empty inode areas are kept"),
        "noikeep": N_("empty inode areas are freed"),
        "wsync": N_("creating, renaming and removing wait for the disk"),
        "norecovery": N_("mounted without replaying the log"),
        "dax": N_("memory is mapped directly, past the page cache"),
    },
    "nfs": {
        "vers": N_("version of the NFS protocol"),
        "rsize": N_("largest read request to the server: a larger one needs fewer"),
        "wsize": N_("largest write request to the server: a larger one needs fewer"),
        "namlen": N_("longest file name"),
        "hard": N_(
            "calls wait without a limit for a server that does not answer: programs hang, but no data is lost"
        ),
        "soft": N_("calls fail after some retries: programs may lose data"),
        "softerr": N_("calls fail after some retries with ETIMEDOUT"),
        "softreval": N_("cached attributes are used while the server does not answer"),
        "timeo": N_("tenths of a second until a request is repeated"),
        "retrans": N_("number of repeats of a request before the client takes further action"),
        "proto": N_("transport: tcp, tcp6, udp or rdma"),
        "port": N_("the server's port"),
        "sec": N_(
            "how users are authenticated: sys trusts the client, krb5 uses Kerberos, krb5i adds "
            "checksums, krb5p encrypts (slow)"
        ),
        "clientaddr": N_("address of this client"),
        "addr": N_("address of the server"),
        "mountaddr": N_("address that was mounted from"),
        "mountvers": N_("version of the mount protocol"),
        "mountport": N_("port of the mount service"),
        "mountproto": N_("transport of the mount service"),
        "local_lock": N_("locks that only this client sees: none means that the server keeps all locks"),
        "nconnect": N_("number of connections to the server: several can carry more"),
        "max_connect": N_("maximum number of connections to servers with several addresses"),
        "noac": N_("attributes are not cached and writes are synchronous: correct across clients, and slow"),
        "ac": N_("attributes are cached"),
        "actimeo": N_(
            "seconds for which attributes are cached: changes by other clients are seen up to that much later"
        ),
        "acregmin": N_("seconds for which a file's attributes are cached at least"),
        "acregmax": N_("seconds for which a file's attributes are cached at most"),
        "acdirmin": N_("seconds for which a folder's attributes are cached at least"),
        "acdirmax": N_("seconds for which a folder's attributes are cached at most"),
        "lookupcache": N_("look-ups of names that are cached: none asks the server each time"),
        "nocto": N_("files are not checked for changes at open: faster, but changes by others may be missed"),
        "cto": N_("files are checked for changes at open, and flushed at close"),
        "fsc": N_("contents are cached on a local disk too"),
        "nolock": N_("locks are not sent to the server"),
        "lock": N_("locks are kept by the server"),
        "resvport": N_("a privileged port is used"),
        "noresvport": N_("an ordinary port is used"),
        "nosharecache": N_("the same export mounted twice has two caches"),
        "sharecache": N_("the same export mounted twice has one cache"),
        "fatal_neterrors": N_("network errors that end calls"),
        "write": N_("time at which writes go to the server: lazy, eager or wait"),
        "intr": N_("has no effect since Linux 2.6.25"),
        "nordirplus": N_("a folder is listed without attributes: they are then requested file by file"),
        "rdirplus": N_("a folder is listed with the attributes of its files"),
    },
    "lustre": {
        "flock": N_("file locks apply to all clients"),
        "localflock": N_("file locks apply to this client only"),
        "noflock": N_("programs can't lock files"),
        "lazystatfs": N_("df does not wait for unreachable servers"),
        "nolazystatfs": N_("df waits for all servers"),
        "user_fid2path": N_("users may look up the path of a file id"),
        "nouser_fid2path": N_("only root may look up the path of a file id"),
        "verbose": N_("mounts are logged"),
        "noverbose": N_("mounts are not logged"),
        "checksum": N_("data on the network carries checksums"),
        "nochecksum": N_("data on the network carries no checksums: slightly faster"),
        "encrypt": N_("files can be encrypted"),
        "noencrypt": N_("files can't be encrypted"),
        "statfs_project": N_("df of a folder shows its project's quota"),
        "32bitapi": N_("inode numbers of 32 bits for old programs"),
        "always_ping": N_("the client checks regularly whether the servers respond"),
        "exclude": N_("these targets are not used"),
    },
    "gpfs": {
        "dev": N_("name of the file system"),
        "mtime": N_("the time of the last change is exact (yes) or may lag (no)"),
        "atime": N_("access times are updated"),
        "syncnfs": N_("data from NFS clients is safe before the server replies"),
        "nosyncnfs": N_("the server replies to NFS clients before their data is safe"),
        "automount": N_("mounted when GPFS starts"),
    },
    "tmpfs": {
        "mpol": N_("memory of a NUMA machine that holds the contents"),
    },
    "overlay": {
        "lowerdir": N_("read-only layers below, the topmost first"),
        "upperdir": N_("layer that receives changes: the first change of a large file copies all of it"),
        "workdir": N_("folder for changes in progress"),
        "index": N_("hard links stay linked when they are copied up"),
        "xino": N_("inode numbers are unique over the layers"),
        "metacopy": N_("a change of attributes alone copies no contents"),
        "redirect_dir": N_("folders of lower layers can be renamed without a copy"),
        "nfs_export": N_("the file system can be exported by NFS"),
        "uuid": N_("rule for choosing the identifier"),
        "volatile": N_("nothing is synced: fast, but lost in a crash"),
        "default_permissions": N_("the kernel checks permissions"),
        "userxattr": N_("the file system's own metadata is stored in extended attributes user.*"),
    },
    "fuse": {
        "user_id": N_("owner of the mount"),
        "group_id": N_("group of the mount"),
        "rootmode": N_("permissions of its topmost folder"),
        "default_permissions": N_("the kernel checks permissions"),
        "allow_other": N_("other users may use the mount"),
        "max_read": N_("largest read request to the serving program"),
        "blksize": N_("block size of the device below"),
    },
    "btrfs": {
        "compress": N_("new contents are compressed: less is written, but the CPU works more"),
        "compress-force": N_("all new contents are compressed, even if they do not become smaller"),
        "space_cache": N_("how free space is tracked"),
        "subvol": N_("subvolume that is mounted"),
        "subvolid": N_("number of the subvolume that is mounted"),
        "nodatacow": N_("contents are overwritten in place, without checksums: faster for databases"),
        "autodefrag": N_("fragmented files are put together in the background"),
        "ssd": N_("layout for devices without moving parts"),
    },
    "cifs": {
        "vers": N_("version of the SMB protocol"),
        "cache": N_("strict: as the server permits; none: no cache; loose: changes by others may be missed"),
        "rsize": N_("largest read request to the server"),
        "wsize": N_("largest write request to the server"),
        "actimeo": N_("seconds for which attributes are cached"),
        "username": N_("user name at the server"),
        "soft": N_("calls fail if the server does not answer"),
        "hard": N_("calls wait for a server that does not answer"),
    },
    "9p": {
        "trans": N_("transport: virtio, tcp, fd, rdma"),
        "cache": N_("data and attributes that the client caches: none asks the server for everything"),
        "msize": N_("largest message to the server"),
        "access": N_("user whose permissions apply at the server"),
        "version": N_("version of the protocol"),
        "dirsync": N_("changes of folders wait until the server has them"),
        "mmap": N_("files can be mapped into memory"),
        "cache_fd": N_("files are kept open"),
        "dfltuid": N_("owner for files of unknown users"),
        "dfltgid": N_("group for files of unknown groups"),
        "rfdno": N_("descriptor for reading"),
        "wfdno": N_("descriptor for writing"),
        "posixacl": N_("access control lists are checked by the client"),
    },
}
"""Meaning of each option by type of the file system; `*` applies to all types."""
FAMILIES = {"ext2": "ext4", "ext3": "ext4", "nfs4": "nfs", "smb3": "cifs", "fefs": "lustre"}
"""Maps a type to another type with the same options."""


def explanation(fs_type: str, option: str) -> str | None:
    """Returns the meaning of OPTION on a file system of type FS_TYPE, in English. The caller translates it.
    Returns None if the option is not in the table."""
    family = "fuse" if fs_type.startswith("fuse") else FAMILIES.get(fs_type, fs_type)
    return OPTIONS.get(family, {}).get(option) or OPTIONS[ANY].get(option)
