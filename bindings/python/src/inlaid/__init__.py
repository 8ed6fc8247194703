"""Inlaid: a training engine for language models that one links instead of launching.

    with inlaid.Runtime() as runtime, inlaid.Job(runtime, config) as job, job.start() as run:
        for event in run:
            print(event.kind, event.step, event.metrics)

Everything hangs off a Runtime; importing this module starts nothing. Objects are closed by `with` or close(). Errors are
inlaid.Error and its subclasses. Calls release the interpreter lock. One object is used by one thread at a time, except
Run.next(), Run.request(), Run.cancel(), Run.join(), CancelToken.cancel() and tokenizers, which any thread may use.
"""

from ._errors import (Aborted, AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error, FailedPrecondition, Internal,
                      InvalidArgument, NotFound, OutOfRange, PermissionDenied, ResourceExhausted, Unauthenticated,
                      Unavailable, Unimplemented)
from ._version import check as _check, has_feature, version

_check()

from ._config import Config, plan, schema  # noqa: E402  (the library was not checked before)
from ._data import Batch, Dataset  # noqa: E402
from ._event import Event  # noqa: E402
from ._generator import Generator, Token  # noqa: E402
from ._job import Job  # noqa: E402
from ._model import Adapter, Model, open_result  # noqa: E402
from ._pass import Pass, forward  # noqa: E402
from ._run import Run  # noqa: E402
from ._runtime import CancelToken, Runtime  # noqa: E402
from ._tensor import Tensor  # noqa: E402
from ._tokenizer import Decoder, Tokenizer  # noqa: E402
from ._trainer import (Trainer, checkpoint_manifest, checkpoint_manifest_bytes, checkpoint_verify,  # noqa: E402
                       evaluate)

__version__ = version()

__all__ = [
    "Aborted", "Adapter", "AlreadyExists", "Batch", "CancelToken", "Cancelled", "Config", "DataLoss", "Dataset",
    "DeadlineExceeded", "Decoder", "Error", "Event", "FailedPrecondition", "Generator", "Internal", "InvalidArgument",
    "Job", "Model", "NotFound", "OutOfRange", "Pass", "PermissionDenied", "ResourceExhausted", "Run", "Runtime", "Tensor",
    "Token", "Tokenizer", "Trainer", "Unauthenticated", "Unavailable", "Unimplemented", "checkpoint_manifest",
    "checkpoint_manifest_bytes", "checkpoint_verify", "evaluate", "forward", "has_feature", "open_result", "plan", "schema",
    "version",
]
