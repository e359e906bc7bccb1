//! Text that is common in unrelated programs: common lines and common words.
//!
//! A window of the usual length that consists only of common words is not evidence of a copy, so the leak check does
//! not look for it (see [`super::windows`]). The list has the most common words of English and of test suites in shell,
//! Python, Rust, Go, JavaScript and C. Words of a task, such as `invoice`, are not in the list.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Files that tools generate. They are equal in all projects with the same dependencies.
const LOCK_FILES: [&str; 10] = [
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
    "flake.lock",
    "go.sum",
    "package-lock.json",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

/// Returns true for a file that tools generate.
pub(super) fn is_file(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| LOCK_FILES.contains(&name))
}

/// Returns true for an import, an interpreter line, an attribute, a linter directive or a licence line.
pub(super) fn is_line(line: &str) -> bool {
    let line = line.trim_start();
    let starts = ["#!", "#[", "#include", "import ", "package ", "if __name__ ==", "require("];
    let holds = [
        "Licensed under",
        "LICENSE",
        "top-level directory of this",
        "be copied, modified, or distributed",
        "generated",
        "clippy::",
        "eslint",
        "shellcheck",
        "noqa",
        "pylint",
    ];
    let bare = line.trim_start_matches(['/', '#', '*', '-', ';', ' ']);
    starts.iter().any(|start| line.starts_with(start))
        || holds.iter().any(|part| line.contains(part))
        || (line.starts_with("from ") && line.contains(" import "))
        || (["use ", "pub use "].iter().any(|start| line.starts_with(start)) && line.contains("::"))
        || ["SPDX-", "Copyright", "(c)", "©"].iter().any(|start| bare.starts_with(start))
}

/// Returns true for a common word, in upper or lower case, singular or plural.
pub(super) fn is_word(word: &str) -> bool {
    let word = word.to_lowercase();
    WORDS.contains(word.as_str()) || word.strip_suffix('s').is_some_and(|one| WORDS.contains(one))
}

static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| LISTED.split_whitespace().collect());

const LISTED: &str = "
a about above across after again against all alone along already also although always am among an and another any anyone anything
are around as at away back be because been before being below best better between both but by can cannot come could did do does
doing done down during each either else enough even ever every everything exactly except few first for from full further get gets
give given gives go goes going good got had has have having he hence her here high him his how however if in inside instead into is
it its itself just keep keeps kept know known last later least leave leaves left less let like little long look looks low made make
makes making many may maybe me mean means might more most much must my name need needs neither never new next no none nor not nothing
now of off old on once one only onto or other otherwise our out outside over own part past per please put quite rather really right
said same say says second see seen set several shall she should since small so some something soon still such sure take taken takes
than that the their them then there these they thing third this those though three through thus till time to together too took toward
true try tried two under unless until up upon us use used uses using usually very via want wants was way we well went were what when
where whether which while who whole whose why will with within without would wrong yes yet you your zero

abort abs absolute access act action actual add addr address after alias align alloc all allow allowed alpha ambient amount any
api app append apply arch arg argc args argument argv around arr array arrange as ascii assert asserts asserted assertion assign async
attr attribute auto await backend bad bar base basename bash basic batch baz before begin bench big bin binary bit blank block body
bool boolean border bound bounded box boxed branch break broken buf buffer bug build builder built bundle byte cache call callback
called caller calls capture captured cargo case cases cast cat catch cause cd cell cfg change changed channel char character check
checked checker checks child chmod choice chunk class clean cleanup clear cli click client clippy clone close closed cmd cmp code
codec col collect collection color column com command comma comment commit common compare compile complete component compute concat
cond condition conf config configuration connect const constant construct contain contained containing contains content contents
context control convert copied copy core correct count counter cp cpu crate create created cross css csv ctx cur current custom cut
cwd data database date day debug declare decode deep def default define defined definition delay delete demo depth deref derive desc
describe description dest detail dev devnull dict diff different digest digit dir directory dirname disable disk dispatch display
distinct doc docs document doesn domain don done dot double doubled draw drop dummy dump duplicate dyn echo edge edit effect element
elif elem else elsif embed emit emitted empty enable encode encoding end ended ends ensure entire entry enum env environment eof epsilon
eq equal equality equals err errno error errors esac escape escaped etc eval event exact example exc except exception exe exec execute
exist existing exists exit exited expect expected expecting expects export expose expr expression ext extend extension extra fail failed
failing fails failure false fatal feature fetch fi field file fileexists filename fill filter final find finish fixed fixture flag flat
float flush fmt fn fold folder follow following foo force fork form format formatted forward found frame free fresh frozen fs func
function future gen generate generic github given glob global go grep group guard guest handle handler hash head header heap hello help
helper hex hidden hint home hook host html http https id ident identifier idx ignore ignored illegal image impl implement import in inc
include included indent index info init initial inline inner input insert install instance instead int integer integration interface
internal intersect into invalid invoke io is isdir isfile issue item items iter iterator java javascript job join json junit key keyword
kind label lambda language large latest layer layout lazy len length level lib library license limit line linear lines link linux list
listen literal load loaded local localhost location lock log logger logic logs lookup loop lower lowercase ls macro magic main major
makefile malformed malloc manager manifest map mark mask match matched matches max maximum md member memory merge message meta method
middle min minimum minor misc missing mkdir mktemp mock mod mode model modified modify module month move msg multi multiple mut mutable
mv name named namespace nan native nested net network newline nil no node normal note null num number numbers numeric obj object octet
ok old open operation operator opt option optional options ord order ordered org original os other out outcome outer output outputs
override owner pack package pad page pair panic panicked param parameter parametrize parent parse parsed parser parses part partial
pass passed passes passing path pathlib pattern pending perl perform permission ping pip pipe pipeline place plain platform plugin point
pointer pop popen port pos position posix post prefix prepare present prevent previous print printed printf println prints private pro
problem process prog program project prompt prop property protocol provide proxy pub public pull push put pwd pytest python query queue
quiet quit quote quoted raise raised raises random range rank raw read readable reader readline readlines readme ready real reason receive
recent record recursive ref reference refuse refused regex region register reject rejected relative release remain remove removed rename
repeat replace replaced report repo repository request require required res reserved reset resolve resource response rest result results
retry return returncode returned returns reverse reversed rm rmdir root rotate round route row ruby rule rules run runner running runs
runtime rust rustc safe sample save scan schema scope script search section sed seen select self send separator seq sequence server
service session setup setuptools sh shape share shared shell shift short should show shutil side sign signal silent simple simulate
single size skip skipped sleep slice slow snapshot socket sort sorted source space spawn spec special specific spell split sql src stack
stage stale standard start started starts startswith stat state statement static status std stderr stdin stdlib stdout step stop storage
store str stream strict string strings strip struct structure sub subdir subject subprocess subset success suffix suite sum super support
switch symbol sync syntax sys system tab table tag tail take tap tar target task tee temp template temporary term terminal test tested
tester testing tests text then thread throw throws timeout title tmp todo toggle token toml tool top total touch trace trailing trait
transform trap traverse tree trim true truncate try tuple twice txt type typed types ui uint uname undefined unexpected unicode union
unique unit unittest unix unknown unless unset unsigned until unwrap update upper uppercase url usage user usr utf util utils uuid valid
validate value values var variable variant vec vector verbose verdict verify version view virtual visible visit void wait wall warn
warning wc web while white whitespace width wildcard window word work worked worker working workspace world wrap wrapped wrapper write
writer writes written xargs xml yaml year yield yml
accept append assertequal assertin assertraises assertthat beforeeach deepequal deepequals describe errorf expectation fatalf fprintf
helper jest mocha nonzero panics parametrized realpath should shouldbe sprintf strcmp strlen strconv suite tempdir tempfile tobe toequal
unwraperr usize isize vitest
permission hereby granted charge person obtaining software notice warranty warranties merchantability fitness particular purpose
noninfringement liable liability damages arising dealings distribution
acquire atomic bind bound clones collections compileflags completed connect cursor deserialize deserialized deserializer drain duration
elapsed emplace fetch finalize formatter fuzz hasher hashmap hashset heapless increment inspect instant interval iterable labels listener
listeners mutex nanos nanosecond millis millisecond seconds minutes hours ordering parallel peek persist pin poll polled precision
pretty proptest ptr queue quickcheck rand rc reentrant relaxed release rwlock seqcst serialize serialized serializer sender receiver
shadow signed sized slot slots spin static strategy thiserror tokio trait traits tracing transmute tuples unrelated vtable waker
background browser button callback cascade checkbox constructor decorator dispatch element formdata fulfilled invoke listener observable
payload promise promises props reject rejected render renderer resolved router selector submit typeof
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_and_licences_are_commonplace_and_prose_is_not() {
        for line in [
            "#!/usr/bin/env bash",
            "  from subprocess import run, PIPE",
            "import pytest",
            "use std::process::Command;",
            "#include <stdio.h>",
            "#[allow(unused_qualifications)]",
            "// Code generated by protoc. DO NOT EDIT.",
            "// SPDX-License-Identifier: MIT",
            "# Copyright 2024 the authors",
            "if __name__ == \"__main__\":",
        ] {
            assert!(is_line(line), "{line}");
        }
        for line in
            ["from the valley come apples", "users of the basket pay twice", "use two baskets", "//! the riddle"]
        {
            assert!(!is_line(line), "{line}");
        }
    }

    #[test]
    fn words_of_a_task_are_not_commonplace() {
        for word in ["assert", "Asserts", "STDOUT", "the", "returncode", "usize", "files"] {
            assert!(is_word(word), "{word}");
        }
        for word in ["apples", "invoice", "basket", "fruit", "riddle", "forty", "overdraft"] {
            assert!(!is_word(word), "{word}");
        }
    }
}
