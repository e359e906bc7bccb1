# Writes a report in JUnit XML, as a test runner does.
failed=0
check() {
  found=$(sh src/slug.sh "$1")
  if [ "$found" = "$2" ]; then
    echo "  <testcase classname=\"slug\" name=\"$2\"/>"
  else
    echo "  <testcase classname=\"slug\" name=\"$2\"><failure>got $found</failure></testcase>"
    failed=1
  fi
}
{
  echo '<testsuite name="slug">'
  check 'Hello World' hello-world
  check 'ABC' abc
  echo '</testsuite>'
} > out/junit.xml
exit $failed
