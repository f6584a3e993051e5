#pragma once

#include <string>
#include <string_view>

#include "fop/fop_type.h"
#include "fop/message.h"
#include "store/object.h"

namespace fopd::reqh {

// The name of the object that a fop is about, if the request has it: of a rename, the name before
// it.
std::string_view name_in(const fop::Request& request);

// The name of the object that a fop is about: the request's, or that in its record, `known`, which
// is null if it was not loaded.
std::string_view name_of(const fop::Request& request, const store::Object* known);

// The new name of the object, of a rename.
std::string_view new_name_in(const fop::Request& request);

// The fid of the object in the request, or of the object that the reply names; empty if there is
// none.
std::string fid_in(const fop::FopType& type, const fop::Request& request, const fop::Reply& reply);

}  // namespace fopd::reqh
