//! Suppresses the messages of panics. The Parquet crate panics on some damaged files, and users must not see
//! its message.

use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Once = Once::new();

/// Returns the result of `work`; `None` if it panicked. A panic prints nothing, but may leave incomplete
/// data.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                others(panic);
            }
        }));
    });
    let before = IS_QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_QUIET.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::quietly;

    #[test]
    fn a_panic_gives_no_result() {
        assert_eq!(quietly(|| 3), Some(3));
        let numbers = [1, 2];
        assert_eq!(quietly(|| numbers[std::hint::black_box(7)]), None);
    }
}
