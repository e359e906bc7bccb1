# why: build tools leave a daemon behind, and the step must end all the same
# source: https://docs.gradle.org/current/userguide/gradle_daemon.html
# needs: setsid
# after: grep -qx kept other.txt
setsid sh -c 'trap "" TERM HUP; exec sleep 600' &
sleep 300 &
echo kept > other.txt
