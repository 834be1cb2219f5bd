#include "apiserver/table.h"

#include "apiserver/json_path.h"
#include "apiserver/printers/printers.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

// A cell of a custom resource's column: what its path leads to, as the column's type shows it.
Document CustomCell(const PrinterColumn& column, const Document& object, absl::Time now, Budget& budget) {
  const auto path = JsonPath::Parse(column.json_path);
  if (!path.ok()) return Document();
  const Document* found = path->FindFirst(object);
  if (found == nullptr || found->is_null()) return Document();
  if (column.type == "integer") {
    return found->is_int64() || found->is_uint64() ? *found : Document();
  }
  if (column.type == "number") return found->is_number() ? *found : Document();
  if (column.type == "boolean") return found->is_bool() ? *found : Document();
  if (column.type == "date") {
    const auto time = ParseTime(Text(*found));
    return time.ok() ? Document(PrintAge(now - *time)) : Document("<invalid>");
  }
  if (!budget.Take(*found)) return Document("<too large>");
  return found->is_string() ? *found : Document(PrintJson(*found));
}

Array CustomCells(const ServedVersion& version, const Document& object, absl::Time now, Budget& budget) {
  Array cells{StringAt(object, {"metadata", "name"})};
  if (version.columns.empty()) {
    cells.emplace_back(PrintAgeOf(object, now));
    return cells;
  }
  for (const PrinterColumn& column : version.columns)
    cells.push_back(CustomCell(column, object, now, budget));
  return cells;
}

std::vector<Column> CustomColumns(const ServedVersion& version) {
  std::vector<Column> columns = {NameColumn()};
  if (version.columns.empty()) {
    columns.push_back(AgeColumn());
    return columns;
  }
  for (const PrinterColumn& column : version.columns) {
    columns.push_back({.name = column.name,
                       .type = column.type,
                       .format = column.format,
                       .description = column.description,
                       .priority = column.priority});
  }
  return columns;
}

std::string ColumnsText(const std::vector<Column>& columns) {
  Array definitions;
  for (const Column& column : columns) {
    definitions.emplace_back(Object{{"name", column.name},
                                    {"type", column.type},
                                    {"format", column.format},
                                    {"description", column.description},
                                    {"priority", column.priority}});
  }
  return PrintJson(definitions);
}

Object Row(Array cells, const Document& object, const OutputFormat& format) {
  Object row{{"cells", std::move(cells)}};
  if (format.include_object == "Metadata") row["object"] = PartialMetadata(object, format.version);
  if (format.include_object == "Object") row["object"] = object;
  return row;
}

}  // namespace

std::vector<Column> ColumnsOf(const ResourceInfo& resource, const ServedVersion& version) {
  if (resource.custom) return CustomColumns(version);
  const Printer* printer = FindPrinter(resource.kind);
  return printer != nullptr ? printer->columns : std::vector<Column>{NameColumn(), AgeColumn()};
}

Array CellsOf(const ResourceInfo& resource, const ServedVersion& version, const Document& object,
              absl::Time now, Budget& budget) {
  if (resource.custom) return CustomCells(version, object, now, budget);
  if (const Printer* printer = FindPrinter(resource.kind)) return printer->cells(object, now);
  return {StringAt(object, {"metadata", "name"}), PrintAgeOf(object, now)};
}

std::string TableText(const ResourceInfo& resource, const ServedVersion& version,
                      const std::vector<Document>& objects, std::string_view list_metadata,
                      const OutputFormat& format, absl::Time now, Budget& budget) {
  std::string text = StrCat(R"({"kind":"Table","apiVersion":"meta.k8s.io/)", format.version,
                            R"(","metadata":)", list_metadata, R"(,"columnDefinitions":)",
                            ColumnsText(ColumnsOf(resource, version)), R"(,"rows":[)");
  bool first = true;
  for (const Document& object : objects) {
    if (!first) text += ',';
    first = false;
    AppendJson(text, Row(CellsOf(resource, version, object, now, budget), object, format));
  }
  text += "]}";
  return text;
}

std::string OneRowTable(const ResourceInfo& resource, const ServedVersion& version, const Document& object,
                        const OutputFormat& format, absl::Time now, Budget& budget) {
  const std::string metadata =
      StrCat(R"({"resourceVersion":")", StringAt(object, {"metadata", "resourceVersion"}), "\"}");
  return TableText(resource, version, {object}, metadata, format, now, budget);
}

Document PartialMetadata(const Document& object, std::string_view version) {
  const Document* metadata = Find(object, {"metadata"});
  return Object{{"kind", "PartialObjectMetadata"},
                {"apiVersion", StrCat("meta.k8s.io/", version)},
                {"metadata", metadata != nullptr ? *metadata : Document(Object())}};
}

}  // namespace trainyard::apiserver
