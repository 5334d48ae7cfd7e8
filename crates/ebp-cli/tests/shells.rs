//! `ebp completions`, `ebp man` and `ebp reference`: every command is in all of them.

mod program;

use std::fs;

use program::{complaint, good, refusal};

#[test]
fn every_shell_completes_commands_and_options() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good(folder.path(), &["completions", shell]);
        for word in ["train", "distance", "completions", "precision", "print-config"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert!(refusal(folder.path(), &["completions", "cmd"]).contains("bash"));
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = good(folder.path(), &["man", "pages/man1"]);
    let pages = folder.path().join("pages/man1");
    let count = fs::read_dir(&pages).expect("pages").count();
    assert!(said.starts_with(&format!("{count} pages")), "{said}");
    for name in ["ebp", "ebp-train", "ebp-data-import", "ebp-man"] {
        let page = fs::read_to_string(pages.join(format!("{name}.1"))).expect(name);
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    let page = fs::read_to_string(pages.join("ebp-train.1")).expect("a page");
    assert!(page.contains("num_steps=500") && page.contains("ebp\\-train"), "{page}");
}

#[test]
fn the_reference_has_commands_settings_and_presets() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = good(folder.path(), &["reference", "pages"]);
    assert_eq!(said, "3 pages in pages\n");
    for (name, words) in [
        ("commands", "## ebp train\n"),
        ("settings", "| `model.kl_weight` | `1.0` | number | κ: weight of the KL term"),
        ("presets", "### paper/cloud\n"),
    ] {
        let page = fs::read_to_string(folder.path().join(format!("pages/{name}.md"))).expect(name);
        assert!(page.contains(words), "{name}");
    }
    fs::write(folder.path().join("file"), "").expect("a file");
    assert!(complaint(folder.path(), &["reference", "file"]).contains("cannot create"));
}
