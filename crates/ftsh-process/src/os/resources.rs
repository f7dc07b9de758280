//! Memory and load of the machine, and sizes in files of `/proc`.

use std::collections::BTreeMap;
use std::fs;

/// Returns the sum of lines in kB of a file of `/proc`, in bytes; `None` if a line is missing.
pub(crate) fn kilobytes(text: &str, names: &[&str]) -> Option<u64> {
    let values: BTreeMap<&str, u64> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            Some((words.next()?, words.next()?.parse().ok()?))
        })
        .collect();
    names.iter().try_fold(0_u64, |sum, name| {
        Some(sum.saturating_add(values.get(name)?.saturating_mul(1024)))
    })
}

/// Returns the bytes of available memory and the load of the last minute, each `-` if unknown.
pub(crate) fn free_resources() -> String {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = kilobytes(&memory, &["MemAvailable:"]).map(|bytes| bytes.to_string());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|load| !load.is_empty());
    format!("{} {}", available.as_deref().unwrap_or("-"), load.unwrap_or("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_load_are_numbers() {
        let text = free_resources();
        let (memory, load) = text.split_once(' ').expect("two numbers");
        assert!(memory.parse::<u64>().is_ok_and(|bytes| bytes > 0), "{text}");
        assert!(load.parse::<f64>().is_ok(), "{text}");
    }
}
