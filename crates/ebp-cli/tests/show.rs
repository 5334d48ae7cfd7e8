//! Pictures in the terminal as a user meets them: what stdout holds in pipes, and where somebody asks for more.

mod program;

use std::fs;

use program::{ebp, good};

/// What draws a picture in a moment.
const SHAPES: [&str; 8] = ["data", "shapes", "--class", "lamp,chair", "-n", "2", "--points", "60"];

#[test]
fn nothing_but_text_goes_into_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    for more in [&["s"][..], &["s", "--display", "never"], &["s", "--display", "auto"]] {
        let text = good(folder.path(), &[&SHAPES[..], more].concat());
        assert!(text.starts_with("lamp: 2 shapes") && !text.contains('\x1b'), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
    let unknown = ebp(folder.path(), &["plot", "x", "--display", "film"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("sixel"), "ways are listed");
}

#[test]
fn a_named_way_shows_every_picture_below_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for (way, begin) in
        [("kitty", "\x1b_Ga=T,"), ("iterm", "\x1b]1337;File="), ("sixel", "\x1bP0;1;0q")]
    {
        let text = good(folder.path(), &[&SHAPES[..], &["s", "--display", way]].concat());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{way}: two lines, two pictures");
        assert!(lines[0].starts_with("lamp: ") && lines[1].starts_with(begin), "{way}");
        assert!(lines[2].starts_with("chair: ") && lines[3].starts_with(begin), "{way}");
    }
    let text = good(folder.path(), &[&SHAPES[..], &["s", "--display", "blocks"]].concat());
    let rows = text.lines().filter(|line| line.contains('▀')).count();
    assert!(rows > 10 && text.ends_with("\x1b[0m\n"), "{rows}");
    // The object stays alone.
    let json = good(folder.path(), &[&SHAPES[..], &["s", "--display", "kitty", "--json"]].concat());
    assert!(json.starts_with('{') && json.ends_with("}\n") && !json.contains('\x1b'));
}

#[test]
fn a_picture_that_cannot_be_read_does_not_take_the_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    good(folder, &[&SHAPES[..], &["s"]].concat());
    let render = ["render", "s/lamp.npy", "--size", "40x40", "--display", "sixel"];
    // A drawing has lines, no pixels; what moves shows its first frame.
    let text = good(folder, &[&render[..], &["-o", "a.svg"]].concat());
    assert!(!text.contains('\x1b'), "{text}");
    let turn = ["-o", "a.apng", "--count", "1", "--turntable", "2"];
    let text = good(folder, &[&render[..], &turn].concat());
    assert!(text.contains("\x1bP0;1;0q"), "{text}");
    assert!(fs::read(folder.join("a.apng")).expect("a file").starts_with(b"\x89PNG"));
}
