import { compareTables, nftDeleteCommands } from '../../dataplane/nft-replace.ts';
import type { ObservedNft } from '../../dataplane/observed.ts';
import type { Operation } from '../../dataplane/operation.ts';
import { PlanError } from '../../dataplane/plan-node.ts';
import { finding } from '../catalogue/catalogue.ts';
import type { ElementId } from '../catalogue/element-id.ts';
import { bySeverity, type Finding } from '../catalogue/finding.ts';
import { desiredByKernel } from '../desired/desired-by-kernel.ts';
import { type DesiredNode, desiredOfNode } from '../desired/desired-of.ts';
import { buildNames } from '../model/build-names.ts';
import type { NodeModel } from '../model/node-model.ts';
import type { NodePod } from '../node/join-pods.ts';
import { ifKnown } from '../node/known.ts';
import type { Known, NftFacts } from '../node/node-facts.ts';
import { hostDifferences, REPAIR, tableFault } from './compare-host.ts';
import { compareNode } from './compare-node.ts';
import { type PodSnapshot, podDifferences } from './compare-pod.ts';
import { type Difference, findingOf } from './difference.ts';
import { observedOf } from './observed-of.ts';

/** What the assessment found on a node, and what it says of what others find. */
export type NodeAssessment = {
  readonly differences: readonly Difference[];
  /**
   * Returns the most severe finding of these kinds whose first subject is an element, of packets of a family; with `podKey` without
   * those of other Pods. Undefined where there is none.
   */
  about(element: ElementId, ids: readonly string[], family?: 4 | 6, podKey?: string): Finding | undefined;
  /** Returns what an operation on the host would repair. */
  ofHost(operation: Operation): Finding | undefined;
  /** Returns what is to be said of our nftables table where a packet does not get what it should. */
  table(): Finding;
  /** Returns what an operation in a Pod would repair. */
  inPod(operation: Operation, pod: NodePod): Finding | undefined;
};

/**
 * Judges what was read of a node: by the plan of the agent's record, or, without one, by what the kernel's own state
 * leads to. @param plannedNft the nftables table as planned, in the format of the installed nft
 */
export function assessNode(model: NodeModel, plannedNft: Known<string>): NodeAssessment {
  const { facts } = model;
  const agent = ifKnown(facts.agent);
  const planned = agent === undefined ? undefined : orUndefined(() => desiredOfNode(agent, facts));
  const plan = planned ?? desiredByKernel(model);
  const { nft: table, flowtable: _flowtable, ...host } = plan.host;
  const nft = nftOf(ifKnown(facts.host.nft), ifKnown(plannedNft), table?.text);
  const desired = {
    ...plan,
    host: nft === undefined || table === undefined ? host : { ...host, nft: table },
  };
  const observed = { ...observedOf(facts.host, desired.host), nft: nft ?? {} };
  const compared = compareNode({
    ...(planned !== undefined && agent !== undefined && { agent }),
    ...{ facts, desired, unread: [], peers: new Map(), deadSandboxes: new Set() },
    ...{ host: observed, pods: podsOf(model, desired) },
  }).differences;
  const differences = table === undefined ? [...compared, ...tableByKernel(model)] : compared;
  const byElement = Map.groupBy(differences, ({ subjects: [first = ''] }) => first);
  const names = buildNames(model, desired);
  const loaded = ifKnown(facts.host.nft)?.ourTable;
  const place = {
    ...{ host: desired.host, names, ruleMode: desired.ruleMode },
    observed: { sysctls: facts.host.sysctls, nft: loaded === undefined ? {} : { restore: loaded } },
  };
  return {
    differences,
    about: (element, ids, family, podKey) =>
      byElement
        .get(element)
        ?.filter(({ id }) => ids.includes(id))
        .filter((found) => family === undefined || (found.family ?? family) === family)
        .filter(({ owner }) => podKey === undefined || owner.kind !== 'pod' || owner.key === podKey)
        .map(findingOf)
        .toSorted(bySeverity)[0],
    table: () => findingOf(byElement.get('nft:tke_eni')?.[0] ?? tableDifference(loaded)),
    ofHost: (operation) => hostDifferences(operation, place).map(findingOf)[0],
    inPod: (operation, { pod, ips, ifName, podLink, lease }) => {
      const network = { ips, podVeth: { name: ifName } };
      const links = podLink === undefined ? [] : [{ ifindex: podLink.ifindex, ifname: ifName }];
      const inPod = { key: pod.key, netns: lease?.netns ?? '<netns>', network, desired: { links } };
      return podDifferences(operation, inPod, names).map(findingOf)[0];
    },
  };
}

function orUndefined(plan: () => DesiredNode): DesiredNode | undefined {
  try {
    return plan();
  } catch (error) {
    if (error instanceof PlanError) return undefined;
    throw error;
  }
}

/** Returns what is loaded; undefined where that, or what should be, is not known. */
function nftOf(
  found: NftFacts | undefined,
  wanted: string | undefined,
  text: string | undefined,
): ObservedNft | undefined {
  if (found === undefined || wanted === undefined || text === undefined) return undefined;
  if (found.ourTable === undefined) return {};
  const { isSame, former } = compareTables(found.ourTable, wanted);
  return { restore: nftDeleteCommands() + found.ourTable, ...(isSame ? { text } : former && { former }) };
}

/** Without a plan of the nftables table each ENI of this node still needs its chain in it. */
function tableByKernel({ facts, enis, node, ruleMode }: NodeModel): readonly Difference[] {
  const nft = ifKnown(facts.host.nft);
  const present = enis.filter(({ link }) => link !== undefined);
  if (nft === undefined || node !== undefined || ruleMode !== 'compact' || present.length === 0) return [];
  const { ourTable } = nft;
  if (ourTable === undefined) return [tableDifference(undefined)];
  const without = present.map(({ table }) => `eni_${table}`).filter((chain) => !hasRules(ourTable, chain));
  return without.length === 0
    ? []
    : [tableDifference(ourTable, `: of its chains ${without.join(', ')} are gone or empty`)];
}

function tableDifference(ourTable: string | undefined, detail = ''): Difference {
  const { id, owner, what, subject } = tableFault(ourTable !== undefined);
  const details = {
    what: `${what}${detail}`,
    fix: [REPAIR, 'systemctl status nftables firewalld'],
    subjects: [subject],
  };
  return { ...finding(id, details), whose: 'node', owner, changes: [] };
}

function hasRules(table: string, chain: string): boolean {
  const start = table.search(new RegExp(`chain ${chain} \\{`));
  if (start < 0) return false;
  const body = table.slice(table.indexOf('{', start) + 1);
  return /\S/.test(body.slice(0, body.search(/^\t?\}/m)));
}

function podsOf({ pods }: NodeModel, desired: DesiredNode): readonly PodSnapshot[] {
  return pods.flatMap(({ pod, lease }): readonly PodSnapshot[] => {
    const network = desired.networks.get(pod.key);
    const state = desired.pods.get(pod.key);
    const inside = ifKnown(pod.inside);
    if (network === undefined || state === undefined || inside === undefined) return [];
    const netns = lease?.netns ?? '<netns>';
    return [{ key: pod.key, netns, network, desired: state, observed: observedOf(inside, state) }];
  });
}
