import { AF_INET, AF_INET6 } from '../netlink/uapi/netlink.ts';
import type { Family } from './ip-prefix.ts';

/** Returns the kernel's number of an IP family: AF_INET or AF_INET6. */
export function addressFamily(family: Family): number {
  return family === 4 ? AF_INET : AF_INET6;
}

/** Returns the IP family of a message about an IP address, rule or route. */
export function familyOfMessage({ family }: { readonly family: number }): Family {
  return family === AF_INET6 ? 6 : 4;
}
