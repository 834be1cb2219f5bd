// RFC 6902: a list of operations that are all done, or none of them.
#include <algorithm>
#include <utility>

#include "apiserver/patch/json_pointer.h"
#include "apiserver/patch/patch.h"
#include "apiserver/patch/same_value.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::size_t kMaxOperations = 10'000;
constexpr std::size_t kOrderedKeys = 256;

// How many items all insertions and removals of one patch may shift in lists: a patch of ten thousand of them
// at the begin of a long list would else hold every other client up.
constexpr std::size_t kMaxShifts = 100'000'000;

using PointerSteps = std::vector<std::string>;

struct Operation {
  std::string_view op;
  std::string_view path_text;
  PointerSteps path;
  PointerSteps from;
  const Document* value = nullptr;
};

// Whether the value has no more than `most` levels of objects and arrays.
bool FitsDepth(const Document& value, std::size_t most) {
  if (value.is_primitive()) return true;
  if (most == 0) return false;
  if (const Array* array = value.if_array()) {
    return std::ranges::all_of(*array, [&](const Document& item) { return FitsDepth(item, most - 1); });
  }
  return std::ranges::all_of(value.get_object(),
                             [&](const auto& member) { return FitsDepth(member.value(), most - 1); });
}

absl::Status CheckDepth(const Document& value, const Operation& operation) {
  const std::size_t above = operation.path.size();
  if (above <= kMaxDocumentDepth && FitsDepth(value, kMaxDocumentDepth - above)) return absl::OkStatus();
  return UnfitPatch(
      StrCat("\"", operation.path_text, "\" would be more than ", kMaxDocumentDepth, " levels deep"));
}

absl::Status Missing(const Operation& operation, std::string_view which) {
  return UnfitPatch(StrCat(operation.op, ": there is nothing at the ", which, " of the operation on \"",
                           operation.path_text, "\""));
}

absl::StatusOr<std::string_view> TextOf(const Object& object, std::string_view key) {
  const Document* found = object.if_contains(key);
  if (found == nullptr) return UnfitPatch(StrCat("an operation has no \"", key, "\""));
  if (!found->is_string()) return BadPatch(StrCat("\"", key, "\" of an operation must be a string"));
  return Text(*found);
}

absl::StatusOr<PointerSteps> PointerOf(std::string_view text) {
  auto steps = ParseJsonPointer(text);
  if (!steps.ok()) return UnfitPatch(std::string(Message(steps.status())));
  return steps;
}

absl::StatusOr<Operation> ParseOperation(const Document& document) {
  const Object* object = document.if_object();
  if (object == nullptr) return BadPatch("each operation of a JSON patch must be an object");
  Operation operation;
  TY_ASSIGN_OR_RETURN(operation.op, TextOf(*object, "op"));
  TY_ASSIGN_OR_RETURN(operation.path_text, TextOf(*object, "path"));
  TY_ASSIGN_OR_RETURN(operation.path, PointerOf(operation.path_text));
  if (operation.op == "move" || operation.op == "copy") {
    TY_ASSIGN_OR_RETURN(const std::string_view from, TextOf(*object, "from"));
    TY_ASSIGN_OR_RETURN(operation.from, PointerOf(from));
  } else if (operation.op == "add" || operation.op == "replace" || operation.op == "test") {
    operation.value = object->if_contains("value");
    if (operation.value == nullptr) {
      return UnfitPatch(StrCat(operation.op, " \"", operation.path_text, "\" has no \"value\""));
    }
  } else if (operation.op != "remove") {
    return UnfitPatch(StrCat("there is no operation \"", operation.op,
                             "\": there are add, remove, replace, move, copy and test"));
  }
  return operation;
}

// Does the operations of one patch, one after the other.
class Patcher {
 public:
  Patcher(Document& document, Budget& budget) : document_(document), budget_(budget) {}

  absl::Status Do(const Operation& operation) {
    if (operation.op == "test") return Test(operation);
    if (operation.op == "remove") return Take(operation, operation.path, "path").status();
    if (operation.op == "move") return Move(operation);
    if (operation.op == "copy") return Copy(operation);
    TY_RETURN_IF_ERROR(CheckDepth(*operation.value, operation));
    if (operation.op == "replace") return Replace(operation);
    return Add(operation, *operation.value);
  }

 private:
  absl::Status Test(const Operation& operation) {
    const Document* found = FindByPointer(document_, operation.path);
    if (found == nullptr) return Missing(operation, "path");
    if (SameValue(*found, *operation.value)) return absl::OkStatus();
    return UnfitPatch(StrCat("test failed: the value at \"", operation.path_text, "\" is another"));
  }

  absl::Status Replace(const Operation& operation) {
    Document* found = FindByPointer(document_, operation.path);
    if (found == nullptr) return Missing(operation, "path");
    *found = *operation.value;
    return absl::OkStatus();
  }

  absl::Status Move(const Operation& operation) {
    if (operation.from == operation.path) {
      return FindByPointer(document_, operation.from) != nullptr ? absl::OkStatus()
                                                                 : Missing(operation, "from");
    }
    if (operation.from.size() < operation.path.size() &&
        std::ranges::equal(operation.from, std::span(operation.path).first(operation.from.size()))) {
      return UnfitPatch(StrCat("move: \"", operation.path_text, "\" lies within what is to be moved there"));
    }
    TY_ASSIGN_OR_RETURN(Document taken, Take(operation, operation.from, "from"));
    if (operation.path.size() > operation.from.size()) TY_RETURN_IF_ERROR(CheckDepth(taken, operation));
    return Add(operation, std::move(taken));
  }

  absl::Status Copy(const Operation& operation) {
    const Document* found = FindByPointer(document_, operation.from);
    if (found == nullptr) return Missing(operation, "from");
    // A few dozen copies of the document into itself would else fill any memory.
    if (!budget_.Take(*found)) return OverBudget("copies of this patch");
    TY_RETURN_IF_ERROR(CheckDepth(*found, operation));
    return Add(operation, Document(*found));
  }

  absl::Status Add(const Operation& operation, Document value) {
    if (operation.path.empty()) {
      document_ = std::move(value);
      return absl::OkStatus();
    }
    const std::string& last = operation.path.back();
    Document* parent = FindByPointer(document_, std::span(operation.path).first(operation.path.size() - 1));
    if (parent == nullptr || parent->is_primitive()) return Missing(operation, "parent of the path");
    if (Object* object = parent->if_object()) {
      (*object)[last] = std::move(value);
      return absl::OkStatus();
    }
    Array& array = parent->get_array();
    const auto index = last == "-" ? array.size() : ParseArrayIndex(last);
    if (!index || *index > array.size()) return BadIndex(operation, last, array);
    TY_RETURN_IF_ERROR(Shift(array.size() - *index));
    array.insert(array.begin() + *index, std::move(value));
    return absl::OkStatus();
  }

  absl::StatusOr<Document> Take(const Operation& operation, const PointerSteps& path,
                                std::string_view which) {
    if (path.empty()) return UnfitPatch(StrCat(operation.op, ": the whole object cannot be taken away"));
    Document* parent = FindByPointer(document_, std::span(path).first(path.size() - 1));
    if (parent == nullptr || parent->is_primitive()) return Missing(operation, which);
    if (Object* object = parent->if_object()) {
      Document* found = object->if_contains(path.back());
      if (found == nullptr) return Missing(operation, which);
      Document taken = std::move(*found);
      // In a large object the order of keys means nothing, and keeping it would take as long as the object
      // is.
      if (object->size() > kOrderedKeys) {
        object->erase(object->find(path.back()));
      } else {
        Remove(*object, path.back());
      }
      return taken;
    }
    Array& array = parent->get_array();
    const auto index = ParseArrayIndex(path.back());
    if (!index || *index >= array.size()) return BadIndex(operation, path.back(), array);
    TY_RETURN_IF_ERROR(Shift(array.size() - *index));
    Document taken = std::move(array[*index]);
    array.erase(array.begin() + *index);
    return taken;
  }

  absl::Status Shift(std::size_t items) {
    shifted_ += items;
    if (shifted_ <= kMaxShifts) return absl::OkStatus();
    return PatchTooLarge("the operations of this patch move too many items of long lists; replace the list");
  }

  static absl::Status BadIndex(const Operation& operation, std::string_view step, const Array& array) {
    return UnfitPatch(StrCat(operation.op, " \"", operation.path_text, "\": \"", step,
                             "\" is no index in a list of ", array.size()));
  }

  Document& document_;
  Budget& budget_;
  std::size_t shifted_ = 0;
};

}  // namespace

absl::StatusOr<Document> ApplyJsonPatch(Document object, const Document& patch, Budget& budget) {
  const Array* operations = patch.if_array();
  if (operations == nullptr) return BadPatch("a JSON patch must be a list of operations");
  if (operations->size() > kMaxOperations) {
    return PatchTooLarge(StrCat("a JSON patch may have at most ", kMaxOperations,
                                " operations, this one has ", operations->size()));
  }
  Patcher patcher(object, budget);
  for (const Document& document : *operations) {
    TY_ASSIGN_OR_RETURN(const Operation operation, ParseOperation(document));
    TY_RETURN_IF_ERROR(patcher.Do(operation));
  }
  return object;
}

}  // namespace trainyard::apiserver
