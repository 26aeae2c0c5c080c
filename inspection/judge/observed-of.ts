import type { NetState } from '../../dataplane/desired.ts';
import { observeNetns } from '../../dataplane/observe.ts';
import type { ObservedHost } from '../../dataplane/observed.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';
import type { NetnsFacts } from '../node/node-facts.ts';

/** Returns of one reading what a plan is compared with, as the agent observes it. Settings that were not read are missing. */
export function observedOf(facts: NetnsFacts, desired: NetState): ObservedHost {
  const { links, addresses, routes, rules, neighs, sysctls } = facts;
  const rtnetlink = {
    link: { list: () => links },
    address: { list: listOf(addresses) },
    route: { list: listOf(routes) },
    rule: { list: listOf(rules) },
    neigh: { list: listOf(neighs) },
  };
  return observeNetns({ rtnetlink, sysctl: { find: (key) => sysctls.get(sysctlName(key)) } }, desired);
}

/** Lists as the kernel does: the messages that have all the values of a filter. */
function listOf<T extends object>(messages: readonly T[]): (filter?: Partial<T>) => readonly T[] {
  return (filter = {}) => {
    const wanted = Object.entries(filter);
    return messages.filter((message) => {
      const fields = new Map<string, unknown>(Object.entries(message));
      return wanted.every(([name, value]) => fields.get(name) === value);
    });
  };
}
