# why: autotools, git and OpenSSL builds run Perl with its modules
# source: https://perldoc.perl.org/perlrun
# needs: perl
perl -MFile::Temp=tempfile -MSocket -MPOSIX -e 'my ($f) = tempfile(); print $f "x"; exit(fork() ? (wait() > 0 ? 0 : 1) : 0)'
perl -pi -e 's/one/uno/' notes.md
grep -qx uno notes.md
