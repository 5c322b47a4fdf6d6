"""Sums file sizes; checks only once whether the file system has attributes."""

import os
import sys

NAMES = ("security.selinux", "system.posix_acl_access", "system.posix_acl_default")


def has_any(path):
    for name in NAMES:
        try:
            os.getxattr(path, name, follow_symlinks=False)
        except OSError:
            continue
        return True
    return False


total = 0
labelled = int(has_any(sys.argv[1]))
for entry in sorted(os.listdir(sys.argv[1])):
    total += os.lstat(os.path.join(sys.argv[1], entry)).st_size
print(total, labelled)
