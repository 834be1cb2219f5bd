#include "errors.h"

#include <exception>
#include <string_view>

#include "base/status.h"

namespace trainyard::python {
namespace {

namespace py = pybind11;

struct StatusError : std::exception {
  explicit StatusError(absl::Status s) : status(std::move(s)) {}
  const char* what() const noexcept override { return "a status became no Python exception"; }
  absl::Status status;
};

// They live as long as the process, as the module does.
PyObject* error = nullptr;
PyObject* end_of_pass = nullptr;

PyObject* AddException(py::module_& module, const char* name, const char* doc, PyObject* base) {
  PyObject* made = PyErr_NewExceptionWithDoc(name, doc, base, nullptr);
  if (made == nullptr) throw py::error_already_set();
  module.add_object(std::string_view(name).substr(std::string_view(name).rfind('.') + 1).data(), made);
  return made;
}

void Translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const StatusError& caught) {
    const std::string_view message = Message(caught.status);
    const auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
    PyErr_SetObject(absl::IsOutOfRange(caught.status) ? end_of_pass : error, text.ptr());
  }
}

}  // namespace

void AddErrors(py::module_& module) {
  error = AddException(module, "trainyard.Error",
                       "Something that cannot be done: what, with which object, and what to do instead.",
                       PyExc_ValueError);
  end_of_pass =
      AddException(module, "trainyard.EndOfPass",
                   "A program has read all records of a pass; its next run begins the next pass.", error);
  py::register_local_exception_translator(&Translate);
}

void Raise(absl::Status status) { throw StatusError(std::move(status)); }

}  // namespace trainyard::python
