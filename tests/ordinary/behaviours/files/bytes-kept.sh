# why: files with CRLF line ends and old encodings must stay as they are
# source: https://git-scm.com/docs/gitattributes#_end_of_line_conversion
# after: test "$(wc -c < run.bat)" -eq 31 && test "$(wc -c < data/crlf.txt)" -eq 10
test "$(od -An -tx1 data/latin1.txt | tr -d ' \n')" = 636166e90a
printf 'echo end\r\n' >> run.bat
test "$(wc -c < run.bat)" -eq 31
