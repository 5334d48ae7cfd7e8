//! The program as a user starts it, in a folder of the test.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;
use std::process::{Command, Output};

/// What happened.
pub(crate) fn ebp(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebp"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the binary starts")
}

/// What a command that works prints.
pub(crate) fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = ebp(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What a command that cannot work says; it must not have tried.
pub(crate) fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = ebp(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}
