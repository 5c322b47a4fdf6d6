//! A line of a record. Its fields are module, rank, number of the record, counter, value, name, mount point,
//! file system.

pub struct Line<'a> {
    pub module: &'a str,
    pub rank: i64,
    pub id: u64,
    pub counter: &'a str,
    pub value: &'a str,
    /// Name as printed, including any tabs.
    pub name: &'a str,
}

impl<'a> Line<'a> {
    pub fn of(text: &'a str) -> Option<Line<'a>> {
        let mut fields = text.splitn(6, '\t');
        let mut next = || fields.next();
        let (module, rank, id) = (next()?, next()?, next()?);
        let (counter, value, rest) = (next()?, next()?, next()?);
        // The last fields are split off from the end, because a name may contain tabs.
        let (name, _) = rest.rsplit_once('\t')?;
        let (name, _) = name.rsplit_once('\t')?;
        Some(Line { module, rank: rank.parse().ok()?, id: id.parse().ok()?, counter, value, name })
    }

    /// Returns the value as an integer. darshan-parser prints some counters, such as record numbers, as
    /// unsigned numbers.
    pub fn number(&self) -> Option<i64> {
        let unsigned = || self.value.parse::<u64>().ok().map(u64::cast_signed);
        self.value.parse().ok().or_else(unsigned)
    }

    pub fn fraction(&self) -> Option<f64> {
        self.value.parse().ok()
    }
}
