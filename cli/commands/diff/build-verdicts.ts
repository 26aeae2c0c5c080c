import type { PodNetwork } from '../../../dataplane/network.ts';
import { buildNames } from './build-names.ts';
import type { NodeSnapshot } from './compare-node.ts';
import { type Difference, isDifferent, type NodeDifferences, type Owner } from './difference.ts';

/** Result of the check for one part of the node. */
export type Verdict = {
  readonly subject: string;
  readonly owner: Owner;
  readonly isOk: boolean;
  readonly differences: readonly Difference[];
};

function tableOf(pod: PodNetwork | undefined): number | undefined {
  return pod === undefined || pod.kind === 'bridge' ? undefined : pod.eniTable;
}

/**
 * Summarises a comparison by owner: the node, each ENI, each Pod, in this order. With `podKey`: that Pod, its ENI, the
 * node.
 */
export function buildVerdicts(snapshot: NodeSnapshot, found: NodeDifferences, podKey?: string): readonly Verdict[] {
  const { desired, agent } = snapshot;
  const names = buildNames(agent, desired);
  const pod = podKey === undefined ? undefined : desired.networks.get(podKey);
  const enis = desired.enis.filter(({ table }) => podKey === undefined || table === tableOf(pod));
  const recorded: readonly Owner[] = [
    { kind: 'node' },
    ...enis.map(({ eniId }): Owner => ({ kind: 'eni', eniId })),
    ...[...desired.networks.keys()]
      .filter((key) => podKey === undefined || key === podKey)
      .map((key): Owner => ({ kind: 'pod', key })),
  ];
  const known = new Set(recorded.map(idOf));
  const more = found.differences.filter(
    ({ owner }) => !known.has(idOf(owner)) && (podKey === undefined || isPod(owner, podKey)),
  );
  const owners = [...recorded, ...new Map(more.map(({ owner }) => [idOf(owner), owner])).values()];
  return owners.map((owner) => {
    const differences = found.differences.filter((difference) => idOf(difference.owner) === idOf(owner));
    return {
      subject: subjectOf(owner, snapshot, names.text(owner)),
      owner,
      isOk: !differences.some(isDifferent),
      differences,
    };
  });
}

function subjectOf(owner: Owner, { desired }: NodeSnapshot, text: string): string {
  if (owner.kind !== 'pod') return text;
  const ips = desired.networks.get(owner.key)?.ips.join(', ');
  return ips === undefined ? text : `${text} (${ips})`;
}

function isPod(owner: Owner, key: string): boolean {
  return owner.kind === 'pod' && owner.key === key;
}

function idOf(owner: Owner): string {
  if (owner.kind === 'pod') return `pod ${owner.key}`;
  return owner.kind === 'eni' ? `eni ${owner.eniId}` : 'node';
}
