import pickle

import pytest

import inlaid
import tiny
from inlaid import _errors


def test_classes_are_also_builtins():
    for cls, builtin in [(inlaid.InvalidArgument, ValueError), (inlaid.DeadlineExceeded, TimeoutError),
                         (inlaid.NotFound, FileNotFoundError), (inlaid.AlreadyExists, FileExistsError),
                         (inlaid.PermissionDenied, PermissionError), (inlaid.ResourceExhausted, MemoryError),
                         (inlaid.FailedPrecondition, RuntimeError), (inlaid.OutOfRange, IndexError),
                         (inlaid.Unimplemented, NotImplementedError), (inlaid.Internal, RuntimeError)]:
        assert issubclass(cls, builtin) and issubclass(cls, inlaid.Error)


def test_codes_are_those_of_the_header():
    from inlaid import _inlaid
    for number in range(1, 17):
        name = _errors.from_c(number, "m", "{}").code
        assert getattr(_inlaid, f"INLAID_{name}") == number
    unknown = _errors.from_c(4711, "from the future", '{"a": 1}')
    assert type(unknown) is inlaid.Error and unknown.code == "UNKNOWN" and unknown.details == {"a": 1}


def test_message_details_and_pickle():
    with pytest.raises(ValueError) as e:
        inlaid.Config({"optim": {"learning_rat": 1}})
    error = e.value
    assert isinstance(error, inlaid.InvalidArgument) and error.code == "INVALID_ARGUMENT"
    assert "optim.learning_rate" in str(error) and error.details["key"] == "optim.learning_rat"
    for cls in (type(error), inlaid.NotFound):
        copy = pickle.loads(pickle.dumps(cls(str(error), error.details)))
        assert type(copy) is cls and str(copy) == str(error) and copy.details == error.details


def test_what_is_missing_exists_or_is_too_big(runtime, tmp_path):
    with pytest.raises(FileNotFoundError) as e:
        inlaid.Model.load(runtime, tmp_path / "nowhere")
    assert "nowhere" in str(e.value)
    with pytest.raises(inlaid.NotFound):
        inlaid.Tokenizer(runtime, tmp_path / "no.json")
    config = inlaid.Config(tiny.config(tmp_path))
    with inlaid.Model(runtime, config) as model:
        with pytest.raises(FileExistsError):
            model.export(tmp_path)
        with pytest.raises(inlaid.NotFound):
            model.tensor("no.such.weight")
        with pytest.raises(IndexError):
            inlaid.Dataset(model, config)[10_000]
        with pytest.raises(inlaid.InvalidArgument):
            inlaid.Dataset(model, config, "test")
    with inlaid.Runtime(1, memory_limit=1000) as small:
        with pytest.raises(MemoryError) as e:
            inlaid.Model(small, config)
        assert isinstance(e.value, inlaid.ResourceExhausted)


def test_damaged_file(runtime, tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(inlaid.Error):
        inlaid.Model.load(runtime, path)


@pytest.mark.parametrize("options", ["{", {"temperature": "warm"}, {"temprature": 1}, {"stop": [object()]},
                                     {"top_p": float("nan")}])
def test_bad_options(parts, options):
    with pytest.raises(ValueError):
        inlaid.Generator(parts[0], options=options)
    with pytest.raises(ValueError):
        inlaid.Generator(parts[0], options=options, max_new_tokens=3)


def test_strings_that_c_cannot_take():
    with pytest.raises(ValueError):
        inlaid.Config('{"model": {"path": "a"}}\0junk')
    with pytest.raises(UnicodeEncodeError):
        inlaid.Config('{"model": {"path": "\ud800"}}')
