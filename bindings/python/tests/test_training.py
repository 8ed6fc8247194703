"""Training through the facade: what is computed, resumed, evaluated, written and read."""

import array
import math
import os

import pytest

import inlaid
import tiny


def weights(model):
    return {t["name"]: bytes(model.tensor(t["name"]).memoryview()) for t in model.describe()["tensors"]}


def test_steps_lower_the_loss(parts):
    model, config, data = parts
    before = weights(model)
    with inlaid.Trainer(model, config, dataset=data) as trainer:
        held_out = inlaid.Dataset(model, config, "eval")
        first = trainer.evaluate(held_out)
        events = list(trainer.steps())
        assert [e.step for e in events] == [1, 2, 3, 4, 5, 6]
        assert {e.kind for e in events} == {"step"}
        assert events[-1]["loss"] < events[0]["loss"] and math.isfinite(events[0]["loss"])
        last = trainer.evaluate(held_out)
        assert first.kind == last.kind == "eval" and last["eval_loss"] < first["eval_loss"]
        assert inlaid.evaluate(model, held_out)["eval_loss"] == last["eval_loss"]
        assert events[0].to_dict()["step"] == 1 and events[0].get("nothing") is None
        with pytest.raises(inlaid.OutOfRange):
            trainer.step()
    assert weights(model) != before


def test_dataset(parts):
    model, config, data = parts
    assert len(data) == 40 and data.report()["used"] == 40
    sample = data[0]
    assert len(sample["ids"]) == len(sample["targets"]) and data[-1] == data[39]
    assert sum(1 for _ in data) == 40


def test_accumulate_and_apply_equal_a_step_in_every_form_of_batch(runtime, tmp_path):
    config = inlaid.Config(tiny.config(tmp_path))
    tokens, targets = [5, 6, 7, 8, 9, 10], [6, 7, -100, 9, 10, 11]
    results = []
    for form in (list, lambda v: array.array("i", v), lambda v: array.array("q", v), tuple):
        model = inlaid.Model(runtime, config)
        trainer = inlaid.Trainer(model, config)
        batch = inlaid.Batch(form(tokens), form(targets), cu_seqlens=form([0, 2, 6]))
        assert trainer.accumulate(batch)["target_tokens"] == 5
        trainer.apply()
        results.append(weights(model))
        trainer.close()
        model.close()
    assert all(r == results[0] for r in results)
    with pytest.raises(inlaid.AlreadyExists):
        batch.add("tokens", [1])
    with pytest.raises(inlaid.InvalidArgument):
        inlaid.Batch().add("tokns", [1])
    with pytest.raises(inlaid.InvalidArgument):
        inlaid.Batch(tokens=memoryview(array.array("i", [1, 2, 3, 4])).cast("B").cast("i", [2, 2]))


def test_tensor_out(parts):
    model = parts[0]
    tensor = model.tensor("model.embed_tokens.weight")
    assert tensor.shape == (600, 32) and tensor.__dlpack_device__() == (1, 0)
    rows = tensor.tolist()
    assert len(rows) == 600 and len(rows[0]) == 32 and any(rows[0])
    assert "dltensor_versioned" in repr(tensor.__dlpack__(max_version=(1, 1)))
    assert '"dltensor"' in repr(tensor.__dlpack__()) and '"dltensor"' in repr(tensor.__dlpack__(max_version=(0, 8)))
    for wrong in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            tensor.__dlpack__(**wrong)


def test_lora_trains_only_the_adapter_and_survives_its_folder(runtime, tmp_path):
    config = inlaid.Config(tiny.config(tmp_path, lora=True))
    with inlaid.Model(runtime, config) as model, inlaid.Adapter(model, config) as adapter:
        before = weights(model)
        held_out = inlaid.Dataset(model, config, "eval")
        base = inlaid.evaluate(model, held_out)["eval_loss"]
        with inlaid.Trainer(model, config, adapter, inlaid.Dataset(model, config)) as trainer:
            assert len(list(trainer.steps())) == 6
        assert weights(model) == before
        trained = inlaid.evaluate(model, held_out, adapter)["eval_loss"]
        assert trained < base and inlaid.evaluate(model, held_out)["eval_loss"] == base
        adapter.save(tmp_path / "peft")
        assert adapter.describe()
        assert inlaid.evaluate(model, held_out, inlaid.Adapter.load(model, tmp_path / "peft"))["eval_loss"] == trained
        model.export(tmp_path / "merged", adapter, dtype="f32")
        assert inlaid.Model.certificate(runtime, tmp_path / "merged")["logits"]["max_abs_difference"] < 1e-5
        with inlaid.Model.load(runtime, tmp_path / "merged", {"tokenizer": tiny.TOKENIZER}) as merged:
            assert inlaid.evaluate(merged, held_out)["eval_loss"] == pytest.approx(trained, abs=1e-5)


@pytest.mark.parametrize("lora", [False, True])
def test_resume_is_bit_equal(tmp_path, lora):
    config = inlaid.Config(tiny.config(tmp_path, lora=lora))

    def start(runtime):
        model = inlaid.Model(runtime, config)
        adapter = inlaid.Adapter(model, config) if lora else None
        return model, adapter, inlaid.Trainer(model, config, adapter, inlaid.Dataset(model, config))

    def state(model, adapter, name):
        if not lora:
            return weights(model)
        adapter.save(tmp_path / name)
        return (tmp_path / name / "adapter_model.safetensors").read_bytes()

    folder = tmp_path / "checkpoint"
    with inlaid.Runtime(1) as runtime:
        model, adapter, trainer = start(runtime)
        for _ in range(3):
            trainer.step()
        trainer.save(folder)
        losses = [e["loss"] for e in trainer.steps()]
        expected = state(model, adapter, "a")
        with pytest.raises(FileExistsError):
            trainer.save(folder)
        manifest = inlaid.checkpoint_manifest(runtime, folder)
        assert manifest and inlaid.checkpoint_manifest_bytes(runtime, folder)
        for handle in (trainer, model):
            handle.close()
    with inlaid.Runtime(2) as runtime:
        model, adapter, trainer = start(runtime)
        trainer.step()
        trainer.restore(folder)
        assert [e["loss"] for e in trainer.steps()] == losses
        assert state(model, adapter, "b") == expected
        for handle in (trainer, model):
            handle.close()


def test_verify_finds_damage(parts, runtime, tmp_path):
    model, config, data = parts
    folder = tmp_path / "checkpoint"
    with inlaid.Trainer(model, config, dataset=data) as trainer:
        trainer.step()
        trainer.save(folder)
        good = inlaid.checkpoint_verify(runtime, folder)
        shard = max((f for f in folder.rglob("*") if f.is_file()), key=lambda f: f.stat().st_size)
        damaged = bytearray(shard.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        shard.write_bytes(damaged)
        bad = inlaid.checkpoint_verify(runtime, folder)
        assert good["ok"] is True and bad["ok"] is False and shard.name in str(bad)
        with pytest.raises(inlaid.DataLoss):
            trainer.restore(folder)


def test_cancelled_step_changes_nothing(parts):
    model, config, data = parts
    with inlaid.Trainer(model, config, dataset=data) as trainer, inlaid.CancelToken() as token:
        before = weights(model)
        token.cancel()
        with pytest.raises(inlaid.Cancelled):
            trainer.step(token)
        with pytest.raises(inlaid.Cancelled):
            trainer.evaluate(inlaid.Dataset(model, config, "eval"), token)
        assert weights(model) == before
        assert trainer.step().step == 1


def test_configuration(runtime, tmp_path):
    config = inlaid.Config(tiny.config(tmp_path))
    config.set("optim.learning_rate", 0.5)
    assert config.to_dict()["optim"]["learning_rate"] == 0.5
    assert inlaid.Config(config.to_json()).to_json() == config.to_json()
    with pytest.raises(inlaid.InvalidArgument):
        config.set("optim.learning_rate", "fast")
    assert config.to_dict()["optim"]["learning_rate"] == 0.5
    assert "optim" in inlaid.schema()["properties"]
    relative = inlaid.Config({"model": {"path": "m"}}, folder=tmp_path).to_dict()
    assert relative["model"]["path"] == os.path.join(str(tmp_path), "m")
    inlaid.Config({"model": {"path": tmp_path}})  # a path object inside
    plan = inlaid.plan(runtime, tiny.config(tmp_path))
    assert plan["memory"] and not plan.get("refused")


def test_generate(parts):
    model = parts[0]
    with inlaid.Generator(model, max_new_tokens=8) as generator:
        assert generator.next() is None
        generator.prompt("the old house")
        tokens = list(generator)
        assert 1 <= len(tokens) <= 8 and generator.next() is None
        text = "".join(t.text for t in tokens)
        assert text == generator.generate(model.tokenizer.encode("the old house", add_special=True))
        assert text == "".join(generator.stream("the old house"))
        with pytest.raises(inlaid.InvalidArgument):
            generator.prompt([10_000_000])
        token = inlaid.CancelToken()
        token.cancel()
        with pytest.raises(inlaid.Cancelled):
            generator.generate("a", cancel=token)
    draws = {inlaid.Generator(model, temperature=1.0, seed=s, max_new_tokens=8).generate("a") for s in (1, 1, 2, 3)}
    assert len(draws) == 3
