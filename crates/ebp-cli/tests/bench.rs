//! `ebp bench` as a user meets it: stdout, stderr and exit code.

use std::process::{Command, Output};

use serde_json::Value;

/// Sizes that every machine finishes at once.
const TINY: [&str; 18] = [
    "--sets",
    "2",
    "--points",
    "5",
    "--value-dim",
    "2",
    "--context-dim",
    "4",
    "--energy-widths",
    "8,6",
    "--encoder-widths",
    "8,7",
    "--repeats",
    "2",
    "--threads",
    "1",
    "--seed",
    "3",
];

const ALL_CASES: [&str; 15] = [
    "energy_value",
    "energy_backward",
    "score",
    "score_backward",
    "langevin20",
    "leapfrog20",
    "candidates256",
    "encoder_value",
    "encoder_backward",
    "training_step",
    "importance_step",
    "paper_ade_step",
    "ade_step",
    "mnist_step",
    "celeba_step",
];

/// Steps of presets, whose arithmetic is not counted.
const PRESET_STEPS: usize = 5;

fn ebp(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebp")).args(arguments).output().expect("the binary starts")
}

fn tiny_bench(more: &[&str]) -> Output {
    let device: &[&str] = if more.contains(&"--device") { &[] } else { &["--device", "cpu"] };
    ebp(&[&["bench"], &TINY[..], device, more].concat())
}

fn stdout(output: &Output) -> String {
    let (stdout, stderr) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "stderr: {stderr}");
    String::from_utf8(stdout.clone()).expect("stdout is text")
}

/// The message of a refused command, which must leave stdout empty. Lines are joined, because
/// error reports wrap.
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let message = String::from_utf8(output.stderr.clone()).expect("stderr is text");
    message.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn positive(value: &Value) -> f64 {
    let number = value.as_f64().expect("a number");
    assert!(number.is_finite() && number > 0.0, "{number}");
    number
}

#[test]
fn json_holds_every_case_with_finite_numbers() {
    let report: Value = serde_json::from_str(&stdout(&tiny_bench(&["--json"]))).unwrap();
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["size"], "custom");
    assert_eq!(report["sizes"]["sets"], 2);
    assert_eq!(report["sizes"]["points"], 5);
    assert_eq!(report["sizes"]["value_dim"], 2);
    assert_eq!(report["sizes"]["context_dim"], 4);
    assert_eq!(report["sizes"]["energy_widths"], serde_json::json!([8, 6]));
    assert_eq!(report["sizes"]["encoder_widths"], serde_json::json!([8, 7]));
    assert_eq!(report["sizes"]["activation"], "relu");
    assert_eq!(report["sizes"]["context_at"], "first");
    assert_eq!(report["seed"], 3);
    assert_eq!(report["device"], "cpu");
    assert_eq!(report["threads"], 1);
    assert!(["portable", "avx2", "avx512"].contains(&report["simd"].as_str().unwrap()));
    let peak = positive(&report["peak_gflops"]);

    let cases = report["cases"].as_array().unwrap();
    let names: Vec<_> = cases.iter().map(|case| case["name"].as_str().unwrap()).collect();
    assert_eq!(names, ALL_CASES);
    for (number, case) in cases.iter().enumerate() {
        positive(&case["ms"]);
        assert_eq!(case["runs"], 2);
        if number < cases.len() - PRESET_STEPS {
            let fraction = positive(&case["gflops"]) / peak;
            assert!((positive(&case["peak_fraction"]) / fraction - 1.0).abs() < 1e-9);
        } else {
            assert!(case["gflops"].is_null() && case["peak_fraction"].is_null());
            assert_eq!(case["settings"]["seed"], 3);
        }
        // Kernels of a GPU are timed on a GPU.
        for field in ["kernel_ms", "kernel_peak_fraction", "kernel_share", "launches"] {
            assert!(case[field].is_null(), "{field}");
        }
        match &case["peak_rss_mib"] {
            Value::Null => {}
            memory => assert!(positive(memory) > 0.1),
        }
    }
}

#[test]
fn cases_can_be_chosen_and_keep_the_order_typed() {
    let output = tiny_bench(&["--json", "--cases", "score,energy_value"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let names: Vec<_> =
        report["cases"].as_array().unwrap().iter().map(|case| &case["name"]).collect();
    assert_eq!(names, ["score", "energy_value"]);
}

#[test]
fn other_networks_run_too() {
    let base = ["bench", "small", "--sets", "1", "--repeats", "1", "--json"];
    for more in [
        &["--activation", "silu", "--context-at", "every"][..],
        &["--activation", "leaky-relu", "--context-dim", "0"],
        &["--activation", "tanh", "--simd", "portable", "--device", "cpu"],
        &["--points", "300", "--cases", "candidates256"],
    ] {
        let report: Value =
            serde_json::from_str(&stdout(&ebp(&[&base[..], more].concat()))).unwrap();
        assert!(!report["cases"].as_array().unwrap().is_empty(), "{more:?}");
    }
}

#[test]
fn the_table_has_a_line_per_case_and_no_colour_in_a_pipe() {
    let output = tiny_bench(&[]);
    let table = stdout(&output);
    for case in ALL_CASES {
        assert_eq!(table.lines().filter(|line| line.starts_with(&format!("{case} "))).count(), 1);
    }
    assert!(table.contains("2 sets × 5 points × 2, context 4"));
    assert!(!table.contains('\x1b'));
    assert!(output.stderr.is_empty(), "no progress without a terminal");
}

#[test]
fn help_explains_the_numbers() {
    let general = stdout(&ebp(&["--help"]));
    assert!(general.contains("bench"));
    let bench = stdout(&ebp(&["bench", "--help"]));
    for word in ["paper-cloud", "small", "critical", "median", "peak_rss_mib"] {
        assert!(bench.contains(word), "{word}");
    }
    for case in ALL_CASES {
        assert!(bench.contains(case), "{case}");
    }
    assert!(stdout(&ebp(&["--version"])).starts_with("ebp "));
}

#[test]
fn nothing_typed_is_a_usage_error_with_help() {
    let output = ebp(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage"));
}

#[test]
fn an_unknown_size_is_refused_with_the_known_ones() {
    let message = refusal(&ebp(&["bench", "huge"]));
    assert!(message.contains("huge") && message.contains("paper-cloud, small"), "{message}");
}

#[test]
fn an_unknown_case_is_refused_with_the_known_ones() {
    let message = refusal(&tiny_bench(&["--cases", "score,speed"]));
    assert!(message.contains("speed") && message.contains(&ALL_CASES.join(", ")), "{message}");
}

#[test]
fn an_unknown_device_is_refused_with_the_known_ones() {
    let message = refusal(&tiny_bench(&["--device", "abacus"]));
    assert!(message.contains("abacus") && message.contains("auto, cpu"), "{message}");
}

/// Without a GPU: what is missing, and what to do.
#[test]
fn a_gpu_that_is_not_there_is_an_error_with_the_way_out() {
    let output = tiny_bench(&["--device", "cuda:77"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).expect("stderr is text");
    let message = message.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("cannot use the GPU"), "{message}");
    assert!(message.contains("`--device cpu`"), "{message}");
}

#[test]
fn an_instruction_set_and_a_gpu_contradict_each_other() {
    let message = refusal(&tiny_bench(&["--device", "cuda", "--simd", "portable"]));
    assert!(message.contains("leave one of the two out"), "{message}");
}

#[test]
fn the_doctor_says_what_will_be_used() {
    let text = stdout(&ebp(&["doctor"]));
    assert!(text.contains("portable") && text.contains("--device auto takes "), "{text}");
    let json: Value = serde_json::from_str(&stdout(&ebp(&["doctor", "--json"]))).unwrap();
    positive(&json["cpu_peak_gflops"]);
    assert_eq!(json["gpu"].is_null(), !json["no_gpu"].is_null());
}

#[test]
fn an_unknown_instruction_set_is_refused_with_the_known_ones() {
    let message = refusal(&tiny_bench(&["--simd", "mmx"]));
    assert!(message.contains("auto, portable, avx2, avx512"), "{message}");
}

#[test]
fn sizes_of_zero_are_refused_by_name() {
    for flag in ["--sets", "--points", "--value-dim", "--threads", "--repeats", "--energy-widths"] {
        let message = refusal(&ebp(&["bench", "small", flag, "0"]));
        assert!(message.contains(flag), "{message}");
        assert!(message.contains("at least 1"), "{message}");
    }
}

#[test]
fn a_width_beyond_the_limit_is_refused_with_the_limit() {
    let message = refusal(&ebp(&["bench", "small", "--energy-widths", "128,5000"]));
    assert!(message.contains("`hidden_widths[1]` must be between 1 and 4096"), "{message}");
    assert!(message.contains("`--energy-widths`"), "{message}");
    let message = refusal(&ebp(&["bench", "small", "--encoder-widths", "8,5000"]));
    assert!(message.contains("`output_dim` must be between 1 and 4096"), "{message}");
    assert!(message.contains("`--encoder-widths`"), "{message}");
}

#[test]
fn a_batch_beyond_memory_and_threads_beyond_reason_are_refused() {
    let message = refusal(&ebp(&["bench", "--sets", "18446744073709551615"]));
    assert!(message.contains("at most 2147483648 numbers"), "{message}");
    let message = refusal(&ebp(&["bench", "small", "--threads", "100000"]));
    assert!(message.contains("at most 1024"), "{message}");
}
