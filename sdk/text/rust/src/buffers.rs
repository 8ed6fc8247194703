//! Results handed over the C face. Rust owns the memory: the caller gives it back to the matching free
//! function.

/// Bytes of a string or a message. `data` is null when empty.
#[repr(C)]
pub struct Bytes {
    data: *mut u8,
    size: usize,
}

impl Bytes {
    pub fn from_string(text: String) -> Bytes {
        let (data, size) = leak(text.into_bytes());
        Bytes { data, size }
    }
}

/// 32-bit words: token ids and offsets.
#[repr(C)]
pub struct Words {
    data: *mut u32,
    size: usize,
}

impl Words {
    pub fn from_vec(words: Vec<u32>) -> Words {
        let (data, size) = leak(words);
        Words { data, size }
    }
}

fn leak<T>(items: Vec<T>) -> (*mut T, usize) {
    if items.is_empty() {
        return (std::ptr::null_mut(), 0);
    }
    let size = items.len();
    (Box::into_raw(items.into_boxed_slice()) as *mut T, size)
}

/// # Safety
/// `data` and `size` come from [`leak`] and are given back once.
unsafe fn unleak<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)));
    }
}

/// # Safety
/// `bytes` points to one Bytes of this library, given back once; it is left empty.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_bytes_free(bytes: *mut Bytes) {
    unleak((*bytes).data, (*bytes).size);
    *bytes = Bytes { data: std::ptr::null_mut(), size: 0 };
}

/// # Safety
/// As [`inlaid_text_bytes_free`].
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_words_free(words: *mut Words) {
    unleak((*words).data, (*words).size);
    *words = Words { data: std::ptr::null_mut(), size: 0 };
}

/// # Safety
/// `data` is null with `size` 0, or points to `size` items that live as long as the result.
pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}
