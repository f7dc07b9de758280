//! The list of a loop, never built in memory.

use bstr::BString;

use super::value::{Range, Value};

/// Words and ranges, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Items {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
enum Segment {
    Words(Vec<BString>),
    Range(Range),
}

impl Segment {
    fn len(&self) -> u64 {
        match self {
            Self::Words(words) => words.len() as u64,
            Self::Range(range) => range.count(),
        }
    }
}

impl Items {
    /// Adds the words of a value.
    pub fn push(&mut self, value: Value) {
        let words = match value {
            Value::Range(range) => return self.segments.push(Segment::Range(range)),
            Value::Words(words) => words,
            value => value.text().map(std::borrow::Cow::into_owned).into_iter().collect(),
        };
        match self.segments.last_mut() {
            Some(Segment::Words(last)) => last.extend(words),
            _ => self.segments.push(Segment::Words(words)),
        }
    }

    /// How many items there are.
    pub fn len(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.len()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`, if there is one.
    pub fn get(&self, mut index: u64) -> Option<Value> {
        for segment in &self.segments {
            let len = segment.len();
            if index < len {
                return Some(match segment {
                    Segment::Words(words) => Value::Text(words[index as usize].clone()),
                    Segment::Range(range) => Value::Integer(range.get(index)),
                });
            }
            index -= len;
        }
        None
    }
}
