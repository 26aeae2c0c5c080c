import { familyOfMessage } from '../../../dataplane/address-family.ts';
import type { Owner, OwnerIndex } from '../../../inspection/node/build-owner-index.ts';
import type { EniFacts } from '../../../inspection/node/find-enis.ts';
import { findPod } from '../../../inspection/node/find-pod.ts';
import { joinPods } from '../../../inspection/node/join-pods.ts';
import { findTable } from '../../../inspection/node/merge-table-names.ts';
import type { NetnsFacts, NodeFacts } from '../../../inspection/node/node-facts.ts';
import { NUD_NOARP, NUD_NONE } from '../../../netlink/uapi/neighbour.ts';
import { UserError } from '../../../runtime/user-error.ts';

/** Filters of the list commands; undefined: no filter. */
type DumpFilter = {
  readonly table?: string | undefined;
  readonly pod?: string | undefined;
  readonly eni?: string | undefined;
  readonly family?: 4 | 6 | undefined;
};

/** What was read from one network namespace. */
export type NetnsDump = {
  /** Name of the Pod, when this is the Pod's namespace; undefined: the node's own namespace. */
  readonly pod: string | undefined;
  readonly facts: NetnsFacts;
  /** The namespace without any filter: for names of interfaces, and to recognize what the kernel created. */
  readonly unfiltered: NetnsFacts;
};

/** The selected objects, and what could not be read. */
type SelectedDump = {
  readonly namespaces: readonly NetnsDump[];
  readonly problems: readonly { readonly what: string; readonly why: string; readonly next: string }[];
};

/**
 * Selects the requested objects: those of the node, and, when a Pod is named, also those inside the Pod.
 * @throws UserError NOT_FOUND for a table, ENI or Pod that does not exist
 */
export function selectDump(facts: NodeFacts, owners: OwnerIndex, filter: DumpFilter): SelectedDump {
  const table = filter.table === undefined ? undefined : tableOf(facts, filter.table);
  const eni = filter.eni === undefined ? undefined : findEni(owners.enis, filter.eni, facts.agent);
  const named = filter.pod === undefined ? undefined : findPod(joinPods(facts), facts.agent, filter.pod);
  const isSelected = (owner: Owner): boolean =>
    (eni === undefined || (owner.kind === 'eni' && owner.table === eni.table)) &&
    (named === undefined || (owner.kind === 'pod' && owner.key === named.pod.key));
  const host = pick(facts.host, { table, family: filter.family, owners, isSelected });
  const outer: NetnsDump = { pod: undefined, facts: host, unfiltered: facts.host };
  if (named === undefined) return { namespaces: [outer], problems: [] };
  const { inside } = named.pod;
  if (inside.kind === 'unknown') {
    return {
      namespaces: [outer],
      problems: [{ what: `inside Pod ${named.title}`, why: inside.why, next: inside.next }],
    };
  }
  const inner = pick(inside.value, { table, family: filter.family });
  return { namespaces: [outer, { pod: named.title, facts: inner, unfiltered: inside.value }], problems: [] };
}

/** Finds an ENI by id, interface, table, MAC or primary address. @throws UserError NOT_FOUND */
function findEni(enis: readonly EniFacts[], text: string, agent: NodeFacts['agent']): EniFacts {
  const name = text.toLowerCase();
  const eni = enis.find(
    ({ eniId, ifname, table, mac, addresses }) =>
      [eniId, ifname, String(table), mac].includes(name) || addresses.includes(name) || ifname === text,
  );
  if (eni !== undefined) return eni;
  const known = enis.map(({ eniId, ifname, table }) => eniId ?? ifname ?? String(table)).join(', ');
  const next = known === '' ? 'this node has none; tke-eni enis shows why' : `this node has ${known}`;
  throw new UserError('NOT_FOUND', `no ENI ${JSON.stringify(text)} here${whyNoIds(agent)}`, next);
}

/**
 * Returns why ENI ids are unknown, for the error message: without the agent's record even a correct id is not found.
 */
function whyNoIds(agent: NodeFacts['agent']): string {
  return agent.kind === 'unknown' ? ` (ids are not known: ${agent.why})` : '';
}

function tableOf({ host, agent }: NodeFacts, text: string): number {
  const table = findTable(host.tableNames, text);
  if (table !== undefined) return table;
  const names = [...host.tableNames.values()].filter((name) => name !== 'unspec').join(', ');
  const message = `no routing table is called ${JSON.stringify(text)}${whyNoIds(agent)}`;
  throw new UserError('NOT_FOUND', message, `a number, or one of ${names}`);
}

type Selection = {
  readonly table: number | undefined;
  readonly family: 4 | 6 | undefined;
  readonly owners?: OwnerIndex;
  readonly isSelected?: (owner: Owner) => boolean;
};

function pick(facts: NetnsFacts, { table, family, owners, isSelected = () => true }: Selection): NetnsFacts {
  const used = table === undefined ? undefined : interfacesOf(facts, table);
  const isFamily = (message: { readonly family: number }): boolean =>
    family === undefined || familyOfMessage(message) === family;
  const isOn = (ifindex: number): boolean =>
    (used === undefined || used.has(ifindex)) && (owners === undefined || isSelected(owners.ownerOfIfindex(ifindex)));
  return {
    sysctls: facts.sysctls,
    traffic: facts.traffic,
    links: facts.links.filter(({ ifindex }) => isOn(ifindex)),
    addresses: facts.addresses.filter((address) => isFamily(address) && isOn(address.ifindex)),
    neighs: facts.neighs.filter((neigh) => isFamily(neigh) && isOn(neigh.ifindex)),
    routes: facts.routes.filter(
      (route) =>
        isFamily(route) &&
        (table === undefined || route.table === table) &&
        (owners === undefined || isSelected(owners.ownerOfRoute(route))),
    ),
    rules: facts.rules.filter(
      (rule) =>
        isFamily(rule) &&
        (table === undefined || rule.table === table) &&
        (owners === undefined || isSelected(owners.ownerOfRule(rule))),
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
  return { ...facts, neighs: facts.neighs.filter(({ state }) => state !== NUD_NOARP && state !== NUD_NONE) };
}
