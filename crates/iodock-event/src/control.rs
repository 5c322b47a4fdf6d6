//! Control data of socket messages (`man 3 cmsg`), in the memory layout of 64-bit programs.

const SOL_SOCKET: i32 = 1;
const SCM_RIGHTS: i32 = 1;
/// Bytes of `struct cmsghdr`: length including the header (8), level (4), type (4).
const HEADER: usize = 16;

/// Largest number of bytes that recorders copy. It holds 253 descriptors, the most that the kernel passes
/// with one message.
pub const CONTROL_LIMIT: usize = 1040;

/// Calls `visit` with each descriptor that the control data pass. Stops where the data are malformed or cut
/// off.
pub fn each_passed(control: &[u8], mut visit: impl FnMut(i32)) {
    let mut rest = control;
    while let Some((header, _)) = rest.split_first_chunk::<HEADER>() {
        let number =
            |at: usize| i32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let mut length = [0; 8];
        length.copy_from_slice(&header[..8]);
        let length = usize::try_from(u64::from_ne_bytes(length)).unwrap_or(0);
        if length < HEADER {
            return;
        }
        if (number(8), number(12)) == (SOL_SOCKET, SCM_RIGHTS) {
            let data = &rest[HEADER..length.min(rest.len())];
            data.chunks_exact(4).for_each(|fd| visit(i32::from_ne_bytes([fd[0], fd[1], fd[2], fd[3]])));
        }
        rest = length.checked_next_multiple_of(8).and_then(|next| rest.get(next..)).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: i32, data: &[i32]) -> Vec<u8> {
        let mut bytes = ((HEADER + 4 * data.len()) as u64).to_ne_bytes().to_vec();
        bytes.extend([SOL_SOCKET, kind].iter().chain(data).flat_map(|number| number.to_ne_bytes()));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn passed(control: &[u8]) -> Vec<i32> {
        let mut found = Vec::new();
        each_passed(control, |fd| found.push(fd));
        found
    }

    #[test]
    fn descriptors_are_found_among_other_control_data() {
        let credentials = message(2, &[10, 20, 30]);
        let control = [message(SCM_RIGHTS, &[3]), credentials, message(SCM_RIGHTS, &[4, 5, 6])].concat();
        assert_eq!(passed(&control), [3, 4, 5, 6]);
        assert_eq!(passed(&control[..control.len() - 8]), [3, 4, 5]);
        assert_eq!(passed(&control[..HEADER]), []);
        assert_eq!(passed(&[]), []);
    }

    #[test]
    fn invalid_control_data_ends_the_list() {
        let mut control = message(SCM_RIGHTS, &[3, 4]);
        control[..8].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(passed(&control), [3, 4]);
        control[..8].copy_from_slice(&3u64.to_ne_bytes());
        assert_eq!(passed(&control), []);
    }
}
