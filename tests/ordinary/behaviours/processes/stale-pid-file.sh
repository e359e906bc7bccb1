# why: servers (Rails, PostgreSQL, puma) refuse to start while the process of an old pid file lives
# source: https://guides.rubyonrails.org/command_line.html
mkdir -p build
sleep 99 & echo $! > build/server.pid
# stage
sleep 5 & sleep 5 &
! kill -0 "$(cat build/server.pid)"
