//! A memory budget per call, and errors instead of aborts.
//!
//! Problem: in Rust a failed allocation ends the process, even inside `catch_unwind`, and tokenizer files
//! come from outside: a rule such as "replace every letter by a megabyte" would take all memory of the host.
//! Idea: the allocator of this library counts what the current thread takes while a budget is set, and
//! refuses beyond it; the allocation error hook then unwinds, as its documentation shows, and
//! [`crate::guard`] makes an error of that. A refusal by the system's allocator takes the same way. Cost: one
//! thread-local add per allocation.
//! Memory that C code inside the library takes (the regular expression engine) is not counted.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Bytes that this thread may still take; UNLIMITED = no budget is set. Both cells have neither lazy
    // initialisation nor a destructor, so that the allocator may use them at any time.
    static LEFT: Cell<isize> = const { Cell::new(UNLIMITED) };
    static UNWINDING: Cell<bool> = const { Cell::new(false) };
}
const UNLIMITED: isize = isize::MAX;

/// Payload of the unwinding that starts at a refused allocation.
pub struct Exhausted;

pub struct Accounted;

fn take(size: usize) -> bool {
    LEFT.with(|left| match left.get() {
        UNLIMITED => true,
        now if size > isize::MAX as usize || size as isize > now => false,
        now => {
            left.set(now - size as isize);
            true
        }
    })
}

fn give(size: usize) {
    LEFT.with(|left| {
        if left.get() != UNLIMITED {
            // Memory from before the budget may be freed under it; the cap keeps the value apart from
            // UNLIMITED.
            left.set(left.get().saturating_add(size as isize).min(UNLIMITED - 1));
        }
    })
}

// SAFETY: every request goes to System or is refused with a null pointer, which GlobalAlloc allows.
unsafe impl GlobalAlloc for Accounted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        let block = System.alloc(layout);
        if block.is_null() {
            give(layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !take(layout.size()) {
            return std::ptr::null_mut();
        }
        let block = System.alloc_zeroed(layout);
        if block.is_null() {
            give(layout.size());
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !take(size) {
            return std::ptr::null_mut();
        }
        let grown = System.realloc(block, layout, size);
        give(if grown.is_null() { size } else { layout.size() });
        grown
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout);
        give(layout.size());
    }
}

/// Unwinds from a refused allocation. Unwinding itself allocates, so the budget is lifted first; a second
/// refusal on the way returns and std ends the process, for want of memory to say anything.
pub fn on_refusal(_: Layout) {
    if UNWINDING.with(|u| u.replace(true)) {
        return;
    }
    LEFT.with(|left| left.set(UNLIMITED));
    std::panic::resume_unwind(Box::new(Exhausted));
}

/// Runs `f` while this thread may take at most `bytes` more.
pub fn with_budget<R>(bytes: usize, f: impl FnOnce() -> R) -> R {
    struct Restore(isize);
    impl Drop for Restore {
        fn drop(&mut self) {
            LEFT.with(|left| left.set(self.0));
            UNWINDING.with(|u| u.set(false));
        }
    }
    let _restore = Restore(LEFT.with(|left| left.replace((bytes.min(1 << 46)) as isize)));
    f()
}
