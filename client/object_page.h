// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "client/object_client.h"

namespace fopd::client {

// An object as `ls` and `stat` print it, in JSON and for people.
nlohmann::ordered_json json_of(const ObjectPage::Entry& entry);
nlohmann::ordered_json json_of(const ObjectInfo& info, const ObjectCopies& copies);
std::string line_of(const ObjectPage::Entry& entry, bool is_long);
std::string page_of(const ObjectInfo& info, const ObjectCopies& copies);

}  // namespace fopd::client
