// Helpers of inlaid.i: what the generated wrapper calls, kept out of the typemaps so that it is ordinary C++.
//
// Every function here is called with the interpreter lock held, except model_tensor. A function returning PyObject * or
// bool sets a Python exception on failure.
#ifndef INLAID_BINDINGS_PYTHON_SRC_INLAID_INLAID_PYTHON_H_
#define INLAID_BINDINGS_PYTHON_SRC_INLAID_INLAID_PYTHON_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>

#include "inlaid.h"

struct DLManagedTensorVersioned;

// A tensor of the library, freed with the last of its capsules, in whatever thread that is.
using inlaid_python_tensor = std::shared_ptr<DLManagedTensorVersioned>;

namespace inlaid_python {

// Sets the Python exception of e and releases e.
void raise(inlaid_error *e);
// UTF-8 of a str, borrowed from it; nullptr for None. TypeError, ValueError for an embedded NUL.
bool text(PyObject *object, const char **out);
// Bytes of b, which is released.
PyObject *take(inlaid_buffer *b);
const char *library_path();

// Adds the tensor of a DLPack capsule. The capsule counts as consumed only when the library has taken it. Returns None.
PyObject *batch_add(inlaid_batch *b, const char *name, PyObject *capsule);

// The same for the gradient of an output.
PyObject *pass_set_gradient(inlaid_pass *p, const char *output, PyObject *capsule);

inlaid_error *model_tensor(inlaid_model *m, const char *name, inlaid_python_tensor **out);
inlaid_error *pass_tensor(inlaid_pass *p, const char *output, inlaid_python_tensor **out);
// Capsule "inlaid_tensor" that owns t.
PyObject *wrap(inlaid_python_tensor *t);
PyObject *shape(const inlaid_python_tensor &t);
PyObject *bytes(const inlaid_python_tensor &t);
PyObject *dlpack(const inlaid_python_tensor &t, bool versioned);

}  // namespace inlaid_python

#endif  // INLAID_BINDINGS_PYTHON_SRC_INLAID_INLAID_PYTHON_H_
