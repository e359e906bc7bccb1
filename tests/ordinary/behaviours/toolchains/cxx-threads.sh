# why: C++ programs use threads and exceptions
# source: https://en.cppreference.com/w/cpp/thread/thread
# needs: c++
printf '%s\n' '#include <thread>' '#include <stdexcept>' 'int main() { int n = 0; std::thread t([&] { n = 42; }); t.join();' \
  'try { throw std::runtime_error("x"); } catch (const std::exception &) { return n != 42; } return 1; }' > "$TMPDIR/a.cc"
c++ -std=c++17 -pthread "$TMPDIR/a.cc" -o "$TMPDIR/a"
"$TMPDIR/a"
