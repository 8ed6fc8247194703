"""Closing, dropping, forking, threads: nothing crashes, nothing is used after its end."""

import gc
import os
import subprocess
import sys
import threading
import time
import warnings

import pytest

import inlaid
import tiny


def make(tmp_path, configure=tiny.config):
    runtime = inlaid.Runtime(1)
    config = inlaid.Config(configure(tmp_path, lora=True))
    model = inlaid.Model(runtime, config)
    adapter = inlaid.Adapter(model, config)
    data = inlaid.Dataset(model, config)
    trainer = inlaid.Trainer(model, config, adapter, data)
    return {"runtime": runtime, "config": config, "model": model, "adapter": adapter, "data": data, "trainer": trainer,
            "run": trainer.run(), "tokenizer": model.tokenizer, "decoder": model.tokenizer.decoder(),
            "generator": inlaid.Generator(model, adapter)}


def test_any_order_of_closing(tmp_path):
    names = list(make(tmp_path))
    orders = [names, names[::-1], names[3:] + names[:3], names[::2] + names[1::2]]
    for order in orders:
        things = make(tmp_path)
        for name in order:
            things[name].close()
            things[name].close()
            assert things[name].closed


def test_children_keep_their_parents_alive(tmp_path):
    things = make(tmp_path)
    run, generator = things["run"], things["generator"]
    for name, thing in things.items():
        if name not in ("run", "generator"):
            thing.close()
    assert [e for e in run][-1].text == "done"
    assert isinstance(generator.generate([5, 6]), str)
    run.close()
    generator.close()


def test_use_after_close_raises(tmp_path):
    things = make(tmp_path)
    for thing in things.values():
        thing.close()
    calls = [things["runtime"].describe, things["config"].to_json, things["model"].describe, lambda: things["model"].tokenizer,
             things["adapter"].describe, things["data"].report, lambda: len(things["data"]), things["trainer"].step,
             things["run"].next, things["run"].cancel, lambda: things["tokenizer"].encode("x"), things["decoder"].finish,
             lambda: things["generator"].prompt("x"), things["generator"].next, things["model"].__enter__,
             lambda: inlaid.Model(things["runtime"], {"model": {"config": tiny.MODEL}})]
    for call in calls:
        with pytest.raises(inlaid.FailedPrecondition) as e:
            call()
        assert "closed" in str(e.value)


def test_shut_down_runtime(tmp_path):
    things = make(tmp_path, tiny.endless)
    things["runtime"].shutdown()
    with pytest.raises(inlaid.Cancelled):
        things["run"].join()
    with pytest.raises(inlaid.FailedPrecondition):
        things["trainer"].run()
    for thing in things.values():
        thing.close()


def test_dropped_objects_warn_and_are_freed(tmp_path):
    config = inlaid.Config(tiny.config(tmp_path))
    runtime = inlaid.Runtime(1)
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = inlaid.Model(runtime, config)
        assert runtime.describe()["memory"]["weights"]["current"] > 0
        del model
        gc.collect()
        assert ["Model" in str(w.message) and w.category is ResourceWarning for w in caught] == [True]
        caught.clear()  # a warning holds its source
        gc.collect()
        assert runtime.describe()["memory"]["weights"]["current"] == 0
        with inlaid.Model(runtime, config):
            pass
        gc.collect()
        assert caught == []
    runtime.close()


def test_no_memory_is_lost_in_a_loop(parts):
    """Bytes in use by the process after 500 calls of every kind of result: strings, JSON, handles, errors."""
    model, config, _ = parts
    tokenizer = model.tokenizer

    def calls(count):
        for _ in range(count):
            tokenizer.encode("the old house " * 40)
            config.to_json()
            model.tensor("model.norm.weight").__dlpack__()
            tokenizer.decoder().push(5)
            with pytest.raises(inlaid.Error):
                inlaid.Config("{")

    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    calls(100)
    before = resident()
    calls(500)
    assert resident() - before < 1 << 20


def test_the_interpreter_ends_with_a_run_going(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import inlaid, tiny
runtime = inlaid.Runtime(2)
config = inlaid.Config(tiny.endless({str(tmp_path)!r}))
model = inlaid.Model(runtime, config)
trainer = inlaid.Trainer(model, config, dataset=inlaid.Dataset(model, config))
run = trainer.run()
print(next(e for e in run if e.kind == "step").step >= 1)
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"True\n")


def test_forked_child_gets_a_clear_error_and_can_start_anew(tmp_path):
    things = make(tmp_path)
    config = tiny.config(tmp_path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        report = "nothing"
        try:
            report = []
            for name, thing in things.items():
                try:
                    thing._c
                    report.append(f"{name} is usable")
                except inlaid.FailedPrecondition as e:
                    if "fork" not in str(e):
                        report.append(f"{name}: {e}")
            things.clear()
            gc.collect()
            with inlaid.Runtime(1) as runtime, inlaid.Model(runtime, config) as model, \
                    inlaid.Trainer(model, config, dataset=inlaid.Dataset(model, config)) as trainer:
                report.append(f"trained {trainer.step().step}")
        except BaseException as e:  # the child must not return into pytest
            report = repr(e)
        finally:
            os.write(writing, repr(report).encode())
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        report = pipe.read().decode()
    os.waitpid(child, 0)
    assert report == "['trained 1']"
    things["run"].join(60)  # the parent's objects are untouched
    for thing in things.values():
        thing.close()


def test_other_threads_run_during_a_call_and_may_close(tmp_path):
    """Calls release the interpreter lock: while this thread is inside one, another thread runs, finds the trainer in use,
    closes the very object that is being used, and cancels the call."""
    runtime = inlaid.Runtime(1)
    config = inlaid.Config(tiny.config(tmp_path, hidden_size=64))
    model = inlaid.Model(runtime, config)
    trainer = inlaid.Trainer(model, config)
    batch = inlaid.Batch([5] * 128, [6] * 128)
    token = inlaid.CancelToken()
    found_busy = []
    deadline = time.monotonic() + 30  # reached only if calls keep the lock

    def other():
        while not found_busy and time.monotonic() < deadline:
            try:
                trainer.accumulate(batch, token)
            except inlaid.FailedPrecondition as e:
                found_busy.append(str(e))
        trainer.close()
        token.cancel()

    thread = threading.Thread(target=other)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # from here on, another thread runs only when this one gives the lock away
    end = None
    try:
        thread.start()
        while end is None and time.monotonic() < deadline:
            try:
                trainer.accumulate(batch, token)
            except inlaid.Cancelled as e:
                end = e
            except inlaid.FailedPrecondition as e:
                if "in use" not in str(e):
                    end = e
    finally:
        sys.setswitchinterval(interval)
    ran_meanwhile = list(found_busy)
    found_busy.append("the end")
    thread.join()
    assert ran_meanwhile and "in use by another thread" in ran_meanwhile[0]
    assert isinstance(end, inlaid.Cancelled) or "closed" in str(end)
    model.close()
    runtime.close()
