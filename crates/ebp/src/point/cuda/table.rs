//! Compares tables of kernels with the sources they are compiled from, without a GPU.

/// Every kernel of the sources is in the table, and has the parameters that the table says.
pub(crate) fn compare(sources: &[&str], table: &[(&str, &[&str])]) {
    let mut found = kernels(&sources.concat());
    let mut expected: Vec<_> = table
        .iter()
        .map(|(name, kinds)| {
            let kinds: Vec<_> = kinds.iter().map(|kind| without_option(kind)).collect();
            ((*name).to_string(), kinds)
        })
        .collect();
    found.sort();
    expected.sort();
    let names = |kernels: &[(String, Vec<String>)]| -> Vec<String> {
        kernels.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&found), names(&expected));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

/// A null pointer is one more value of a pointer: the source does not say who may be null.
fn without_option(kind: &str) -> String {
    let kind = kind.replace(' ', "");
    match kind.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')) {
        Some(inner) => inner.to_string(),
        None => kind,
    }
}

/// Names and parameters of the kernels in a source, in the table's words.
fn kernels(source: &str) -> Vec<(String, Vec<String>)> {
    source
        .split("__global__ void")
        .skip(1)
        .map(|rest| {
            let head = rest.split('{').next().unwrap_or_default();
            // __launch_bounds__(…) may stand before the name.
            let head = match head.split_once("__launch_bounds__(") {
                Some((_, bounds)) => bounds.split_once(')').unwrap_or_default().1,
                None => head,
            };
            let (name, parameters) = head.split_once('(').unwrap_or_default();
            let parameters = parameters.rsplit_once(')').unwrap_or_default().0;
            (name.trim().to_string(), parameters.split(',').map(kind).collect())
        })
        .collect()
}

/// `const float *x` is `&Buffer`, `u32 n` is `u32`.
fn kind(parameter: &str) -> String {
    let parameter = parameter.replace("const ", "");
    let Some((numbers, _)) = parameter.split_once('*') else {
        let kind = parameter.trim().rsplit_once(' ').unwrap_or_default().0;
        return number(kind.trim()).to_string();
    };
    match number(numbers.trim()) {
        "f32" => "&Buffer".to_string(),
        number => format!("&Buffer<{number}>"),
    }
}

fn number(kind: &str) -> &str {
    match kind {
        "float" => "f32",
        "double" => "f64",
        "int" => "i32",
        // A tile is three of them.
        "Tile" => "u32",
        "unsigned char" => "u8",
        "unsigned short" => "u16",
        "Motion" => "MotionCode",
        other => other,
    }
}
