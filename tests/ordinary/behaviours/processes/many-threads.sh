# why: JVMs, tokio and test runners start a hundred threads
# source: https://man7.org/linux/man-pages/man7/pthreads.7.html
# needs: python3
python3 -c 'import threading, time
ts = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(150)]
[t.start() for t in ts]; [t.join() for t in ts]'
