//! Tables as columns, in a memory layout that another language can use directly.

use iodock_event::UNKNOWN;

/// The values of one column, in the machine's byte order.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Int64(Vec<i64>),
    UInt32(Vec<u32>),
    UInt16(Vec<u16>),
    UInt8(Vec<u8>),
    Int8(Vec<i8>),
    Float64(Vec<f64>),
}

/// One column. `is_exact` is false if a value may have reached the limit of 64 bits. In `valid`, if it is
/// present, a set bit (least significant first) marks a row that is not null.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: &'static str,
    pub values: Values,
    pub valid: Option<Vec<u8>>,
    pub is_exact: bool,
}

/// Columns with the same number of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub rows: usize,
    pub columns: Vec<Column>,
}

impl Column {
    pub fn new(name: &'static str, values: Values) -> Column {
        Column { name, values, valid: None, is_exact: true }
    }

    /// Makes a column in which [`UNKNOWN`] is null.
    pub fn nullable(name: &'static str, values: Vec<i64>) -> Column {
        let is_exact = values.iter().all(|&value| value != i64::MAX);
        Column { is_exact, ..Column::saturated(name, values) }
    }

    /// Makes a column in which [`UNKNOWN`] is null, for sums that may be limited to the largest number.
    pub fn saturated(name: &'static str, values: Vec<i64>) -> Column {
        let valid = bits(values.iter().map(|&value| value != UNKNOWN));
        Column { name, values: Values::Int64(values), valid: Some(valid), is_exact: true }
    }

    /// Makes a column in which the value `null` is null.
    pub fn ids(name: &'static str, values: Vec<u32>, null: u32) -> Column {
        let valid = bits(values.iter().map(|&value| value != null));
        Column { name, values: Values::UInt32(values), valid: Some(valid), is_exact: true }
    }
}

fn bits(flags: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut packed = Vec::new();
    for (index, flag) in flags.enumerate() {
        if index % 8 == 0 {
            packed.push(0);
        }
        if let Some(last) = packed.last_mut() {
            *last |= u8::from(flag) << (index % 8);
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_value_clears_its_validity_bit() {
        let values = vec![1, UNKNOWN, 0, 4, 5, 6, 7, 8, UNKNOWN, 10];
        assert_eq!(Column::nullable("bytes", values).valid, Some(vec![0b1111_1101, 0b10]));
        assert_eq!(Column::ids("file_id", vec![], 9).valid, Some(vec![]));
    }
}
