import { constants } from 'node:os';
import { ADDRESS, type AddressMessage, type AddressSpec } from './address-message.ts';
import type { Conn } from './conn.ts';
import { change, failureOf } from './exchange.ts';
import { AF_UNSPEC } from './uapi/netlink.ts';
import { RTM_GETADDR, RTM_NEWADDR } from './uapi/rtnetlink.ts';

/** Narrows a list of addresses. */
type AddressFilter = { readonly ifindex?: number; readonly family?: number };

/** Addresses of the interfaces of one namespace. @see ip-address(8) */
export type AddressService = {
  /** Adds an address. @throws NetlinkError EEXIST, ENODEV */
  add(spec: AddressSpec): void;
  /** Adds or renews; idempotent. @throws NetlinkError ENODEV */
  replace(spec: AddressSpec): void;
  /** Deletes an address. @throws NetlinkError EADDRNOTAVAIL when it does not exist */
  delete(spec: AddressSpec): void;
  /** Lists addresses. @throws NetlinkError */
  list(filter?: AddressFilter): readonly AddressMessage[];
};

/** Makes the address service of a connection. */
export function createAddressService(conn: Conn): AddressService {
  return {
    add: (spec) => change(conn, { object: 'address', verb: 'add', spec }),
    replace: (spec) => change(conn, { object: 'address', verb: 'replace', spec }),
    delete: (spec) => change(conn, { object: 'address', verb: 'delete', spec }),
    list(filter = {}) {
      const { ifindex, family } = filter;
      const { messages } = conn.dump({
        type: RTM_GETADDR,
        answerType: RTM_NEWADDR,
        codec: ADDRESS,
        body: { family: family ?? AF_UNSPEC, ifindex: ifindex ?? 0 },
        fail: failureOf({ object: 'address', verb: 'list', spec: filter }),
        // The interface does not exist any more.
        emptyOn: [constants.errno.ENODEV],
      });
      return messages.filter(
        (address) =>
          (ifindex === undefined || address.ifindex === ifindex) && (family === undefined || address.family === family),
      );
    },
  };
}
