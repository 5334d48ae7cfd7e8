//! The commands of a shell script that start this program, as far as documents use a shell: words and
//! quotes, comments, lines that go on, pipes, lists, redirections and what stands in front of a command.

/// Words that may stand before the program that is started.
const BEFORE: &[&str] =
    &["do", "then", "time", "/usr/bin/time", "nohup", "env", "mpirun", "srun", "timeout"];

/// The simple commands of a script, each as its words. What is redirected, and to where, is left out.
pub(super) fn commands(script: &str) -> Result<Vec<Vec<String>>, String> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut is_target = false;
    let mut rest = script.chars().peekable();
    while let Some(c) = rest.next() {
        let ends = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>, skip: &mut bool| {
            if let Some(done) = word.take()
                && !std::mem::take(skip)
            {
                commands.last_mut().expect("there is always one").push(done);
            }
        };
        match c {
            '\'' | '"' => {
                let text = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        None => return Err(format!("a quote {c} that never closes")),
                        Some(end) if end == c => break,
                        Some(inner) => text.push(inner),
                    }
                }
            }
            '\\' => match rest.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            '#' if word.is_none() => while rest.next_if(|&c| c != '\n').is_some() {},
            ' ' | '\t' => ends(&mut word, &mut commands, &mut is_target),
            '\n' | ';' | '|' | '&' | '(' | ')' => {
                ends(&mut word, &mut commands, &mut is_target);
                is_target = false;
                commands.push(Vec::new());
            }
            '<' | '>' => {
                // `2> file`: the number belongs to the redirection.
                if word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
                    word = None;
                }
                ends(&mut word, &mut commands, &mut is_target);
                is_target = true;
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let (Some(done), false) = (word, is_target) {
        commands.last_mut().expect("there is always one").push(done);
    }
    commands.retain(|words| !words.is_empty());
    Ok(commands)
}

/// What this program is given, if the command starts it: as `ebp`, by a path, or by `cargo run … --`.
pub(super) fn arguments(words: &[String]) -> Option<&[String]> {
    let is_program = |word: &String| word == "ebp" || word == "$ebp" || word.ends_with("/ebp");
    let assigns = |word: &&String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let start = words.iter().take_while(assigns).count();
    let words = &words[start..];
    let first = words.first()?;
    if is_program(first) {
        return Some(&words[1..]);
    }
    if BEFORE.contains(&first.as_str()) {
        let program = words.iter().position(is_program)?;
        return Some(&words[program + 1..]);
    }
    if first == "cargo" && words.get(1).is_some_and(|word| word == "run") {
        let program = words.iter().position(|word| word == "--")?;
        return Some(&words[program + 1..]);
    }
    None
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(script: &str) -> Vec<Vec<String>> {
        let commands = commands(script).unwrap();
        commands.iter().filter_map(|words| arguments(words).map(<[String]>::to_vec)).collect()
    }

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(started("ebp train --set 'a=[\"b\"]' # why"), [["train", "--set", "a=[\"b\"]"]]);
        assert_eq!(started("ebp a \\\n  b | cut -d, -f2\nls"), [["a", "b"]]);
        assert_eq!(started("ebp a > x.json && ebp b 2> y &"), [["a"], ["b"]]);
        assert_eq!(started("X=1 ebp a; cargo run --release -- b"), [["a"], ["b"]]);
        assert_eq!(started("for p in x y; do\n  ebp a --p $p\ndone"), [["a", "--p", "$p"]]);
        assert_eq!(started("/usr/bin/time -v ebp a\nmpirun -n 2 ebp b"), [["a"], ["b"]]);
        assert!(started("python3 x.py --ebp target/release/ebp\ncargo run --example y").is_empty());
        assert!(commands("ebp 'a").is_err());
    }
}
