#include "fabric/rpc/kept_reply.h"

#include "fop/borrowed.h"

namespace fopd::fabric {

KeptReply::KeptReply(const fop::Reply& reply)
    : id(reply.id),
      status(reply.status),
      words(reply.words),
      payload(reply.payload.begin(), reply.payload.end()),
      payload_crc(reply.payload_crc),
      body(reply.body),
      times(reply.times),
      borrowed(fop::borrowed_bytes(reply.body)) {
    fop::keep_borrowed(body, borrowed);
}

fop::Reply KeptReply::view() const {
    return {.id = id,
            .status = status,
            .words = words,
            .payload = payload,
            .payload_crc = payload_crc,
            .body = body,
            .times = times};
}

}  // namespace fopd::fabric
