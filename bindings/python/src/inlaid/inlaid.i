// inlaid.i - the private, mechanical layer of the Python binding: one Python function per function of inlaid.h.
//
// Problem: a handle must not be freed while a call that uses it runs without the interpreter lock, whatever thread closes
// or collects its owner. Idea: a handle is a PyCapsule whose destructor is the handle's release function. A running call
// holds a reference to its arguments, so a close() in another thread only drops the owner's reference, and the release
// happens after the call. Nothing in Python calls a release function.
//
// What a call looks like from Python: out parameters are results, an inlaid_error becomes an exception of
// inlaid._errors, an inlaid_buffer becomes bytes, None is NULL, (const void *, uint64_t) is any C-contiguous buffer.
// tests/test_binding.py compares this module with the header; tests/test_gil.py shows that calls release the lock.
%module(threads="1") inlaid

%{
#include <cstring>

#include "inlaid.h"
#include "inlaid_python.h"
%}

%include <stdint.i>
#define INLAID_API
#define INLAID_MUSTUSE

// ---- errors: raised as inlaid._errors.from_c(code, message, details) ------------------------------------------------
%typemap(out) inlaid_error * {
  if ($1 != nullptr) {
    inlaid_python::raise($1);
    SWIG_fail;
  }
  $result = SWIG_Py_Void();
}

// ---- strings: UTF-8 without NUL, borrowed from the argument ---------------------------------------------------------
%typemap(in) const char * (const char *utf8_text = nullptr) {
  if (!inlaid_python::text($input, &utf8_text)) SWIG_fail;
  $1 = const_cast<char *>(utf8_text);
}
%typemap(freearg) const char * ""
%typemap(out) const char * {
  $result = $1 == nullptr ? SWIG_Py_Void() : PyUnicode_DecodeUTF8($1, static_cast<Py_ssize_t>(std::strlen($1)), "replace");
}

// ---- bytes in: the view starts out empty, because SWIG frees arguments that were never converted, too ----------------
%typemap(in) (const void *BYTES, uint64_t SIZE) (Py_buffer view = Py_buffer()) {
  if (PyObject_GetBuffer($input, &view, PyBUF_SIMPLE) != 0) SWIG_fail;
  $1 = view.buf;
  $2 = static_cast<uint64_t>(view.len);
}
%typemap(freearg) (const void *BYTES, uint64_t SIZE) {
  PyBuffer_Release(&view$argnum);
}
%apply (const void *BYTES, uint64_t SIZE) {
  (const void *utf8, uint64_t bytes), (const void *int32_ids, uint64_t bytes), (const void *int32_values, uint64_t bytes),
  (const void *f32_values, uint64_t bytes)
};

// ---- bytes and numbers out -----------------------------------------------------------------------------------------
%typemap(in, numinputs=0) inlaid_buffer ** (inlaid_buffer *buffer = nullptr) {
  $1 = &buffer;
}
%typemap(argout) inlaid_buffer ** {
  PyObject *bytes = inlaid_python::take(*$1);
  if (bytes == nullptr) SWIG_fail;
  $result = SWIG_Python_AppendOutput($result, bytes);
}
%typemap(in, numinputs=0) int32_t *OUT (int32_t number = 0) {
  $1 = &number;
}
%typemap(argout) int32_t *OUT {
  $result = SWIG_Python_AppendOutput($result, PyLong_FromLong(*$1));
}
%apply int32_t *OUT { int32_t *out_id, int32_t *out_done };

// ---- handles -------------------------------------------------------------------------------------------------------
%define HANDLE(T)
%{
namespace {
void T##_collect(PyObject *capsule) { T##_release(static_cast<T *>(PyCapsule_GetPointer(capsule, #T))); }
}  // namespace
%}
%typemap(in) T *, const T * {
  if ($input != Py_None) {
    $1 = static_cast<T *>(PyCapsule_GetPointer($input, #T));
    if ($1 == nullptr) SWIG_fail;
  }
}
%typemap(in, numinputs=0) T ** (T *handle = nullptr) {
  $1 = &handle;
}
%typemap(argout) T ** {
  PyObject *capsule = SWIG_Py_Void();
  if (*$1 != nullptr) {
    Py_DECREF(capsule);
    capsule = PyCapsule_New(*$1, #T, T##_collect);
    if (capsule == nullptr) {
      T##_release(*$1);
      SWIG_fail;
    }
  }
  $result = SWIG_Python_AppendOutput($result, capsule);
}
%enddef
HANDLE(inlaid_runtime)
HANDLE(inlaid_cancel)
HANDLE(inlaid_config)
HANDLE(inlaid_tokenizer)
HANDLE(inlaid_decoder)
HANDLE(inlaid_model)
HANDLE(inlaid_adapter)
HANDLE(inlaid_dataset)
HANDLE(inlaid_batch)
HANDLE(inlaid_trainer)
HANDLE(inlaid_event)
HANDLE(inlaid_run)
HANDLE(inlaid_job)
HANDLE(inlaid_generator)
HANDLE(inlaid_pass)

// A communicator cannot be made in this version: always None.
%typemap(in) inlaid_comm *comm_or_null {
  if ($input != Py_None) {
    PyErr_SetString(PyExc_TypeError, "this version trains on one rank: the communicator must be None");
    SWIG_fail;
  }
}

// ---- what is not wrapped as it stands -------------------------------------------------------------------------------
%rename("$ignore", regexmatch$name="^inlaid_.*_release$") "";   // done by the capsules
%rename("$ignore", regexmatch$name="^inlaid_(error|buffer)_") "";   // done by the typemaps
%ignore inlaid_runtime_options;
%ignore inlaid_runtime_create;     // create_runtime below
%ignore inlaid_batch_add;          // batch_add_dlpack below
%ignore inlaid_model_get_tensor;   // model_tensor below
%ignore inlaid_pass_output;        // pass_tensor below
%ignore inlaid_pass_set_gradient;  // pass_set_gradient_dlpack below
%ignore inlaid_pass_data;          // a pointer is no thing for Python: pass_tensor
%ignore inlaid_pass_size;

// Getters and single stores: cheaper than giving the interpreter lock away.
%nothread inlaid_abi_version;
%nothread inlaid_version_string;
%nothread inlaid_has_feature;
%nothread inlaid_cancel_create;
%nothread inlaid_cancel_trigger;
%nothread inlaid_tokenizer_vocab_size;
%nothread inlaid_dataset_size;
%nothread inlaid_run_cancel;
%nothread inlaid_event_kind;
%nothread inlaid_event_step;
%nothread inlaid_event_seq;
%nothread inlaid_event_metric_count;
%nothread inlaid_event_metric_name;
%nothread inlaid_event_metric_value;
%nothread inlaid_event_metric;
%nothread inlaid_event_text;
%nothread inlaid_event_json;

%include "inlaid.h"

// A struct with pointers is no thing for Python: the two options that make sense there as arguments.
%inline %{
inlaid_error *create_runtime(int32_t cpu_threads, const char *settings_json, inlaid_runtime **out) {
  inlaid_runtime_options options = INLAID_RUNTIME_OPTIONS_INIT;
  options.cpu_threads = cpu_threads;
  options.settings_json = settings_json;
  return inlaid_runtime_create(&options, out);
}
%}

// ---- DLPack: these touch Python objects, so they keep the interpreter lock ------------------------------------------
%nothread library_path;
%nothread batch_add_dlpack;
%nothread pass_tensor;
%nothread pass_set_gradient_dlpack;
%nothread tensor_shape;
%nothread tensor_bytes;
%nothread tensor_dlpack;
%typemap(in, numinputs=0) inlaid_python_tensor ** (inlaid_python_tensor *tensor = nullptr) {
  $1 = &tensor;
}
%typemap(argout) inlaid_python_tensor ** {
  PyObject *capsule = inlaid_python::wrap(*$1);
  if (capsule == nullptr) SWIG_fail;
  $result = SWIG_Python_AppendOutput($result, capsule);
}
%typemap(in) const inlaid_python_tensor & {
  $1 = static_cast<inlaid_python_tensor *>(PyCapsule_GetPointer($input, "inlaid_tensor"));
  if ($1 == nullptr) SWIG_fail;
}
%typemap(out) PyObject * {
  if ($1 == nullptr) SWIG_fail;
  $result = $1;
}
%inline %{
// Path of the loaded libinlaid.so.0.
const char *library_path() { return inlaid_python::library_path(); }

// Adds the tensor of a capsule of __dlpack__; the capsule counts as consumed only on success.
PyObject *batch_add_dlpack(inlaid_batch *b, const char *name, PyObject *capsule) {
  return inlaid_python::batch_add(b, name, capsule);
}

// Copy of a weight that any number of DLPack capsules may share.
inlaid_error *model_tensor(inlaid_model *m, const char *name, inlaid_python_tensor **out) {
  return inlaid_python::model_tensor(m, name, out);
}

// An output of a pass: shares its memory.
inlaid_error *pass_tensor(inlaid_pass *p, const char *output, inlaid_python_tensor **out) {
  return inlaid_python::pass_tensor(p, output, out);
}
// Gives a pass the gradient in a capsule of __dlpack__; the capsule counts as consumed only on success.
PyObject *pass_set_gradient_dlpack(inlaid_pass *p, const char *output, PyObject *capsule) {
  return inlaid_python::pass_set_gradient(p, output, capsule);
}
PyObject *tensor_shape(const inlaid_python_tensor &tensor) { return inlaid_python::shape(tensor); }
PyObject *tensor_bytes(const inlaid_python_tensor &tensor) { return inlaid_python::bytes(tensor); }
// New capsule "dltensor_versioned", or the older "dltensor" with versioned = 0.
PyObject *tensor_dlpack(const inlaid_python_tensor &tensor, int32_t versioned) {
  return inlaid_python::dlpack(tensor, versioned != 0);
}
%}
