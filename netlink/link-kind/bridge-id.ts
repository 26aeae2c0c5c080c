import type { Codec } from '../codec.ts';
import { linkAddress } from '../codec.ts';

const MAC_BYTES = 6;

/** struct ifla_bridge_id { u8 prio[2]; u8 addr[6]; }: '8000.02:00:00:00:00:01'. @see uapi/linux/if_link.h */
export const bridgeId: Codec<string> = {
  read(view, offset, length) {
    const address = length === 2 + MAC_BYTES ? linkAddress.read(view, offset + 2, MAC_BYTES) : undefined;
    if (address === undefined) return undefined;
    const priority = (view.readU8(offset) << 8) | view.readU8(offset + 1);
    return `${priority.toString(16).padStart(4, '0')}.${address}`;
  },
  write(writer, value, field) {
    const priority = Number.parseInt(value.slice(0, 4), 16);
    writer.u8(priority >> 8);
    writer.u8(priority & 0xff);
    linkAddress.write(writer, value.slice(5), field);
  },
};
