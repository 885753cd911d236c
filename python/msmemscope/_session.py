"""The package's state in this process: one agent, one configuration, recording or not.

* Hooks live from import to shutdown(); start() and stop() only begin and end recording.
* Nothing here raises but for wrong use (config); what goes wrong is one line on stderr.
* The end: recording stops, the blocks under suspicion and their holders are found, and one process
  of the run makes the report. The agent is told before the interpreter goes away.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable

from . import _config, _locate, _run
from ._agent import RECORD_CONFIG, STEP_API, STEP_OPTIMIZER, Agent, AgentError, load
from ._say import say_once
from ._torch_glue import TorchGlue

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from ._report import Dump, Report

# Growth is judged from so many steps (or, without steps, so many seconds) on.
MIN_STEPS = 8
MIN_SECONDS = 30.0
CHILD_SLAB_BYTES = 8 << 20


class Session:
    def __init__(self, agent: Agent | None = None) -> None:
        self.agent = load() if agent is None else agent
        self.settings = _config.Settings()
        self.recording = False
        self._arrived = False
        self._begun = False
        self._mode = "api"
        self._traced_parent = False
        self._patterns: list[str] = []
        self._suppressions = ""
        self._settings_recorded = False
        self._glue = TorchGlue(self.agent, self._is_recording, self._on_optimizer_step)
        self._api_steps = 0
        self._optimizer_steps = 0
        self._directory = ""  # of this process's trace
        self._diagnosed_steps = -1  # steps seen when the last diagnosis was made; -1: none yet
        self._recorded_since = 0.0
        self._recorded_seconds = 0.0
        self._reports: list[Report] = []
        self._dump: Dump | None = None
        self._stacks_checked = False
        self._exited = False
        self._off = ""  # why start() does nothing: a setting that cannot be had

    # -- set-up ------------------------------------------------------------------------------------

    def arrive(self, at_exit: object = None) -> None:
        """At import: hooks in, exit and fork handled; records where the environment asks for it.
        `at_exit` is a list that is run through at exit by who came before the program's first line
        (command mode); without it we are in the order in which the program imported us."""
        if not self.agent.available or self._arrived:
            return
        self._arrived = True  # importlib.reload(msmemscope) comes here again
        self._try(self.agent.install)
        if isinstance(at_exit, list):
            at_exit.append(self._at_exit)
        else:
            atexit.register(self._at_exit)
        os.register_at_fork(
            before=self.agent.fork_before,
            after_in_parent=self.agent.fork_after_parent,
            after_in_child=self._after_fork_in_child,
        )
        self._try(self._glue.attach)
        self._try(self._begin_as_inherited)

    def _begin_as_inherited(self) -> None:
        inherited = _config.inherited()
        if inherited is not None:
            self.begin(inherited)

    def begin(self, inherited: _config.Inherited) -> None:
        """Starts as the launcher or a traced parent has configured. Once only."""
        if self._begun:
            return
        self._begun = True
        self._mode = inherited.mode
        self._traced_parent = inherited.mode == "api" and inherited.pid != os.getpid()
        self.settings.adopt(inherited.settings)
        self._suppressions = inherited.settings.get("suppressions", "")
        if inherited.settings.get("collect_mode") == "deferred":
            self._try(self.agent.stop)  # a preloaded agent has begun by itself
        else:
            self.start()

    # -- the public functions ----------------------------------------------------------------------

    # Nothing of ours reaches the program but a ValueError for a wrong option: what cannot be done
    # is one line.

    def config(self, options: dict[str, object]) -> None:
        try:
            self.settings.update(options)
            self._off = ""
        except OSError as error:  # a relative path, where the directory we are in is gone
            self._off = f"config(): a relative path cannot be had: {error}"
            say_once(f"nothing is recorded: {self._off}")

    def start(self) -> None:
        if not self.agent.available or self._off:
            say_once(f"nothing is recorded: {self._off or self.agent.reason}")
            return
        if self.recording:
            return
        try:
            self._configure_agent()
            self.agent.install()
            if not self._stacks_checked:
                self._stacks_checked = True
                self.agent.python_stacks_on()  # says itself why they stay off
            for prepare in (self._glue.attach, self._glue.self_check, self._glue.seed):
                self._try(prepare)  # torch may refuse, the program may have changed it
            self.agent.start()
        except Exception as error:  # the directory we are in is gone, no descriptors are left
            say_once(f"nothing is recorded: {error}")
            return
        self.recording = True
        self._recorded_since = time.monotonic()
        self._settings_recorded = False
        self._arm_multiprocessing()
        if self._mode == "api":
            self._try(lambda: _config.leave(self.settings, "api"))

    def stop(self) -> None:
        self._try(self._stop)

    def _stop(self) -> None:
        if not self._end_recording(self.agent.stop):
            return
        if self._mode == "api":
            os.environ.pop(_config.ENVIRONMENT, None)
        if self._find_causes():
            self._start_report()
        self._try(self._start_dump)

    def step(self) -> None:
        if self.recording:
            self._api_steps += 1
            self.agent.step(STEP_API, self._api_steps)
            self._try(self._after_step)

    def shutdown(self) -> None:
        self.stop()
        self._try(self._glue.detach)
        self._try(self.agent.shutdown)

    def expect_growth(self, pattern: str) -> None:
        if not isinstance(pattern, str):
            raise TypeError("expect_growth() takes a pattern, a string")
        if not pattern.strip():
            raise ValueError(
                "expect_growth(): the pattern is empty; it is a glob on FILE:FUNCTION of the "
                "allocating line, or on the owner"
            )
        if pattern not in self._patterns:
            self._patterns.append(pattern)
            self._settings_recorded = False

    # -- inside ------------------------------------------------------------------------------------

    def _is_recording(self) -> bool:
        return self.recording

    def _on_optimizer_step(self, serial: int, count: int, name: str) -> None:
        self._optimizer_steps = max(self._optimizer_steps, count)
        self.agent.step(STEP_OPTIMIZER, count, serial, name)
        self._after_step()

    def _after_step(self) -> None:
        if not self._settings_recorded:
            self._record_settings()
            self._glue.self_check()

    def _configure_agent(self) -> None:
        configure = self.agent.configure
        configure("output_path", os.path.abspath(self.settings["output_path"]))
        configure("run_id", _run.run_id())
        configure("device", self.settings["device"])
        configure("call_stack", self.settings["call_stack"])
        configure("max_trace_size", self.settings["max_trace_size"] or "0")
        if command := _locate.command():  # what folds a trace that grows too large
            configure("command", command)
        configure("host_sample", self.settings["host_sample"] or "0")
        if self._traced_parent:
            configure("slab_bytes", str(CHILD_SLAB_BYTES))

    def _record_settings(self) -> None:
        """Writes the settings in force into the trace: after the first step, else at the end, for
        a process without any event shall make no trace."""
        if self._settings_recorded:
            return
        self._settings_recorded = True
        if not self.agent.status().get("directory"):
            return  # no trace: there is none to be had, and the agent has said why
        settings = [(key, value) for key, value in self.settings.values.items() if value]
        settings += [("expect_growth", pattern) for pattern in self._patterns]
        try:
            for setting in settings:
                self.agent.record(RECORD_CONFIG, (), setting)
        except AgentError as error:
            say_once(f"the settings are not in the trace: {error}")

    def _try(self, action: Callable[[], object]) -> bool:
        """Calls it; says what went wrong and goes on."""
        try:
            action()
        except Exception as error:
            say_once(" ".join(str(error).split()))
            return False
        return True

    def _end_recording(self, end: Callable[[], None]) -> bool:
        if not self.recording:
            return False
        self.recording = False
        self._recorded_seconds += time.monotonic() - self._recorded_since
        return self._try(end)

    def _steps(self) -> int:
        return max(self._api_steps, self._optimizer_steps)

    def _worth_diagnosing(self) -> bool:
        """The first time, always; again only if enough is new."""
        if self._diagnosed_steps < 0:
            return True
        if self._steps():
            return self._steps() - self._diagnosed_steps >= MIN_STEPS
        return self._recorded_seconds >= MIN_SECONDS

    def _reports_here(self) -> bool:
        """One report a run: the launcher's, else that of rank 0 or of the process without a rank,
        unless a traced parent makes it."""
        return (
            self._mode != "command"
            and not self._traced_parent
            and _run.rank() in (None, 0)
            and self.settings["analysis"] != "none"
        )

    def _find_causes(self) -> bool:
        """Names the holders of what is under suspicion. True where a report is due."""
        if not self._worth_diagnosing():
            return False
        self._directory = str(self.agent.status().get("directory") or "")
        if not self._directory:
            return False  # no event, no trace
        self._record_settings()
        enough = self._steps() >= MIN_STEPS or (
            not self._steps() and self._recorded_seconds >= MIN_SECONDS
        )
        self._diagnosed_steps = self._steps()
        self._recorded_seconds = 0.0
        if enough:
            self._try(lambda: self._find_holders(self._directory))
        return self._reports_here()

    def _start_report(self) -> None:
        run = os.path.dirname(self._directory)
        options: list[str] = []
        if "analysis" in self.settings.given:  # asks for the reference's own lines, too
            options += ["--analysis", self.settings["analysis"]]
        if self._suppressions:
            options += ["--suppressions", self._suppressions]
        try:
            from ._report import Report

            self._reports.append(Report(run, self.settings["report_to"], options))
        except Exception as error:  # no descriptors, no memory
            say_once(f"no report: {error}; `msmemscope analyze {run}` makes it")

    def _start_dump(self) -> None:
        """The csv or db that was asked for. The launcher makes its program's; a child's is made by
        the parent, whose run it is in; of a job's ranks each makes its own."""
        if not self.settings["format"] or self._mode == "command" or self._traced_parent:
            return
        directory = str(self.agent.status().get("directory") or "")
        if not directory:
            return  # no event, no trace
        from ._report import DUMP_SECONDS, Dump

        run, name = os.path.split(directory)
        inputs = [run]
        if _run.rank() is not None:
            ours = name.rpartition("-")[0] + "-"  # <host>-<rank>-
            inputs = sorted(os.path.join(run, d) for d in os.listdir(run) if d.startswith(ours))
        options = ["--format", self.settings["format"]]
        # As the original: stack columns only where they were asked for.
        options += ["--call-stack", self.settings["call_stack"] or "none"]
        if self._dump is not None:
            self._dump.wait()  # of an earlier stop(); both write the same files
        self._dump = Dump(inputs, os.path.dirname(run), options)
        self._dump.wait(DUMP_SECONDS)

    def _find_holders(self, directory: str) -> None:
        if "torch" not in sys.modules:
            return
        from ._holders import find_holders
        from ._report import suspects

        groups = suspects(directory)
        if groups:
            find_holders(groups, self.agent)

    # -- end and fork ------------------------------------------------------------------------------

    def _at_exit(self) -> None:
        if self._exited:
            return
        self._exited = True
        dump_due = self.recording  # else stop() has made it
        try:
            if self._end(find_causes=True):
                self._start_report()
            if dump_due:
                self._try(self._start_dump)
            for report in self._reports:
                report.wait()
            if self._dump is not None:
                self._dump.wait()
        except KeyboardInterrupt:  # the user does not want to wait
            pass
        except Exception as error:
            say_once(f"no diagnosis: {' '.join(str(error).split())}")

    def _end(self, find_causes: bool) -> bool:
        """Ends the trace, whatever happens meanwhile. True where a report is due."""
        report_due = False
        try:
            ended = self._end_recording(self.agent.stop_at_exit)
            report_due = ended and find_causes and self._find_causes()
        finally:
            # Daemon threads may still be inside torch when the interpreter goes away.
            self.agent.python_finalizing()
            self._try(self.agent.exiting)
        return report_due

    def _after_fork_in_child(self) -> None:
        self.agent.fork_after_child()
        self._traced_parent = True
        self._reports = []  # they are the parent's children
        self._dump = None
        self._arm_multiprocessing()

    def _child_ends(self) -> None:
        """The end of a child that runs no atexit."""
        if not self._exited:
            self._exited = True
            self._end(find_causes=False)

    def _arm_multiprocessing(self) -> None:
        """multiprocessing's children end with os._exit: no atexit. Its own finalizers do run."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            self._try(lambda: util.register_after_fork(self, _arm_finalizer))


def _arm_finalizer(session: Session) -> None:
    """Called by multiprocessing in a child, once it has dropped its parent's finalizers."""
    util = sys.modules["multiprocessing.util"]
    util.Finalize(None, session._child_ends, exitpriority=-1_000_000)


session = Session(Agent() if _locate.is_command() else None)
