//! Array of C strings in one allocation, as `argv` and `envp` require.

use std::ffi::c_char;

/// Strings, each of which ends with a NUL.
#[derive(Default)]
pub struct CStringArray {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl CStringArray {
    /// Adds a string made of parts without NULs.
    pub fn push(&mut self, parts: &[&[u8]]) {
        self.starts.push(self.bytes.len());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.push(0);
    }

    /// Returns all strings, each with its NUL.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Creates the array from the bytes of another array.
    pub fn from_bytes(mut bytes: Vec<u8>) -> Self {
        if bytes.last().is_some_and(|&last| last != 0) {
            bytes.push(0);
        }
        let ends = bytes.iter().enumerate().filter(|&(_, &byte)| byte == 0).map(|(at, _)| at + 1);
        let mut starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
        starts.pop(); // after the last NUL
        Self { bytes, starts }
    }

    /// Returns the strings without their NULs.
    pub fn strings(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.starts.iter().skip(1).copied().chain([self.bytes.len()]);
        self.starts.iter().zip(ends).map(|(&start, end)| &self.bytes[start..end - 1])
    }

    /// Returns pointers to the strings, valid until the array changes, and a null pointer.
    pub fn pointers(&self) -> Vec<*mut c_char> {
        let pointer = |&start: &usize| self.bytes[start..].as_ptr().cast_mut().cast();
        self.starts.iter().map(pointer).chain([std::ptr::null_mut()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_with_a_nul_and_the_vector_with_a_null_pointer() {
        let mut array = CStringArray::default();
        array.push(&[b"A", b"=", b"b"]);
        array.push(&[]);
        assert_eq!(array.bytes, b"A=b\0\0");
        assert_eq!(array.pointers().len(), 3);
        assert!(array.pointers()[2].is_null());
        let copy = CStringArray::from_bytes(array.bytes().to_vec());
        assert_eq!(copy.strings().collect::<Vec<_>>(), [&b"A=b"[..], b""]);
        assert_eq!(CStringArray::from_bytes(Vec::new()).strings().count(), 0);
    }
}
