"""Background runs and jobs: events, requests, ends; Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import pytest

import inlaid
import tiny


def test_events_of_a_run(parts, tmp_path):
    model, config, data = parts
    with inlaid.Trainer(model, config, dataset=data) as trainer:
        held_out = inlaid.Dataset(model, config, "eval")
        with trainer.run(held_out, eval_steps=3, save_steps=3, checkpoint_dir=tmp_path / "saved") as run:
            events = list(run)
            assert list(run) == []
            run.join()
            with pytest.raises(inlaid.OutOfRange):
                run.next()
        assert [e.step for e in events if e.kind == "step"] == [1, 2, 3, 4, 5, 6]
        assert [e.step for e in events if e.kind == "eval"][-2:] == [3, 6]
        folders = [e.text for e in events if e.kind == "checkpoint"]
        assert len(folders) == 2 and all(os.path.isdir(f) for f in folders)
        assert events[-1].kind == "done" and events[-1].text == "done"
        seqs = [e.seq for e in events]
        assert seqs == sorted(set(seqs))
        trainer.restore(folders[0])
        assert trainer.step().step == 4


def test_next_and_join_time_out(runtime, tmp_path):
    config = inlaid.Config(tiny.endless(tmp_path))
    with inlaid.Model(runtime, config) as model, \
            inlaid.Trainer(model, config, dataset=inlaid.Dataset(model, config)) as trainer, trainer.run() as run:
        run.pause()
        while (event := run.next(10)).text != "paused":
            assert event is not None
        assert run.next(0) is None and run.next(0.05) is None
        with pytest.raises(TimeoutError):
            run.join(0.05)
        with pytest.raises(inlaid.FailedPrecondition):
            trainer.step()
        run.resume()
        assert next(e for e in run if e.kind == "step").step >= 1
        with pytest.raises(inlaid.InvalidArgument):
            run.request("fly")
        run.cancel()
        with pytest.raises(inlaid.Cancelled):
            for event in run:
                pass
        assert event.kind == "done"
        with pytest.raises(inlaid.Cancelled):
            run.join()


def test_an_error_ends_the_loop(runtime, tmp_path):
    """A checkpoint folder that cannot be made: the loop raises what ended the run."""
    (tmp_path / "file").write_text("in the way")
    config = inlaid.Config(tiny.config(tmp_path))
    with inlaid.Model(runtime, config) as model, \
            inlaid.Trainer(model, config, dataset=inlaid.Dataset(model, config)) as trainer:
        with pytest.raises(inlaid.Error) as e:
            with trainer.run(save_steps=1, checkpoint_dir=tmp_path / "file" / "sub") as run:
                list(run)
        assert not isinstance(e.value, inlaid.Cancelled) and "file" in str(e.value)


def test_job_and_its_continuation(runtime, tmp_path):
    out = tmp_path / "out"
    config = tiny.config(tmp_path, lora=True, output_dir=str(out), checkpoint={"save_steps": 2})
    with inlaid.Job(runtime, config) as job, job.start() as run:
        for event in run:
            if event.kind == "step" and event.step == 2:
                run.stop()
        assert event.text == "stopped"
    with pytest.raises(FileExistsError):
        inlaid.Job(runtime, config)
    with inlaid.Job.resume(runtime, out) as job:
        assert 2 <= job.describe()["steps_done"] < 6
        with job.start() as run:
            assert [e for e in run][-1].text == "done"
        model, adapter = job.model()
        held_out = inlaid.Dataset(model, config, "eval")
        loss = inlaid.evaluate(model, held_out, adapter)["eval_loss"]
        with job.trainer as trainer:
            assert trainer.evaluate(held_out)["eval_loss"] == loss
        model.close()
    model, adapter = inlaid.open_result(runtime, out)
    with model:
        assert inlaid.evaluate(model, held_out, adapter)["eval_loss"] == loss


# A shell that starts a test in the background makes it ignore SIGINT; the first line undoes that.
INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {tests!r})
import inlaid, tiny
with inlaid.Runtime(1) as runtime:
    config = inlaid.Config(tiny.endless({folder!r}))
    model = inlaid.Model(runtime, config)
    trainer = inlaid.Trainer(model, config, dataset=inlaid.Dataset(model, config))
    with trainer.run() as run:
        try:
            {wait}
        except KeyboardInterrupt:
            run.stop()
            run.join()
            print("interrupted", flush=True)
    trainer.close()
    model.close()
"""


@pytest.mark.parametrize("wait", [
    "for e in run: e.step == 1 and print('going', flush=True)",
    "print('going', flush=True); run.join()",
    "run.pause(); print('going', flush=True); list(run)",
])
def test_ctrl_c_interrupts_every_wait(tmp_path, wait):
    program = INTERRUPTED.format(tests=os.path.dirname(__file__), folder=str(tmp_path), wait=wait)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout.readline() == "going\n"
    time.sleep(0.1)  # into the wait; the test is as good when the signal comes earlier
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "interrupted\n")
