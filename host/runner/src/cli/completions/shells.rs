//! The scripts of the shells, and the form in which each takes an answer. Those of elvish, fish and
//! PowerShell are clap's; bash and zsh have their own here.
//!
//! clap's for bash takes what bash cuts at `=` and `:` for words of their own, so that it completes
//! neither `--backend=vl` nor `load.arrival=po`. Its for zsh registers itself and so completes
//! nothing the first time, where the script is a file in zsh's path of functions, and adds a space
//! after `load.arrival=`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell, Shells};

use super::{PROGRAM, VARIABLE};

/// All shells that are known.
pub(super) const fn all() -> Shells<'static> {
    Shells(&[&Bash, &Zsh, &Elvish, &Fish, &Powershell])
}

/// The script that a user's shell reads to complete command lines.
///
/// # Errors
/// If the shell is of a kind that has no script.
pub(super) fn script(shell: Shell) -> io::Result<String> {
    let shells = all();
    let shell = shells.completer(&shell.to_string()).ok_or(io::ErrorKind::Unsupported)?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    let script = String::from_utf8_lossy(&script);
    Ok(format!("{}\n", script.trim()))
}

/// Ends of values to which more is added, so that no space follows them.
const OPEN: [char; 5] = ['=', ':', '/', '.', '<'];

/// The index of the word that is asked about, which the scripts below pass on.
fn index() -> usize {
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok();
    index.and_then(|index| index.parse().ok()).unwrap_or(0)
}

/// The answer about the word at the index.
fn answer(
    command: &mut Command,
    mut words: Vec<OsString>,
    here: Option<&Path>,
) -> io::Result<Vec<CompletionCandidate>> {
    let index = index();
    // An empty word may be left out.
    if words.len() == index {
        words.push(OsString::new());
    }
    complete(command, words, index, here)
}

/// bash, from 3.2 on.
struct Bash;

const BASH: &str = r#"_runner() {
    local word rest=$COMP_LINE before= reply i
    local -a words=()
    # Words that bash cuts at = and : are one word for the program.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then
            words[${#words[@]}]=$word
        else
            words[${#words[@]} - 1]+=$word
        fi
        rest=${rest#"${rest%%[![:space:]]*}"}
        rest=${rest#"$word"}
    done
    # Of the last one, bash replaces only what follows the cut.
    local last=$((${#words[@]} - 1))
    before=${words[last]%"$word"}
    [[ -z $2 && $word == [=:]* ]] && before=${words[last]}
    words[last]=$before$2
    compopt +o nospace 2>/dev/null
    COMPREPLY=()
    while IFS= read -r reply; do
        [[ -n $reply ]] || continue
        reply=${reply#"$before"}
        # Within quotes, and where nothing needs them, a word stays as it is.
        if [[ $word != [\'\"]* && $reply == *[[:space:]\'\"\\\$\&\|\;\<\>\(\)\*\?\[\]\`]* ]]; then
            printf -v reply %q "$reply"
        fi
        COMPREPLY[${#COMPREPLY[@]}]=$reply
    done < <(_CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$last VARIABLE=bash \
        PROGRAM -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:/.\<] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
if ((BASH_VERSINFO[0] > 4 || BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4)); then
    complete -o nospace -o bashdefault -o nosort -F _runner PROGRAM
else
    complete -o nospace -o bashdefault -F _runner PROGRAM
fi
"#;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        _bin: &str,
        completer: &str,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        write_script(BASH, variable, completer, to)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        here: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        for candidate in answer(command, words, here)? {
            writeln!(to, "{}", candidate.get_value().to_string_lossy())?;
        }
        Ok(())
    }
}

/// zsh. A line of an answer begins with `+` where a space follows the value, and with `-` where
/// more does.
struct Zsh;

const ZSH: &str = r#"#compdef PROGRAM
_runner() {
    local -a line closed open
    local reply
    line=("${(@Q)words}")
    line[CURRENT]="${IPREFIX}${(Q)PREFIX}"
    for reply in "${(@f)$(_CLAP_COMPLETE_INDEX=$((CURRENT - 1)) VARIABLE=zsh \
        PROGRAM -- "${line[@]}" 2>/dev/null)}"; do
        case $reply in
            (+*) closed+=("${reply#+}") ;;
            (-*) open+=("${reply#-}") ;;
        esac
    done
    (( $#open )) && _describe -V 'values' open -S ''
    (( $#closed )) && _describe -V 'values' closed
    (( $#open + $#closed ))
}
if [[ "$funcstack[1]" = "_runner" ]]; then
    _runner "$@"
else
    compdef _runner PROGRAM
fi
"#;

impl EnvCompleter for Zsh {
    fn name(&self) -> &'static str {
        "zsh"
    }

    fn is(&self, name: &str) -> bool {
        name == "zsh"
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        _bin: &str,
        completer: &str,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        write_script(ZSH, variable, completer, to)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        here: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        for candidate in answer(command, words, here)? {
            let value = candidate.get_value().to_string_lossy();
            let sign = if value.ends_with(OPEN) { '-' } else { '+' };
            // A colon divides the value from what is said of it.
            let value = value.replace('\\', "\\\\").replace(':', "\\:");
            let help = candidate.get_help().map(ToString::to_string);
            match help.as_deref().and_then(|help| help.lines().next()) {
                Some(help) => writeln!(to, "{sign}{value}:{}", help.replace('\\', "\\\\"))?,
                None => writeln!(to, "{sign}{value}")?,
            }
        }
        Ok(())
    }
}

fn write_script(
    script: &str,
    variable: &str,
    completer: &str,
    to: &mut dyn Write,
) -> io::Result<()> {
    let script = script.replace("VARIABLE", variable);
    to.write_all(script.replace("PROGRAM", completer).as_bytes())
}
