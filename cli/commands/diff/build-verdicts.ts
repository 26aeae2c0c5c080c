import type { PodNetwork } from '../../../dataplane/network.ts';
import type { Unjudged } from '../../../inspection/desired/desired-of.ts';
import { type NodeSnapshot, namesOf } from '../../../inspection/judge/compare-node.ts';
import { type Difference, isDifferent, type NodeDifferences } from '../../../inspection/judge/difference.ts';
import type { DifferenceOwner } from '../../../inspection/model/build-names.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { TextLayout } from './render-differences.ts';

/** Result of the check for one part of the node. */
type Verdict = {
  readonly subject: string;
  readonly owner: DifferenceOwner;
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
  const { desired } = snapshot;
  const names = namesOf(snapshot);
  const pod = podKey === undefined ? undefined : desired.networks.get(podKey);
  const enis = desired.enis.filter(({ table }) => podKey === undefined || table === tableOf(pod));
  const recorded: readonly DifferenceOwner[] = [
    { kind: 'node' },
    ...enis.map(({ eniId }): DifferenceOwner => ({ kind: 'eni', eniId })),
    ...[...desired.networks.keys()]
      .filter((key) => podKey === undefined || key === podKey)
      .map((key): DifferenceOwner => ({ kind: 'pod', key })),
  ];
  const known = new Set(recorded.map(idOf));
  const more = found.differences.filter(
    ({ owner }) => !known.has(idOf(owner)) && (podKey === undefined || isPod(owner, podKey)),
  );
  const owners = [...recorded, ...new Map(more.map(({ owner }) => [idOf(owner), owner])).values()];
  return owners.map((owner) => {
    const own = found.differences.filter((difference) => idOf(difference.owner) === idOf(owner));
    const differences = [...own, ...(owner.kind === 'pod' ? sharedBy(owner.key, snapshot, found) : [])];
    return {
      subject: subjectOf(owner, snapshot, names.text(owner)),
      owner,
      isOk: !differences.some(isDifferent),
      differences,
    };
  });
}

/** What leads the node's own traffic elsewhere, and no packet of a Pod. */
const BESIDE_PODS: readonly string[] = ['eni-connected-route'];

/** Returns the errors of the node and of a Pod's ENI: its packets need both. */
function sharedBy(key: string, { desired }: NodeSnapshot, { differences }: NodeDifferences): readonly Difference[] {
  const table = tableOf(desired.networks.get(key));
  const ids = new Set(desired.enis.filter((eni) => eni.table === table).map(({ eniId }) => eniId));
  return differences.filter(
    ({ owner, severity, id }) =>
      severity === 'error' &&
      !BESIDE_PODS.includes(id) &&
      (owner.kind === 'node' || (owner.kind === 'eni' && ids.has(owner.eniId))),
  );
}

function subjectOf(owner: DifferenceOwner, { desired }: NodeSnapshot, text: string): string {
  if (owner.kind !== 'pod') return text;
  const ips = desired.networks.get(owner.key)?.ips.join(', ');
  return ips === undefined ? text : `${text} (${ips})`;
}

function isPod(owner: DifferenceOwner, key: string): boolean {
  return owner.kind === 'pod' && owner.key === key;
}

function idOf(owner: DifferenceOwner): string {
  if (owner.kind === 'pod') return `pod ${owner.key}`;
  return owner.kind === 'eni' ? `eni ${owner.eniId}` : 'node';
}

const COLUMNS: readonly Column<Verdict>[] = [
  { title: '', text: ({ isOk }) => (isOk ? 'ok' : 'wrong'), color: ({ isOk }) => (isOk ? 'green' : 'red') },
  { title: '', text: ({ subject }) => subject },
  { title: '', text: whatOf },
];

/** Renders one table row for each part of the node. */
export function renderVerdicts(verdicts: readonly Verdict[], layout: TextLayout): string {
  return renderTable(verdicts, COLUMNS, { ...layout, hasTitles: false });
}

/** Builds the document for JSON and YAML output. */
export function verdictsDocument(verdicts: readonly Verdict[], isOk: boolean, unjudged: readonly Unjudged[]): object {
  return {
    ok: isOk,
    verdicts: verdicts.map(({ subject, isOk: isFine, differences }) => ({
      subject,
      ok: isFine,
      findings: differences.map(({ id, severity, what }) => ({ id, severity, what })),
    })),
    unjudged,
  };
}

function whatOf({ differences }: Verdict): string {
  const [first, ...more] = differences;
  if (first === undefined) return '';
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return `${first.id}: ${first.what}${rest}`;
}
