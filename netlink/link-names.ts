import { closeSync } from 'node:fs';
import { decodeByteText } from '../runtime/byte-text.ts';
import { LibcError } from './errno.ts';
import { ioctlOn, socket } from './libc.ts';
import { AF_NETLINK, NETLINK_ROUTE } from './uapi/netlink.ts';

const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
/** Number of the ioctl. @see netdevice(7) */
const SIOCGIFNAME = 0x8910;
/** struct ifreq { char ifr_name[16]; union { int ifr_ifindex; … 24 bytes } }. */
const IFREQ_BYTES = 40;
const IFR_IFINDEX = 16;

/** Looks up names of interfaces one by one: for callers that need few of them. */
type LinkNames = Disposable & {
  /** Returns undefined when there is no such interface. @throws LibcError */
  nameOf(ifindex: number): string | undefined;
};

/** Opens the look-up in the current network namespace; the owner must dispose of it. @throws LibcError */
export function openLinkNames(): LinkNames {
  const fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  const ifreq = Buffer.alloc(IFREQ_BYTES);
  const numbers = new Int32Array(ifreq.buffer, ifreq.byteOffset, IFREQ_BYTES / 4);
  return {
    nameOf: (ifindex) => {
      ifreq.fill(0);
      numbers[IFR_IFINDEX / 4] = ifindex;
      try {
        ioctlOn(fd, SIOCGIFNAME, ifreq);
      } catch (error) {
        if (error instanceof LibcError && error.code === 'ENODEV') return undefined;
        throw error;
      }
      return decodeByteText(ifreq.subarray(0, ifreq.indexOf(0)));
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}
