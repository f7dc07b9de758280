//! The list of a loop, generated lazily.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bstr::BString;

use super::incoming::Incoming;
use crate::effect::OperationId;
use crate::values::{List, Range, Splitter, Value};

/// List of words and ranges.
#[derive(Clone, Default)]
pub(crate) struct Items {
    segments: Vec<Segment>,
    /// Index of the current segment.
    segment: usize,
    /// Number of items already taken from the segment; for a text, the offset in bytes.
    at: u64,
    /// Number of items, counted when first needed.
    count: OnceLock<u64>,
    /// Input that more words come from.
    incoming: Option<Incoming>,
}

/// Shows the segments and the position without the lazily counted number of items.
impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { segments, segment, at, count: _, incoming: _ } = self;
        let mut items = f.debug_struct("Items");
        items.field("segments", segments).field("segment", segment).field("at", at).finish()
    }
}

#[derive(Clone, Debug)]
enum Segment {
    Words(Vec<BString>),
    List(Arc<List>),
    Range(Range),
    Split(Splitter),
}

impl Segment {
    fn len(&self) -> u64 {
        match self {
            Self::Words(words) => words.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Range(range) => range.count(),
            Self::Split(pieces) => pieces.count(),
        }
    }

    /// Returns the item at a position, and advances the position.
    fn take(&self, at: &mut u64) -> Option<Value> {
        match self {
            Self::Words(words) => {
                *at += 1;
                words.get(*at as usize - 1).cloned().map(Value::from)
            }
            Self::List(list) => {
                *at += 1;
                list.get(*at as usize - 1).map(|word| Value::from(word.to_owned()))
            }
            Self::Range(range) if *at < range.count() => {
                *at += 1;
                Some(Value::Integer(range.get(*at - 1)))
            }
            Self::Range(_) => None,
            Self::Split(pieces) => pieces.next(at).map(|word| Value::from(BString::from(word))),
        }
    }
}

impl Items {
    /// Appends the words of a value.
    pub(crate) fn push(&mut self, value: Value) {
        let words = match value {
            Value::Range(range) => return self.segments.push(Segment::Range(range)),
            Value::List(list) => return self.segments.push(Segment::List(list)),
            Value::Split(pieces) => return self.segments.push(Segment::Split(pieces)),
            Value::Words(words) => words,
            value => value.text().map(std::borrow::Cow::into_owned).into_iter().collect(),
        };
        match self.segments.last_mut() {
            Some(Segment::Words(last)) => last.extend(words),
            _ => self.segments.push(Segment::Words(words)),
        }
    }

    /// Creates the words of an input, of which nothing has come.
    pub(crate) fn of_input(incoming: Incoming) -> Self {
        let segments = vec![Segment::Words(Vec::new())];
        Self { segments, incoming: Some(incoming), ..Self::default() }
    }

    /// True if there may be more words than have come.
    pub(crate) fn is_open(&self) -> bool {
        self.incoming.is_some()
    }

    /// True if the next item, if there is one, has not come.
    pub(crate) fn needs_input(&self) -> bool {
        self.incoming.is_some() && self.at == self.segments.first().map_or(0, Segment::len)
    }

    /// Returns the bytes that end each word of the input.
    pub(crate) fn end_of_words(&self) -> Option<&BString> {
        self.incoming.as_ref().map(Incoming::end)
    }

    /// Adds the words in the next part of the input. An empty part is the end.
    pub(crate) fn feed(&mut self, part: &[u8]) {
        let Some(Segment::Words(words)) = self.segments.first_mut() else { return };
        match &mut self.incoming {
            Some(incoming) if !part.is_empty() => incoming.take(part, words),
            _ => words.extend(self.incoming.take().and_then(Incoming::last)),
        }
    }

    /// Returns true if a request for more words is not answered.
    pub(crate) fn is_asked(&self) -> bool {
        self.incoming.as_ref().is_some_and(|incoming| incoming.asked.is_some())
    }

    /// Returns the request for more words that is not answered, if words come from an input.
    pub(crate) fn asked(&mut self) -> Option<&mut Option<OperationId>> {
        self.incoming.as_mut().map(|incoming| &mut incoming.asked)
    }

    /// Returns the number of items.
    pub(crate) fn len(&self) -> u64 {
        let sum = |sum: u64, segment: &Segment| sum.saturating_add(segment.len());
        let count = || self.segments.iter().fold(0, sum);
        if self.is_open() { count() } else { *self.count.get_or_init(count) }
    }

    /// Returns true if the list has no items.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.iter().all(|segment| segment.take(&mut 0).is_none())
    }

    /// Returns the next item.
    pub(crate) fn next(&mut self) -> Option<Value> {
        while let Some(segment) = self.segments.get(self.segment) {
            if let Some(item) = segment.take(&mut self.at) {
                return Some(item);
            }
            (self.segment, self.at) = (self.segment + 1, 0);
        }
        None
    }

    /// Returns true if an item has come that is still to be taken.
    pub(crate) fn has_next(&self) -> bool {
        let mut at = self.at;
        self.segments.iter().skip(self.segment).any(|segment| {
            let has_next = segment.take(&mut at).is_some();
            at = 0;
            has_next
        })
    }

    /// Returns the next item, starting over after the last.
    pub(crate) fn next_round(&mut self) -> Option<Value> {
        self.next().or_else(|| {
            self.rewind(0);
            self.next()
        })
    }

    /// Moves to the item with index `past`.
    pub(crate) fn rewind(&mut self, mut past: u64) {
        (self.segment, self.at) = (0, 0);
        while let Some(segment) = self.segments.get(self.segment) {
            let len = segment.len();
            if past < len {
                match segment {
                    Segment::Split(pieces) => {
                        for _ in 0..past {
                            pieces.next(&mut self.at);
                        }
                    }
                    _ => self.at = past,
                }
                return;
            }
            past -= len;
            self.segment += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Items {
        let mut items = Items::default();
        items.push(Value::Words(vec!["a b".into(), "c".into()]));
        let split = |text: &str| Value::Split(Splitter::words(Arc::new(text.into())));
        items.push(split("  d\te\n"));
        items.push(split(" \n"));
        items.push(Value::Range(Range::new(1, 3, 1).expect("a step")));
        let mut list = List::default();
        list.push(b"f g").and_then(|()| list.push(b"")).expect("a short list");
        items.push(Value::List(Arc::new(list)));
        items.push(Value::from("x"));
        items
    }

    fn rest(items: &mut Items) -> Vec<String> {
        let next = || items.next().and_then(|item| Some(item.text()?.to_string()));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_list_is_gone_through_from_any_place() {
        let all = ["a b", "c", "d", "e", "1", "2", "3", "f g", "", "x"];
        assert_eq!(rest(&mut items()), all);
        assert_eq!(items().len(), all.len() as u64);
        for past in 0..=all.len() {
            let mut items = items();
            items.rewind(past as u64);
            assert_eq!(rest(&mut items), all[past..]);
        }
    }

    #[test]
    fn blanks_alone_are_no_items() {
        let mut items = Items::default();
        items.push(Value::Split(Splitter::words(Arc::new(" \t\n".into()))));
        assert!(items.is_empty());
        assert_eq!((items.len(), items.next().is_none()), (0, true));
    }
}
