//! Tables: what is read, what is refused and where, and that no input panics.

use std::fs;

use ebp::data::table::{parse_table, read_table, write_sets, write_table};
use ebp::data::{ColumnChoice, NamedSet};
use ebp::{Error, IndexedSet, Result};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn parse(text: impl AsRef<[u8]>) -> Result<Vec<NamedSet>> {
    parse_table(text.as_ref(), "a.csv", &ColumnChoice::default())
}

fn message(text: impl AsRef<[u8]>) -> String {
    parse(text).expect_err("an error").to_string()
}

#[test]
fn separators_marks_line_ends_and_quotes_are_understood() {
    let expected = parse("set,t,x\na,1,2\nb,3,4\na,5,6\n").unwrap();
    assert_eq!(expected[0].set.locations(), [1.0, 5.0]);
    assert_eq!(expected[1].name, "b");
    let same = [
        "set;t;x\na;1;2\nb;3;4\na;5;6",
        "set\tt\tx\r\na\t1\t2\r\nb\t3\t4\r\na\t5\t6\r\n",
        "\u{feff}set,t,x\na,1,2\nb,3,4\na,5,6\n",
        "\"set\",\"t\",\"x\"\n\"a\",\"1\",2\n\"b\" , 3 , \"4\"\na,5e0,+6\n",
        "\n\nx,note,t,set\n\n2,\"one, \"\"two\"\"\nthree\",1,a\n4,,3,b\n6,,5,a\n\n",
        "\nset;t;x\na;1;2\nb;3;4\na;5;6",
    ];
    for text in same {
        assert_eq!(parse(text).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn columns_are_numbered_or_chosen() {
    let sets = parse("x1,x2,t2,t1\n1,2,3,4\n5,6,7,8\n").unwrap();
    assert_eq!(sets[0].name, "all");
    assert_eq!(sets[0].set.locations(), [4.0, 3.0, 8.0, 7.0]);
    assert_eq!(sets[0].set.values(), [1.0, 2.0, 5.0, 6.0]);
    let choice = ColumnChoice {
        set: Some("city".into()),
        locations: vec!["hour".into()],
        values: vec!["wind".into(), "rain".into()],
        ..ColumnChoice::default()
    };
    let text = "hour,city,rain,wind\n1,Graz,2,3\n".as_bytes();
    let sets = parse_table(text, "weather.csv", &choice).unwrap();
    assert_eq!((sets[0].name.as_str(), sets[0].set.values()), ("Graz", &[3.0, 2.0][..]));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let cases: [(&[u8], &str); 19] = [
        (b"", "a.csv, line 1, column 1: expected a header such as `set,t,x`, found nothing"),
        (b"t,x\n", "a.csv, line 1, column 1: expected at least one row of numbers, found nothing"),
        (b"t,x\n1,2\n3,\n", "a.csv, line 3, column `x` (2): expected a number, found nothing"),
        (b"t,x\n1,NaN\n", "a.csv, line 2, column `x` (2): expected a finite number, found `NaN`"),
        (b"t,x\n1,1e999\n", "line 2, column `x` (2): expected a finite number, found `1e999`"),
        (b"t,x\n\n\n1,two\n", "a.csv, line 4, column `x` (2): expected a number, found `two`"),
        (b"t;x\n1,5;2\n", "column `t` (1): expected a number with a decimal point, found `1,5`"),
        (b"t,x\n1,2,3\n", "line 2, column 3: expected 2 fields as in the header, found 3"),
        (b"t,x\n1\n", "line 2, column 2: expected 2 fields as in the header, found 1"),
        (b"a,x\n1,2\n", "column names: expected `t` or `t1` in the header, found columns a, x"),
        (b"t,x,x\n1,2,3\n", "line 1, column 3: expected one column named `x`, found a second one"),
        (b"t,x1,x3\n1,2,3\n", "expected either `x` or `x1`, `x2`, … without a gap"),
        (b"t,x\n\"1,2\n", "line 2, column 1 or later: expected a closing quote, found the end"),
        (b"t,x\n\"1\"2,3\n", "line 2, column 1: expected a separator after the quote, found 2,3"),
        (b"t,x\n1\"\",3\n", "column 1: expected a quote only at the start of a field"),
        (b"t,x\n1,\xff\n", "a.csv, line 2, column 2: expected UTF-8 text, found other bytes"),
        (b"\xff\xfet\0", "expected UTF-8 text, found UTF-16; save the file as UTF-8"),
        (b"t,note,x\n1,\"a\nb\",2\n3,,y\n", "a.csv, line 4, column `x` (3): expected a number"),
        (b"t,x\n0x10,1\n", "column `t` (1): expected a number, found `0x10`"),
    ];
    for (text, expected) in cases {
        let found = message(text);
        assert!(found.contains(expected), "{}: {found}", String::from_utf8_lossy(text));
    }
    let endless = [b"t,x\n".as_slice(), &b"1".repeat(3 << 20)].concat();
    assert!(message(endless).contains("line 2"));
    let unclosed = [b"t,x\n\"".as_slice(), &b"1,2\n".repeat(1 << 19)].concat();
    assert!(message(unclosed).contains("found none for a megabyte"));
}

#[test]
fn files_are_read_and_their_absence_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.csv");
    let error = read_table(&path, &ColumnChoice::default()).unwrap_err();
    assert!(matches!(&error, Error::Io { action: "read", .. }), "{error}");
    fs::write(&path, "t,x\n1,2\n").unwrap();
    assert_eq!(read_table(&path, &ColumnChoice::default()).unwrap()[0].set.len(), 1);
}

#[test]
fn tables_are_checked_before_they_are_written() {
    let write = |header: &[&str], rows: &[f64]| write_table(Vec::new(), header, rows);
    assert!(write(&[], &[]).is_err());
    assert!(write(&["a", "b"], &[1.0]).is_err());
    assert!(write(&["a"], &[f64::NAN]).unwrap_err().to_string().contains("rows[0]"));
    assert!(write_sets(Vec::new(), &[]).is_err());
    let mut out = Vec::new();
    write_table(&mut out, &["a,b", "c"], &[1e300, -0.1]).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "\"a,b\",c\n1e300,-0.1\n");
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![-1e3..1e3, any::<f64>().prop_filter("finite", |x| x.is_finite())]
}

fn named_sets() -> impl Strategy<Value = Vec<NamedSet>> {
    let name = prop_oneof!["[a-z]{1,5}", "[ a,;\"\\n\\r\\tß]{0,6}"];
    (1..4_usize, 1..4_usize).prop_flat_map(move |(d_t, d_x)| {
        let set = (1..5_usize).prop_flat_map(move |n| {
            let numbers = |count| prop::collection::vec(number(), count);
            (numbers(n * d_t), numbers(n * d_x))
                .prop_map(move |(t, x)| IndexedSet::new(d_t, d_x, t, x).expect("a set"))
        });
        prop::collection::btree_map(name.clone(), set, 1..4)
            .prop_map(|sets| sets.into_iter().map(|(name, set)| NamedSet { name, set }).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(2020),
        ..ProptestConfig::default()
    })]

    #[test]
    fn sets_are_read_back_as_they_were_written(sets in named_sets()) {
        let mut text = Vec::new();
        write_sets(&mut text, &sets).unwrap();
        prop_assert_eq!(parse(&text).unwrap(), sets);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        rng_seed: RngSeed::Fixed(2020),
        ..ProptestConfig::default()
    })]

    /// Cut off, bits flipped, bytes put in: a table or an error, and a stated place.
    #[test]
    fn broken_files_never_panic(
        sets in named_sets(),
        cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 0..4),
        insert in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut text = Vec::new();
        write_sets(&mut text, &sets).unwrap();
        for (place, bit) in flips {
            let index = place.index(text.len());
            text[index] ^= 1 << bit;
        }
        for (place, byte) in insert {
            text.insert(place.index(text.len()), byte);
        }
        text.truncate(cut.index(2 * text.len()));
        match parse(&text) {
            Ok(sets) => prop_assert!(sets.iter().all(|named| !named.set.is_empty())),
            Err(Error::Parse { line, .. }) => prop_assert!(line >= 1),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
