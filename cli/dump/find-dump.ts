import { NUD_NOARP } from '../../netlink/uapi/neighbour.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { CliError } from '../cli-error.ts';
import type { EniFacts } from '../node/find-enis.ts';
import type { Owner, OwnerIndex } from '../node/find-owner.ts';
import { findPod, podTitle } from '../node/find-pod.ts';
import { findTable } from '../node/find-table-names.ts';
import type { NetnsFacts, NodeFacts } from '../node/node-facts.ts';

/** Filters of the list commands; undefined: no filter. */
type DumpFilter = {
  readonly table?: string | undefined;
  readonly pod?: string | undefined;
  readonly eni?: string | undefined;
  readonly family?: 4 | 6 | undefined;
};

/** What was read from one network namespace. */
export type DumpPart = {
  /** Name of the Pod, when this is the Pod's namespace; undefined: the node's own namespace. */
  readonly pod: string | undefined;
  readonly facts: NetnsFacts;
  /** The namespace without any filter: for names of interfaces, and to recognize what the kernel created. */
  readonly whole: NetnsFacts;
};

/** The selected objects, and what could not be read. */
type FoundDump = {
  readonly parts: readonly DumpPart[];
  readonly problems: readonly { readonly what: string; readonly why: string; readonly next: string }[];
};

/**
 * Selects the requested objects: those of the node, and, when a Pod is named, also those inside the Pod.
 * @throws CliError NOT_FOUND for a table, ENI or Pod that does not exist
 */
export function findDump(facts: NodeFacts, owners: OwnerIndex, filter: DumpFilter): FoundDump {
  const table = filter.table === undefined ? undefined : tableOf(facts, filter.table);
  const eni = filter.eni === undefined ? undefined : findEni(owners.enis, filter.eni, facts.agent);
  const pod = filter.pod === undefined ? undefined : findPod(facts, filter.pod);
  const isWanted = (owner: Owner): boolean =>
    (eni === undefined || (owner.kind === 'eni' && owner.table === eni.table)) &&
    (pod === undefined || (owner.kind === 'pod' && owner.key === pod.key));
  const host = pick(facts.host, { table, family: filter.family, owners, isWanted });
  const outer: DumpPart = { pod: undefined, facts: host, whole: facts.host };
  if (pod === undefined) return { parts: [outer], problems: [] };
  const { inside } = pod;
  if (inside.kind === 'unknown') {
    return { parts: [outer], problems: [{ what: `inside Pod ${podTitle(pod)}`, why: inside.why, next: inside.next }] };
  }
  const inner = pick(inside.value, { table, family: filter.family });
  return { parts: [outer, { pod: podTitle(pod), facts: inner, whole: inside.value }], problems: [] };
}

/** Finds an ENI by id, interface, table, MAC or primary address. @throws CliError NOT_FOUND */
function findEni(enis: readonly EniFacts[], word: string, agent: NodeFacts['agent']): EniFacts {
  const name = word.toLowerCase();
  const eni = enis.find(
    ({ eniId, ifname, table, mac, addresses }) =>
      [eniId, ifname, String(table), mac].includes(name) || addresses.includes(name) || ifname === word,
  );
  if (eni !== undefined) return eni;
  const known = enis.map(({ eniId, ifname, table }) => eniId ?? ifname ?? String(table)).join(', ');
  const next = known === '' ? 'this node has none; tke-eni enis tells why' : `this node has ${known}`;
  throw new CliError('NOT_FOUND', `no ENI ${JSON.stringify(word)} here${whyNoIds(agent)}`, next);
}

/**
 * Returns why ENI ids are unknown, for the error message: without the agent's record even a correct id is not found.
 */
function whyNoIds(agent: NodeFacts['agent']): string {
  return agent.kind === 'unknown' ? ` (ids are not known: ${agent.why})` : '';
}

function tableOf({ host, agent }: NodeFacts, word: string): number {
  const table = findTable(host.tableNames, word);
  if (table !== undefined) return table;
  const names = [...host.tableNames.values()].filter((name) => name !== 'unspec').join(', ');
  const message = `no routing table is called ${JSON.stringify(word)}${whyNoIds(agent)}`;
  throw new CliError('NOT_FOUND', message, `a number, or one of ${names}`);
}

type Picking = {
  readonly table: number | undefined;
  readonly family: 4 | 6 | undefined;
  readonly owners?: OwnerIndex;
  readonly isWanted?: (owner: Owner) => boolean;
};

function pick(facts: NetnsFacts, { table, family, owners, isWanted = () => true }: Picking): NetnsFacts {
  const used = table === undefined ? undefined : interfacesOf(facts, table);
  const isFamily = (message: { readonly family: number }): boolean =>
    family === undefined || (message.family === AF_INET6 ? 6 : 4) === family;
  const isOn = (ifindex: number): boolean =>
    (used === undefined || used.has(ifindex)) && (owners === undefined || isWanted(owners.ownerOfIfindex(ifindex)));
  return {
    sysctls: facts.sysctls,
    links: facts.links.filter(({ ifindex }) => isOn(ifindex)),
    addresses: facts.addresses.filter((address) => isFamily(address) && isOn(address.ifindex)),
    neighs: facts.neighs.filter((neigh) => isFamily(neigh) && isOn(neigh.ifindex)),
    routes: facts.routes.filter(
      (route) =>
        isFamily(route) &&
        (table === undefined || route.table === table) &&
        (owners === undefined || isWanted(owners.ownerOfRoute(route))),
    ),
    rules: facts.rules.filter(
      (rule) =>
        isFamily(rule) &&
        (table === undefined || rule.table === table) &&
        (owners === undefined || isWanted(owners.ownerOfRule(rule))),
    ),
  };
}

function interfacesOf({ routes }: NetnsFacts, table: number): ReadonlySet<number> {
  const ofTable = routes.filter((route) => route.table === table);
  return new Set(
    ofTable.flatMap(({ oif, multipath }) => [
      ...(oif === undefined ? [] : [oif]),
      ...(multipath ?? []).flatMap((hop) => (hop.oif === undefined ? [] : [hop.oif])),
    ]),
  );
}

/**
 * Leaves out neighbours that the kernel creates without address resolution: multicast, and those of interfaces without
 * ARP.
 */
export function withoutKernelNeighs(facts: NetnsFacts): NetnsFacts {
  return { ...facts, neighs: facts.neighs.filter(({ state }) => state !== NUD_NOARP && state !== 0) };
}
