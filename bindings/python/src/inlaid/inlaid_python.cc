#include "inlaid_python.h"

#include <dlfcn.h>  // dladdr

#include <cstring>
#include <new>

#include "dlpack.h"

namespace inlaid_python {

namespace {

constexpr char kVersioned[] = "dltensor_versioned";
constexpr char kUnversioned[] = "dltensor";

template <typename Managed>
void run_deleter(Managed *managed) {
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

// A versioned view of an older tensor; owns it.
DLManagedTensorVersioned *upgraded(DLManagedTensor *old) {
  auto *managed = new DLManagedTensorVersioned{};
  managed->version = {1, 0};
  managed->manager_ctx = old;
  managed->deleter = [](DLManagedTensorVersioned *self) {
    run_deleter(static_cast<DLManagedTensor *>(self->manager_ctx));
    delete self;
  };
  managed->dl_tensor = old->dl_tensor;
  return managed;
}

// A new managed tensor over the memory of t, keeping t alive.
template <typename Managed>
Managed *shared_view(const inlaid_python_tensor &t) {
  auto *managed = new Managed{};
  managed->manager_ctx = new inlaid_python_tensor(t);
  managed->deleter = [](Managed *self) {
    delete static_cast<inlaid_python_tensor *>(self->manager_ctx);
    delete self;
  };
  managed->dl_tensor = t->dl_tensor;
  return managed;
}

// A consumer renames the capsule; one that nobody consumed frees its tensor.
template <typename Managed>
void collect(PyObject *capsule, const char *name) {
  if (PyCapsule_IsValid(capsule, name)) run_deleter(static_cast<Managed *>(PyCapsule_GetPointer(capsule, name)));
}

template <typename Managed>
PyObject *new_capsule(Managed *managed, const char *name, PyCapsule_Destructor destructor) {
  PyObject *capsule = PyCapsule_New(managed, name, destructor);
  if (capsule == nullptr) run_deleter(managed);
  return capsule;
}

// Gives the tensor of a capsule to `take`, which returns an error if it has not taken it.
template <typename Take>
PyObject *give(PyObject *capsule, Take &&take) {
  DLManagedTensorVersioned *managed = nullptr;
  const bool old = PyCapsule_IsValid(capsule, kUnversioned);
  if (old) {
    managed = upgraded(static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule, kUnversioned)));
  } else if (PyCapsule_IsValid(capsule, kVersioned)) {
    managed = static_cast<DLManagedTensorVersioned *>(PyCapsule_GetPointer(capsule, kVersioned));
  } else {
    PyErr_SetString(PyExc_TypeError, "__dlpack__ must give a capsule 'dltensor_versioned' or 'dltensor' that is not yet used");
    return nullptr;
  }
  if (inlaid_error *e = take(managed)) {
    if (old) delete managed;  // the view only: the capsule still owns the tensor
    raise(e);
    return nullptr;
  }
  if (PyCapsule_SetName(capsule, old ? "used_dltensor" : "used_dltensor_versioned") != 0) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace

void raise(inlaid_error *e) {
  PyObject *module = PyImport_ImportModule("inlaid._errors");
  if (module != nullptr) {
    PyObject *exception = PyObject_CallMethod(module, "from_c", "iss", static_cast<int>(inlaid_error_code(e)),
                                              inlaid_error_message(e), inlaid_error_details(e));
    if (exception != nullptr) PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception)), exception);
    Py_XDECREF(exception);
    Py_DECREF(module);
  }
  inlaid_error_release(e);
}

bool text(PyObject *object, const char **out) {
  *out = nullptr;
  if (object == Py_None) return true;
  Py_ssize_t size = 0;
  const char *utf8 = PyUnicode_AsUTF8AndSize(object, &size);
  if (utf8 == nullptr) return false;
  if (std::strlen(utf8) != static_cast<size_t>(size)) {
    PyErr_SetString(PyExc_ValueError, "embedded null character");
    return false;
  }
  *out = utf8;
  return true;
}

PyObject *take(inlaid_buffer *b) {
  PyObject *bytes = PyBytes_FromStringAndSize(static_cast<const char *>(inlaid_buffer_data(b)),
                                              static_cast<Py_ssize_t>(inlaid_buffer_size(b)));
  inlaid_buffer_release(b);
  return bytes;
}

const char *library_path() {
  Dl_info info = {};
  return dladdr(reinterpret_cast<void *>(&inlaid_abi_version), &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "?";
}

PyObject *batch_add(inlaid_batch *b, const char *name, PyObject *capsule) {
  return give(capsule, [&](DLManagedTensorVersioned *t) { return inlaid_batch_add(b, name, t); });
}

PyObject *pass_set_gradient(inlaid_pass *p, const char *output, PyObject *capsule) {
  return give(capsule, [&](DLManagedTensorVersioned *t) { return inlaid_pass_set_gradient(p, output, t); });
}

inlaid_error *model_tensor(inlaid_model *m, const char *name, inlaid_python_tensor **out) {
  DLManagedTensorVersioned *managed = nullptr;
  inlaid_error *e = inlaid_model_get_tensor(m, name, &managed);
  if (e == nullptr) *out = new inlaid_python_tensor(managed, run_deleter<DLManagedTensorVersioned>);
  return e;
}

inlaid_error *pass_tensor(inlaid_pass *p, const char *output, inlaid_python_tensor **out) {
  DLManagedTensorVersioned *managed = nullptr;
  inlaid_error *e = inlaid_pass_output(p, output, &managed);
  if (e == nullptr) *out = new inlaid_python_tensor(managed, run_deleter<DLManagedTensorVersioned>);
  return e;
}

PyObject *wrap(inlaid_python_tensor *t) {
  PyObject *capsule = PyCapsule_New(t, "inlaid_tensor", [](PyObject *self) {
    delete static_cast<inlaid_python_tensor *>(PyCapsule_GetPointer(self, "inlaid_tensor"));
  });
  if (capsule == nullptr) delete t;
  return capsule;
}

PyObject *shape(const inlaid_python_tensor &t) {
  const DLTensor &tensor = t->dl_tensor;
  PyObject *tuple = PyTuple_New(tensor.ndim);
  for (int32_t i = 0; tuple != nullptr && i < tensor.ndim; ++i) {
    PyObject *size = PyLong_FromLongLong(tensor.shape[i]);
    if (size == nullptr) Py_CLEAR(tuple);
    else PyTuple_SET_ITEM(tuple, i, size);
  }
  return tuple;
}

PyObject *bytes(const inlaid_python_tensor &t) {
  const DLTensor &tensor = t->dl_tensor;
  int64_t size = tensor.dtype.bits / 8;
  for (int32_t i = 0; i < tensor.ndim; ++i) size *= tensor.shape[i];
  return PyBytes_FromStringAndSize(static_cast<const char *>(tensor.data) + tensor.byte_offset, size);
}

PyObject *dlpack(const inlaid_python_tensor &t, bool versioned) {
  if (!versioned) {
    return new_capsule(shared_view<DLManagedTensor>(t), kUnversioned,
                       [](PyObject *capsule) { collect<DLManagedTensor>(capsule, kUnversioned); });
  }
  auto *managed = shared_view<DLManagedTensorVersioned>(t);
  managed->version = {1, 0};
  return new_capsule(managed, kVersioned,
                     [](PyObject *capsule) { collect<DLManagedTensorVersioned>(capsule, kVersioned); });
}

}  // namespace inlaid_python
