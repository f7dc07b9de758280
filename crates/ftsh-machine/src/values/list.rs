//! Lists: words of any bytes in one variable.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use super::{
    size,
    size::{MAX_VALUE_LEN, ValueTooLong},
    suspend::Suspend,
};

/// Elements of a list, stored one after the other in a single buffer. An element costs four bytes
/// beside its own.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct List {
    bytes: BString,
    /// End of each element in `bytes`. A value is shorter than 4 GiB.
    ends: Vec<u32>,
}

impl List {
    /// Appends an element.
    ///
    /// # Errors
    ///
    /// Fails if the text of the list would become too long, or memory is short.
    pub(crate) fn push(&mut self, element: &[u8]) -> Result<(), Suspend> {
        let length = self.text_len() + 1 + element.len();
        if length > MAX_VALUE_LEN {
            return Err(Suspend::from(ValueTooLong(length)));
        }
        self.ends.try_reserve(1).map_err(|_| size::no_memory(length))?;
        size::append(&mut self.bytes, element)?;
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }

    /// Appends the elements of another list, or none of them.
    ///
    /// # Errors
    ///
    /// Those of [`List::push`].
    pub(crate) fn extend(&mut self, other: &Self) -> Result<(), Suspend> {
        let length = self.len();
        let pushed = other.iter().try_for_each(|element| self.push(element));
        pushed.inspect_err(|_| self.truncate(length))
    }

    /// Removes all elements after the first `length`.
    fn truncate(&mut self, length: usize) {
        self.ends.truncate(length);
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }

    /// Gives back memory for further elements.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the element at an index from 0.
    pub(crate) fn get(&self, index: usize) -> Option<&BStr> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.bytes.get(start..end).map(ByteSlice::as_bstr)
    }

    /// Returns the element at a position of a script: from 1 on, or from the end if negative.
    pub(crate) fn at(&self, position: i64) -> Option<&BStr> {
        let position = isize::try_from(position).ok()?;
        match position {
            0 => None,
            1.. => self.get(position.unsigned_abs() - 1),
            ..0 => self.get(self.len().checked_sub(position.unsigned_abs())?),
        }
    }

    /// Iterates over the elements.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &BStr> + Clone {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the length of the [`List::text`].
    pub(crate) fn text_len(&self) -> usize {
        self.bytes.len() + self.len().saturating_sub(1)
    }

    /// Joins the elements by newlines.
    pub(crate) fn text(&self) -> BString {
        let mut text = Vec::with_capacity(self.text_len());
        for (index, element) in self.iter().enumerate() {
            if index > 0 {
                text.push(b'\n');
            }
            text.extend_from_slice(element);
        }
        text.into()
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(elements: &[&str]) -> List {
        let mut list = List::default();
        for element in elements {
            list.push(element.as_bytes()).expect("a short list");
        }
        list
    }

    #[test]
    fn elements_keep_their_bytes() {
        let mut all = list(&["a b", "", "c\nd", ""]);
        all.push(b"\xff\0").expect("a short list");
        let elements: Vec<&[u8]> = all.iter().map(|element| &**element).collect();
        assert_eq!(elements, [&b"a b"[..], b"", b"c\nd", b"", b"\xff\0"]);
        assert_eq!(all.text(), &b"a b\n\nc\nd\n\n\xff\0"[..]);
        assert_eq!(all.text().len(), all.text_len());
        assert_eq!((list(&[]).text_len(), list(&[""]).text_len()), (0, 0));
    }

    #[test]
    fn positions_count_from_both_ends() {
        let list = list(&["a", "b", "c"]);
        let at = |position| list.at(position).map(ToString::to_string);
        assert_eq!([1, 3, -1, -3].map(at), ["a", "c", "c", "a"].map(|it| Some(it.to_owned())));
        assert_eq!([0, 4, -4, i64::MIN, i64::MAX].map(at), [const { None }; 5]);
    }

    #[test]
    fn a_list_can_be_cut() {
        let mut cut = list(&["a", "b", "c"]);
        cut.truncate(1);
        assert_eq!(cut, list(&["a"]));
        cut.truncate(0);
        assert_eq!(cut, List::default());
    }

    #[test]
    fn the_text_of_a_list_is_bounded() {
        let mut list = List::default();
        let half = vec![b'x'; MAX_VALUE_LEN / 2];
        list.push(&half).expect("room");
        assert!(list.push(&half).is_err());
        assert_eq!(list.len(), 1);
    }
}
