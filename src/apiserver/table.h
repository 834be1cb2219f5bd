// Objects as `kubectl get` shows them: the server makes the columns and the cells. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "apiserver/call.h"
#include "apiserver/resources.h"
#include "base/document.h"

namespace trainyard::apiserver {

struct Column {
  std::string name;
  std::string type = "string";
  std::string format;
  std::string description;
  std::int64_t priority = 0;  // above 0: only with -o wide
};

// The columns of a resource, and the cells of one object in them.
std::vector<Column> ColumnsOf(const ResourceInfo& resource, const ServedVersion& version);
// The budget pays for what the columns of a custom resource show, as each may show the whole object.
Array CellsOf(const ResourceInfo& resource, const ServedVersion& version, const Document& object,
              absl::Time now, Budget& budget);

// A whole Table; `list_metadata` is the list's as JSON text.
std::string TableText(const ResourceInfo& resource, const ServedVersion& version,
                      const std::vector<Document>& objects, std::string_view list_metadata,
                      const OutputFormat& format, absl::Time now, Budget& budget);
// One object of a watch or a get.
std::string OneRowTable(const ResourceInfo& resource, const ServedVersion& version, const Document& object,
                        const OutputFormat& format, absl::Time now, Budget& budget);

// The object's metadata alone.
Document PartialMetadata(const Document& object, std::string_view version);

}  // namespace trainyard::apiserver
