# why: runtimes use timers of the kernel and alarms
# source: https://man7.org/linux/man-pages/man2/timerfd_create.2.html
# needs: python3
python3 -c 'import ctypes, signal
c = ctypes.CDLL(None); assert c.timerfd_create(1, 0) >= 0
signal.signal(signal.SIGALRM, lambda *a: None); signal.setitimer(signal.ITIMER_REAL, 0.1); signal.pause()'
