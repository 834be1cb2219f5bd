// The columns of the built-in kinds, as users of kubectl know them. Each kind's are in a file of their own or
// among their kin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "apiserver/table.h"
#include "base/document.h"

namespace trainyard::apiserver {

struct Printer {
  std::vector<Column> columns;
  Array (*cells)(const Document& object, absl::Time now);
};

// Null: a kind that has no columns of its own.
const Printer* FindPrinter(std::string_view kind);

const Printer& PodPrinter();
const Printer& NodePrinter();
const Printer& ServicePrinter();
const Printer& EndpointsPrinter();
const Printer& EventPrinter();
const Printer& NamespacePrinter();
const Printer& ConfigMapPrinter();
const Printer& SecretPrinter();
const Printer& ServiceAccountPrinter();
const Printer& LeasePrinter();
const Printer& PodGroupPrinter();
const Printer& DefinitionPrinter();

// What many of them share.
Column NameColumn();
Column AgeColumn();
std::string PrintAgeOf(const Document& object, absl::Time now);
// The time since then, or "<unknown>".
std::string PrintSince(std::string_view time, absl::Time now);

}  // namespace trainyard::apiserver
