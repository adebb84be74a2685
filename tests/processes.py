"""Children of the process that runs the tests: forked, killed, waited for."""

import os
import signal
import time
import traceback


def forked(work):
    """Do some work in a child; its process number. The child exits with 1, and says why, if the work raises."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()  # pytest shows it where a test fails
        finally:
            os._exit(code)
    return pid


def killed(pid, pause=0.0):
    """Kill a child after a pause in seconds."""
    time.sleep(pause)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def exit_code(pid):
    """How a child ended, waited for."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
