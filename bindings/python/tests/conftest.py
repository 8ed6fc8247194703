import pytest

import inlaid
import tiny


@pytest.fixture
def runtime():
    with inlaid.Runtime(cpu_threads=1) as rt:
        yield rt


@pytest.fixture
def parts(runtime, tmp_path):
    """Model, configuration and training data of the tiny model."""
    config = inlaid.Config(tiny.config(tmp_path))
    with inlaid.Model(runtime, config) as model, inlaid.Dataset(model, config) as data:
        yield model, config, data
